/* SPDX-License-Identifier: Apache-2.0
 *
 * Servers on this machine that speak OpenAI's protocol: where the usual ones listen, and which
 * models they have.
 */
#pragma once

/* Says what to type for each that answers. A port nobody listens on costs nothing. */
void local_servers_tell (void);

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the session really runs under, for its first line in the trace.
 */
#pragma once

struct session;

/* Once the confinement is there: the grants as they are in force, and what of the host shows in
 * them. */
void grants_record (struct session *s);

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session holds of its native processes: their confinement, the commands that run.
 */
#pragma once

struct session;

/* With nothing in it. */
void processes_new (struct session *s);
/* Nothing runs any more. */
void processes_free (struct session *s);

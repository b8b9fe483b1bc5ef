/* SPDX-License-Identifier: Apache-2.0
 *
 * What the loop keeps from task to task: the prompt of compactions, and what is done or said once.
 */
#pragma once

#include <stdbool.h>

struct session;

void going_new (struct session *s);
void going_free (struct session *s);

/* NULL: none. Borrowed for the session. */
void going_set_compaction_prompt (struct session *s, const char *prompt);
const char *going_compaction_prompt (const struct session *s);
/* True the first time: --resume-mode compact is spent by it; a reply was cut (W-RUN-001). */
bool going_first_resume (struct session *s);
bool going_first_cut (struct session *s);

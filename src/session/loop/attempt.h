/* SPDX-License-Identifier: Apache-2.0
 *
 * One attempt at a task: the list is begun or continued, then turns until it ends
 * (docs/spec/session.md 4.5, 5).
 */
#pragma once

#include "session/state/running_task.h"

/* Runs it. Afterwards t->end are set. */
void attempt_run (struct session *s, struct running_task *t);
/* What the next attempt, which goes on, is told (keep_working, reopen): one user message, or a
 * harness's prompt. */
void attempt_continue_with (struct session *s, struct running_task *t, const char *text,
                            const char *fence);
/* True when there is a conversation a next attempt can go on with. */
bool attempt_can_continue (const struct session *s, const struct running_task *t);

/* SPDX-License-Identifier: Apache-2.0
 *
 * lifecycle.done_check: the operator's command that decides whether a task is done
 * (docs/spec/session.md 4.5 step 7).
 *
 * Always true: the answer the check judges stands while it runs, so a deadline cannot throw it
 * away; a check that reopens is no end of the task and counts as no reopen of a hook.
 */
#pragma once

#include "session/state/running_task.h"

/* Runs the check. True: the attempt is to go on, its next message is in the list. False: the task
 * ends as t->ending says, which a cancel seen here has changed. */
bool done_check_reopens (struct session *s, struct running_task *t);
/* The member of task_end: {runs, reopens, limit, met, stopped_by}. Owned; NULL when none is
 * declared. */
char *done_check_json (const struct session *s, const struct running_task *t);

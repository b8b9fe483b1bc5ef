/* SPDX-License-Identifier: Apache-2.0
 *
 * A child's question, passed up: it becomes a question of the task that delegated, and so on to the
 * person at the top (docs/spec/spawn.md A23).
 */
#pragma once

#include "session/handoff/delegations.h"

/* Looks whether the child's task asks something; then asks the same of the running task, waits and
 * hands the answer down. <task> is the child's as its door gave it, or NULL: it is asked for. */
void child_question_pass (struct session *s, const struct task *running, struct delegation *d,
                          const json_t *task, struct cancel *cancel);
/* The same for every child of the running task that is out. <set> may be NULL. */
void child_questions_pass (struct session *s, struct running_task *t, struct delegations *set);

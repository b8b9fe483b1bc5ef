/* SPDX-License-Identifier: Apache-2.0
 *
 * One task from its start to its one ending (docs/spec/session.md 4.5).
 */
#pragma once

#include "session/state/running_task.h"

struct task_outcome {
    enum attempt_ending ending;
    char *reason;            /* NULL when ok */
    struct mur_error *error; /* what the loop itself failed with, or NULL */
};

void task_outcome_clear (struct task_outcome *o);

/* Runs the registry's active task to its end and records it everywhere. */
void task_run (struct session *s, const struct task *task, struct task_outcome *out);

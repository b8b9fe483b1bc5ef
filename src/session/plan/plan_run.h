/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a plan runs when: steps in waves, each once what it depends on is done.
 */
#pragma once

#include "session/plan/plan.h"

struct running_task;
struct session;

/* How a plan ended. */
struct plan_end {
    bool is_canceled;
    const char *failed_step; /* borrowed from the plan; NULL: none failed it */
    char *reason;            /* owned: why nothing was run; NULL: it was */
};
/* Runs a plan that was checked; <node> is the id of its plan_start line. */
void plan_run (struct session *s, struct running_task *t, struct plan *plan, const char *node,
               struct plan_end *end);

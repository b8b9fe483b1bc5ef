/* SPDX-License-Identifier: Apache-2.0
 *
 * One step of a plan, from the gates to its status.
 *
 * A command or capsule is started when its turn comes and waited for when the tools of its wave
 * have run; so they run beside each other and beside the tools, and tools one at a time. All but
 * waiting for a capsule's answer happens on the thread of the task loop.
 */
#pragma once

#include "session/plan/plan.h"
#include "session/state/outcome.h"

struct capsule_call;
struct cgroup_nest;
struct command;
struct running_task;
struct session;

/* A step under way. */
struct step_run {
    struct session *session;
    struct running_task *task;
    const struct plan *plan;
    struct plan_step *step;
    const struct cgroup_nest *nest; /* of the plan's processes; NULL: the session's scope */
    uint64_t started_us;
    char *tool, *line;   /* shell steps: the command's name, and the line as it is shown */
    json_t *call;        /* shell steps: the same as input of the command's tool; capsule steps:
                            as input of delegate-task */
    bool is_admitted;    /* the gates let the attempt that comes next through */
    bool is_disapproved; /* somebody said no: not asked again */
    struct call_outcome gates;    /* what they said, and what was opened for the step */
    struct command *command;      /* a shell step that runs */
    struct capsule_call *capsule; /* a capsule step that runs */
};
/* Asks the gates. A step that was refused has its status afterwards. */
void step_admit (struct step_run *run);
/* Starts what can run beside other steps, of one that was admitted. */
void step_begin (struct step_run *run);
/* Runs or waits for the step until it has its status, retries included. */
void step_finish (struct step_run *run);
void step_run_clear (struct step_run *run);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: steps a model hands over in one call of submit-plan, with the order between them
 * (spec/session.md 12).
 *
 * Callers: provided_plan.c reads, judges and runs one; plan_run.c decides what runs when,
 * plan_step.c runs a step. Always true: nothing runs before the whole plan was judged; each step
 * passes the gates a direct call passes; what steps give stays unfenced until the report is fenced
 * once.
 */
#pragma once

#include "session/calls/dispatch.h"

enum step_kind {
    STEP_UNKNOWN, /* none of the three keys, or several */
    STEP_TOOL,
    STEP_SHELL,
    STEP_CAPSULE,
};

/* What a failed step does to its plan. */
enum step_on_error {
    STEP_FAILS_PLAN,
    STEP_IS_SKIPPED,
    STEP_CONTINUES,
};

enum step_status {
    STEP_PENDING,
    STEP_SUCCEEDED,
    STEP_FAILED,
    STEP_SKIPPED,
};

struct plan_step {
    /* As submitted; borrowed from the plan's value. */
    const char *id;
    enum step_kind kind;
    const char *name;    /* the tool's or capsule's name, or the command line */
    const json_t *input; /* NULL: none */
    struct strv depends_on;
    const char *condition; /* NULL: always runs */
    const char *on_error_word;
    enum step_on_error on_error;
    uint64_t retries;

    /* What became of it. */
    enum step_status status;
    uint64_t attempts, duration_ms;
    json_t *sent;                     /* the input with references replaced; NULL before dispatch */
    char *output, *error;             /* NULL: none */
    char *state_effect, *resource_id; /* as the tool said them */
};

struct plan {
    json_t *value; /* owned */
    const char *id;
    struct plan_step *steps;
    size_t len;
    json_t *places;                    /* owned: the id of a step to its place in steps */
    const struct plan_step **reported; /* in the order they were recorded */
    size_t reported_len;
};

/* Reads the shape of a plan. False: it has none, *reason (owned) says why. */
bool plan_read (const json_t *value, struct plan *out, char **reason);
/* Judges the whole plan against what this session may do. False: *bad is the step at fault, *reason
 * (owned) says why. */
bool plan_check (struct session *s, const struct plan *plan, const char **bad, char **reason);
void plan_clear (struct plan *plan);
#define _cleanup_plan_ _cleanup_ (plan_clear)
const struct plan_step *plan_find (const struct plan *plan, const char *id);

const char *step_kind_name (enum step_kind kind);
const char *step_status_name (enum step_status status);

/* --- references and conditions (plan_refs.c) --- */

/* Calls <fn> with the id of every step that is referred to in <step>'s input and condition; stops
 * and returns false when it returns false. */
typedef bool plan_reference_fn (void *ctx, const char *step_id);
bool plan_each_reference (const struct plan_step *step, plan_reference_fn *fn, void *ctx);
/* The input with every string that is a reference as a whole replaced. Owned. */
json_t *plan_substitute (const struct plan *plan, const json_t *input);
/* False: the text is no condition, *reason (owned) says why. */
bool plan_condition_check (const char *text, char **reason);
/* Whether a condition that was checked holds now. */
bool plan_condition_holds (const struct plan *plan, const char *text);

/* --- running (plan_run.c) --- */

/* How a plan ended. */
struct plan_end {
    bool is_canceled;
    const char *failed_step; /* borrowed from the plan; NULL: none failed it */
    char *reason;            /* owned: why nothing was run; NULL: it was */
};
/* Runs a plan that was checked; <node> is the id of its plan_start line. */
void plan_run (struct session *s, struct running_task *t, struct plan *plan, const char *node,
               struct plan_end *end);

/* --- one step (plan_step.c) --- */

/* A step under way. */
struct step_run {
    struct session *session;
    struct running_task *task;
    const struct plan *plan;
    struct plan_step *step;
    const struct cgroup_nest *nest; /* of the plan's processes; NULL: the session's scope */
    uint64_t started_us;
    char *tool, *line;       /* shell steps: the command's name, and the line as it is shown */
    json_t *call;            /* shell steps: the same as input of the command's tool; capsule steps:
                                as input of delegate-task */
    bool is_admitted;        /* the gates let the attempt that comes next through */
    struct command *command; /* a shell step that runs */
    struct capsule_call *capsule; /* a capsule step that runs */
};
/* Asks the gates, then starts what can run beside other steps. A step that was refused has its
 * status afterwards. */
void step_begin (struct step_run *run);
/* Runs or waits for the step until it has its status, retries included. */
void step_finish (struct step_run *run);
void step_run_clear (struct step_run *run);

/* Splits a shell step into the name of a command and what that command's tool would be given
 * (both owned). False: the line is blank. */
bool step_command (const struct plan_step *step, const json_t *input, char **name, char **command);

/* --- capsule steps (plan_capsule.c) --- */

struct delegate_result;

/* What a capsule step asks for, as input of delegate-task. Without a version in its name the newest
 * in the stores is meant. Owned. */
json_t *step_delegation (struct session *s, const struct plan_step *step, const json_t *input);
/* Hands the work over in a thread of its own. */
void step_capsule_start (struct step_run *run);
/* Waits for it; *out is the caller's to clear. */
void step_capsule_finish (struct step_run *run, struct delegate_result *out);

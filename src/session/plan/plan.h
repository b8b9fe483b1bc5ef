/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: steps a model hands over in one call of submit-plan, with the order between them
 * (docs/spec/session.md 12).
 *
 * Always true: nothing runs before the whole plan was judged; each step passes the gates a direct
 * call passes; what steps give stays unfenced until the report is fenced once.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"

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
void plan_clear (struct plan *plan);
#define _cleanup_plan_ _cleanup_ (plan_clear)
const struct plan_step *plan_find (const struct plan *plan, const char *id);

const char *step_kind_name (enum step_kind kind);
const char *step_status_name (enum step_status status);

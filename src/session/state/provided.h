/* SPDX-License-Identifier: Apache-2.0
 *
 * Tools the runtime answers itself (docs/spec/session.md 8.3): one row each, which ends the file of
 * the tool. The grant is the manifest's existence: a row whose `exists` says no is not in the
 * inventory.
 *
 * The rows come in from the top, with the session: whoever walks them knows no tool.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct call_outcome;
struct running_task;
struct session;

struct provided_tool {
    const char *name;
    const char *description;
    const char *parameters; /* compact JSON with sorted keys; NULL: parameters_of makes it */
    const char *missing;    /* the declaration a refused call lacks: "capabilities.plan.submit" */
    bool (*exists) (const struct session *s);
    /* Answers a call; <input> is the parsed object. */
    void (*call) (struct session *s, struct running_task *task, const json_t *input,
                  struct call_outcome *out);
    /* What depends on the manifest; lives in the session's arena. */
    const char *(*parameters_of) (const struct session *s);
    const char *token; /* what such a refusal begins with; NULL: nothing */
};

/* The row of a name, or NULL. */
const struct provided_tool *provided_find (const struct session *s, const char *name);
/* The schema of its input, whoever makes it: what the model is told and what stands in tools/. */
const char *provided_parameters (const struct session *s, const struct provided_tool *tool);

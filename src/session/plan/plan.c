/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading and judging plans. See plan.h.
 */
#include "session/plan/plan.h"

#include "base/alloc.h"
#include "session/commands/shell.h"
#include "session/state/session.h"

#include <string.h>

#define RETRIES_MAX UINT32_MAX

static const char *const kind_names[] = { "unknown", "tool", "shell", "capsule" };
static const char *const status_names[] = { "pending", "success", "failed", "skipped" };
static const char *const on_error_names[] = { "fail", "skip", "continue" };

/* Tools a plan may not call: they change the session a plan runs in, or end the task. */
static const char *const barred[] = { "submit-plan", "switch-driver", "end-without-answer",
                                      "pull-artifact", "remove-artifact" };

const char *
step_kind_name (enum step_kind kind)
{
    return kind_names[kind];
}

const char *
step_status_name (enum step_status status)
{
    return status_names[status];
}

void
plan_clear (struct plan *plan)
{
    for (size_t i = 0; i < plan->len; i++) {
        struct plan_step *step = &plan->steps[i];
        strv_free (&step->depends_on);
        json_decref (step->sent);
        free (step->output);
        free (step->error);
        free (step->state_effect);
        free (step->resource_id);
    }
    free (plan->steps);
    free (plan->reported);
    json_decref (plan->places);
    json_decref (plan->value);
    *plan = (struct plan){ 0 };
}

const struct plan_step *
plan_find (const struct plan *plan, const char *id)
{
    const json_t *place = json_object_get (plan->places, id);
    return place ? &plan->steps[json_integer_value (place)] : NULL;
}

/* Steps look each other up at every wave: a plan of thousands must not be searched through. */
static void
note_place (struct plan *plan, size_t i)
{
    const char *id = plan->steps[i].id;
    if (! json_object_get (plan->places, id))
        json_object_set_new (plan->places, id, json_integer ((json_int_t)i));
}

static bool say (char **reason, const char *fmt, ...) _printf_ (2, 3);

static bool
say (char **reason, const char *fmt, ...)
{
    va_list args;
    va_start (args, fmt);
    *reason = x_vasprintf (fmt, args);
    va_end (args);
    return false;
}

/* --- the shape --- */

/* An optional string member. False: it is something else. */
static bool
read_text (const json_t *o, const char *key, const char **text)
{
    const json_t *v = json_object_get (o, key);
    *text = json_string_value (v);
    return ! v || json_is_null (v) || *text;
}

static bool
read_depends_on (const json_t *o, struct plan_step *step)
{
    const json_t *list = json_object_get (o, "depends_on"), *item;
    size_t i;
    if (! list || json_is_null (list))
        return true;
    if (! json_is_array (list))
        return false;
    json_array_foreach (list, i, item)
    {
        if (! json_is_string (item))
            return false;
        strv_push (&step->depends_on, json_string_value (item));
    }
    return true;
}

static bool
read_kind (const json_t *o, struct plan_step *step, const char **bad)
{
    size_t count = 0;
    for (int kind = STEP_TOOL; kind <= STEP_CAPSULE; kind++) {
        const char *name;
        if (! read_text (o, kind_names[kind], &name)) {
            *bad = kind_names[kind];
            return false;
        }
        if (! name)
            continue;
        step->kind = (enum step_kind)kind;
        step->name = name;
        count++;
    }
    if (count != 1)
        step->kind = STEP_UNKNOWN;
    return true;
}

/* Reads one step; returns the key at fault, or NULL. */
static const char *
read_step (const json_t *o, struct plan_step *step)
{
    const char *bad = NULL;
    if (! read_text (o, "id", &step->id) || ! step->id)
        return "id";
    if (! read_kind (o, step, &bad))
        return bad;
    if (! read_depends_on (o, step))
        return "depends_on";
    if (! read_text (o, "if", &step->condition))
        return "if";
    if (! read_text (o, "on_error", &step->on_error_word))
        return "on_error";
    if (json_object_get (o, "retries") &&
        (! json_get_u64 (o, "retries", &step->retries) || step->retries > RETRIES_MAX))
        return "retries";
    const json_t *input = json_object_get (o, "input");
    step->input = json_is_null (input) ? NULL : input;
    return NULL;
}

bool
plan_read (const json_t *value, struct plan *out, char **reason)
{
    const json_t *steps = json_object_get (value, "steps"), *item;
    size_t i;
    if (! json_is_object (value))
        return say (reason, "plan must be an object with id and steps");
    if (! json_get_string (value, "id"))
        return say (reason, "plan.id must be a string");
    if (! json_is_array (steps))
        return say (reason, "plan.steps must be a list");
    out->value = json_deep_copy (value);
    out->id = json_get_string (out->value, "id");
    steps = json_object_get (out->value, "steps");
    out->steps = x_new_array (struct plan_step, json_array_size (steps) + 1);
    out->places = json_object ();
    out->reported = x_new_array (const struct plan_step *, json_array_size (steps) + 1);
    json_array_foreach (steps, i, item)
    {
        out->len = i + 1;
        if (! json_is_object (item))
            return say (reason, "plan.steps[%zu] must be an object", i);
        const char *bad = read_step (item, &out->steps[i]);
        if (bad)
            return say (reason, "plan.steps[%zu].%s is missing or not of the right type", i, bad);
        note_place (out, i);
    }
    return true;
}

/* --- whether it may run --- */

static bool
is_barred (const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN (barred); i++)
        if (str_eq (barred[i], name))
            return true;
    return false;
}

static bool
check_tool (struct session *s, const struct plan_step *step, char **reason)
{
    if (is_barred (step->name))
        return say (reason, "step %s: %s cannot be a step of a plan", step->id, step->name);
    return session_tool (s, step->name) ||
           say (reason, "step %s: there is no tool named %s in this session", step->id, step->name);
}

static bool
check_shell (struct session *s, const struct plan_step *step, char **reason)
{
    _cleanup_free_ char *name = NULL, *command = NULL;
    if (! step_command (step, step->input, &name, &command))
        return say (reason, "step %s: the command line is blank", step->id);
    return shell_is_offered (s, name) ||
           say (reason, "step %s: %s is not in capabilities.shell.allow", step->id, name);
}

static bool
check_capsule (struct session *s, const struct plan_step *step, char **reason)
{
    (void)s;
    const json_t *objective = json_object_get (step->input, "objective");
    bool is_text = json_is_string (step->input) ||
                   (json_is_string (objective) && json_object_size (step->input) == 1);
    return is_text || say (reason,
                           "step %s: the input of a capsule step is its task as a string, or an "
                           "object holding nothing but \"objective\"",
                           step->id);
}

static bool
check_kind (struct session *s, const struct plan_step *step, char **reason)
{
    switch (step->kind) {
    case STEP_TOOL:
        return check_tool (s, step, reason);
    case STEP_SHELL:
        return check_shell (s, step, reason);
    case STEP_CAPSULE:
        return check_capsule (s, step, reason);
    case STEP_UNKNOWN:
    default:
        return say (reason, "step %s: exactly one of tool, shell and capsule says what it runs",
                    step->id);
    }
}

static bool
check_on_error (struct plan_step *step, char **reason)
{
    if (! step->on_error_word)
        return true;
    for (size_t i = 0; i < ARRAY_LEN (on_error_names); i++)
        if (str_eq (on_error_names[i], step->on_error_word)) {
            step->on_error = (enum step_on_error)i;
            return true;
        }
    return say (reason, "step %s: on_error is %s; it must be fail, skip or continue", step->id,
                step->on_error_word);
}

struct known {
    const struct plan *plan;
    const struct plan_step *step;
    char **reason;
};

static bool
is_known (void *ctx, const char *step_id)
{
    const struct known *known = ctx;
    return plan_find (known->plan, step_id) ||
           say (known->reason, "step %s: it refers to %s, which is no step of this plan",
                known->step->id, step_id);
}

static bool
check_links (const struct plan *plan, const struct plan_step *step, char **reason)
{
    for (size_t i = 0; i < step->depends_on.len; i++)
        if (! plan_find (plan, step->depends_on.items[i]))
            return say (reason, "step %s: it depends on %s, which is no step of this plan",
                        step->id, step->depends_on.items[i]);
    struct known known = { plan, step, reason };
    return plan_each_reference (step, is_known, &known);
}

static bool
check_step (struct session *s, const struct plan *plan, struct plan_step *step, char **reason)
{
    if (! step->id[strspn (step->id, " \t\r\n")])
        return say (reason, "a step has a blank id");
    if (plan_find (plan, step->id) != step)
        return say (reason, "step %s: there are two steps of that id", step->id);
    return check_kind (s, step, reason) && check_on_error (step, reason) &&
           check_links (plan, step, reason);
}

bool
plan_check (struct session *s, const struct plan *plan, const char **bad, char **reason)
{
    for (size_t i = 0; i < plan->len; i++)
        if (! check_step (s, plan, &plan->steps[i], reason)) {
            *bad = plan->steps[i].id;
            return false;
        }
    return true;
}

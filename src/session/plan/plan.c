/* SPDX-License-Identifier: Apache-2.0 */
#include "session/plan/plan.h"

#include "base/alloc.h"

#include <string.h>

#define RETRIES_MAX UINT32_MAX

static const char *const kind_names[] = { "unknown", "tool", "shell", "capsule" };
static const char *const status_names[] = { "pending", "success", "failed", "skipped" };

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

static bool plan_say (char **reason, const char *fmt, ...) _printf_ (2, 3);

static bool
plan_say (char **reason, const char *fmt, ...)
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
        return plan_say (reason, "plan must be an object with id and steps");
    if (! json_get_string (value, "id"))
        return plan_say (reason, "plan.id must be a string");
    if (! json_is_array (steps))
        return plan_say (reason, "plan.steps must be a list");
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
            return plan_say (reason, "plan.steps[%zu] must be an object", i);
        const char *bad = read_step (item, &out->steps[i]);
        if (bad)
            return plan_say (reason, "plan.steps[%zu].%s is missing or not of the right type", i,
                             bad);
        note_place (out, i);
    }
    return true;
}

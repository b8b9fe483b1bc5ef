/* SPDX-License-Identifier: Apache-2.0 */
#include "session/plan/plan_refs.h"
#include "base/json_write.h"

#include "base/alloc.h"

#include <string.h>

static const char *const members[] = { ".output", ".status" };

/* The step a text refers to as a whole (owned), or NULL. *member is an index of members. */
static char *
reference_step (const char *text, size_t len, size_t *member)
{
    if (len == 0 || text[0] != '$')
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN (members); i++) {
        size_t tail = strlen (members[i]);
        if (len > tail + 1 && memcmp (text + len - tail, members[i], tail) == 0) {
            *member = i;
            return x_strndup (text + 1, len - tail - 1);
        }
    }
    return NULL;
}

/* What a reference stands for now, borrowed; "" for what a step never gave. */
static const char *
reference_value (const struct plan *plan, const char *step_id, size_t member)
{
    const struct plan_step *step = plan_find (plan, step_id);
    if (! step)
        return "";
    return member == 1 ? step_status_name (step->status) : step->output ? step->output : "";
}

/* --- in the input --- */

static bool
each_in_value (const json_t *v, plan_reference_fn *fn, void *ctx)
{
    const char *key;
    const json_t *item;
    size_t i, member;
    if (json_is_string (v)) {
        _cleanup_free_ char *id =
            reference_step (json_string_value (v), json_string_length (v), &member);
        return ! id || fn (ctx, id);
    }
    json_array_foreach (v, i, item) if (! each_in_value (item, fn, ctx)) return false;
    void *at;
    json_t *object = (json_t *)(uintptr_t)v; /* iterating needs no const, changes nothing */
    for (at = json_object_iter (object); at; at = json_object_iter_next (object, at)) {
        key = json_object_iter_key (at);
        (void)key;
        if (! each_in_value (json_object_iter_value (at), fn, ctx))
            return false;
    }
    return true;
}

json_t *
plan_substitute (const struct plan *plan, const json_t *input)
{
    const json_t *item;
    const char *key;
    size_t i, member;
    if (json_is_string (input)) {
        _cleanup_free_ char *id =
            reference_step (json_string_value (input), json_string_length (input), &member);
        const char *value = id ? reference_value (plan, id, member) : NULL;
        return value ? json_string_lossy (value, strlen (value))
                     : json_stringn (json_string_value (input), json_string_length (input));
    }
    if (json_is_array (input)) {
        json_t *copy = json_array ();
        json_array_foreach (input, i, item)
            json_array_append_new (copy, plan_substitute (plan, item));
        return copy;
    }
    if (json_is_object (input)) {
        json_t *copy = json_object (), *value;
        json_object_foreach ((json_t *)(uintptr_t)input, key, value)
            json_object_set_new (copy, key, plan_substitute (plan, value));
        return copy;
    }
    return json_deep_copy (input);
}

/* --- conditions --- */

struct condition {
    const struct plan *plan; /* NULL: only the grammar is judged */
    const char *at;
    plan_reference_fn *fn; /* called for each reference, unless NULL */
    void *ctx;
    bool was_stopped; /* fn said so */
    char *reason;     /* owned; set: the text is no condition */
};

static void
skip_blanks (struct condition *c)
{
    c->at += strspn (c->at, " \t\r\n");
}

static bool
fail (struct condition *c, const char *what)
{
    if (! c->reason)
        c->reason = *c->at ? x_asprintf ("%s expected at \"%s\"", what, c->at)
                           : x_asprintf ("%s expected at the end", what);
    return false;
}

static bool
take_word (struct condition *c, const char *word)
{
    skip_blanks (c);
    if (! str_starts (c->at, word))
        return false;
    c->at += strlen (word);
    return true;
}

/* One operand; its value is owned. NULL: none there. */
static char *
read_operand (struct condition *c)
{
    skip_blanks (c);
    if (*c->at == '\'' || *c->at == '"') {
        const char *end = strchr (c->at + 1, *c->at);
        if (! end)
            return fail (c, "the end of a quoted literal"), NULL;
        char *text = x_strndup (c->at + 1, (size_t)(end - c->at) - 1);
        c->at = end + 1;
        return text;
    }
    size_t len = strcspn (c->at, " \t\r\n=!<>&|'\""), member;
    _cleanup_free_ char *id = reference_step (c->at, len, &member);
    if (! id)
        return fail (c, "a quoted literal or a reference"), NULL;
    c->at += len;
    if (c->fn && ! c->was_stopped)
        c->was_stopped = ! c->fn (c->ctx, id);
    return x_strdup (c->plan ? reference_value (c->plan, id, member) : "");
}

static bool
read_comparison (struct condition *c)
{
    static const char *const operators[] = { "==", "!=", ">", "<" };
    _cleanup_free_ char *left = read_operand (c);
    size_t op = 0;
    if (! left)
        return false;
    while (op < ARRAY_LEN (operators) && ! take_word (c, operators[op]))
        op++;
    if (op == ARRAY_LEN (operators))
        return fail (c, "one of == != > <");
    _cleanup_free_ char *right = read_operand (c);
    if (! right)
        return false;
    int order = strcmp (left, right);
    return op == 0 ? order == 0 : op == 1 ? order != 0 : op == 2 ? order > 0 : order < 0;
}

static bool
read_all_of (struct condition *c)
{
    bool holds = read_comparison (c);
    while (! c->reason && take_word (c, "&&"))
        holds &= read_comparison (c);
    return holds;
}

static bool
read_any_of (struct condition *c)
{
    bool holds = read_all_of (c);
    while (! c->reason && take_word (c, "||"))
        holds |= read_all_of (c);
    skip_blanks (c);
    if (! c->reason && *c->at)
        fail (c, "&& or ||");
    return holds;
}

bool
plan_condition_check (const char *text, char **reason)
{
    struct condition c = { .at = text };
    read_any_of (&c);
    *reason = c.reason;
    return ! c.reason;
}

bool
plan_condition_holds (const struct plan *plan, const char *text)
{
    struct condition c = { .plan = plan, .at = text };
    bool holds = read_any_of (&c);
    bool is_condition = ! c.reason;
    free (c.reason);
    return holds && is_condition;
}

bool
plan_each_reference (const struct plan_step *step, plan_reference_fn *fn, void *ctx)
{
    if (step->input && ! each_in_value (step->input, fn, ctx))
        return false;
    if (! step->condition)
        return true;
    struct condition c = { .at = step->condition, .fn = fn, .ctx = ctx };
    read_any_of (&c);
    free (c.reason);
    return ! c.was_stopped;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/tell/diff_steps.h"

#include "base/alloc.h"
#include "base/digest.h"

#include <limits.h>
#include <string.h>

#define TEXT_SHOWN   300
#define DIGEST_SHOWN 8
/* Beyond this many pairs what lies between the common ends is aligned by name alone. */
#define MOST_PAIRS ((size_t)4 << 20)

/* --- what a session did --- */

/* What of an event is a step: its word, the member that names it, and those that make it another
 * step when they differ. */
static const struct kind {
    const char *type, *word, *name;
    const char *keys[5];
    const char *status;
} kinds[] = {
    { "task_start", "task", NULL, { "text_sha", "message_parts_bytes" }, NULL },
    { "inference", "turn", "tool_name", { "decision", "response_sha" }, "error_code" },
    { "tool_call", "call", "tool_name", { "input", "status", "error" }, "status" },
    { "skill_call", "skill", "skill_name", { "input" }, "status" },
    { "shell", "command", "binary", { "command", "exit_code" }, NULL },
    { "delegation", "delegation", "capsule", { "version", "outcome" }, "outcome" },
    { "member_call", "member", "member", { "status", "output" }, "status" },
    { "call_denied", "refused", "target", { "hook_name", "reason" }, NULL },
    { "network_refused", "refused", "target", { "host", "port" }, NULL },
    { "command_refused", "refused", "binary", { "what" }, NULL },
    { "approval_answered", "answered", "target", { "answer" }, "answer" },
    { "task_failed", "task fails", "cause", { "reason" }, NULL },
    { "task_end", "task ends", NULL, { "exit_status" }, "exit_status" },
};

struct step {
    const struct kind *kind;
    size_t n;
    char *what;    /* word and name: steps of one are the same thing done */
    char *text;    /* of the members that tell them apart, cut */
    char *status;  /* NULL: none */
    uint64_t hash; /* of what and the whole text */
    uint64_t spent_ms;
    bool is_timed;
};

struct steps {
    struct step *items;
    size_t len, cap;
};

static const struct kind *
kind_of (const char *type)
{
    for (size_t i = 0; i < ARRAY_LEN (kinds); i++)
        if (str_eq (kinds[i].type, type))
            return &kinds[i];
    return NULL;
}

static uint64_t
hash_text (uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

static char *
value_text (const json_t *object, const char *key)
{
    const json_t *value = json_object_get (object, key);
    if (! value || json_is_null (value))
        return x_strdup ("");
    return json_is_string (value) ? x_strdup (json_string_value (value))
                                  : json_text (value, JSON_TEXT_SORTED);
}

static struct step
step_of (const struct trace_event *e, const struct kind *kind)
{
    _cleanup_buf_ struct buf text = { 0 };
    uint64_t hash = 14695981039346656037u;
    const char *name = kind->name ? json_get_string (e->object, kind->name) : NULL;
    struct step s = { .kind = kind, .n = e->index };
    s.what = name ? x_asprintf ("%s %s", kind->word, name) : x_strdup (kind->word);
    for (size_t i = 0; i < ARRAY_LEN (kind->keys) && kind->keys[i]; i++) {
        _cleanup_free_ char *value = value_text (e->object, kind->keys[i]);
        hash = hash_text (hash_text (hash, " "), value);
        if (text.len && *value)
            buf_putc (&text, ' ');
        buf_printf (&text, "%.*s", sha256_hex_is_valid (value) ? DIGEST_SHOWN : INT_MAX, value);
    }
    s.hash = hash_text (hash, s.what);
    s.text = cut_text (text.data ? text.data : "", TEXT_SHOWN);
    const char *status = kind->status ? json_get_string (e->object, kind->status) : NULL;
    s.status = status ? x_strdup (status) : NULL;
    s.is_timed = json_get_u64 (e->object, "duration_ms", &s.spent_ms);
    return s;
}

static void
steps_read (struct steps *all, const struct trace *t)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct kind *kind = kind_of (trace_type (t, i));
        if (! kind)
            continue;
        x_grow (all->items, all->len, all->cap);
        all->items[all->len++] = step_of (trace_at (t, i), kind);
    }
}

static void
steps_clear (struct steps *all)
{
    for (size_t i = 0; i < all->len; i++) {
        free (all->items[i].what);
        free (all->items[i].text);
        free (all->items[i].status);
    }
    free (all->items);
}

/* --- aligning --- */

struct alignment {
    const struct steps *a, *b;
    json_t *steps;
    size_t same, changed, only_a, only_b;
};

static json_t *
step_json (const struct step *s)
{
    json_t *value = json_object ();
    json_set_u64 (value, "n", s->n);
    json_set_string (value, "what", s->what);
    json_set_string (value, "text", s->text);
    if (s->status)
        json_set_string (value, "status", s->status);
    if (s->is_timed)
        json_set_u64 (value, "duration_ms", s->spent_ms);
    return value;
}

/* Either may be NULL. */
static void
put (struct alignment *x, const struct step *a, const struct step *b)
{
    bool is_same = a && b && a->hash == b->hash;
    json_t *pair = json_object ();
    json_set_string (pair, "kind", is_same ? "same" : a && b ? "changed" : a ? "only_a" : "only_b");
    if (a)
        json_object_set_new (pair, "a", step_json (a));
    if (b)
        json_object_set_new (pair, "b", step_json (b));
    json_array_append_new (x->steps, pair);
    size_t *count = is_same ? &x->same : a && b ? &x->changed : a ? &x->only_a : &x->only_b;
    ++*count;
}

/* Between two steps that are the same: those of one name stand beside each other, in order. */
static void
put_between (struct alignment *x, size_t a, size_t a_end, size_t b, size_t b_end)
{
    while (a < a_end || b < b_end) {
        const struct step *one = a < a_end ? &x->a->items[a] : NULL;
        size_t at = b;
        while (one && at < b_end && ! str_eq (x->b->items[at].what, one->what))
            at++;
        if (! one || at == b_end) {
            bool is_first = one != NULL;
            put (x, is_first ? one : NULL, is_first ? NULL : &x->b->items[b]);
            a += is_first;
            b += ! is_first;
            continue;
        }
        for (; b < at; b++)
            put (x, NULL, &x->b->items[b]);
        put (x, one, &x->b->items[b]);
        a++;
        b++;
    }
}

/* lengths[i * (columns + 1) + j]: of the longest common sequence of what begins at i and j. */
static uint32_t *
common_lengths (const struct step *a, size_t rows, const struct step *b, size_t columns)
{
    uint32_t *lengths = x_calloc ((rows + 1) * (columns + 1), sizeof *lengths);
    for (size_t i = rows; i-- > 0;)
        for (size_t j = columns; j-- > 0;) {
            const uint32_t *here = &lengths[i * (columns + 1) + j];
            uint32_t down = here[columns + 1], right = here[1], both = here[columns + 2];
            lengths[i * (columns + 1) + j] = a[i].hash == b[j].hash ? both + 1
                                             : down > right         ? down
                                                                    : right;
        }
    return lengths;
}

static void
put_middle (struct alignment *x, size_t from, size_t a_end, size_t b_end)
{
    size_t rows = a_end - from, columns = b_end - from, i = 0, j = 0, a_open = 0, b_open = 0;
    if (! rows || ! columns || rows > MOST_PAIRS / columns) {
        put_between (x, from, a_end, from, b_end);
        return;
    }
    const struct step *a = &x->a->items[from], *b = &x->b->items[from];
    _cleanup_free_ uint32_t *lengths = common_lengths (a, rows, b, columns);
    while (i < rows && j < columns) {
        if (a[i].hash == b[j].hash) {
            put_between (x, from + a_open, from + i, from + b_open, from + j);
            put (x, &a[i++], &b[j++]);
            a_open = i;
            b_open = j;
        } else if (lengths[(i + 1) * (columns + 1) + j] >= lengths[i * (columns + 1) + j + 1]) {
            i++;
        } else {
            j++;
        }
    }
    put_between (x, from + a_open, a_end, from + b_open, b_end);
}

static void
align (struct alignment *x)
{
    size_t a_end = x->a->len, b_end = x->b->len, from = 0;
    while (from < a_end && from < b_end && x->a->items[from].hash == x->b->items[from].hash)
        from++;
    while (a_end > from && b_end > from &&
           x->a->items[a_end - 1].hash == x->b->items[b_end - 1].hash) {
        a_end--;
        b_end--;
    }
    for (size_t i = 0; i < from; i++)
        put (x, &x->a->items[i], &x->b->items[i]);
    put_middle (x, from, a_end, b_end);
    for (; a_end < x->a->len; a_end++, b_end++)
        put (x, &x->a->items[a_end], &x->b->items[b_end]);
}

/* --- what stands around the steps --- */

static void
put_facts (json_t *facts, const struct trace *a, const struct trace *b, const char *type,
           const char *const *keys)
{
    const struct trace_event *one = trace_find (a, type, 0);
    _cleanup_json_ json_t *before = one ? json_incref (one->object) : NULL;
    const struct trace_event *other = trace_find (b, type, 0);
    const json_t *after = other ? other->object : NULL;
    for (; *keys; keys++) {
        json_t *left = json_object_get (before, *keys), *right = json_object_get (after, *keys);
        if ((! left && ! right) || (left && right && json_equal (left, right)))
            continue;
        json_t *fact = json_object ();
        json_set_string (fact, "name", *keys);
        json_object_set_new (fact, "a", left ? json_incref (left) : json_null ());
        json_object_set_new (fact, "b", right ? json_incref (right) : json_null ());
        json_array_append_new (facts, fact);
    }
}

json_t *
trace_diff_steps (const struct trace *a, const struct trace *b)
{
    static const char *const started[] = { "capsule_name",
                                           "capsule_version",
                                           "model",
                                           "mur_version",
                                           "manifest_sha256",
                                           "lock_sha256",
                                           "system_prompt_sha256",
                                           "containment_achieved",
                                           "tools_declared",
                                           NULL };
    static const char *const ended[] = { "exit_status",
                                         "total_turns",
                                         "total_input_tokens",
                                         "total_output_tokens",
                                         "total_tool_calls",
                                         "total_shell_calls",
                                         NULL };
    struct steps all[2] = { 0 };
    steps_read (&all[0], a);
    steps_read (&all[1], b);
    struct alignment x = { .a = &all[0], .b = &all[1], .steps = json_array () };
    align (&x);
    steps_clear (&all[0]);
    steps_clear (&all[1]);
    json_t *answer = json_object (), *facts = json_array ();
    put_facts (facts, a, b, "session_start", started);
    put_facts (facts, a, b, "session_end", ended);
    json_set_u64 (answer, "schema", 1);
    json_set_string (answer, "a", trace_session_id (a));
    json_set_string (answer, "b", trace_session_id (b));
    json_set_u64 (answer, "same", x.same);
    json_set_u64 (answer, "changed", x.changed);
    json_set_u64 (answer, "only_a", x.only_a);
    json_set_u64 (answer, "only_b", x.only_b);
    json_object_set_new (answer, "facts", facts);
    json_object_set_new (answer, "steps", x.steps);
    return answer;
}

/* --- as lines --- */

static void
put_side (struct report *report, char mark, const json_t *step)
{
    report_text (report, "%c %s  %s\n", mark, member_text (step, "what"),
                 member_text (step, "text"));
}

void
trace_diff_steps_report (const json_t *answer, struct report *report)
{
    size_t i;
    const json_t *pair, *fact;
    report_text (report, "before %s\nafter  %s\n", member_text (answer, "a"),
                 member_text (answer, "b"));
    json_array_foreach (json_object_get (answer, "facts"), i, fact)
    {
        _cleanup_free_ char *a = member_json (fact, "a", 60);
        _cleanup_free_ char *b = member_json (fact, "b", 60);
        report_text (report, "! %s  %s → %s\n", member_text (fact, "name"), a, b);
    }
    json_array_foreach (json_object_get (answer, "steps"), i, pair)
    {
        const json_t *a = json_object_get (pair, "a"), *b = json_object_get (pair, "b");
        bool is_same = str_eq (member_text (pair, "kind"), "same");
        if (is_same)
            put_side (report, ' ', a);
        else if (a && b) {
            put_side (report, '~', a);
            put_side (report, '~', b);
        } else
            put_side (report, a ? '-' : '+', a ? a : b);
    }
    report_text (report, "%s the same, %s changed, %s only before, %s only after\n",
                 count_text (member_number (answer, "same")).text,
                 count_text (member_number (answer, "changed")).text,
                 count_text (member_number (answer, "only_a")).text,
                 count_text (member_number (answer, "only_b")).text);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/tell/show_parts.h"

#include "base/alloc.h"

#include <string.h>

const struct trace_event *
show_next (const struct show *s, const char *type, const struct trace_event *after)
{
    return trace_next (s->trace, type, after);
}

size_t
show_count (const struct show *s, const char *type)
{
    return trace_count (s->trace, type);
}

void
show_index (const struct show *s, const char *type, const char *key, struct text_index *out)
{
    text_index_init (out, trace_count (s->trace, type));
    for (const struct trace_event *e = NULL; (e = show_next (s, type, e));) {
        const char *text = json_get_string (e->object, key);
        uint32_t first;
        if (text && ! text_index_get (out, text, &first))
            text_index_put (out, text, (uint32_t)e->index);
    }
}

void
word_count_add (struct word_counts *c, const char *word)
{
    size_t i = 0;
    while (i < c->words.len && ! str_eq (c->words.items[i], word))
        i++;
    if (i == c->words.len) {
        strv_push (&c->words, word);
        c->counts = x_reallocarray (c->counts, c->words.len, sizeof (*c->counts));
        c->counts[i] = 0;
    }
    c->counts[i]++;
}

char *
word_counts_take (struct word_counts *c)
{
    struct buf out = { 0 };
    for (size_t done = 0; done < c->words.len; done++) {
        size_t least = c->words.len;
        for (size_t i = 0; i < c->words.len; i++)
            if (c->counts[i] &&
                (least == c->words.len || strcmp (c->words.items[i], c->words.items[least]) < 0))
                least = i;
        buf_printf (&out, "%s%zu %s", done ? ", " : "", c->counts[least], c->words.items[least]);
        c->counts[least] = 0;
    }
    strv_free (&c->words);
    free (c->counts);
    *c = (struct word_counts){ 0 };
    return buf_steal (&out);
}

char *
show_outcomes (const struct show *s, const char *type)
{
    struct word_counts counts = { 0 };
    for (const struct trace_event *e = NULL; (e = show_next (s, type, e));)
        word_count_add (&counts, member_text (e->object, "outcome"));
    return word_counts_take (&counts);
}

struct small_text
show_turn_suffix (const json_t *object)
{
    struct small_text t = { "" };
    if (member_has (object, "turn"))
        snprintf (t.text, sizeof (t.text), "  at turn %lu",
                  (unsigned long)member_number (object, "turn"));
    return t;
}

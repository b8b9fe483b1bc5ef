/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/tell/show_parts.h"

#include "base/alloc.h"

const struct trace_event *
show_next (const struct show *s, const char *type, const struct trace_event *after)
{
    return trace_find (s->trace, type, after ? (size_t)(after - s->trace->events) + 1 : 0);
}

size_t
show_count (const struct show *s, const char *type)
{
    size_t count = 0;
    for (const struct trace_event *e = NULL; (e = show_next (s, type, e));)
        count++;
    return count;
}

char *
show_outcomes (const struct show *s, const char *type)
{
    _cleanup_strv_ struct strv all = { 0 };
    for (const struct trace_event *e = NULL; (e = show_next (s, type, e));)
        strv_push (&all, member_text (e->object, "outcome"));
    strv_sort (&all);
    struct buf out = { 0 };
    for (size_t i = 0; i < all.len;) {
        size_t same = 1;
        while (i + same < all.len && str_eq (all.items[i], all.items[i + same]))
            same++;
        buf_printf (&out, "%s%zu %s", i ? ", " : "", same, all.items[i]);
        i += same;
    }
    return buf_steal (&out);
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

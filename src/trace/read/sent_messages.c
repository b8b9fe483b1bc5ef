/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/read/sent_messages.h"

#include "base/alloc.h"

#include <string.h>

/* What a line lists itself comes after what it took over. */
static size_t
taken_over (const json_t *line)
{
    size_t listed = json_array_size (json_object_get (line, "message_ids"));
    uint64_t count;
    if (! json_get_string (line, "messages_after") ||
        ! json_get_u64 (line, "message_count", &count))
        return 0;
    return count > listed ? (size_t)count - listed : 0;
}

size_t
sent_count (const json_t *line)
{
    size_t hashed = json_array_size (json_object_get (line, "message_shas")),
           listed = json_array_size (json_object_get (line, "message_ids"));
    return taken_over (line) + (hashed ? hashed : listed);
}

static const char *
text_at (const json_t *list, size_t i)
{
    const char *text = json_string_value (json_array_get (list, i));
    return text ? text : "";
}

/* All messages of a line; <base> says how many are taken over. Freed by the caller; NULL when what
 * it goes on from is not known. */
static struct sent_message *
all_messages (struct sent_lists *l, const json_t *line, struct sent_base *base, size_t *count)
{
    const json_t *ids = json_object_get (line, "message_ids"),
                 *shas = json_object_get (line, "message_shas");
    const char *after = json_get_string (line, "messages_after");
    base->kept = taken_over (line);
    struct sent_message *all =
        base->kept ? sent_lists_first (l, after, base->kept) : x_new_array (struct sent_message, 1);
    if (! all)
        return NULL;
    if (base->kept)
        snprintf (base->after, sizeof (base->after), "%s", after);
    *count = base->kept + json_array_size (ids);
    all = x_realloc (all, (*count + 1) * sizeof (*all));
    for (size_t i = base->kept; i < *count; i++)
        all[i] =
            (struct sent_message){ text_at (ids, i - base->kept), text_at (shas, i - base->kept) };
    return all;
}

json_t *
sent_shas (struct sent_lists *l, const json_t *line)
{
    json_t *listed = json_object_get (line, "message_shas");
    if (! json_is_array (listed))
        return NULL;
    struct sent_base base = { 0 };
    size_t count = 0;
    _cleanup_free_ struct sent_message *all = all_messages (l, line, &base, &count);
    json_t *shas = json_array ();
    for (size_t i = 0; i < taken_over (line); i++)
        json_array_append_new (shas, json_string (all ? all[i].sha : ""));
    json_array_extend (shas, listed);
    const char *id = json_get_string (line, "event_id");
    if (all && id)
        sent_lists_add (l, id, &base, all, count);
    return shas;
}

/* The line before <e> with this event id. */
static const struct trace_event *
line_before (const struct trace *t, const struct trace_event *e, const char *id)
{
    for (size_t i = e->index; i-- > 0;) {
        const struct trace_event *before =
            str_eq (trace_type (t, i), "inference") ? trace_at (t, i) : NULL;
        if (before && str_eq (before->id, id))
            return before;
    }
    return NULL;
}

const char *
sent_sha_at (const struct trace *t, const struct trace_event *e, size_t index)
{
    while (e && index < taken_over (e->object)) {
        _cleanup_free_ char *after = x_strdup (json_get_string (e->object, "messages_after"));
        e = line_before (t, e, after);
    }
    if (! e)
        return NULL;
    return json_string_value (json_array_get (json_object_get (e->object, "message_shas"),
                                              index - taken_over (e->object)));
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads traces back. What a line must hold comes from events.def, as what the writer puts there.
 */
#include "trace/read/reader.h"

#include "base/alloc.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "trace/lines/events.h"

#include <string.h>

#define LARGEST_TRACE ((size_t)4 << 30)

struct reading {
    struct trace *trace;
    size_t cap;
    enum trace_mode mode;
};

static bool
has_kind (const json_t *value, enum trace_kind kind)
{
    switch (kind) {
    case TRACE_KIND_STR:
    case TRACE_KIND_TEXT:
        return json_is_string (value);
    case TRACE_KIND_U64:
        return json_is_integer (value) && json_integer_value (value) >= 0;
    case TRACE_KIND_INT:
        return json_is_integer (value);
    case TRACE_KIND_BOOL:
    case TRACE_KIND_MBOOL:
        return json_is_boolean (value);
    case TRACE_KIND_STRS:
        break;
    case TRACE_KIND_JSON:
        return true;
    }
    size_t i;
    const json_t *item;
    json_array_foreach (value, i, item) if (! json_is_string (item)) return false;
    return json_is_array (value);
}

/* Checks one known event against its row. NULL when it is fine, else the key at fault. */
static const char *
faulty_key (const json_t *line, const struct trace_event_info *info)
{
    for (size_t i = 0; i < info->field_count; i++) {
        const struct trace_field *f = &info->fields[i];
        const json_t *value = json_object_get (line, f->key);
        if (! value || json_is_null (value)) {
            if (f->presence == TRACE_ALWAYS && (! value || f->kind != TRACE_KIND_JSON))
                return f->key;
            continue;
        }
        if (! has_kind (value, f->kind))
            return f->key;
    }
    return NULL;
}

static bool
refuse_line (const struct reading *r, size_t number, const char *what, const char *key,
             struct mur_error **err)
{
    return mur_fail (err, E_TRC_001, "%s:%zu: %s%s", r->trace->path, number, what, key);
}

/* Takes one parsed line over. */
static bool
take_line (struct reading *r, json_t *line, size_t number, struct mur_error **err)
{
    _cleanup_json_ json_t *owned = line;
    struct trace *t = r->trace;
    const char *type = json_get_string (line, "event_type");
    uint64_t time_ms;
    if (! json_is_object (line))
        return refuse_line (r, number, "not a JSON object", "", err);
    if (! type)
        return refuse_line (r, number, "no usable ", "event_type", err);
    const struct trace_event_info *info = trace_event_find (type);
    bool is_timed = json_get_u64 (line, "timestamp", &time_ms);
    if (! is_timed && info)
        return refuse_line (r, number, "no usable ", "timestamp", err);
    const char *key = info ? faulty_key (line, info) : NULL;
    if (! key && str_eq (type, "session_start") && ! json_get_string (line, "session_id"))
        key = "session_id";
    if (key) {
        _cleanup_free_ char *what = x_asprintf ("%s has no usable ", type);
        return refuse_line (r, number, what, key, err);
    }
    if (is_timed) {
        t->first_ms = t->first_ms ? t->first_ms : time_ms;
        t->last_ms = time_ms;
    }
    free (t->last_type_text);
    t->last_type = t->last_type_text = x_strdup (type);
    if (! info)
        return true;
    t->is_complete = t->is_complete || str_eq (type, "session_end");
    x_grow (t->events, t->count, r->cap);
    const char *id = json_get_string (line, "event_id");
    t->events[t->count++] = (struct trace_event){
        .type = type,
        .id = id ? id : "",
        .parent = json_get_string (line, "parent_id"),
        .time_ms = time_ms,
        .object = steal_ptr (&owned),
        .line = number,
    };
    return true;
}

static bool
is_blank (const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (! strchr (" \t\r\n", text[i]) || ! text[i])
            return false;
    return true;
}

static bool
refuse_json (const struct reading *r, size_t number, const char *why, struct mur_error **err)
{
    return mur_fail (err, E_TRC_001, "%s:%zu: not valid JSON: %s", r->trace->path, number, why);
}

/* After a torn line, the end of what the session itself wrote, only a later launch appends. */
static bool
may_follow_torn_line (const json_t *line)
{
    return str_eq (json_get_string (line, "event_type"), "shell_lost");
}

static bool
read_lines (struct reading *r, const char *text, size_t len, struct mur_error **err)
{
    size_t number = 0, line_len;
    json_error_t where, torn = { 0 };
    for (const char *at = text; at < text + len; at += line_len + 1) {
        const char *end = memchr (at, '\n', len - (size_t)(at - text));
        line_len = end ? (size_t)(end - at) : len - (size_t)(at - text);
        number++;
        if (is_blank (at, line_len))
            continue;
        json_t *line = json_loadb (at, line_len, JSON_DECODE_ANY, &where);
        if (r->trace->torn_line && ! may_follow_torn_line (line)) {
            json_decref (line);
            return refuse_json (r, r->trace->torn_line, torn.text, err);
        }
        if (line) {
            if (! take_line (r, line, number, err))
                return false;
            continue;
        }
        if (r->mode != TRACE_TOLERANT)
            return refuse_json (r, number, where.text, err);
        r->trace->torn_line = number;
        torn = where;
    }
    return true;
}

struct trace *
trace_parse (const char *path, const char *text, size_t len, enum trace_mode mode,
             struct mur_error **err)
{
    _cleanup_trace_ struct trace *t = x_new0 (struct trace);
    t->path = x_strdup (path);
    t->last_type = "";
    struct reading r = { .trace = t, .mode = mode };
    if (! read_lines (&r, text, len, err))
        return NULL;
    if (! *t->last_type)
        return mur_fail (err, E_TRC_001, "%s holds no event", path), NULL;
    if (mode == TRACE_STRICT && ! t->is_complete) {
        mur_fail (err, E_TRC_001, "%s has no session_end: the session is running or was killed",
                  path);
        return mur_hint (err, "`mur trace show` reads it all the same"), NULL;
    }
    return steal_ptr (&t);
}

struct trace *
trace_read (const char *path, enum trace_mode mode, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    if (! fs_read_path (path, LARGEST_TRACE, &text, err))
        return NULL;
    return trace_parse (path, text.data ? text.data : "", text.len, mode, err);
}

void
trace_free (struct trace *t)
{
    if (! t)
        return;
    for (size_t i = 0; i < t->count; i++)
        json_decref (t->events[i].object);
    free (t->events);
    free (t->last_type_text);
    free (t->path);
    free (t);
}

const struct trace_event *
trace_find (const struct trace *t, const char *type, size_t from)
{
    for (size_t i = from; i < t->count; i++)
        if (str_eq (t->events[i].type, type))
            return &t->events[i];
    return NULL;
}

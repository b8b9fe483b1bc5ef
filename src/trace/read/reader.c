/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads traces back. What a line must hold comes from events.def, as what the writer puts there.
 */
#include "trace/read/reader.h"

#include "base/alloc.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "trace/lines/events.h"
#include "trace/read/line_store.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST_PIPED ((size_t)1 << 30)

struct reading {
    struct trace *trace;
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

/* Takes in one parsed line. */
static bool
take_line (struct reading *r, const json_t *line, uint64_t offset, size_t number,
           struct mur_error **err)
{
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
    if (! str_eq (t->last_type, type)) {
        free (t->last_type_text);
        t->last_type = t->last_type_text = x_strdup (type);
    }
    if (! info)
        return true;
    t->is_complete = t->is_complete || str_eq (type, "session_end");
    trace_lines_add (t->lines, offset, (enum trace_event_type) (info - trace_event_info (0)));
    t->count++;
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

/* The number of a line that is not JSON is remembered: only the last may be so. */
static bool
note_torn (struct reading *r, size_t number, const json_error_t *where, json_error_t *torn,
           struct mur_error **err)
{
    if (r->mode != TRACE_TOLERANT)
        return refuse_json (r, number, where->text, err);
    r->trace->torn_line = number;
    *torn = *where;
    return true;
}

static bool
read_lines (struct reading *r, struct mur_error **err)
{
    size_t number = 0;
    json_error_t where, torn = { 0 };
    struct trace_text line = { 0 };
    for (uint64_t at = 0; trace_lines_read (r->trace->lines, at, &line); at += line.len + 1) {
        number++;
        if (is_blank (line.text, line.len))
            continue;
        _cleanup_json_ json_t *parsed = json_loadb (line.text, line.len, JSON_DECODE_ANY, &where);
        if (r->trace->torn_line && ! may_follow_torn_line (parsed))
            return refuse_json (r, r->trace->torn_line, torn.text, err);
        if (parsed ? ! take_line (r, parsed, at, number, err)
                   : ! note_torn (r, number, &where, &torn, err))
            return false;
    }
    if (! line.errno_value)
        return true;
    errno = line.errno_value;
    return mur_fail_errno (err, E_IO_003, "cannot read %s", r->trace->path);
}

/* Takes the lines over. */
static struct trace *
read_all (const char *path, struct trace_lines *lines, enum trace_mode mode, struct mur_error **err)
{
    _cleanup_trace_ struct trace *t = x_new0 (struct trace);
    t->path = x_strdup (path);
    t->last_type = "";
    t->lines = lines;
    struct reading r = { .trace = t, .mode = mode };
    if (! read_lines (&r, err))
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
trace_parse (const char *path, const char *text, size_t len, enum trace_mode mode,
             struct mur_error **err)
{
    return read_all (path, trace_lines_new_text (text, len), mode, err);
}

struct trace *
trace_read (const char *path, enum trace_mode mode, struct mur_error **err)
{
    struct stat st;
    int fd = fs_open_path (path, &st, err);
    if (fd < 0)
        return NULL;
    if (S_ISREG (st.st_mode))
        return read_all (path, trace_lines_new (fd), mode, err);
    close (fd);
    /* A pipe can be read but once. */
    _cleanup_buf_ struct buf text = { 0 };
    if (! fs_read_path (path, LARGEST_PIPED, &text, err))
        return NULL;
    return trace_parse (path, text.data ? text.data : "", text.len, mode, err);
}

void
trace_free (struct trace *t)
{
    if (! t)
        return;
    trace_lines_free (t->lines);
    free (t->last_type_text);
    free (t->path);
    free (t);
}

const char *
trace_type (const struct trace *t, size_t index)
{
    return trace_event_info (trace_lines_type (t->lines, index))->name;
}

const struct trace_event *
trace_at (const struct trace *t, size_t index)
{
    struct trace_event *e = trace_lines_next_place (t->lines);
    json_decref (e->object);
    struct trace_text line = { 0 };
    json_t *object = NULL;
    if (trace_lines_read (t->lines, trace_lines_offset (t->lines, index), &line))
        object = json_loadb (line.text, line.len, 0, NULL);
    if (! object)
        object = json_object ();
    const char *id = json_get_string (object, "event_id");
    *e = (struct trace_event){ .type = trace_type (t, index),
                               .id = id ? id : "",
                               .parent = json_get_string (object, "parent_id"),
                               .object = object,
                               .index = index };
    (void)json_get_u64 (object, "timestamp", &e->time_ms);
    return e;
}

const struct trace_event *
trace_find (const struct trace *t, const char *type, size_t from)
{
    const struct trace_event_info *info = trace_event_find (type);
    for (size_t i = from; info && i < t->count; i++)
        if (trace_event_info (trace_lines_type (t->lines, i)) == info)
            return trace_at (t, i);
    return NULL;
}

const struct trace_event *
trace_next (const struct trace *t, const char *type, const struct trace_event *after)
{
    return trace_find (t, type, after ? after->index + 1 : 0);
}

size_t
trace_count (const struct trace *t, const char *type)
{
    const struct trace_event_info *info = trace_event_find (type);
    size_t count = 0;
    for (size_t i = 0; info && i < t->count; i++)
        count += trace_event_info (trace_lines_type (t->lines, i)) == info;
    return count;
}

const char *
trace_session_id (const struct trace *t)
{
    const char *id = t->count ? json_get_string (trace_at (t, 0)->object, "session_id") : NULL;
    return id ? id : "—";
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/ship/bring_home.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/ids.h"
#include "base/json.h"
#include "trace/ship/shipper.h"

#include <string.h>

#define OBJECT_MAX ((size_t)128 << 20)
#define TRACE_MAX  ((size_t)1 << 30)

void
brought_clear (struct brought *b)
{
    free (b->status);
    strv_free (&b->children);
    *b = (struct brought){ 0 };
}

struct bringing {
    struct record_store *store;
    struct fs_root *records;
    const char *session_id;
    struct brought *out;
};

/* --- judging what a store says --- */

/* A relative path of plain parts. */
static bool
is_plain_path (const char *path)
{
    for (const char *at = path;; at++) {
        size_t len = strcspn (at, "/");
        if (! len || *at == '.')
            return false;
        at += len;
        if (! *at)
            return true;
    }
}

static bool
compare (const struct bringing *b, const char *key, const struct buf *data, const json_t *entry,
         struct mur_error **err)
{
    char hex[SHA256_HEX_LEN + 1];
    sha256_hex (data->data ? data->data : "", data->len, hex);
    b->out->bytes += data->len;
    return ! entry || str_eq (hex, json_get_string (entry, "sha256")) ||
           mur_fail (err, E_REG_002, "%s of the records store has other bytes than were shipped",
                     key);
}

/* One listed object. E-IO-003 when it is gone. */
static bool
get_listed (const struct bringing *b, const char *folder, const json_t *entry, struct buf *data,
            struct mur_error **err)
{
    struct mur_error *caught = NULL;
    const char *name = json_get_string (entry, "name");
    if (! name || ! is_plain_path (name))
        return mur_fail (err, E_IO_003,
                         "%s/" SHIP_COMPLETE " of the records store names \"%.100s\"",
                         b->session_id, name ? name : "");
    _cleanup_free_ char *key = x_asprintf ("%s/%s/%s", b->session_id, folder, name);
    if (! record_store_get (b->store, key, OBJECT_MAX, data, &caught))
        return caught ? mur_propagate (err, caught)
                      : mur_fail (err, E_IO_003, "%s is gone from the records store", key);
    return compare (b, key, data, entry, err);
}

/* --- the trace --- */

/* Parts as they follow one another; the list, where there is one, says how many. */
static bool
get_trace (const struct bringing *b, const json_t *list, struct buf *out, struct mur_error **err)
{
    struct mur_error *caught = NULL;
    for (size_t i = 0; ! list || i < json_array_size (list); i++) {
        _cleanup_buf_ struct buf part = { 0 };
        _cleanup_free_ char *key = x_asprintf ("%s/trace/%06zu.jsonl", b->session_id, i + 1);
        bool is_there = record_store_get (b->store, key, OBJECT_MAX, &part, &caught);
        if (caught)
            return mur_propagate (err, caught);
        if (! is_there && list)
            return mur_fail (err, E_IO_003, "%s is gone from the records store", key);
        if (! is_there)
            return true;
        if (out->len + part.len > TRACE_MAX)
            return mur_fail (err, E_IO_003, "%s: a trace of more than %zu bytes", b->session_id,
                             TRACE_MAX);
        if (! compare (b, key, &part, json_array_get (list, i), err))
            return false;
        buf_append (out, part.data ? part.data : "", part.len);
        b->out->parts++;
    }
    return true;
}

/* --- files --- */

static bool
keep (const struct bringing *b, const char *path, const struct buf *data, struct mur_error **err)
{
    const char *slash = strrchr (path, '/');
    _cleanup_free_ char *folder = x_strndup (path, slash ? (size_t)(slash - path) : 0);
    if (*folder && ! fs_make_dirs (b->records, folder, 0700, false, err))
        return false;
    return fs_write (b->records, path, data->data ? data->data : "", data->len, 0666, false, err);
}

static bool
get_files (const struct bringing *b, const json_t *complete, const char *folder, const char *below,
           struct mur_error **err)
{
    size_t i;
    json_t *entry;
    json_array_foreach (json_object_get (complete, folder), i, entry)
    {
        _cleanup_buf_ struct buf data = { 0 };
        if (! get_listed (b, folder, entry, &data, err))
            return false;
        _cleanup_free_ char *path = x_asprintf ("%s%s", below, json_get_string (entry, "name"));
        if (! keep (b, path, &data, err))
            return false;
        b->out->files++;
    }
    return true;
}

/* Each once, in the order it started them. */
static void
note_children (const struct bringing *b, const struct buf *trace)
{
    static const char mark[] = "\"delegation_start\"";
    const char *at = trace->data, *end = at + trace->len;
    while (at < end) {
        const char *line_end = memchr (at, '\n', (size_t)(end - at));
        size_t len = (size_t)((line_end ? line_end : end) - at);
        _cleanup_json_ json_t *line =
            memmem (at, len, mark, sizeof mark - 1) ? json_loadb (at, len, 0, NULL) : NULL;
        const char *child = json_get_string (line, "child_session_id");
        if (str_eq (json_get_string (line, "event_type"), "delegation_start") && child &&
            id_is_valid (child, "ses_") && ! strv_contains (&b->out->children, child))
            strv_push (&b->out->children, child);
        at += len + 1;
    }
}

/* NULL without *err: it is not there. */
static json_t *
get_complete (const struct bringing *b, struct mur_error **err)
{
    struct mur_error *caught = NULL;
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_free_ char *key = x_asprintf ("%s/" SHIP_COMPLETE, b->session_id);
    if (! record_store_get (b->store, key, OBJECT_MAX, &text, &caught)) {
        if (caught)
            mur_propagate (err, caught);
        return NULL;
    }
    _cleanup_json_ json_t *json = json_parse (text.data, text.len, key, E_IO_003, err);
    if (json && ! str_eq (json_get_string (json, "session_id"), b->session_id))
        return mur_fail (err, E_IO_003, "%s of the records store is of another session", key), NULL;
    if (json && ! json_is_array (json_object_get (json, "trace")))
        return mur_fail (err, E_IO_003, "%s of the records store lists no trace", key), NULL;
    return steal_ptr (&json);
}

bool
bring_home (struct record_store *store, const char *session_id, struct fs_root *records,
            struct brought *out, struct mur_error **err)
{
    const struct bringing b = {
        .store = store, .records = records, .session_id = session_id, .out = out
    };
    struct mur_error *caught = NULL;
    _cleanup_buf_ struct buf trace = { 0 };
    *out = (struct brought){ 0 };
    _cleanup_json_ json_t *complete = get_complete (&b, &caught);
    if (caught)
        return mur_propagate (err, caught);
    if (! get_trace (&b, json_object_get (complete, "trace"), &trace, err))
        return false;
    if (! complete && ! out->parts)
        return false;
    if (trace.len)
        note_children (&b, &trace);
    const char *status = json_get_string (complete, "status");
    out->status = status ? x_strdup (status) : NULL;
    out->is_complete = complete;
    return (! trace.len || keep (&b, "trace.jsonl", &trace, err)) &&
           get_files (&b, complete, "blobs", "blobs/", err) &&
           get_files (&b, complete, "files", "", err);
}

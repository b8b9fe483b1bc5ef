/* SPDX-License-Identifier: Apache-2.0 */
#include "door/planes/resources.h"
#include "base/json_write.h"

#include "base/alloc.h"
#include "door/planes/export_folder.h"
#include "door/planes/plane_answer.h"
#include "door/tasks/intake.h"
#include "net/server/http_exchange.h"

#include <string.h>

struct resources {
    struct plane_facts facts;
    const struct exported_files *declared; /* NULL: no resource plane */
    struct export_folder folder;
    struct plane_worker *worker;
};

struct resources *
resources_new (const struct plane_facts *facts, struct plane_worker *worker)
{
    struct resources *r = x_new0 (struct resources);
    r->facts = *facts;
    r->worker = worker;
    r->declared = facts->exports ? facts->exports->files : NULL;
    if (r->declared)
        r->folder = (struct export_folder){ facts->work, r->declared->root, r->declared->max_bytes,
                                            facts->follows_links };
    return r;
}

void
resources_free (struct resources *r)
{
    free (r);
}

/* --- what is asked for --- */

/* What follows "/resources/files", decoded; a listing has nothing there. */
struct asked {
    uint64_t generation;
    bool is_listing;
    struct buf path;
};

static void
asked_clear (struct asked *a)
{
    buf_free (&a->path);
}

static void
read_asked (struct resources *r, const struct http_exchange *x, struct asked *out)
{
    const char *rest = http_exchange_target (x) + strlen (PLANE_FILES);
    size_t len = plane_path_len (x) - strlen (PLANE_FILES);
    *out = (struct asked){ .generation = registry_generation (r->facts.registry),
                           .is_listing = len <= 1 };
    if (! out->is_listing)
        export_decode_path (rest + 1, len - 1, &out->path);
    buf_append (&out->path, "", 0);
}

/* --- the trace --- */

static void
trace_list (struct resources *r, const struct asked *a, const struct export_listing *listing,
            const char *outcome, const char *reason)
{
    TRACE (r->facts.trace, NULL, resource_list, .root = listing ? r->declared->root : "",
           .entry_count = listing ? listing->count : 0,
           .total_bytes = listing ? listing->total_bytes : 0, .generation = a->generation,
           .containment_achieved = r->facts.containment, .outcome = outcome, .reason = reason);
}

/* A refused path is recorded as it was decoded, whatever bytes it has. */
static void
trace_read (struct resources *r, const struct asked *a, const struct export_file *file,
            const char *outcome, const char *reason)
{
    _cleanup_buf_ struct buf path = { 0 };
    if (file)
        json_append_string (&path, file->path, strlen (file->path));
    else
        json_append_string (&path, a->path.data, a->path.len);
    TRACE (r->facts.trace, NULL, resource_read, .path = path.data, .outcome = outcome,
           .bytes = file ? TRACE_NUM (file->bytes.len) : TRACE_NO_NUM,
           .sha256 = file ? file->sha256 : NULL, .generation = a->generation,
           .containment_achieved = r->facts.containment, .reason = reason);
}

/* --- answers --- */

#define BUSY_TEXT "Too many large answers wait to be read by others: ask again."

static void
refuse (struct resources *r, struct http_exchange *x, const struct asked *a, int status,
        const char *code, const char *message)
{
    _cleanup_plane_headers_ struct plane_headers h = { 0 };
    if (a->is_listing)
        trace_list (r, a, NULL, code, message);
    else
        trace_read (r, a, NULL, code, message);
    if (status == 405)
        plane_header (&h, "Allow", "GET");
    plane_header_number (&h, "x-murmur-generation", (int64_t)a->generation);
    plane_refuse (x, &h, status, code, message);
}

static void
refuse_outcome (struct resources *r, struct http_exchange *x, const struct asked *a,
                enum export_outcome outcome)
{
    refuse (r, x, a, export_outcome_status (outcome), export_outcome_name (outcome),
            export_outcome_message (outcome));
}

static void
add_provenance (struct resources *r, const struct asked *a, struct plane_headers *h)
{
    plane_header_number (h, "x-murmur-generation", (int64_t)a->generation);
    plane_header (h, "x-murmur-containment", r->facts.containment);
    plane_header (h, "x-murmur-export-root", r->declared->root);
}

static void
answer_listing (struct resources *r, struct http_exchange *x, const struct asked *a,
                const struct export_listing *listing)
{
    _cleanup_plane_headers_ struct plane_headers h = { 0 };
    _cleanup_json_ json_t *o = json_object ();
    json_set_string (o, "root", r->declared->root);
    json_set_string (o, "mode", r->declared->mode);
    json_set_u64 (o, "max_bytes", r->declared->max_bytes);
    json_set_u64 (o, "generation", a->generation);
    json_set_string (o, "containment_achieved", r->facts.containment);
    json_object_set (o, "entries", listing->entries);
    struct buf body = { 0 };
    json_append (&body, o, JSON_TEXT_ORDERED);
    plane_header (&h, "content-type", "application/json");
    add_provenance (r, a, &h);
    size_t len = body.len;
    if (! http_reserve_answer (x, len)) {
        buf_free (&body);
        refuse (r, x, a, 503, "busy", BUSY_TEXT);
        return;
    }
    trace_list (r, a, listing, "ok", NULL);
    http_reply_take (x, 200, h.items, h.len, buf_steal (&body), len);
}

static void
answer_file (struct resources *r, struct http_exchange *x, const struct asked *a,
             struct export_file *file)
{
    _cleanup_plane_headers_ struct plane_headers h = { 0 };
    _cleanup_free_ char *etag = x_asprintf ("\"sha256:%s\"", file->sha256);
    plane_header (&h, "content-type", "application/octet-stream");
    plane_header (&h, "etag", etag);
    plane_header_number (&h, "x-murmur-mtime-ms", file->mtime_ms);
    add_provenance (r, a, &h);
    size_t len = file->bytes.len;
    http_reply_take (x, 200, h.items, h.len, buf_steal (&file->bytes), len);
}

/* --- on a worker --- */

static void
serve_listing (struct resources *r, struct http_exchange *x, const struct asked *a,
               struct cancel *cancel)
{
    struct export_listing listing;
    enum export_outcome outcome = export_list (&r->folder, cancel, &listing);
    if (outcome == EXPORT_OK)
        answer_listing (r, x, a, &listing);
    else
        refuse_outcome (r, x, a, outcome);
    json_decref (listing.entries);
}

static void
serve_file (struct resources *r, struct http_exchange *x, const struct asked *a)
{
    struct export_file file = { 0 };
    _cleanup_free_ char *path = export_plain_path (a->path.data, a->path.len);
    enum export_outcome outcome =
        path ? export_read (&r->folder, path, &file) : EXPORT_OUTSIDE_ROOT;
    if (outcome == EXPORT_OK && ! http_reserve_answer (x, file.bytes.len))
        refuse (r, x, a, 503, "busy", BUSY_TEXT);
    else if (outcome == EXPORT_OK) {
        trace_read (r, a, &file, "ok", NULL);
        answer_file (r, x, a, &file);
    } else
        refuse_outcome (r, x, a, outcome);
    export_file_clear (&file);
}

static void
serve (void *ctx, struct http_exchange *x, struct cancel *cancel)
{
    struct resources *r = ctx;
    _cleanup_ (asked_clear) struct asked a;
    read_asked (r, x, &a);
    if (a.is_listing)
        serve_listing (r, x, &a, cancel);
    else
        serve_file (r, x, &a);
}

/* --- on the server's thread --- */

/* The order: method, then whether the path is one of this plane, then whether there is a plane. */
bool
resources_refuse (struct resources *r, struct http_exchange *x)
{
    bool is_files = plane_is_under (x, PLANE_FILES), is_get = plane_is_get (x);
    if (is_files && is_get && r->declared)
        return false;
    if (is_files) {
        _cleanup_ (asked_clear) struct asked a;
        read_asked (r, x, &a);
        if (is_get)
            refuse (r, x, &a, 404, "no_resource_plane", "This capsule exports no files.");
        else
            refuse (r, x, &a, 405, "method_not_allowed", "Files are read with GET.");
        return true;
    }
    _cleanup_plane_headers_ struct plane_headers h = { 0 };
    if (! is_get)
        plane_header (&h, "Allow", "GET");
    plane_refuse (x, &h, is_get ? 404 : 405, is_get ? "not_found" : "method_not_allowed",
                  is_get ? "There is no such resource." : "Resources are read with GET.");
    return true;
}

void
resources_serve (struct resources *r, struct http_exchange *x)
{
    size_t rest = plane_path_len (x) - strlen (PLANE_FILES);
    bool is_listing = rest <= 1; /* it hashes every file, of any size */
    plane_worker_hand (r->worker, x, serve, r, is_listing);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "door/planes/peer_files.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/keys/token.h"
#include "base/secret.h"
#include "door/planes/plane_answer.h"
#include "door/planes/plane_worker.h"
#include "door/tasks/intake.h"
#include "net/server/http_exchange.h"

#include <string.h>

#define HANDLE_VERSION 1

struct peer_files {
    struct plane_facts facts;
    const struct exported_peer_files *declared; /* NULL: no peer plane */
    struct export_folder folder;
    struct plane_worker *worker;
    char *session_id;
    unsigned char key[TOKEN_KEY_LEN];
};

struct peer_files *
peer_files_new (const struct plane_facts *facts, const char *session_id,
                struct plane_worker *worker)
{
    struct peer_files *p = x_new0 (struct peer_files);
    p->facts = *facts;
    p->worker = worker;
    p->session_id = x_strdup (session_id);
    p->declared = facts->exports ? facts->exports->peer_files : NULL;
    random_bytes (p->key, sizeof p->key);
    if (p->declared)
        p->folder = (struct export_folder){ facts->work, p->declared->root, p->declared->max_bytes,
                                            facts->follows_links };
    return p;
}

void
peer_files_free (struct peer_files *p)
{
    if (! p)
        return;
    secret_wipe (p->key, sizeof p->key);
    free (p->session_id);
    free (p);
}

/* --- minting --- */

void
peer_handle_clear (struct peer_handle *h)
{
    if (h->token)
        secret_wipe (h->token, strlen (h->token));
    free (h->token);
    free (h->path);
    *h = (struct peer_handle){ 0 };
}

enum export_outcome
peer_files_mint (struct peer_files *p, const char *path, const char *audience, uint64_t ttl_secs,
                 struct peer_handle *out)
{
    *out = (struct peer_handle){ 0 };
    _cleanup_free_ char *plain = export_plain_path (path, strlen (path));
    enum export_outcome outcome =
        plain ? export_probe (&p->folder, plain, &out->path) : EXPORT_OUTSIDE_ROOT;
    if (outcome != EXPORT_OK)
        return outcome;
    if (! ttl_secs || ttl_secs > p->declared->max_ttl_secs)
        ttl_secs = p->declared->max_ttl_secs;
    unsigned char nonce[16];
    char nonce_text[33];
    random_bytes (nonce, sizeof nonce);
    hex_encode (nonce, sizeof nonce, nonce_text);
    out->expires_ms = clock_unix_ms () + ttl_secs * 1000;
    _cleanup_json_ json_t *payload = json_object ();
    json_set_u64 (payload, "v", HANDLE_VERSION);
    json_set_string (payload, "iss", p->session_id);
    json_set_string (payload, "p", out->path);
    json_set_u64 (payload, "exp", out->expires_ms);
    json_set_string (payload, "n", nonce_text);
    out->token = token_mint (&token_peer_handle, p->key, payload, audience);
    token_loggable_id (out->token, out->id);
    return EXPORT_OK;
}

/* --- one request --- */

struct redeem {
    struct peer_files *plane;
    struct http_exchange *x;
    char *handle;         /* as sent */
    char id[17];          /* "" when no handle is named */
    const char *audience; /* as sent; NULL: no such header */
    uint64_t generation;
    char *path; /* what the handle is for */
};

static void
redeem_clear (struct redeem *r)
{
    free (r->handle);
    free (r->path);
}

static void
trace (const struct redeem *r, const struct export_file *file, const char *outcome,
       const char *reason)
{
    if (! r->id[0])
        return;
    TRACE (r->plane->facts.trace, NULL, peer_handle_redeem, .handle_id = r->id,
           .path = file ? file->path : NULL, .generation = r->generation,
           .audience_asserted = r->audience,
           .bytes = file ? TRACE_NUM (file->bytes.len) : TRACE_NO_NUM,
           .sha256 = file ? file->sha256 : NULL, .outcome = outcome, .reason = reason);
}

static void
add_provenance (const struct redeem *r, struct plane_headers *h)
{
    plane_header_number (h, "x-murmur-generation", (int64_t)r->generation);
    if (r->id[0])
        plane_header (h, "x-murmur-handle-id", r->id);
}

static void
refuse (const struct redeem *r, int status, const char *code, const char *message)
{
    _cleanup_plane_headers_ struct plane_headers h = { 0 };
    trace (r, NULL, code, message);
    if (status == 405)
        plane_header (&h, "Allow", "GET");
    add_provenance (r, &h);
    plane_refuse (r->x, &h, status, code, message);
}

static void
serve_file (const struct redeem *r)
{
    struct export_file file = { 0 };
    enum export_outcome outcome = export_read (&r->plane->folder, r->path, &file);
    if (outcome != EXPORT_OK) {
        refuse (r, export_outcome_status (outcome), export_outcome_name (outcome),
                export_outcome_message (outcome));
        export_file_clear (&file);
        return;
    }
    if (! http_reserve_answer (r->x, file.bytes.len)) {
        refuse (r, 503, "busy", "Too many large answers wait to be read by others: ask again.");
        export_file_clear (&file);
        return;
    }
    _cleanup_plane_headers_ struct plane_headers h = { 0 };
    _cleanup_free_ char *etag = x_asprintf ("\"sha256:%s\"", file.sha256);
    trace (r, &file, "ok", NULL);
    plane_header (&h, "content-type", "application/octet-stream");
    plane_header (&h, "etag", etag);
    plane_header_number (&h, "x-murmur-mtime-ms", file.mtime_ms);
    plane_header (&h, "x-murmur-containment", r->plane->facts.containment);
    add_provenance (r, &h);
    size_t len = file.bytes.len;
    http_reply_take (r->x, 200, h.items, h.len, buf_steal (&file.bytes), len);
    export_file_clear (&file);
}

/* True when the handle is good now; *path is what it names. One answer for every handle that is not
 * genuine. */
static bool
is_good (struct redeem *r)
{
    static const char not_valid[] = "This handle is not valid here.";
    struct peer_files *p = r->plane;
    _cleanup_free_ char *audience = x_strdup (r->audience);
    str_lower (audience);
    _cleanup_json_ json_t *payload = token_verify (&token_peer_handle, p->key, r->handle, audience);
    uint64_t version, expires_ms;
    if (! payload) {
        refuse (r, 403, "handle_not_valid", not_valid);
        return false;
    }
    const char *path = json_get_string (payload, "p");
    if (! json_get_u64 (payload, "v", &version) || version != HANDLE_VERSION || ! path ||
        ! json_get_u64 (payload, "exp", &expires_ms)) {
        refuse (r, 400, "malformed_handle", "The handle cannot be read.");
        return false;
    }
    if (! str_eq (json_get_string (payload, "iss"), p->session_id)) {
        refuse (r, 403, "handle_not_valid", not_valid);
        return false;
    }
    if (expires_ms <= clock_unix_ms ()) {
        refuse (r, 410, "handle_expired", "The handle has expired.");
        return false;
    }
    r->path = x_strdup (path);
    return true;
}

static bool
read_request (struct redeem *r, struct peer_files *p, struct http_exchange *x)
{
    *r = (struct redeem){ .plane = p, .x = x };
    r->generation = registry_generation (p->facts.registry);
    r->audience = http_exchange_header (x, "x-murmur-audience", NULL);
    size_t skip = strlen (PLANE_PEER "/"), len = plane_path_len (x);
    r->handle = len > skip ? x_strndup (http_exchange_target (x) + skip, len - skip) : NULL;
    if (r->handle)
        token_loggable_id (r->handle, r->id);
    return r->handle != NULL;
}

/* On a worker. */
static void
serve (void *ctx, struct http_exchange *x, struct cancel *cancel)
{
    (void)cancel;
    _cleanup_ (redeem_clear) struct redeem r;
    if (read_request (&r, ctx, x) && is_good (&r))
        serve_file (&r);
}

bool
peer_files_refuse (struct peer_files *p, struct http_exchange *x)
{
    _cleanup_ (redeem_clear) struct redeem r;
    bool has_handle = read_request (&r, p, x);
    if (! plane_is_get (x))
        refuse (&r, 405, "method_not_allowed", "A handle is redeemed with GET.");
    else if (! has_handle)
        refuse (&r, 404, "not_found", "Name a handle: there is no listing.");
    else if (! p->declared)
        refuse (&r, 404, "no_peer_plane", "This capsule hands out no files.");
    else if (! token_has_shape (&token_peer_handle, r.handle))
        refuse (&r, 400, "malformed_handle", "The handle cannot be read.");
    else if (! r.audience || ! *r.audience)
        refuse (&r, 400, "missing_audience", "x-murmur-audience must name who asks.");
    else
        return false;
    return true;
}

void
peer_files_serve (struct peer_files *p, struct http_exchange *x)
{
    plane_worker_hand (p->worker, x, serve, p, false);
}

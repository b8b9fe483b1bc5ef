/* SPDX-License-Identifier: Apache-2.0
 *
 * share-file and fetch-peer-file: handing one file to one capsule (docs/spec/door.md 13).
 *
 * Always true: share-file reads the peer's card within capabilities.network.allow only,
 * fetch-peer-file goes nowhere capabilities.peer_fetch.allow does not name; what was fetched is
 * stored whole or not at all; neither result holds a path of the host or the file's bytes.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/keys/token.h"
#include "door/door.h"
#include "door/planes/peer_files.h"
#include "net/http_client.h"
#include "net/http_fetch.h"
#include "net/url.h"
#include "session/state/held_hosts.h"
#include "session/state/outcome.h"
#include "session/state/provided.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>

#define CARD_PATH        "/.well-known/agent-card.json"
#define CARD_BYTES_MAX   ((size_t)1 << 20)
#define FILE_BYTES_MAX   ((size_t)256 << 20)
#define CONNECT_MS       5000
#define CARD_MS          10000
#define BETWEEN_BYTES_MS 30000
#define FILE_MS          600000 /* a peer that sends a little now and then, too */
#define STORED_NAME_MAX  120
#define PEER_CODE_MAX    64
#define STORED_DIRECTORY "peer-in"

static const char share_file_parameters[] =
    "{\"properties\":{\"path\":{\"description\":\"The file, relative to the folder this capsule "
    "shares.\",\"type\":\"string\"},\"peer\":{\"description\":\"The address of the capsule that "
    "may "
    "fetch it: host:port or "
    "http://host:port.\",\"type\":\"string\"},\"ttl\":{\"description\":\"How "
    "long it may: seconds, or a number with s, m, h or d. Only shortens what is "
    "allowed.\",\"type\":\"string\"}},\"required\":[\"path\",\"peer\"],\"type\":\"object\"}";
static const char fetch_peer_file_parameters[] =
    "{\"properties\":{\"handle\":{\"description\":\"The handle the peer gave "
    "out.\",\"type\":\"string\"},\"peer\":{\"description\":\"The address of the capsule that gave "
    "it "
    "out: host:port or "
    "http://host:port.\",\"type\":\"string\"}},\"required\":[\"peer\",\"handle\"],"
    "\"type\":\"object\"}";

static bool
share_file_is_offered (const struct session *s)
{
    const struct exports *e = s->manifest->exports;
    return s->manifest->inference && e && e->peer_files;
}

static bool
fetch_peer_file_is_offered (const struct session *s)
{
    return s->manifest->inference && s->policy->network.peer_fetch_allow.len > 0;
}

/* --- the peer's address --- */

struct peer {
    const char *written;
    char *base; /* "http://host:port"; NULL: it is no address */
    struct url url;
};

static void
peer_clear (struct peer *p)
{
    free (p->base);
    url_free (&p->url);
}

static void
peer_read (struct peer *p, const char *text)
{
    *p = (struct peer){ .written = text };
    _cleanup_free_ char *whole =
        strstr (text, "://") ? x_strdup (text) : x_asprintf ("http://%s", text);
    if (url_parse (whole, &p->url) || p->url.has_query || p->url.has_fragment ||
        p->url.authority.has_userinfo || (*p->url.path && ! str_eq (p->url.path, "/")))
        return;
    const struct authority *a = &p->url.authority;
    p->base = a->port == URL_NO_PORT ? x_asprintf ("%s://%s", p->url.scheme, a->host)
                                     : x_asprintf ("%s://%s:%d", p->url.scheme, a->host, a->port);
}

static bool
peer_is_allowed (const struct session *s, const struct peer *p, const struct str_list *entries)
{
    _cleanup_allow_list_ struct allow_list list = { .hold = held_hosts_of (s) };
    for (size_t i = 0; i < entries->len; i++) {
        _cleanup_error_ struct mur_error *ignored = NULL;
        (void)allow_list_add (&list, entries->items[i], &ignored);
    }
    int port = p->base && p->url.authority.port != URL_NO_PORT ? p->url.authority.port
               : p->base                                       ? url_default_port (p->url.scheme)
                                                               : 0;
    return p->base && allow_list_matches (&list, p->url.scheme, p->url.authority.host, port);
}

/* "<card name>@<host:port>", lower case. */
static char *
audience_of (const char *name, const char *address)
{
    char *audience = x_asprintf ("%s@%s", name, address);
    str_lower (audience);
    return audience;
}

static void
set_result (const char *tool, const json_t *result, struct call_outcome *out)
{
    _cleanup_free_ char *text = json_text (result, JSON_TEXT_SORTED);
    outcome_set_result (out, tool, TOOL_PASSED, text, strlen (text));
}

/* --- share-file --- */

/* The address its card gives: host:port of the first JSON-RPC interface. Owned, or NULL. */
static char *
card_address (const json_t *card)
{
    size_t i;
    const json_t *one;
    json_array_foreach (json_object_get (card, "supportedInterfaces"), i, one)
    {
        const char *text = json_get_string (one, "url");
        if (! text || ! str_eq (json_get_string (one, "protocolBinding"), "JSONRPC"))
            continue;
        _cleanup_url_ struct url url = { 0 };
        if (url_parse (text, &url))
            return NULL;
        int port =
            url.authority.port == URL_NO_PORT ? url_default_port (url.scheme) : url.authority.port;
        return x_asprintf ("%s:%d", url.authority.host, port);
    }
    return NULL;
}

/* Who the peer is, from its public card. Owned; NULL with *why set. */
static char *
ask_audience (struct session *s, struct running_task *task, const struct peer *peer, char **why)
{
    if (! peer_is_allowed (s, peer, &s->policy->network.allow)) {
        *why = x_strdup ("capabilities.network.allow does not name this address");
        return NULL;
    }
    _cleanup_free_ char *url = x_asprintf ("%s" CARD_PATH, peer->base);
    struct http_fetch fetch = {
        .request = { .method = "GET", .url = url, .connect_timeout_ms = CONNECT_MS },
        .limit_bytes = CARD_BYTES_MAX,
        .total_timeout_ms = CARD_MS,
        .cancel = task->cancel
    };
    _cleanup_http_response_ struct http_response response = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    if (! http_fetch (s->http, &fetch, &response, NULL, &err)) {
        *why = x_strdup (err->message);
        return NULL;
    }
    _cleanup_json_ json_t *card = response.status == 200 && response.body.data
                                      ? json_loadb (response.body.data, response.body.len, 0, NULL)
                                      : NULL;
    const char *name = json_get_string (card, "name");
    _cleanup_free_ char *address = name ? card_address (card) : NULL;
    if (address)
        return audience_of (name, address);
    *why = x_strdup ("it serves no agent card");
    return NULL;
}

/* A path a capsule writes as it sees it, below its work folder, means the file below the root. */
static enum export_outcome
mint (struct session *s, const char *path, const char *audience, uint64_t ttl_secs,
      struct peer_handle *handle)
{
    struct peer_files *plane = door_peer_files (s->door);
    enum export_outcome outcome = peer_files_mint (plane, path, audience, ttl_secs, handle);
    const char *root = s->manifest->exports->peer_files->root;
    size_t len = strlen (root);
    if (outcome == EXPORT_NOT_FOUND && strncmp (path, root, len) == 0 && path[len] == '/')
        outcome = peer_files_mint (plane, path + len + 1, audience, ttl_secs, handle);
    return outcome;
}

static bool
read_ttl (const json_t *input, uint64_t *secs)
{
    const json_t *value = json_object_get (input, "ttl");
    *secs = 0;
    if (! value || json_is_null (value))
        return true;
    if (json_is_integer (value) && json_integer_value (value) > 0) {
        *secs = (uint64_t)json_integer_value (value);
        return true;
    }
    return json_is_string (value) && duration_parse (json_string_value (value), secs) && *secs;
}

static void
refuse_share (struct session *s, const char *path, const char *audience, const char *code,
              const char *reason, struct call_outcome *out)
{
    TRACE (s->trace, NULL, peer_handle_mint, .path = path, .audience = audience, .outcome = code,
           .reason = reason);
    outcome_set_error (out, "share-file: %s: %s", code, reason);
}

static void
give_handle (struct session *s, const struct peer_handle *handle, const char *audience,
             struct call_outcome *out)
{
    TRACE (s->trace, NULL, peer_handle_mint, .handle_id = handle->id, .path = handle->path,
           .audience = audience, .expires_at_ms = TRACE_NUM (handle->expires_ms), .outcome = "ok");
    _cleanup_json_ json_t *result = json_object ();
    json_set_string (result, "handle", handle->token);
    json_set_string (result, "handle_id", handle->id);
    json_set_u64 (result, "expires_at_ms", handle->expires_ms);
    json_set_string (result, "audience", audience);
    set_result ("share-file", result, out);
}

static void
share_file_call (struct session *s, struct running_task *task, const json_t *input,
                 struct call_outcome *out)
{
    const char *path = outcome_need_text ("share-file", input, "path", out);
    const char *written = path ? outcome_need_text ("share-file", input, "peer", out) : NULL;
    uint64_t ttl_secs;
    if (! written)
        return;
    if (! read_ttl (input, &ttl_secs)) {
        outcome_set_error (out, "share-file: \"ttl\" is no duration: seconds, or a whole number "
                                "with s, m, h or d");
        return;
    }
    _cleanup_ (peer_clear) struct peer peer;
    peer_read (&peer, written);
    _cleanup_free_ char *why = NULL;
    _cleanup_free_ char *audience = ask_audience (s, task, &peer, &why);
    if (! audience) {
        refuse_share (s, path, written, "peer_unreachable", why, out);
        out->is_canceled = cancel_is_raised (task->cancel);
        return;
    }
    _cleanup_ (peer_handle_clear) struct peer_handle handle = { 0 };
    enum export_outcome outcome = mint (s, path, audience, ttl_secs, &handle);
    if (outcome == EXPORT_OK)
        give_handle (s, &handle, audience, out);
    else
        refuse_share (s, path, audience, export_outcome_name (outcome),
                      export_outcome_message (outcome), out);
}

/* --- fetch-peer-file --- */

struct fetched {
    struct session *session;
    struct running_task *task;
    const struct peer *peer;
    const char *handle;
    char id[17];
    struct http_response response;
    char sha256[SHA256_HEX_LEN + 1];
    char *stored; /* below the work folder */
};

static void
refuse_fetch (const struct fetched *f, const char *code, const char *reason,
              struct call_outcome *out)
{
    TRACE (f->session->trace, NULL, peer_file_fetch, .peer = f->peer->written, .handle_id = f->id,
           .outcome = code, .reason = reason);
    outcome_set_error (out, "fetch-peer-file: %s: %s", code, reason);
}

/* The name the giver's handle holds, made harmless. Nothing vouches for it. Owned. */
static char *
stored_name (const char *handle)
{
    const char *payload = strchr (handle, '.') + 1;
    size_t len;
    _cleanup_free_ unsigned char *text = base64url_decode (payload, strcspn (payload, "."), &len);
    _cleanup_json_ json_t *object = text ? json_loadb ((const char *)text, len, 0, NULL) : NULL;
    const char *path = json_get_string (object, "p");
    const char *slash = path ? strrchr (path, '/') : NULL;
    char *name = x_strdup (slash ? slash + 1 : path ? path : "");
    for (char *c = name; *c; c++)
        if (! strchr ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", *c))
            *c = '_';
    if (strlen (name) > STORED_NAME_MAX)
        name[STORED_NAME_MAX] = '\0';
    if (! *name || str_eq (name, ".") || str_eq (name, "..")) {
        free (name);
        name = x_strdup ("file");
    }
    return name;
}

/* The code a peer's refusal names, when it is one; else "http_<status>". Owned. */
static char *
peer_code (const struct http_response *r)
{
    _cleanup_json_ json_t *body =
        r->body.data ? json_loadb (r->body.data, r->body.len, 0, NULL) : NULL;
    const char *code = json_get_string (body, "error");
    size_t len = code ? strlen (code) : 0;
    /* A refusal that calls itself a success would stand in the records as one. */
    if (len && len <= PEER_CODE_MAX && ! str_eq (code, export_outcome_name (EXPORT_OK)) &&
        strspn (code, "abcdefghijklmnopqrstuvwxyz0123456789_") == len)
        return x_strdup (code);
    return x_asprintf ("http_%d", r->status);
}

static bool
fetch (struct fetched *f, struct call_outcome *out)
{
    struct session *s = f->session;
    _cleanup_free_ char *url = x_asprintf ("%s/resources/peer/%s", f->peer->base, f->handle);
    _cleanup_free_ char *audience = audience_of (s->manifest->name, door_url (s->door));
    struct http_header header = { "x-murmur-audience", audience, strlen (audience) };
    struct http_fetch request = { .request = { .method = "GET",
                                               .url = url,
                                               .headers = &header,
                                               .header_count = 1,
                                               .connect_timeout_ms = CONNECT_MS,
                                               .first_byte_timeout_ms = BETWEEN_BYTES_MS,
                                               .between_bytes_timeout_ms = BETWEEN_BYTES_MS },
                                  .limit_bytes = FILE_BYTES_MAX,
                                  .total_timeout_ms = FILE_MS,
                                  .cancel = f->task->cancel };
    _cleanup_error_ struct mur_error *err = NULL;
    if (! http_fetch (s->http, &request, &f->response, NULL, &err)) {
        refuse_fetch (f, "peer_unreachable", err->message, out);
        out->is_canceled = cancel_is_raised (f->task->cancel);
        return false;
    }
    if (f->response.status == 200)
        return true;
    _cleanup_free_ char *code = peer_code (&f->response);
    _cleanup_free_ char *reason = x_asprintf ("the peer answered %d", f->response.status);
    refuse_fetch (f, code, reason, out);
    return false;
}

/* Bytes that are not what their giver says they are never reach the work folder. */
static bool
check_etag (struct fetched *f, struct call_outcome *out)
{
    const struct buf *body = &f->response.body;
    sha256_hex (body->data ? body->data : "", body->len, f->sha256);
    const char *etag = http_response_header (&f->response, "etag");
    _cleanup_free_ char *expected = x_asprintf ("\"sha256:%s\"", f->sha256);
    if (! etag || str_eq (etag, expected))
        return true;
    refuse_fetch (f, "etag_mismatch", "the bytes are not those the peer's etag names", out);
    return false;
}

static bool
store (struct fetched *f, struct call_outcome *out)
{
    struct session *s = f->session;
    const struct buf *body = &f->response.body;
    _cleanup_free_ char *name = stored_name (f->handle);
    _cleanup_error_ struct mur_error *err = NULL;
    f->stored = x_asprintf (STORED_DIRECTORY "/%s-%s", f->id, name);
    if (fs_make_dirs (s->places.work, STORED_DIRECTORY, 0777, false, &err) &&
        fs_write (s->places.work, f->stored, body->data ? body->data : "", body->len, 0666, false,
                  &err))
        return true;
    refuse_fetch (f, err->code == E_RUN_050 ? "path_refused" : "io_error",
                  err->code == E_RUN_050 ? "what lies at " STORED_DIRECTORY " is no plain folder"
                                         : "it could not be written",
                  out);
    return false;
}

static void
give_file (const struct fetched *f, struct call_outcome *out)
{
    TRACE (f->session->trace, NULL, peer_file_fetch, .peer = f->peer->written, .handle_id = f->id,
           .stored_path = f->stored, .bytes = TRACE_NUM (f->response.body.len), .sha256 = f->sha256,
           .outcome = "ok");
    _cleanup_json_ json_t *result = json_object ();
    json_set_string (result, "path", f->stored);
    json_set_u64 (result, "bytes", f->response.body.len);
    json_set_string (result, "sha256", f->sha256);
    json_set_string (result, "peer", f->peer->written);
    const char *generation = http_response_header (&f->response, "x-murmur-generation");
    size_t digits = generation ? strspn (generation, "0123456789") : 0;
    if (digits && digits < 19 && ! generation[digits])
        json_set_u64 (result, "generation", strtoull (generation, NULL, 10));
    set_result ("fetch-peer-file", result, out);
}

static void
fetch_peer_file_call (struct session *s, struct running_task *task, const json_t *input,
                      struct call_outcome *out)
{
    const char *written = outcome_need_text ("fetch-peer-file", input, "peer", out);
    const char *handle =
        written ? outcome_need_text ("fetch-peer-file", input, "handle", out) : NULL;
    if (! handle)
        return;
    _cleanup_ (peer_clear) struct peer peer;
    peer_read (&peer, written);
    struct fetched f = { .session = s, .task = task, .peer = &peer, .handle = handle };
    token_loggable_id (handle, f.id);
    if (! peer_is_allowed (s, &peer, &s->policy->network.peer_fetch_allow))
        refuse_fetch (&f, "peer_not_allowed",
                      "capabilities.peer_fetch.allow does not name this address", out);
    else if (! token_has_shape (&token_peer_handle, handle))
        refuse_fetch (&f, "malformed_handle", "this is no file handle", out);
    else if (fetch (&f, out) && check_etag (&f, out) && store (&f, out))
        give_file (&f, out);
    http_response_free (&f.response);
    free (f.stored);
}

const struct provided_tool provided_share_file = {
    .name = "share-file",
    .description =
        "Makes a handle with which one other capsule, and nobody else, may fetch one file of this "
        "capsule for a while. Give the handle to that capsule in a message.",
    .parameters = share_file_parameters,
    .missing = "exports.peer_files",
    .exists = share_file_is_offered,
    .call = share_file_call,
};

const struct provided_tool provided_fetch_peer_file = {
    .name = "fetch-peer-file",
    .description =
        "Fetches the file a handle of another capsule names and stores it in the work folder. "
        "Answers where it is, its size and its SHA-256, not its contents.",
    .parameters = fetch_peer_file_parameters,
    .missing = "capabilities.peer_fetch",
    .exists = fetch_peer_file_is_offered,
    .call = fetch_peer_file_call,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "door/door.h"

#include "base/alloc.h"
#include "door/callers/refuse.h"
#include "door/planes/mcp_listen.h"
#include "door/planes/plane_answer.h"
#include "door/planes/plane_worker.h"
#include "door/planes/resources.h"
#include "door/planes/trace_plane.h"
#include "door/rpc.h"
#include "manifest/capsule/door_methods.h"
#include "net/server/http_exchange.h"
#include "net/server/http_server.h"

#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#define CARD_PATH        "/.well-known/agent-card.json"
#define CLOSING_DRAIN_MS 500

struct door {
    struct http_server *server;
    char *url;
    char *public_card;
    bool accepts_peers;
    struct door_auth *auth; /* NULL: a public door */
    struct rpc *rpc;
    struct plane_worker *plane_worker;
    struct resources *resources;
    struct peer_files *peer_files;
    struct mcp_plane *mcp;          /* NULL: nothing is served to MCP clients */
    struct control_plane *control;  /* NULL: nothing may be changed */
    struct fs_root *records;        /* NULL: the trace is not served */
    const struct str_list *origins; /* pages that are answered; NULL: those of this machine alone */
};

static const struct http_header json_content = { "content-type", "application/json", 16 };

/* Step 8: whatever no step above took. */
static void
answer_nothing_here (struct http_exchange *x)
{
    http_reply (x, 404, NULL, 0, NULL, 0);
}

/* Two words for a person instead of a blank page. */
static void
answer_browser (struct http_exchange *x)
{
    static const char page[] =
        "<!doctype html><meta charset=utf-8><title>murmur</title><p>This is the door of a murmur "
        "capsule: programs talk to it over A2A. <a href=\"" CARD_PATH "\">Its card</a>. From a "
        "terminal: <code>mur send</code>, <code>mur watch</code>.";
    static const struct http_header html = { "content-type", "text/html; charset=utf-8", 24 };
    http_reply (x, 404, &html, 1, page, sizeof page - 1);
}

/* Programs send no Origin; a browser does with whatever changes anything, also after a name was
 * rebound to this machine, when it is that name's. */
static bool
is_foreign_page (const struct door *d, const struct http_exchange *x)
{
    static const char *const loopback[] = { "localhost", "127.0.0.1", "[::1]" };
    const char *origin = http_exchange_header (x, "origin", NULL);
    if (! origin ||
        strcmp (http_exchange_method (x), "OPTIONS") == 0) /* a preflight gets nothing */
        return false;
    for (size_t i = 0; d->origins && i < d->origins->len; i++)
        if (strcasecmp (d->origins->items[i], origin) == 0)
            return false;
    const char *host = strstr (origin, "://");
    for (size_t i = 0; host && i < ARRAY_LEN (loopback); i++) {
        size_t len = strlen (loopback[i]);
        if (strncasecmp (host + 3, loopback[i], len) == 0 &&
            (host[3 + len] == '\0' || host[3 + len] == ':'))
            return false;
    }
    return true;
}

static void
refuse_page (struct http_exchange *x)
{
    static const char body[] =
        "{\"error\":\"origin_not_allowed\",\"message\":\"This capsule answers no "
        "pages of that origin: exports.origins allows one.\"}";
    http_refuse (x, 403, &json_content, 1, body, sizeof body - 1);
}

static bool
is_rpc (const struct http_exchange *x)
{
    const char *target = http_exchange_target (x);
    return strcmp (http_exchange_method (x), "POST") == 0 &&
           (strcmp (target, "/") == 0 || *target == '\0') && plane_has_json_type (x);
}

/* Also with a query, as caches and probes append one, and for its head alone. */
static bool
asks_for_card (const struct http_exchange *x)
{
    const char *method = http_exchange_method (x);
    const char *target = http_exchange_target (x);
    size_t len = strcspn (target, "?");
    return (strcmp (method, "GET") == 0 || strcmp (method, "HEAD") == 0) &&
           len == strlen (CARD_PATH) && strncmp (target, CARD_PATH, len) == 0;
}

/* A browser that was pointed at the door. */
static bool
is_browser_at_root (const struct http_exchange *x)
{
    const char *accept = http_exchange_header (x, "accept", NULL);
    return strcmp (http_exchange_method (x), "GET") == 0 &&
           strcmp (http_exchange_target (x), "/") == 0 && accept && strstr (accept, "text/html");
}

static bool
claims_peer (const struct http_exchange *x)
{
    const char *origin = http_exchange_header (x, "x-murmur-task-origin", NULL);
    return origin && strcasecmp (origin, "peer") == 0;
}

/* Step 4: before path, method or body matter. */
static bool
is_refused (struct door *d, struct http_exchange *x, const char **credential)
{
    *credential = NULL;
    if (! d->auth)
        return false;
    const struct http_header *headers;
    size_t count = http_exchange_headers (x, &headers);
    enum auth_refusal refusal = door_auth_check (d->auth, headers, count, credential);
    if (refusal == AUTH_GRANTED)
        return false;
    door_refuse (x, d->auth, refusal, *credential, NULL);
    return true;
}

/* Step 5: the same bytes for every request. */
static void
refuse_peer (struct http_exchange *x)
{
    static const char body[] = "{\"error\":\"peer_not_accepted\",\"message\":\"This capsule does "
                               "not accept requests from peers.\"}";
    http_refuse (x, 403, &json_content, 1, body, sizeof body - 1);
}

/* Step 2 where nothing may be changed. */
static void
refuse_control (struct http_exchange *x)
{
    static const char body[] = "{\"error\":\"This capsule's manifest lets nothing be changed "
                               "while it runs.\"}";
    http_reply (x, 404, &json_content, 1, body, sizeof body - 1);
}

/* Step 6: the scope, then what needs no file. True when the request was answered. */
static bool
refuse_resource (struct door *d, struct http_exchange *x, const char *credential)
{
    if (d->auth && ! door_auth_allows (d->auth, credential, DOOR_SCOPE_FILES)) {
        door_refuse (x, d->auth, AUTH_INSUFFICIENT_SCOPE, credential, DOOR_SCOPE_FILES);
        return true;
    }
    return resources_refuse (d->resources, x);
}

/* To whom the whole session is open; for anybody else there is nothing of that name. */
static bool
serves_trace (const struct door *d, const struct http_exchange *x, const char *credential)
{
    return d->records && plane_is_under (x, PLANE_TRACE) && str_eq (credential, AUTH_OPERATOR);
}

/* The steps of door.md 2 that end before a body is read. */
static size_t
on_head (void *ctx, struct http_exchange *x)
{
    struct door *d = ctx;
    if (is_foreign_page (d, x)) {
        refuse_page (x);
        return 0;
    }
    if (plane_is_under (x, PLANE_PEER)) {
        (void)peer_files_refuse (d->peer_files, x);
        return 0;
    }
    if (plane_is_under (x, PLANE_CONTROL)) {
        if (d->control)
            return control_plane_head (d->control, x);
        refuse_control (x); /* its body is not read */
        return 0;
    }
    if (asks_for_card (x)) {
        http_reply (x, 200, &json_content, 1, d->public_card, strlen (d->public_card));
        return 0;
    }
    const char *credential;
    if (is_refused (d, x, &credential))
        return 0;
    if (! d->accepts_peers && claims_peer (x)) {
        refuse_peer (x);
        return 0;
    }
    if (plane_is_under (x, PLANE_RESOURCES)) {
        (void)refuse_resource (d, x, credential);
        return 0;
    }
    if (d->mcp && plane_is_under (x, PLANE_MCP))
        return mcp_plane_refuse (d->mcp, x, credential) ? 0 : MCP_MESSAGE_MAX;
    return is_rpc (x) ? http_server_default_limits.body_bytes : 0;
}

static void
on_request (void *ctx, struct http_exchange *x)
{
    struct door *d = ctx;
    size_t len;
    (void)http_exchange_body (x, &len);
    if (plane_is_under (x, PLANE_PEER)) {
        peer_files_serve (d->peer_files, x);
        return;
    }
    if (plane_is_under (x, PLANE_CONTROL)) {
        control_plane_answer (d->control, x);
        return;
    }
    const char *credential;
    if (is_refused (d, x, &credential))
        return;
    if (plane_is_under (x, PLANE_RESOURCES))
        resources_serve (d->resources, x);
    else if (serves_trace (d, x, credential))
        trace_plane_serve (d->records, x);
    else if (d->mcp && plane_is_under (x, PLANE_MCP))
        mcp_plane_serve (d->mcp, x, credential);
    else if (is_rpc (x) && len > 0)
        rpc_answer (d->rpc, x, credential);
    else if (is_browser_at_root (x))
        answer_browser (x);
    else
        answer_nothing_here (x);
}

static char *
on_truncated (void *ctx, struct http_exchange *x)
{
    struct door *d = ctx;
    return d->control && plane_is_under (x, PLANE_CONTROL) ? control_plane_truncated (d->control, x)
                                                           : NULL;
}

static const struct http_server_handler handler = { on_head, on_request, on_truncated };

/* 1 024 connections need descriptors (door.md 19.3). What commands may open is set for each of them
 * by the sandbox. */
static void
raise_descriptor_limit (void)
{
    struct rlimit limit;
    if (getrlimit (RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit (RLIMIT_NOFILE, &limit);
    }
}

struct door *
door_bind (const char *bind_address, unsigned port, struct mur_error **err)
{
    struct http_server *server =
        http_server_bind (bind_address, port, &http_server_default_limits, err);
    if (! server)
        return NULL;
    raise_descriptor_limit ();
    struct door *d = x_new0 (struct door);
    d->server = server;
    d->url = x_asprintf ("localhost:%u", http_server_port (server));
    return d;
}

unsigned
door_port (const struct door *d)
{
    return http_server_port (d->server);
}

const char *
door_url (const struct door *d)
{
    return d->url;
}

void
door_set_auth (struct door *d, struct door_auth *auth)
{
    d->auth = auth;
}

void
door_set_planes (struct door *d, const struct plane_facts *facts, const char *session_id)
{
    d->origins = facts->exports ? &facts->exports->origins : NULL;
    d->records = facts->records;
    d->plane_worker = plane_worker_new ();
    d->resources = resources_new (facts, d->plane_worker);
    d->peer_files = peer_files_new (facts, session_id, d->plane_worker);
}

void
door_set_control (struct door *d, const struct control_spec *spec)
{
    d->control = control_plane_new (spec);
}

void
door_set_mcp (struct door *d, const struct mcp_plane_spec *spec)
{
    d->mcp = mcp_plane_new (spec, d->auth);
}

void
door_stop_mcp (struct door *d)
{
    if (d)
        mcp_plane_stop (d->mcp);
}

void
door_tell_mcp_list (struct door *d, enum mcp_list list)
{
    if (d && d->mcp)
        mcp_listen_tell_list (d->mcp, list);
}

void
door_tell_mcp_resource (struct door *d, const char *uri)
{
    if (d && d->mcp)
        mcp_listen_tell_resource (d->mcp, uri);
}

struct peer_files *
door_peer_files (struct door *d)
{
    return d->peer_files;
}

bool
door_serve (struct door *d, const struct card_facts *facts, struct registry *registry,
            struct mur_error **err)
{
    struct card_facts here = *facts;
    here.port = door_port (d);
    here.is_authenticated = d->auth != NULL;
    d->public_card = card_text (&here, false);
    d->accepts_peers = here.accepts_peer_tasks;
    d->rpc = rpc_new (&here, registry, d->auth);
    if (! d->plane_worker) {
        const struct plane_facts nothing = { .containment = "", .registry = registry };
        door_set_planes (d, &nothing, here.session_id);
    }
    return http_server_serve (d->server, &handler, d, err);
}

void
door_close (struct door *d)
{
    if (! d)
        return;
    rpc_settle_all (d->rpc);
    mcp_plane_stop (d->mcp);
    if (d->plane_worker)
        plane_worker_stop (d->plane_worker);
    http_server_close (d->server, CLOSING_DRAIN_MS);
    plane_worker_free (d->plane_worker);
    resources_free (d->resources);
    peer_files_free (d->peer_files);
    control_plane_free (d->control);
    mcp_plane_free (d->mcp);
    rpc_free (d->rpc);
    free (d->public_card);
    free (d->url);
    free (d);
}

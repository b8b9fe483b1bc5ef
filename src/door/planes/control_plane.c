/* SPDX-License-Identifier: Apache-2.0 */
#include "door/planes/control_plane.h"

#include "base/alloc.h"
#include "base/keys/token.h"
#include "door/callers/auth.h"
#include "door/planes/plane_answer.h"
#include "net/server/http_exchange.h"

#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#define SETTING_BYTES_MAX 1024
#define SECRET_BYTES_MAX  8192

struct control_plane {
    struct control_spec spec;
};

struct control_plane *
control_plane_new (const struct control_spec *spec)
{
    struct control_plane *p = x_new0 (struct control_plane);
    p->spec = *spec;
    return p;
}

void
control_plane_free (struct control_plane *p)
{
    free (p);
}

/* --- one request --- */

enum control_target {
    TARGET_NONE, /* no path of this plane */
    TARGET_ALL,  /* /control */
    TARGET_SETTING,
    TARGET_SECRET,
};

struct control_request {
    struct control_plane *plane;
    struct http_exchange *x;
    enum control_target target;
    const char *kind; /* "setting", "secret", or NULL */
    char *name;       /* as sent */
    char token_id[17];
};

static void
request_clear (struct control_request *r)
{
    free (r->name);
}

static bool
is_method (const struct control_request *r, const char *method)
{
    return strcmp (http_exchange_method (r->x), method) == 0;
}

static void
read_target (struct control_request *r, struct control_plane *p, struct http_exchange *x)
{
    static const struct {
        const char *prefix, *kind;
        enum control_target target;
    } named[] = { { "/control/settings/", "setting", TARGET_SETTING },
                  { "/control/secrets/", "secret", TARGET_SECRET } };
    *r = (struct control_request){ .plane = p, .x = x };
    const char *path = http_exchange_target (x);
    size_t len = plane_path_len (x);
    if (len == strlen ("/control"))
        r->target = TARGET_ALL;
    for (size_t i = 0; i < ARRAY_LEN (named); i++) {
        size_t prefix = strlen (named[i].prefix);
        if (len <= prefix || strncmp (path, named[i].prefix, prefix) != 0)
            continue;
        r->target = named[i].target;
        r->kind = named[i].kind;
        r->name = x_strndup (path + prefix, len - prefix);
    }
}

/* --- answers --- */

static void
trace_refusal (const struct control_request *r, unsigned status, const char *reason)
{
    bool is_known = r->token_id[0] != '\0';
    TRACE (r->plane->spec.trace, NULL, control_refused, .principal = "controller", .status = status,
           .reason = reason, .kind = is_known ? r->kind : NULL, .name = is_known ? r->name : NULL,
           .token_id = is_known ? r->token_id : NULL);
}

static char *
refusal_body (const char *message)
{
    _cleanup_json_ json_t *o = json_object ();
    json_set_string (o, "error", message);
    return json_text (o, JSON_TEXT_SORTED);
}

/* A refusal ends the connection, so that it need not wait for a body nobody reads. */
static void
refuse (const struct control_request *r, unsigned status, const char *reason, const char *header,
        const char *value, const char *message)
{
    _cleanup_plane_headers_ struct plane_headers h = { 0 };
    _cleanup_free_ char *body = refusal_body (message);
    trace_refusal (r, status, reason);
    plane_header (&h, "content-type", "application/json");
    if (header)
        plane_header (&h, header, value);
    http_refuse (r->x, (int)status, h.items, h.len, body, strlen (body));
}

static void
answer_json (const struct control_request *r, json_t *body)
{
    static const struct http_header json_content = { "content-type", "application/json", 16 };
    _cleanup_free_ char *text = json_text (body, JSON_TEXT_SORTED);
    json_decref (body);
    http_reply (r->x, 200, &json_content, 1, text, strlen (text));
}

static void
answer_change (const struct control_request *r, struct control_answer *a)
{
    if (a->status == 200)
        answer_json (r, steal_ptr (&a->body));
    else
        refuse (r, a->status, a->reason, NULL, NULL, a->message);
    free (a->message);
    json_decref (a->body);
}

/* --- the checks, in their order --- */

static bool
is_authenticated (struct control_request *r)
{
    const struct http_header *headers;
    size_t count = http_exchange_headers (r->x, &headers);
    const char *token = bearer_of_headers (headers, count);
    const struct control_spec *spec = &r->plane->spec;
    if (token && spec->ops->is_token (spec->ctx, token)) {
        token_loggable_id (token, r->token_id);
        return true;
    }
    refuse (r, 401, "unauthenticated", "WWW-Authenticate", "Bearer realm=\"murmur-control\"",
            "This needs the session's control token.");
    return false;
}

static bool
is_path_known (const struct control_request *r)
{
    const struct control_spec *spec = &r->plane->spec;
    if (r->target == TARGET_NONE)
        refuse (r, 404, "unknown_path", NULL, NULL, "There is nothing at this path.");
    else if (r->target == TARGET_SETTING && ! spec->ops->has_setting (spec->ctx, r->name))
        refuse (r, 404, "undeclared_setting", NULL, NULL,
                "The manifest declares no such setting in control.settings.");
    else if (r->target == TARGET_SECRET && ! spec->ops->has_secret (spec->ctx, r->name))
        refuse (r, 404, "undeclared_secret", NULL, NULL,
                "The manifest declares no such secret in control.secrets.");
    else
        return true;
    return false;
}

static bool
is_method_known (const struct control_request *r)
{
    static const char *const allowed[] = {
        [TARGET_NONE] = "",
        [TARGET_ALL] = "GET",
        [TARGET_SETTING] = "PUT",
        [TARGET_SECRET] = "PUT, DELETE",
    };
    bool is_known = r->target == TARGET_ALL ? is_method (r, "GET")
                                            : is_method (r, "PUT") || (r->target == TARGET_SECRET &&
                                                                       is_method (r, "DELETE"));
    if (! is_known)
        refuse (r, 405, "method_not_allowed", "Allow", allowed[r->target],
                "This method is not served here.");
    return is_known;
}

static bool
is_loopback (const struct sockaddr *peer)
{
    if (peer->sa_family == AF_INET)
        return ntohl (((const struct sockaddr_in *)(const void *)peer)->sin_addr.s_addr) >> 24 ==
               127;
    const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr;
    return peer->sa_family == AF_INET6 &&
           (IN6_IS_ADDR_LOOPBACK (a) || (IN6_IS_ADDR_V4MAPPED (a) && a->s6_addr[12] == 127));
}

static bool
is_near_enough (const struct control_request *r)
{
    if (r->target != TARGET_SECRET || is_loopback (http_exchange_peer (r->x)))
        return true;
    refuse (r, 403, "not_loopback", NULL, NULL, "Secrets are taken from this machine alone.");
    return false;
}

/* How long the body is; 0 after a refusal. */
static size_t
body_length (const struct control_request *r)
{
    uint64_t len = http_exchange_content_length (r->x);
    size_t limit = r->target == TARGET_SETTING ? SETTING_BYTES_MAX : SECRET_BYTES_MAX;
    if (len > limit)
        refuse (r, 413, "body_too_large", NULL, NULL, "The body is too large.");
    else if (len == 0)
        refuse (r, 422, "missing_body", NULL, NULL, "A body is needed.");
    else if (r->target == TARGET_SETTING && ! plane_has_json_type (r->x))
        refuse (r, 415, "unsupported_media_type", NULL, NULL,
                "The content type must be application/json.");
    else
        return (size_t)len;
    return 0;
}

static void
forget (const struct control_request *r)
{
    struct control_answer answer = { 0 };
    const struct control_spec *spec = &r->plane->spec;
    spec->ops->forget (spec->ctx, r->token_id, r->name, &answer);
    answer_change (r, &answer);
}

size_t
control_plane_head (struct control_plane *p, struct http_exchange *x)
{
    _cleanup_ (request_clear) struct control_request r;
    read_target (&r, p, x);
    if (! is_authenticated (&r) || ! is_path_known (&r) || ! is_method_known (&r) ||
        ! is_near_enough (&r))
        return 0;
    if (r.target == TARGET_ALL) {
        answer_json (&r, p->spec.ops->show (p->spec.ctx));
        return 0;
    }
    if (is_method (&r, "DELETE")) {
        forget (&r);
        return 0;
    }
    size_t len = body_length (&r);
    if (len && r.target == TARGET_SECRET)
        http_exchange_keep_secret (x, len);
    return len;
}

/* --- with the body --- */

static void
set_setting (const struct control_request *r, const char *body, size_t len)
{
    _cleanup_json_ json_t *object =
        json_loadb (body, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    const json_t *value = json_object_get (object, "value");
    struct control_answer answer = { 0 };
    const struct control_spec *spec = &r->plane->spec;
    if (! value) {
        refuse (r, 422, "invalid_value", NULL, NULL,
                "The body must be a JSON object with a member \"value\".");
        return;
    }
    spec->ops->set (spec->ctx, r->token_id, r->name, value, &answer);
    answer_change (r, &answer);
}

static void
set_secret (const struct control_request *r, const char *body, size_t len)
{
    struct control_answer answer = { 0 };
    const struct control_spec *spec = &r->plane->spec;
    for (size_t i = 0; i < len; i++)
        if (body[i] < 0x20 || body[i] > 0x7e) {
            refuse (r, 422, "invalid_value", NULL, NULL,
                    "A secret is printable ASCII, one line of it.");
            return;
        }
    spec->ops->set_secret (spec->ctx, r->token_id, r->name, body, len, &answer);
    answer_change (r, &answer);
}

/* The token was good when the head came; it is looked up again only for its id. */
static void
read_again (struct control_request *r, struct control_plane *p, struct http_exchange *x)
{
    const struct http_header *headers;
    size_t count = http_exchange_headers (x, &headers);
    const char *token = bearer_of_headers (headers, count);
    read_target (r, p, x);
    if (token)
        token_loggable_id (token, r->token_id);
}

void
control_plane_answer (struct control_plane *p, struct http_exchange *x)
{
    _cleanup_ (request_clear) struct control_request r;
    size_t len;
    const char *body = http_exchange_body (x, &len);
    read_again (&r, p, x);
    if (r.target == TARGET_SETTING)
        set_setting (&r, body, len);
    else
        set_secret (&r, body, len);
}

char *
control_plane_truncated (struct control_plane *p, struct http_exchange *x)
{
    _cleanup_ (request_clear) struct control_request r;
    read_again (&r, p, x);
    trace_refusal (&r, 400, "truncated_body");
    _cleanup_free_ char *body = refusal_body ("The connection ended before the body did.");
    return x_asprintf ("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
                       "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                       strlen (body), body);
}

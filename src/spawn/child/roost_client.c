/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/child/roost_client.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "home/roost_socket.h"
#include "net/http_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define STEP_TIMEOUT_MS    30000
#define ANSWER_LIMIT_BYTES ((size_t)1 << 20)
#define QUOTED_BYTES       500
#define SAID_BYTES         ((size_t)4 << 10) /* of its own sentence: it enters a conversation */
#define CUT_MARK           " […]"

static char *
quoted (const char *said)
{
    size_t len = strlen (said);
    if (len <= SAID_BYTES)
        return x_strdup (said);
    return x_asprintf ("%.*s" CUT_MARK, (int)utf8_cut (said, len, SAID_BYTES), said);
}

/* Status and body of the answer only: nothing of what was sent. A daemon that sends our token back
 * is not quoted. */
static char *
refusal_text (const struct http_response *r, const json_t *body, const struct secret *token)
{
    const char *said = json_get_string (body, "error");
    const char *text = r->body.data ? r->body.data : "";
    if (token && strstr (said ? said : text, secret_reveal (token)))
        return x_strdup ("it refused");
    if (said)
        return quoted (said);
    return x_asprintf ("mur-roost answered %d: %.*s", r->status,
                       (int)utf8_cut (text, r->body.len, QUOTED_BYTES), text);
}

static json_t *
judge (const struct http_response *r, const struct secret *token, struct roost_refusal *refusal)
{
    _cleanup_json_ json_t *body =
        json_loadb (r->body.data ? r->body.data : "", r->body.len, 0, NULL);
    if (r->status / 100 == 2)
        return json_is_object (body) ? steal_ptr (&body) : json_object ();
    refusal->text = refusal_text (r, body, token);
    return NULL;
}

#define UNIX_SCHEME "unix:"

/* Where a daemon is: a URL, and the socket it leads to. */
struct place {
    char *url;
    char reach[ROOST_REACH_MAX]; /* "" for TCP */
    int folder_fd;
};

static bool
find_place (const struct roost_request *request, struct place *place, struct roost_refusal *refusal)
{
    const char *base = request->url;
    *place = (struct place){ .folder_fd = -1 };
    if (str_starts (base, UNIX_SCHEME)) {
        place->folder_fd = roost_socket_reach (base + strlen (UNIX_SCHEME), place->reach);
        if (place->folder_fd < 0) {
            *refusal = (struct roost_refusal){
                x_asprintf ("its socket's folder cannot be opened: %s", strerror (errno)), true
            };
            return false;
        }
        place->url = x_asprintf ("http://localhost%s", request->path);
        return true;
    }
    if (! str_starts (base, "http://") && ! str_starts (base, "https://")) {
        *refusal = (struct roost_refusal){ x_strdup ("it is asked over http or https only"), true };
        return false;
    }
    size_t len = strlen (base);
    while (len && base[len - 1] == '/')
        len--;
    place->url = x_asprintf ("%.*s%s", (int)len, base, request->path);
    return true;
}

/* The token is nobody's beyond this machine. */
static bool
is_on_this_machine (const char *url)
{
    return str_starts (url, "http://127.0.0.1:") || str_starts (url, "http://localhost:");
}

/* What lies in the user's own folder, "" when nothing does. */
static char *
read_token (void)
{
    _cleanup_free_ char *path = roost_token_path ();
    _cleanup_close_ int fd = path ? open (path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    _cleanup_buf_ struct buf text = { 0 };
    bool is_read = fd >= 0 && fd_read_all (fd, 256, &text) && text.len;
    return is_read ? x_strndup (text.data, strcspn (text.data, "\r\n")) : x_strdup ("");
}

json_t *
roost_ask (struct http_client *http, const struct roost_request *request,
           struct roost_refusal *refusal)
{
    struct place place;
    if (! find_place (request, &place, refusal))
        return NULL;
    _cleanup_free_ char *url = place.url;
    _cleanup_close_ int folder _unused_ = place.folder_fd;
    _cleanup_free_ char *entry = is_on_this_machine (request->url) ? read_token () : x_strdup ("");
    _cleanup_free_ char *text = request->body ? json_text (request->body, JSON_TEXT_ORDERED) : NULL;
    const char *token = request->header ? secret_reveal (request->token) : "";
    struct http_header headers[3] = {
        { "content-type", "application/json", strlen ("application/json") },
    };
    size_t header_count = 1;
    if (*entry)
        headers[header_count++] =
            (struct http_header){ "x-murmur-roost-token", entry, strlen (entry) };
    if (request->header)
        headers[header_count++] = (struct http_header){ request->header, token, strlen (token) };
    const struct http_fetch fetch = {
        .request = { .method = text ? "POST" : "GET",
                     .url = url,
                     .headers = headers,
                     .header_count = header_count,
                     .socket_path = place.reach[0] ? place.reach : NULL,
                     .body_kind = text ? HTTP_BODY_BUFFER : HTTP_BODY_NONE,
                     .body = text,
                     .body_len = text ? strlen (text) : 0,
                     .connect_timeout_ms = STEP_TIMEOUT_MS,
                     .first_byte_timeout_ms = STEP_TIMEOUT_MS,
                     .between_bytes_timeout_ms = STEP_TIMEOUT_MS },
        .limit_bytes = ANSWER_LIMIT_BYTES,
        .total_timeout_ms = request->total_timeout_ms,
        .cancel = request->cancel,
    };
    struct http_response response = { 0 };
    _cleanup_error_ struct mur_error *fault = NULL;
    if (! http_fetch (http, &fetch, &response, NULL, &fault)) {
        *refusal = (struct roost_refusal){ x_strdup (fault->message), true };
        return NULL;
    }
    json_t *answer = judge (&response, request->token, refusal);
    secret_wipe (entry, strlen (entry));
    if (response.body.data)
        secret_wipe (response.body.data, response.body.len);
    http_response_free (&response);
    return answer;
}

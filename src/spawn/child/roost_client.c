/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/child/roost_client.h"

#include "base/alloc.h"
#include "net/http_fetch.h"

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

json_t *
roost_ask (struct http_client *http, const struct roost_request *request,
           struct roost_refusal *refusal)
{
    if (! str_starts (request->url, "http://")) {
        *refusal = (struct roost_refusal){ x_strdup ("it is asked over http only"), true };
        return NULL;
    }
    size_t base = strlen (request->url);
    while (base && request->url[base - 1] == '/')
        base--;
    _cleanup_free_ char *url = x_asprintf ("%.*s%s", (int)base, request->url, request->path);
    _cleanup_free_ char *text = request->body ? json_text (request->body, JSON_TEXT_ORDERED) : NULL;
    const char *token = request->header ? secret_reveal (request->token) : "";
    const struct http_header headers[] = {
        { "content-type", "application/json", strlen ("application/json") },
        { request->header, token, strlen (token) },
    };
    const struct http_fetch fetch = {
        .request = { .method = text ? "POST" : "GET",
                     .url = url,
                     .headers = headers,
                     .header_count = ARRAY_LEN (headers) - (request->header ? 0 : 1),
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
    if (response.body.data)
        secret_wipe (response.body.data, response.body.len);
    http_response_free (&response);
    return answer;
}

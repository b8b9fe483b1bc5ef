/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/child/door_ask.h"

#include "base/alloc.h"
#include "base/secret.h"
#include "net/http_fetch.h"

#include <string.h>

#define ANSWER_LIMIT ((size_t)64 << 20) /* a task's answer may be in it */

static char *
question_text (const struct door_question *q)
{
    _cleanup_json_ json_t *o = json_object ();
    json_set_string (o, "jsonrpc", "2.0");
    json_set_string (o, "id", q->id);
    json_set_string (o, "method", q->method);
    json_object_set (o, "params", q->params);
    return json_text (o, JSON_TEXT_ORDERED);
}

json_t *
door_ask (const struct door_question *q, struct mur_error **err)
{
    const char *token = q->token, *url = q->url;
    _cleanup_free_ char *address = x_asprintf ("%s/", url);
    _cleanup_free_ char *body = question_text (q);
    char *bearer = token ? x_asprintf ("Bearer %s", token) : NULL;
    struct http_header headers[6] = {
        { "content-type", "application/json", strlen ("application/json") },
        { "a2a-version", "1.0", strlen ("1.0") },
    };
    size_t header_count = 2;
    if (bearer)
        headers[header_count++] = (struct http_header){ "authorization", bearer, strlen (bearer) };
    if (q->traceparent)
        headers[header_count++] =
            (struct http_header){ "traceparent", q->traceparent, strlen (q->traceparent) };
    if (q->peer_trust) {
        headers[header_count++] = (struct http_header){ "x-murmur-task-origin", "peer", 4 };
        headers[header_count++] =
            (struct http_header){ "x-murmur-task-trust", q->peer_trust, strlen (q->peer_trust) };
    }
    const struct http_fetch fetch = {
        .request = { .method = "POST",
                     .url = address,
                     .headers = headers,
                     .header_count = header_count,
                     .body_kind = HTTP_BODY_BUFFER,
                     .body = body,
                     .body_len = strlen (body),
                     .connect_timeout_ms = q->timeout_ms },
        .limit_bytes = ANSWER_LIMIT,
        .total_timeout_ms = q->timeout_ms,
        .cancel = q->cancel,
    };
    _cleanup_http_response_ struct http_response r = { 0 };
    bool is_answered = http_fetch (q->http, &fetch, &r, NULL, err);
    if (bearer)
        secret_wipe (bearer, strlen (bearer));
    free (bearer);
    if (! is_answered)
        return NULL;
    if (r.status / 100 != 2)
        return mur_fail (err, E_RUN_007, "its door at %s answered HTTP %d", url, r.status), NULL;
    json_t *answer = json_loadb (r.body.data ? r.body.data : "", r.body.len, 0, NULL);
    if (! json_is_object (answer)) {
        json_decref (answer);
        return mur_fail (err, E_RUN_007, "its door at %s answered no JSON", url), NULL;
    }
    return answer;
}

/* --- what is read and written --- */

json_t *
door_message_params (const char *call_id, const char *text)
{
    _cleanup_free_ char *message_id = x_asprintf ("msg_%s", call_id);
    json_t *part = json_object (), *parts = json_array (), *message = json_object ();
    json_set_string (part, "text", text);
    json_set_string (part, "mediaType", "text/plain");
    json_array_append_new (parts, part);
    json_set_string (message, "messageId", message_id);
    json_set_string (message, "role", "ROLE_USER");
    json_object_set_new (message, "parts", parts);
    json_t *how = json_object (), *params = json_object ();
    json_set_bool (how, "returnImmediately", true);
    json_object_set_new (params, "message", message);
    json_object_set_new (params, "configuration", how);
    return params;
}

char *
door_parts_text (const json_t *holder)
{
    struct buf text = { 0 };
    size_t i;
    const json_t *part;
    json_array_foreach (json_object_get (holder, "parts"), i, part)
    {
        const json_t *said = json_object_get (part, "text");
        if (json_is_string (said))
            buf_append (&text, json_string_value (said), json_string_length (said));
    }
    return buf_steal (&text);
}

char *
door_response_text (const json_t *task)
{
    size_t i;
    const json_t *artifact;
    json_array_foreach (json_object_get (task, "artifacts"), i,
                        artifact) if (str_eq (json_get_string (artifact, "name"),
                                              "response")) return door_parts_text (artifact);
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/script_send.h"
#include "engine/guest.h"

#include "base/alloc.h"
#include "base/json.h"
#include "net/http_client.h"
#include "net/http_fetch.h"
#include "net/url.h"
#include "session/guests/guests.h"
#include "session/launch/launched.h"
#include "session/state/session.h"
#include "trace/export/otel.h"

#include <string.h>

#define CONNECT_MS   30000
#define ANSWER_LIMIT ((size_t)64 << 20)
#define WIRE_PREFIX  "TASK_STATE_"
#define SENDS_MAX    65536 /* lines kept for the trace */

struct script_sends {
    struct script_sent {
        char *peer_url, *message_id, *task_id, *context_id, *traceparent;
    } * items;
    size_t len, cap;
};

/* --- the question --- */

static char *
question_text (const struct peer_message *message)
{
    _cleanup_json_ json_t *o = json_object ();
    json_t *part = json_object (), *parts = json_array (), *body = json_object ();
    json_t *how = json_object (), *params = json_object ();
    json_set_string_n (part, "text", message->text, message->text_len);
    json_array_append_new (parts, part);
    json_set_string (body, "messageId", message->message_id);
    if (message->context_id)
        json_set_string (body, "contextId", message->context_id);
    json_set_string (body, "role", "ROLE_USER");
    json_object_set_new (body, "parts", parts);
    json_set_bool (how, "returnImmediately", true);
    json_object_set_new (params, "message", body);
    json_object_set_new (params, "configuration", how);
    json_set_string (o, "jsonrpc", "2.0");
    json_set_string (o, "id", message->message_id);
    json_set_string (o, "method", "SendMessage");
    json_object_set_new (o, "params", params);
    return json_text (o, JSON_TEXT_ORDERED);
}

static bool
is_allowed (const struct session *s, const char *peer_url)
{
    _cleanup_url_ struct url url = { 0 };
    if (url_parse (peer_url, &url))
        return false;
    int port =
        url.authority.port == URL_NO_PORT ? url_default_port (url.scheme) : url.authority.port;
    return ! url.authority.has_userinfo &&
           allow_list_matches (guests_script_allow (s), url.scheme, url.authority.host, port);
}

/* --- the answer --- */

/* What a peer that did not take the message says of it. */
static const char *
refusal_text (const struct http_response *r, const json_t *body, const char *peer_url,
              struct arena *arena)
{
    const char *code = json_get_string (body, "error"), *said = json_get_string (body, "message");
    return arena_printf (arena, "%s answered HTTP %d%s%s%s%s", peer_url, r->status,
                         code ? ": " : "", code ? code : "", said ? ": " : "", said ? said : "");
}

/* "working" of "TASK_STATE_WORKING". */
static const char *
state_word (struct arena *arena, const char *wire)
{
    if (! wire)
        return "";
    if (str_starts (wire, WIRE_PREFIX))
        wire += strlen (WIRE_PREFIX);
    char *word = arena_strdup (arena, wire);
    str_lower (word);
    for (char *c = word; *c; c++)
        if (*c == '_')
            *c = '-';
    return word;
}

static bool
read_answer (const struct http_response *r, const char *peer_url, struct arena *arena,
             struct peer_task *out, const char **refusal)
{
    _cleanup_json_ json_t *body =
        json_loadb (r->body.data ? r->body.data : "", r->body.len, 0, NULL);
    const json_t *fault = json_object_get (body, "error");
    const json_t *task = json_object_get (json_object_get (body, "result"), "task");
    const char *id = json_get_string (task, "id"), *context = json_get_string (task, "contextId");
    if (r->status / 100 != 2) {
        *refusal = refusal_text (r, body, peer_url, arena);
    } else if (json_is_object (fault)) {
        const char *said = json_get_string (fault, "message");
        *refusal = arena_printf (arena, "%s refused the message: %s", peer_url, said ? said : "");
    } else if (! id) {
        *refusal = arena_printf (arena, "%s answered without a task", peer_url);
    } else {
        const char *state = json_get_string (json_object_get (task, "status"), "state");
        *out = (struct peer_task){ arena_strdup (arena, id),
                                   arena_strdup (arena, context ? context : ""),
                                   state_word (arena, state) };
        return true;
    }
    return false;
}

/* --- one message --- */

static void
keep_line (struct session *s, const char *peer_url, const struct peer_message *message,
           const struct peer_task *task, const char *traceparent)
{
    if (! s->rooms.launched->script_sends)
        s->rooms.launched->script_sends = x_new0 (struct script_sends);
    struct script_sends *sends = s->rooms.launched->script_sends;
    if (sends->len >= SENDS_MAX)
        return;
    x_grow (sends->items, sends->len, sends->cap);
    sends->items[sends->len++] =
        (struct script_sent){ x_strdup (peer_url), x_strdup (message->message_id),
                              x_strdup (task->task_id), x_strdup (task->context_id),
                              traceparent ? x_strdup (traceparent) : NULL };
}

static bool
post (struct session *s, const char *peer_url, const char *body, const char *traceparent,
      struct http_response *r, const char **refusal, struct arena *arena)
{
#define HEADER(name, value)                                                                        \
    {                                                                                              \
        name, value, sizeof (value) - 1                                                            \
    }
    const struct http_header headers[] = {
        HEADER ("content-type", "application/json"),
        HEADER ("a2a-version", "1.0"),
        HEADER ("x-murmur-task-origin", "peer"),
        HEADER ("x-murmur-task-trust", "untrusted"),
        { "traceparent", traceparent, traceparent ? strlen (traceparent) : 0 },
    };
#undef HEADER
    const struct http_fetch fetch = {
        .request = { .method = "POST",
                     .url = peer_url,
                     .headers = headers,
                     .header_count = ARRAY_LEN (headers) - (traceparent == NULL),
                     .body_kind = HTTP_BODY_BUFFER,
                     .body = body,
                     .body_len = strlen (body),
                     .connect_timeout_ms = CONNECT_MS },
        .limit_bytes = ANSWER_LIMIT,
        .cancel = guest_current_cancel (),
    };
    _cleanup_error_ struct mur_error *err = NULL;
    if (http_fetch (s->http, &fetch, r, NULL, &err))
        return true;
    *refusal = arena_strdup (arena, err->message);
    return false;
}

static bool
send_message (void *ctx, const char *peer_url, const struct peer_message *message,
              struct arena *arena, struct peer_task *task, const char **refusal)
{
    struct session *s = ctx;
    char own[TRACEPARENT_LEN + 1];
    const char *traceparent = otel_traceparent (s->otel, own) ? own : NULL;
    _cleanup_http_response_ struct http_response r = { 0 };
    if (! is_allowed (s, peer_url)) {
        *refusal = arena_printf (arena, "network policy: %s is not in capabilities.network.allow",
                                 peer_url);
        return false;
    }
    _cleanup_free_ char *body = question_text (message);
    if (! post (s, peer_url, body, traceparent, &r, refusal, arena) ||
        ! read_answer (&r, peer_url, arena, task, refusal))
        return false;
    keep_line (s, peer_url, message, task, traceparent);
    return true;
}

struct message_host
script_messages (struct session *s)
{
    return (struct message_host){ s, send_message };
}

void
script_messages_record (struct session *s)
{
    struct script_sends *sends = s->rooms.launched->script_sends;
    if (! sends)
        return;
    if (! s->trace)
        s->trace = trace_writer_new (s->places.records, s->id.text, s->redactor, NULL);
    for (size_t i = 0; i < sends->len; i++) {
        struct script_sent *one = &sends->items[i];
        TRACE (s->trace, NULL, a2a_send, .peer_url = one->peer_url, .message_id = one->message_id,
               .task_id = one->task_id, .context_id = one->context_id,
               .traceparent = one->traceparent, .trust = "untrusted");
        free (one->peer_url);
        free (one->message_id);
        free (one->task_id);
        free (one->context_id);
        free (one->traceparent);
    }
    free (sends->items);
    free (sends);
    s->rooms.launched->script_sends = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "client/door_client.h"

#include "base/alloc.h"
#include "door/card/card.h"
#include "net/http_fetch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define ANSWER_LIMIT (16 * 1024 * 1024)
#define MOST_AT_ONCE 16

struct secret *
door_token_of_environment (void)
{
    const char *value = getenv ("MURMUR_DOOR_TOKEN");
    if (! value)
        return NULL;
    value += strspn (value, " \t\r\n");
    size_t len = strlen (value);
    while (len && strchr (" \t\r\n", value[len - 1]))
        len--;
    return len ? secret_new (value, len) : NULL;
}

/* --- one call --- */

static char *
door_call_text (const char *method, const json_t *params)
{
    _cleanup_json_ json_t *request = json_object ();
    json_set_string (request, "jsonrpc", "2.0");
    json_set_u64 (request, "id", 1);
    json_set_string (request, "method", method);
    json_object_set_new (request, "params", params ? json_deep_copy (params) : json_object ());
    return json_text (request, JSON_TEXT_ORDERED);
}

/* POSTs the call; true when an answer came. */
static bool
post (struct http_client *client, const struct door_call *call, struct http_response *response,
      struct mur_error **err)
{
    _cleanup_free_ char *url = x_asprintf ("http://%s/", call->url);
    _cleanup_free_ char *body = door_call_text (call->method, call->params);
    char *bearer = call->token ? x_asprintf ("Bearer %s", secret_reveal (call->token)) : NULL;
    struct http_header headers[] = {
        { "content-type", "application/json", strlen ("application/json") },
        { "a2a-version", "1.0", strlen ("1.0") },
        { "authorization", bearer, bearer ? strlen (bearer) : 0 },
    };
    struct http_fetch fetch = {
        .request = { .method = "POST",
                     .url = url,
                     .headers = headers,
                     .header_count = bearer ? 3 : 2,
                     .body_kind = HTTP_BODY_BUFFER,
                     .body = body,
                     .body_len = strlen (body),
                     .connect_timeout_ms = 2000 },
        .limit_bytes = ANSWER_LIMIT,
        .total_timeout_ms = call->timeout_ms,
    };
    bool is_answered = http_fetch (client, &fetch, response, NULL, err);
    if (bearer)
        secret_wipe (bearer, strlen (bearer));
    free (bearer);
    return is_answered;
}

json_t *
door_call (struct http_client *client, const struct door_call *call, int *rpc_code,
           struct mur_error **err)
{
    _cleanup_http_response_ struct http_response response = { 0 };
    *rpc_code = 0;
    if (! post (client, call, &response, err))
        return NULL;
    if (response.status == 401 || response.status == 403) {
        mur_fail (err, E_IO_003, "the door at %s refused %s with HTTP %d", call->url, call->method,
                  response.status);
        mur_hint (err,
                  "its token is taken from the session's record, for --url from MURMUR_DOOR_TOKEN");
        return NULL;
    }
    const char *text = response.body.data ? response.body.data : "";
    _cleanup_json_ json_t *answer = json_loadb (text, response.body.len, 0, NULL);
    const json_t *failure = json_object_get (answer, "error");
    json_t *result = json_object_get (answer, "result");
    if (result)
        return json_incref (result);
    if (failure) {
        *rpc_code = (int)json_integer_value (json_object_get (failure, "code"));
        const char *message = json_get_string (failure, "message");
        mur_fail (err, E_IO_003, "the door at %s answered %s with: %s", call->url, call->method,
                  message ? message : "an error");
        return NULL;
    }
    mur_fail (err, E_IO_003, "what answers at %s is no capsule (HTTP %d)", call->url,
              response.status);
    return NULL;
}

/* --- a stream --- */

struct http_transfer *
door_subscribe (struct http_client *client, const struct door_subscription *d,
                const struct http_events *events, void *ctx)
{
    static const char extension[] = CARD_STREAM_URI;
    _cleanup_free_ char *url = x_asprintf ("http://%s/", d->url);
    _cleanup_free_ char *body = door_call_text (d->method, d->params);
    char *bearer = d->token ? x_asprintf ("Bearer %s", secret_reveal (d->token)) : NULL;
    struct http_header headers[6] = {
        { "content-type", "application/json", strlen ("application/json") },
        { "accept", "text/event-stream", strlen ("text/event-stream") },
        { "a2a-version", "1.0", strlen ("1.0") },
    };
    size_t count = 3;
    if (d->last_id && *d->last_id)
        headers[count++] = (struct http_header){ "last-event-id", d->last_id, strlen (d->last_id) };
    if (d->is_extended)
        headers[count++] =
            (struct http_header){ "a2a-extensions", extension, sizeof (extension) - 1 };
    if (bearer)
        headers[count++] = (struct http_header){ "authorization", bearer, strlen (bearer) };
    struct http_request request = { .method = "POST",
                                    .url = url,
                                    .headers = headers,
                                    .header_count = count,
                                    .body_kind = HTTP_BODY_BUFFER,
                                    .body = body,
                                    .body_len = strlen (body),
                                    .connect_timeout_ms = d->connect_timeout_ms,
                                    .first_byte_timeout_ms = d->first_byte_timeout_ms,
                                    .between_bytes_timeout_ms = d->between_bytes_timeout_ms };
    struct http_transfer *transfer = http_start (client, &request, events, ctx);
    if (bearer)
        secret_wipe (bearer, strlen (bearer));
    free (bearer);
    return transfer;
}

/* --- who is there --- */

/* The session id the capsule extension of a card states, or NULL. */
static const char *
session_of (const json_t *card)
{
    size_t i;
    const json_t *extension;
    const json_t *list = json_object_get (json_object_get (card, "capabilities"), "extensions");
    json_array_foreach (list, i, extension) if (
        str_eq (json_get_string (extension, "uri"),
                CARD_CAPSULE_URI)) return json_get_string (json_object_get (extension, "params"),
                                                           "sessionId");
    return NULL;
}

/* The card a public door shows to everybody. Owned, or NULL. */
static json_t *
public_card (struct http_client *client, const char *url)
{
    _cleanup_free_ char *address = x_asprintf ("http://%s/.well-known/agent-card.json", url);
    struct http_fetch fetch = {
        .request = { .method = "GET", .url = address, .connect_timeout_ms = 2000 },
        .limit_bytes = ANSWER_LIMIT,
        .total_timeout_ms = 5000,
    };
    _cleanup_http_response_ struct http_response response = { 0 };
    if (! http_fetch (client, &fetch, &response, NULL, NULL) || response.status != 200)
        return NULL;
    return json_loadb (response.body.data ? response.body.data : "", response.body.len, 0, NULL);
}

bool
door_answers (struct http_client *client, const struct running_record *record)
{
    struct door_call call = { .url = record->url,
                              .token = record->door_token,
                              .method = "GetExtendedAgentCard",
                              .timeout_ms = 5000 };
    int code;
    _cleanup_json_ json_t *card = record->door_token ? door_call (client, &call, &code, NULL)
                                                     : public_card (client, record->url);
    return str_eq (session_of (card), record->session_id);
}

/* --- many at once --- */

struct round {
    struct http_client *client;
    const struct running_record *const *records;
    size_t count;
    bool *answers;
    atomic_size_t next;
};

static void *
ask_some (void *ctx)
{
    struct round *r = ctx;
    for (size_t i; (i = atomic_fetch_add (&r->next, 1)) < r->count;)
        r->answers[i] = door_answers (r->client, r->records[i]);
    return NULL;
}

void
doors_answer (struct http_client *client, const struct running_record *const *records, size_t count,
              bool *answers)
{
    struct round r = { .client = client, .records = records, .count = count, .answers = answers };
    pthread_t threads[MOST_AT_ONCE];
    size_t started = 0;
    while (started + 1 < count && started < MOST_AT_ONCE &&
           pthread_create (&threads[started], NULL, ask_some, &r) == 0)
        started++;
    ask_some (&r);
    for (size_t i = 0; i < started; i++)
        pthread_join (threads[i], NULL);
}

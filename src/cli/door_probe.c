/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks doors who they are. See door_probe.h.
 */
#include "cli/door_probe.h"

#include "base/alloc.h"
#include "base/json.h"
#include "door/card.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define CARD_LIMIT   (1024 * 1024)
#define MOST_AT_ONCE 16

static const char extended_request[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetExtendedAgentCard\",\"params\":{}}";

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

static bool
states_session (const struct http_response *response, bool is_rpc, const char *session_id)
{
    const char *text = response->body.data ? response->body.data : "";
    _cleanup_json_ json_t *answer = json_loadb (text, response->body.len, 0, NULL);
    const json_t *card = is_rpc ? json_object_get (answer, "result") : answer;
    return response->status == 200 && str_eq (session_of (card), session_id);
}

bool
door_answers (struct http_client *client, const struct running_record *record)
{
    bool is_rpc = record->door_token != NULL;
    _cleanup_free_ char *url =
        x_asprintf ("http://%s%s", record->url, is_rpc ? "/" : "/.well-known/agent-card.json");
    _cleanup_free_ char *bearer =
        is_rpc ? x_asprintf ("Bearer %s", secret_reveal (record->door_token)) : NULL;
    struct http_header headers[] = {
        { "content-type", "application/json", strlen ("application/json") },
        { "a2a-version", "1.0", strlen ("1.0") },
        { "authorization", bearer, bearer ? strlen (bearer) : 0 },
    };
    struct http_fetch fetch = {
        .request = { .method = is_rpc ? "POST" : "GET",
                     .url = url,
                     .headers = headers,
                     .header_count = is_rpc ? 3 : 0,
                     .body_kind = is_rpc ? HTTP_BODY_BUFFER : HTTP_BODY_NONE,
                     .body = is_rpc ? extended_request : NULL,
                     .body_len = is_rpc ? strlen (extended_request) : 0,
                     .connect_timeout_ms = 2000 },
        .limit_bytes = CARD_LIMIT,
        .total_timeout_ms = 5000,
    };
    _cleanup_http_response_ struct http_response response = { 0 };
    bool is_ours = http_fetch (client, &fetch, &response, NULL, NULL) &&
                   states_session (&response, is_rpc, record->session_id);
    if (bearer)
        secret_wipe (bearer, strlen (bearer));
    return is_ours;
}

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

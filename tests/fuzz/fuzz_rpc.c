/* SPDX-License-Identifier: Apache-2.0
 *
 * A JSON-RPC body at the door, with the header lines that change its meaning: the first byte picks
 * them, the second who asks, the rest is the body. The HTTP server is played here. What must hold:
 * exactly one answer, well-formed, echoing an id; and no task of another credential is touched.
 */
#include "tests/fuzz/fuzzing.h"

#include "base/json.h"
#include "door/callers/refuse.h"
#include "door/rpc.h"
#include "door/tasks/intake.h"
#include "door/tasks/registry.h"
#include "door/tasks/streams.h"
#include "door/tasks/tasks.h"
#include "net/server/http_exchange.h"

#include <strings.h>

#define SESSION "ses_00000000000000000000000000000001"

struct http_stream {
    const struct http_stream_source *source;
    void *ctx;
};

struct http_exchange {
    struct http_header headers[12];
    size_t header_count;
    const char *body;
    size_t body_len;
    unsigned answers;
    int status;
    char *reply;
    size_t reply_len;
    struct http_stream stream;
    bool is_stream;
};

/* --- the HTTP server's part --- */

size_t
http_exchange_headers (const struct http_exchange *x, const struct http_header **headers)
{
    *headers = x->headers;
    return x->header_count;
}

const char *
http_exchange_header (const struct http_exchange *x, const char *name, size_t *count)
{
    const char *first = NULL;
    size_t found = 0;
    for (size_t i = 0; i < x->header_count; i++)
        if (strcasecmp (x->headers[i].name, name) == 0 && found++ == 0)
            first = x->headers[i].value;
    if (count)
        *count = found;
    return first;
}

const char *
http_exchange_body (const struct http_exchange *x, size_t *len)
{
    *len = x->body_len;
    return x->body;
}

void
http_reply (struct http_exchange *x, int status, const struct http_header *headers,
            size_t header_count, const void *body, size_t len)
{
    (void)headers, (void)header_count;
    assert (x->answers++ == 0);
    x->status = status;
    x->reply = fuzz_text (body, len);
    x->reply_len = len;
}

bool
http_hold (struct http_exchange *x)
{
    (void)x;
    return true;
}

struct http_stream *
http_reply_stream (struct http_exchange *x, int status, const struct http_header *headers,
                   size_t header_count, const struct http_stream_source *source, void *ctx)
{
    (void)headers, (void)header_count;
    assert (x->answers++ == 0);
    x->status = status;
    x->is_stream = true;
    x->stream = (struct http_stream){ source, ctx };
    return &x->stream;
}

void
http_stream_wake (struct http_stream *stream)
{
    (void)stream;
}

void
door_refuse (struct http_exchange *x, const struct door_auth *auth, enum auth_refusal refusal,
             const char *credential, const char *scope)
{
    (void)auth, (void)credential, (void)scope;
    assert (refusal == AUTH_INSUFFICIENT_SCOPE);
    http_reply (x, 403, NULL, 0, "{}", 2);
}

/* --- one input --- */

static void
set_headers (struct http_exchange *x, uint8_t pick)
{
    static const struct {
        uint8_t bit;
        const char *name, *value;
    } lines[] = {
        { 1, "A2A-Version", "1.0" },
        { 2, "A2A-Extensions", "urn:x, " CARD_STREAM_URI },
        { 4, "x-murmur-task-origin", "completion" },
        { 8, "x-murmur-completion-session", SESSION },
        { 16, "x-murmur-task-origin", "peer" },
        { 32, "Last-Event-ID", " 3 " },
        { 64, "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" },
        { 128, "A2A-Version", "1.0" },
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (pick & lines[i].bit)
            x->headers[x->header_count++] =
                (struct http_header){ lines[i].name, lines[i].value, strlen (lines[i].value) };
}

static void
check_envelope (const char *text, size_t len)
{
    json_t *answer = json_loadb (text, len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    assert (answer && json_object_size (answer) == 3);
    assert (strcmp (json_string_value (json_object_get (answer, "jsonrpc")), "2.0") == 0);
    assert (json_object_get (answer, "id"));
    assert (! json_object_get (answer, "result") != ! json_object_get (answer, "error"));
    json_decref (answer);
}

/* Reads what a stream has now; its events are answers too. */
static void
read_stream (struct http_exchange *x)
{
    char chunk[4096];
    for (int i = 0; i < 64; i++)
        if (x->stream.source->read (x->stream.ctx, chunk, sizeof chunk) <= 0)
            break;
    x->stream.source->closed (x->stream.ctx);
}

/* One task has ended, one runs, one waits in the queue: all of them another credential's. */
static void
fill_registry (struct registry *r)
{
    static const struct caller other = { .credential = "other" };
    for (int i = 0; i < 3; i++) {
        const struct message_intake message = {
            .text = "x", .message_id = "m", .context_id = "ctx_1", .origin = ORIGIN_EVENT
        };
        struct route_result routed;
        const struct task *task;
        registry_route (r, &other, &message, &routed);
        route_result_clear (&routed);
        if (i < 2 && registry_next (r, 0, &task) == REGISTRY_TASK && i == 0)
            registry_end (r, task,
                          &(struct task_ending){ .state = TASK_COMPLETED, .response = "y" });
    }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static struct door_auth *auth;
    static const char *const scopes[] = { "SendMessage",         "SendStreamingMessage",
                                          "murmur.WatchSession", "GetTask",
                                          "ListTasks",           "CancelTask",
                                          "SubscribeToTask" };
    static const char *const credentials[] = { "mine", "mine", "operator", NULL };
    if (size < 2)
        return 0;
    const struct auth_declaration mine = { "mine", scopes, sizeof scopes / sizeof *scopes };
    if (! auth)
        auth = door_auth_new ("fuzz", &mine, 1);
    const char *credential = credentials[data[1] & 3];
    const struct registry_spec spec = { .acceptance = ACCEPT_QUEUE,
                                        .queue_depth = 4,
                                        .is_public = ! credential };
    struct registry *r = registry_new (&spec);
    fill_registry (r);
    const struct card_facts facts = { .capsule_name = "fuzz",
                                      .capsule_version = "1",
                                      .session_id = SESSION,
                                      .acceptance = ACCEPT_QUEUE,
                                      .is_authenticated = credential != NULL };
    struct rpc *rpc = rpc_new (&facts, r, credential ? auth : NULL);
    char *body = fuzz_text (data + 2, size - 2);
    struct http_exchange x = { .body = body, .body_len = size - 2 };
    set_headers (&x, data[0]);

    rpc_answer (rpc, &x, credential);
    if (! x.answers)
        registry_settle_waiters (r); /* a held send */
    assert (x.answers == 1);
    if (x.is_stream)
        read_stream (&x);
    else if (x.status == 200)
        check_envelope (x.reply, x.reply_len);
    if (credential && strcmp (credential, "mine") == 0) {
        const struct caller other = { .credential = "other" };
        const struct list_query live = { .page_size = 10,
                                         .has_state = true,
                                         .state = TASK_CANCELED };
        json_t *canceled = registry_list_json (r, &other, &live);
        assert (json_integer_value (json_object_get (canceled, "totalSize")) == 0);
        json_decref (canceled);
    }
    free (x.reply);
    rpc_free (rpc);
    registry_free (r);
    free (body);
    return 0;
}

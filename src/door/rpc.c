/* SPDX-License-Identifier: Apache-2.0 */
#include "door/rpc.h"

#include "base/alloc.h"
#include "door/callers/refuse.h"
#include "door/envelope.h"
#include "door/event_stream.h"
#include "door/tasks/intake.h"
#include "door/tasks/list_query.h"
#include "door/tasks/message.h"
#include "door/tasks/registry.h"
#include "door/tasks/task_state.h"
#include "net/server/http_exchange.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

struct rpc {
    struct registry *registry;
    const struct door_auth *auth; /* NULL: a public door */
    struct card_facts facts;      /* only what does not point anywhere, and the session id */
    char *session_id;
    char *extended_card;
};

/* One request on its way through the steps of door.md 2. */
struct call {
    struct rpc *rpc;
    struct http_exchange *x;
    struct envelope envelope;
    const char *origin; /* x-murmur-task-origin, as sent */
    enum door_method method;
    struct caller caller;
    bool uses_door_extension;
    bool has_stream_extension; /* activated by the client */
};

struct rpc *
rpc_new (const struct card_facts *facts, struct registry *registry, const struct door_auth *auth)
{
    struct rpc *r = x_new0 (struct rpc);
    r->registry = registry;
    r->auth = auth;
    r->facts = *facts;
    r->session_id = x_strdup (facts->session_id);
    r->extended_card = card_text (facts, true);
    return r;
}

void
rpc_free (struct rpc *r)
{
    if (! r)
        return;
    free (r->session_id);
    free (r->extended_card);
    free (r);
}

void
rpc_settle_all (struct rpc *r)
{
    if (r)
        registry_settle_waiters (r->registry);
}

/* --- answers --- */

static void
send_json (struct http_exchange *x, const char *body, const char *extensions)
{
    struct http_header headers[2] = { { "content-type", "application/json", 16 } };
    size_t count = 1;
    if (extensions)
        headers[count++] =
            (struct http_header){ "A2A-Extensions", extensions, strlen (extensions) };
    http_reply (x, 200, headers, count, body, strlen (body));
}

static void
answer_error (struct call *c, int code, const char *message, json_t *metadata)
{
    _cleanup_free_ char *body = envelope_error (c->envelope.id, code, message, metadata);
    send_json (c->x, body, NULL);
}

/* The extensions a result used, door first; NULL when none. */
static const char *
extensions_used (const struct call *c)
{
    bool streams = c->method == METHOD_WATCH_SESSION ||
                   (c->has_stream_extension && (c->method == METHOD_SEND_STREAMING_MESSAGE ||
                                                c->method == METHOD_SUBSCRIBE_TO_TASK));
    bool door = c->uses_door_extension || c->method == METHOD_WATCH_SESSION ||
                c->method == METHOD_STOP_SESSION;
    return door && streams ? CARD_DOOR_URI ", " CARD_STREAM_URI
           : door          ? CARD_DOOR_URI
           : streams       ? CARD_STREAM_URI
                           : NULL;
}

/* Takes the result over. */
static void
answer_result (struct call *c, json_t *result)
{
    _cleanup_free_ char *text = json_text (result, JSON_TEXT_SORTED);
    _cleanup_free_ char *body = envelope_result (c->envelope.id, text);
    json_decref (result);
    send_json (c->x, body, extensions_used (c));
}

static json_t *
task_result (json_t *task)
{
    json_t *result = json_object ();
    json_object_set_new (result, "task", task);
    return result;
}

static json_t *
text_metadata (const char *key, const char *value)
{
    json_t *metadata = json_object ();
    json_set_string (metadata, key, value);
    return metadata;
}

static json_t *
state_metadata (const char *task_id, enum task_state state)
{
    json_t *metadata = json_object ();
    json_set_string (metadata, "state", task_state_wire (state));
    json_set_string (metadata, "taskId", task_id);
    return metadata;
}

/* --- version and extensions --- */

static bool
is_served_version (const char *value)
{
    if (strncmp (value, "1.0", 3) != 0)
        return false;
    if (value[3] == '\0')
        return true;
    const char *digits = value + 4;
    return value[3] == '.' && *digits && digits[strspn (digits, "0123456789")] == '\0';
}

static bool
check_version (struct call *c)
{
    const struct http_header *headers;
    size_t count = http_exchange_headers (c->x, &headers), found = 0;
    _cleanup_buf_ struct buf asked = { 0 };
    buf_puts (&asked, "");
    for (size_t i = 0; i < count; i++)
        if (strcasecmp (headers[i].name, "A2A-Version") == 0)
            buf_printf (&asked, "%s%s", found++ ? ", " : "", headers[i].value);
    if (found == 1 && is_served_version (asked.data))
        return true;
    json_t *metadata = json_object ();
    json_set_string_n (metadata, "requestedVersion", asked.data, asked.len);
    json_set_string (metadata, "supportedVersions", "1.0");
    answer_error (c, RPC_VERSION_NOT_SUPPORTED, NULL, metadata);
    return false;
}

static bool
lists_extension (const char *value, const char *uri)
{
    size_t len = strlen (uri);
    while (*value) {
        value += strspn (value, ", \t");
        size_t item = strcspn (value, ",");
        size_t end = item;
        while (end && (value[end - 1] == ' ' || value[end - 1] == '\t'))
            end--;
        if (end == len && strncmp (value, uri, len) == 0)
            return true;
        value += item;
    }
    return false;
}

static bool
activates (const struct http_exchange *x, const char *uri)
{
    const struct http_header *headers;
    size_t count = http_exchange_headers (x, &headers);
    for (size_t i = 0; i < count; i++)
        if (strcasecmp (headers[i].name, "A2A-Extensions") == 0 &&
            lists_extension (headers[i].value, uri))
            return true;
    return false;
}

/* --- sending a message --- */

static void
answer_fault (struct call *c, const struct message_fault *fault)
{
    json_t *metadata = NULL;
    if (fault->code == RPC_CONTENT_TYPE_NOT_SUPPORTED) {
        _cleanup_free_ char *index = x_asprintf ("%d", fault->part_index);
        metadata = json_object ();
        if (fault->media_type)
            json_set_string (metadata, "mediaType", fault->media_type);
        json_set_string (metadata, "partIndex", index);
    }
    answer_error (c, fault->code, fault->text, metadata);
}

/* Answers what routing refused; false when the message was routed or made a rejected task. */
static bool
answer_refusal (struct call *c, const struct message *message, const struct route_result *route)
{
    _cleanup_free_ char *text = NULL;
    switch (route->outcome) {
    case ROUTE_NOT_FOUND:
        answer_error (c, RPC_TASK_NOT_FOUND, NULL, text_metadata ("taskId", message->task_id));
        return true;
    case ROUTE_NOT_WAITING:
        text = x_asprintf ("Task is %s and takes no message%s%s", task_state_word (route->state),
                           route->why ? "; " : "", route->why ? route->why : "");
        answer_error (c, RPC_UNSUPPORTED_OPERATION, text,
                      state_metadata (message->task_id, route->state));
        return true;
    case ROUTE_NOT_RECORDED:
        answer_error (c, RPC_INTERNAL,
                      "Internal error: the task could not be recorded and was not accepted", NULL);
        return true;
    case ROUTE_NO_ANSWER:
        text = x_asprintf ("Invalid params: %s", route->why);
        answer_error (c, RPC_INVALID_PARAMS, text, NULL);
        return true;
    case ROUTE_CONTEXT_DIFFERS:
        text = x_asprintf ("Invalid params: message.contextId %s is not the task's context %s",
                           message->context_id, route->context);
        answer_error (c, RPC_INVALID_PARAMS, text, NULL);
        return true;
    default:
        return false;
    }
}

static void
route (struct call *c, const struct message *message, struct route_result *out)
{
    const char *trust = http_exchange_header (c->x, "x-murmur-task-trust", NULL);
    bool is_peer = c->origin && strcasecmp (c->origin, "peer") == 0;
    const struct message_intake intake = {
        .task_id = message->task_id,
        .context_id = message->context_id,
        .text = message->text,
        .data = message->data,
        .message_id = message->message_id,
        .traceparent = http_exchange_header (c->x, "traceparent", NULL),
        .references = &message->references,
        .part_kinds = message->part_kinds,
        .origin = is_peer ? ORIGIN_PEER : ORIGIN_EVENT,
        .is_trusted = is_peer && trust && strcasecmp (trust, "trusted") == 0,
        .forgets_session = message->forgets_session,
    };
    registry_route (c->rpc->registry, &c->caller, &intake, out);
    c->uses_door_extension = message->uses_door_metadata;
}

/* A send whose answer waits for its task. */
struct held_send {
    struct http_exchange *x;
    char *id;
    const char *extensions;
};

/* Under the registry's lock, from whichever thread settled the task. */
static void
on_settled (void *ctx, json_t *task)
{
    struct held_send *held = ctx;
    _cleanup_json_ json_t *result = task_result (task);
    _cleanup_free_ char *text = json_text (result, JSON_TEXT_SORTED);
    _cleanup_free_ char *body = envelope_result (held->id, text);
    send_json (held->x, body, held->extensions);
    free (held->id);
    free (held);
}

static void
send_message (struct call *c)
{
    struct message message = { 0 };
    struct message_fault fault = { 0 };
    struct route_result result = { 0 };
    if (! message_read (c->envelope.params, c->rpc->facts.has_harness, &message, &fault))
        answer_fault (c, &fault);
    else if (message.returns_immediately || http_hold (c->x)) {
        route (c, &message, &result);
        bool is_final = message.returns_immediately || result.outcome == ROUTE_BUSY;
        if (answer_refusal (c, &message, &result))
            ;
        else if (is_final)
            answer_result (c, task_result (json_incref (result.task)));
        else {
            struct held_send *held = x_new0 (struct held_send);
            *held = (struct held_send){ c->x, x_strdup (c->envelope.id), extensions_used (c) };
            const char *id = json_get_string (result.task, "id");
            registry_when_settled (c->rpc->registry, &c->caller, id, on_settled, held);
        }
    }
    route_result_clear (&result);
    message_clear (&message);
    message_fault_clear (&fault);
}

/* --- streams --- */

/* Last-Event-ID: unsigned decimal with blanks dropped around it; anything else reads as absent. */
static bool
read_cursor (const struct http_exchange *x, uint64_t *cursor)
{
    const char *text = http_exchange_header (x, "Last-Event-ID", NULL);
    if (! text)
        return false;
    text += strspn (text, " \t");
    size_t digits = strspn (text, "0123456789");
    if (digits == 0 || text[digits + strspn (text + digits, " \t")] != '\0')
        return false;
    *cursor = 0;
    for (size_t i = 0; i < digits; i++)
        if (__builtin_mul_overflow (*cursor, 10, cursor) ||
            __builtin_add_overflow (*cursor, (uint64_t)(text[i] - '0'), cursor))
            return false;
    return true;
}

static void
start_stream (struct call *c, struct event_stream *stream)
{
    uint64_t cursor = 0;
    bool has_cursor = read_cursor (c->x, &cursor);
    event_stream_replay (stream, has_cursor, cursor);
    event_stream_start (stream, c->x, extensions_used (c));
}

static void
send_streaming_message (struct call *c)
{
    struct message message = { 0 };
    struct message_fault fault = { 0 };
    struct route_result result = { 0 };
    if (! message_read (c->envelope.params, c->rpc->facts.has_harness, &message, &fault)) {
        answer_fault (c, &fault);
    } else if (http_hold (c->x)) {
        struct event_stream *stream = event_stream_new (c->rpc->registry, STREAM_SEND,
                                                        c->envelope.id, c->has_stream_extension);
        route (c, &message, &result);
        if (answer_refusal (c, &message, &result))
            event_stream_free (stream);
        else if (result.outcome == ROUTE_BUSY) {
            event_stream_only_task (stream, json_incref (result.task));
            event_stream_start (stream, c->x, extensions_used (c));
        } else {
            event_stream_open_with_task (stream, json_incref (result.task), result.state);
            start_stream (c, stream);
        }
    }
    route_result_clear (&result);
    message_clear (&message);
    message_fault_clear (&fault);
}

static void
watch_session (struct call *c)
{
    if (http_hold (c->x))
        start_stream (c, event_stream_new (c->rpc->registry, STREAM_WATCH, c->envelope.id, true));
}

/* params.id as a string that is not empty; answers otherwise. */
static const char *
required_id (struct call *c, const char *text)
{
    const char *id = json_get_string (c->envelope.params, "id");
    if (id && *id)
        return id;
    answer_error (c, RPC_INVALID_PARAMS, text, NULL);
    return NULL;
}

static void
subscribe_to_task (struct call *c)
{
    const char *id = required_id (c, "SubscribeToTask requires an id");
    if (! id || ! http_hold (c->x))
        return;
    struct event_stream *stream = event_stream_new (c->rpc->registry, STREAM_SUBSCRIBE,
                                                    c->envelope.id, c->has_stream_extension);
    enum task_state state;
    json_t *task = registry_task_json (c->rpc->registry, &c->caller, id, NULL, &state);
    if (task && ! task_state_is_terminal (state)) {
        event_stream_open_with_task (stream, task, state);
        start_stream (c, stream);
        return;
    }
    event_stream_free (stream);
    if (task)
        answer_error (c, RPC_UNSUPPORTED_OPERATION, "Task has ended: there is nothing to follow",
                      state_metadata (id, state));
    else
        answer_error (c, RPC_TASK_NOT_FOUND, NULL, text_metadata ("taskId", id));
    json_decref (task);
}

/* --- the other methods --- */

static void
get_task (struct call *c)
{
    const char *id = required_id (c, "GetTask requires an id");
    if (! id)
        return;
    json_t *task = registry_task_json (c->rpc->registry, &c->caller, id, NULL, NULL);
    if (task)
        answer_result (c, task);
    else
        answer_error (c, RPC_TASK_NOT_FOUND, NULL, text_metadata ("taskId", id));
}

static void
list_tasks (struct call *c)
{
    struct list_query query;
    _cleanup_free_ char *cursor_id = NULL, *fault = NULL;
    if (list_query_read (c->envelope.params, &query, &cursor_id, &fault))
        answer_result (c, registry_list_json (c->rpc->registry, &c->caller, &query));
    else
        answer_error (c, RPC_INVALID_PARAMS, fault, NULL);
}

/* One artifact `residue`, a data part an item; nothing at all when nothing is left running. */
static void
add_residue (struct call *c, const char *task_id, json_t *task)
{
    _cleanup_json_ json_t *items = registry_residue (c->rpc->registry, task_id);
    if (json_array_size (items) == 0)
        return;
    json_t *parts = json_array (), *item;
    size_t i;
    json_array_foreach (items, i, item) json_array_append_new (
        parts, json_pack ("{s:O, s:s}", "data", item, "mediaType", "application/json"));
    json_object_set_new (task, "artifacts",
                         json_pack ("[{s:s, s:s, s:o}]", "artifactId", "residue", "name", "residue",
                                    "parts", parts));
}

static void
cancel_task (struct call *c)
{
    const char *id = json_get_string (c->envelope.params, "id");
    if (! id) {
        answer_error (c, RPC_INVALID_PARAMS, "CancelTask requires an id", NULL);
        return;
    }
    json_t *task = NULL;
    enum task_state state = TASK_SUBMITTED;
    switch (registry_cancel (c->rpc->registry, &c->caller, id, &task, &state)) {
    case CANCEL_DONE:
        add_residue (c, id, task);
        answer_result (c, task);
        break;
    case CANCEL_ENDED:
        answer_error (c, RPC_TASK_NOT_CANCELABLE, NULL, state_metadata (id, state));
        break;
    case CANCEL_NOT_FOUND:
        answer_error (c, RPC_TASK_NOT_FOUND, NULL, text_metadata ("taskId", id));
        break;
    }
}

static void
stop_session (struct call *c)
{
    _cleanup_strv_ struct strv ids = { 0 };
    registry_cancel_all (c->rpc->registry, &ids);
    json_t *result = json_object (), *canceled = json_array ();
    for (size_t i = 0; i < ids.len; i++)
        json_array_append_new (canceled, json_string (ids.items[i]));
    json_object_set_new (result, "canceled", canceled);
    json_object_set_new (result, "residue", registry_residue (c->rpc->registry, NULL));
    json_set_string (result, "session_id", c->rpc->session_id);
    answer_result (c, result);
}

static void
get_extended_card (struct call *c)
{
    _cleanup_free_ char *body = envelope_result (c->envelope.id, c->rpc->extended_card);
    send_json (c->x, body, NULL);
}

/* --- completions: a delegated child reporting (door.md 7.8) --- */

/* The outcome itself is in the child's record: here it is only said that there is one. */
static void
acknowledge_completion (struct call *c, const char *delegation)
{
    const json_t *sent = json_object_get (c->envelope.params, "message");
    const char *context = json_get_string (sent, "contextId");
    _cleanup_free_ char *id = x_strdup (delegation);
    str_lower (id);
    _cleanup_free_ char *message_id = x_asprintf ("msg_%s_received", id);
    json_t *message = json_object ();
    json_set_string (message, "messageId", message_id);
    if (context)
        json_set_string (message, "contextId", context);
    json_set_string (message, "role", "ROLE_AGENT");
    json_object_set_new (message, "parts",
                         json_pack ("[{s:{s:s, s:b}, s:s}]", "data", "delegation_id", id,
                                    "received", true, "mediaType", "application/json"));
    answer_result (c, json_pack ("{s:o}", "message", message));
}

static void
answer_completion (struct call *c)
{
    const char *session = http_exchange_header (c->x, "x-murmur-completion-session", NULL);
    const char *delegation = http_exchange_header (c->x, "x-murmur-delegation-id", NULL);
    if (! session || strcasecmp (session, c->rpc->session_id) != 0) {
        _cleanup_free_ char *text =
            x_asprintf ("This completion is addressed to %s", session ? session : "no session");
        answer_error (c, RPC_COMPLETION_MISADDRESSED, text,
                      text_metadata ("addressedSession", session ? session : ""));
    } else if (c->method != METHOD_SEND_MESSAGE)
        answer_error (c, RPC_METHOD_NOT_FOUND, NULL, NULL);
    else if (! delegation || ! *delegation)
        answer_error (c, RPC_COMPLETION_NOT_AWAITED, NULL, NULL);
    else if (registry_take_completion (c->rpc->registry, delegation))
        acknowledge_completion (c, delegation);
    else
        answer_error (c, RPC_COMPLETION_NOT_AWAITED, NULL,
                      text_metadata ("delegationId", delegation));
}

/* --- the table --- */

static const struct {
    void (*run) (struct call *c);
    int when_not_served;
} table[] = {
    [METHOD_SEND_MESSAGE] = { send_message, RPC_METHOD_NOT_FOUND },
    [METHOD_SEND_STREAMING_MESSAGE] = { send_streaming_message, RPC_UNSUPPORTED_OPERATION },
    [METHOD_WATCH_SESSION] = { watch_session, RPC_UNSUPPORTED_OPERATION },
    [METHOD_GET_TASK] = { get_task, RPC_UNSUPPORTED_OPERATION },
    [METHOD_LIST_TASKS] = { list_tasks, RPC_UNSUPPORTED_OPERATION },
    [METHOD_CANCEL_TASK] = { cancel_task, RPC_UNSUPPORTED_OPERATION },
    [METHOD_SUBSCRIBE_TO_TASK] = { subscribe_to_task, RPC_UNSUPPORTED_OPERATION },
    [METHOD_STOP_SESSION] = { stop_session, RPC_UNSUPPORTED_OPERATION },
    [METHOD_GET_EXTENDED_AGENT_CARD] = { get_extended_card, RPC_UNSUPPORTED_OPERATION },
    [METHOD_PUSH_CONFIG] = { NULL, RPC_PUSH_NOT_SUPPORTED },
    [METHOD_UNKNOWN] = { NULL, RPC_METHOD_NOT_FOUND },
};

static void
dispatch (struct call *c)
{
    if (! door_method_is_served (c->method, &c->rpc->facts)) {
        answer_error (c, table[c->method].when_not_served, NULL, NULL);
        return;
    }
    const char *scope = door_method_name (c->method);
    bool needs_scope = c->rpc->auth && c->method != METHOD_GET_EXTENDED_AGENT_CARD;
    if (needs_scope && ! door_auth_allows (c->rpc->auth, c->caller.credential, scope)) {
        door_refuse (c->x, c->rpc->auth, AUTH_INSUFFICIENT_SCOPE, c->caller.credential, scope);
        return;
    }
    if (! json_is_object (c->envelope.params)) {
        answer_error (c, RPC_INVALID_PARAMS, "Invalid parameters: params must be an object", NULL);
        return;
    }
    const json_t *tenant = json_object_get (c->envelope.params, "tenant");
    if (tenant && ! (json_is_string (tenant) && json_string_length (tenant) == 0)) {
        answer_error (c, RPC_INVALID_PARAMS, "Invalid params: tenant is not supported", NULL);
        return;
    }
    table[c->method].run (c);
}

void
rpc_answer (struct rpc *r, struct http_exchange *x, const char *credential)
{
    struct call c = { .rpc = r, .x = x, .caller = { credential, auth_member_of (credential) } };
    size_t len;
    const char *body = http_exchange_body (x, &len);
    int refusal = envelope_read (body, len, &c.envelope);
    c.origin = http_exchange_header (x, "x-murmur-task-origin", NULL);
    if (refusal)
        answer_error (&c, refusal, NULL, NULL);
    else if (check_version (&c)) {
        c.method = door_method_find (c.envelope.method);
        c.has_stream_extension = activates (x, CARD_STREAM_URI);
        if (c.origin && strcasecmp (c.origin, "completion") == 0)
            answer_completion (&c);
        else
            dispatch (&c);
    }
    envelope_clear (&c.envelope);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The door over bare sockets: the card, envelopes, tasks, who may ask.
 */
#include "base/clock.h"
#include "base/json.h"
#include "door/door.h"
#include "door/tasks/intake.h"
#include "door/tasks/streams.h"
#include "door/tasks/tasks.h"
#include "tests/unit/door/door_bench.h"
#include "tests/unit/net/loop_server.h"
#include "tests/unit/testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* --- card and paths --- */

static void
test_the_public_card_is_exact (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_QUEUE, .spec.queue_depth = 1 };
    bench_begin (&b);
    _cleanup_free_ char *head = NULL;
    _cleanup_free_ char *text =
        exchange (&b, "GET /.well-known/agent-card.json HTTP/1.1\r\nHost: x\r\n\r\n", &head);
    assert_true (strncmp (head, "HTTP/1.1 200 ", 13) == 0);
    assert_non_null (strcasestr (head, "\r\ncontent-type: application/json\r\n"));
    assert_null (strcasestr (head, "\r\nconnection: close"));
    _cleanup_json_ json_t *card = json_loads (text, 0, NULL);
    assert_int_equal (json_object_size (card), 10);
    assert_string_equal (json_get_string (card, "description"), "Murmur capsule demo 1.2.3");
    _cleanup_free_ char *url = x_asprintf ("http://localhost:%u", door_port (b.door));
    const json_t *interface = json_array_get (json_object_get (card, "supportedInterfaces"), 0);
    assert_string_equal (json_get_string (interface, "url"), url);
    const json_t *capabilities = json_object_get (card, "capabilities");
    assert_true (json_is_true (json_object_get (capabilities, "streaming")));
    const json_t *extensions = json_object_get (capabilities, "extensions");
    assert_int_equal (json_array_size (extensions), 3);
    assert_string_equal (json_get_string (json_array_get (extensions, 0), "uri"), CARD_DOOR_URI);
    const json_t *capsule = json_object_get (json_array_get (extensions, 1), "params");
    assert_string_equal (json_get_string (capsule, "sessionId"),
                         "ses_00000000000000000000000000000001");
    assert_int_equal (json_array_size (json_object_get (capsule, "tools")), 1);
    assert_true (json_is_false (json_object_get (capsule, "shell")));
    assert_true (json_is_true (json_object_get (capsule, "network")));
    const json_t *methods =
        json_object_get (json_object_get (json_array_get (extensions, 0), "params"), "methods");
    assert_int_equal (json_array_size (methods), 8);
    assert_string_equal (json_string_value (json_array_get (methods, 2)), "murmur.WatchSession");
    assert_int_equal (json_array_size (json_object_get (card, "skills")), 1);
    bench_end (&b);
}

static void
test_door_1_an_authenticated_doors_public_card_says_nothing_of_the_session (void **state)
{
    (void)state;
    struct bench b = { 0 };
    struct card_facts facts = facts_of (&b);
    facts.acceptance = ACCEPT_SINGLE;
    facts.is_authenticated = true;
    _cleanup_free_ char *text = card_text (&facts, false), *extended = card_text (&facts, true);
    static const char *const hidden[] = { "sessionId", "tools", "shell", "network\"", "planes" };
    for (size_t i = 0; i < ARRAY_LEN (hidden); i++) {
        assert_null (strstr (text, hidden[i]));
        assert_non_null (strstr (extended, hidden[i]));
    }
    assert_non_null (strstr (text, "GetExtendedAgentCard"));
    assert_non_null (strstr (text, "{\"schemes\":{\"bearer\":{\"list\":[\"SendMessage\"]}}}"));
}

static void
test_what_is_not_there_is_an_empty_404 (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_SINGLE };
    bench_begin (&b);
    static const char *const requests[] = {
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /.well-known/agent-card.jsonx HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /.well-known/agent-card.json HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
        "OPTIONS / HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\r\n",
        "POST //  HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
        "2\r\n\r\n{}",
        "GET /controls HTTP/1.1\r\nHost: x\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN (requests); i++) {
        _cleanup_free_ char *head = NULL;
        _cleanup_free_ char *body = exchange (&b, requests[i], &head);
        if (strncmp (head, "HTTP/1.1 404 ", 13) != 0 ||
            ! strcasestr (head, "content-length: 0\r\n"))
            fail_msg ("%s -> %s", requests[i], head);
        assert_null (strcasestr (head, "access-control"));
        assert_string_equal (body, "");
    }
    bench_end (&b);
}

static void
test_door_26_peers_are_refused_alike_whatever_they_ask (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_SINGLE };
    bench_begin (&b);
    static const char *const requests[] = {
        "GET /x HTTP/1.1\r\nHost: x\r\nX-Murmur-Task-Origin: PEER\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nX-Murmur-Task-Origin: peer\r\nContent-Type: "
        "application/json\r\nContent-Length: 2\r\n\r\n{}",
        "DELETE /resources/files HTTP/1.1\r\nHost: x\r\nx-murmur-task-origin: peer\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN (requests); i++) {
        _cleanup_free_ char *head = NULL;
        _cleanup_free_ char *body = exchange (&b, requests[i], &head);
        assert_true (strncmp (head, "HTTP/1.1 403 ", 13) == 0);
        assert_string_equal (body,
                             "{\"error\":\"peer_not_accepted\",\"message\":\"This capsule does "
                             "not accept requests from peers.\"}");
    }
    bench_end (&b);
}

/* --- envelope and version --- */

static void
test_door_5_envelopes (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_SINGLE };
    bench_begin (&b);
    static const struct {
        const char *body, *answer_start;
    } rows[] = {
        { "{x", "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"Invalid "
                "JSON payload\"}}" },
        { "[{}]",
          "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"Request "
          "payload validation error\"}}" },
        { "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":7}",
          "{\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":-32600," },
        { "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"method\":\"x\"}",
          "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600," },
        { "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}",
          "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600," },
        { "{\"id\": 18446744073709551615 ,\"jsonrpc\":\"2.0\",\"method\":\"tasks/get\"}",
          "{\"jsonrpc\":\"2.0\",\"id\":18446744073709551615,\"error\":{\"code\":-32601," },
        { "{\"jsonrpc\":\"2.0\",\"id\":18446744073709551616,\"method\":\"x\"}",
          "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600," },
        { "{\"jsonrpc\":\"2.0\",\"id\":-9223372036854775808,\"method\":\"x\"}",
          "{\"jsonrpc\":\"2.0\",\"id\":-9223372036854775808,\"error\":{\"code\":-32601," },
        { "{\"a\":{\"id\":9},\"jsonrpc\":\"2.0\",\"id\":\"q\\\"\",\"method\":\"x\"}",
          "{\"jsonrpc\":\"2.0\",\"id\":\"q\\\"\",\"error\":{\"code\":-32601,\"message\":\"Method "
          "not "
          "found\"}}" },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\",\"params\":[]}",
          "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602," },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\",\"params\":{\"tenant\":\"t\"}}",
          "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602," },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"DeleteTaskPushNotificationConfig\"}",
          "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32003," },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetExtendedAgentCard\"}",
          "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32004," },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        int fd = dial (&b);
        post (fd, VERSION, rows[i].body);
        _cleanup_free_ char *answer = read_answer (fd, NULL);
        close (fd);
        if (! str_starts (answer, rows[i].answer_start))
            fail_msg ("%s -> %s", rows[i].body, answer);
    }
    bench_end (&b);
}

static void
test_door_3_and_4_versions (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_SINGLE };
    bench_begin (&b);
    static const char *const refused[] = { "",
                                           "A2A-Version: \r\n",
                                           "A2A-Version: 1\r\n",
                                           "A2A-Version: 1.1\r\n",
                                           "A2A-Version: 1.0x\r\n",
                                           "A2A-Version: 1.0.\r\n",
                                           "A2A-Version: 0.3\r\n",
                                           "A2A-Version: 1.0\r\nA2A-Version: 1.0\r\n" };
    static const char *const served[] = { "A2A-Version:  1.0 \r\n", "A2A-Version: 1.0.1\r\n",
                                          "a2a-version: 1.0\r\n" };
    const char *body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ListTasks\"}";
    for (size_t i = 0; i < ARRAY_LEN (refused); i++) {
        _cleanup_json_ json_t *answer = call (&b, refused[i], body);
        assert_int_equal (error_code (answer), -32009);
        assert_string_equal (reason_of (answer), "VERSION_NOT_SUPPORTED");
    }
    for (size_t i = 0; i < ARRAY_LEN (served); i++) {
        _cleanup_json_ json_t *answer = call (&b, served[i], body);
        assert_int_equal (error_code (answer), 0);
    }
    bench_end (&b);
}

/* --- tasks --- */

static void
test_a_task_is_queued_run_and_read (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_QUEUE, .spec.queue_depth = 2 };
    bench_begin (&b);
    _cleanup_json_ json_t *sent = send_text (&b, "hello");
    assert_string_equal (state_of (task_of (sent)), "TASK_STATE_SUBMITTED");
    const struct task *task;
    assert_int_equal (registry_next (b.registry, 0, &task), REGISTRY_TASK);
    assert_string_equal (task->text, "hello");
    assert_string_equal (task->id, json_get_string (task_of (sent), "id"));
    assert_int_equal (task->origin, ORIGIN_EVENT);
    assert_false (task->is_trusted);
    _cleanup_json_ json_t *working = get_task (&b, task->id);
    assert_string_equal (state_of (json_object_get (working, "result")), "TASK_STATE_WORKING");
    finish (&b, task, "the answer");
    _cleanup_json_ json_t *done = get_task (&b, task->id);
    const json_t *result = json_object_get (done, "result");
    assert_string_equal (state_of (result), "TASK_STATE_COMPLETED");
    const json_t *artifact = json_array_get (json_object_get (result, "artifacts"), 0);
    assert_string_equal (json_get_string (artifact, "name"), "response");
    assert_int_equal (registry_next (b.registry, 0, &task), REGISTRY_NOTHING);
    bench_end (&b);
}

static void
test_door_9_a_send_is_held_until_its_task_settles (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_SINGLE };
    bench_begin (&b);
    int fd = dial (&b);
    post (fd, VERSION,
          "{\"jsonrpc\":\"2.0\",\"id\":\"h\",\"method\":\"SendMessage\",\"params\":{\"message\":"
          "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\"}]}}}");
    const struct task *task;
    assert_int_equal (registry_next (b.registry, 10000, &task), REGISTRY_TASK);
    char byte;
    assert_int_equal (recv (fd, &byte, 1, MSG_DONTWAIT), -1);
    finish (&b, task, "held");
    _cleanup_free_ char *text = read_answer (fd, NULL);
    _cleanup_json_ json_t *answer = json_loads (text, 0, NULL);
    assert_string_equal (state_of (task_of (answer)), "TASK_STATE_COMPLETED");
    assert_string_equal (json_get_string (answer, "id"), "h");
    close (fd);
    bench_end (&b);
}

static void
test_door_11_no_room_is_a_rejected_task (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_QUEUE, .spec.queue_depth = 1 };
    bench_begin (&b);
    const struct task *task;
    json_decref (send_text (&b, "one"));
    assert_int_equal (registry_next (b.registry, 0, &task), REGISTRY_TASK);
    json_decref (send_text (&b, "two"));
    _cleanup_json_ json_t *third = send_text (&b, "three");
    assert_string_equal (state_of (task_of (third)), "TASK_STATE_REJECTED");
    const json_t *message =
        json_object_get (json_object_get (task_of (third), "status"), "message");
    assert_string_equal (
        json_get_string (json_array_get (json_object_get (message, "parts"), 0), "text"),
        "task rejected: capsule is busy");
    _cleanup_json_ json_t *unknown = get_task (&b, json_get_string (task_of (third), "id"));
    assert_int_equal (error_code (unknown), -32001);
    finish (&b, task, NULL);
    bench_end (&b);
}

static json_t *
cancel (const struct bench *b, const char *id)
{
    _cleanup_free_ char *body = x_asprintf (
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"CancelTask\",\"params\":{\"id\":\"%s\"}}", id);
    return call (b, VERSION, body);
}

static void
test_door_20_and_21_cancelling (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_QUEUE, .spec.queue_depth = 1 };
    bench_begin (&b);
    const struct task *running, *next;
    json_decref (send_text (&b, "one"));
    assert_int_equal (registry_next (b.registry, 0, &running), REGISTRY_TASK);
    _cleanup_json_ json_t *queued = send_text (&b, "two");
    const char *queued_id = json_get_string (task_of (queued), "id");

    _cleanup_json_ json_t *canceled = cancel (&b, queued_id);
    assert_string_equal (state_of (json_object_get (canceled, "result")), "TASK_STATE_CANCELED");
    assert_null (json_object_get (json_object_get (canceled, "result"), "artifacts"));
    /* Its place is free at once. */
    _cleanup_json_ json_t *third = send_text (&b, "three");
    assert_string_equal (state_of (task_of (third)), "TASK_STATE_SUBMITTED");

    _cleanup_json_ json_t *stopped = cancel (&b, running->id);
    assert_string_equal (state_of (json_object_get (stopped, "result")), "TASK_STATE_CANCELED");
    assert_true (cancel_is_raised (running->cancel));
    struct task_ending late = { .state = TASK_COMPLETED, .response = "too late" };
    assert_int_equal (registry_end (b.registry, running, &late), TASK_CANCELED);
    _cleanup_json_ json_t *read = get_task (&b, running->id);
    assert_string_equal (state_of (json_object_get (read, "result")), "TASK_STATE_CANCELED");
    assert_null (json_object_get (json_object_get (read, "result"), "artifacts"));
    _cleanup_json_ json_t *again = cancel (&b, running->id);
    assert_int_equal (error_code (again), -32002);

    assert_int_equal (registry_next (b.registry, 0, &next), REGISTRY_CANCELED_QUEUED);
    assert_string_equal (next->id, queued_id);
    assert_int_equal (registry_next (b.registry, 0, &next), REGISTRY_TASK);
    assert_string_equal (next->text, "three");
    finish (&b, next, NULL);
    bench_end (&b);
}

static void
test_door_22_stopping_cancels_everything_twice_without_an_error (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_QUEUE, .spec.queue_depth = 3 };
    bench_begin (&b);
    json_decref (send_text (&b, "one"));
    json_decref (send_text (&b, "two"));
    const char *body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"murmur.StopSession\"}";
    for (size_t expected = 2;; expected = 0) {
        int fd = dial (&b);
        _cleanup_free_ char *head = NULL;
        post (fd, VERSION, body);
        _cleanup_free_ char *text = read_answer (fd, &head);
        close (fd);
        _cleanup_json_ json_t *answer = json_loads (text, 0, NULL);
        const json_t *result = json_object_get (answer, "result");
        assert_int_equal (json_object_size (result), 3);
        assert_int_equal (json_array_size (json_object_get (result, "canceled")), expected);
        assert_true (json_is_array (json_object_get (result, "residue")));
        assert_non_null (strstr (head, CARD_DOOR_URI));
        if (expected == 0)
            break;
    }
    bench_end (&b);
}

static void
test_door_7_and_8_messages_are_read_strictly (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_QUEUE, .spec.queue_depth = 9 };
    bench_begin (&b);
    static const struct {
        const char *message;
        int code;
    } rows[] = {
        { "{\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\"}]}", -32602 },
        { "{\"messageId\":\"m\",\"role\":\"user\",\"parts\":[{\"text\":\"x\"}]}", -32602 },
        { "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[]}", -32602 },
        { "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\",\"data\":1}]}",
          -32602 },
        { "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":null}]}", -32602 },
        { "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"raw\":\"eA==\"}]}", -32005 },
        { "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\"}],"
          "\"taskId\":\"tsk_0\"}",
          -32001 },
        { "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\"}],"
          "\"referenceTaskIds\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\","
          "\"11\","
          "\"12\",\"13\",\"14\",\"15\",\"16\",\"17\"]}",
          -32602 },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_free_ char *body =
            x_asprintf ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":"
                        "{\"message\":%s,\"configuration\":{\"returnImmediately\":true}}}",
                        rows[i].message);
        _cleanup_json_ json_t *answer = call (&b, VERSION, body);
        if (error_code (answer) != rows[i].code)
            fail_msg ("%s -> %lld", rows[i].message, (long long)error_code (answer));
    }
    const struct task *task;
    assert_int_equal (registry_next (b.registry, 0, &task), REGISTRY_NOTHING);
    bench_end (&b);
}

static void
test_data_parts_and_references_are_read_as_text (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_QUEUE, .spec.queue_depth = 9 };
    bench_begin (&b);
    const struct task *first, *second;
    json_decref (send_text (&b, "one"));
    assert_int_equal (registry_next (b.registry, 0, &first), REGISTRY_TASK);
    finish (&b, first, "earlier answer");
    _cleanup_free_ char *body = x_asprintf (
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{\"message\":{"
        "\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"referenceTaskIds\":[\"%s\",\"tsk_0b\",\"%s\"]"
        ","
        "\"parts\":[{\"text\":\"look at\"},{\"data\":{\"k\":1},\"mediaType\":\"application/json\","
        "\"filename\":\"a b.json\"}]},\"configuration\":{\"returnImmediately\":true}}}",
        first->id, first->id);
    json_decref (call (&b, VERSION, body));
    assert_int_equal (registry_next (b.registry, 0, &second), REGISTRY_TASK);
    _cleanup_free_ char *expected =
        x_asprintf ("look at\n```data media-type=application/json filename=a_b.json\n{\n  \"k\": "
                    "1\n}\n```\n\nReferenced tasks:\n- %s: completed\n```response\nearlier "
                    "answer\n```\n- tsk_0b: not a task this capsule holds",
                    first->id);
    assert_string_equal (second->text, expected);
    finish (&b, second, NULL);
    bench_end (&b);
}

static void
test_listing_pages_newest_first (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_QUEUE, .spec.queue_depth = 9 };
    bench_begin (&b);
    for (int i = 0; i < 5; i++)
        json_decref (send_text (&b, "t"));
    char token[128] = "";
    char last[64] = "zzz";
    for (int page = 0; page < 3; page++) {
        _cleanup_free_ char *body =
            x_asprintf ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ListTasks\",\"params\":"
                        "{\"pageSize\":2,\"pageToken\":\"%s\"}}",
                        token);
        _cleanup_json_ json_t *answer = call (&b, VERSION, body);
        const json_t *result = json_object_get (answer, "result");
        assert_int_equal (json_object_size (result), 4);
        assert_int_equal (json_integer_value (json_object_get (result, "totalSize")), 5);
        size_t i;
        json_t *task;
        json_array_foreach (json_object_get (result, "tasks"), i, task)
        {
            assert_true (strcmp (json_get_string (task, "id"), last) < 0);
            snprintf (last, sizeof last, "%s", json_get_string (task, "id"));
        }
        assert_int_equal (i, page == 2 ? 1 : 2);
        snprintf (token, sizeof token, "%s", json_get_string (result, "nextPageToken"));
        assert_true ((*token == '\0') == (page == 2));
    }
    static const char *const bad[] = { "{\"pageSize\":0}",
                                       "{\"pageSize\":1.5}",
                                       "{\"pageToken\":\"x\"}",
                                       "{\"status\":\"working\"}",
                                       "{\"contextId\":1}",
                                       "{\"includeArtifacts\":1}",
                                       "{\"statusTimestampAfter\":\"yesterday\"}" };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
        _cleanup_free_ char *body = x_asprintf (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ListTasks\",\"params\":%s}", bad[i]);
        _cleanup_json_ json_t *answer = call (&b, VERSION, body);
        assert_int_equal (error_code (answer), -32602);
    }
    _cleanup_json_ json_t *after =
        call (&b, VERSION,
              "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ListTasks\",\"params\":"
              "{\"statusTimestampAfter\":\"2999-01-01T00:00:00.5+02:00\"}}");
    assert_int_equal (
        json_integer_value (json_object_get (json_object_get (after, "result"), "totalSize")), 0);
    bench_end (&b);
}

/* --- authentication --- */

static json_t *
call_as (const struct bench *b, const char *token, const char *method, const char *params,
         char **head)
{
    _cleanup_free_ char *headers = x_asprintf (VERSION "Authorization: bEARER  %s\r\n", token);
    _cleanup_free_ char *body = x_asprintf (
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}", method, params);
    int fd = dial (b);
    post (fd, headers, body);
    _cleanup_free_ char *text = read_answer (fd, head);
    close (fd);
    json_t *answer = json_loads (text, 0, NULL);
    assert_non_null (answer);
    return answer;
}

static const char *const reading[] = { "GetTask", "ListTasks" };
static const char *const sending[] = { "SendMessage", "GetTask", "CancelTask", "ListTasks" };
static const struct auth_declaration declared[] = { { "zed", sending, 4 }, { "dash", reading, 2 } };

static void
authenticated_bench_begin (struct bench *b, struct door_auth *auth)
{
    b->registry = registry_new (&b->spec);
    assert_succeeds (b->door = door_bind ("127.0.0.1", 0, &err));
    door_set_auth (b->door, auth);
    struct card_facts facts = facts_of (b);
    assert_succeeds (door_serve (b->door, &facts, b->registry, &err));
}

static const char *const plain_message =
    "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\"}]},"
    "\"configuration\":{\"returnImmediately\":true}}";

static void
test_door_24_tokens_that_are_not_ours_are_refused_alike (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_QUEUE, .spec.queue_depth = 5 };
    _cleanup_ (door_auth_freep) struct door_auth *auth = door_auth_new ("demo", declared, 2);
    _cleanup_ (door_auth_freep) struct door_auth *other = door_auth_new ("demo", declared, 2);
    const char *ours = secret_reveal (door_auth_token (auth, 0));
    authenticated_bench_begin (&b, auth);

    _cleanup_free_ char *card =
        exchange (&b, "GET /.well-known/agent-card.json HTTP/1.1\r\nHost: x\r\n\r\n", NULL);
    assert_null (strstr (card, "sessionId"));
    _cleanup_free_ char *head = NULL;
    _cleanup_free_ char *none = exchange (&b, "BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n", &head);
    assert_true (strncmp (head, "HTTP/1.1 401 ", 13) == 0);
    assert_non_null (strcasestr (head, "\r\nwww-authenticate: Bearer realm=\"demo\"\r\n"));
    assert_non_null (strstr (none, "\"unauthenticated\""));

    _cleanup_free_ char *foreign =
        x_asprintf ("GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n",
                    secret_reveal (door_auth_token (other, 0)));
    _cleanup_free_ char *twice =
        x_asprintf ("GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                    "Authorization: Bearer %s\r\n\r\n",
                    ours, ours);
    const char *const invalid[] = {
        foreign, twice, "GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Basic x\r\n\r\n",
        "PUT /y HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\nContent-Length: 1\r\n\r\nz"
    };
    _cleanup_free_ char *first = NULL;
    for (size_t i = 0; i < ARRAY_LEN (invalid); i++) {
        _cleanup_free_ char *refused_head = NULL;
        _cleanup_free_ char *body = exchange (&b, invalid[i], &refused_head);
        assert_true (strncmp (refused_head, "HTTP/1.1 401 ", 13) == 0);
        assert_non_null (strcasestr (refused_head, "error=\"invalid_token\""));
        if (! first)
            first = x_strdup (body);
        assert_string_equal (body, first);
    }
    bench_end (&b);
}

static void
test_door_23_and_25_scopes_and_visibility (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_QUEUE, .spec.queue_depth = 5 };
    _cleanup_ (door_auth_freep) struct door_auth *auth = door_auth_new ("demo", declared, 2);
    assert_string_equal (door_auth_name (auth, 0), "operator");
    assert_string_equal (door_auth_name (auth, 1), "dash");
    const char *all = secret_reveal (door_auth_token (auth, 0));
    const char *dash = secret_reveal (door_auth_token (auth, 1));
    const char *zed = secret_reveal (door_auth_token (auth, 2));
    authenticated_bench_begin (&b, auth);

    _cleanup_free_ char *head = NULL;
    _cleanup_json_ json_t *refused = call_as (&b, dash, "SendMessage", plain_message, &head);
    assert_true (strncmp (head, "HTTP/1.1 403 ", 13) == 0);
    assert_non_null (strcasestr (head, "scope=\"SendMessage\""));
    assert_string_equal (json_get_string (refused, "error"), "insufficient_scope");
    _cleanup_json_ json_t *unserved = call_as (&b, dash, "tasks/get", "{}", NULL);
    assert_int_equal (error_code (unserved), -32601);
    _cleanup_json_ json_t *extended = call_as (&b, dash, "GetExtendedAgentCard", "{}", NULL);
    assert_non_null (json_object_get (extended, "result"));

    /* A task is seen by who started it and by the operator; to the others it was never held. */
    _cleanup_json_ json_t *sent = call_as (&b, zed, "SendMessage", plain_message, NULL);
    const char *id = json_get_string (task_of (sent), "id");
    _cleanup_free_ char *by_id = x_asprintf ("{\"id\":\"%s\"}", id);
    _cleanup_json_ json_t *own = call_as (&b, zed, "GetTask", by_id, NULL);
    _cleanup_json_ json_t *operators = call_as (&b, all, "GetTask", by_id, NULL);
    _cleanup_json_ json_t *hidden = call_as (&b, dash, "GetTask", by_id, NULL);
    assert_int_equal (error_code (own), 0);
    assert_int_equal (error_code (operators), 0);
    assert_int_equal (error_code (hidden), -32001);
    _cleanup_json_ json_t *listed = call_as (&b, dash, "ListTasks", "{}", NULL);
    const json_t *total = json_object_get (json_object_get (listed, "result"), "totalSize");
    assert_int_equal (json_integer_value (total), 0);
    bench_end (&b);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_the_public_card_is_exact),
        cmocka_unit_test (
            test_door_1_an_authenticated_doors_public_card_says_nothing_of_the_session),
        cmocka_unit_test (test_what_is_not_there_is_an_empty_404),
        cmocka_unit_test (test_door_26_peers_are_refused_alike_whatever_they_ask),
        cmocka_unit_test (test_door_5_envelopes),
        cmocka_unit_test (test_door_3_and_4_versions),
        cmocka_unit_test (test_a_task_is_queued_run_and_read),
        cmocka_unit_test (test_door_9_a_send_is_held_until_its_task_settles),
        cmocka_unit_test (test_door_11_no_room_is_a_rejected_task),
        cmocka_unit_test (test_door_20_and_21_cancelling),
        cmocka_unit_test (test_door_22_stopping_cancels_everything_twice_without_an_error),
        cmocka_unit_test (test_door_7_and_8_messages_are_read_strictly),
        cmocka_unit_test (test_data_parts_and_references_are_read_as_text),
        cmocka_unit_test (test_listing_pages_newest_first),
        cmocka_unit_test (test_door_24_tokens_that_are_not_ours_are_refused_alike),
        cmocka_unit_test (test_door_23_and_25_scopes_and_visibility),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The door over bare sockets: streams of events, watching, input, closing.
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

/* Reads until <mark> has come, collecting everything. */
static void
read_until_mark (int fd, struct buf *all, const char *mark)
{
    while (! all->data || ! strstr (all->data, mark)) {
        char *to = buf_reserve (all, 4096);
        ssize_t n = read (fd, to, 4096);
        if (n <= 0)
            fail_msg ("never came: %s in %s", mark, all->data ? all->data : "");
        all->len += (size_t)n;
        buf_append (all, "", 0);
    }
}

static char *
read_to_end (int fd)
{
    struct buf all = { 0 };
    ssize_t n;
    char block[4096];
    while ((n = read (fd, block, sizeof block)) > 0)
        buf_append (&all, block, (size_t)n);
    if (n < 0 && errno == EAGAIN)
        fail_msg ("the stream did not end");
    return buf_steal (&all);
}

static const char *const stream_send =
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"SendStreamingMessage\",\"params\":{\"message\":"
    "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\"}]}}}";

static int
count_of (const char *text, const char *what)
{
    int count = 0;
    for (const char *at = text; (at = strstr (at, what)); at++)
        count++;
    return count;
}

static void
test_door_13_a_plain_stream_has_no_frames_and_an_activated_one_has (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_QUEUE, .spec.queue_depth = 1 };
    bench_begin (&b);
    for (int extended = 0; extended < 2; extended++) {
        int fd = dial (&b);
        post (fd, extended ? VERSION "A2A-Extensions: other, " CARD_STREAM_URI "\r\n" : VERSION,
              stream_send);
        const struct task *task;
        assert_int_equal (registry_next (b.registry, 10000, &task), REGISTRY_TASK);
        struct streams *s = registry_streams (b.registry);
        streams_working (s, task, "inference turn 1", 0);
        streams_text (s, task, "par", 3, false);
        streams_text (s, task, "", 0, true);
        finish (&b, task, "part");
        _cleanup_free_ char *all = read_to_end (fd);
        close (fd);
        assert_non_null (strcasestr (all, "\r\ncontent-type: text/event-stream\r\n"));
        assert_int_equal (count_of (all, "\"id\":7,\"result\":"), extended ? 6 : 4);
        assert_int_equal (count_of (all, "\"metadata\""), extended ? 2 : 0);
        assert_int_equal (count_of (all, "A2A-Extensions: " CARD_STREAM_URI), extended);
        assert_int_equal (count_of (all, "\"TASK_STATE_COMPLETED\""), 1);
        assert_int_equal (count_of (all, "\"lastChunk\":true"), 1);
        assert_non_null (strstr (all, "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"task\":"));
    }
    bench_end (&b);
}

static void
test_door_12_busy_on_a_stream_is_one_event_without_id (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_SINGLE };
    bench_begin (&b);
    json_decref (send_text (&b, "one"));
    int fd = dial (&b);
    post (fd, VERSION, stream_send);
    _cleanup_free_ char *all = read_to_end (fd);
    close (fd);
    assert_int_equal (count_of (all, "data: "), 1);
    assert_int_equal (count_of (all, "id: "), 0);
    assert_non_null (strstr (all, "TASK_STATE_REJECTED"));
    bench_end (&b);
}

static const char *const watch =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"murmur.WatchSession\",\"params\":{}}";

static void
test_door_14_to_16_a_watch_replays_and_tells_gaps (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_QUEUE, .spec.queue_depth = 2 };
    bench_begin (&b);
    struct streams *s = registry_streams (b.registry);
    const struct task *task;
    json_decref (send_text (&b, "one"));
    assert_int_equal (registry_next (b.registry, 0, &task), REGISTRY_TASK);
    for (int i = 0; i < 9; i++)
        streams_working (s, task, "step", 0);

    int fd = dial (&b);
    struct buf all = { 0 };
    post (fd, VERSION "Last-Event-ID: 3\r\n", watch);
    read_until_mark (fd, &all, "id: 9\n");
    assert_int_equal (count_of (all.data, "id: "), 6);
    assert_int_equal (count_of (all.data, "\"gap\""), 0);
    assert_non_null (strstr (all.data, "\"connection-ack\""));
    assert_non_null (strstr (all.data, "\"conversationMode\":\"stateless\""));
    /* Live, over the end of one task and through another. */
    finish (&b, task, "a");
    read_until_mark (fd, &all, "id: 11\n");
    json_decref (send_text (&b, "two"));
    assert_int_equal (registry_next (b.registry, 0, &task), REGISTRY_TASK);
    finish (&b, task, "b");
    read_until_mark (fd, &all, "id: 13\n");
    assert_int_equal (count_of (all.data, "\"TASK_STATE_COMPLETED\""), 2);
    close (fd);
    buf_free (&all);

    fd = dial (&b);
    post (fd, VERSION "Last-Event-ID: 9999\r\n", watch);
    read_until_mark (fd, &all, "id: 13\n");
    assert_non_null (strstr (all.data, "{\"frame\":\"gap\",\"firstAvailableId\":1}"));
    assert_int_equal (count_of (all.data, "\nid: "), 13);
    close (fd);
    buf_free (&all);

    json_decref (send_text (&b, "three"));
    assert_int_equal (registry_next (b.registry, 0, &task), REGISTRY_TASK);
    for (int i = 0; i < 600; i++)
        streams_working (s, task, "step", 0);
    fd = dial (&b);
    post (fd, VERSION, watch);
    read_until_mark (fd, &all, "id: 613\n");
    assert_non_null (strstr (all.data, "{\"frame\":\"gap\",\"firstAvailableId\":102}"));
    assert_int_equal (count_of (all.data, "\nid: "), 512);
    close (fd);
    buf_free (&all);
    finish (&b, task, NULL);
    bench_end (&b);
}

static void
test_a_slow_watcher_is_told_what_it_lost_and_blocks_nobody (void **state)
{
    (void)state;
    struct streams *s = streams_new (false);
    struct task task = { .id = (char *)"tsk_1", .context_id = (char *)"ctx_1" };
    int wakes = 0;
    void count_wake (void *ctx)
    {
        ++*(int *)ctx;
    }
    uint64_t before = 99;
    struct watcher *w = watcher_new (s, count_wake, &wakes, &before);
    assert_int_equal (before, 0);
    for (int i = 0; i < 200; i++)
        streams_working (s, &task, "step", 0);
    uint64_t lost_through = 0, events = 0, last = 0;
    struct event *event;
    enum watcher_next next;
    while ((next = watcher_take (w, &event, &lost_through)) != WATCHER_EMPTY)
        if (next == WATCHER_EVENT) {
            assert_true (event_id (event) > last);
            last = event_id (event);
            events++;
            event_unref (event);
        }
    assert_int_equal (events, STREAMS_LIVE_EVENTS);
    assert_int_equal (lost_through + events, last);
    assert_true (wakes > 0);
    watcher_free (w);
    streams_free (s);
}

static void
test_door_18_input_is_asked_for_and_given (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_QUEUE, .spec.queue_depth = 1 };
    bench_begin (&b);
    const struct task *task;
    json_decref (send_text (&b, "one"));
    assert_int_equal (registry_next (b.registry, 0, &task), REGISTRY_TASK);
    const struct question question = { .text = "which?" };
    _cleanup_ (question_reply_clear) struct question_reply none = { 0 }, reply = { 0 };
    assert_false (registry_ask (b.registry, task, &question, 50, &none));
    assert_true (none.has_timed_out);

    /* The client's side runs beside the wait. */
    pid_t child = fork ();
    if (child == 0) {
        for (;;) {
            _cleanup_json_ json_t *now = get_task (&b, task->id);
            const json_t *result = json_object_get (now, "result");
            if (strcmp (state_of (result), "TASK_STATE_INPUT_REQUIRED") == 0)
                break;
            usleep (2000);
        }
        _cleanup_free_ char *body = x_asprintf (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{\"message\":{"
            "\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"taskId\":\"%s\",\"parts\":[{\"text\":"
            "\"that one\"}]},\"configuration\":{\"returnImmediately\":true}}}",
            task->id);
        _cleanup_json_ json_t *answer = call (&b, VERSION, body);
        _exit (strcmp (state_of (task_of (answer)), "TASK_STATE_WORKING") == 0 ? 0 : 1);
    }
    assert_true (registry_ask (b.registry, task, &question, 10000, &reply));
    assert_string_equal (reply.text, "that one");
    finish (&b, task, NULL);
    bench_end (&b);
}

static void
test_closing_answers_held_sends_and_ends_streams (void **state)
{
    (void)state;
    struct bench b = { .spec.acceptance = ACCEPT_QUEUE, .spec.queue_depth = 5 };
    bench_begin (&b);
    int held = dial (&b), stream = dial (&b);
    post (held, VERSION,
          "{\"jsonrpc\":\"2.0\",\"id\":\"h\",\"method\":\"SendMessage\",\"params\":{\"message\":"
          "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"x\"}]}}}");
    post (stream, VERSION, watch);
    struct buf seen = { 0 };
    read_until_mark (stream, &seen, "connection-ack");
    const struct task *running, **rejected;
    assert_int_equal (registry_next (b.registry, 10000, &running), REGISTRY_TASK);
    json_decref (send_text (&b, "queued"));
    assert_int_equal (registry_close (b.registry, false, &rejected), 1);
    free (rejected);
    _cleanup_json_ json_t *late = send_text (&b, "late");
    assert_string_equal (state_of (task_of (late)), "TASK_STATE_REJECTED");
    uint64_t start = clock_monotonic_ms ();
    door_close (b.door);
    assert_true (clock_monotonic_ms () - start < 1000);
    _cleanup_free_ char *text = read_answer (held, NULL);
    assert_non_null (strstr (text, "TASK_STATE_WORKING"));
    _cleanup_free_ char *rest = read_to_end (stream);
    assert_non_null (strstr (seen.data, "connection-ack"));
    assert_null (strstr (rest, "capsule-closed"));
    close (held);
    close (stream);
    buf_free (&seen);
    registry_free (b.registry);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_door_13_a_plain_stream_has_no_frames_and_an_activated_one_has),
        cmocka_unit_test (test_door_12_busy_on_a_stream_is_one_event_without_id),
        cmocka_unit_test (test_door_14_to_16_a_watch_replays_and_tells_gaps),
        cmocka_unit_test (test_a_slow_watcher_is_told_what_it_lost_and_blocks_nobody),
        cmocka_unit_test (test_door_18_input_is_asked_for_and_given),
        cmocka_unit_test (test_closing_answers_held_sends_and_ends_streams),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

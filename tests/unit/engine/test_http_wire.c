/* SPDX-License-Identifier: Apache-2.0
 *
 * Guests on a real wire: the engine and net/ together against a server on loopback. What a person
 * relies on: a request that was not allowed opens no connection, big answers and uploads stream,
 * and a guest stuck in one is let go at once.
 */
#include "engine/guest.h"
#include "guests.h"

#include "base/clock.h"
#include "net/guest_http.h"
#include "tests/unit/net/loop_server.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BIG (100 << 20)

struct wire {
    struct loop_server *server;
    struct http_client *client;
    struct allow_list allow;
    struct guest_http *http;
};

/* What the path asks for. */
static void
serve (void *ctx _unused_, int fd, int number _unused_)
{
    _cleanup_buf_ struct buf head = { 0 }, body = { 0 };
    while (loop_read_request (fd, &head, &body)) {
        if (strstr (head.data, "/slow")) {
            loop_send (fd, "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf");
            while (read (fd, (char[16]){ 0 }, 16) > 0)
                continue;
            return;
        }
        if (strstr (head.data, "/silent")) {
            while (read (fd, (char[16]){ 0 }, 16) > 0)
                continue;
            return;
        }
        if (strstr (head.data, "/big")) {
            _cleanup_free_ char *start =
                x_asprintf ("HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n", BIG);
            static char piece[65537];
            memset (piece, 'b', sizeof piece - 1);
            loop_send (fd, start);
            for (int sent = 0; sent < BIG; sent += 65536)
                loop_send (fd, piece);
        } else {
            _cleanup_free_ char *count = x_asprintf ("%zu", body.len);
            loop_answer (fd, "200 OK", count);
        }
        buf_truncate (&head, 0);
        buf_truncate (&body, 0);
    }
}

static void
wire_up (struct wire *w, bool is_allowed)
{
    memset (w, 0, sizeof *w);
    w->server = loop_server_new (serve, NULL);
    w->client = http_client_new ();
    char entry[64];
    snprintf (entry, sizeof entry, "http://127.0.0.1:%d", loop_server_port (w->server));
    if (is_allowed)
        assert_succeeds (allow_list_add (&w->allow, entry, &err));
    const struct guest_http_spec spec = { .client = w->client, .allow = &w->allow };
    w->http = guest_http_new (&spec);
}

static void
wire_down (struct wire *w)
{
    guest_http_free (w->http);
    http_client_free (w->client);
    loop_server_free (w->server);
    allow_list_free (&w->allow);
}

static enum guest_ending
sink (struct wire *w, const char *path, const char *upload_bytes, struct buf *text,
      struct cancel *c)
{
    struct host_binding bindings[LINKAGE_MAX];
    struct guest_spec spec = test_spec (test_component ("http-sink"), GUEST_TOOL, bindings);
    spec.http = &guest_http_handler;
    spec.http_ctx = w->http;
    _cleanup_free_ char *input =
        x_asprintf ("{\"url\":\"http://127.0.0.1:%d%s\"%s%s%s}", loop_server_port (w->server), path,
                    upload_bytes ? ",\"upload_bytes\":\"" : "", upload_bytes ? upload_bytes : "",
                    upload_bytes ? "\"" : "");
    enum guest_ending ending;
    struct guest *g = guest_new (&spec, c, &ending, NULL);
    if (! g)
        return ending;
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct tool_result result;
    ending = host_tool_run (g, input, strlen (input), NULL, arena, &result, c, NULL);
    if (ending == GUEST_OK && result.data)
        buf_append (text, result.data, result.data_len);
    guest_free (g);
    return ending;
}

static void
test_a_request_that_is_not_allowed_opens_no_connection (void **state)
{
    (void)state;
    struct wire w;
    wire_up (&w, false);
    _cleanup_buf_ struct buf text = { 0 };
    assert_int_equal (sink (&w, "/", NULL, &text, NULL), GUEST_OK);
    assert_non_null (strstr (text.data, "denied"));
    assert_int_equal (loop_server_connections (w.server), 0);
    wire_down (&w);
}

static void
test_a_hundred_megabytes_and_an_upload_stream_over_one_connection (void **state)
{
    (void)state;
    struct wire w;
    wire_up (&w, true);
    _cleanup_buf_ struct buf text = { 0 };
    uint64_t start = clock_monotonic_ms ();
    assert_int_equal (sink (&w, "/big", NULL, &text, NULL), GUEST_OK);
    print_message ("100 MiB over loopback in %llu ms\n",
                   (unsigned long long)(clock_monotonic_ms () - start));
    assert_string_equal (text.data, "104857600");
    buf_truncate (&text, 0);
    assert_int_equal (sink (&w, "/count", "3000000", &text, NULL), GUEST_OK);
    assert_string_equal (text.data, "7"); /* the length of "3000000" */
    assert_int_equal (loop_server_connections (w.server), 1);
    wire_down (&w);
}

static void
is_cancelled_at_once (const char *path)
{
    struct wire w;
    wire_up (&w, true);
    _cleanup_buf_ struct buf text = { 0 };
    assert_int_equal (sink (&w, "/", NULL, &text, NULL), GUEST_OK); /* warm */
    for (int round = 0; round < 3; round++) {
        struct cancel *c = cancel_new ();
        struct test_timer *t = test_raise_after (c, 100);
        uint64_t start = clock_monotonic_ms ();
        enum guest_ending ending = sink (&w, path, NULL, &text, c);
        uint64_t took = clock_monotonic_ms () - start;
        test_timer_join (t);
        cancel_unref (c);
        assert_int_equal (ending, GUEST_CANCELLED);
        assert_in_range (took, 95, 600);
    }
    wire_down (&w);
}

static void
test_a_guest_in_a_slow_body_is_cancelled_and_leaves_no_descriptor (void **state)
{
    (void)state;
    is_cancelled_at_once ("/slow");
    size_t fds = test_open_fds ();
    is_cancelled_at_once ("/slow");
    assert_int_equal (test_open_fds (), fds);
}

static void
test_a_guest_waiting_for_an_answer_is_cancelled (void **state)
{
    (void)state;
    is_cancelled_at_once ("/silent");
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_request_that_is_not_allowed_opens_no_connection),
        cmocka_unit_test (test_a_hundred_megabytes_and_an_upload_stream_over_one_connection),
        cmocka_unit_test (test_a_guest_in_a_slow_body_is_cancelled_and_leaves_no_descriptor),
        cmocka_unit_test (test_a_guest_waiting_for_an_answer_is_cancelled),
    };
    return cmocka_run_group_tests_name ("engine on the wire", tests, test_engine_up,
                                        test_engine_down);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP server, spoken to over bare sockets.
 */
#include "base/clock.h"
#include "base/fdio.h"
#include "net/server/http_exchange.h"
#include "net/server/http_server.h"
#include "tests/unit/net/loop_server.h"
#include "tests/unit/testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

/* --- a handler that does what the path says --- */

struct bench {
    struct http_server *server;
    struct http_server_limits limits;
    atomic_int requests;
    struct http_exchange *held;
    atomic_bool is_held;
    struct http_stream *stream;
    pthread_mutex_t lock;
    struct buf stream_bytes;
    bool stream_ends;
    atomic_int closed;
};

static ssize_t
stream_read (void *ctx, char *out, size_t cap)
{
    struct bench *b = ctx;
    pthread_mutex_lock (&b->lock);
    size_t n = b->stream_bytes.len < cap ? b->stream_bytes.len : cap;
    if (n) {
        memcpy (out, b->stream_bytes.data, n);
        memmove (b->stream_bytes.data, b->stream_bytes.data + n, b->stream_bytes.len - n);
        buf_truncate (&b->stream_bytes, b->stream_bytes.len - n);
    }
    bool ends = b->stream_ends;
    pthread_mutex_unlock (&b->lock);
    return n ? (ssize_t)n : ends ? HTTP_STREAM_END : HTTP_STREAM_WAIT;
}

static void
stream_closed (void *ctx)
{
    struct bench *b = ctx;
    atomic_fetch_add (&b->closed, 1);
}

static const struct http_stream_source stream_source = { .read = stream_read,
                                                         .closed = stream_closed };

static size_t
on_head (void *ctx, struct http_exchange *x)
{
    (void)ctx;
    const char *target = http_exchange_target (x);
    if (strcmp (target, "/refuse") == 0)
        http_refuse (x, 401, NULL, 0, "no", 2);
    return strcmp (target, "/nobody") == 0 ? 0 : (size_t)1 << 20;
}

static void
on_request (void *ctx, struct http_exchange *x)
{
    struct bench *b = ctx;
    atomic_fetch_add (&b->requests, 1);
    const char *target = http_exchange_target (x);
    if (strcmp (target, "/hold") == 0) {
        if (http_hold (x)) {
            b->held = x;
            atomic_store (&b->is_held, true);
        }
        return;
    }
    if (strcmp (target, "/stream") == 0) {
        struct http_header h = { "content-type", "text/event-stream", 17 };
        b->stream = http_reply_stream (x, 200, &h, 1, &stream_source, b);
        return;
    }
    size_t len, count;
    const char *body = http_exchange_body (x, &len);
    const char *probe = http_exchange_header (x, "X-Probe", &count);
    _cleanup_free_ char *text =
        x_asprintf ("%s %s probe=%s*%zu body=%.*s", http_exchange_method (x), target,
                    probe ? probe : "-", count, (int)len, body);
    struct http_header h = { "content-type", "text/plain", 10 };
    http_reply (x, 200, &h, 1, text, strlen (text));
}

static const struct http_server_handler handler = { on_head, on_request };

static void
bench_begin (struct bench *b)
{
    pthread_mutex_init (&b->lock, NULL);
    if (! b->limits.connections)
        b->limits = http_server_default_limits;
    assert_succeeds (b->server = http_server_bind ("127.0.0.1", 0, &b->limits, &err));
    assert_succeeds (http_server_serve (b->server, &handler, b, &err));
}

static void
bench_end (struct bench *b)
{
    http_server_close (b->server, 500);
    buf_free (&b->stream_bytes);
}

/* --- the client --- */

static int
dial (const struct bench *b)
{
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons ((uint16_t)http_server_port (b->server)),
                              .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
    assert_int_equal (connect (fd, (struct sockaddr *)&to, sizeof to), 0);
    struct timeval patience = { .tv_sec = 10 };
    setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

/* Everything until the server closes. */
static char *
read_to_end (int fd)
{
    struct buf all = { 0 };
    for (;;) {
        char *to = buf_reserve (&all, 4096);
        ssize_t n = read (fd, to, 4096);
        if (n < 0 && errno == EAGAIN)
            fail_msg ("the server did not close");
        if (n <= 0)
            break;
        all.len += (size_t)n;
        buf_append (&all, "", 0);
    }
    return buf_steal (&all);
}

/* One answer with a content-length; returns its body, *head its head. */
static char *
read_answer (int fd, char **head)
{
    struct buf h = { 0 }, body = { 0 };
    if (! loop_read_request (fd, &h, &body))
        fail_msg ("no answer");
    *head = buf_steal (&h);
    return buf_steal (&body);
}

static int
status_of (const char *answer)
{
    return answer && strlen (answer) > 12 ? atoi (answer + 9) : 0;
}

static int
ask_status (const struct bench *b, const char *request)
{
    int fd = dial (b);
    loop_send (fd, request);
    _cleanup_free_ char *all = read_to_end (fd);
    close (fd);
    return status_of (all);
}

#define eventually(condition)                                                                      \
    do {                                                                                           \
        uint64_t until = clock_monotonic_ms () + 10000;                                            \
        while (! (condition)) {                                                                    \
            if (clock_monotonic_ms () > until)                                                     \
                fail_msg ("never came: %s", #condition);                                           \
            usleep (1000);                                                                         \
        }                                                                                          \
    } while (0)

/* --- tests --- */

static void
test_requests_are_seen_as_sent_and_connections_persist (void **state)
{
    (void)state;
    struct bench b = { 0 };
    bench_begin (&b);
    int fd = dial (&b);
    _cleanup_free_ char *head = NULL;
    loop_send (
        fd, "GET /a%2e%2e//b?q=%20 HTTP/1.1\r\nHost: x\r\nx-pRobe:  Ab \t\r\nX-Probe: 2\r\n\r\n");
    _cleanup_free_ char *body = read_answer (fd, &head);
    assert_string_equal (body, "GET /a%2e%2e//b?q=%20 probe=Ab*2 body=");
    assert_int_equal (status_of (head), 200);
    assert_non_null (strcasestr (head, "\r\ncontent-type: text/plain\r\n"));
    assert_null (strcasestr (head, "\r\nconnection: close"));
    assert_null (strcasestr (head, "access-control"));

    /* The same connection, two at once. */
    _cleanup_free_ char *head2 = NULL, *head3 = NULL;
    loop_send (fd, "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
                   "POST /q HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                   "2\r\nde\r\n1\r\nf\r\n0\r\n\r\n");
    _cleanup_free_ char *second = read_answer (fd, &head2), *third = read_answer (fd, &head3);
    assert_string_equal (second, "POST /p probe=-*0 body=abc");
    assert_string_equal (third, "POST /q probe=-*0 body=def");

    loop_send (fd, "GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    _cleanup_free_ char *last = read_to_end (fd);
    assert_int_equal (status_of (last), 200);
    close (fd);
    bench_end (&b);
}

static void
test_door_40_large_heads_and_bodies_are_refused_unread (void **state)
{
    (void)state;
    struct bench b = { 0 };
    bench_begin (&b);
    struct buf big = { 0 };
    buf_puts (&big, "GET / HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 67; i++)
        buf_printf (&big, "h%d: %01000d\r\n", i, i);
    buf_puts (&big, "\r\n");
    assert_true (big.len > 65 << 10);
    assert_int_equal (ask_status (&b, big.data), 431);
    buf_truncate (&big, 0);
    buf_puts (&big, "GET / HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 128; i++)
        buf_printf (&big, "h%d: 1\r\n", i);
    buf_puts (&big, "\r\n");
    assert_int_equal (ask_status (&b, big.data), 431);
    assert_int_equal (
        ask_status (&b, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n"), 413);
    assert_int_equal (
        ask_status (&b, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n"), 413);
    assert_int_equal (b.requests, 0);
    buf_free (&big);
    bench_end (&b);
}

static void
test_a_chunked_body_over_the_limit_is_refused_as_it_comes (void **state)
{
    (void)state;
    struct bench b = { 0 };
    bench_begin (&b);
    int fd = dial (&b);
    loop_send (fd, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    char chunk[4096 + 8];
    memcpy (chunk, "1000\r\n", 6);
    memset (chunk + 6, 'x', 4096);
    memcpy (chunk + 4102, "\r\n", 2);
    for (int i = 0; i < 300; i++)
        if (send (fd, chunk, 4104, MSG_NOSIGNAL) < 0)
            break;
    _cleanup_free_ char *all = read_to_end (fd);
    assert_int_equal (status_of (all), 413);
    assert_int_equal (b.requests, 0);
    close (fd);
    bench_end (&b);
}

static void
test_a_refusal_survives_a_body_still_on_its_way (void **state)
{
    (void)state;
    struct bench b = { 0 };
    bench_begin (&b);
    for (int round = 0; round < 20; round++) {
        int fd = dial (&b);
        loop_send (fd, "POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n");
        char block[4096] = { 0 };
        for (int i = 0; i < 14; i++)
            (void)! send (fd, block, sizeof block, MSG_NOSIGNAL);
        _cleanup_free_ char *all = read_to_end (fd);
        assert_int_equal (status_of (all), 401);
        assert_true (str_ends (all, "\r\n\r\nno"));
        close (fd);
    }
    assert_int_equal (b.requests, 0);
    bench_end (&b);
}

static void
test_a_small_unwanted_body_is_dropped_and_the_connection_lives (void **state)
{
    (void)state;
    struct bench b = { 0 };
    bench_begin (&b);
    int fd = dial (&b);
    for (int i = 0; i < 2; i++) {
        _cleanup_free_ char *head = NULL;
        loop_send (fd, "POST /nobody HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
        _cleanup_free_ char *body = read_answer (fd, &head);
        assert_string_equal (body, "POST /nobody probe=-*0 body=");
    }
    close (fd);
    bench_end (&b);
}

static void
test_a_held_answer_may_come_from_another_thread (void **state)
{
    (void)state;
    struct bench b = { .limits = http_server_default_limits };
    b.limits.idle_timeout_ms = 1000;
    b.limits.head_timeout_ms = 1000;
    bench_begin (&b);
    int fd = dial (&b);
    loop_send (fd, "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx");
    eventually (atomic_load (&b.is_held));
    /* Others are served meanwhile, and no timeout cuts it. */
    assert_int_equal (ask_status (&b, "GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
                      200);
    uint64_t held_until = clock_monotonic_ms () + 2500;
    while (clock_monotonic_ms () < held_until)
        usleep (50000);
    http_reply (b.held, 200, NULL, 0, "late", 4);
    _cleanup_free_ char *head = NULL;
    _cleanup_free_ char *body = read_answer (fd, &head);
    assert_string_equal (body, "late");
    close (fd);

    /* A client that left changes nothing. */
    atomic_store (&b.is_held, false);
    fd = dial (&b);
    loop_send (fd, "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx");
    eventually (atomic_load (&b.is_held));
    close (fd);
    usleep (20000);
    http_reply (b.held, 200, NULL, 0, "late", 4);
    assert_int_equal (ask_status (&b, "GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
                      200);
    bench_end (&b);
}

static void
test_a_stream_ends_with_its_connection_and_is_not_chunked (void **state)
{
    (void)state;
    struct bench b = { 0 };
    bench_begin (&b);
    int fd = dial (&b);
    loop_send (fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    eventually (atomic_load (&b.requests) == 1);
    for (int i = 0; i < 3; i++) {
        uint64_t start = clock_monotonic_us ();
        pthread_mutex_lock (&b.lock);
        buf_printf (&b.stream_bytes, "data: %d\n\n", i);
        pthread_mutex_unlock (&b.lock);
        http_stream_wake (b.stream);
        char seen[4096];
        ssize_t n;
        _cleanup_free_ char *mark = x_asprintf ("data: %d\n\n", i);
        do {
            n = read (fd, seen, sizeof seen - 1);
            assert_true (n > 0);
            seen[n] = '\0';
        } while (! strstr (seen, mark));
        if (i == 0) {
            assert_true (strncmp (seen, "HTTP/1.1 200 ", 13) == 0 || strstr (seen, "data: 0"));
            assert_null (strcasestr (seen, "chunked"));
            assert_null (strcasestr (seen, "content-length"));
        }
        assert_true (clock_monotonic_us () - start < 1000000);
    }
    pthread_mutex_lock (&b.lock);
    buf_puts (&b.stream_bytes, "last");
    b.stream_ends = true;
    pthread_mutex_unlock (&b.lock);
    http_stream_wake (b.stream);
    _cleanup_free_ char *rest = read_to_end (fd);
    assert_string_equal (rest, "last");
    eventually (atomic_load (&b.closed) == 1);
    close (fd);
    bench_end (&b);
    assert_int_equal (b.closed, 1);
}

static void
test_heads_that_do_not_come_are_not_waited_for (void **state)
{
    (void)state;
    struct bench b = { .limits = http_server_default_limits };
    b.limits.head_timeout_ms = 100;
    bench_begin (&b);
    int fd = dial (&b);
    loop_send (fd, "GET / HTT");
    uint64_t start = clock_monotonic_ms ();
    _cleanup_free_ char *all = read_to_end (fd);
    assert_string_equal (all, "");
    assert_in_range (clock_monotonic_ms () - start, 50, 2000);
    close (fd);
    bench_end (&b);
}

/* What trickles is bounded as a whole, not from byte to byte. */
static void
test_heads_and_bodies_that_trickle_are_cut (void **state)
{
    (void)state;
    static const char *const begun[] = {
        "GET /",
        "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN (begun); i++) {
        struct bench b = { .limits = http_server_default_limits };
        b.limits.head_timeout_ms = i ? b.limits.head_timeout_ms : 300;
        b.limits.body_timeout_ms = i ? 300 : b.limits.body_timeout_ms;
        bench_begin (&b);
        int fd = dial (&b);
        loop_send (fd, begun[i]);
        uint64_t start = clock_monotonic_ms ();
        unsigned sent = 0;
        while (send (fd, "x", 1, MSG_NOSIGNAL) == 1 && clock_monotonic_ms () - start < 20000) {
            sent++;
            usleep (20000);
        }
        assert_in_range (clock_monotonic_ms () - start, 250, 19000);
        assert_true (sent > 1);
        close (fd);
        bench_end (&b);
    }
}

static void
test_at_the_cap_the_longest_waiting_makes_room (void **state)
{
    (void)state;
    struct bench b = { .limits = http_server_default_limits };
    b.limits.connections = 20;
    b.limits.reserved = 4;
    bench_begin (&b);
    int idle[60];
    for (int i = 0; i < 60; i++) {
        idle[i] = dial (&b);
        loop_send (idle[i], "GET / ");
    }
    assert_int_equal (ask_status (&b, "GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
                      200);
    for (int i = 0; i < 60; i++)
        close (idle[i]);

    /* Held answers may not take the reserved places. */
    int held[16];
    for (int i = 0; i < 16; i++) {
        int before = atomic_load (&b.requests);
        held[i] = dial (&b);
        loop_send (held[i], "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
        eventually (atomic_load (&b.requests) > before);
    }
    assert_int_equal (ask_status (&b, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"), 503);
    assert_int_equal (ask_status (&b, "GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
                      200);
    for (int i = 0; i < 16; i++)
        close (held[i]);
    bench_end (&b);
}

static void
test_closing_lets_streams_write_what_is_queued (void **state)
{
    (void)state;
    struct bench b = { 0 };
    bench_begin (&b);
    int fd = dial (&b), idle = dial (&b), held = dial (&b);
    loop_send (fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    eventually (atomic_load (&b.requests) == 1);
    loop_send (held, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    eventually (atomic_load (&b.is_held));
    pthread_mutex_lock (&b.lock);
    buf_puts (&b.stream_bytes, "final words");
    pthread_mutex_unlock (&b.lock);
    unsigned port = http_server_port (b.server);
    uint64_t start = clock_monotonic_ms ();
    http_server_close (b.server, 200);
    assert_in_range (clock_monotonic_ms () - start, 0, 1000);
    assert_int_equal (b.closed, 1);
    _cleanup_free_ char *all = read_to_end (fd);
    assert_true (str_ends (all, "final words"));
    _cleanup_free_ char *none = read_to_end (idle);
    assert_string_equal (none, "");
    _cleanup_free_ char *dropped = read_to_end (held);
    assert_string_equal (dropped, "");
    close (fd);
    close (idle);
    close (held);
    int again = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons ((uint16_t)port),
                              .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
    assert_int_equal (connect (again, (struct sockaddr *)&to, sizeof to), -1);
    close (again);
    buf_free (&b.stream_bytes);
}

static void
test_a_taken_port_and_a_bad_name_are_told_apart (void **state)
{
    (void)state;
    struct bench b = { 0 };
    bench_begin (&b);
    unsigned port = http_server_port (b.server);
    struct mur_error *taken = NULL;
    assert_null (http_server_bind ("127.0.0.1", port, &http_server_default_limits, &taken));
    assert_string_equal (diag_code_name (taken->code), "E-RUN-010");
    _cleanup_free_ char *number = x_asprintf ("%u", port);
    assert_non_null (strstr (taken->message, number));
    mur_error_free (taken);
    assert_fails (http_server_bind ("", 0, &http_server_default_limits, &err), E_IO_003);
    assert_fails (http_server_bind ("no such host", 0, &http_server_default_limits, &err),
                  E_IO_003);
    bench_end (&b);
    /* Bound but never served. */
    struct http_server *s;
    assert_succeeds (s = http_server_bind ("localhost", 0, &http_server_default_limits, &err));
    http_server_close (s, 500);
}

static void
test_no_descriptor_is_left (void **state)
{
    (void)state;
    int before = open_descriptors ();
    test_closing_lets_streams_write_what_is_queued (NULL);
    test_at_the_cap_the_longest_waiting_makes_room (NULL);
    test_a_refusal_survives_a_body_still_on_its_way (NULL);
    assert_int_equal (open_descriptors (), before);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_requests_are_seen_as_sent_and_connections_persist),
        cmocka_unit_test (test_door_40_large_heads_and_bodies_are_refused_unread),
        cmocka_unit_test (test_a_chunked_body_over_the_limit_is_refused_as_it_comes),
        cmocka_unit_test (test_a_refusal_survives_a_body_still_on_its_way),
        cmocka_unit_test (test_a_small_unwanted_body_is_dropped_and_the_connection_lives),
        cmocka_unit_test (test_a_held_answer_may_come_from_another_thread),
        cmocka_unit_test (test_a_stream_ends_with_its_connection_and_is_not_chunked),
        cmocka_unit_test (test_heads_that_do_not_come_are_not_waited_for),
        cmocka_unit_test (test_heads_and_bodies_that_trickle_are_cut),
        cmocka_unit_test (test_at_the_cap_the_longest_waiting_makes_room),
        cmocka_unit_test (test_closing_lets_streams_write_what_is_queued),
        cmocka_unit_test (test_a_taken_port_and_a_bad_name_are_told_apart),
        cmocka_unit_test (test_no_descriptor_is_left),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

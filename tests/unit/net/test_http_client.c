/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP client against scripted servers on loopback: what is sent, read, timed and held back.
 */
#include "base/clock.h"
#include "net/http_client.h"
#include "net/http_fetch.h"
#include "net/http_prepare.h"
#include "net/resolver.h"
#include "tests/unit/net/http_client_stand.h"
#include "tests/unit/net/loop_server.h"
#include "tests/unit/testing.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* Answers the first request of a connection, then reads another and closes without a word. */
static void
answer_once_then_drop (void *ctx, int fd, int number)
{
    (void)number;
    struct buf head = { 0 }, body = { 0 };
    if (loop_read_request (fd, &head, &body)) {
        keep (ctx, &head, &body);
        loop_answer (fd, "200 OK", "first");
    }
    if (loop_read_request (fd, &head, &body))
        keep (ctx, &head, &body);
    loop_reset_on_close (fd);
    buf_free (&head);
    buf_free (&body);
}

static void
close_after_answer (void *ctx, int fd, int number)
{
    (void)number;
    struct buf head = { 0 }, body = { 0 };
    if (loop_read_request (fd, &head, &body)) {
        keep (ctx, &head, &body);
        loop_answer (fd, "200 OK", "bye");
    }
    buf_free (&head);
    buf_free (&body);
}

static void
break_off (void *ctx, int fd, int number)
{
    (void)number;
    struct buf head = { 0 }, body = { 0 };
    if (loop_read_request (fd, &head, &body))
        keep (ctx, &head, &body);
    loop_send (fd, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nsome");
    buf_free (&head);
    buf_free (&body);
}

static void
answer_no_http (void *ctx, int fd, int number)
{
    (void)number;
    struct buf head = { 0 }, body = { 0 };
    if (loop_read_request (fd, &head, &body))
        keep (ctx, &head, &body);
    loop_send (fd, "SSH-2.0-OpenSSH_9.2p1\r\n");
    buf_free (&head);
    buf_free (&body);
}

#define BIG ((size_t)8 << 20)

static void
send_much (void *ctx, int fd, int number)
{
    (void)number;
    struct log *log = ctx;
    struct buf head = { 0 }, body = { 0 };
    if (loop_read_request (fd, &head, &body))
        keep (log, &head, &body);
    _cleanup_free_ char *start = x_asprintf ("HTTP/1.1 200 OK\r\ncontent-length: %zu\r\n\r\n", BIG);
    loop_send (fd, start);
    char block[8192];
    memset (block, 'x', sizeof block);
    for (size_t sent = 0; sent < BIG;) {
        ssize_t n = send (fd, block, sizeof block, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        sent += (size_t)n;
        atomic_store (&log->sent, sent);
    }
    buf_free (&head);
    buf_free (&body);
}

/* Reads a head, waits for leave, then reads the body. */
static void
read_slowly (void *ctx, int fd, int number)
{
    (void)number;
    struct log *log = ctx;
    while (! atomic_load (&log->may_go_on))
        usleep (1000);
    struct buf head = { 0 }, body = { 0 };
    if (loop_read_request (fd, &head, &body)) {
        atomic_store (&log->sent, body.len);
        keep (log, &head, &body);
        loop_answer (fd, "200 OK", "");
    }
    buf_free (&head);
    buf_free (&body);
}

static void
answer_gzip (void *ctx, int fd, int number)
{
    (void)number;
    struct buf head = { 0 }, body = { 0 };
    if (loop_read_request (fd, &head, &body)) {
        keep (ctx, &head, &body);
        loop_send (fd, "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
                       "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nX-Empty:\r\n"
                       "transfer-encoding: chunked\r\n\r\n4\r\nnope\r\n0\r\n\r\n");
    }
    buf_free (&head);
    buf_free (&body);
}

static void
test_fifty_turns_use_one_connection (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (answer_all, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *url = url_of (server, "/v1/messages");
    for (int i = 0; i < 50; i++) {
        struct seen seen;
        run_request (c,
                     &(struct http_request){ .method = "POST",
                                             .url = url,
                                             .body_kind = HTTP_BODY_BUFFER,
                                             .body = "{\"turn\":1}",
                                             .body_len = 10 },
                     &seen);
        assert_int_equal (seen.failure, HTTP_OK);
        assert_int_equal (seen.status, 200);
        assert_string_equal (seen.body.data, "fine");
        seen_free (&seen);
    }
    assert_int_equal (log.requests, 50);
    assert_int_equal (loop_server_connections (server), 1);
    assert_string_equal (log.body, "{\"turn\":1}");
    http_client_free (c);
    loop_server_free (server);
}

static void
test_the_head_is_what_was_asked_and_nothing_more (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (answer_all, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *url = url_of (server, "/a/../b?q=1");
    const struct http_header headers[] = {
        { "X-One", "1", 1 },         { "x-one", "2", 1 },      { "x-empty", "", 0 },
        { "host", "evil", 4 },       { "connection", "x", 1 }, { "content-length", "999", 3 },
        { "x-bad", "a\r\nb: c", 7 }, { "te", "trailers", 8 },
    };
    struct seen seen;
    run_request (c,
                 &(struct http_request){ .method = "PUT",
                                         .url = url,
                                         .headers = headers,
                                         .header_count = ARRAY_LEN (headers),
                                         .body_kind = HTTP_BODY_BUFFER,
                                         .body = "abc",
                                         .body_len = 3 },
                 &seen);
    assert_int_equal (seen.failure, HTTP_OK);
    _cleanup_free_ char *expected =
        x_asprintf ("PUT /a/../b?q=1 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-One: 1\r\nx-one: 2\r\n"
                    "x-empty:\r\nContent-Length: 3\r\n\r\n",
                    loop_server_port (server));
    assert_string_equal (log.head, expected);
    seen_free (&seen);
    http_client_free (c);
    loop_server_free (server);
}

static void
test_redirects_are_not_followed_and_cookies_not_kept (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (redirect, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *url = url_of (server, "/here");
    struct seen seen;
    run_request (c, &(struct http_request){ .method = "GET", .url = url }, &seen);
    assert_int_equal (seen.status, 302);
    assert_non_null (strstr (seen.head.data, "location=/elsewhere\n"));
    assert_int_equal (log.requests, 1);
    seen_free (&seen);
    /* The next request on the same connection carries no cookie. */
    struct http_transfer *t = NULL;
    seen_init (&seen);
    t = http_start (c, &(struct http_request){ .method = "GET", .url = url }, &events, &seen);
    wait_until (&seen, atomic_load (&log.requests) == 2 || seen.ends);
    http_transfer_release (t);
    seen_free (&seen);
    http_client_free (c);
    loop_server_free (server);
    /* After the server's threads: a request that is made once more is kept, too. */
    assert_null (strcasestr (log.head, "cookie"));
}

static void
test_bytes_are_not_decoded_and_interim_answers_are_skipped (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (answer_gzip, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *url = url_of (server, "/");
    struct seen seen;
    run_request (c, &(struct http_request){ .method = "GET", .url = url }, &seen);
    assert_int_equal (seen.failure, HTTP_OK);
    assert_int_equal (seen.status, 200);
    assert_string_equal (seen.head.data,
                         "content-encoding=gzip\nx-empty=\ntransfer-encoding=chunked\n");
    assert_string_equal (seen.body.data, "nope");
    seen_free (&seen);
    http_client_free (c);
    loop_server_free (server);
}

static void
released_while (loop_script *script, bool has_head)
{
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (script, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *url = url_of (server, "/");
    struct seen seen;
    seen_init (&seen);
    struct http_transfer *t =
        http_start (c, &(struct http_request){ .method = "GET", .url = url }, &events, &seen);
    wait_until (&seen, atomic_load (&log.requests) == 1 && (! has_head || seen.body.len == 4));
    uint64_t start = clock_monotonic_us ();
    http_transfer_release (t);
    loop_server_free (server); /* returns once the server saw the connection end */
    assert_true (clock_monotonic_us () - start < 150000);
    assert_int_equal (seen.ends, 0);
    http_client_free (c);
    seen_free (&seen);
}

static void
test_release_drops_the_connection_at_once (void **state)
{
    (void)state;
    released_while (read_and_say_nothing, false);
    released_while (send_head_and_stall, true);
}

static void
test_failures_have_their_class (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct http_client *c = http_client_new ();
    int status;
    struct loop_server *server = loop_server_new (break_off, &log);
    _cleanup_free_ char *url = url_of (server, "/");
    assert_int_equal (get (c, url, &status), HTTP_INCOMPLETE);
    assert_int_equal (status, 200);
    loop_server_free (server);
    assert_int_equal (get (c, url, &status), HTTP_REFUSED);
    assert_int_equal (get (c, "http://nowhere.test/", &status), HTTP_DNS_FAILED);
    assert_int_equal (get (c, "ftp://127.0.0.1/", &status), HTTP_INTERNAL);
    struct loop_server *other = loop_server_new (answer_no_http, &log);
    _cleanup_free_ char *other_url = url_of (other, "/");
    assert_int_equal (get (c, other_url, &status), HTTP_NO_HTTP);
    loop_server_free (other);
    assert_true (http_failure_is_transient (HTTP_INCOMPLETE));
    assert_false (http_failure_is_transient (HTTP_REFUSED));
    http_client_free (c);
}

static void
test_a_sent_body_is_not_sent_again_on_its_own (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (answer_once_then_drop, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *url = url_of (server, "/");
    const struct http_request request = { .method = "POST",
                                          .url = url,
                                          .body_kind = HTTP_BODY_BUFFER,
                                          .body = "charge me",
                                          .body_len = 9 };
    struct seen seen;
    run_request (c, &request, &seen);
    assert_int_equal (seen.failure, HTTP_OK);
    seen_free (&seen);
    run_request (c, &request, &seen);
    assert_int_equal (seen.failure, HTTP_RESET);
    assert_int_equal (log.requests, 2);
    assert_int_equal (loop_server_connections (server), 1);
    seen_free (&seen);
    http_client_free (c);
    loop_server_free (server);
}

static void
test_a_pooled_connection_that_ended_is_replaced (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (close_after_answer, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *url = url_of (server, "/");
    for (int i = 0; i < 3; i++) {
        struct seen seen;
        run_request (c,
                     &(struct http_request){ .method = "POST",
                                             .url = url,
                                             .body_kind = HTTP_BODY_BUFFER,
                                             .body = "x",
                                             .body_len = 1 },
                     &seen);
        assert_int_equal (seen.failure, HTTP_OK);
        seen_free (&seen);
        usleep (20000); /* the server's end of the connection closes meanwhile */
    }
    assert_int_equal (loop_server_connections (server), 3);
    http_client_free (c);
    loop_server_free (server);
}

static void
test_timeouts_of_first_byte_and_between_bytes (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct http_client *c = http_client_new ();
    struct loop_server *server = loop_server_new (read_and_say_nothing, &log);
    _cleanup_free_ char *url = url_of (server, "/");
    struct seen seen;
    uint64_t start = clock_monotonic_ms ();
    run_request (
        c, &(struct http_request){ .method = "GET", .url = url, .first_byte_timeout_ms = 100 },
        &seen);
    assert_int_equal (seen.failure, HTTP_RESPONSE_TIMEOUT);
    assert_in_range (clock_monotonic_ms () - start, 90, 1000);
    seen_free (&seen);
    loop_server_free (server);

    server = loop_server_new (send_head_and_stall, &log);
    _cleanup_free_ char *url2 = url_of (server, "/");
    run_request (
        c, &(struct http_request){ .method = "GET", .url = url2, .between_bytes_timeout_ms = 100 },
        &seen);
    assert_int_equal (seen.failure, HTTP_RESPONSE_TIMEOUT);
    assert_int_equal (seen.status, 200);
    assert_string_equal (seen.body.data, "some");
    seen_free (&seen);
    loop_server_free (server);
    http_client_free (c);
}

static void
test_a_full_reader_holds_the_server_back (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (send_much, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *url = url_of (server, "/");
    struct seen seen;
    seen_init (&seen);
    seen.room = 64 << 10;
    struct http_transfer *t =
        http_start (c, &(struct http_request){ .method = "GET", .url = url }, &events, &seen);
    wait_until (&seen, seen.refusals);
    size_t before;
    do { /* until the pipe between us is full */
        before = atomic_load (&log.sent);
        usleep (50000);
    } while (atomic_load (&log.sent) != before);
    assert_true (before < BIG);
    assert_true (seen.body.len <= 64 << 10);
    assert_int_equal (seen.refusals, 1);
    pthread_mutex_lock (&seen.lock);
    seen.room = SIZE_MAX;
    pthread_mutex_unlock (&seen.lock);
    http_transfer_resume (t);
    wait_until (&seen, seen.ends);
    assert_int_equal (seen.failure, HTTP_OK);
    assert_int_equal (seen.body.len, BIG);
    http_transfer_release (t);
    seen_free (&seen);
    http_client_free (c);
    loop_server_free (server);
}

static void
test_a_slow_server_holds_the_sender_back (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (read_slowly, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *url = url_of (server, "/");
    struct seen seen;
    seen_init (&seen);
    struct http_transfer *t = http_start (c,
                                          &(struct http_request){ .method = "POST",
                                                                  .url = url,
                                                                  .body_kind = HTTP_BODY_STREAM,
                                                                  .body_len = HTTP_UNKNOWN_LENGTH },
                                          &events, &seen);
    char block[16384];
    memset (block, 'y', sizeof block);
    size_t sent = 0;
    unsigned refusals = 0, readies = 0;
    while (sent < BIG) {
        if (http_transfer_send (t, block, sizeof block)) {
            sent += sizeof block;
            continue;
        }
        if (refusals++ == 0) {
            assert_true (sent < BIG);
            atomic_store (&log.may_go_on, true);
        }
        wait_until (&seen, seen.readies > readies);
        readies = seen.readies;
    }
    assert_true (refusals > 0);
    http_transfer_send_end (t, true);
    wait_until (&seen, seen.ends);
    assert_int_equal (seen.failure, HTTP_OK);
    assert_int_equal (log.sent, BIG);
    http_transfer_release (t);
    seen_free (&seen);
    http_client_free (c);
    loop_server_free (server);
}

static void
test_a_broken_off_request_body_ends_the_request (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (answer_all, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *url = url_of (server, "/");
    struct seen seen;
    seen_init (&seen);
    struct http_transfer *t = http_start (c,
                                          &(struct http_request){ .method = "POST",
                                                                  .url = url,
                                                                  .body_kind = HTTP_BODY_STREAM,
                                                                  .body_len = HTTP_UNKNOWN_LENGTH },
                                          &events, &seen);
    assert_true (http_transfer_send (t, "half", 4));
    http_transfer_send_end (t, false);
    wait_until (&seen, seen.ends);
    assert_int_equal (seen.failure, HTTP_RESET);
    assert_int_equal (log.requests, 0);
    http_transfer_release (t);
    seen_free (&seen);
    http_client_free (c);
    loop_server_free (server);
}

static void
test_no_descriptor_is_left (void **state)
{
    (void)state;
    int before = open_descriptors ();
    for (int i = 0; i < 3; i++) {
        test_failures_have_their_class (NULL);
        test_release_drops_the_connection_at_once (NULL);
    }
    assert_int_equal (open_descriptors (), before);
}

int
main (void)
{
    static const char *const proxies[] = { "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                           "ALL_PROXY",  "no_proxy",    "NO_PROXY" };
    for (size_t i = 0; i < ARRAY_LEN (proxies); i++)
        unsetenv (proxies[i]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_fifty_turns_use_one_connection),
        cmocka_unit_test (test_the_head_is_what_was_asked_and_nothing_more),
        cmocka_unit_test (test_redirects_are_not_followed_and_cookies_not_kept),
        cmocka_unit_test (test_bytes_are_not_decoded_and_interim_answers_are_skipped),
        cmocka_unit_test (test_release_drops_the_connection_at_once),
        cmocka_unit_test (test_failures_have_their_class),
        cmocka_unit_test (test_a_sent_body_is_not_sent_again_on_its_own),
        cmocka_unit_test (test_a_pooled_connection_that_ended_is_replaced),
        cmocka_unit_test (test_timeouts_of_first_byte_and_between_bytes),
        cmocka_unit_test (test_a_full_reader_holds_the_server_back),
        cmocka_unit_test (test_a_slow_server_holds_the_sender_back),
        cmocka_unit_test (test_a_broken_off_request_body_ends_the_request),
        cmocka_unit_test (test_no_descriptor_is_left),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

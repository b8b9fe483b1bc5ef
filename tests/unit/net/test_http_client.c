/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP client against scripted servers on loopback.
 *
 * This program defines the resolver: names ending .test resolve to what a test needs.
 */
#include "base/clock.h"
#include "net/http_client.h"
#include "net/http_fetch.h"
#include "net/http_prepare.h"
#include "net/resolver.h"
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

static const struct {
    const char *name, *address;
} known_names[] = { { "meta.test", "169.254.169.254" }, { "loop.test", "127.0.0.1" } };

/* The resolver's functions, in place of net/resolver.c: answers come with the next processing. */
struct resolver {
    struct {
        char *name;
        int family;
        resolve_fn *fn;
        void *ctx;
    } open[16];
    size_t count;
    int event_fd;
};

static atomic_uint lookups;

struct resolver *
resolver_new (int epoll_fd, uint64_t tag, struct mur_error **err)
{
    (void)tag, (void)err;
    struct resolver *r = x_new0 (struct resolver);
    r->event_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event e = { .events = EPOLLIN, .data.u64 = (uint32_t)r->event_fd };
    assert_int_equal (epoll_ctl (epoll_fd, EPOLL_CTL_ADD, r->event_fd, &e), 0);
    return r;
}

static void
answer_open (struct resolver *r, bool is_ending)
{
    size_t count = r->count;
    r->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct resolve_answer a = { .status = is_ending ? RESOLVE_NO_ANSWER : RESOLVE_NO_NAME,
                                    .family = r->open[i].family };
        for (size_t k = 0; k < ARRAY_LEN (known_names) && ! is_ending; k++)
            if (strcmp (known_names[k].name, r->open[i].name) == 0) {
                a.status = RESOLVED;
                a.count = a.family == AF_INET;
                inet_pton (AF_INET, known_names[k].address, &a.v4[0]);
            }
        if (strcmp (r->open[i].name, "silent.test") == 0) {
            if (! is_ending) { /* stays open */
                r->open[r->count++] = r->open[i];
                continue;
            }
        }
        free (r->open[i].name);
        r->open[i].fn (r->open[i].ctx, &a);
    }
}

void
resolver_free (struct resolver *r)
{
    answer_open (r, true);
    close (r->event_fd);
    free (r);
}

void
resolver_lookup (struct resolver *r, const char *name, int family, resolve_fn *fn, void *ctx)
{
    atomic_fetch_add (&lookups, 1);
    r->open[r->count].name = x_strdup (name);
    r->open[r->count].family = family;
    r->open[r->count].fn = fn;
    r->open[r->count++].ctx = ctx;
    eventfd_write (r->event_fd, 1);
}

void
resolver_process (struct resolver *r, int fd, uint32_t events)
{
    (void)events;
    eventfd_t count;
    if (fd != r->event_fd)
        return;
    eventfd_read (fd, &count);
    answer_open (r, false);
}

int
resolver_timeout_ms (struct resolver *r, int max_ms)
{
    (void)r;
    return max_ms;
}

/* --- a transfer that is looked at --- */

struct seen {
    pthread_mutex_t lock;
    int status;
    struct buf head, body;
    size_t room; /* how many body bytes are taken before the first refusal */
    unsigned refusals, ends, readies;
    enum http_failure failure;
    char *detail;
};

static void
seen_init (struct seen *s)
{
    *s = (struct seen){ .room = SIZE_MAX };
    pthread_mutex_init (&s->lock, NULL);
}

static void
seen_free (struct seen *s)
{
    buf_free (&s->head);
    buf_free (&s->body);
    free (s->detail);
}

static void
on_head (void *ctx, int status, const struct http_header *headers, size_t count)
{
    struct seen *s = ctx;
    pthread_mutex_lock (&s->lock);
    s->status = status;
    for (size_t i = 0; i < count; i++)
        buf_printf (&s->head, "%s=%s\n", headers[i].name, headers[i].value);
    pthread_mutex_unlock (&s->lock);
}

static bool
on_body (void *ctx, const void *data, size_t len)
{
    struct seen *s = ctx;
    pthread_mutex_lock (&s->lock);
    bool taken = s->body.len + len <= s->room;
    if (taken)
        buf_append (&s->body, data, len);
    else
        s->refusals++;
    pthread_mutex_unlock (&s->lock);
    return taken;
}

static void
on_ready (void *ctx)
{
    struct seen *s = ctx;
    pthread_mutex_lock (&s->lock);
    s->readies++;
    pthread_mutex_unlock (&s->lock);
}

static void
on_end (void *ctx, enum http_failure failure, const char *detail)
{
    struct seen *s = ctx;
    pthread_mutex_lock (&s->lock);
    s->ends++;
    s->failure = failure;
    s->detail = strdup (detail ? detail : "");
    pthread_mutex_unlock (&s->lock);
}

static const struct http_events events = {
    .head = on_head, .body = on_body, .ready = on_ready, .end = on_end
};

/* Looks again every few milliseconds: a condition may also hold on what a server script counts. */
#define wait_until(s, condition)                                                                   \
    do {                                                                                           \
        uint64_t until = clock_monotonic_ms () + 10000;                                            \
        bool is_met = false;                                                                       \
        while (! is_met && clock_monotonic_ms () < until) {                                        \
            pthread_mutex_lock (&(s)->lock);                                                       \
            is_met = (condition);                                                                  \
            pthread_mutex_unlock (&(s)->lock);                                                     \
            if (! is_met)                                                                          \
                usleep (2000);                                                                     \
        }                                                                                          \
        if (! is_met)                                                                              \
            fail_msg ("never came: %s", #condition);                                               \
    } while (0)

static char *
url_of (const struct loop_server *server, const char *path)
{
    return x_asprintf ("http://127.0.0.1:%d%s", loop_server_port (server), path);
}

/* Runs one request to its end. */
static void
run_request (struct http_client *c, const struct http_request *request, struct seen *seen)
{
    seen_init (seen);
    struct http_transfer *t = http_start (c, request, &events, seen);
    wait_until (seen, seen->ends);
    http_transfer_release (t);
}

static enum http_failure
get (struct http_client *c, const char *url, int *status)
{
    struct seen seen;
    run_request (c, &(struct http_request){ .method = "GET", .url = url }, &seen);
    *status = seen.status;
    seen_free (&seen);
    return seen.failure;
}

/* --- scripts --- */

struct log {
    atomic_int requests;
    char head[4096];
    char body[4096];
    atomic_size_t sent;
    atomic_bool may_go_on;
};

static void
keep (struct log *log, const struct buf *head, const struct buf *body)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock (&one_at_a_time);
    snprintf (log->head, sizeof log->head, "%s", head->data);
    snprintf (log->body, sizeof log->body, "%s", body->data ? body->data : "");
    atomic_fetch_add (&log->requests, 1);
    pthread_mutex_unlock (&one_at_a_time);
}

static void
answer_all (void *ctx, int fd, int number)
{
    (void)number;
    struct buf head = { 0 }, body = { 0 };
    while (loop_read_request (fd, &head, &body)) {
        keep (ctx, &head, &body);
        loop_answer (fd, "200 OK", "fine");
    }
    buf_free (&head);
    buf_free (&body);
}

static void
redirect (void *ctx, int fd, int number)
{
    (void)number;
    struct buf head = { 0 }, body = { 0 };
    if (loop_read_request (fd, &head, &body)) {
        keep (ctx, &head, &body);
        loop_send (fd, "HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\nset-cookie: a=b\r\n"
                       "content-length: 0\r\n\r\n");
    }
    if (loop_read_request (fd, &head, &body))
        keep (ctx, &head, &body);
    buf_free (&head);
    buf_free (&body);
}

static void
read_and_say_nothing (void *ctx, int fd, int number)
{
    (void)number;
    struct buf head = { 0 }, body = { 0 };
    if (loop_read_request (fd, &head, &body))
        keep (ctx, &head, &body);
    char byte;
    (void)! read (fd, &byte, 1); /* until the client goes */
    buf_free (&head);
    buf_free (&body);
}

static void
send_head_and_stall (void *ctx, int fd, int number)
{
    (void)number;
    struct buf head = { 0 }, body = { 0 };
    if (loop_read_request (fd, &head, &body))
        keep (ctx, &head, &body);
    loop_send (fd, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nsome");
    char byte;
    (void)! read (fd, &byte, 1);
    buf_free (&head);
    buf_free (&body);
}

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

/* --- tests --- */

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
    assert_null (strcasestr (log.head, "cookie"));
    http_transfer_release (t);
    seen_free (&seen);
    http_client_free (c);
    loop_server_free (server);
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
test_a_name_for_a_metadata_address_is_refused (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (answer_all, &log);
    struct http_client *c = http_client_new ();
    int status;
    assert_int_equal (get (c, "http://meta.test/latest", &status), HTTP_DENIED);
    _cleanup_free_ char *url = x_asprintf ("http://loop.test:%d/", loop_server_port (server));
    assert_int_equal (get (c, url, &status), HTTP_OK);
    assert_int_equal (status, 200);
    http_client_free (c);
    loop_server_free (server);
}

static void
test_names_are_looked_up_by_us_and_once_a_minute (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (answer_all, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *named = x_asprintf ("http://loop.test:%d/", loop_server_port (server));
    _cleanup_free_ char *literal = url_of (server, "/");
    int status;
    unsigned before = lookups;
    for (int i = 0; i < 3; i++)
        assert_int_equal (get (c, named, &status), HTTP_OK);
    assert_int_equal (lookups - before, 2); /* one a family */
    assert_int_equal (get (c, literal, &status), HTTP_OK);
    assert_int_equal (lookups - before, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal (get (c, "http://nowhere.test/", &status), HTTP_DNS_FAILED);
    assert_int_equal (lookups - before, 4); /* that it does not exist is known, too */
    http_client_free (c);
    loop_server_free (server);
}

static void
test_a_lookup_may_be_left_and_ends_with_the_client (void **state)
{
    (void)state;
    struct http_client *c = http_client_new ();
    struct seen left, waiting;
    seen_init (&left);
    seen_init (&waiting);
    const struct http_request request = { .method = "GET", .url = "http://silent.test/" };
    unsigned before = lookups;
    struct http_transfer *a = http_start (c, &request, &events, &left);
    struct http_transfer *b = http_start (c, &request, &events, &waiting);
    while (lookups == before)
        sched_yield ();
    http_transfer_release (a);
    http_client_free (c);
    assert_int_equal (left.ends, 0);
    assert_int_equal (waiting.ends, 1);
    assert_int_equal (waiting.failure, HTTP_INTERNAL);
    http_transfer_release (b);
    seen_free (&left);
    seen_free (&waiting);
}

static void
test_every_socket_is_close_on_exec (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (send_head_and_stall, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *url = url_of (server, "/");
    struct seen seen;
    seen_init (&seen);
    struct http_transfer *t =
        http_start (c, &(struct http_request){ .method = "GET", .url = url }, &events, &seen);
    wait_until (&seen, seen.body.len == 4);
    for (int fd = 3; fd < 256; fd++) {
        int type;
        socklen_t len = sizeof type;
        if (getsockopt (fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0)
            assert_true (fcntl (fd, F_GETFD) & FD_CLOEXEC);
    }
    http_transfer_release (t);
    http_client_free (c);
    loop_server_free (server);
    seen_free (&seen);
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

static void
test_freeing_the_client_ends_what_still_runs (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (read_and_say_nothing, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *url = url_of (server, "/");
    struct seen seen;
    seen_init (&seen);
    struct http_transfer *t =
        http_start (c, &(struct http_request){ .method = "GET", .url = url }, &events, &seen);
    wait_until (&seen, atomic_load (&log.requests) == 1);
    http_client_free (c);
    assert_int_equal (seen.ends, 1);
    assert_int_equal (seen.failure, HTTP_INTERNAL);
    http_transfer_resume (t);
    http_transfer_release (t);
    seen_free (&seen);
    loop_server_free (server);
}

static void
test_fetch_waits_and_can_follow_when_asked (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (redirect, &log);
    struct loop_server *fine = loop_server_new (answer_all, &log);
    struct http_client *c = http_client_new ();
    _cleanup_free_ char *url = url_of (fine, "/x");
    _cleanup_http_response_ struct http_response r = { 0 };
    struct http_fetch fetch = { .request = { .method = "GET", .url = url },
                                .limit_bytes = 100,
                                .redirect_limit = 2 };
    assert_succeeds (http_fetch (c, &fetch, &r, NULL, &err));
    assert_int_equal (r.status, 200);
    assert_string_equal (http_response_header (&r, "content-length"), "4");
    assert_string_equal (r.body.data, "fine");
    http_response_free (&r);

    fetch.limit_bytes = 3;
    assert_fails (http_fetch (c, &fetch, &r, NULL, &err), E_IO_003);

    fetch.limit_bytes = 100;
    fetch.total_timeout_ms = 200;
    _cleanup_free_ char *elsewhere = url_of (server, "/here");
    fetch.request.url = elsewhere;
    enum http_failure failure;
    /* The redirecting script takes /elsewhere and says nothing more before it closes. */
    assert_fails (http_fetch (c, &fetch, &r, &failure, &err), E_IO_003);
    assert_true (strstr (log.head, "GET /elsewhere ") == log.head);
    http_client_free (c);
    loop_server_free (server);
    loop_server_free (fine);
}

static void
test_a_fetch_can_be_cancelled (void **state)
{
    (void)state;
    struct log log = { 0 };
    struct loop_server *server = loop_server_new (read_and_say_nothing, &log);
    struct http_client *c = http_client_new ();
    struct cancel *cancel = cancel_new ();
    _cleanup_free_ char *url = url_of (server, "/");
    struct http_fetch fetch = { .request = { .method = "GET", .url = url },
                                .limit_bytes = 100,
                                .cancel = cancel };
    struct http_response r;
    cancel_raise (cancel);
    uint64_t start = clock_monotonic_ms ();
    assert_fails (http_fetch (c, &fetch, &r, NULL, &err), E_IO_003);
    assert_true (clock_monotonic_ms () - start < 150);
    cancel_unref (cancel);
    http_client_free (c);
    loop_server_free (server);
}

static char *
proxy_for (const char *address)
{
    _cleanup_url_ struct url url = { 0 };
    assert_null (url_parse (address, &url));
    return http_find_proxy (&url);
}

static void
test_proxies_come_from_our_environment_only (void **state)
{
    (void)state;
    _cleanup_free_ char *none = proxy_for ("https://api.example.com/");
    assert_null (none);
    setenv ("https_proxy", "http://proxy:3128", 1);
    setenv ("HTTP_PROXY", "http://never:1", 1);
    setenv ("no_proxy", "internal.example.com, .corp", 1);
    _cleanup_free_ char *used = proxy_for ("https://api.example.com/");
    assert_string_equal (used, "http://proxy:3128");
    assert_null (proxy_for ("http://api.example.com/"));
    assert_null (proxy_for ("https://localhost:8443/"));
    assert_null (proxy_for ("https://127.0.0.1/"));
    assert_null (proxy_for ("https://a.internal.example.com/"));
    assert_null (proxy_for ("https://x.corp/"));
    unsetenv ("https_proxy");
    unsetenv ("HTTP_PROXY");
    unsetenv ("no_proxy");
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
        cmocka_unit_test (test_a_name_for_a_metadata_address_is_refused),
        cmocka_unit_test (test_names_are_looked_up_by_us_and_once_a_minute),
        cmocka_unit_test (test_a_lookup_may_be_left_and_ends_with_the_client),
        cmocka_unit_test (test_every_socket_is_close_on_exec),
        cmocka_unit_test (test_no_descriptor_is_left),
        cmocka_unit_test (test_freeing_the_client_ends_what_still_runs),
        cmocka_unit_test (test_fetch_waits_and_can_follow_when_asked),
        cmocka_unit_test (test_a_fetch_can_be_cancelled),
        cmocka_unit_test (test_proxies_come_from_our_environment_only),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

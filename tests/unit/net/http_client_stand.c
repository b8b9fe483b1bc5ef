/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/net/http_client_stand.h"

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
} known_names[] = { { "meta.test", "169.254.169.254" }, { "loop.localhost", "127.0.0.1" } };

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

atomic_uint lookups;

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
resolver_process (struct resolver *r, int fd, uint32_t ready)
{
    (void)ready;
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

void
seen_init (struct seen *s)
{
    *s = (struct seen){ .room = SIZE_MAX };
    pthread_mutex_init (&s->lock, NULL);
}

void
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

const struct http_events events = {
    .head = on_head, .body = on_body, .ready = on_ready, .end = on_end
};

char *
url_of (const struct loop_server *server, const char *path)
{
    return x_asprintf ("http://127.0.0.1:%d%s", loop_server_port (server), path);
}

/* Runs one request to its end. */
void
run_request (struct http_client *c, const struct http_request *request, struct seen *seen)
{
    seen_init (seen);
    struct http_transfer *t = http_start (c, request, &events, seen);
    wait_until (seen, seen->ends);
    http_transfer_release (t);
}

enum http_failure
get (struct http_client *c, const char *url, int *status)
{
    struct seen seen;
    run_request (c, &(struct http_request){ .method = "GET", .url = url }, &seen);
    *status = seen.status;
    seen_free (&seen);
    return seen.failure;
}

void
keep (struct log *log, const struct buf *head, const struct buf *body)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock (&one_at_a_time);
    snprintf (log->head, sizeof log->head, "%s", head->data);
    snprintf (log->body, sizeof log->body, "%s", body->data ? body->data : "");
    atomic_fetch_add (&log->requests, 1);
    pthread_mutex_unlock (&one_at_a_time);
}

void
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

void
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

void
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

void
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

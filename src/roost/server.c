/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread a connection, one request each. At most MAX_CONNECTIONS at once: the next is accepted
 * when one ends, so a flood waits in the kernel's queue and costs no memory here. A stop ends every
 * read at once: what came is judged, nobody is waited for.
 */
#include "roost/server.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fdio.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define MAX_HEAD        8192
#define MAX_BODY        (1 << 20) /* no request of ours needs a hundredth of it */
#define IO_TIMEOUT_MS   10000
#define MAX_CONNECTIONS 128
#define STACK_BYTES     (256 * 1024)

struct connection;

struct server {
    struct referee *referee;
    int ended_fd;         /* an eventfd: a connection ended, there may be a place again */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t is_idle;
    struct connection *open; /* doubly linked */
    size_t open_count;
};

struct connection {
    struct server *server;
    struct connection *next, **link;
    int fd;
};

struct request {
    char *method, *path;
    const char *credential, *approval; /* NULL: header absent */
    size_t content_length;
    char *body;
    size_t body_len;
};

/* --- reading --- */

/* Reads once before the deadline. Bytes, 0 at the end or when time is up, -1 on error. */
static ssize_t
read_some (int fd, char *to, size_t size, uint64_t deadline_ms)
{
    uint64_t now = clock_monotonic_ms ();
    if (now >= deadline_ms || fd_wait (fd, POLLIN, (int64_t)(deadline_ms - now)) <= 0)
        return 0;
    return recv (fd, to, size, MSG_DONTWAIT);
}

static void
parse_head (char *head, struct request *r)
{
    char *rest = head;
    char *line = strsep (&rest, "\n");
    r->method = strsep (&line, " ");
    r->path = line ? strsep (&line, " \r") : NULL;
    while ((line = strsep (&rest, "\n")) && *line && *line != '\r') {
        char *value;
        if ((value = str_header_value (line, "x-murmur-spawn-credential")))
            r->credential = value;
        else if ((value = str_header_value (line, "x-murmur-spawn-approval")))
            r->approval = value;
        else if ((value = str_header_value (line, "content-length")))
            r->content_length = strtoull (value, NULL, 10);
    }
}

/* Reads the head, up to the blank line within MAX_HEAD; what follows is the body's beginning.
 * False: nothing to answer. */
static bool
read_head (int fd, char head[MAX_HEAD + 1], size_t *head_len, size_t *len, uint64_t deadline_ms)
{
    *len = 0;
    for (;;) {
        ssize_t n = read_some (fd, head + *len, MAX_HEAD - *len, deadline_ms);
        if (n < 0)
            return false;
        *len += (size_t)n;
        head[*len] = '\0';
        const char *end = memmem (head, *len, "\r\n\r\n", 4);
        if (end || n == 0 || *len == MAX_HEAD) {
            *head_len = end ? (size_t)(end - head) + 4 : *len;
            return *len > 0;
        }
    }
}

/* The rest of the body, as far as it comes. */
static void
read_rest (int fd, struct buf *body, size_t wanted, uint64_t deadline_ms)
{
    while (body->len < wanted) {
        size_t left = wanted - body->len;
        size_t size = left < 16384 ? left : 16384;
        ssize_t n = read_some (fd, buf_reserve (body, size), size, deadline_ms);
        if (n <= 0)
            break;
        body->len += (size_t)n;
    }
    buf_append (body, "", 0);
}

/* --- answering --- */

static const char *
reason_of (int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    default:
        return "Internal Server Error";
    }
}

static void
answer (int fd, const struct verdict *v)
{
    _cleanup_free_ char *text = json_text (v->body, JSON_TEXT_ORDERED);
    _cleanup_buf_ struct buf out = { 0 };
    buf_printf (&out,
                "HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n"
                "connection: close\r\n\r\n%s",
                v->status, reason_of (v->status), strlen (text), text);
    (void)fd_send_all (fd, out.data, out.len, IO_TIMEOUT_MS / 1000);
    explicit_bzero (out.data, out.len); /* tokens are in it */
    explicit_bzero (text, strlen (text));
}

static struct verdict
health (struct referee *referee _unused_, const struct request *r _unused_)
{
    return (struct verdict){ 200, json_object () };
}

static struct verdict
spawn (struct referee *referee, const struct request *r)
{
    return referee_spawn (referee, r->credential, r->body, r->body_len);
}

static struct verdict
register_session (struct referee *referee, const struct request *r)
{
    return referee_register (referee, r->approval, r->body, r->body_len);
}

static struct verdict
deregister (struct referee *referee, const struct request *r)
{
    return referee_deregister (referee, r->credential, r->body, r->body_len);
}

static const struct {
    const char *method, *path;
    struct verdict (*handle) (struct referee *referee, const struct request *r);
} routes[] = {
    { "GET", "/health", health },
    { "POST", "/spawn", spawn },
    { "POST", "/register", register_session },
    { "POST", "/deregister", deregister },
};

static struct verdict
route (struct referee *referee, const struct request *r)
{
    static const char status[] = "/status/";
    for (size_t i = 0; i < ARRAY_LEN (routes); i++)
        if (str_eq (r->method, routes[i].method) && str_eq (r->path, routes[i].path))
            return routes[i].handle (referee, r);
    if (str_eq (r->method, "GET") && r->path && strncmp (r->path, status, sizeof status - 1) == 0)
        return referee_status (referee, r->path + sizeof status - 1);
    return verdict_error (404, "not found");
}

static void
serve_one (const struct connection *c)
{
    char head[MAX_HEAD + 1];
    size_t head_len, len;
    uint64_t deadline_ms = clock_monotonic_ms () + IO_TIMEOUT_MS;
    if (! read_head (c->fd, head, &head_len, &len, deadline_ms))
        return;
    _cleanup_buf_ struct buf body = { 0 };
    buf_append (&body, head + head_len, len - head_len);
    head[head_len] = '\0';
    struct request r = { 0 };
    parse_head (head, &r);
    size_t wanted = r.content_length < MAX_BODY ? r.content_length : MAX_BODY;
    if (body.len < wanted)
        read_rest (c->fd, &body, wanted, deadline_ms);
    else
        buf_truncate (&body, wanted);
    r.body = body.data;
    r.body_len = body.len;
    struct verdict v = route (c->server->referee, &r);
    answer (c->fd, &v);
    json_decref (v.body);
    explicit_bzero (head, sizeof head);
}

static void
remember (struct server *s, struct connection *c)
{
    pthread_mutex_lock (&s->lock);
    c->next = s->open;
    c->link = &s->open;
    if (c->next)
        c->next->link = &c->next;
    s->open = c;
    s->open_count++;
    pthread_mutex_unlock (&s->lock);
}

/* Closes and frees it. The descriptor goes under the lock: a stop must not meet its number reused.
 */
static void
forget (struct connection *c)
{
    struct server *s = c->server;
    pthread_mutex_lock (&s->lock);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    close (c->fd);
    s->open_count--;
    eventfd_write (s->ended_fd, 1);
    pthread_cond_signal (&s->is_idle);
    pthread_mutex_unlock (&s->lock);
    free (c);
}

static void *
serve_connection (void *arg)
{
    struct connection *c = arg;
    serve_one (c);
    fd_end_answer (c->fd, 200);
    forget (c);
    return NULL;
}

/* --- listening --- */

int
server_bind (uint16_t port, uint16_t *bound, struct mur_error **err)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons (port),
                                   .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int one = 1;
    _cleanup_close_ int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind (fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen (fd, 1024) < 0 || getsockname (fd, (struct sockaddr *)&address, &len) < 0)
        return mur_fail_errno (err, E_RUN_010, "cannot listen on 127.0.0.1:%u", port), -1;
    *bound = ntohs (address.sin_port);
    return steal_fd (&fd);
}

static void
start_thread (struct server *s, int fd, const pthread_attr_t *attributes)
{
    pthread_t thread;
    struct connection *c = x_new0 (struct connection);
    *c = (struct connection){ .server = s, .fd = fd };
    remember (s, c);
    if (pthread_create (&thread, attributes, serve_connection, c) != 0)
        forget (c);
}

static bool
has_place (struct server *s)
{
    pthread_mutex_lock (&s->lock);
    bool has = s->open_count < MAX_CONNECTIONS;
    pthread_mutex_unlock (&s->lock);
    return has;
}

static void
accept_until_stopped (struct server *s, int listen_fd, int stop_fd,
                      const pthread_attr_t *attributes)
{
    for (;;) {
        struct pollfd fds[] = { { .fd = stop_fd, .events = POLLIN },
                                { .fd = has_place (s) ? listen_fd : -1, .events = POLLIN },
                                { .fd = s->ended_fd, .events = POLLIN } };
        if ((poll (fds, ARRAY_LEN (fds), -1) < 0 && errno != EINTR) || fds[0].revents)
            return;
        eventfd_t ended;
        if (fds[2].revents)
            eventfd_read (s->ended_fd, &ended);
        int fd = fds[1].revents ? accept4 (listen_fd, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (fd >= 0)
            start_thread (s, fd, attributes);
    }
}

static void
end_connections (struct server *s)
{
    pthread_mutex_lock (&s->lock);
    for (const struct connection *c = s->open; c; c = c->next)
        shutdown (c->fd, SHUT_RD);
    while (s->open_count)
        pthread_cond_wait (&s->is_idle, &s->lock);
    pthread_mutex_unlock (&s->lock);
}

void
server_run (int listen_fd, int stop_fd, struct referee *referee)
{
    struct server s = { .referee = referee,
                        .ended_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK),
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .is_idle = PTHREAD_COND_INITIALIZER };
    pthread_attr_t attributes;
    pthread_attr_init (&attributes);
    pthread_attr_setstacksize (&attributes, STACK_BYTES);
    pthread_attr_setdetachstate (&attributes, PTHREAD_CREATE_DETACHED);
    accept_until_stopped (&s, listen_fd, stop_fd, &attributes);
    close (listen_fd);
    end_connections (&s);
    pthread_attr_destroy (&attributes);
    close (s.ended_fd);
}

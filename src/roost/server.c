/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread a connection, one request each. At most MAX_CONNECTIONS at once: a flood waits in the
 * kernel's queue and costs no memory here, and who sends no head makes room. A stop ends every read
 * at once: what came is judged, nobody is waited for.
 */
#include "roost/server.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "roost/callers.h"
#include "roost/fleet_ask.h"
#include "roost/fleet_register.h"
#include "roost/referee_register.h"
#include "roost/referee_spawn.h"

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
#define HEAD_TIMEOUT_MS 3000 /* everybody is on this machine */
#define MAX_CONNECTIONS 128
#define SHED_MS         50
#define STACK_BYTES     (256 * 1024)

struct connection;

struct server {
    struct referee *referee;
    const char *token;    /* what a TCP caller of another user presents; NULL: nobody does */
    int ended_fd;         /* an eventfd: a connection ended, there may be a place again */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t is_idle;
    struct connection *open; /* doubly linked */
    size_t open_count;
};

struct connection {
    struct server *server;
    struct connection *next, **link; /* newest first */
    int fd;
    bool has_head; /* under the server's lock; until then it may be shed */
    struct caller caller;
};

struct request {
    char *method, *path;
    const char *credential, *approval; /* NULL: header absent */
    const char *pod_token, *ticket, *operator_secret;
    const char *origin, *content_type, *host, *length, *token;
    const char *fault; /* what is wrong with the head, NULL: nothing */
    size_t content_length;
    char *body;
    size_t body_len;
    const struct caller *caller;
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

/* Digits alone, as far as they mean anything here. */
static bool
read_length (const char *text, size_t *length)
{
    size_t digits = strspn (text, "0123456789");
    if (! digits || text[digits] || digits > 15)
        return false;
    *length = strtoull (text, NULL, 10);
    return true;
}

/* A value without the blanks and the carriage return at its end. */
static const char *
trimmed (char *value)
{
    size_t len = strlen (value);
    while (len && strchr (" \t\r", value[len - 1]))
        value[--len] = '\0';
    return value;
}

static void
parse_line (struct request *r, char *line)
{
    const struct {
        const char *name;
        const char **value;
    } known[] = {
        { "x-murmur-spawn-credential", &r->credential },
        { "x-murmur-spawn-approval", &r->approval },
        { "x-murmur-roost-token", &r->token },
        { "x-murmur-pod-token", &r->pod_token },
        { "x-murmur-child-ticket", &r->ticket },
        { "x-murmur-operator", &r->operator_secret },
        { "content-length", &r->length },
        { "content-type", &r->content_type },
        { "origin", &r->origin },
        { "host", &r->host },
    };
    if (str_header_value (line, "transfer-encoding"))
        r->fault = "a body is sent with content-length here, in no transfer-encoding";
    for (size_t i = 0; i < ARRAY_LEN (known); i++) {
        char *value = str_header_value (line, known[i].name);
        if (! value)
            continue;
        if (*known[i].value)
            r->fault = "a header that may be given once is there twice";
        *known[i].value = trimmed (value);
    }
}

static void
parse_head (char *head, size_t len, struct request *r)
{
    if (memchr (head, '\0', len))
        r->fault = "a NUL stands in the head";
    for (const char *end = strchr (head, '\n'); end; end = strchr (end + 1, '\n'))
        if (end == head || end[-1] != '\r')
            r->fault = "a line of the head ends without a carriage return";
    char *rest = head;
    char *line = strsep (&rest, "\n");
    r->method = strsep (&line, " ");
    r->path = line ? strsep (&line, " \r") : NULL;
    while ((line = strsep (&rest, "\n")) && *line && *line != '\r')
        parse_line (r, line);
    if (r->length && ! read_length (r->length, &r->content_length))
        r->fault = "content-length is no number";
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
    case 415:
        return "Unsupported Media Type";
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
    if (r->pod_token && referee_has_fleet (referee))
        return fleet_register (referee, r->pod_token, r->body, r->body_len);
    /* Who reaches it over a network is nobody yet: a root is a pod, and says which. */
    if (referee_has_fleet (referee) && ! r->approval)
        return verdict_not_you ();
    return referee_register (referee, r->approval, r->body, r->body_len, r->caller);
}

static struct verdict
deregister (struct referee *referee, const struct request *r)
{
    return referee_deregister (referee, r->credential, r->body, r->body_len);
}

static struct verdict
open_door (struct referee *referee, const struct request *r)
{
    return referee_has_fleet (referee)
               ? fleet_door (referee, r->operator_secret, r->body, r->body_len)
               : verdict_error (404, "not found");
}

static struct verdict
join_formation (struct referee *referee, const struct request *r)
{
    return r->pod_token && referee_has_fleet (referee)
               ? fleet_seat (referee, r->pod_token, r->body, r->body_len)
               : verdict_error (404, "not found");
}

static const struct {
    const char *method, *path;
    struct verdict (*handle) (struct referee *referee, const struct request *r);
} routes[] = {
    { "GET", "/health", health },
    { "POST", "/spawn", spawn },
    { "POST", "/register", register_session },
    { "POST", "/deregister", deregister },
    { "POST", "/doors", open_door },
    { "POST", "/formation", join_formation },
};

static bool
is_json (const char *content_type)
{
    static const char json[] = "application/json";
    size_t len = strcspn (content_type, "; \t");
    return len == sizeof json - 1 && strncasecmp (content_type, json, len) == 0;
}

/* Takes as long for every text. */
static bool
is_same (const char *a, const char *b, size_t len)
{
    unsigned char differs = 0;
    for (size_t i = 0; i < len; i++)
        differs |= (unsigned char)(a[i] ^ b[i]);
    return differs == 0;
}

static bool
may_ask_here (const struct server *s, const struct request *r, struct verdict *refusal)
{
    size_t len = s->token ? strlen (s->token) : 0;
    if (r->fault)
        *refusal = verdict_error (400, "%s", r->fault);
    else if (r->origin) /* a browser says so with whatever changes anything; no program of ours does
                         */
        *refusal = verdict_error (403, "pages of a browser are not answered");
    else if (r->content_type && ! is_json (r->content_type))
        *refusal = verdict_error (415, "the body must be application/json");
    else if (! r->caller->is_of_user &&
             ! (len && r->token && strlen (r->token) == len && is_same (r->token, s->token, len)))
        *refusal =
            verdict_error (403, "whoever is not a process of this user presents the token of "
                                "~/.murmur/roost.token in x-murmur-roost-token");
    else
        return true;
    return false;
}

static struct verdict
route (const struct server *s, const struct request *r)
{
    struct referee *referee = s->referee;
    struct verdict refusal;
    if (! may_ask_here (s, r, &refusal))
        return refusal;
    static const char status[] = "/status/";
    for (size_t i = 0; i < ARRAY_LEN (routes); i++)
        if (str_eq (r->method, routes[i].method) && str_eq (r->path, routes[i].path))
            return routes[i].handle (referee, r);
    if (str_eq (r->method, "GET") && r->path && strncmp (r->path, status, sizeof status - 1) == 0)
        return referee_status (referee, r->path + sizeof status - 1);
    if (r->path && referee_has_fleet (referee) && str_starts (r->path, "/children/")) {
        if (str_eq (r->method, "GET"))
            return fleet_children (referee, r->ticket, r->path);
        if (str_eq (r->method, "POST") && str_ends (r->path, "/end"))
            return fleet_children_end (referee, r->ticket, r->path);
    }
    return verdict_error (404, "not found");
}

static void
serve_one (struct connection *c)
{
    char head[MAX_HEAD + 1];
    size_t head_len, len;
    if (! read_head (c->fd, head, &head_len, &len, clock_monotonic_ms () + HEAD_TIMEOUT_MS))
        return;
    pthread_mutex_lock (&c->server->lock);
    c->has_head = true;
    pthread_mutex_unlock (&c->server->lock);
    uint64_t deadline_ms = clock_monotonic_ms () + IO_TIMEOUT_MS;
    _cleanup_buf_ struct buf body = { 0 };
    buf_append (&body, head + head_len, len - head_len);
    head[head_len] = '\0';
    struct request r = { .caller = &c->caller };
    parse_head (head, head_len, &r);
    size_t wanted = r.content_length < MAX_BODY ? r.content_length : MAX_BODY;
    if (body.len < wanted)
        read_rest (c->fd, &body, wanted, deadline_ms);
    else
        buf_truncate (&body, wanted);
    r.body = body.data;
    r.body_len = body.len;
    struct verdict v = route (c->server, &r);
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

static void
start_thread (struct server *s, int fd, const pthread_attr_t *attributes)
{
    pthread_t thread;
    struct connection *c = x_new0 (struct connection);
    *c = (struct connection){ .server = s, .fd = fd, .caller = caller_of (fd) };
    remember (s, c);
    if (pthread_create (&thread, attributes, serve_connection, c) != 0)
        forget (c);
}

/* When every place is taken, the connection that has been without a head longest makes room: a
 * flood of them keeps nobody out. */
static bool
has_place (struct server *s)
{
    pthread_mutex_lock (&s->lock);
    bool has = s->open_count < MAX_CONNECTIONS;
    const struct connection *oldest = NULL;
    for (const struct connection *c = s->open; c && ! has; c = c->next)
        if (! c->has_head)
            oldest = c;
    if (oldest)
        shutdown (oldest->fd, SHUT_RDWR);
    pthread_mutex_unlock (&s->lock);
    return has;
}

static void
accept_until_stopped (struct server *s, int listen_fd, int stop_fd,
                      const pthread_attr_t *attributes)
{
    for (;;) {
        struct pollfd fds[] = { { .fd = stop_fd, .events = POLLIN },
                                { .fd = listen_fd, .events = POLLIN },
                                { .fd = s->ended_fd, .events = POLLIN } };
        if ((poll (fds, ARRAY_LEN (fds), -1) < 0 && errno != EINTR) || fds[0].revents)
            return;
        eventfd_t ended;
        if (fds[2].revents)
            eventfd_read (s->ended_fd, &ended);
        if (fds[1].revents && ! has_place (s)) {
            /* The place that was asked for is free in a moment. */
            fd_wait (s->ended_fd, POLLIN, SHED_MS);
            continue;
        }
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
server_run (int listen_fd, int stop_fd, struct referee *referee, const char *token)
{
    struct server s = { .referee = referee,
                        .token = token,
                        .ended_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK),
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .is_idle = PTHREAD_COND_INITIALIZER };
    pthread_attr_t attributes;
    pthread_attr_init (&attributes);
    pthread_attr_setstacksize (&attributes, STACK_BYTES);
    pthread_attr_setdetachstate (&attributes, PTHREAD_CREATE_DETACHED);
    accept_until_stopped (&s, listen_fd, stop_fd, &attributes);
    close (listen_fd);
    referee_stop (referee);
    end_connections (&s);
    pthread_attr_destroy (&attributes);
    close (s.ended_fd);
}

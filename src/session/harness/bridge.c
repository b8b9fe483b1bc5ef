/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/bridge.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/fdio.h"
#include "base/version.h"
#include "door/tasks/tasks.h"
#include "mcp/server.h"
#include "session/harness/bridge_call.h"
#include "session/state/loop_lock.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define MAX_CONNECTIONS 64
#define MAX_CALLS       16
#define MAX_HEAD        16384
#define MAX_BODY        ((size_t)16 << 20)
#define DELIVERY_MS     10000
#define STACK_BYTES     (1024 * 1024)
#define LEFTOVER_SECS   2
#define TOKEN_BYTES     32

struct connection {
    struct bridge *bridge;
    struct connection *next, **link;
    int fd;
    struct cancel *abandon; /* of the call under way; NULL: none */
    bool is_gone;           /* the harness hung up; under the lock */
};

struct bridge {
    struct session *session;
    struct running_task *task;
    int listen_fd;
    int changed_fd; /* an eventfd: the accepting thread looks again */
    pthread_t thread;
    char url[48];
    char token[2 * TOKEN_BYTES + 1];
    char mcp_session[33];
    bool is_over;        /* under the loop lock: no further call */
    struct cancel *stop; /* raised with the task's, and when calls outlive the run too long */
    uint64_t stop_listener;

    pthread_mutex_t lock; /* a leaf: guards what follows */
    pthread_cond_t is_idle;
    struct connection *open;
    unsigned open_count, call_count;
    uint64_t active_ms;
    bool is_closing;
};

/* --- answers --- */

static void
answer (const struct connection *c, const char *status, const char *headers, const char *body)
{
    _cleanup_buf_ struct buf out = { 0 };
    buf_printf (&out, "HTTP/1.1 %s\r\n%scontent-length: %zu\r\nconnection: close\r\n\r\n%s", status,
                headers, strlen (body), body);
    (void)fd_send_all (c->fd, out.data, out.len, DELIVERY_MS / 1000);
}

#define JSON_TYPE "content-type: application/json\r\n"

static void
answer_text (const struct connection *c, const char *text)
{
    _cleanup_free_ char *headers =
        x_asprintf (JSON_TYPE "mcp-session-id: %s\r\n", c->bridge->mcp_session);
    answer (c, "200 OK", headers, text);
}

/* --- requests --- */

struct request {
    char *method, *path;
    const char *authorization;
    size_t content_length;
    bool has_length, expects_continue;
};

static void
parse_head (char *head, struct request *r)
{
    char *rest = head, *line = strsep (&rest, "\n"), *value;
    r->method = strsep (&line, " ");
    r->path = line ? strsep (&line, " \r") : NULL;
    while ((line = strsep (&rest, "\n")) && *line && *line != '\r') {
        if ((value = str_header_value (line, "authorization"))) {
            r->authorization = value;
        } else if ((value = str_header_value (line, "content-length"))) {
            r->content_length = strtoull (value, NULL, 10);
            r->has_length = true;
        } else if ((value = str_header_value (line, "expect"))) {
            r->expects_continue = strcasecmp (value, "100-continue") == 0;
        }
    }
}

/* Reads once more, until the deadline. False at the end, on an error or when time is up. */
static bool
read_more (int fd, struct buf *to, size_t most, uint64_t deadline_ms)
{
    uint64_t now = clock_monotonic_ms ();
    if (now >= deadline_ms || fd_wait (fd, POLLIN, (int64_t)(deadline_ms - now)) <= 0)
        return false;
    ssize_t n = recv (fd, buf_reserve (to, most), most, MSG_DONTWAIT);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    to->len += (size_t)n;
    to->data[to->len] = '\0';
    return true;
}

/* The head, NUL-terminated in place; what follows it is the body's beginning. NULL: there is none.
 */
static char *
read_head (int fd, struct buf *text, size_t *head_len, uint64_t deadline_ms)
{
    for (;;) {
        char *end = text->len ? memmem (text->data, text->len, "\r\n\r\n", 4) : NULL;
        if (end) {
            *end = '\0';
            *head_len = (size_t)(end - text->data) + 4;
            return text->data;
        }
        if (text->len >= MAX_HEAD || ! read_more (fd, text, MAX_HEAD - text->len, deadline_ms))
            return NULL;
    }
}

static bool
is_authorized (const struct bridge *b, const struct request *r)
{
    static const char scheme[] = "Bearer ";
    if (! r->authorization || strncasecmp (r->authorization, scheme, sizeof scheme - 1) != 0)
        return false;
    const char *token = r->authorization + sizeof scheme - 1;
    return strlen (token) == strlen (b->token) &&
           bytes_equal_ct (token, b->token, strlen (b->token));
}

/* --- calls --- */

static void
raise_other (void *ctx)
{
    cancel_raise (ctx);
}

static void
bridge_note (struct bridge *b, const char *fmt, const char *name)
{
    _cleanup_free_ char *text = NULL;
    if (asprintf (&text, fmt, name) < 0)
        return;
    TRACE (b->session->trace, NULL, harness_note, .task_id = b->task->task->id, .text = text);
}

/* A place among the calls under way, watched for a hang-up. False: there is none. */
static bool
begin_call (struct connection *c)
{
    struct bridge *b = c->bridge;
    pthread_mutex_lock (&b->lock);
    bool has_place = b->call_count < MAX_CALLS;
    if (has_place) {
        b->call_count++;
        c->abandon = cancel_new ();
    }
    pthread_mutex_unlock (&b->lock);
    if (has_place)
        eventfd_write (b->changed_fd, 1);
    return has_place;
}

/* True when the harness hung up meanwhile. */
static bool
end_call (struct connection *c)
{
    struct bridge *b = c->bridge;
    pthread_mutex_lock (&b->lock);
    b->call_count--;
    b->active_ms = clock_monotonic_ms ();
    struct cancel *abandon = steal_ptr (&c->abandon);
    bool is_gone = c->is_gone;
    pthread_mutex_unlock (&b->lock);
    cancel_unref (abandon);
    return is_gone;
}

static void
run_call (struct connection *c, const char *name, const json_t *input, struct bridge_answer *out)
{
    struct bridge *b = c->bridge;
    struct session *s = b->session;
    loop_lock_take (&s->loop_lock);
    if (b->is_over) {
        buf_puts (&out->text, "the run is over: nothing more is called");
        out->is_error = true;
    } else {
        uint64_t listener = cancel_add (b->task->cancel, raise_other, c->abandon);
        bridge_call_run (s, b->task, name, input, c->abandon, b->stop, out);
        cancel_remove (b->task->cancel, listener);
    }
    loop_lock_release (&s->loop_lock);
}

static void
serve_call (void *ctx, const struct mcp_call *call, struct mcp_answer *out)
{
    struct connection *c = ctx;
    struct bridge_answer a = { 0 };
    if (begin_call (c)) {
        run_call (c, call->name, call->arguments, &a);
        if (end_call (c))
            bridge_note (c->bridge,
                         "the harness closed the connection of its call to %s before the answer",
                         call->name);
    } else {
        a.is_error = true;
        buf_printf (&a.text, "%d calls are in flight, which is the bound: %s was not called",
                    MAX_CALLS, call->name);
        bridge_note (c->bridge,
                     "a call to %s was refused: 16 calls are in flight, which is the bound",
                     call->name);
    }
    out->result = mcp_text_result (a.text.data, a.text.len, a.is_error);
    buf_free (&a.text);
}

/* --- methods --- */

static void
serve_list (void *ctx, const struct mcp_call *call, struct mcp_answer *out)
{
    struct connection *c = ctx;
    (void)call;
    loop_lock_take (&c->bridge->session->loop_lock);
    out->result = bridge_tool_list (c->bridge->session);
    loop_lock_release (&c->bridge->session->loop_lock);
}

/* A harness is a legacy client unless its request says otherwise; of which revision matters to
 * nothing that is served here. */
static void
serve_request (struct connection *c, struct mcp_request *r)
{
    const struct mcp_service service = { .ctx = c,
                                         .name = BRIDGE_NAME,
                                         .version = MUR_VERSION,
                                         .offers = MCP_OFFERS_TOOLS,
                                         .tools_list = serve_list,
                                         .tools_call = serve_call };
    struct mcp_peer peer = { .revision = mcp_revision_find (MCP_OLDEST_HTTP) };
    _cleanup_mcp_answer_ struct mcp_answer a = { 0 };
    _cleanup_json_ json_t *info = mcp_service_info (&service);
    if (mcp_request_judge (r, &peer, &a)) {
        if (r->method->id == MCP_LISTEN)
            mcp_refuse (&a, MCP_NO_METHOD, "nothing here changes");
        else
            mcp_serve (&service, &peer, r, NULL, NULL, &a);
    }
    _cleanup_free_ char *text = mcp_answer_text (r, &a, info);
    answer_text (c, text);
    mcp_peer_clear (&peer);
}

static void
serve_body (struct connection *c, const char *body, size_t len)
{
    struct mcp_request r = { 0 };
    mcp_message_read (&r.message, body, len);
    if (r.message.kind == MCP_BAD) {
        _cleanup_free_ char *text =
            mcp_error_text (r.message.id, r.message.code, r.message.why, NULL);
        answer (c, "400 Bad Request", JSON_TYPE, text);
    } else if (r.message.kind == MCP_REQUEST) {
        serve_request (c, &r);
    } else {
        answer (c, "202 Accepted", "", "");
    }
    mcp_request_clear (&r);
}

static void
touch (struct bridge *b)
{
    pthread_mutex_lock (&b->lock);
    b->active_ms = clock_monotonic_ms ();
    pthread_mutex_unlock (&b->lock);
}

static void
serve (struct connection *c)
{
    static const char carry_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    uint64_t deadline_ms = clock_monotonic_ms () + DELIVERY_MS;
    _cleanup_buf_ struct buf text = { 0 };
    size_t head_len;
    struct request r = { 0 };
    char *head = read_head (c->fd, &text, &head_len, deadline_ms);
    if (! head)
        return;
    _cleanup_buf_ struct buf body = { 0 };
    buf_append (&body, text.data + head_len, text.len - head_len);
    parse_head (head, &r);
    if (! is_authorized (c->bridge, &r)) {
        answer (c, "401 Unauthorized", "www-authenticate: Bearer realm=\"murmur-bridge\"\r\n", "");
        return;
    }
    if (! str_eq (r.path, "/bridge")) {
        answer (c, "404 Not Found", "", "");
        return;
    }
    if (! str_eq (r.method, "POST")) {
        answer (c, "405 Method Not Allowed", "allow: POST\r\n", "");
        return;
    }
    touch (c->bridge);
    if (! r.has_length || r.content_length > MAX_BODY) {
        answer (c, r.has_length ? "413 Content Too Large" : "411 Length Required", "", "");
        return;
    }
    if (r.expects_continue && body.len < r.content_length)
        (void)fd_send_all (c->fd, carry_on, sizeof carry_on - 1, DELIVERY_MS / 1000);
    while (body.len < r.content_length)
        if (! read_more (c->fd, &body, r.content_length - body.len, deadline_ms))
            return;
    serve_body (c, body.data ? body.data : "", r.content_length);
}

/* --- connections --- */

static void
bridge_forget (struct connection *c)
{
    struct bridge *b = c->bridge;
    pthread_mutex_lock (&b->lock);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    close (c->fd);
    b->open_count--;
    pthread_cond_signal (&b->is_idle);
    eventfd_write (b->changed_fd, 1);
    pthread_mutex_unlock (&b->lock);
    free (c);
}

static void *
connection_thread (void *arg)
{
    struct connection *c = arg;
    serve (c);
    fd_end_answer (c->fd, 100);
    bridge_forget (c);
    return NULL;
}

static void
accept_one (struct bridge *b, int fd)
{
    pthread_t thread;
    pthread_attr_t attributes;
    struct connection *c = x_new0 (struct connection);
    *c = (struct connection){ .bridge = b, .fd = fd, .link = &b->open };
    pthread_mutex_lock (&b->lock);
    c->next = b->open;
    if (c->next)
        c->next->link = &c->next;
    b->open = c;
    b->open_count++;
    pthread_mutex_unlock (&b->lock);
    pthread_attr_init (&attributes);
    pthread_attr_setstacksize (&attributes, STACK_BYTES);
    pthread_attr_setdetachstate (&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create (&thread, &attributes, connection_thread, c) != 0)
        bridge_forget (c);
    pthread_attr_destroy (&attributes);
}

/* Descriptors of connections with a call under way; how many. */
static size_t
watched (struct bridge *b, struct pollfd fds[MAX_CONNECTIONS], bool *has_place, bool *is_closing)
{
    size_t count = 0;
    pthread_mutex_lock (&b->lock);
    *has_place = b->open_count < MAX_CONNECTIONS;
    *is_closing = b->is_closing;
    for (struct connection *c = b->open; c; c = c->next)
        if (c->abandon && ! c->is_gone)
            fds[count++] = (struct pollfd){ .fd = c->fd, .events = POLLRDHUP };
    pthread_mutex_unlock (&b->lock);
    return count;
}

static void
abandon (struct bridge *b, int fd)
{
    pthread_mutex_lock (&b->lock);
    for (struct connection *c = b->open; c; c = c->next)
        if (c->fd == fd && c->abandon) {
            c->is_gone = true;
            cancel_raise (c->abandon);
        }
    pthread_mutex_unlock (&b->lock);
}

static void *
accept_thread (void *arg)
{
    struct bridge *b = arg;
    struct pollfd fds[MAX_CONNECTIONS + 2];
    for (;;) {
        bool has_place, is_closing;
        eventfd_t changed;
        size_t count = watched (b, fds + 2, &has_place, &is_closing);
        if (is_closing)
            return NULL;
        fds[0] = (struct pollfd){ .fd = b->changed_fd, .events = POLLIN };
        fds[1] = (struct pollfd){ .fd = has_place ? b->listen_fd : -1, .events = POLLIN };
        if (poll (fds, count + 2, -1) < 0)
            continue;
        if (fds[0].revents)
            eventfd_read (b->changed_fd, &changed);
        for (size_t i = 2; i < count + 2; i++)
            if (fds[i].revents)
                abandon (b, fds[i].fd);
        int fd = fds[1].revents ? accept4 (b->listen_fd, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (fd >= 0)
            accept_one (b, fd);
    }
}

/* --- the whole --- */

int
bridge_listen (uint16_t *port, struct mur_error **err)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    _cleanup_close_ int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind (fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen (fd, 128) < 0 || getsockname (fd, (struct sockaddr *)&address, &len) < 0)
        return mur_fail_errno (err, E_IO_003, "the tool bridge cannot listen on 127.0.0.1"), -1;
    *port = ntohs (address.sin_port);
    return steal_fd (&fd);
}

/* At the port the session's walls lead to, or at one of its own. */
static bool
listen_here (struct bridge *b, struct mur_error **err)
{
    const struct harness *h = b->session->rooms.harness;
    uint16_t port = h->bridge_port;
    b->listen_fd = -1;
    b->changed_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (h->bridge_fd >= 0)
        b->listen_fd = fcntl (h->bridge_fd, F_DUPFD_CLOEXEC, 0);
    else if ((b->listen_fd = bridge_listen (&port, err)) < 0)
        return false;
    if (b->listen_fd < 0 || b->changed_fd < 0)
        return mur_fail_errno (err, E_IO_003, "the tool bridge cannot be opened");
    snprintf (b->url, sizeof b->url, "http://127.0.0.1:%u/bridge", port);
    return true;
}

static void
bridge_free (struct bridge *b)
{
    if (b->listen_fd >= 0)
        close (b->listen_fd);
    if (b->changed_fd >= 0)
        close (b->changed_fd);
    cancel_unref (b->stop);
    pthread_cond_destroy (&b->is_idle);
    pthread_mutex_destroy (&b->lock);
    explicit_bzero (b->token, sizeof b->token);
    free (b);
}

struct bridge *
bridge_open (struct session *s, struct running_task *task, struct mur_error **err)
{
    struct bridge *b = x_new0 (struct bridge);
    uint8_t random[TOKEN_BYTES], id[16];
    b->session = s;
    b->task = task;
    b->stop = cancel_new ();
    pthread_mutex_init (&b->lock, NULL);
    pthread_cond_init (&b->is_idle, NULL);
    random_bytes (random, sizeof random);
    random_bytes (id, sizeof id);
    hex_encode (random, sizeof random, b->token);
    hex_encode (id, sizeof id, b->mcp_session);
    explicit_bzero (random, sizeof random);
    if (! listen_here (b, err)) {
        bridge_free (b);
        return NULL;
    }
    int failed = pthread_create (&b->thread, NULL, accept_thread, b);
    if (failed) {
        errno = failed;
        mur_fail_errno (err, E_IO_003, "cannot start the thread of the tool bridge");
        bridge_free (b);
        return NULL;
    }
    b->stop_listener = cancel_add (task->cancel, raise_other, b->stop);
    return b;
}

/* Tools get a little longer than the run, then they are stopped. */
static void
wait_for_calls (struct bridge *b)
{
    struct timespec until;
    clock_gettime (CLOCK_REALTIME, &until);
    until.tv_sec += LEFTOVER_SECS;
    pthread_mutex_lock (&b->lock);
    while (b->open_count && pthread_cond_timedwait (&b->is_idle, &b->lock, &until) == 0)
        ;
    bool has_calls = b->open_count > 0;
    pthread_mutex_unlock (&b->lock);
    if (has_calls)
        cancel_raise (b->stop);
    pthread_mutex_lock (&b->lock);
    while (b->open_count)
        pthread_cond_wait (&b->is_idle, &b->lock);
    pthread_mutex_unlock (&b->lock);
}

void
bridge_close (struct bridge *b)
{
    if (! b)
        return;
    b->is_over = true;
    pthread_mutex_lock (&b->lock);
    b->is_closing = true;
    for (struct connection *c = b->open; c; c = c->next) {
        shutdown (c->fd, SHUT_RD);
        if (c->abandon) {
            c->is_gone = true;
            cancel_raise (c->abandon);
        }
    }
    pthread_mutex_unlock (&b->lock);
    eventfd_write (b->changed_fd, 1);
    loop_lock_release (&b->session->loop_lock);
    pthread_join (b->thread, NULL);
    wait_for_calls (b);
    cancel_remove (b->task->cancel, b->stop_listener);
    loop_lock_take (&b->session->loop_lock);
    bridge_free (b);
}

const char *
bridge_url (const struct bridge *b)
{
    return b->url;
}

const char *
bridge_token (const struct bridge *b)
{
    return b->token;
}

uint64_t
bridge_active_ms (struct bridge *b)
{
    pthread_mutex_lock (&b->lock);
    uint64_t at = b->call_count ? clock_monotonic_ms () : b->active_ms;
    pthread_mutex_unlock (&b->lock);
    return at;
}

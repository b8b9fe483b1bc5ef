/* SPDX-License-Identifier: Apache-2.0
 *
 * MCP over stdio: one client on two descriptors, one message a line.
 *
 * One thread reads; what may wait runs on a thread of its own. Always true: each message is written
 * whole; a cancelled call is not answered; the order of other answers is that of their requests.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "mcp/lines.h"
#include "mcp/outgoing.h"
#include "mcp/progress.h"
#include "mcp/watched.h"
#include "session/served/served_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAX_CALLS   64
#define STACK_BYTES ((size_t)1024 * 1024)
#define BEAT_MS     10000 /* a call that wants progress is told at least this often */
#define TICK_MS     1000

struct work {
    struct stdio_server *server;
    struct work *next, **link;
    struct mcp_request request;
    struct cancel *cancel;
    bool is_silent;   /* cancelled: no answer */
    uint64_t told_ms; /* the last progress */
    struct mcp_progress progress;
    struct mcp_watched watched; /* of a subscription */
};

struct stdio_server {
    struct served *served;
    int in_fd, out_fd, wake_fd;
    pthread_t reader;
    void (*ended) (void *ctx);
    void *ctx;
    json_t *info;
    struct mcp_peer peer; /* the reader's */
    struct mcp_lines lines;
    struct mcp_outgoing outgoing; /* what the client is asked */
    struct mcp_watched watched;   /* of a legacy client */

    pthread_mutex_t lock; /* a leaf: what follows, and writing */
    pthread_cond_t is_idle;
    struct work *open;       /* calls under way */
    struct work *subscribed; /* subscriptions */
    unsigned open_count;
    uint64_t generation; /* of the tools, as the client was told last */
    bool is_legacy_open; /* the client sent notifications/initialized */
    bool is_gone;        /* nothing can be written any more */
    bool is_closing;
};

/* --- writing --- */

/* Under the lock. A client that does not read for a minute is as good as gone. */
static void
write_line (struct stdio_server *x, char *text)
{
    size_t len = strlen (text), done = 0;
    text[len] = '\n'; /* in place of the end: written as one piece */
    while (! x->is_gone && done < len + 1) {
        ssize_t n = write (x->out_fd, text + done, len + 1 - done);
        if (n > 0) {
            done += (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd fd = { .fd = x->out_fd, .events = POLLOUT };
            if (poll (&fd, 1, 60000) <= 0)
                x->is_gone = true;
        } else if (errno != EINTR) {
            x->is_gone = true;
        }
    }
    free (text);
}

static void
say (struct stdio_server *x, char *text)
{
    if (! text)
        return;
    pthread_mutex_lock (&x->lock);
    write_line (x, text);
    pthread_mutex_unlock (&x->lock);
}

static void
answer (struct stdio_server *x, const struct mcp_request *r, const struct mcp_answer *a)
{
    say (x, mcp_answer_text (r, a, x->info));
}

/* --- calls --- */

static void
unlink_work (struct work *w)
{
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
}

static void
link_work (struct work **list, struct work *w)
{
    w->next = *list;
    w->link = list;
    if (w->next)
        w->next->link = &w->next;
    *list = w;
}

static void
free_work (struct work *w)
{
    mcp_watched_clear (&w->watched, served_service (w->server->served));
    mcp_request_clear (&w->request);
    cancel_unref (w->cancel);
    free (w);
}

static void
send_before (void *ctx, char *text)
{
    struct work *w = ctx;
    pthread_mutex_lock (&w->server->lock);
    if (w->is_silent)
        free (text);
    else
        write_line (w->server, text);
    pthread_mutex_unlock (&w->server->lock);
}

static void
tell_progress (void *ctx, double at, double total, const char *message)
{
    struct work *w = ctx;
    pthread_mutex_lock (&w->server->lock);
    char *text =
        w->is_silent ? NULL : mcp_progress_tell (&w->progress, &w->request, at, total, message);
    if (text) {
        w->told_ms = clock_monotonic_ms ();
        write_line (w->server, text);
    }
    pthread_mutex_unlock (&w->server->lock);
}

static json_t *
ask_client (void *ctx, const char *method, const json_t *params, uint64_t timeout_ms)
{
    struct work *w = ctx;
    return mcp_outgoing_ask (&w->server->outgoing, send_before, w, method, params, timeout_ms,
                             w->cancel);
}

/* Under the lock. */
static void
tell_list (struct stdio_server *x, enum mcp_list list)
{
    if (x->is_legacy_open)
        write_line (x, mcp_list_changed_text (NULL, list));
    for (struct work *w = x->subscribed; w; w = w->next)
        if (mcp_listens_for (&w->request, list))
            write_line (x, mcp_list_changed_text (&w->request, list));
}

void
stdio_server_tell_tools (struct stdio_server *x)
{
    if (! x)
        return;
    uint64_t generation = served_generation (x->served);
    pthread_mutex_lock (&x->lock);
    bool has_changed = generation != x->generation;
    x->generation = generation;
    if (has_changed)
        tell_list (x, MCP_LIST_TOOLS);
    pthread_mutex_unlock (&x->lock);
}

void
stdio_server_tell_resources (struct stdio_server *x)
{
    if (! x)
        return;
    pthread_mutex_lock (&x->lock);
    tell_list (x, MCP_LIST_RESOURCES);
    pthread_mutex_unlock (&x->lock);
}

static void *
call_thread (void *arg)
{
    struct work *w = arg;
    struct stdio_server *x = w->server;
    _cleanup_mcp_answer_ struct mcp_answer a = { 0 };
    const struct mcp_sink sink = { send_before, tell_progress, ask_client, w };
    mcp_serve (served_service (x->served), NULL, &w->request, &sink, w->cancel, &a);
    char *text = mcp_answer_text (&w->request, &a, x->info);
    pthread_mutex_lock (&x->lock);
    unlink_work (w);
    if (w->is_silent)
        free (text);
    else
        write_line (x, text);
    pthread_mutex_unlock (&x->lock);
    stdio_server_tell_tools (x);
    free_work (w);
    pthread_mutex_lock (&x->lock);
    x->open_count--;
    pthread_cond_signal (&x->is_idle);
    pthread_mutex_unlock (&x->lock);
    return NULL;
}

/* Takes the request over. */
static void
begin_call (struct stdio_server *x, struct mcp_request *r)
{
    pthread_t thread;
    pthread_attr_t attributes;
    struct work *w = x_new0 (struct work);
    *w = (struct work){
        .server = x, .request = *r, .cancel = cancel_new (), .told_ms = clock_monotonic_ms ()
    };
    *r = (struct mcp_request){ 0 };
    pthread_mutex_lock (&x->lock);
    while (x->open_count >= MAX_CALLS && ! x->is_gone)
        pthread_cond_wait (&x->is_idle, &x->lock);
    x->open_count++;
    link_work (&x->open, w);
    pthread_mutex_unlock (&x->lock);
    pthread_attr_init (&attributes);
    pthread_attr_setstacksize (&attributes, STACK_BYTES);
    pthread_attr_setdetachstate (&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create (&thread, &attributes, call_thread, w) != 0)
        call_thread (w);
    pthread_attr_destroy (&attributes);
}

static void
cancel_call (struct stdio_server *x, const struct mcp_message *m)
{
    const json_t *id = json_object_get (m->params, "requestId");
    pthread_mutex_lock (&x->lock);
    for (struct work *w = x->open; w; w = w->next)
        if (json_equal ((json_t *)(uintptr_t)w->request.message.id, (json_t *)(uintptr_t)id)) {
            w->is_silent = true;
            cancel_raise (w->cancel);
        }
    for (struct work *w = x->subscribed, *next; w; w = next) {
        next = w->next;
        if (json_equal ((json_t *)(uintptr_t)w->request.message.id, (json_t *)(uintptr_t)id)) {
            unlink_work (w);
            free_work (w);
        }
    }
    pthread_mutex_unlock (&x->lock);
}

static void
subscribe (struct stdio_server *x, struct mcp_request *r)
{
    struct work *w = x_new0 (struct work);
    *w = (struct work){ .server = x, .request = *r };
    *r = (struct mcp_request){ 0 };
    mcp_watched_listen (&w->watched, &x->lock, served_service (x->served), &w->request);
    say (x, mcp_listen_acknowledged (served_service (x->served), &w->request, &w->watched.uris));
    pthread_mutex_lock (&x->lock);
    link_work (&x->subscribed, w);
    pthread_mutex_unlock (&x->lock);
}

void
stdio_server_tell_resource (struct stdio_server *x, const char *uri)
{
    if (! x)
        return;
    pthread_mutex_lock (&x->lock);
    if (strv_contains (&x->watched.uris, uri))
        write_line (x, mcp_resource_updated_text (NULL, uri));
    for (struct work *w = x->subscribed; w; w = w->next)
        if (strv_contains (&w->watched.uris, uri))
            write_line (x, mcp_resource_updated_text (&w->request, uri));
    pthread_mutex_unlock (&x->lock);
}

/* --- reading --- */

static void
on_notice (struct stdio_server *x, const struct mcp_message *m)
{
    if (str_eq (m->method, "notifications/cancelled")) {
        cancel_call (x, m);
    } else if (str_eq (m->method, "notifications/initialized")) {
        pthread_mutex_lock (&x->lock);
        x->is_legacy_open = x->peer.revision != NULL;
        pthread_mutex_unlock (&x->lock);
    }
}

static void
on_request (struct stdio_server *x, struct mcp_request *r)
{
    _cleanup_mcp_answer_ struct mcp_answer a = { 0 };
    if (! mcp_request_judge (r, &x->peer, &a)) {
        answer (x, r, &a);
    } else if (r->method->id == MCP_LISTEN) {
        subscribe (x, r);
    } else if (r->method->id == MCP_SUBSCRIBE || r->method->id == MCP_UNSUBSCRIBE) {
        mcp_watched_serve (&x->watched, &x->lock, served_service (x->served), r, &a);
        answer (x, r, &a);
    } else if (r->method->may_wait) {
        begin_call (x, r);
    } else {
        mcp_serve (served_service (x->served), &x->peer, r, NULL, NULL, &a);
        answer (x, r, &a);
    }
}

static void
on_line (struct stdio_server *x, const char *line, size_t len)
{
    struct mcp_request r = { 0 };
    mcp_message_read (&r.message, line, len);
    if (r.message.kind == MCP_NOTIFICATION)
        on_notice (x, &r.message);
    else if (r.message.kind == MCP_RESPONSE)
        mcp_outgoing_take (&x->outgoing, &r.message);
    else
        on_request (x, &r);
    mcp_request_clear (&r);
}

static void
refuse_long_line (struct stdio_server *x)
{
    say (x, mcp_error_text (NULL, MCP_INVALID_REQUEST, "the message is larger than 16 MiB", NULL));
}

/* False at the end of the stream. */
static bool
read_lines (struct stdio_server *x)
{
    char piece[65536];
    const char *line;
    size_t len;
    ssize_t n = read (x->in_fd, piece, sizeof piece);
    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN);
    mcp_lines_feed (&x->lines, piece, (size_t)n);
    for (enum mcp_line what; (what = mcp_lines_next (&x->lines, &line, &len)) != MCP_LINE_NONE;)
        if (what == MCP_LINE)
            on_line (x, line, len);
        else
            refuse_long_line (x);
    return true;
}

/* True while some call wants to hear that it goes on. */
static bool
beat (struct stdio_server *x)
{
    bool is_wanted = false;
    uint64_t now = clock_monotonic_ms ();
    pthread_mutex_lock (&x->lock);
    for (struct work *w = x->open; w; w = w->next) {
        is_wanted |= w->request.progress_token != NULL;
        if (! w->request.progress_token || w->is_silent || now - w->told_ms < BEAT_MS)
            continue;
        w->told_ms = now;
        write_line (x, mcp_progress_beat (&w->progress, &w->request));
    }
    pthread_mutex_unlock (&x->lock);
    return is_wanted;
}

static bool
is_closing (struct stdio_server *x)
{
    pthread_mutex_lock (&x->lock);
    bool is = x->is_closing || x->is_gone;
    pthread_mutex_unlock (&x->lock);
    return is;
}

static void
silence_all (struct stdio_server *x)
{
    mcp_outgoing_close (&x->outgoing);
    pthread_mutex_lock (&x->lock);
    x->is_gone = true;
    for (struct work *w = x->open; w; w = w->next) {
        w->is_silent = true;
        cancel_raise (w->cancel);
    }
    pthread_cond_broadcast (&x->is_idle);
    pthread_mutex_unlock (&x->lock);
}

static void *
reader_thread (void *arg)
{
    struct stdio_server *x = arg;
    while (! is_closing (x)) {
        struct pollfd fds[] = { { .fd = x->in_fd, .events = POLLIN },
                                { .fd = x->wake_fd, .events = POLLIN },
                                { .fd = x->out_fd } };
        int wait_ms = beat (x) ? TICK_MS : -1;
        if (poll (fds, ARRAY_LEN (fds), wait_ms) < 0)
            continue;
        if (fds[1].revents)
            break;
        if (fds[2].revents & (POLLERR | POLLHUP | POLLNVAL))
            break;
        if (fds[0].revents && ! read_lines (x))
            break;
    }
    if (! is_closing (x)) {
        silence_all (x);
        x->ended (x->ctx);
    }
    return NULL;
}

/* --- the whole --- */

struct stdio_server *
stdio_server_start (struct served *v, int in_fd, int out_fd, void (*ended) (void *ctx), void *ctx,
                    struct mur_error **err)
{
    struct stdio_server *x = x_new0 (struct stdio_server);
    *x = (struct stdio_server){ .served = v,
                                .in_fd = in_fd,
                                .out_fd = out_fd,
                                .wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK),
                                .ended = ended,
                                .ctx = ctx,
                                .info = mcp_service_info (served_service (v)),
                                .lines = { .limit = MCP_MESSAGE_MAX },
                                .generation = served_generation (v) };
    mcp_outgoing_init (&x->outgoing);
    pthread_mutex_init (&x->lock, NULL);
    pthread_cond_init (&x->is_idle, NULL);
    int failed = pthread_create (&x->reader, NULL, reader_thread, x);
    if (failed) {
        errno = failed;
        mur_fail_errno (err, E_IO_003, "cannot start the thread that serves MCP");
        return NULL;
    }
    return x;
}

/* Subscriptions end with a result, whoever is still there to read it. */
static void
end_subscriptions (struct stdio_server *x)
{
    while (x->subscribed) {
        struct work *w = x->subscribed;
        _cleanup_mcp_answer_ struct mcp_answer a = { 0 };
        mcp_listen_end (&w->request, &a);
        answer (x, &w->request, &a);
        unlink_work (w);
        free_work (w);
    }
}

static void
wait_for_calls (struct stdio_server *x)
{
    mcp_outgoing_close (&x->outgoing);
    pthread_mutex_lock (&x->lock);
    x->is_closing = true;
    eventfd_write (x->wake_fd, 1);
    for (struct work *w = x->open; w; w = w->next)
        cancel_raise (w->cancel);
    while (x->open_count)
        pthread_cond_wait (&x->is_idle, &x->lock);
    pthread_mutex_unlock (&x->lock);
}

void
stdio_server_stop (struct stdio_server *x)
{
    if (! x)
        return;
    wait_for_calls (x);
    pthread_join (x->reader, NULL);
    end_subscriptions (x);
    close (x->in_fd);
    close (x->out_fd);
    close (x->wake_fd);
    mcp_watched_clear (&x->watched, served_service (x->served));
    mcp_peer_clear (&x->peer);
    mcp_lines_clear (&x->lines);
    mcp_outgoing_destroy (&x->outgoing);
    json_decref (x->info);
    pthread_cond_destroy (&x->is_idle);
    pthread_mutex_destroy (&x->lock);
    free (x);
}

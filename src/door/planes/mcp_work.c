/* SPDX-License-Identifier: Apache-2.0
 *
 * A request of MCP that is not answered at once, and the stream its client reads.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "door/planes/mcp_plane_internal.h"
#include "door/planes/plane_answer.h"

#include <string.h>

#define BEAT_MS    10000
#define UNREAD_MAX ((size_t)1024 * 1024) /* of who listens */

/* --- answers --- */

void
mcp_work_reply (struct http_exchange *x, int status, char *text, const char *session)
{
    _cleanup_plane_headers_ struct plane_headers h = { 0 };
    plane_header (&h, "content-type", "application/json");
    if (session)
        plane_header (&h, "mcp-session-id", session);
    http_reply_take (x, status, h.items, h.len, text, strlen (text));
}

void
mcp_work_refuse (struct http_exchange *x, int status, const char *why)
{
    mcp_work_reply (x, status, mcp_error_text (NULL, MCP_INVALID_REQUEST, why, NULL), NULL);
}

/* --- what waits --- */

void
mcp_work_unref (struct work *w)
{
    struct mcp_plane *p = w->plane;
    pthread_mutex_lock (&p->lock);
    bool is_last = --w->refs == 0;
    pthread_mutex_unlock (&p->lock);
    if (! is_last)
        return;
    mcp_request_clear (&w->request);
    mcp_peer_clear (&w->peer);
    cancel_unref (w->cancel);
    buf_free (&w->out);
    free (w->principal);
    free (w);
}

void
mcp_work_unlink (struct work *w)
{
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
}

void
mcp_work_put (struct work *w, char *text)
{
    bool is_lazy = w->is_listening && w->out.len - w->sent > UNREAD_MAX;
    if (is_lazy) /* it comes back, and asks anew */
        mcp_work_end (w);
    if (text && w->stream && ! w->is_over) {
        buf_printf (&w->out, "event: message\ndata: %s\n\n", text);
        http_stream_wake (w->stream);
    }
    free (text);
}

void
mcp_work_end (struct work *w)
{
    w->is_over = true;
    if (w->stream)
        http_stream_wake (w->stream);
}

static ssize_t
stream_read (void *ctx, char *out, size_t cap)
{
    struct work *w = ctx;
    struct mcp_plane *p = w->plane;
    pthread_mutex_lock (&p->lock);
    uint64_t now = clock_monotonic_ms ();
    if (! w->is_over && w->sent == w->out.len && now - w->told_ms >= BEAT_MS) {
        char *text = mcp_progress_beat (&w->progress, &w->request);
        buf_printf (&w->out, text ? "event: message\ndata: %s\n\n" : ": %s\n\n", text ? text : "");
        free (text);
        w->told_ms = now;
    }
    size_t count = w->out.len - w->sent;
    count = count < cap ? count : cap;
    if (count)
        memcpy (out, w->out.data + w->sent, count);
    w->sent += count;
    if (w->sent == w->out.len) { /* a stream may be open for days */
        buf_truncate (&w->out, 0);
        w->sent = 0;
    }
    bool is_gone = ! count && w->stream && http_stream_is_gone (w->stream);
    ssize_t n = count ? (ssize_t)count : w->is_over || is_gone ? HTTP_STREAM_END : HTTP_STREAM_WAIT;
    pthread_mutex_unlock (&p->lock);
    return n;
}

/* The client is gone, or has all: in the modern era that is how a call is cancelled. */
static void
stream_closed (void *ctx)
{
    struct work *w = ctx;
    struct mcp_plane *p = w->plane;
    pthread_mutex_lock (&p->lock);
    w->stream = NULL;
    bool is_cancel = ! w->is_over && w->request.revision->era == MCP_MODERN;
    if (w->is_listening) {
        mcp_work_unlink (w);
        p->listening--;
        mcp_watched_clear (&w->watched, p->spec.service);
    }
    pthread_mutex_unlock (&p->lock);
    if (is_cancel && w->cancel)
        cancel_raise (w->cancel);
    mcp_work_unref (w);
}

static const struct http_stream_source source = { stream_read, 500, stream_closed };

bool
mcp_work_open_stream (struct work *w, struct http_exchange *x)
{
    static const struct http_header headers[] = { { "content-type", "text/event-stream", 17 },
                                                  { "cache-control", "no-store", 8 },
                                                  { "x-accel-buffering", "no", 2 } };
    w->told_ms = clock_monotonic_ms ();
    w->refs++;
    w->stream = http_reply_stream (x, 200, headers, ARRAY_LEN (headers), &source, w);
    if (! w->stream)
        w->refs--;
    return w->stream != NULL;
}

void
mcp_work_open_late (struct work *w)
{
    if (w->is_late && w->x)
        mcp_work_open_stream (w, steal_ptr (&w->x));
}

struct work *
mcp_work_new (struct mcp_plane *p, struct mcp_request *r, const char *credential)
{
    struct work *w = x_new0 (struct work);
    *w = (struct work){ .plane = p, .refs = 1, .request = *r, .cancel = cancel_new () };
    w->principal = credential ? x_strdup (credential) : NULL;
    w->request.principal = w->principal;
    *r = (struct mcp_request){ 0 };
    return w;
}

void
mcp_work_link (struct work *w)
{
    struct mcp_plane *p = w->plane;
    w->next = p->open;
    w->link = &p->open;
    if (w->next)
        w->next->link = &w->next;
    p->open = w;
}

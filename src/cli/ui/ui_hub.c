/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_hub.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/digest.h"
#include "cli/ui/ui_gate.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#define KEPT_BYTES   ((size_t)512 << 10)
#define KEPT_EVENTS  1024 /* a power of two: the ring is indexed by the event's number */
#define HEARTBEAT_MS 15000

struct kept_event {
    char *text; /* as it is sent */
    size_t len;
};

struct ui_hub {
    pthread_mutex_t lock;
    char epoch[17]; /* tells this process's numbers from another's */
    struct kept_event ring[KEPT_EVENTS];
    uint64_t oldest, next; /* numbers; those from oldest to next - 1 are kept */
    size_t bytes;
    struct reader *readers;
};

struct reader {
    struct ui_hub *hub;
    struct http_stream *stream; /* NULL until it was answered */
    uint64_t at;                /* the next event to be sent */
    struct buf sending;         /* an event that did not fit whole */
    size_t sent;
    uint64_t last_ms; /* when something was sent */
    struct reader *next, **link;
};

struct ui_hub *
ui_hub_new (void)
{
    struct ui_hub *h = x_new0 (struct ui_hub);
    pthread_mutex_init (&h->lock, NULL);
    uint64_t epoch;
    random_bytes (&epoch, sizeof epoch);
    snprintf (h->epoch, sizeof h->epoch, "%016" PRIx64, epoch);
    h->oldest = h->next = 1;
    return h;
}

void
ui_hub_free (struct ui_hub *h)
{
    if (! h)
        return;
    for (size_t i = 0; i < KEPT_EVENTS; i++)
        free (h->ring[i].text);
    pthread_mutex_destroy (&h->lock);
    free (h);
}

static void
drop_oldest (struct ui_hub *h)
{
    struct kept_event *e = &h->ring[h->oldest++ % KEPT_EVENTS];
    h->bytes -= e->len;
    free (steal_ptr (&e->text));
}

void
ui_hub_publish (struct ui_hub *h, const char *kind, json_t *event)
{
    json_set_string (event, "kind", kind);
    _cleanup_free_ char *json = json_text (event, JSON_TEXT_ORDERED);
    json_decref (event);
    pthread_mutex_lock (&h->lock);
    char *text = x_asprintf ("id: %s.%" PRIu64 "\ndata: %s\n\n", h->epoch, h->next, json);
    size_t len = strlen (text);
    while (h->next - h->oldest == KEPT_EVENTS ||
           (h->oldest < h->next && h->bytes + len > KEPT_BYTES))
        drop_oldest (h);
    h->ring[h->next++ % KEPT_EVENTS] = (struct kept_event){ text, len };
    h->bytes += len;
    for (struct reader *r = h->readers; r; r = r->next)
        if (r->stream)
            http_stream_wake (r->stream);
    pthread_mutex_unlock (&h->lock);
}

bool
ui_hub_has_readers (struct ui_hub *h)
{
    pthread_mutex_lock (&h->lock);
    bool has = h->readers != NULL;
    pthread_mutex_unlock (&h->lock);
    return has;
}

/* The next thing for a reader whose last was sent whole. False: nothing. */
static bool
next_text (struct reader *r)
{
    struct ui_hub *h = r->hub;
    buf_truncate (&r->sending, 0);
    r->sent = 0;
    if (r->at < h->oldest) {
        buf_printf (&r->sending, "id: %s.%" PRIu64 "\ndata: {\"kind\":\"gap\"}\n\n", h->epoch,
                    h->next - 1);
        r->at = h->next;
    } else if (r->at < h->next) {
        const struct kept_event *e = &h->ring[r->at++ % KEPT_EVENTS];
        buf_append (&r->sending, e->text, e->len);
    } else if (clock_monotonic_ms () - r->last_ms >= HEARTBEAT_MS - 500) {
        buf_puts (&r->sending, ":heartbeat\n\n");
    }
    return r->sending.len > 0;
}

static ssize_t
read_events (void *ctx, char *out, size_t cap)
{
    struct reader *r = ctx;
    size_t len = 0;
    pthread_mutex_lock (&r->hub->lock);
    while (len < cap && (r->sent < r->sending.len || next_text (r))) {
        size_t left = r->sending.len - r->sent, part = left < cap - len ? left : cap - len;
        memcpy (out + len, r->sending.data + r->sent, part);
        r->sent += part;
        len += part;
    }
    if (len)
        r->last_ms = clock_monotonic_ms ();
    pthread_mutex_unlock (&r->hub->lock);
    return len ? (ssize_t)len : HTTP_STREAM_WAIT;
}

static void
forget_reader (void *ctx)
{
    struct reader *r = ctx;
    pthread_mutex_lock (&r->hub->lock);
    *r->link = r->next;
    if (r->next)
        r->next->link = r->link;
    pthread_mutex_unlock (&r->hub->lock);
    buf_free (&r->sending);
    free (r);
}

/* Where a page that saw <id> last goes on; one that saw a number of another process, or one that is
 * not kept, has missed something. */
static uint64_t
place_after (const struct ui_hub *h, const char *id)
{
    size_t len = strlen (h->epoch);
    if (! id)
        return h->next;
    if (strncmp (id, h->epoch, len) != 0 || id[len] != '.')
        return 0;
    uint64_t number = strtoull (id + len + 1, NULL, 10);
    return number < h->next ? number + 1 : 0;
}

void
ui_hub_stream (struct ui_hub *h, struct http_exchange *x)
{
    static const struct http_stream_source source = { .read = read_events,
                                                      .tick_ms = HEARTBEAT_MS,
                                                      .closed = forget_reader };
    struct reader *r = x_new0 (struct reader);
    r->hub = h;
    buf_puts (&r->sending, "retry: 1000\ndata: {\"kind\":\"hello\"}\n\n");
    pthread_mutex_lock (&h->lock);
    r->at = place_after (h, http_exchange_header (x, "last-event-id", NULL));
    r->next = h->readers;
    r->link = &h->readers;
    if (r->next)
        r->next->link = &r->next;
    h->readers = r;
    pthread_mutex_unlock (&h->lock);
    struct http_stream *stream = ui_reply_stream (x, "text/event-stream", &source, r);
    if (! stream) {
        forget_reader (r);
        return;
    }
    pthread_mutex_lock (&h->lock);
    r->stream = stream;
    pthread_mutex_unlock (&h->lock);
    http_stream_wake (stream);
}

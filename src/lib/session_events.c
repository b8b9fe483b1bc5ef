/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/session_events.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "client/door_client.h"
#include "lib/event.h"

#include <errno.h>
#include <string.h>

/* --- from the door, on the network's thread --- */

/* What it answered last is its result. */
static void
keep_answer (struct mur_session *s, const char *text)
{
    pthread_mutex_lock (&s->lock);
    free (s->answer);
    s->answer = text ? x_strdup (text) : NULL;
    pthread_mutex_unlock (&s->lock);
}

static bool
on_event (void *ctx, const char *id, const char *data, size_t len)
{
    struct mur_session *s = ctx;
    (void)id;
    _cleanup_json_ json_t *response = json_loadb (data, len, 0, NULL);
    const json_t *result = json_object_get (response, "result");
    _cleanup_free_ char *text = result ? json_text (result, JSON_TEXT_ORDERED) : NULL;
    struct mur_event *e = text ? event_of_response (result, text, strlen (text)) : NULL;
    if (e && mur_event_kind (e) == MUR_EVENT_ANSWER)
        keep_answer (s, mur_event_text (e));
    if (e)
        event_queue_push (s->events, e);
    return true;
}

static bool
on_body (void *ctx, const void *data, size_t len)
{
    struct mur_session *s = ctx;
    pthread_mutex_lock (&s->lock);
    s->watch.is_paused = event_queue_is_full (s->events);
    bool is_taken = ! s->watch.is_paused;
    pthread_mutex_unlock (&s->lock);
    if (is_taken)
        (void)sse_feed (&s->watch.parser, data, len, on_event, s);
    return is_taken;
}

static void
on_end (void *ctx, enum http_failure failure, const char *detail)
{
    struct mur_session *s = ctx;
    (void)failure;
    (void)detail;
    pthread_mutex_lock (&s->lock);
    s->watch.is_over = true;
    session_tell (s);
    pthread_mutex_unlock (&s->lock);
}

static void
watch_begin (struct mur_session *s)
{
    /* A door that refuses its operator's token says so once a task is sent: no head is looked at.
     */
    static const struct http_events events = { .body = on_body, .end = on_end };
    const struct door_subscription d = { .url = s->ready.address,
                                         .token = session_token (s, "operator"),
                                         .method = "murmur.WatchSession" };
    struct http_transfer *transfer = door_subscribe (s->client, &d, &events, s);
    pthread_mutex_lock (&s->lock);
    s->watch.transfer = transfer;
    pthread_mutex_unlock (&s->lock);
}

/* --- out of the queue --- */

static struct mur_event *
take (struct mur_session *s, int64_t timeout_ms)
{
    struct mur_event *e = event_queue_next (s->events, timeout_ms);
    pthread_mutex_lock (&s->lock);
    bool has_room = s->watch.is_paused && ! event_queue_is_full (s->events);
    if (has_room)
        s->watch.is_paused = false;
    pthread_mutex_unlock (&s->lock);
    if (has_room)
        http_transfer_resume (s->watch.transfer);
    return e;
}

int
mur_session_fd (const struct mur_session *s)
{
    return s ? event_queue_fd (s->events) : -1;
}

struct mur_event *
mur_session_next (struct mur_session *s, int64_t timeout_ms)
{
    return session_is_ours (s) && ! s->calls.fn ? take (s, timeout_ms) : NULL;
}

/* Ends with MUR_EVENT_ENDED, or when the callback lets go of the session: then the rest of that
 * is done here, where no callback runs any more. */
static void *
deliver (void *ctx)
{
    struct mur_session *s = ctx;
    bool is_last = false;
    while (! is_last && ! s->calls.release) {
        struct mur_event *e = take (s, -1);
        is_last = ! e || mur_event_kind (e) == MUR_EVENT_ENDED;
        if (e)
            s->calls.fn (s->calls.ctx, s, e);
        mur_event_free (e);
    }
    if (s->calls.release)
        s->calls.release (s);
    return NULL;
}

bool
session_events_is_calling (struct mur_session *s)
{
    pthread_mutex_lock (&s->lock);
    bool is_it = s->calls.has_thread && pthread_equal (s->calls.thread, pthread_self ());
    pthread_mutex_unlock (&s->lock);
    return is_it;
}

bool
session_events_begin (struct mur_session *s, struct mur_error **err)
{
    if (*s->ready.address)
        watch_begin (s);
    if (! s->calls.fn)
        return true;
    /* Its first callback may ask which thread this is. */
    pthread_mutex_lock (&s->lock);
    int fault = thread_start (&s->calls.thread, deliver, s);
    s->calls.has_thread = fault == 0;
    pthread_mutex_unlock (&s->lock);
    errno = fault;
    return ! fault || mur_fail_errno (err, E_IO_003, "cannot start a thread");
}

void
session_events_end (struct mur_session *s)
{
    if (s->calls.has_thread && ! s->calls.release)
        pthread_join (s->calls.thread, NULL);
    if (s->watch.transfer)
        http_transfer_release (s->watch.transfer);
    sse_parser_free (&s->watch.parser);
}

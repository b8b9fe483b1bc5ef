/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/event_queue.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fdio.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FULL 4096

struct event_queue {
    pthread_mutex_t lock; /* a leaf */
    int fd;               /* an eventfd: its count is 1 while it is readable */
    struct mur_event **ring;
    size_t first, count, cap;
    bool is_closed;
};

struct event_queue *
event_queue_new (struct mur_error **err)
{
    struct event_queue *q = x_new0 (struct event_queue);
    pthread_mutex_init (&q->lock, NULL);
    q->fd = fd_lift (eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK), STDERR_FILENO + 1);
    if (q->fd >= 0)
        return q;
    mur_fail_errno (err, E_IO_003, "cannot make an event descriptor");
    free (q);
    return NULL;
}

void
event_queue_free (struct event_queue *q)
{
    if (! q)
        return;
    for (size_t i = 0; i < q->count; i++)
        mur_event_free (q->ring[(q->first + i) % q->cap]);
    close (q->fd);
    pthread_mutex_destroy (&q->lock);
    free (q->ring);
    free (q);
}

int
event_queue_fd (const struct event_queue *q)
{
    return q->fd;
}

static void
grow (struct event_queue *q)
{
    size_t cap = q->cap ? q->cap * 2 : 64;
    struct mur_event **ring = x_calloc (cap, sizeof (struct mur_event *));
    for (size_t i = 0; i < q->count; i++)
        ring[i] = q->ring[(q->first + i) % q->cap];
    free (q->ring);
    q->ring = ring;
    q->first = 0;
    q->cap = cap;
}

/* Under the lock. */
static void
set_readable (struct event_queue *q, bool is_readable)
{
    uint64_t count = 1;
    if (is_readable)
        (void)! write (q->fd, &count, sizeof count);
    else
        (void)! read (q->fd, &count, sizeof count);
}

static void
push (struct event_queue *q, struct mur_event *e, bool is_last)
{
    pthread_mutex_lock (&q->lock);
    bool is_taken = ! q->is_closed;
    if (is_taken) {
        if (q->count == q->cap)
            grow (q);
        q->ring[(q->first + q->count++) % q->cap] = e;
        q->is_closed = is_last;
        if (q->count == 1)
            set_readable (q, true);
    }
    pthread_mutex_unlock (&q->lock);
    if (! is_taken)
        mur_event_free (e);
}

void
event_queue_push (struct event_queue *q, struct mur_event *e)
{
    push (q, e, false);
}

void
event_queue_close (struct event_queue *q, struct mur_event *e)
{
    push (q, e, true);
}

bool
event_queue_is_full (struct event_queue *q)
{
    pthread_mutex_lock (&q->lock);
    bool is = q->count >= FULL;
    pthread_mutex_unlock (&q->lock);
    return is;
}

/* *is_over: nothing will ever come. */
static struct mur_event *
take (struct event_queue *q, bool *is_over)
{
    struct mur_event *e = NULL;
    pthread_mutex_lock (&q->lock);
    if (q->count) {
        e = q->ring[q->first];
        q->first = (q->first + 1) % q->cap;
        q->count--;
        if (! q->count && ! q->is_closed)
            set_readable (q, false);
    }
    *is_over = ! e && q->is_closed;
    pthread_mutex_unlock (&q->lock);
    return e;
}

struct mur_event *
event_queue_next (struct event_queue *q, int64_t timeout_ms)
{
    uint64_t until_ms = clock_monotonic_ms () + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0);
    for (;;) {
        bool is_over;
        struct mur_event *e = take (q, &is_over);
        uint64_t now = clock_monotonic_ms ();
        if (e || is_over || (timeout_ms >= 0 && now >= until_ms))
            return e;
        if (fd_wait (q->fd, POLLIN, timeout_ms < 0 ? -1 : (int64_t)(until_ms - now)) < 0)
            return NULL;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cancel.h"

#include "base/alloc.h"
#include "base/condition.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

struct listener {
    uint64_t id;
    cancel_listener_fn *fn;
    void *ctx;
};

struct cancel {
    atomic_uint refs;
    atomic_bool is_raised;
    pthread_mutex_t lock;
    pthread_cond_t raised;
    struct listener *listeners;
    size_t len;
    size_t cap;
    uint64_t next_id;
};

struct cancel *
cancel_new (void)
{
    struct cancel *c = x_new0 (struct cancel);
    atomic_init (&c->refs, 1);
    pthread_mutex_init (&c->lock, NULL);
    condition_init (&c->raised);
    return c;
}

struct cancel *
cancel_ref (struct cancel *c)
{
    atomic_fetch_add (&c->refs, 1);
    return c;
}

void
cancel_unref (struct cancel *c)
{
    if (! c || atomic_fetch_sub (&c->refs, 1) != 1)
        return;
    pthread_cond_destroy (&c->raised);
    pthread_mutex_destroy (&c->lock);
    free (c->listeners);
    free (c);
}

void
cancel_raise (struct cancel *c)
{
    pthread_mutex_lock (&c->lock);
    if (! atomic_exchange (&c->is_raised, true)) {
        for (size_t i = 0; i < c->len; i++)
            c->listeners[i].fn (c->listeners[i].ctx);
        pthread_cond_broadcast (&c->raised);
    }
    pthread_mutex_unlock (&c->lock);
}

bool
cancel_is_raised (const struct cancel *c)
{
    return c && atomic_load (&c->is_raised);
}

uint64_t
cancel_add (struct cancel *c, cancel_listener_fn *fn, void *ctx)
{
    if (! c)
        return 0;
    pthread_mutex_lock (&c->lock);
    x_grow (c->listeners, c->len, c->cap);
    uint64_t id = ++c->next_id;
    c->listeners[c->len++] = (struct listener){ id, fn, ctx };
    if (atomic_load (&c->is_raised))
        fn (ctx);
    pthread_mutex_unlock (&c->lock);
    return id;
}

void
cancel_remove (struct cancel *c, uint64_t id)
{
    if (! c)
        return;
    pthread_mutex_lock (&c->lock);
    for (size_t i = 0; i < c->len; i++)
        if (c->listeners[i].id == id) {
            c->listeners[i] = c->listeners[--c->len];
            break;
        }
    pthread_mutex_unlock (&c->lock);
}

bool
cancel_sleep (struct cancel *c, uint64_t ms)
{
    struct timespec until;
    clock_gettime (CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock (&c->lock);
    int status = 0;
    while (! atomic_load (&c->is_raised) && status != ETIMEDOUT)
        status = pthread_cond_timedwait (&c->raised, &c->lock, &until);
    bool slept = ! atomic_load (&c->is_raised);
    pthread_mutex_unlock (&c->lock);
    return slept;
}

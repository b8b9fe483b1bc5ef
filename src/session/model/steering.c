/* SPDX-License-Identifier: Apache-2.0 */
#include "session/model/steering_internal.h"

#include "base/alloc.h"
#include "base/cancel.h"
#include "session/model/controller.h"
#include "session/model/selection.h"
#include "session/model/supplied.h"
#include "session/state/session.h"

void
steering_new (struct session *s)
{
    s->rooms.steering = x_new0 (struct steering);
    pthread_mutex_init (&s->rooms.steering->lock, NULL);
    pthread_cond_init (&s->rooms.steering->changed, NULL);
}

void
steering_free (struct session *s)
{
    struct steering *st = s->rooms.steering;
    if (! st)
        return;
    selection_freep (&st->selection);
    controller_freep (&st->controller);
    supplied_secrets_freep (&st->supplied);
    pthread_cond_destroy (&st->changed);
    pthread_mutex_destroy (&st->lock);
    free (st);
    s->rooms.steering = NULL;
}

/* --- whose turn it is --- */

static void
wake (void *ctx)
{
    struct steering *st = ctx;
    pthread_mutex_lock (&st->lock);
    pthread_cond_broadcast (&st->changed);
    pthread_mutex_unlock (&st->lock);
}

bool
steering_take_driver (struct session *s, struct cancel *cancel)
{
    struct steering *st = s->rooms.steering;
    uint64_t listener = cancel_add (cancel, wake, st);
    bool was_mine = loop_lock_pause (&s->loop_lock);
    pthread_mutex_lock (&st->lock);
    while (st->is_driver_busy && ! (cancel && cancel_is_raised (cancel)))
        pthread_cond_wait (&st->changed, &st->lock);
    bool is_ours = ! st->is_driver_busy;
    st->is_driver_busy = true;
    pthread_mutex_unlock (&st->lock);
    loop_lock_resume (&s->loop_lock, was_mine);
    cancel_remove (cancel, listener);
    return is_ours;
}

void
steering_release_driver (struct session *s)
{
    struct steering *st = s->rooms.steering;
    pthread_mutex_lock (&st->lock);
    st->is_driver_busy = false;
    pthread_cond_signal (&st->changed);
    pthread_mutex_unlock (&st->lock);
}

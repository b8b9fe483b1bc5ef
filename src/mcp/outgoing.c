/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/outgoing.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/digest.h"

#include <string.h>
#include <time.h>

struct mcp_asked {
    struct mcp_asked *next;
    char id[48];
    json_t *result; /* owned */
    bool is_done;
};

void
mcp_outgoing_init (struct mcp_outgoing *o)
{
    *o = (struct mcp_outgoing){ 0 };
    pthread_mutex_init (&o->lock, NULL);
    condition_init (&o->changed);
}

void
mcp_outgoing_destroy (struct mcp_outgoing *o)
{
    pthread_cond_destroy (&o->changed);
    pthread_mutex_destroy (&o->lock);
}

static void
wake (void *ctx)
{
    struct mcp_outgoing *o = ctx;
    pthread_mutex_lock (&o->lock);
    pthread_cond_broadcast (&o->changed);
    pthread_mutex_unlock (&o->lock);
}

static void
forget (struct mcp_outgoing *o, const struct mcp_asked *a)
{
    for (struct mcp_asked **at = &o->open; *at; at = &(*at)->next)
        if (*at == a) {
            *at = a->next;
            return;
        }
}

/* Nobody but who was asked can answer: the id cannot be guessed. */
static void
name_question (struct mcp_asked *a, uint64_t number)
{
    unsigned char random[12];
    char hex[2 * sizeof random + 1];
    random_bytes (random, sizeof random);
    hex_encode (random, sizeof random, hex);
    snprintf (a->id, sizeof a->id, "murmur-%u-%s", (unsigned)number, hex);
}

json_t *
mcp_outgoing_ask (struct mcp_outgoing *o, void (*send) (void *ctx, char *text), void *ctx,
                  const char *method, const json_t *params, uint64_t timeout_ms,
                  struct cancel *cancel)
{
    struct mcp_asked a = { 0 };
    uint64_t until = clock_monotonic_ms () + timeout_ms;
    struct timespec ts = { (time_t)(until / 1000), (long)(until % 1000) * 1000000 };
    pthread_mutex_lock (&o->lock);
    name_question (&a, ++o->count);
    a.next = o->open;
    o->open = &a;
    pthread_mutex_unlock (&o->lock);
    _cleanup_json_ json_t *id = json_string (a.id);
    uint64_t listener = cancel_add (cancel, wake, o);
    send (ctx, mcp_request_text (id, method, params));
    pthread_mutex_lock (&o->lock);
    while (! a.is_done && ! o->is_closed && ! cancel_is_raised (cancel) &&
           clock_monotonic_ms () < until)
        pthread_cond_timedwait (&o->changed, &o->lock, &ts);
    forget (o, &a);
    pthread_mutex_unlock (&o->lock);
    cancel_remove (cancel, listener);
    return a.result;
}

void
mcp_outgoing_take (struct mcp_outgoing *o, const struct mcp_message *answer)
{
    pthread_mutex_lock (&o->lock);
    for (struct mcp_asked *a = o->open; a; a = a->next)
        if (str_eq (json_string_value (answer->id), a->id) && ! a->is_done) {
            a->result = json_incref ((json_t *)(uintptr_t)answer->result);
            a->is_done = true;
        }
    pthread_cond_broadcast (&o->changed);
    pthread_mutex_unlock (&o->lock);
}

void
mcp_outgoing_close (struct mcp_outgoing *o)
{
    pthread_mutex_lock (&o->lock);
    o->is_closed = true;
    pthread_cond_broadcast (&o->changed);
    pthread_mutex_unlock (&o->lock);
}

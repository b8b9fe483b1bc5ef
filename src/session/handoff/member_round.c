/* SPDX-License-Identifier: Apache-2.0 */
#include "session/handoff/member_round.h"

#include "base/alloc.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/condition.h"
#include "session/conversation/fence.h"
#include "session/handoff/member_calls_internal.h"

#include <errno.h>
#include <string.h>

#define IN_FLIGHT_WAIT_MS 6000
#define LOOK_MS           500

/* --- giving up --- */

/* Those that are out are told to stop; an offer under way may still end by itself for a while. */
static void
begin_abandoning (struct member_calls *set)
{
    pthread_mutex_lock (&set->lock);
    for (size_t i = 0; i < set->len; i++)
        set->items[i]->is_abandoned = ! set->items[i]->has_ended;
    pthread_mutex_unlock (&set->lock);
    for (size_t i = 0; i < set->len; i++)
        cancel_raise (set->items[i]->stop);
}

static bool
is_any_in_flight (const struct member_calls *set)
{
    for (size_t i = 0; i < set->len; i++)
        if (set->items[i]->is_in_flight)
            return true;
    return false;
}

static void
await_offers (struct member_calls *set)
{
    uint64_t end_ms = clock_monotonic_ms () + IN_FLIGHT_WAIT_MS;
    struct timespec end = { (time_t)(end_ms / 1000), (long)(end_ms % 1000) * 1000000 };
    pthread_mutex_lock (&set->lock);
    while (is_any_in_flight (set) &&
           pthread_cond_timedwait (&set->changed, &set->lock, &end) != ETIMEDOUT)
        ;
    pthread_mutex_unlock (&set->lock);
}

void
member_calls_abandon (struct member_calls *set)
{
    if (! set)
        return;
    begin_abandoning (set);
    await_offers (set);
    while (set->len) {
        struct member_call *c = set->items[0];
        cancel_raise (c->hang_up);
        pthread_join (c->thread, NULL);
        if (c->is_abandoned)
            c->status = MEMBER_CALL_ABANDONED;
        member_calls_note_below (set, c);
        member_call_trace (set, c, false);
        member_calls_remove (set, c);
        member_call_free (c);
    }
}

/* --- waiting --- */

void
member_calls_poke (struct member_calls *set)
{
    if (! set)
        return;
    pthread_mutex_lock (&set->lock);
    set->news++;
    pthread_cond_broadcast (&set->changed);
    pthread_mutex_unlock (&set->lock);
}

size_t
member_calls_out (struct member_calls *set)
{
    size_t out = 0;
    if (! set)
        return 0;
    pthread_mutex_lock (&set->lock);
    for (size_t i = 0; i < set->len; i++)
        out += ! set->items[i]->has_ended;
    pthread_mutex_unlock (&set->lock);
    return out;
}

void
member_calls_sleep (struct member_calls *set, uint64_t *seen)
{
    condition_wait_news (&set->changed, &set->lock, &set->news, seen,
                         clock_monotonic_ms () + LOOK_MS);
}

/* --- going on --- */

/* What a callee did not hear itself is its word, and stands inside the fence. */
static void
round_append (const struct member_call *c, const struct fence_word *word, struct buf *text)
{
    _cleanup_buf_ struct buf body = { 0 };
    _cleanup_free_ char *source = x_asprintf ("member:%s", c->member);
    buf_puts (&body, c->output);
    size_t i;
    const json_t *entry;
    json_array_foreach (c->below, i, entry)
        buf_printf (&body, "%s%s (%s)",
                    i ? ", " : "\n\nwithout an answer from: ", json_get_string (entry, "member"),
                    json_get_string (entry, "status"));
    buf_printf (text, "[call-member] %s %s %s\n", c->id.text, c->member,
                member_call_status_name (c->status));
    fence_append (text, word, source, body.data ? body.data : "", body.len);
}

void
member_calls_deliver (struct member_calls *set, const struct fence_word *word, json_t *ids,
                      struct buf *text)
{
    for (bool is_first = true; set && set->len; is_first = false) {
        struct member_call *c = set->items[0];
        pthread_join (c->thread, NULL);
        json_array_append_new (ids, json_string (c->id.text));
        if (! is_first)
            buf_puts (text, "\n\n");
        round_append (c, word, text);
        member_calls_note_below (set, c);
        member_call_trace (set, c, true);
        member_calls_remove (set, c);
        member_call_free (c);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The wait of a task for its member calls, the round that goes on with their answers, and their end
 * with the task (spec/spawn.md C8, spec/session.md 4.5 step 4). See member_calls.h.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "door/streams.h"
#include "session/attempt.h"
#include "session/ending.h"
#include "session/fence.h"
#include "session/member_calls_internal.h"

#include <errno.h>
#include <string.h>

#define IN_FLIGHT_WAIT_MS 6000

/* --- giving up -------------------------------------------------------------------------------- */

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

static void
abandon_all (struct member_calls *set)
{
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

/* --- waiting ---------------------------------------------------------------------------------- */

static void
announce (struct session *s, const struct running_task *t, size_t count)
{
    char text[96];
    snprintf (text, sizeof text, "waiting for call-member: %zu call%s outstanding", count,
              count == 1 ? "" : "s");
    streams_working (registry_streams (s->registry), t->task, text, 0);
}

static void
wake (void *ctx)
{
    struct member_calls *set = ctx;
    pthread_mutex_lock (&set->lock);
    set->news++;
    pthread_cond_broadcast (&set->changed);
    pthread_mutex_unlock (&set->lock);
}

/* Under the lock. */
static size_t
count_out (const struct member_calls *set)
{
    size_t out = 0;
    for (size_t i = 0; i < set->len; i++)
        out += ! set->items[i]->has_ended;
    return out;
}

/* True when every call has ended, false when the task was stopped. */
static bool
wait_for_all (struct member_calls *set, struct running_task *t)
{
    uint64_t listener = cancel_add (t->cancel, wake, set);
    size_t said = 0, out;
    pthread_mutex_lock (&set->lock);
    while ((out = count_out (set)) && ! cancel_is_raised (t->cancel)) {
        uint64_t seen = set->news;
        if (out != said) {
            pthread_mutex_unlock (&set->lock);
            announce (set->session, t, out);
            said = out;
            pthread_mutex_lock (&set->lock);
        }
        while (set->news == seen)
            pthread_cond_wait (&set->changed, &set->lock);
    }
    pthread_mutex_unlock (&set->lock);
    cancel_remove (t->cancel, listener);
    return ! cancel_is_raised (t->cancel);
}

/* --- going on --------------------------------------------------------------------------------- */

/* What a callee did not hear itself is its word, and stands inside the fence. */
static void
append_answer (const struct member_call *c, struct buf *text)
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
    fence_append (text, source, body.data ? body.data : "", body.len);
}

static void
go_on (struct member_calls *set, struct running_task *t, uint64_t waited_ms)
{
    struct session *s = set->session;
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_json_ json_t *ids = json_array ();
    for (bool is_first = true; set->len; is_first = false) {
        struct member_call *c = set->items[0];
        pthread_join (c->thread, NULL);
        json_array_append_new (ids, json_string (c->id.text));
        if (! is_first)
            buf_puts (&text, "\n\n");
        append_answer (c, &text);
        member_calls_note_below (set, c);
        member_call_trace (set, c, true);
        member_calls_remove (set, c);
        member_call_free (c);
    }
    _cleanup_free_ char *calls = json_text (ids, JSON_TEXT_ORDERED);
    uint64_t left = attempt_turns_left (s, t);
    TRACE (s->trace, NULL, task_continued, .task_id = t->task->id,
           .continuation_number = ++t->continuations, .member_calls = calls, .delegations = "[]",
           .waited_ms = waited_ms, .turns_remaining = { left != UINT64_MAX, (int64_t)left });
    attempt_continue_with (s, t, text.data ? text.data : "");
}

bool
member_calls_continue (struct member_calls *set, struct session *s, struct running_task *t)
{
    if (! set || ! member_calls_count (set))
        return false;
    uint64_t left = attempt_turns_left (s, t), from_ms = clock_monotonic_ms ();
    bool may_go_on = t->ending == ATTEMPT_OK && left && attempt_let_answer_stand (s, t);
    if (may_go_on && wait_for_all (set, t)) {
        t->continued_stopped_by = NULL;
        go_on (set, t, clock_monotonic_ms () - from_ms);
        return true;
    }
    if (may_go_on)
        attempt_cancel (s, t, "member_call", TRACE_NO_NUM);
    abandon_all (set);
    return false;
}

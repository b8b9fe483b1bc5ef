/* SPDX-License-Identifier: Apache-2.0 */
#include "session/handoff/member_calls.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/diag.h"
#include "base/digest.h"
#include "base/thread.h"
#include "door/tasks/tasks.h"
#include "net/allow.h"
#include "net/url.h"
#include "session/handoff/delegations.h"
#include "session/handoff/member_calls_internal.h"
#include "session/state/held_hosts.h"
#include "session/state/session.h"
#include "spawn/formation/membership.h"

#include <errno.h>
#include <string.h>

#define POLL_EVERY_MS     500
#define FIRST_OFFER_MS    1000
#define LAST_OFFER_MS     8000
#define JITTER_MS         250
#define FAILURES_MAX      2
#define OUTPUT_BYTES_MAX  ((size_t)64 << 10)
#define CUT_MARK          " […]"
#define IN_FLIGHT_WAIT_MS 6000

static const char *const names[] = { "started",   "busy",     "completed", "failed",
                                     "canceled",  "rejected", "timed_out", "unreachable",
                                     "abandoned", "no_answer" };

const char *
member_call_status_name (enum member_call_status status)
{
    return names[status];
}

void
member_call_result_clear (struct member_call_result *r)
{
    free (r->call_id);
    free (r->task_id);
    free (r->output);
    *r = (struct member_call_result){ 0 };
}

/* --- its own allow list, as of everything a member sends --- */

static void
read_allowed (const struct session *s, struct allow_list *list)
{
    for (size_t i = 0; i < s->policy->network.allow.len; i++) {
        _cleanup_error_ struct mur_error *ignored = NULL;
        (void)allow_list_add (list, s->policy->network.allow.items[i], &ignored);
    }
}

static bool
is_allowed (const struct session *s, const char *url)
{
    _cleanup_allow_list_ struct allow_list list = { .hold = held_hosts_of (s) };
    read_allowed (s, &list);
    _cleanup_free_ char *asked_for = membership_asked_for (s->asked->launcher.membership, url);
    return allow_list_matches_authority (&list, "http", asked_for);
}

void
member_calls_warn_network (const struct session *s)
{
    const struct membership *m = s->asked->launcher.membership;
    if (! m || ! membership_callee_count (m))
        return;
    _cleanup_allow_list_ struct allow_list list = { 0 };
    read_allowed (s, &list);
    for (size_t i = 0; i < list.len; i++)
        if (host_is_loopback (list.rules[i].host) && ! str_eq (list.rules[i].scheme, "https"))
            return;
    diag_warn (DIAG_RUNTIME, W_RUN_008,
               "%s may call %s%s, but capabilities.network.allow lets it reach no door on this "
               "machine: add localhost to it",
               membership_member (m), membership_callee (m, 0),
               membership_callee_count (m) > 1 ? " and others" : "");
}

/* --- the set --- */

struct member_calls *
member_calls_new (struct session *s)
{
    const struct membership *m = s->asked->launcher.membership;
    if (! m || ! membership_callee_count (m))
        return NULL;
    struct member_calls *set = x_new0 (struct member_calls);
    set->session = s;
    set->bound_ms = delegation_bound_secs (s) * 1000;
    condition_init (&set->changed);
    pthread_mutex_init (&set->lock, NULL);
    return set;
}

void
member_calls_free (struct member_calls *set)
{
    if (! set)
        return;
    json_decref (set->below);
    free (set->items);
    pthread_cond_destroy (&set->changed);
    pthread_mutex_destroy (&set->lock);
    free (set);
}

size_t
member_calls_count (struct member_calls *set)
{
    pthread_mutex_lock (&set->lock);
    size_t count = set->len;
    pthread_mutex_unlock (&set->lock);
    return count;
}

void
member_call_free (struct member_call *c)
{
    free (c->member);
    free (c->text);
    free (c->line.url);
    free (c->member_task_id);
    free (c->output);
    json_decref (c->below);
    cancel_unref (c->stop);
    cancel_unref (c->hang_up);
    free (c);
}

void
member_calls_remove (struct member_calls *set, struct member_call *c)
{
    pthread_mutex_lock (&set->lock);
    for (size_t i = 0; i < set->len; i++)
        if (set->items[i] == c) {
            memmove (&set->items[i], &set->items[i + 1],
                     (set->len - i - 1) * sizeof (set->items[0]));
            set->len--;
            break;
        }
    pthread_mutex_unlock (&set->lock);
}

void
member_call_trace (struct member_calls *set, const struct member_call *c, bool is_delivered)
{
    _cleanup_free_ char *below = c->below ? json_text (c->below, JSON_TEXT_ORDERED) : NULL;
    uint64_t end_ms = c->ended_ms ? c->ended_ms : clock_monotonic_ms ();
    _cleanup_free_ char *output =
        redactor_apply (set->session->redactor, c->output ? c->output : "");
    TRACE (set->session->trace, NULL, member_call, .task_id = c->task_id, .call_id = c->id.text,
           .member = c->member, .member_task_id = c->member_task_id, .status = names[c->status],
           .duration_ms = end_ms - c->started_ms, .output = output, .truncated = c->is_truncated,
           .delivered = is_delivered, .no_answer_below = below);
}

void
member_calls_note_below (struct member_calls *set, const struct member_call *c)
{
    if (! set->below)
        set->below = json_array ();
    if (c->status != MEMBER_CALL_COMPLETED && json_array_size (set->below) < BELOW_MAX) {
        json_t *one = json_object ();
        json_set_string (one, "member", c->member);
        json_set_string (one, "status", names[c->status]);
        json_array_append_new (set->below, one);
    }
    size_t i;
    json_t *entry;
    json_array_foreach (c->below, i, entry) if (json_array_size (set->below) < BELOW_MAX)
        json_array_append (set->below, entry);
}

json_t *
member_calls_take_below (struct member_calls *set)
{
    json_t *below = set ? steal_ptr (&set->below) : NULL;
    if (json_array_size (below))
        return below;
    json_decref (below);
    return NULL;
}

/* --- the thread of one --- */

/* Under the lock. */
static void
member_calls_tell (struct member_calls *set)
{
    set->news++;
    pthread_cond_broadcast (&set->changed);
}

static void
set_output (struct member_call *c, char *text)
{
    size_t len = strlen (text);
    if (len > OUTPUT_BYTES_MAX) {
        text[utf8_cut (text, len, OUTPUT_BYTES_MAX)] = '\0';
        c->is_truncated = true;
    }
    c->output = c->is_truncated ? x_asprintf ("%s" CUT_MARK, text) : x_strdup (text);
    free (text);
}

/* It is over; takes the text over. */
static void
member_call_end (struct member_call *c, enum member_call_status status, char *text)
{
    struct member_calls *set = c->set;
    pthread_mutex_lock (&set->lock);
    c->status = status;
    set_output (c, text);
    c->ended_ms = clock_monotonic_ms ();
    c->has_ended = true;
    member_calls_tell (set);
    pthread_mutex_unlock (&set->lock);
}

/* The member holds it. False: nobody wants it any more. The line and the check are one step. */
static bool
note_held (struct member_call *c, struct member_said *said)
{
    struct member_calls *set = c->set;
    pthread_mutex_lock (&set->lock);
    bool is_wanted = ! c->is_abandoned;
    c->member_task_id = steal_ptr (&said->task_id);
    if (is_wanted) {
        TRACE (set->session->trace, NULL, member_call_start, .task_id = c->task_id,
               .call_id = c->id.text, .member = c->member, .member_task_id = c->member_task_id);
        c->status = MEMBER_CALL_STARTED;
        c->is_answered = true;
        member_calls_tell (set);
    }
    pthread_mutex_unlock (&set->lock);
    return is_wanted;
}

static void
note_busy (struct member_call *c, unsigned offer, const char *message)
{
    struct member_calls *set = c->set;
    TRACE (set->session->trace, NULL, member_call_busy, .task_id = c->task_id,
           .call_id = c->id.text, .member = c->member, .offer = offer,
           .waited_ms = clock_monotonic_ms () - c->started_ms, .message = message);
    pthread_mutex_lock (&set->lock);
    c->status = MEMBER_CALL_BUSY;
    c->is_answered = true;
    member_calls_tell (set);
    pthread_mutex_unlock (&set->lock);
}

static void
set_in_flight (struct member_call *c, bool is_in_flight)
{
    pthread_mutex_lock (&c->set->lock);
    c->is_in_flight = is_in_flight;
    member_calls_tell (c->set);
    pthread_mutex_unlock (&c->set->lock);
}

static uint64_t
jitter_ms (void)
{
    uint16_t bits;
    random_bytes (&bits, sizeof bits);
    return bits % (JITTER_MS + 1);
}

static uint64_t
bound_left_ms (const struct member_call *c)
{
    uint64_t end_ms = c->started_ms + c->set->bound_ms, now_ms = clock_monotonic_ms ();
    return now_ms < end_ms ? end_ms - now_ms : 0;
}

static char *
bound_text (const struct member_call *c)
{
    return x_asprintf ("it was not done within %llus, the delegation deadline",
                       (unsigned long long)(c->set->bound_ms / 1000));
}

/* Until the member holds the task: true. False: the call has ended, or nobody wants it. */
static bool
offer_until_held (struct member_call *c)
{
    uint64_t wait_ms = FIRST_OFFER_MS;
    unsigned failures = 0;
    for (unsigned n = 1;; n++) {
        struct member_said said;
        set_in_flight (c, true);
        member_offer (&c->line, n, c->text, c->hang_up, &said);
        bool is_held = said.status == MEMBER_CALL_STARTED && note_held (c, &said);
        if (said.status == MEMBER_CALL_STARTED && ! is_held)
            member_cancel (&c->line, c->member_task_id);
        set_in_flight (c, false);
        failures = said.is_transport_failure ? failures + 1 : 0;
        bool goes_on = said.status == MEMBER_CALL_BUSY ||
                       (said.is_transport_failure && n > 1 && failures < FAILURES_MAX);
        if (said.status == MEMBER_CALL_BUSY)
            note_busy (c, n, said.text);
        else if (! goes_on && said.status != MEMBER_CALL_STARTED)
            member_call_end (
                c, said.is_transport_failure && n > 1 ? MEMBER_CALL_UNREACHABLE : said.status,
                steal_ptr (&said.text));
        member_said_clear (&said);
        if (! goes_on)
            return is_held;
        uint64_t left_ms = bound_left_ms (c), pause_ms = wait_ms + jitter_ms ();
        if (! cancel_sleep (c->stop, pause_ms < left_ms ? pause_ms : left_ms))
            return false;
        if (pause_ms >= left_ms) {
            member_call_end (c, MEMBER_CALL_REJECTED, x_strdup (MEMBER_BUSY_TEXT));
            return false;
        }
        wait_ms = wait_ms * 2 < LAST_OFFER_MS ? wait_ms * 2 : LAST_OFFER_MS;
    }
}

/* Until its task has ended, or the bound has passed. */
static void
poll_until_over (struct member_call *c)
{
    for (unsigned failures = 0;;) {
        struct member_said said;
        member_ask (&c->line, c->member_task_id, c->stop, &said);
        if (cancel_is_raised (c->stop)) {
            member_said_clear (&said);
            return;
        }
        failures = said.is_transport_failure ? failures + 1 : 0;
        if (! said.is_open) {
            c->below = steal_ptr (&said.below);
            member_call_end (c, said.status, steal_ptr (&said.text));
        } else if (failures == FAILURES_MAX)
            member_call_end (c, MEMBER_CALL_UNREACHABLE,
                             x_strdup ("its door does not answer any more"));
        else if (! bound_left_ms (c))
            member_call_end (c, MEMBER_CALL_TIMED_OUT, bound_text (c));
        member_said_clear (&said);
        if (c->has_ended || ! cancel_sleep (c->stop, POLL_EVERY_MS))
            return;
    }
}

static void *
run_call (void *arg)
{
    struct member_call *c = arg;
    if (offer_until_held (c))
        poll_until_over (c);
    return NULL;
}

/* --- making one --- */

char *
member_calls_refusal (struct member_calls *set, const struct running_task *t, const char *member)
{
    const struct membership *m = set->session->asked->launcher.membership;
    if (! membership_token (m, member)) {
        _cleanup_strv_ struct strv callees = { 0 };
        for (size_t i = 0; i < membership_callee_count (m); i++)
            strv_push (&callees, membership_callee (m, i));
        _cleanup_free_ char *list = strv_join (&callees, ", ");
        return x_asprintf ("this member may not call \"%s\"; it may call: %s", member, list);
    }
    if (t->onward.declined)
        return x_strdup ("this task is ending without an answer");
    bool is_out = false;
    pthread_mutex_lock (&set->lock);
    for (size_t i = 0; i < set->len; i++)
        is_out |= strcmp (set->items[i]->member, member) == 0;
    pthread_mutex_unlock (&set->lock);
    return is_out ? x_asprintf ("a call to %s is still out: end your turn to wait for its answer",
                                member)
                  : NULL;
}

static struct member_call *
call_new (struct member_calls *set, const struct running_task *t, const char *member,
          const char *task, char *url)
{
    struct member_call *c = x_new0 (struct member_call);
    c->set = set;
    c->id = id_new ("mcl_");
    c->task_id = t->task->id;
    c->member = x_strdup (member);
    c->text = x_strdup (task);
    c->started_ms = clock_monotonic_ms ();
    c->stop = cancel_new ();
    c->hang_up = cancel_new ();
    c->line = (struct member_line){ set->session, c->member, c->id.text,
                                    t->task->is_trusted ? "trusted" : "untrusted", url };
    return c;
}

static void
wake (void *ctx)
{
    struct member_calls *set = ctx;
    pthread_mutex_lock (&set->lock);
    member_calls_tell (set);
    pthread_mutex_unlock (&set->lock);
}

/* Until the first offer came to something, or the task was stopped. */
static void
await_first_answer (struct member_calls *set, struct member_call *c, struct cancel *cancel)
{
    uint64_t listener = cancel_add (cancel, wake, set);
    pthread_mutex_lock (&set->lock);
    while (! c->is_answered && ! c->has_ended && ! cancel_is_raised (cancel))
        pthread_cond_wait (&set->changed, &set->lock);
    pthread_mutex_unlock (&set->lock);
    cancel_remove (cancel, listener);
}

/* It ended in this turn: its line, and out of the set. */
static void
close_now (struct member_calls *set, struct member_call *c, struct member_call_result *out)
{
    pthread_join (c->thread, NULL);
    member_calls_note_below (set, c);
    member_call_trace (set, c, true);
    member_calls_remove (set, c);
    out->status = c->status;
    out->output = x_strdup (c->output);
    member_call_free (c);
}

/* Fills what the first offer came to; a call that ended is closed. */
static void
take_first_answer (struct member_calls *set, struct member_call *c, struct member_call_result *out)
{
    pthread_mutex_lock (&set->lock);
    bool is_answered = c->is_answered, has_ended = c->has_ended && ! is_answered;
    out->call_id = x_strdup (c->id.text);
    out->status = c->member_task_id ? MEMBER_CALL_STARTED : c->status;
    out->task_id = is_answered && c->member_task_id ? x_strdup (c->member_task_id) : NULL;
    pthread_mutex_unlock (&set->lock);
    if (has_ended)
        close_now (set, c, out);
    else if (! is_answered) /* the task was stopped; its end abandons the call */
        out->was_canceled = true;
    else if (! out->task_id) {
        out->status = MEMBER_CALL_BUSY;
        out->output = x_strdup ("it is busy and will be offered the task again");
    }
}

char *
member_calls_make (struct member_calls *set, struct running_task *t, const char *member,
                   const char *task, struct member_call_result *out)
{
    struct session *s = set->session;
    *out = (struct member_call_result){ 0 };
    char *url = membership_address (s->asked->launcher.membership, member, t->cancel);
    if (! url) {
        out->was_canceled = cancel_is_raised (t->cancel);
        return x_asprintf ("the address of %s has not arrived", member);
    }
    struct member_call *c = call_new (set, t, member, task, url);
    char *why =
        ! is_allowed (s, url)
            ? x_asprintf ("capabilities.network.allow does not let this member reach %s: it "
                          "must list localhost",
                          member)
        : thread_start (&c->thread, run_call, c) != 0
            ? x_strdup ("there is no thread to wait for it")
            : NULL;
    if (why) {
        member_call_free (c);
        return why;
    }
    pthread_mutex_lock (&set->lock);
    x_grow (set->items, set->len, set->cap);
    set->items[set->len++] = c;
    pthread_mutex_unlock (&set->lock);
    await_first_answer (set, c, t->cancel);
    take_first_answer (set, c, out);
    return NULL;
}

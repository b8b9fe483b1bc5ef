/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue of an asynchronous hook. This program is the hook: it defines what would call the
 * component, and what would tell of a fault.
 */
#include "tests/unit/testing.h"

#include "base/clock.h"
#include "manifest/capsule/capsule.h"
#include "session/hooks/hooks_internal.h"
#include "session/state/inventory.h"

#include <pthread.h>
#include <string.h>

#define QUEUE_ROOM 1024 /* events that wait beside the one that runs */
#define PATIENCE_S 20

/* What the hook was asked, by the turn of each event, and what was told of it. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t seen[4096];
    size_t seen_len;
    bool is_shut;      /* a call waits until this is false, or it is cancelled */
    bool is_inside;    /* a call waits */
    uint64_t fails_at; /* that turn's call fails */
    size_t logged, errors, overflows, timeouts;
    bool had_task; /* some call saw a task */
} hook_seen = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

bool
hook_ask (struct hook *h, enum hook_event_kind kind, const struct value *event, struct arena *arena,
          struct hook_output *out, const char **failure)
{
    (void)kind, (void)event, (void)arena;
    *out = (struct hook_output){ .arm = HOOK_DENY, .text = "discarded" };
    *failure = "it failed";
    pthread_mutex_lock (&hook_seen.lock);
    hook_seen.seen[hook_seen.seen_len++ % ARRAY_LEN (hook_seen.seen)] = h->serving.turn;
    hook_seen.had_task |= h->serving.task != NULL;
    hook_seen.is_inside = true;
    pthread_cond_broadcast (&hook_seen.changed);
    while (hook_seen.is_shut && ! cancel_is_raised (h->serving.cancel)) {
        pthread_mutex_unlock (&hook_seen.lock);
        cancel_sleep (h->serving.cancel, 2);
        pthread_mutex_lock (&hook_seen.lock);
    }
    hook_seen.is_inside = false;
    bool is_good = h->serving.turn != hook_seen.fails_at;
    pthread_mutex_unlock (&hook_seen.lock);
    return is_good;
}

void
hook_log (struct hook *h, enum hook_event_kind kind, const char *text)
{
    (void)h, (void)kind, (void)text;
    pthread_mutex_lock (&hook_seen.lock);
    hook_seen.logged++;
    pthread_mutex_unlock (&hook_seen.lock);
}

void
hook_trace_fault (struct hook *h, enum hook_event_kind kind, const char *arm)
{
    (void)h, (void)kind;
    pthread_mutex_lock (&hook_seen.lock);
    hook_seen.errors += strcmp (arm, "error") == 0;
    hook_seen.overflows += strcmp (arm, "queue-overflow") == 0;
    hook_seen.timeouts += strcmp (arm, "timeout") == 0;
    pthread_cond_broadcast (&hook_seen.changed);
    pthread_mutex_unlock (&hook_seen.lock);
}

/* --- the stand --- */

struct bench {
    struct artifact_entry entry;
    struct staged_artifact artifact;
    struct hook hook;
    struct hook_queue *queue;
};

static void
open_queue (struct bench *b, bool blocks)
{
    pthread_mutex_lock (&hook_seen.lock);
    memset (hook_seen.seen, 0, sizeof hook_seen.seen);
    hook_seen.seen_len = hook_seen.logged = hook_seen.errors = 0;
    hook_seen.overflows = hook_seen.timeouts = 0;
    hook_seen.is_shut = hook_seen.is_inside = hook_seen.had_task = false;
    hook_seen.fails_at = UINT64_MAX;
    pthread_mutex_unlock (&hook_seen.lock);
    memset (b, 0, sizeof *b);
    b->entry.on_overflow = blocks ? OVERFLOW_BLOCK : OVERFLOW_DROP;
    b->artifact.entry = &b->entry;
    b->hook = (struct hook){ .artifact = &b->artifact, .name = "local/hook", .is_async = true };
    b->queue = hook_queue_new (&b->hook);
}

static void
put (struct bench *b, uint64_t turn)
{
    const struct hook_event event = { .kind = HOOK_ON_TASK_END,
                                      .task_end = { .task_id = "tsk", .exit_status = "ok" } };
    const struct hook_serving serving = { .kind = HOOK_ON_TASK_END,
                                          .task = (struct running_task *)b,
                                          .turn = turn };
    hook_queue_put (b->queue, &event, &serving);
}

static void
drain (struct bench *b, uint64_t patience_ms)
{
    hook_queue_drain (b->queue, clock_monotonic_ms () + patience_ms);
}

static void
set_shut (bool is_shut)
{
    pthread_mutex_lock (&hook_seen.lock);
    hook_seen.is_shut = is_shut;
    pthread_cond_broadcast (&hook_seen.changed);
    pthread_mutex_unlock (&hook_seen.lock);
}

static void
wait_until_inside (void)
{
    struct timespec until;
    clock_gettime (CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock (&hook_seen.lock);
    while (! hook_seen.is_inside &&
           pthread_cond_timedwait (&hook_seen.changed, &hook_seen.lock, &until) == 0)
        ;
    assert_true (hook_seen.is_inside);
    pthread_mutex_unlock (&hook_seen.lock);
}

/* --- tests --- */

static void
test_events_come_in_order_and_are_all_done_when_it_is_drained (void **state)
{
    (void)state;
    struct bench b;
    open_queue (&b, false);
    for (uint64_t i = 0; i < 500; i++)
        put (&b, i);
    drain (&b, PATIENCE_S * 1000);
    assert_int_equal (hook_seen.seen_len, 500);
    for (uint64_t i = 0; i < 500; i++)
        assert_int_equal (hook_seen.seen[i], i);
    assert_false (hook_seen.had_task); /* the task may be over by then */
    assert_int_equal (hook_seen.errors + hook_seen.overflows + hook_seen.timeouts, 0);
}

static void
test_an_empty_queue_is_drained_at_once (void **state)
{
    (void)state;
    struct bench b;
    open_queue (&b, true);
    drain (&b, 0);
    assert_int_equal (hook_seen.seen_len, 0);
    assert_int_equal (hook_seen.timeouts, 0);
}

static void
test_a_call_that_fails_is_told_and_the_next_one_is_made (void **state)
{
    (void)state;
    struct bench b;
    open_queue (&b, false);
    hook_seen.fails_at = 1;
    for (uint64_t i = 0; i < 3; i++)
        put (&b, i);
    drain (&b, PATIENCE_S * 1000);
    assert_int_equal (hook_seen.seen_len, 3);
    assert_int_equal (hook_seen.errors, 1);
    assert_int_equal (hook_seen.logged, 1);
}

static void
test_a_full_queue_drops_the_newest_and_says_so (void **state)
{
    (void)state;
    struct bench b;
    open_queue (&b, false);
    set_shut (true);
    put (&b, 0);
    wait_until_inside ();
    for (uint64_t i = 1; i <= QUEUE_ROOM + 3; i++)
        put (&b, i);
    assert_int_equal (hook_seen.overflows, 3);
    set_shut (false);
    drain (&b, PATIENCE_S * 1000);
    assert_int_equal (hook_seen.seen_len, 1 + QUEUE_ROOM);
    assert_int_equal (hook_seen.seen[QUEUE_ROOM], QUEUE_ROOM); /* the oldest were kept */
}

static void *
put_one_more (void *arg)
{
    put (arg, QUEUE_ROOM + 1);
    return NULL;
}

static void
test_where_the_manifest_says_block_a_full_queue_holds_the_sender (void **state)
{
    (void)state;
    struct bench b;
    open_queue (&b, true);
    set_shut (true);
    put (&b, 0);
    wait_until_inside ();
    for (uint64_t i = 1; i <= QUEUE_ROOM; i++)
        put (&b, i);
    pthread_t sender;
    assert_int_equal (pthread_create (&sender, NULL, put_one_more, &b), 0);
    set_shut (false);
    assert_int_equal (pthread_join (sender, NULL), 0);
    drain (&b, PATIENCE_S * 1000);
    assert_int_equal (hook_seen.seen_len, QUEUE_ROOM + 2);
    assert_int_equal (hook_seen.seen[QUEUE_ROOM + 1], QUEUE_ROOM + 1);
    assert_int_equal (hook_seen.overflows, 0);
}

static void
test_what_is_not_done_in_time_is_abandoned_and_no_call_is_left (void **state)
{
    (void)state;
    struct bench b;
    open_queue (&b, false);
    set_shut (true);
    for (uint64_t i = 0; i < 5; i++)
        put (&b, i);
    wait_until_inside ();
    drain (&b, 30);
    assert_int_equal (hook_seen.seen_len, 1); /* the four behind it are never called */
    assert_false (hook_seen.is_inside);
    assert_int_equal (hook_seen.timeouts, 1);
    assert_int_equal (hook_seen.errors, 0); /* a call that was given up is no failure of its own */
}

static void
test_a_closed_queue_does_what_it_holds_and_ends (void **state)
{
    (void)state;
    struct bench b;
    open_queue (&b, false);
    for (uint64_t i = 0; i < 20; i++)
        put (&b, i);
    hook_queue_close (b.queue);
    drain (&b, PATIENCE_S * 1000);
    assert_int_equal (hook_seen.seen_len, 20);
}

#define SENDERS   4
#define OF_EACH   200
#define MARK(who) ((uint64_t)(who)*1000)

struct sender {
    struct bench *bench;
    unsigned who;
};

static void *
send_all (void *arg)
{
    const struct sender *s = arg;
    for (uint64_t i = 0; i < OF_EACH; i++)
        put (s->bench, MARK (s->who) + i);
    return NULL;
}

static void
test_several_senders_are_each_heard_in_their_order (void **state)
{
    (void)state;
    struct bench b;
    open_queue (&b, true);
    pthread_t threads[SENDERS];
    struct sender senders[SENDERS];
    for (unsigned i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){ &b, i };
        assert_int_equal (pthread_create (&threads[i], NULL, send_all, &senders[i]), 0);
    }
    for (unsigned i = 0; i < SENDERS; i++)
        pthread_join (threads[i], NULL);
    drain (&b, PATIENCE_S * 1000);
    assert_int_equal (hook_seen.seen_len, SENDERS * OF_EACH);
    uint64_t next[SENDERS] = { 0 };
    for (size_t i = 0; i < hook_seen.seen_len; i++) {
        size_t who = (size_t)(hook_seen.seen[i] / MARK (1));
        assert_int_equal (hook_seen.seen[i], MARK (who) + next[who]++);
    }
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_events_come_in_order_and_are_all_done_when_it_is_drained),
        cmocka_unit_test (test_an_empty_queue_is_drained_at_once),
        cmocka_unit_test (test_a_call_that_fails_is_told_and_the_next_one_is_made),
        cmocka_unit_test (test_a_full_queue_drops_the_newest_and_says_so),
        cmocka_unit_test (test_where_the_manifest_says_block_a_full_queue_holds_the_sender),
        cmocka_unit_test (test_what_is_not_done_in_time_is_abandoned_and_no_call_is_left),
        cmocka_unit_test (test_a_closed_queue_does_what_it_holds_and_ends),
        cmocka_unit_test (test_several_senders_are_each_heard_in_their_order),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

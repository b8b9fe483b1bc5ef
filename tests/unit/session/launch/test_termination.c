/* SPDX-License-Identifier: Apache-2.0
 *
 * How a session is ended from outside: a signal, a deadline, in which order, what of it is
 * recorded, what is spared.
 */
#include "tests/unit/session/stand.h"

#include "base/clock.h"
#include "door/tasks/intake.h"
#include "session/launch/launched.h"
#include "session/launch/termination.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static int
open_stand (void **state)
{
    struct stand *st = x_new0 (struct stand);
    stand_open (st, NULL);
    stand_serve (st);
    launched_new (&st->s);
    *state = st;
    return 0;
}

static int
close_stand (void **state)
{
    struct stand *st = *state;
    termination_disarm (&st->s);
    launched_free (&st->s);
    stand_close (st);
    free (st);
    return 0;
}

static void
listen_in (struct stand *st, uint64_t deadline_ms)
{
    if (deadline_ms) {
        st->s.deadline->is_set = true;
        st->s.deadline->secs = 1;
        st->s.deadline->at_ms = clock_monotonic_ms () + deadline_ms;
    }
    assert_succeeds (termination_arm (&st->s, &err));
    assert_succeeds (termination_listen (&st->s, &err));
}

/* Until the thread that listens has taken a cause. */
static void
await_cause (struct stand *st)
{
    const struct task *task;
    while (registry_next (st->s.registry, 10000, &task) != REGISTRY_INTERRUPTED)
        assert_true (clock_monotonic_ms () < st->s.tally.launched_ms + 30000);
}

static void
test_a_signal_cancels_what_runs (void **state)
{
    struct stand *st = *state;
    listen_in (st, 0);
    assert_int_equal (termination_cause (&st->s), NOT_TERMINATED);
    kill (getpid (), SIGTERM);
    await_cause (st);
    assert_int_equal (termination_cause (&st->s), TERMINATED_BY_SIGNAL);
    assert_true (cancel_is_raised (st->t.task->cancel));
    assert_int_equal (stand_lines (st, "deadline_reached"), 0);
}

static void
test_a_deadline_is_recorded (void **state)
{
    struct stand *st = *state;
    listen_in (st, 30);
    await_cause (st);
    assert_int_equal (termination_cause (&st->s), TERMINATED_BY_DEADLINE);
    _cleanup_json_ json_t *line = stand_line (st, "deadline_reached");
    assert_string_equal (json_get_string (line, "source"), "own");
    assert_true (cancel_is_raised (st->t.task->cancel));
}

static void
test_one_that_has_passed_begins_at_once (void **state)
{
    struct stand *st = *state;
    st->s.deadline->is_set = st->s.deadline->is_inherited = true;
    st->s.deadline->at_ms = 1;
    assert_succeeds (termination_arm (&st->s, &err));
    assert_succeeds (termination_listen (&st->s, &err));
    assert_int_equal (termination_cause (&st->s), TERMINATED_BY_DEADLINE);
    _cleanup_json_ json_t *line = stand_line (st, "deadline_reached");
    assert_string_equal (json_get_string (line, "source"), "inherited");
}

static void
test_the_deadline_spares_a_standing_answer (void **state)
{
    struct stand *st = *state;
    pthread_mutex_lock (&st->s.now.lock);
    st->s.now.task = &st->t;
    st->s.now.has_standing_answer = true;
    pthread_mutex_unlock (&st->s.now.lock);
    listen_in (st, 30);
    await_cause (st);
    assert_true (cancel_is_raised (st->t.cancel));
    assert_false (cancel_is_raised (st->t.task->cancel)); /* only the work is stopped */
}

static void
test_a_signal_spares_nothing (void **state)
{
    struct stand *st = *state;
    pthread_mutex_lock (&st->s.now.lock);
    st->s.now.task = &st->t;
    st->s.now.has_standing_answer = true;
    pthread_mutex_unlock (&st->s.now.lock);
    listen_in (st, 0);
    kill (getpid (), SIGINT);
    await_cause (st);
    assert_true (cancel_is_raised (st->t.task->cancel));
}

static void
test_after_the_last_line_nothing_is_recorded (void **state)
{
    struct stand *st = *state;
    assert_succeeds (termination_arm (&st->s, &err));
    termination_settle (&st->s);
    st->s.deadline->is_set = true;
    st->s.deadline->at_ms = 1; /* whatever comes now is the deadline's */
    assert_succeeds (termination_listen (&st->s, &err));
    kill (getpid (), SIGTERM);
    while (termination_cause (&st->s) == NOT_TERMINATED)
        usleep (1000);
    assert_int_equal (termination_cause (&st->s), TERMINATED_BY_DEADLINE);
    assert_int_equal (stand_lines (st, "deadline_reached"), 0);
    assert_false (cancel_is_raised (st->t.task->cancel));
}

static void
test_never_armed_it_ends_well (void **state)
{
    struct stand *st = *state;
    termination_settle (&st->s);
    termination_disarm (&st->s);
    termination_disarm (&st->s);
    assert_int_equal (termination_cause (&st->s), NOT_TERMINATED);
}

static void
test_a_signal_before_it_listens_is_taken_when_it_does (void **state)
{
    struct stand *st = *state;
    assert_succeeds (termination_arm (&st->s, &err));
    kill (getpid (), SIGTERM);
    assert_int_equal (termination_cause (&st->s), NOT_TERMINATED);
    assert_succeeds (termination_listen (&st->s, &err));
    await_cause (st);
    assert_int_equal (termination_cause (&st->s), TERMINATED_BY_SIGNAL);
}

int
unit_termination (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (test_a_signal_cancels_what_runs, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_a_deadline_is_recorded, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_one_that_has_passed_begins_at_once, open_stand,
                                         close_stand),
        cmocka_unit_test_setup_teardown (test_the_deadline_spares_a_standing_answer, open_stand,
                                         close_stand),
        cmocka_unit_test_setup_teardown (test_a_signal_spares_nothing, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_after_the_last_line_nothing_is_recorded, open_stand,
                                         close_stand),
        cmocka_unit_test_setup_teardown (test_never_armed_it_ends_well, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_a_signal_before_it_listens_is_taken_when_it_does,
                                         open_stand, close_stand),
    };
    return cmocka_run_group_tests_name ("session/launch/termination", tests, NULL, NULL);
}

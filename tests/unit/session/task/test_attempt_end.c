/* SPDX-License-Identifier: Apache-2.0
 *
 * How attempts end: what out/result.txt says, what is traced, which ending may be followed by
 * which.
 */
#include "tests/unit/session/stand.h"

#include "session/commands/processes.h"
#include "session/handoff/handoff.h"
#include "session/task/attempt_end.h"

#include <string.h>
#include <unistd.h>

static void
open_with (struct stand *st, const char *more)
{
    stand_open (st, more);
    processes_new (&st->s);
    handoff_new (&st->s);
    attempt_end_clear (&st->t.end);
}

static void
close_stand (struct stand *st)
{
    handoff_free (&st->s);
    processes_free (&st->s);
    stand_close (st);
}

static void
assert_result (struct stand *st, const char *expected)
{
    _cleanup_free_ char *text = stand_read (st, "records/out/result.txt");
    assert_string_equal (text ? text : "(none)", expected);
}

static void
test_the_words (void **state)
{
    (void)state;
    static const struct {
        enum attempt_ending ending;
        const char *word;
    } rows[] = { { ATTEMPT_OK, "ok" },
                 { ATTEMPT_FAILED, "failed" },
                 { ATTEMPT_MAX_TURNS, "max_turns_reached" },
                 { ATTEMPT_SPEND_CEILING, "spend_ceiling_reached" },
                 { ATTEMPT_CANCELED, "canceled" },
                 { ATTEMPT_NO_ANSWER, "no_answer" },
                 { ATTEMPT_REOPEN_BUDGET, "reopen_budget_exhausted" } };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++)
        assert_string_equal (attempt_ending_name (rows[i].ending), rows[i].word);
}

static void
test_an_attempt_begins_failed_and_empty (void **state)
{
    (void)state;
    struct attempt_end end = { .ending = ATTEMPT_OK,
                               .result = x_strdup ("r"),
                               .response = x_strdup ("r"),
                               .reason = x_strdup ("r"),
                               .has_failed_line = true,
                               .is_spared = true };
    mur_fail (&end.error, E_RUN_007, "x");
    attempt_end_clear (&end);
    assert_int_equal (end.ending, ATTEMPT_FAILED);
    assert_null (end.result);
    assert_null (end.response);
    assert_null (end.error);
    assert_false (end.has_failed_line || end.is_spared);
}

static void
test_a_completed_one (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, NULL);
    attempt_complete (&st.s, &st.t, "the answer");
    assert_int_equal (st.t.end.ending, ATTEMPT_OK);
    assert_string_equal (st.t.end.response, "the answer");
    assert_result (&st, "the answer");
    attempt_complete (&st.s, &st.t, "a better one");
    assert_result (&st, "a better one");
    close_stand (&st);
}

static void
test_a_threaded_conversation_keeps_each_tasks_result (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st,
               "lifecycle: {task_acceptance: queue, after_task: sleep, conversation: threaded}\n");
    attempt_complete (&st.s, &st.t, "mine");
    _cleanup_free_ char *path = x_asprintf ("records/out/result_%s.txt", st.task.id);
    _cleanup_free_ char *text = stand_read (&st, path);
    assert_string_equal (text, "mine");
    close_stand (&st);
}

static void
test_a_failed_one (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, NULL);
    attempt_fail (&st.s, &st.t, "driver_error", "it broke", " (2 retries)", TRACE_NUM (1));
    assert_int_equal (st.t.end.ending, ATTEMPT_FAILED);
    assert_result (&st, "error: it broke (2 retries)");
    _cleanup_json_ json_t *line = stand_line (&st, "task_failed");
    assert_string_equal (json_get_string (line, "cause"), "driver_error");
    assert_string_equal (json_get_string (line, "reason"), "it broke (2 retries)");
    assert_true (st.t.end.has_failed_line);
    close_stand (&st);
}

static void
test_a_long_reason_is_cut_and_the_note_is_kept (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, NULL);
    _cleanup_free_ char *reason = x_calloc (20001, 1);
    memset (reason, 'x', 20000);
    attempt_fail (&st.s, &st.t, "driver_error", reason, " (the note)", TRACE_NO_NUM);
    assert_true (strlen (st.t.end.reason) < 20000);
    assert_true (str_ends (st.t.end.reason, " (the note)"));
    close_stand (&st);
}

static void
test_without_an_answer (void **state)
{
    (void)state;
    static const struct {
        enum attempt_ending before;
        bool has_failed_line, is_declined, ends;
    } rows[] = {
        { ATTEMPT_OK, false, true, true },        { ATTEMPT_FAILED, false, true, true },
        { ATTEMPT_FAILED, true, true, false },    { ATTEMPT_CANCELED, false, true, false },
        { ATTEMPT_MAX_TURNS, false, true, true }, { ATTEMPT_OK, false, false, false },
        { ATTEMPT_NO_ANSWER, false, true, true },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        struct stand st;
        open_with (&st, NULL);
        st.t.end.ending = rows[i].before;
        st.t.end.has_failed_line = rows[i].has_failed_line;
        st.t.onward.declined = rows[i].is_declined ? x_strdup ("nothing to say") : NULL;
        assert_int_equal (attempt_decline (&st.s, &st.t), rows[i].ends);
        if (rows[i].ends)
            assert_int_equal (st.t.end.ending, ATTEMPT_NO_ANSWER);
        else
            assert_int_equal (st.t.end.ending, rows[i].before);
        if (rows[i].ends && rows[i].before != ATTEMPT_NO_ANSWER)
            assert_result (&st, "no answer: nothing to say");
        close_stand (&st);
    }
}

static void
test_a_canceled_one (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, NULL);
    attempt_cancel (&st.s, &st.t, "turn", TRACE_NUM (2));
    assert_int_equal (st.t.end.ending, ATTEMPT_CANCELED);
    _cleanup_json_ json_t *line = stand_line (&st, "task_canceled");
    assert_string_equal (json_get_string (line, "phase"), "turn");
    assert_int_equal (json_array_size (json_object_get (line, "detached_work_ids")), 0);
    close_stand (&st);
}

static void
test_the_deadline_spares_an_answer_that_stands (void **state)
{
    (void)state;
    static const struct {
        const char *standing;
        enum termination_cause cause;
        bool is_spared;
    } rows[] = { { "answer", TERMINATED_BY_DEADLINE, true },
                 { "answer", TERMINATED_BY_SIGNAL, false },
                 { "answer", NOT_TERMINATED, false },
                 { NULL, TERMINATED_BY_DEADLINE, false } };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        struct stand st;
        open_with (&st, NULL);
        st.t.onward.standing_answer = rows[i].standing ? x_strdup (rows[i].standing) : NULL;
        st.s.cause = rows[i].cause;
        attempt_cancel (&st.s, &st.t, "turn", TRACE_NO_NUM);
        assert_int_equal (st.t.end.is_spared, rows[i].is_spared);
        assert_int_equal (stand_lines (&st, "task_canceled"), rows[i].is_spared ? 0 : 1);
        close_stand (&st);
    }
}

static void
test_letting_an_answer_stand (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, NULL);
    attempt_complete (&st.s, &st.t, "first");
    assert_true (attempt_let_answer_stand (&st.s, &st.t));
    assert_true (st.s.now.has_standing_answer);
    assert_string_equal (st.t.onward.standing_answer, "first");
    attempt_complete (&st.s, &st.t, "second");
    assert_true (attempt_let_answer_stand (&st.s, &st.t));
    assert_string_equal (st.t.onward.standing_answer, "second");
    st.s.cause = TERMINATED_BY_DEADLINE;
    assert_false (attempt_let_answer_stand (&st.s, &st.t));
    st.s.cause = NOT_TERMINATED;
    cancel_raise (st.t.cancel);
    assert_false (attempt_let_answer_stand (&st.s, &st.t));
    close_stand (&st);
}

static void
test_a_finished_answer_that_could_not_be_worked_on (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, NULL);
    attempt_complete (&st.s, &st.t, "kept");
    attempt_refuse_reopen (&st.s, &st.t, "no budget");
    assert_int_equal (st.t.end.ending, ATTEMPT_REOPEN_BUDGET);
    assert_int_equal (st.t.end.error->code, E_RUN_007);
    assert_result (&st, "kept");
    _cleanup_json_ json_t *line = stand_line (&st, "task_failed");
    assert_string_equal (json_get_string (line, "cause"), "reopen_budget_exhausted");
    close_stand (&st);
}

static void
test_an_error_of_the_loop_writes_no_result (void **state)
{
    (void)state;
    struct stand st;
    struct mur_error *err = NULL;
    open_with (&st, NULL);
    mur_fail (&err, E_RUN_013, "too large");
    attempt_error (&st.s, &st.t, err);
    assert_string_equal (st.t.end.reason, "too large");
    assert_result (&st, "(none)");
    close_stand (&st);
}

static void
test_refused_paths_fail_the_attempt_once (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, NULL);
    assert_false (attempt_take_refusals (&st.s, &st.t));
    _cleanup_free_ char *link = x_asprintf ("%s/out", st.work_dir);
    assert_int_equal (symlink ("/etc", link), 0);
    struct mur_error *err = NULL;
    assert_false (fs_write (st.s.places.work, "out/x", "x", 1, 0600, false, &err));
    mur_error_free (err);
    assert_true (attempt_take_refusals (&st.s, &st.t));
    assert_true (st.t.onward.was_path_refused);
    assert_int_equal (st.t.end.error->code, E_RUN_050);
    assert_int_equal (stand_lines (&st, "workdir_path_refused"), 1);
    assert_false (attempt_take_refusals (&st.s, &st.t)); /* drained */
    close_stand (&st);
}

/* --- limits --- */

static void
test_turns_left (void **state)
{
    (void)state;
    static const struct {
        uint64_t turns, hook_calls, left;
    } rows[] = { { 0, 0, 5 }, { 3, 0, 2 }, { 3, 1, 1 }, { 5, 0, 0 }, { 4, 4, 0 }, { 9, 0, 0 } };
    struct stand st;
    open_with (&st, "  max_turns: 5\n");
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        st.t.counts.turns = rows[i].turns;
        st.t.counts.hook_calls = rows[i].hook_calls;
        assert_int_equal (attempt_turns_left (&st.s, &st.t), rows[i].left);
    }
    attempt_end_max_turns (&st.s, &st.t);
    assert_int_equal (st.t.end.ending, ATTEMPT_MAX_TURNS);
    assert_result (&st, "error: inference.max_turns (5) was reached: turns 0 to 4 were used");
    close_stand (&st);
    open_with (&st, NULL);
    st.t.counts.turns = 1000000;
    assert_true (attempt_turns_left (&st.s, &st.t) == UINT64_MAX);
    close_stand (&st);
}

static void
test_a_spend_ceiling (void **state)
{
    (void)state;
    static const struct {
        struct spend_refusal why;
        const char *result;
    } rows[] = {
        { { SPEND_SESSION, 100, 90, 30 },
          "stopped: the session spend ceiling of 100 tokens was reached: 90 used, 30 more asked for" },
        { { SPEND_MACHINE, 5000, 5000, 0 },
          "stopped: the machine spend ceiling of 5000 tokens was reached: 5000 used" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        struct stand st;
        open_with (&st, NULL);
        attempt_end_spend (&st.s, &st.t, &rows[i].why);
        assert_int_equal (st.t.end.ending, ATTEMPT_SPEND_CEILING);
        assert_result (&st, rows[i].result);
        close_stand (&st);
    }
}

int
unit_attempt_end (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_the_words),
        cmocka_unit_test (test_an_attempt_begins_failed_and_empty),
        cmocka_unit_test (test_a_completed_one),
        cmocka_unit_test (test_a_threaded_conversation_keeps_each_tasks_result),
        cmocka_unit_test (test_a_failed_one),
        cmocka_unit_test (test_a_long_reason_is_cut_and_the_note_is_kept),
        cmocka_unit_test (test_without_an_answer),
        cmocka_unit_test (test_a_canceled_one),
        cmocka_unit_test (test_the_deadline_spares_an_answer_that_stands),
        cmocka_unit_test (test_letting_an_answer_stand),
        cmocka_unit_test (test_a_finished_answer_that_could_not_be_worked_on),
        cmocka_unit_test (test_an_error_of_the_loop_writes_no_result),
        cmocka_unit_test (test_refused_paths_fail_the_attempt_once),
        cmocka_unit_test (test_turns_left),
        cmocka_unit_test (test_a_spend_ceiling),
    };
    return cmocka_run_group_tests_name ("session/task/attempt_end", tests, NULL, NULL);
}

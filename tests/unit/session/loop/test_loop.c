/* SPDX-License-Identifier: Apache-2.0
 *
 * What the loop decides by itself: whether it goes on, what it keeps, what another attempt may go
 * on with.
 */
#include "tests/unit/session/stand.h"

#include "session/hooks/hooks.h"
#include "session/loop/attempt.h"
#include "session/loop/going.h"
#include "session/loop/loop.h"
#include "session/loop/reopen.h"

#include <string.h>

static void
test_a_task_cancelled_in_the_queue_is_one_line (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    loop_record_canceled (&st.s, &st.task);
    _cleanup_json_ json_t *line = stand_line (&st, "task_canceled");
    assert_string_equal (json_get_string (line, "task_id"), st.task.id);
    assert_string_equal (json_get_string (line, "phase"), "queued");
    stand_close (&st);
}

static void
test_what_is_said_and_done_once (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    going_new (&st.s);
    assert_true (going_first_cut (&st.s));
    assert_false (going_first_cut (&st.s));
    assert_true (going_first_resume (&st.s));
    assert_false (going_first_resume (&st.s));
    assert_null (going_compaction_prompt (&st.s));
    going_set_compaction_prompt (&st.s, "Be short.");
    assert_string_equal (going_compaction_prompt (&st.s), "Be short.");
    going_free (&st.s);
    assert_null (st.s.rooms.going);
    stand_close (&st);
}

static void
test_what_an_attempt_can_go_on_with (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    assert_false (attempt_can_continue (&st.s, &st.t));
    attempt_continue_with (&st.s, &st.t, "go on", NULL);
    assert_true (st.t.onward.is_continuing);
    assert_true (attempt_can_continue (&st.s, &st.t));
    assert_int_equal (st.t.list.len, 1);
    assert_non_null (strstr (st.t.list.items[0]->wire, "go on"));
    assert_null (st.t.onward.continuation_text);
    stand_close (&st);
}

static void
test_a_harness_goes_on_with_its_session (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    st.s.rooms.harness = (struct harness *)&st; /* there is one: nothing else of it is asked */
    assert_false (attempt_can_continue (&st.s, &st.t));
    attempt_continue_with (&st.s, &st.t, "one", NULL);
    attempt_continue_with (&st.s, &st.t, "two", NULL);
    assert_string_equal (st.t.onward.continuation_text, "two");
    assert_int_equal (st.t.list.len, 0);
    st.t.harness.session = x_strdup ("sess-1");
    assert_true (attempt_can_continue (&st.s, &st.t));
    st.s.rooms.harness = NULL;
    stand_close (&st);
}

static void
test_without_hooks_nothing_is_reopened (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    st.t.end.ending = ATTEMPT_OK;
    assert_false (reopen (&st.s, &st.t));
    assert_int_equal (st.t.counts.reopens, 0);
    assert_int_equal (stand_lines (&st, "task_reopened"), 0);
    stand_close (&st);
}

int
unit_loop (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_task_cancelled_in_the_queue_is_one_line),
        cmocka_unit_test (test_what_is_said_and_done_once),
        cmocka_unit_test (test_what_an_attempt_can_go_on_with),
        cmocka_unit_test (test_a_harness_goes_on_with_its_session),
        cmocka_unit_test (test_without_hooks_nothing_is_reopened),
    };
    return cmocka_run_group_tests_name ("session/loop", tests, NULL, NULL);
}

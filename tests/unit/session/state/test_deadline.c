/* SPDX-License-Identifier: Apache-2.0
 *
 * The session's deadline: which of two it is, what is left, when the notice is due.
 */
#include "tests/unit/session/stand.h"

#include "base/clock.h"

#include <string.h>

static void
fill (struct stand *st, uint64_t own_secs, bool has_inherited, uint64_t inherited_left_ms)
{
    st->asked.time.own_deadline_secs = own_secs;
    st->asked.time.has_inherited_deadline = has_inherited;
    st->asked.time.inherited_deadline_ms = clock_unix_ms () + inherited_left_ms;
    deadline_fill (&st->s, &st->deadline);
}

static void
test_the_earlier_of_the_two (void **state)
{
    (void)state;
    static const struct {
        uint64_t own_secs, inherited_ms; /* 0: none */
        bool is_set, is_inherited;
        uint64_t secs;
    } rows[] = {
        { 0, 0, false, false, 0 },
        { 60, 0, true, false, 60 },
        { 0, 90000, true, true, 90 },
        { 60, 90000, true, false, 60 },
        { 600, 90000, true, true, 90 },
        { 0, 1500, true, true, 2 },
        { 0, 999999999999, true, true, 315360000 },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        struct stand st;
        stand_open (&st, NULL);
        fill (&st, rows[i].own_secs, rows[i].inherited_ms > 0, rows[i].inherited_ms);
        const struct deadline *d = &st.deadline;
        assert_int_equal (d->is_set, rows[i].is_set);
        assert_int_equal (d->is_inherited, rows[i].is_inherited);
        assert_true (d->secs == rows[i].secs || d->secs + 1 == rows[i].secs);
        if (! rows[i].is_set)
            assert_true (deadline_left_ms (d) == UINT64_MAX);
        else
            assert_true (deadline_left_ms (d) <= d->secs * 1000);
        stand_close (&st);
    }
}

static void
test_one_that_has_passed_leaves_nothing (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    st.asked.time.has_inherited_deadline = true;
    st.asked.time.inherited_deadline_ms = 1000; /* of 1970 */
    deadline_fill (&st.s, &st.deadline);
    assert_true (st.deadline.is_set && st.deadline.is_inherited);
    assert_int_equal (deadline_left_ms (&st.deadline), 0);
    stand_close (&st);
}

static void
test_the_notice_is_a_tenth_between_a_second_and_five_minutes (void **state)
{
    (void)state;
    static const struct {
        uint64_t secs, notice;
    } rows[] = { { 1, 1 },      { 10, 1 },     { 59, 5 },      { 60, 6 },
                 { 1000, 100 }, { 3000, 300 }, { 100000, 300 } };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        struct stand st;
        stand_open (&st, NULL);
        fill (&st, rows[i].secs, false, 0);
        assert_int_equal (st.deadline.notice_secs, rows[i].notice);
        stand_close (&st);
    }
}

static void
test_the_manifest_may_say_when_or_never (void **state)
{
    (void)state;
    static const uint64_t values[] = { 0, 7, 30 };
    for (size_t i = 0; i < ARRAY_LEN (values); i++) {
        struct stand st;
        _cleanup_free_ char *more =
            x_asprintf ("lifecycle: {deadline_notice_secs: %llu}\n", (unsigned long long)values[i]);
        stand_open (&st, more);
        fill (&st, 600, false, 0);
        assert_int_equal (st.deadline.notice_secs, values[i]);
        stand_close (&st);
    }
}

static void
test_as_json (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    fill (&st, 0, false, 0);
    assert_null (deadline_json (&st.deadline));
    fill (&st, 100, false, 0);
    _cleanup_free_ char *text = deadline_json (&st.deadline);
    _cleanup_json_ json_t *o = json_loads (text, 0, NULL);
    assert_int_equal (json_integer_value (json_object_get (o, "secs")), 100);
    assert_int_equal (json_integer_value (json_object_get (o, "notice_secs")), 10);
    assert_string_equal (json_get_string (o, "source"), "own");
    assert_int_equal (strlen (json_get_string (o, "at")), strlen ("2026-01-01T00:00:00Z"));
    stand_close (&st);
}

static void
test_the_notice_is_given_once_and_traced (void **state)
{
    (void)state;
    struct stand st;
    _cleanup_buf_ struct buf text = { 0 };
    stand_open (&st, NULL);
    fill (&st, 600, false, 0);
    deadline_give_notice (&st.s, "ls", "tsk_1", &text);
    assert_int_equal (text.len, 0); /* not yet */
    st.deadline.at_ms = clock_monotonic_ms () + 30000;
    deadline_give_notice (&st.s, "ls", "tsk_1", &text);
    assert_true (str_starts (text.data, "\n[This session ends at "));
    size_t len = text.len;
    deadline_give_notice (&st.s, "ls", "tsk_1", &text);
    assert_int_equal (text.len, len);
    assert_int_equal (stand_lines (&st, "deadline_notice"), 1);
    _cleanup_json_ json_t *line = stand_line (&st, "deadline_notice");
    assert_string_equal (json_get_string (line, "tool_name"), "ls");
    assert_true (json_integer_value (json_object_get (line, "left_secs")) <= 30);
    stand_close (&st);
}

static void
test_no_deadline_no_notice (void **state)
{
    (void)state;
    struct stand st;
    _cleanup_buf_ struct buf text = { 0 };
    stand_open (&st, NULL);
    fill (&st, 0, false, 0);
    deadline_give_notice (&st.s, "ls", "tsk_1", &text);
    assert_int_equal (text.len, 0);
    assert_int_equal (stand_lines (&st, "deadline_notice"), 0);
    stand_close (&st);
}

int
unit_deadline (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_the_earlier_of_the_two),
        cmocka_unit_test (test_one_that_has_passed_leaves_nothing),
        cmocka_unit_test (test_the_notice_is_a_tenth_between_a_second_and_five_minutes),
        cmocka_unit_test (test_the_manifest_may_say_when_or_never),
        cmocka_unit_test (test_as_json),
        cmocka_unit_test (test_the_notice_is_given_once_and_traced),
        cmocka_unit_test (test_no_deadline_no_notice),
    };
    return cmocka_run_group_tests_name ("session/state/deadline", tests, NULL, NULL);
}

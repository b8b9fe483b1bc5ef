/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call yields: which text is fenced, which is the runtime's own, what a later word replaces.
 */
#include "tests/unit/session/stand.h"

#include "session/state/outcome.h"

#include <string.h>

static void
test_a_result_is_fenced_under_its_tool (void **state)
{
    (void)state;
    static const enum tool_status statuses[] = { TOOL_PASSED, TOOL_FAILED, TOOL_ERROR };
    for (size_t i = 0; i < ARRAY_LEN (statuses); i++) {
        _cleanup_outcome_ struct call_outcome o = { 0 };
        outcome_set_result (&o, "echo", statuses[i], "hi", 2);
        assert_string_equal (o.text.data,
                             "<untrusted-content source=tool:echo>\nhi\n</untrusted-content>");
        assert_string_equal (o.fence_source, "tool:echo");
        assert_int_equal (o.status, statuses[i]);
        assert_true (o.is_dispatched);
        assert_null (o.runtime_error);
    }
}

static void
test_a_step_of_a_plan_is_not_fenced (void **state)
{
    (void)state;
    _cleanup_outcome_ struct call_outcome o = { .is_unfenced = true };
    outcome_set_result (&o, "echo", TOOL_PASSED, "</untrusted-content>", 20);
    assert_string_equal (o.text.data, "</untrusted-content>");
    assert_null (o.fence_source);
}

static void
test_the_runtimes_own_words_are_not_fenced (void **state)
{
    (void)state;
    _cleanup_outcome_ struct call_outcome o = { 0 };
    outcome_set_error (&o, "no %s number %d", "tool", 7);
    assert_string_equal (o.text.data, "no tool number 7");
    assert_string_equal (o.runtime_error, "no tool number 7");
    assert_int_equal (o.status, TOOL_ERROR);
    assert_false (o.is_dispatched);
}

static void
test_the_last_word_stands (void **state)
{
    (void)state;
    _cleanup_outcome_ struct call_outcome o = { 0 };
    outcome_set_error (&o, "first");
    outcome_set_error (&o, "second");
    assert_string_equal (o.text.data, "second");
    outcome_set_result (&o, "a", TOOL_PASSED, "one", 3);
    outcome_set_result (&o, "b", TOOL_PASSED, "two", 3);
    assert_string_equal (o.fence_source, "tool:b");
    assert_null (strstr (o.text.data, "one"));
}

static void
test_another_kind_of_label (void **state)
{
    (void)state;
    _cleanup_outcome_ struct call_outcome o = { 0 };
    outcome_set_text (&o, "skill", "poem", "x", 1);
    assert_string_equal (o.fence_source, "skill:poem");
    assert_false (o.is_dispatched);
}

static void
test_a_text_that_must_be_there (void **state)
{
    (void)state;
    static const struct {
        const char *input, *text; /* NULL: refused */
    } rows[] = { { "{'k':'v'}", "v" },   { "{'k':' v '}", " v " }, { "{}", NULL },
                 { "{'k':''}", NULL },   { "{'k':' \\t'}", NULL }, { "{'k':5}", NULL },
                 { "{'k':null}", NULL }, { "{'k':['v']}", NULL } };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_json_ json_t *input = value_of (rows[i].input);
        _cleanup_outcome_ struct call_outcome o = { 0 };
        const char *text = outcome_need_text ("tool", input, "k", &o);
        if (rows[i].text) {
            assert_string_equal (text, rows[i].text);
            assert_null (o.runtime_error);
        } else {
            assert_null (text);
            assert_string_equal (o.runtime_error, "tool needs a non-blank string \"k\"");
        }
    }
}

static void
test_clearing_leaves_nothing (void **state)
{
    (void)state;
    struct call_outcome o = { 0 };
    outcome_set_result (&o, "t", TOOL_PASSED, "x", 1);
    o.state_effect = x_strdup ("read");
    o.resource_id = x_strdup ("id");
    o.shell.binary = x_strdup ("/bin/ls");
    o.shell.command = x_strdup ("-l");
    strv_push (&o.shell.argv, "ls");
    buf_puts (&o.shell.out, "out");
    call_outcome_clear (&o);
    static const struct call_outcome empty;
    assert_memory_equal (&o, &empty, sizeof o);
}

int
unit_outcome (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_result_is_fenced_under_its_tool),
        cmocka_unit_test (test_a_step_of_a_plan_is_not_fenced),
        cmocka_unit_test (test_the_runtimes_own_words_are_not_fenced),
        cmocka_unit_test (test_the_last_word_stands),
        cmocka_unit_test (test_another_kind_of_label),
        cmocka_unit_test (test_a_text_that_must_be_there),
        cmocka_unit_test (test_clearing_leaves_nothing),
    };
    return cmocka_run_group_tests_name ("session/state/outcome", tests, NULL, NULL);
}

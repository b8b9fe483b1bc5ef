/* SPDX-License-Identifier: Apache-2.0
 *
 * References and conditions: what is one, what it stands for, what a condition says.
 */
#include "tests/unit/session/stand.h"

#include "session/plan/plan_refs.h"

#include <string.h>

static const char steps[] =
    "{'id':'p','steps':[{'id':'build','tool':'t'},{'id':'test','tool':'t'},{'id':'skipped','tool':'t'},"
    "{'id':'a.b','tool':'t'},{'id':'later','tool':'t'}]}";

static int
make_plan (void **state)
{
    struct plan *plan = x_new0 (struct plan);
    _cleanup_json_ json_t *value = value_of (steps);
    char *reason = NULL;
    assert_true (plan_read (value, plan, &reason));
    plan->steps[0].status = STEP_SUCCEEDED;
    plan->steps[0].output = x_strdup ("42");
    plan->steps[1].status = STEP_FAILED;
    plan->steps[2].status = STEP_SKIPPED;
    plan->steps[3].status = STEP_SUCCEEDED;
    plan->steps[3].output = x_strdup ("dotted");
    *state = plan;
    return 0;
}

static int
free_plan (void **state)
{
    plan_clear (*state);
    free (*state);
    return 0;
}

static void
test_what_is_replaced (void **state)
{
    static const struct {
        const char *input, *sent;
    } rows[] = {
        { "'$build.output'", "'42'" },
        { "'$build.status'", "'success'" },
        { "'$test.status'", "'failed'" },
        { "'$test.output'", "''" },
        { "'$skipped.status'", "'skipped'" },
        { "'$later.status'", "'pending'" },
        { "'$a.b.output'", "'dotted'" },
        { "'$nobody.output'", "''" },
        { "'x $build.output'", "'x $build.output'" },
        { "'$build.output x'", "'$build.output x'" },
        { "'$build'", "'$build'" },
        { "'$.output'", "'$.output'" },
        { "'build.output'", "'build.output'" },
        { "'$build.outputs'", "'$build.outputs'" },
        { "5", "5" },
        { "null", "null" },
        { "['$build.output',1,['$test.status']]", "['42',1,['failed']]" },
        { "{'a':{'b':'$build.output'},'c':'plain'}", "{'a':{'b':'42'},'c':'plain'}" },
        { "{'$build.output':'kept as a key'}", "{'$build.output':'kept as a key'}" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_json_ json_t *input = value_of (rows[i].input),
                              *expected = value_of (rows[i].sent);
        _cleanup_json_ json_t *sent = plan_substitute (*state, input);
        if (! json_equal (sent, expected))
            fail_msg ("%s", rows[i].input);
    }
}

static void
test_output_that_is_no_text_is_made_one (void **state)
{
    struct plan *plan = *state;
    free (plan->steps[0].output);
    plan->steps[0].output = x_strdup ("a\xff\xfe");
    _cleanup_json_ json_t *input = value_of ("'$build.output'");
    _cleanup_json_ json_t *sent = plan_substitute (plan, input);
    const char *text = json_string_value (sent);
    assert_non_null (text);
    assert_true (utf8_is_valid (text, strlen (text)));
    free (plan->steps[0].output);
    plan->steps[0].output = x_strdup ("42");
}

static void
test_what_a_condition_says (void **state)
{
    static const struct {
        const char *text;
        bool holds;
    } rows[] = {
        { "$build.status == 'success'", true },
        { "$build.status == \"success\"", true },
        { "$build.status=='success'", true },
        { "$build.status != 'success'", false },
        { "$test.status == 'failed'", true },
        { "$build.output == '42'", true },
        { "$build.output > '41'", true },
        { "$build.output < '41'", false },
        { "'b' > 'a'", true },
        { "'a' < 'a'", false },
        { "'a' == 'a' && 'b' == 'b'", true },
        { "'a' == 'a' && 'b' == 'c'", false },
        { "'a' == 'x' || 'b' == 'b'", true },
        { "'a' == 'a' || 'b' == 'x' && 'c' == 'x'", true },
        { "'a' == 'x' && 'b' == 'b' || 'c' == 'c'", true },
        { "$nobody.status == ''", true },
        { "$a.b.output == 'dotted'", true },
        { "   'a'\t==\n'a'  ", true },
        { "'it''s'", false },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++)
        if (plan_condition_holds (*state, rows[i].text) != rows[i].holds)
            fail_msg ("%s", rows[i].text);
}

static void
test_what_is_no_condition (void **state)
{
    static const struct {
        const char *text, *reason;
    } rows[] = {
        { "", "a quoted literal or a reference expected at the end" },
        { "'a'", "one of == != > < expected at the end" },
        { "'a' ==", "a quoted literal or a reference expected at the end" },
        { "a == 'a'", "a quoted literal or a reference expected at \"a == 'a'\"" },
        { "'a' == 'b", "the end of a quoted literal expected" },
        { "'a' = 'a'", "one of == != > < expected" },
        { "'a' == 'a' and 'b' == 'b'", "&& or || expected at \"and" },
        { "('a' == 'a')", "a quoted literal or a reference expected" },
        { "'a' == 'a' &&", "a quoted literal or a reference expected at the end" },
        { "$build == 'x'", "a quoted literal or a reference expected" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_free_ char *reason = NULL;
        assert_false (plan_condition_check (rows[i].text, &reason));
        if (! str_starts (reason, rows[i].reason))
            fail_msg ("%s: %s", rows[i].text, reason);
        assert_false (plan_condition_holds (*state, rows[i].text));
    }
}

/* --- who is referred to --- */

struct seen {
    struct strv ids;
    size_t stop_after;
};

static bool
note (void *ctx, const char *id)
{
    struct seen *s = ctx;
    strv_push (&s->ids, id);
    return s->ids.len != s->stop_after;
}

static void
test_every_reference_is_told (void **state)
{
    (void)state;
    _cleanup_json_ json_t *input = value_of ("{'x':['$a.output','no',{'y':'$b.status'}]}");
    const struct plan_step step = { .input = input,
                                    .condition = "$c.status == 'success' && $d.output != 'x'" };
    struct seen all = { .stop_after = 99 };
    assert_true (plan_each_reference (&step, note, &all));
    _cleanup_free_ char *ids = strv_join (&all.ids, " ");
    assert_string_equal (ids, "a b c d");
    for (size_t stop = 1; stop <= 4; stop++) {
        struct seen some = { .stop_after = stop };
        assert_false (plan_each_reference (&step, note, &some));
        assert_int_equal (some.ids.len, stop);
        strv_free (&some.ids);
    }
    strv_free (&all.ids);
    const struct plan_step none = { .input = NULL };
    assert_true (plan_each_reference (&none, note, &(struct seen){ 0 }));
}

int
unit_plan_refs (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_what_is_replaced),
        cmocka_unit_test (test_output_that_is_no_text_is_made_one),
        cmocka_unit_test (test_what_a_condition_says),
        cmocka_unit_test (test_what_is_no_condition),
        cmocka_unit_test (test_every_reference_is_told),
    };
    return cmocka_run_group_tests_name ("session/plan/plan_refs", tests, make_plan, free_plan);
}

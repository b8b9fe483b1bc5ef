/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading plans and judging them: every shape that is none, every step that may not run, each
 * named.
 */
#include "tests/unit/session/stand.h"

#include "session/plan/plan.h"
#include "session/plan/plan_check.h"
#include "session/plan/plan_command.h"

#include <string.h>

#define STEPS(...) "{'id':'p','steps':[" __VA_ARGS__ "]}"

static void
test_shapes_that_are_none (void **state)
{
    (void)state;
    static const struct {
        const char *plan, *reason;
    } rows[] = {
        { "[]", "plan must be an object" },
        { "'x'", "plan must be an object" },
        { "{}", "plan.id must be a string" },
        { "{'id':5,'steps':[]}", "plan.id must be a string" },
        { "{'id':'p'}", "plan.steps must be a list" },
        { "{'id':'p','steps':{}}", "plan.steps must be a list" },
        { STEPS ("7"), "plan.steps[0] must be an object" },
        { STEPS ("{'tool':'t'}"), "plan.steps[0].id" },
        { STEPS ("{'id':null,'tool':'t'}"), "plan.steps[0].id" },
        { STEPS ("{'id':'a','tool':'t'},{'id':3}"), "plan.steps[1].id" },
        { STEPS ("{'id':'a','tool':5}"), "plan.steps[0].tool" },
        { STEPS ("{'id':'a','shell':[]}"), "plan.steps[0].shell" },
        { STEPS ("{'id':'a','capsule':{}}"), "plan.steps[0].capsule" },
        { STEPS ("{'id':'a','tool':'t','depends_on':'b'}"), "plan.steps[0].depends_on" },
        { STEPS ("{'id':'a','tool':'t','depends_on':[1]}"), "plan.steps[0].depends_on" },
        { STEPS ("{'id':'a','tool':'t','if':1}"), "plan.steps[0].if" },
        { STEPS ("{'id':'a','tool':'t','on_error':true}"), "plan.steps[0].on_error" },
        { STEPS ("{'id':'a','tool':'t','retries':-1}"), "plan.steps[0].retries" },
        { STEPS ("{'id':'a','tool':'t','retries':'2'}"), "plan.steps[0].retries" },
        { STEPS ("{'id':'a','tool':'t','retries':4294967296}"), "plan.steps[0].retries" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_json_ json_t *value = value_of (rows[i].plan);
        _cleanup_plan_ struct plan plan = { 0 };
        _cleanup_free_ char *reason = NULL;
        assert_false (plan_read (value, &plan, &reason));
        if (! str_starts (reason, rows[i].reason))
            fail_msg ("%s: %s", rows[i].plan, reason);
    }
}

static void
test_what_is_read (void **state)
{
    (void)state;
    _cleanup_json_ json_t *value = value_of (STEPS (
        "{'id':'a','tool':'t','input':{'x':1},'depends_on':['b','c'],'if':'cond','on_error':'skip',"
        "'retries':3}"
        ",{'id':'b','shell':'ls -l','input':null},{'id':'c','capsule':'x@1','depends_on':null}"));
    _cleanup_plan_ struct plan plan = { 0 };
    char *reason = NULL;
    assert_true (plan_read (value, &plan, &reason));
    assert_int_equal (plan.len, 3);
    const struct plan_step *a = &plan.steps[0];
    assert_int_equal (a->kind, STEP_TOOL);
    assert_string_equal (a->name, "t");
    assert_int_equal (a->depends_on.len, 2);
    assert_string_equal (a->condition, "cond");
    assert_int_equal (a->retries, 3);
    assert_int_equal (json_object_size (a->input), 1);
    assert_int_equal (plan.steps[1].kind, STEP_SHELL);
    assert_null (plan.steps[1].input);
    assert_int_equal (plan.steps[2].kind, STEP_CAPSULE);
    assert_ptr_equal (plan_find (&plan, "b"), &plan.steps[1]);
    assert_null (plan_find (&plan, "d"));
    json_object_clear (value); /* the plan has its own copy */
    assert_string_equal (plan.steps[2].name, "x@1");
}

static void
test_words_of_kinds_and_states (void **state)
{
    (void)state;
    assert_string_equal (step_kind_name (STEP_UNKNOWN), "unknown");
    assert_string_equal (step_kind_name (STEP_TOOL), "tool");
    assert_string_equal (step_kind_name (STEP_SHELL), "shell");
    assert_string_equal (step_kind_name (STEP_CAPSULE), "capsule");
    assert_string_equal (step_status_name (STEP_PENDING), "pending");
    assert_string_equal (step_status_name (STEP_SUCCEEDED), "success");
    assert_string_equal (step_status_name (STEP_FAILED), "failed");
    assert_string_equal (step_status_name (STEP_SKIPPED), "skipped");
}

/* --- judging --- */

static void
test_the_whole_plan_is_judged_before_anything_runs (void **state)
{
    (void)state;
    static const struct {
        const char *steps, *bad, *reason; /* NULL: it may run */
    } rows[] = {
        { "{'id':'a','tool':'t'}", NULL, NULL },
        { "{'id':'a','shell':'ls'}", NULL, NULL },
        { "{'id':'a','shell':'  ls -l '}", NULL, NULL },
        { "{'id':'a','capsule':'x','input':'do it'}", NULL, NULL },
        { "{'id':'a','capsule':'x','input':{'objective':'do it'}}", NULL, NULL },
        { "{'id':'a','tool':'t','input':'$b.output','depends_on':['b']},{'id':'b','tool':'t'}",
          NULL, NULL },
        { "{'id':'a','tool':'t'},{'id':' ','tool':'t'}", " ", "a step has a blank id" },
        { "{'id':'a','tool':'t'},{'id':'a','tool':'t'}", "a", "there are two steps of that id" },
        { "{'id':'a','tool':'none'}", "a", "there is no tool named none" },
        { "{'id':'a','tool':'submit-plan'}", "a", "cannot be a step" },
        { "{'id':'a','tool':'switch-driver'}", "a", "cannot be a step" },
        { "{'id':'a','tool':'end-without-answer'}", "a", "cannot be a step" },
        { "{'id':'a','tool':'pull-artifact'}", "a", "cannot be a step" },
        { "{'id':'a','tool':'remove-artifact'}", "a", "cannot be a step" },
        { "{'id':'a','shell':'rm -rf /'}", "a", "rm is not in capabilities.shell.allow" },
        { "{'id':'a','shell':'   '}", "a", "the command line is blank" },
        { "{'id':'a','capsule':'x'}", "a", "the input of a capsule step" },
        { "{'id':'a','capsule':'x','input':5}", "a", "the input of a capsule step" },
        { "{'id':'a','capsule':'x','input':{'objective':'o','more':1}}", "a",
          "the input of a capsule step" },
        { "{'id':'a'}", "a", "exactly one of tool, shell and capsule" },
        { "{'id':'a','tool':'t','shell':'ls'}", "a", "exactly one of tool, shell and capsule" },
        { "{'id':'a','tool':'t','on_error':'retry'}", "a", "on_error is retry" },
        { "{'id':'a','tool':'t','depends_on':['z']}", "a", "it depends on z" },
        { "{'id':'a','tool':'t','input':['$z.output']}", "a", "it refers to z" },
        { "{'id':'a','tool':'t','if':\"$z.status == 'success'\"}", "a", "it refers to z" },
    };
    struct stand st;
    stand_open (&st, "capabilities:\n  shell: {allow: [ls, bash]}\n");
    stand_artifact (&st, "t", ROLE_TOOL, NULL);
    stand_tools (&st);
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_free_ char *text = x_asprintf ("{'id':'p','steps':[%s]}", rows[i].steps);
        /* A condition holds both quotes. */
        bool has_condition = strstr (text, "\"$z") != NULL;
        _cleanup_json_ json_t *value =
            has_condition
                ? json_loads (
                      "{\"id\":\"p\",\"steps\":[{\"id\":\"a\",\"tool\":\"t\",\"if\":\"$z.status == 'success'\"}]}",
                      0, NULL)
                : value_of (text);
        _cleanup_plan_ struct plan plan = { 0 };
        _cleanup_free_ char *reason = NULL;
        const char *bad = NULL;
        assert_true (plan_read (value, &plan, &reason));
        bool may_run = plan_check (&st.s, &plan, &bad, &reason);
        assert_int_equal (may_run, rows[i].bad == NULL);
        if (may_run)
            continue;
        assert_string_equal (bad, rows[i].bad);
        if (! strstr (reason, rows[i].reason))
            fail_msg ("%s: %s", rows[i].steps, reason);
    }
    stand_close (&st);
}

static void
test_what_a_failure_does (void **state)
{
    (void)state;
    static const struct {
        const char *word;
        enum step_on_error what;
    } rows[] = { { "fail", STEP_FAILS_PLAN },
                 { "skip", STEP_IS_SKIPPED },
                 { "continue", STEP_CONTINUES } };
    struct stand st;
    stand_open (&st, NULL);
    stand_artifact (&st, "t", ROLE_TOOL, NULL);
    stand_tools (&st);
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_free_ char *text =
            x_asprintf ("{'id':'p','steps':[{'id':'a','tool':'t','on_error':'%s'}]}", rows[i].word);
        _cleanup_json_ json_t *value = value_of (text);
        _cleanup_plan_ struct plan plan = { 0 };
        char *reason = NULL;
        const char *bad;
        assert_true (plan_read (value, &plan, &reason) && plan_check (&st.s, &plan, &bad, &reason));
        assert_int_equal (plan.steps[0].on_error, rows[i].what);
    }
    stand_close (&st);
}

/* --- the command of a shell step --- */

static void
test_the_command_of_a_step (void **state)
{
    (void)state;
    static const struct {
        const char *line, *input, *name, *command;
    } rows[] = {
        { "ls", "null", "ls", "" },
        { "ls -l /tmp", "null", "ls", "-l /tmp" },
        { "  ls\t-l ", "null", "ls", "-l " },
        { "bash", "'echo hi'", "bash", "echo hi" },
        { "bash", "{'command':'echo hi'}", "bash", "echo hi" },
        { "bash", "{'other':'echo hi'}", "bash", "" },
        { "bash -c 'echo hi'", "null", "bash", "echo hi" },
        { "bash -c echo hi", "null", "bash", "-c echo hi" },
        { "sh script.sh", "null", "sh", "script.sh" },
        { "git -c 'x'", "null", "git", "-c 'x'" },
        { "ls -l", "'ignored'", "ls", "-l" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_json_ json_t *input = value_of (rows[i].input);
        const struct plan_step step = { .name = rows[i].line };
        _cleanup_free_ char *name = NULL, *command = NULL;
        assert_true (plan_command_read (&step, input, &name, &command));
        assert_string_equal (name, rows[i].name);
        assert_string_equal (command, rows[i].command);
    }
    const struct plan_step blank = { .name = " \t\n" };
    char *name, *command;
    assert_false (plan_command_read (&blank, NULL, &name, &command));
}

int
unit_plan (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_shapes_that_are_none),
        cmocka_unit_test (test_what_is_read),
        cmocka_unit_test (test_words_of_kinds_and_states),
        cmocka_unit_test (test_the_whole_plan_is_judged_before_anything_runs),
        cmocka_unit_test (test_what_a_failure_does),
        cmocka_unit_test (test_the_command_of_a_step),
    };
    return cmocka_run_group_tests_name ("session/plan/plan", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Running one call by name: which of several takes it, what it says when none does, what is
 * recorded.
 */
#include "tests/unit/session/stand.h"

#include "session/calls/call_line.h"
#include "session/calls/dispatch.h"
#include "session/commands/processes.h"
#include "session/state/provided.h"

#include <string.h>

extern const struct provided_tool provided_session_status;

static size_t provided_calls;

static bool
is_there (const struct session *s)
{
    return s->manifest->inference != NULL;
}

static bool
is_nowhere (const struct session *s)
{
    (void)s;
    return false;
}

static void
answer (struct session *s, struct running_task *task, const json_t *input, struct call_outcome *out)
{
    (void)s;
    (void)task;
    provided_calls++;
    _cleanup_free_ char *text = json_text (input, JSON_TEXT_SORTED);
    outcome_set_result (out, "given", TOOL_PASSED, text, strlen (text));
}

static const struct provided_tool
    given = { "given", "d", "{}", "some.grant", is_there, answer, NULL },
    absent = { "absent", "d", "{}", "some.grant", is_nowhere, answer, NULL };
static const struct provided_tool *const rows[] = { &given, &absent, &provided_session_status };

static int
open_stand (void **state)
{
    struct stand *st = x_new0 (struct stand);
    stand_open (st, "capabilities:\n  shell: {allow: [ls, bash]}\n");
    processes_new (&st->s);
    st->s.kit.provided = rows;
    st->s.kit.provided_count = ARRAY_LEN (rows);
    st->s.spend = spend_meter_new (st->s.id.text, 1000, 0, NULL);
    st->t.choice = (struct call_choice){ .driver = &st->s.choices.primary, .budget_basis = "none" };
    provided_calls = 0;
    *state = st;
    return 0;
}

static int
close_stand (void **state)
{
    struct stand *st = *state;
    processes_free (&st->s);
    spend_meter_freep (&st->s.spend);
    stand_close (st);
    free (st);
    return 0;
}

static void
run (struct stand *st, const char *name, const char *input, bool is_step, struct call_outcome *out)
{
    _cleanup_json_ json_t *value = value_of (input);
    _cleanup_free_ char *text = json_text (value, JSON_TEXT_SORTED);
    const struct call c = {
        .id = "c", .name = name, .input = value, .input_text = text, .is_plan_step = is_step
    };
    dispatch_call (&st->s, &st->t, &c, out);
}

static void
test_who_takes_a_name (void **state)
{
    struct stand *st = *state;
    stand_artifact (st, "hook", ROLE_HOOK, NULL);
    stand_artifact (st, "gone", ROLE_TOOL, NULL)->is_removed = true;
    stand_artifact (st, "given", ROLE_TOOL, NULL); /* the runtime's row comes first */
    static const struct {
        const char *name, *input, *text;
    } calls[] = {
        { "given", "{'a':1}", "{\"a\":1}" },
        { "given", "[]", "given: the input must be a JSON object" },
        { "given", "'x'", "given: the input must be a JSON object" },
        { "absent", "{}", "absent is not available: this capsule does not declare some.grant" },
        { "hook", "{}", "hook is a hook and cannot be called" },
        { "gone", "{}", "gone was removed from this session" },
        { "nobody", "{}", "there is no tool named nobody in this session" },
        { "", "{}", "there is no tool named  in this session" },
        { "bash", "{}", "bash needs a JSON object with a non-blank string \"command\"" },
        { "bash", "{'command':'  '}",
          "bash needs a JSON object with a non-blank string \"command\"" },
        { "bash", "{'command':7}", "bash needs a JSON object with a non-blank string \"command\"" },
        { "bash", "[]", "bash needs a JSON object with a non-blank string \"command\"" },
        { "ls", "{'command':7}", "ls needs a JSON object whose \"command\" is text" },
    };
    for (size_t i = 0; i < ARRAY_LEN (calls); i++) {
        _cleanup_outcome_ struct call_outcome o = { 0 };
        run (st, calls[i].name, calls[i].input, false, &o);
        if (! strstr (o.text.data, calls[i].text))
            fail_msg ("%s: %s", calls[i].name, o.text.data);
        assert_int_equal (o.status == TOOL_PASSED, o.runtime_error == NULL);
        assert_int_equal (o.fence_source != NULL, o.runtime_error == NULL);
    }
    assert_int_equal (provided_calls, 1);
}

static void
test_a_step_is_left_unfenced_for_its_plan (void **state)
{
    _cleanup_outcome_ struct call_outcome o = { 0 };
    run (*state, "given", "{}", true, &o);
    assert_string_equal (o.text.data, "{}");
    assert_null (o.fence_source);
}

static void
test_skills_are_the_operators_words_unless_they_were_pulled (void **state)
{
    struct stand *st = *state;
    static const struct {
        enum lock_origin origin;
        const char *text, *shown, *fence;
    } skills[] = {
        { LOCK_OPERATOR, "Do it well.", "Do it well.", NULL },
        { LOCK_RUNTIME, "Do it.",
          "<untrusted-content source=skill:s>\nDo it.\n</untrusted-content>", "skill:s" },
        { LOCK_OPERATOR, "", "", NULL },
        { LOCK_OPERATOR, "\xff", "skill s: its skill.md is not UTF-8 text", NULL },
    };
    struct staged_artifact *a = stand_artifact (st, "s", ROLE_SKILL, NULL);
    for (size_t i = 0; i < ARRAY_LEN (skills); i++) {
        _cleanup_outcome_ struct call_outcome o = { 0 };
        a->origin = skills[i].origin;
        buf_truncate (&a->skill_text, 0);
        buf_puts (&a->skill_text, skills[i].text);
        run (st, "s", "{}", false, &o);
        assert_true (o.is_skill);
        assert_string_equal (o.text.data ? o.text.data : "", skills[i].shown);
        assert_true (str_eq (o.fence_source, skills[i].fence));
    }
}

static void
test_a_cancelled_task_starts_no_command (void **state)
{
    struct stand *st = *state;
    _cleanup_outcome_ struct call_outcome o = { 0 };
    cancel_raise (st->t.cancel);
    run (st, "ls", "{'command':'-l'}", false, &o);
    assert_true (o.is_canceled);
    assert_non_null (strstr (o.text.data, "was not started"));
}

/* --- session-status --- */

static void
test_the_status_in_numbers (void **state)
{
    struct stand *st = *state;
    _cleanup_outcome_ struct call_outcome o = { 0 };
    st->t.counts.turns = 4;
    st->t.occupancy.is_known = true;
    st->t.occupancy.tokens = 120;
    usage_count_add (&st->s.tally.usage.input, true, 77);
    run (st, "session-status", "{}", true, &o);
    _cleanup_json_ json_t *status = json_loads (o.text.data, 0, NULL);
    assert_non_null (status);
    const json_t *turns = json_object_get (status, "turns"),
                 *tokens = json_object_get (status, "tokens"),
                 *context = json_object_get (status, "context"),
                 *spend = json_object_get (status, "spend");
    assert_int_equal (json_integer_value (json_object_get (turns, "used")), 4);
    assert_string_equal (json_get_string (turns, "cap"), "none");
    assert_int_equal (json_integer_value (json_object_get (tokens, "input")), 77);
    assert_string_equal (json_get_string (tokens, "output"), "unknown");
    assert_int_equal (json_integer_value (json_object_get (context, "used_tokens")), 120);
    assert_string_equal (json_get_string (context, "window_tokens"), "none");
    assert_string_equal (json_get_string (context, "measured_by"), "estimate");
    assert_int_equal (json_integer_value (json_object_get (spend, "ceiling")), 1000);
    assert_string_equal (json_get_string (spend, "machine"), "none");
    assert_string_equal (json_get_string (json_object_get (status, "time"), "deadline"), "none");
    assert_int_equal (stand_lines (st, "session_status"), 1);
}

/* --- lines --- */

static void
test_the_line_of_a_call (void **state)
{
    struct stand *st = *state;
    _cleanup_outcome_ struct call_outcome o = { 0 };
    const struct call c = { .turn = 2, .id = "", .name = "t", .input_text = "{\"a\":1}" };
    outcome_set_error (&o, "no");
    call_line_write (&st->s, &st->t, &c, &o, 15);
    _cleanup_json_ json_t *line = stand_line (st, "tool_call");
    assert_string_equal (json_get_string (line, "status"), "error");
    assert_string_equal (json_get_string (line, "error"), "no");
    assert_null (json_get_string (line, "tool_call_id"));
    assert_int_equal (json_integer_value (json_object_get (line, "input_bytes")), 7);
    assert_int_equal (json_integer_value (json_object_get (line, "duration_ms")), 15);
    assert_null (json_object_get (line, "output"));
    assert_int_equal (st->t.counts.tool_calls, 1);
    const struct call raw = { .id = "x", .name = "t", .input_text = "null", .input_bytes = 99 };
    call_line_write (&st->s, &st->t, &raw, &o, 0);
    _cleanup_json_ json_t *second = stand_line (st, "tool_call");
    assert_int_equal (json_integer_value (json_object_get (second, "input_bytes")), 99);
    assert_int_equal (st->s.tally.totals.tool_calls, st->t.counts.tool_calls);
}

static void
test_the_line_of_a_skill_counts_no_tool (void **state)
{
    struct stand *st = *state;
    uint64_t before = st->t.counts.tool_calls;
    struct call_outcome o = { .is_skill = true,
                              .skill_origin = LOCK_RUNTIME,
                              .status = TOOL_PASSED };
    const struct call c = { .id = "", .name = "poem", .input_text = "{}" };
    call_line_write (&st->s, &st->t, &c, &o, 1);
    _cleanup_json_ json_t *line = stand_line (st, "skill_call");
    assert_string_equal (json_get_string (line, "origin"), "runtime");
    assert_string_equal (json_get_string (line, "trust"), "untrusted");
    assert_int_equal (st->t.counts.tool_calls, before);
}

static void
test_the_line_of_a_command (void **state)
{
    struct stand *st = *state;
    const struct shell_facts done = { .binary = (char[]){ "/bin/ls" },
                                      .command = (char[]){ "-l" },
                                      .exit_code = 2 },
                             gone = { .binary = (char[]){ "/bin/ls" },
                                      .command = (char[]){ "-l" },
                                      .is_detached = true,
                                      .work_id = "wrk_1",
                                      .grace_ms = 5 };
    call_line_shell (&st->s, &st->t, 1, &done);
    call_line_shell (&st->s, &st->t, 1, &gone);
    _cleanup_json_ json_t *line = stand_line (st, "shell"),
                          *detached = stand_line (st, "shell_detached");
    assert_int_equal (json_integer_value (json_object_get (line, "exit_code")), 2);
    assert_string_equal (json_get_string (detached, "work_id"), "wrk_1");
    assert_int_equal (st->t.counts.shell_calls, 2);
    assert_int_equal (st->s.tally.totals.shell_calls, 2);
}

int
unit_dispatch (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (test_who_takes_a_name, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_a_step_is_left_unfenced_for_its_plan, open_stand,
                                         close_stand),
        cmocka_unit_test_setup_teardown (
            test_skills_are_the_operators_words_unless_they_were_pulled, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_a_cancelled_task_starts_no_command, open_stand,
                                         close_stand),
        cmocka_unit_test_setup_teardown (test_the_status_in_numbers, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_the_line_of_a_call, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_the_line_of_a_skill_counts_no_tool, open_stand,
                                         close_stand),
        cmocka_unit_test_setup_teardown (test_the_line_of_a_command, open_stand, close_stand),
    };
    return cmocka_run_group_tests_name ("session/calls/dispatch", tests, NULL, NULL);
}

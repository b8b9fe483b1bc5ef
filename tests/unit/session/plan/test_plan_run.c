/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a plan runs when: waves, references, conditions, retries and what a failure does, with
 * tools that answer here.
 */
#include "tests/unit/session/stand.h"

#include "session/commands/processes.h"
#include "session/plan/plan_check.h"
#include "session/plan/plan_run.h"
#include "session/state/outcome.h"
#include "session/state/provided.h"
#include "session/toolbox/told.h"

#include <string.h>

static struct buf ran;      /* the ids that were given, in order */
static unsigned failing;    /* how often "flaky" still fails */
static struct cancel *stop; /* raised by "stop" */

static bool
is_there (const struct session *s)
{
    return s != NULL;
}

static void
note (const json_t *input)
{
    const char *id = json_get_string (input, "id");
    buf_printf (&ran, "%s%s", ran.len ? " " : "", id ? id : "?");
}

static void
pass (struct session *s, struct running_task *t, const json_t *input, struct call_outcome *out)
{
    (void)s;
    (void)t;
    note (input);
    const char *say = json_get_string (input, "say");
    outcome_set_result (out, "pass", TOOL_PASSED, say ? say : "done", strlen (say ? say : "done"));
}

static void
break_it (struct session *s, struct running_task *t, const json_t *input, struct call_outcome *out)
{
    (void)s;
    (void)t;
    note (input);
    outcome_set_error (out, "it broke");
}

static void
flaky (struct session *s, struct running_task *t, const json_t *input, struct call_outcome *out)
{
    if (failing && failing--)
        break_it (s, t, input, out);
    else
        pass (s, t, input, out);
}

static void
stop_it (struct session *s, struct running_task *t, const json_t *input, struct call_outcome *out)
{
    cancel_raise (stop);
    pass (s, t, input, out);
}

static const struct provided_tool tools[] = {
    { "pass", "d", "{}", "m", is_there, pass, NULL },
    { "break", "d", "{}", "m", is_there, break_it, NULL },
    { "flaky", "d", "{}", "m", is_there, flaky, NULL },
    { "stop", "d", "{}", "m", is_there, stop_it, NULL },
};
static const struct provided_tool *const rows[] = { &tools[0], &tools[1], &tools[2], &tools[3] };

/* Runs the plan; the words: what ran | what is reported, id:status | the failed step or "-". Owned.
 */
static char *
run (const char *steps)
{
    struct stand st;
    _cleanup_plan_ struct plan plan = { 0 };
    struct plan_end end = { 0 };
    char *reason = NULL;
    const char *bad = NULL;
    stand_open (&st, NULL);
    told_new (&st.s);
    processes_new (&st.s);
    st.s.kit.provided = rows;
    st.s.kit.provided_count = ARRAY_LEN (rows);
    st.s.kit.tools = x_new_array (struct tool_entry, 4);
    static const char *const names[] = { "break", "flaky", "pass", "stop" };
    for (size_t i = 0; i < ARRAY_LEN (names); i++)
        st.s.kit.tools[st.s.kit.tool_count++] =
            (struct tool_entry){ .name = names[i], .parameters = "{}", .is_provided = true };
    stop = st.t.cancel;
    buf_truncate (&ran, 0);
    _cleanup_json_ json_t *value = json_loads (steps, 0, NULL);
    assert_non_null (value);
    _cleanup_json_ json_t *whole = json_pack ("{s:s,s:O}", "id", "p", "steps", value);
    assert_true (plan_read (whole, &plan, &reason));
    if (! plan_check (&st.s, &plan, &bad, &reason))
        fail_msg ("%s", reason);
    plan_run (&st.s, &st.t, &plan, "", &end);
    struct buf words = { 0 };
    buf_printf (&words, "%s |", ran.len ? ran.data : "");
    for (size_t i = 0; i < plan.reported_len; i++)
        buf_printf (&words, " %s:%s", plan.reported[i]->id,
                    step_status_name (plan.reported[i]->status));
    buf_printf (&words, " | %s%s", end.failed_step ? end.failed_step : "-",
                end.is_canceled ? " canceled" : "");
    assert_int_equal (stand_lines (&st, "plan_step"), plan.reported_len);
    assert_null (end.reason);
    told_free (&st.s);
    processes_free (&st.s);
    stand_close (&st);
    buf_free (&ran);
    return buf_steal (&words);
}

#define STEP(id, tool, more)                                                                       \
    "{\"id\":\"" id "\",\"tool\":\"" tool "\",\"input\":{\"id\":\"" id "\"}" more "}"
#define AFTER(id) ",\"depends_on\":[\"" id "\"]"

static void
test_plans (void **state)
{
    (void)state;
    static const struct {
        const char *what, *steps, *words;
        unsigned failing;
    } plans[] = {
        { "nothing to do", "[]", " | | -", 0 },
        { "in their order", "[" STEP ("a", "pass", "") "," STEP ("b", "pass", "") "]",
          "a b | a:success b:success | -", 0 },
        { "what it depends on comes first",
          "[" STEP ("a", "pass", AFTER ("c")) "," STEP ("b", "pass", "") "," STEP ("c", "pass",
                                                                                   "") "]",
          "b c a | b:success c:success a:success | -", 0 },
        { "what it refers to comes first",
          "[{\"id\":\"a\",\"tool\":\"pass\",\"input\":{\"id\":\"a\",\"say\":\"$b.output\"}}," STEP (
              "b", "pass", "") "]",
          "b a | b:success a:success | -", 0 },
        { "a failure ends the plan",
          "[" STEP ("a", "break", "") "," STEP ("b", "pass", AFTER ("a")) "]", "a | a:failed | a",
          0 },
        { "of one wave what comes after it is not reported",
          "[" STEP ("a", "pass", "") "," STEP ("b", "break", "") "," STEP ("c", "pass", "") "]",
          "a b c | a:success b:failed | b", 0 },
        { "a failure that may be skipped",
          "[" STEP ("a", "break", ",\"on_error\":\"skip\"") "," STEP ("b", "pass", AFTER ("a")) "]",
          "a b | a:skipped b:success | -", 0 },
        { "a failure it goes on after",
          "[" STEP ("a", "break", ",\"on_error\":\"continue\"") "," STEP ("b", "pass",
                                                                          AFTER ("a")) "]",
          "a b | a:failed b:success | -", 0 },
        { "tried again", "[" STEP ("a", "flaky", ",\"retries\":2") "]", "a a a | a:success | -",
          2 },
        { "tried again for nothing", "[" STEP ("a", "flaky", ",\"retries\":1") "]",
          "a a | a:failed | a", 5 },
        { "a condition that holds",
          "[" STEP ("a", "pass", "") "," STEP ("b", "pass",
                                               ",\"if\":\"$a.status == 'success'\"") "]",
          "a b | a:success b:success | -", 0 },
        { "a condition that does not",
          "[" STEP ("a", "pass", "") "," STEP (
              "b", "pass", ",\"if\":\"$a.status == 'failed'\"") "," STEP ("c", "pass",
                                                                          AFTER ("b")) "]",
          "a c | a:success b:skipped c:success | -", 0 },
        { "a condition that is none", "[" STEP ("a", "pass", ",\"if\":\"maybe\"") "]",
          " | a:failed | a", 0 },
        { "a condition on an output",
          "[{\"id\":\"a\",\"tool\":\"pass\",\"input\":{\"id\":\"a\",\"say\":\"7\"}}," STEP (
              "b", "pass", ",\"if\":\"$a.output > '5' && $a.output != '8'\"") "]",
          "a b | a:success b:success | -", 0 },
        { "steps that wait for each other",
          "[" STEP ("a", "pass", AFTER ("b")) "," STEP ("b", "pass", AFTER ("a")) "]",
          " | a:failed | a", 0 },
        { "a step that waits for itself", "[" STEP ("a", "pass", AFTER ("a")) "]",
          " | a:failed | a", 0 },
        { "stopped in the middle",
          "[" STEP ("a", "stop", "") "," STEP ("b", "pass", AFTER ("a")) "]",
          "a | a:failed b:skipped | - canceled", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN (plans); i++) {
        failing = plans[i].failing;
        _cleanup_free_ char *words = run (plans[i].steps);
        if (strcmp (words, plans[i].words) != 0)
            fail_msg ("%s: %s", plans[i].what, words);
    }
}

static void
test_many_steps_in_a_row (void **state)
{
    (void)state;
    _cleanup_buf_ struct buf steps = { 0 };
    buf_puts (&steps, "[");
    for (int i = 0; i < 300; i++)
        buf_printf (
            &steps,
            "%s{\"id\":\"s%d\",\"tool\":\"pass\",\"input\":{\"id\":\"s%d\"},\"depends_on\":[%s%s%s]}",
            i ? "," : "", i, i, i < 299 ? "\"s" : "",
            i < 299 ? (char[]){ (char)('0' + (i + 1) / 100), (char)('0' + (i + 1) / 10 % 10),
                                (char)('0' + (i + 1) % 10), 0 } +
                          (i + 1 < 10    ? 2
                           : i + 1 < 100 ? 1
                                         : 0)
                    : "",
            i < 299 ? "\"" : "");
    buf_puts (&steps, "]");
    failing = 0;
    _cleanup_free_ char *words = run (steps.data);
    assert_true (str_starts (words, "s299 s298 s297 "));
    assert_non_null (strstr (words, " s0:success | -"));
}

int
unit_plan_run (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_plans),
        cmocka_unit_test (test_many_steps_in_a_row),
    };
    return cmocka_run_group_tests_name ("session/plan/plan_run", tests, NULL, NULL);
}

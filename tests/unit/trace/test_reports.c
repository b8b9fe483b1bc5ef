/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a trace back and what is made of it: strictness, redundancy, the report, the steps, the
 * comparison, bodies.
 */
#include "tests/unit/testing.h"

#include "base/digest.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "trace/read/body.h"
#include "trace/tell/diff.h"
#include "trace/tell/metrics.h"
#include "trace/tell/show.h"
#include "trace/tell/steps.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* --- traces to read --- */

#define HEAD(type, id, parent, ms)                                                                 \
    "{\"event_type\":\"" type "\",\"event_id\":\"" id "\",\"parent_id\":" parent                   \
    ",\"session_id\":\"ses_1\",\"timestamp\":" ms
#define START                                                                                      \
    HEAD ("session_start", "evt_1", "null", "1000")                                                \
    ",\"capsule_name\":\"bot\",\"capsule_version\":\"0.1.0\",\"model\":\"m\",\"max_turns\":20,"    \
    "\"model_limits\":null,\"max_session_tokens\":null,\"machine_tokens_per_day\":null,"           \
    "\"deadline\":null,\"capabilities\":[],\"tools_declared\":[\"read\"],"                         \
    "\"containment_declared\":\"advisory\",\"containment_achieved\":\"advisory\","                 \
    "\"workdir_exec\":false,\"userns_grant\":null,\"effective_grants\":{},"                        \
    "\"system_prompt_source\":\"none\",\"system_prompt_sha256\":null,"                             \
    "\"credential_source\":\"none\",\"gateways\":[],\"tool_refresh\":null,"                        \
    "\"runtime_artifacts\":[],\"host_facts\":[],\"resumed_from\":null,\"context_id\":null}\n"
#define TASK                                                                                       \
    HEAD ("task_start", "evt_2", "\"evt_1\"", "1010")                                              \
    ",\"task_id\":\"tsk_0123456789abcdef\",\"context_id\":\"ctx_1\",\"source\":\"task_md\","       \
    "\"origin\":\"user\",\"trust\":\"trusted\",\"lane\":\"user\",\"message_parts_bytes\":2}\n"
#define INFERENCE(id, turn, decision, extra)                                                       \
    HEAD ("inference", id, "\"evt_2\"", "1020")                                                    \
    ",\"turn\":" turn ",\"task_id\":\"tsk_0123456789abcdef\",\"input_tokens\":1500,"               \
    "\"output_tokens\":30,\"decision\":\"" decision "\",\"stop_reason\":\"x\","                    \
    "\"tool_name\":null" extra "}\n"
#define TOOL(id, parent, input, effect)                                                            \
    HEAD ("tool_call", id, parent, "1030")                                                         \
    ",\"turn\":0,\"task_id\":\"tsk_0123456789abcdef\",\"tool_name\":\"read\","                     \
    "\"tool_call_id\":\"c\",\"input\":" input ",\"input_bytes\":2,\"output_bytes\":2,"             \
    "\"duration_ms\":7,\"status\":\"ok\"" effect "}\n"
#define END                                                                                        \
    HEAD ("session_end", "evt_99", "\"evt_1\"", "2000")                                            \
    ",\"total_turns\":2,\"total_input_tokens\":3000,\"total_output_tokens\":60,"                   \
    "\"total_tool_calls\":1,\"total_shell_calls\":0,\"duration_ms\":1234,"                         \
    "\"exit_status\":\"ok\"}\n"
#define READ_EFFECT ",\"state_effect\":\"read\""

static const char whole[] = START TASK INFERENCE ("evt_3", "0", "tool_call", "")
    TOOL ("evt_4", "\"evt_3\"", "{\"path\":\"a.txt\"}", READ_EFFECT)
        INFERENCE ("evt_5", "1", "end_turn", "") END;

static struct trace *
parse (const char *text, enum trace_mode mode)
{
    struct trace *t = NULL;
    assert_succeeds ((t = trace_parse ("t.jsonl", text, strlen (text), mode, &err)));
    return t;
}

/* Reading fails with E-TRC-001 and a message holding <part>. */
static void
refused (const char *text, enum trace_mode mode, const char *part)
{
    struct mur_error *caught = NULL;
    if (trace_parse ("t.jsonl", text, strlen (text), mode, &caught))
        fail_msg ("accepted: %s", text);
    assert_int_equal (caught->code, E_TRC_001);
    if (! strstr (caught->message, part))
        fail_msg ("\"%s\" is not in: %s", part, caught->message);
    mur_error_free (caught);
}

static char *
shown (const char *text)
{
    _cleanup_trace_ struct trace *t = parse (text, TRACE_TOLERANT);
    struct report report = { 0 };
    struct buf out = { 0 };
    trace_show (t, NULL, &report);
    report_finish (&report, false, &out);
    return buf_steal (&out);
}

static void
assert_holds (const char *text, const char *part)
{
    if (! strstr (text, part))
        fail_msg ("\"%s\" is not in:\n%s", part, text);
}

/* --- reading --- */

static void
test_unknown_events_keys_and_blank_lines_are_skipped (void **state)
{
    (void)state;
    _cleanup_trace_ struct trace *t =
        parse ("\n" START "  \n{\"event_type\":\"of_tomorrow\",\"timestamp\":5}\n" END "\n\n",
               TRACE_STRICT);
    assert_int_equal (t->count, 2);
    assert_true (t->is_complete);
    assert_string_equal (trace_at (t, 1)->type, "session_end");
}

static void
test_malformed_lines_are_named (void **state)
{
    (void)state;
    static const enum trace_mode modes[] = { TRACE_STRICT, TRACE_TOLERANT };
    for (size_t i = 0; i < ARRAY_LEN (modes); i++) {
        refused (START "{broken\n" END, modes[i], "t.jsonl:2: not valid JSON");
        refused (START "5\n", modes[i], "t.jsonl:2: not a JSON object");
        refused (START "{\"timestamp\":1}\n" END, modes[i], "t.jsonl:2: no usable event_type");
        refused (START "{\"event_type\":\"task_start\"}\n" END, modes[i],
                 "t.jsonl:2: no usable timestamp");
        refused (START HEAD ("task_failed", "e", "null", "1") ",\"cause\":\"c\"}\n", modes[i],
                 "t.jsonl:2: task_failed has no usable reason");
        refused (START HEAD ("task_failed", "e", "null", "1") ",\"cause\":1,\"reason\":\"r\"}\n",
                 modes[i], "t.jsonl:2: task_failed has no usable cause");
        refused ("", modes[i], "holds no event");
        refused ("\n \n", modes[i], "holds no event");
    }
}

static void
test_only_the_tolerant_reader_bears_a_killed_session (void **state)
{
    (void)state;
    refused (START TASK, TRACE_STRICT, "no session_end");
    refused (START TASK "{\"event_ty", TRACE_STRICT, "t.jsonl:3: not valid JSON");
    refused (START TASK "{\"event_ty", TRACE_FORGIVING, "t.jsonl:3: not valid JSON");
    _cleanup_trace_ struct trace *forgiven = parse (START TASK, TRACE_FORGIVING);
    assert_false (forgiven->is_complete);
    _cleanup_trace_ struct trace *t = parse (START TASK "{\"event_ty", TRACE_TOLERANT);
    assert_int_equal (t->torn_line, 3);
    assert_string_equal (t->last_type, "task_start");
}

/* --- what it adds up to --- */

static size_t
redundant (const char *calls)
{
    _cleanup_trace_ struct trace *t = parse (calls, TRACE_TOLERANT);
    struct trace_metrics m;
    trace_metrics_read (t, &m);
    size_t count = m.redundant_count;
    trace_metrics_free (&m);
    return count;
}

static void
test_a_read_is_redundant_until_something_may_have_changed_it (void **state)
{
    (void)state;
#define READ   TOOL ("e", "null", "{\"path\":\"a\"}", READ_EFFECT)
#define MUTATE TOOL ("e", "null", "{\"path\":\"a\"}", ",\"state_effect\":\"mutate\"")
#define SILENT TOOL ("e", "null", "{\"path\":\"a\"}", "")
    assert_int_equal (redundant (READ READ), 1);
    assert_int_equal (redundant (READ READ READ), 2);
    assert_int_equal (redundant (READ MUTATE READ), 0);
    assert_int_equal (redundant (READ SILENT READ), 0);
    assert_int_equal (redundant (READ TOOL ("e", "null", "{\"File\":\"a\"}", READ_EFFECT)), 1);
    assert_int_equal (redundant (READ TOOL ("e", "null", "{\"path\":\"b\"}", READ_EFFECT)), 0);
    assert_int_equal (redundant (TOOL ("e", "null", "{\"x\":\"a\"}", READ_EFFECT)
                                     TOOL ("e", "null", "{\"x\":\"a\"}", READ_EFFECT)),
                      0);
    assert_int_equal (
        redundant (TOOL ("e", "null", "{\"x\":1}", READ_EFFECT ",\"resource_id\":\"r\"")
                       TOOL ("e", "null", "{\"x\":2}", READ_EFFECT ",\"resource_id\":\"r\"")),
        1);
}

/* --- the report --- */

static void
test_the_report_writes_its_sections_in_order (void **state)
{
    (void)state;
    _cleanup_free_ char *text = shown (whole);
    static const char *const parts[] = {
        "── Session ──────────────────────────────────────\n",
        "session:    ses_1\n",
        "capsule:    bot v0.1.0\n",
        "status:     ok\nduration:   1.2s\n",
        "containment: advisory → advisory\nworkdir exec: no\nprompt:     none\n",
        "\n── Turns ────────────────────────────────────────\ncount:      2  (max: 20)\n",
        "input:      3,000  (avg 1,500/turn)\noutput:     60  (avg 30/turn)\ntotal:      3,060\n",
        "count:      1  (1 ok, 0 error)  success 100.0%\nlatency:    avg 7ms\n"
        "  turn 0  read 7ms ✓  {\"path\":\"a.txt\"}\n  turn 1  end_turn\n",
        "── Redundant calls ──────────────────────────────\ncount:      0\n",
        "── Compaction ───────────────────────────────────\nfired:      no\n",
    };
    const char *at = text;
    for (size_t i = 0; i < ARRAY_LEN (parts); i++) {
        assert_holds (at, parts[i]);
        at = strstr (at, parts[i]);
    }
    assert_null (strstr (text, "Delegations"));
    assert_null (strstr (text, "\033"));
}

static void
test_a_killed_session_says_how_it_ended (void **state)
{
    (void)state;
    _cleanup_free_ char *text = shown (START TASK "{\"torn");
    assert_holds (text, "status:     ended without a session_end (last event: task_start at "
                        "1970-01-01T00:00:01.010Z; line 3, the last, is not valid JSON and was "
                        "skipped)\nduration:   10ms  (first to last event)\ntotals:     ");
}

static void
test_nothing_a_trace_holds_reaches_the_terminal_as_control (void **state)
{
    (void)state;
    _cleanup_trace_ struct trace *t =
        parse (START HEAD (
                   "task_failed", "e", "null",
                   "1") ",\"cause\":\"c\\u001b[31m\",\"reason\":\"a\\u0007b\\u009b2Jc\\u0001d\"}\n",
               TRACE_TOLERANT);
    for (int colour = 0; colour < 2; colour++) {
        _cleanup_buf_ struct buf out = { 0 };
        struct report report = { 0 };
        trace_show (t, NULL, &report);
        report_finish (&report, colour, &out);
        assert_null (strstr (out.data, "c\033"));
        assert_null (strstr (out.data, "c\033"));
        assert_null (strchr (out.data, '\007'));
        assert_null (strstr (out.data, "\xc2\x9b"));
        assert_non_null (strstr (out.data, "task_failed"));
    }
}

/* --- steps --- */

static void
test_steps_are_a_tree (void **state)
{
    (void)state;
    _cleanup_trace_ struct trace *t = parse (whole, TRACE_STRICT);
    _cleanup_buf_ struct buf out = { 0 };
    struct report report = { 0 };
    trace_steps (t, true, &report);
    report_finish (&report, false, &out);
    assert_string_equal (out.data, "Session ses_1  (1 task, 2 turns)\n"
                                   "\n"
                                   "task tsk_01234567…  ctx_1  (task_md, user/trusted, lane user)\n"
                                   "  turn 0  tool_call\n"
                                   "    tool_call  read  7ms  ✓  \"a.txt\"\n"
                                   "  turn 1  end_turn\n"
                                   "\n");
}

static void
test_a_deep_trace_takes_no_stack (void **state)
{
    (void)state;
    _cleanup_buf_ struct buf text = { 0 };
    buf_puts (&text, START TASK);
    for (int i = 0; i < 20000; i++)
        buf_printf (&text,
                    HEAD ("compaction", "c%d", "\"c%d\"",
                          "1") ",\"turn\":0,\"task_id\":null,\"tokens_before\":1,"
                               "\"tokens_before_source\":\"actual\",\"tokens_after\":1}\n",
                    i + 1, i);
    _cleanup_trace_ struct trace *t = trace_parse ("t", text.data, text.len, TRACE_TOLERANT, NULL);
    _cleanup_buf_ struct buf out = { 0 };
    struct report report = { 0 };
    trace_steps (t, false, &report);
    report_finish (&report, false, &out);
    assert_true (out.len > 20000);
}

/* --- comparison --- */

static void
test_a_comparison_says_which_run_is_better (void **state)
{
    (void)state;
    _cleanup_free_ char *other = x_strdup (whole);
    memcpy (strstr (other, "\"duration_ms\":1234"), "\"duration_ms\":3234", 18);
    memcpy (strstr (other, "\"total_turns\":2"), "\"total_turns\":1", 15);
    _cleanup_trace_ struct trace *a = parse (whole, TRACE_STRICT);
    _cleanup_trace_ struct trace *b = parse (other, TRACE_STRICT);
    _cleanup_buf_ struct buf out = { 0 };
    struct report report = { 0 };
    trace_diff (a, b, &report);
    report_finish (&report, false, &out);
    assert_holds (out.data,
                  "turns                  2                1                -1 (B better)\n");
    assert_holds (out.data,
                  "duration               1.2s             3.2s             +2.0s (A better)\n");
    assert_holds (out.data, "input tokens           3,000            3,000            =\n");
    assert_holds (out.data, "tool success rate      100.0%           100.0%           =\n");
    assert_holds (out.data, "avg shell latency      —                —                —\n");
    assert_holds (out.data,
                  "run A recorded no content hashes — it ran under trace.capture: none\n");
}

/* --- bodies --- */

static void
test_bodies_are_found_by_part_and_by_digest (void **state)
{
    (void)state;
    char dir[] = "/tmp/test_bodies.XXXXXX";
    assert_non_null (mkdtemp (dir));
    char system_sha[SHA256_HEX_LEN + 1], message_sha[SHA256_HEX_LEN + 1];
    sha256_hex ("the prompt", 10, system_sha);
    sha256_hex ("a message", 9, message_sha);
    _cleanup_free_ char *blobs = x_asprintf ("%s/blobs", dir);
    _cleanup_free_ char *blob = x_asprintf ("%s/%s", blobs, system_sha);
    assert_int_equal (mkdir (blobs, 0700), 0);
    _cleanup_close_ int fd = open (blob, O_CREAT | O_WRONLY, 0600);
    assert_int_equal (write (fd, "the prompt", 10), 10);
    _cleanup_free_ char *hashes =
        x_asprintf (",\"system_sha\":\"%s\",\"message_shas\":[\"%s\"]", system_sha, message_sha);
    _cleanup_free_ char *before = x_strdup (INFERENCE ("evt_3", "0", "end_turn", "@"));
    *strchr (before, '@') = '\0';
    _cleanup_free_ char *text = x_asprintf ("%s%s}\n", before, hashes);
    _cleanup_trace_ struct trace *t = parse (text, TRACE_TOLERANT);

    uint64_t turn = 0, absent = 7;
    _cleanup_buf_ struct buf body = { 0 };
    assert_succeeds (trace_body (t, dir, "system", &turn, &body, &err));
    assert_string_equal (body.data, "the prompt");
    system_sha[10] = '\0';
    buf_truncate (&body, 0);
    assert_succeeds (trace_body (t, dir, system_sha, NULL, &body, &err));
    assert_string_equal (body.data, "the prompt");
    static const char *const wrong[] = { "tools",    "message:0", "message:1", "message:x",
                                         "ffffffff", "ABCDEF01",  "abc",       "frm_1" };
    for (size_t i = 0; i < ARRAY_LEN (wrong); i++)
        assert_fails (trace_body (t, dir, wrong[i], &turn, &body, &err), E_TRC_001);
    assert_fails (trace_body (t, dir, "system", NULL, &body, &err), E_TRC_001);
    assert_fails (trace_body (t, dir, "system", &absent, &body, &err), E_TRC_001);
    assert_succeeds (fs_remove_tree_at (AT_FDCWD, dir, &err));
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_unknown_events_keys_and_blank_lines_are_skipped),
        cmocka_unit_test (test_malformed_lines_are_named),
        cmocka_unit_test (test_only_the_tolerant_reader_bears_a_killed_session),
        cmocka_unit_test (test_a_read_is_redundant_until_something_may_have_changed_it),
        cmocka_unit_test (test_the_report_writes_its_sections_in_order),
        cmocka_unit_test (test_a_killed_session_says_how_it_ended),
        cmocka_unit_test (test_nothing_a_trace_holds_reaches_the_terminal_as_control),
        cmocka_unit_test (test_steps_are_a_tree),
        cmocka_unit_test (test_a_deep_trace_takes_no_stack),
        cmocka_unit_test (test_a_comparison_says_which_run_is_better),
        cmocka_unit_test (test_bodies_are_found_by_part_and_by_digest),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

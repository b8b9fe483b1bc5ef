/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands between a call and its dispatch: required fields, malformed schemas, protected paths.
 */
#include "tests/unit/session/stand.h"

#include "session/calls/gate.h"
#include "session/calls/read_only.h"
#include "session/toolbox/told.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void
open_with (struct stand *st, const char *more)
{
    stand_open (st, more);
    told_new (&st->s);
}

static void
close_stand (struct stand *st)
{
    told_free (&st->s);
    stand_close (st);
}

static struct call
call_of (const char *name, const json_t *input)
{
    return (
        struct call){ .turn = 3, .id = "call_1", .name = name, .input = input, .input_text = "{}" };
}

static void
test_required_fields (void **state)
{
    (void)state;
    static const struct {
        const char *tool, *input, *missing; /* NULL: none is */
    } rows[] = {
        { "two", "{'a':1,'b':2}", NULL }, { "two", "{'a':null,'b':false}", NULL },
        { "two", "{'a':1}", "b" },        { "two", "{}", "a, b" },
        { "two", "[]", "a, b" },          { "none", "{}", NULL },
        { "skill", "{}", NULL },          { "unknown", "{}", NULL },
    };
    struct stand st;
    open_with (&st, NULL);
    stand_artifact (&st, "two", ROLE_TOOL, "{\"required\":[\"a\",\"b\"],\"type\":\"object\"}");
    stand_artifact (&st, "none", ROLE_TOOL, "{\"type\":\"object\"}");
    stand_artifact (&st, "skill", ROLE_SKILL, "{\"required\":[\"a\"]}");
    stand_tools (&st);
    size_t refused = 0;
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_json_ json_t *input = value_of (rows[i].input);
        _cleanup_outcome_ struct call_outcome o = { 0 };
        const struct call c = call_of (rows[i].tool, input);
        bool is_good = gate_has_required (&st.s, &c, &o);
        assert_int_equal (is_good, rows[i].missing == NULL);
        if (is_good)
            continue;
        _cleanup_free_ char *expected =
            x_asprintf ("the call to two lacks required input: %s; nothing ran", rows[i].missing);
        assert_string_equal (o.runtime_error, expected);
        assert_int_equal (stand_lines (&st, "tool_input_refused"), ++refused);
    }
    close_stand (&st);
}

static void
test_a_step_of_a_plan_records_it_itself (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, NULL);
    stand_artifact (&st, "t", ROLE_TOOL, "{\"required\":[\"a\"]}");
    stand_tools (&st);
    _cleanup_json_ json_t *input = json_object ();
    _cleanup_outcome_ struct call_outcome o = { 0 };
    struct call c = call_of ("t", input);
    c.is_plan_step = true;
    assert_false (gate_has_required (&st.s, &c, &o));
    assert_int_equal (stand_lines (&st, "tool_input_refused"), 0);
    close_stand (&st);
}

static void
test_a_malformed_schema_checks_nothing_and_is_told_once (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, NULL);
    stand_artifact (&st, "t", ROLE_TOOL, "{\"required\":[\"a\"]}")->shown.is_schema_malformed =
        true;
    stand_tools (&st);
    _cleanup_json_ json_t *input = json_object ();
    const struct call c = call_of ("t", input);
    for (int i = 0; i < 3; i++) {
        _cleanup_outcome_ struct call_outcome o = { 0 };
        assert_true (gate_has_required (&st.s, &c, &o));
        assert_false (told_note_warning (&st.s, "t")); /* the gate has told */
    }
    close_stand (&st);
}

/* --- protected paths --- */

#define READ_ONLY                                                                                  \
    "capabilities:\n  filesystem: {read_only: [docs, src/gen]}\n  shell: {allow: [sh, rm, cp]}\n"

static void
test_what_a_tools_input_says_it_writes (void **state)
{
    (void)state;
    static const struct {
        const char *schema, *input, *rule; /* NULL: nothing protected */
    } rows[] = {
        { "{}", "{'destination':'docs/x'}", "docs" },
        { "{}", "{'dest_path':'docs/a/b'}", "docs" },
        { "{}", "{'Output-Path':'src/gen/x.c'}", "src/gen" },
        { "{}", "{'to':'./docs/../docs/x'}", "docs" },
        { "{}", "{'destination':'src/x'}", NULL },
        { "{}", "{'destination':'docsx/y'}", NULL },
        { "{}", "{'path':'docs/x'}", NULL },
        { "{}", "{'path':'docs/x','content':'text'}", "docs" },
        { "{}", "{'file_name':'docs/x','new_str':'text'}", "docs" },
        { "{}", "{'edits':[{'path':'docs/x','text':'t'}]}", "docs" },
        { "{}", "{'a':{'b':{'destination':'docs/x'}}}", "docs" },
        { "{'properties':{'where':{'format':'murmur-destination'}}}", "{'where':'docs/x'}",
          "docs" },
        { "{'properties':{'all':{'items':{'format':'murmur-destination'}}}}",
          "{'all':['x','docs/y']}", "docs" },
        { "{'properties':{'raw':{'format':'murmur-opaque'}}}", "{'raw':{'destination':'docs/x'}}",
          NULL },
        { "{}", "{'destination':'/etc/passwd'}", NULL },
        { "{}", "{'destination':5}", NULL },
    };
    struct stand st;
    open_with (&st, READ_ONLY);
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_json_ json_t *schema = value_of (rows[i].schema),
                              *input = value_of (rows[i].input);
        _cleanup_free_ char *text = json_text (schema, JSON_TEXT_SORTED);
        struct artifact_grant grant = { .opens_work_dir = true };
        struct staged_artifact a = { .tool_name = "t", .grant = &grant };
        const struct tool_entry tool = { .name = "t", .parameters = text, .artifact = &a };
        struct read_only_hit hit = { 0 };
        bool hits = read_only_hits (&st.s, &tool, input, &hit);
        if (hits != (rows[i].rule != NULL))
            fail_msg ("%s", rows[i].input);
        if (hits)
            assert_string_equal (hit.rule, rows[i].rule);
        read_only_hit_clear (&hit);
    }
    close_stand (&st);
}

static void
test_what_a_command_says_it_writes (void **state)
{
    (void)state;
    static const struct {
        const char *tool, *command, *path; /* NULL: nothing protected */
    } rows[] = {
        { "sh", "echo x > docs/y", "docs/y" },
        { "sh", "cat docs/y", NULL },
        { "sh", "echo x >> 'docs/a b'", "docs/a b" },
        { "sh", "true; rm -rf docs", "docs" },
        { "rm", "-f docs/y", "docs/y" },
        { "rm", "-f other", NULL },
        { "cp", "docs/y other", NULL },
        { "cp", "other docs/y", "docs/y" },
        { "sh", "echo docs", NULL },
        { "sh", "ls $(rm docs/z)", "docs/z" },
    };
    struct stand st;
    open_with (&st, READ_ONLY);
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        const struct tool_entry tool = { .name = rows[i].tool,
                                         .parameters = "{}",
                                         .is_provided = true };
        _cleanup_json_ json_t *input = json_pack ("{s:s}", "command", rows[i].command);
        struct read_only_hit hit = { 0 };
        bool hits = read_only_hits (&st.s, &tool, input, &hit);
        if (hits != (rows[i].path != NULL))
            fail_msg ("%s %s", rows[i].tool, rows[i].command);
        if (hits)
            assert_string_equal (hit.path, rows[i].path);
        read_only_hit_clear (&hit);
    }
    close_stand (&st);
}

static void
test_a_link_into_a_protected_tree_is_that_tree (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, READ_ONLY);
    _cleanup_free_ char *docs = x_asprintf ("%s/docs", st.work_dir);
    _cleanup_free_ char *link = x_asprintf ("%s/alias", st.work_dir);
    assert_int_equal (mkdir (docs, 0700), 0);
    assert_int_equal (symlink ("docs", link), 0);
    struct artifact_grant grant = { .opens_work_dir = true };
    struct staged_artifact a = { .tool_name = "t", .grant = &grant };
    const struct tool_entry tool = { .name = "t", .parameters = "{}", .artifact = &a };
    _cleanup_json_ json_t *input = value_of ("{'destination':'alias/x'}");
    struct read_only_hit hit = { 0 };
    assert_true (read_only_hits (&st.s, &tool, input, &hit));
    assert_string_equal (hit.path, "docs/x");
    read_only_hit_clear (&hit);
    close_stand (&st);
}

static void
test_paths_of_a_scoped_tool_begin_in_its_scope (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, READ_ONLY);
    struct artifact_grant grant = { .opens_work_dir = true,
                                    .scope = "docs",
                                    .scope_dir = (char[]){ "docs" } };
    struct staged_artifact a = { .tool_name = "t", .grant = &grant };
    const struct tool_entry tool = { .name = "t", .parameters = "{}", .artifact = &a };
    _cleanup_json_ json_t *input = value_of ("{'destination':'x'}");
    struct read_only_hit hit = { 0 };
    assert_true (read_only_hits (&st.s, &tool, input, &hit));
    assert_string_equal (hit.path, "docs/x");
    read_only_hit_clear (&hit);
    close_stand (&st);
}

static void
test_a_refused_write_is_recorded_as_nothing_else (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, READ_ONLY);
    stand_artifact (&st, "t", ROLE_TOOL, "{}");
    stand_tools (&st);
    _cleanup_json_ json_t *input = value_of ("{'destination':'docs/x'}"),
                          *fine = value_of ("{'destination':'x'}");
    _cleanup_outcome_ struct call_outcome refused = { 0 }, passed = { 0 };
    const struct call c = call_of ("t", input), other = call_of ("t", fine);
    assert_false (gate_may_run (&st.s, &st.t, &c, &refused));
    assert_true (refused.is_refused);
    assert_non_null (strstr (refused.text.data, "docs/x lies under the read-only path docs"));
    assert_null (st.t.fatal);
    _cleanup_json_ json_t *line = stand_line (&st, "protected_path_denied");
    assert_string_equal (json_get_string (line, "call"), "tool");
    assert_string_equal (json_get_string (line, "rule"), "docs");
    assert_true (gate_may_run (&st.s, &st.t, &other, &passed));
    assert_int_equal (stand_lines (&st, "protected_path_denied"), 1);
    close_stand (&st);
}

static void
test_without_protected_paths_nothing_is_looked_at (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, NULL);
    const struct tool_entry tool = { .name = "t", .parameters = "no schema at all" };
    _cleanup_json_ json_t *input = value_of ("{'destination':'docs/x'}");
    struct read_only_hit hit = { 0 };
    assert_false (read_only_hits (&st.s, &tool, input, &hit));
    close_stand (&st);
}

int
unit_gate (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_required_fields),
        cmocka_unit_test (test_a_step_of_a_plan_records_it_itself),
        cmocka_unit_test (test_a_malformed_schema_checks_nothing_and_is_told_once),
        cmocka_unit_test (test_what_a_tools_input_says_it_writes),
        cmocka_unit_test (test_what_a_command_says_it_writes),
        cmocka_unit_test (test_a_link_into_a_protected_tree_is_that_tree),
        cmocka_unit_test (test_paths_of_a_scoped_tool_begin_in_its_scope),
        cmocka_unit_test (test_a_refused_write_is_recorded_as_nothing_else),
        cmocka_unit_test (test_without_protected_paths_nothing_is_looked_at),
    };
    return cmocka_run_group_tests_name ("session/calls/gate", tests, NULL, NULL);
}

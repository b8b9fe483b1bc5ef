/* SPDX-License-Identifier: Apache-2.0
 *
 * What the model is given: the inventory, the tool array, the system prompt, what of it is said
 * once, what may be pulled.
 */
#include "tests/unit/session/stand.h"

#include "session/state/provided.h"
#include "session/toolbox/pull.h"
#include "session/toolbox/stage_inventory.h"
#include "session/toolbox/system_prompt.h"
#include "session/toolbox/told.h"
#include "session/toolbox/tools_array.h"

#include <string.h>

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

static const char *
schema_of (const struct session *s)
{
    return arena_printf (s->arena, "{\"required\":[\"for_%s\"],\"type\":\"object\"}",
                         s->manifest->name);
}

static const struct provided_tool middle = { "middle", "A tool.", NULL,     "m",
                                             is_there, NULL,      schema_of },
                                  hidden = { "hidden", "None.", "{}", "m", is_nowhere, NULL, NULL };
static const struct provided_tool *const rows[] = { &middle, &hidden };

static void
open_with (struct stand *st, const char *more)
{
    stand_open (st, more);
    told_new (&st->s);
    st->s.kit.provided = rows;
    st->s.kit.provided_count = ARRAY_LEN (rows);
}

static void
close_stand (struct stand *st)
{
    told_free (&st->s);
    stand_close (st);
}

static char *
names_of (const struct session *s)
{
    struct buf b = { 0 };
    for (size_t i = 0; i < s->kit.tool_count; i++)
        buf_printf (&b, "%s%s", i ? " " : "", s->kit.tools[i].name);
    return b.data ? buf_steal (&b) : x_strdup ("");
}

static void
test_the_inventory (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, "capabilities:\n  shell: {allow: [ls, zeta]}\n");
    stand_artifact (&st, "zeta", ROLE_TOOL, "{\"required\":[\"x\"]}"); /* shadows the command */
    stand_artifact (&st, "alpha", ROLE_SKILL, NULL);
    stand_artifact (&st, "driver", ROLE_DRIVER, NULL);
    stand_artifact (&st, "hook", ROLE_HOOK, NULL);
    stand_artifact (&st, "prompt", ROLE_SKILL, NULL)->is_prompt = true;
    stand_artifact (&st, "gone", ROLE_TOOL, NULL)->is_removed = true;
    assert_true (stage_inventory (&st.s, NULL));
    _cleanup_free_ char *names = names_of (&st.s);
    assert_string_equal (names, "alpha ls middle zeta");
    assert_true (session_tool (&st.s, "alpha")->is_skill);
    assert_true (session_tool (&st.s, "ls")->is_provided);
    const struct tool_entry *made = session_tool (&st.s, "middle");
    assert_string_equal (made->required.items[0], "for_stand");
    assert_ptr_equal (session_tool (&st.s, "zeta")->artifact, session_artifact (&st.s, "zeta"));
    assert_true (stage_inventory (&st.s, NULL)); /* again: the same list */
    _cleanup_free_ char *again = names_of (&st.s);
    assert_string_equal (again, names);
    close_stand (&st);
}

static void
test_what_was_pulled_is_marked (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, NULL);
    struct staged_artifact *a = stand_artifact (&st, "pulled", ROLE_TOOL, NULL);
    a->origin = LOCK_RUNTIME;
    a->shown.description = x_strdup ("Says things.");
    assert_true (stage_inventory (&st.s, NULL));
    assert_string_equal (session_tool (&st.s, "pulled")->description,
                         "[pulled by a running capsule: untrusted, not vetted] Says things.");
    close_stand (&st);
}

static void
test_the_tool_array (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, NULL);
    _cleanup_free_ char *empty = tools_array_text (&st.s);
    assert_string_equal (empty, "[]");
    stand_artifact (&st, "b", ROLE_TOOL, "{\"type\":\"object\"}")->shown.description =
        x_strdup ("Say \"hi\"\n");
    stand_artifact (&st, "a", ROLE_TOOL, "{}");
    stand_tools (&st);
    _cleanup_free_ char *text = tools_array_text (&st.s);
    assert_string_equal (
        text,
        "[{\"name\":\"a\",\"parameters\":{}},{\"description\":\"Say \\\"hi\\\"\\n\",\"name\":\"b\","
        "\"parameters\":{\"type\":\"object\"}}]");
    close_stand (&st);
}

static void
test_the_log_shows_an_array_once (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, NULL);
    _cleanup_free_ char *folder = x_asprintf ("mkdir %s/logs", st.records_dir);
    assert_int_equal (system (folder), 0);
    tools_array_log (&st.s, "[]");
    tools_array_log (&st.s, "[]");
    _cleanup_free_ char *once = stand_read (&st, "records/logs/bootstrap.log");
    tools_array_log (&st.s, "[{\"name\":\"a\"}]");
    tools_array_log (&st.s, "[]");
    _cleanup_free_ char *all = stand_read (&st, "records/logs/bootstrap.log");
    assert_string_equal (once, "Installed tools (JSON):\n[]\n\n");
    assert_true (str_starts (all, once) && strlen (all) > 2 * strlen (once));
    close_stand (&st);
}

/* --- what was told --- */

static void
test_where_the_prompt_comes_from (void **state)
{
    (void)state;
    static const struct {
        const char *more, *flag;
        bool is_overridden;
        const char *prompt, *source;
    } cases[] = {
        { NULL, NULL, false, NULL, "none" },
        { "  system_prompt: Be kind.\n", NULL, false, "Be kind.", "manifest" },
        { "  system_prompt: Be kind.\n", "Be brief.", true, "Be brief.", "cli" },
        { "  system_prompt: Be kind.\n", NULL, true, NULL, "cli" },
        { "  system_prompt_file: prompt.txt\n", NULL, false, "from the file\n", "manifest" },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct stand st;
        open_with (&st, cases[i].more);
        stand_write (&st, "prompt.txt", "from the file\n");
        st.asked.system_prompt = cases[i].flag;
        st.asked.system_prompt_is_overridden = cases[i].is_overridden;
        assert_succeeds (stage_system_prompt (&st.s, &err));
        assert_true (str_eq (told_prompt (&st.s), cases[i].prompt));
        assert_string_equal (told_prompt_source (&st.s), cases[i].source);
        close_stand (&st);
    }
    struct stand st;
    open_with (&st, "  system_prompt_file: missing.txt\n");
    assert_fails (stage_system_prompt (&st.s, &err), E_RUN_009);
    close_stand (&st);
}

static void
test_the_system_text (void **state)
{
    (void)state;
    static const struct {
        const char *more, *contains;
    } cases[] = {
        { NULL,
          "[Capsule]\nName: stand\nVersion: 0.1.0\nWork folder: ./ (read and write)\nNetwork allowlist: none\n" },
        { "  max_turns: 9\n", "\nLimits: 9 turns per task; " },
        { "  max_session_tokens: 50\n", "\nLimits: 50 tokens per session; " },
        { "  max_turns: 9\n  max_session_tokens: 50\n",
          "\nLimits: 9 turns per task; 50 tokens per session; " },
        { "capabilities:\n  network: {allow: [localhost, api.example.com]}\n",
          "\nNetwork allowlist: localhost, api.example.com\n" },
        { "capabilities:\n  filesystem: {read_only: [docs, src]}\n",
          "(read and write; read-only: docs, src)" },
        { "capabilities:\n  resources: {memory_bytes: 1073741824}\n", "1 GiB of memory" },
        { "capabilities:\n  resources: {memory_bytes: 3145728}\n", "3 MiB of memory" },
        { "capabilities:\n  shell: {allow: [ls]}\n",
          "a shell command moves to the background after " },
        { "  system_prompt: Be kind.\n", "\n\nBe kind." },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct stand st;
        open_with (&st, cases[i].more);
        assert_true (stage_system_prompt (&st.s, NULL));
        _cleanup_free_ char *text = system_text (&st.s), *again = system_text (&st.s);
        if (! strstr (text, cases[i].contains))
            fail_msg ("%s\nis not in\n%s", cases[i].contains, text);
        assert_string_equal (text, again);
        assert_null (strstr (text, st.dir)); /* no path of this machine */
        assert_null (strstr (text, st.s.id.text));
        close_stand (&st);
    }
}

static void
test_who_reads_the_runtime_files (void **state)
{
    (void)state;
    struct stand st;
    _cleanup_buf_ struct buf text = { 0 };
    open_with (&st, NULL);
    stand_artifact (&st, "plain", ROLE_TOOL, NULL);
    struct staged_artifact *scoped = stand_artifact (&st, "scoped", ROLE_TOOL, NULL);
    ((struct artifact_grant *)(uintptr_t)scoped->grant)->scope = "sub";
    stand_tools (&st);
    fact_lines_append (&st.s, &text);
    assert_non_null (strstr (text.data, "Runtime files: read-only at murmur-runtime/ for plain\n"));
    close_stand (&st);
}

static void
test_what_is_told_once (void **state)
{
    (void)state;
    struct stand st;
    open_with (&st, NULL);
    assert_true (told_note_warning (&st.s, "a"));
    assert_true (told_note_warning (&st.s, "b"));
    assert_false (told_note_warning (&st.s, "a"));
    assert_true (told_note_tools (&st.s, "[]"));
    assert_false (told_note_tools (&st.s, "[]"));
    assert_true (told_note_tools (&st.s, "[1]"));
    close_stand (&st);
}

/* --- pulling --- */

static void
test_names_that_may_be_pulled (void **state)
{
    (void)state;
    static const struct {
        const char *name, *role;
        bool is_covered;
    } cases[] = {
        { "local/poem", "skill", true }, { "local/poem", "tool", false },
        { "local/echo", "tool", true },  { "local/other", "tool", false },
        { "acme/any", "tool", true },    { "acme/any", "skill", false },
        { "acme/any", "driver", false }, { "local/poem", "hook", false },
    };
    struct stand st;
    open_with (&st, "capabilities:\n  install: {skill: [local/*], tool: [local/echo, acme/*]}\n");
    assert_true (pull_is_granted (&st.s));
    for (size_t i = 0; i < ARRAY_LEN (cases); i++)
        if (pull_covers_role (&st.s, cases[i].name, cases[i].role) != cases[i].is_covered)
            fail_msg ("%s as %s", cases[i].name, cases[i].role);
    close_stand (&st);
    open_with (&st, NULL);
    assert_false (pull_is_granted (&st.s));
    close_stand (&st);
}

static void
test_what_is_no_full_name (void **state)
{
    (void)state;
    static const char *const bad[] = { "",       "bare", "a/b/c",     "UPPER/x",
                                       "local/", "/x",   "local/x y", "../x" };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
        _cleanup_free_ char *refusal = NULL;
        assert_false (pull_check_name (bad[i], &refusal));
        assert_true (str_starts (refusal, "not-granted: "));
    }
    char *none = NULL;
    assert_true (pull_check_name ("local/x", &none));
    assert_null (none);
}

static void
test_refusals_come_before_anything_is_looked_for (void **state)
{
    (void)state;
    static const struct {
        const char *install, *name, *version, *refusal;
    } cases[] = {
        { NULL, "local/x", NULL, "not-granted: this capsule declares no capabilities.install" },
        { "{tool: [local/*]}", "x", NULL, "not-granted: " },
        { "{tool: [local/*]}", "local/x", "../1", "not-granted: \"../1\" is no version" },
        { "{tool: [local/*]}", "acme/x", NULL,
          "not-granted: capabilities.install names nothing that covers acme/x" },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct stand st;
        struct pulled pulled = { 0 };
        _cleanup_free_ char *refusal = NULL;
        _cleanup_free_ char *more =
            cases[i].install ? x_asprintf ("capabilities:\n  install: %s\n", cases[i].install)
                             : NULL;
        open_with (&st, more);
        assert_false (
            pull_artifact (&st.s, cases[i].name, cases[i].version, NULL, &pulled, &refusal));
        if (! str_starts (refusal, cases[i].refusal))
            fail_msg ("%s", refusal);
        assert_int_equal (st.s.kit.tools_generation, 0);
        pulled_clear (&pulled);
        close_stand (&st);
    }
}

static void
test_an_error_on_one_line (void **state)
{
    (void)state;
    struct mur_error *err = NULL;
    mur_fail (&err, E_REG_007, "two\nlines");
    mur_hint (&err, "do this");
    _cleanup_free_ char *line = pull_error_line (err);
    assert_string_equal (line, "[E-REG-007] two lines; hint: do this");
}

int
unit_toolbox (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_the_inventory),
        cmocka_unit_test (test_what_was_pulled_is_marked),
        cmocka_unit_test (test_the_tool_array),
        cmocka_unit_test (test_the_log_shows_an_array_once),
        cmocka_unit_test (test_where_the_prompt_comes_from),
        cmocka_unit_test (test_the_system_text),
        cmocka_unit_test (test_who_reads_the_runtime_files),
        cmocka_unit_test (test_what_is_told_once),
        cmocka_unit_test (test_names_that_may_be_pulled),
        cmocka_unit_test (test_what_is_no_full_name),
        cmocka_unit_test (test_refusals_come_before_anything_is_looked_for),
        cmocka_unit_test (test_an_error_on_one_line),
    };
    return cmocka_run_group_tests_name ("session/toolbox", tests, NULL, NULL);
}

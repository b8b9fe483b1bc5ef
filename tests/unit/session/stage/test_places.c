/* SPDX-License-Identifier: Apache-2.0
 *
 * Places of a session and what the runtime provides: folders that are made, folders that are
 * refused, the table of rows.
 */
#include "tests/unit/session/stand.h"

#include "session/stage/places.h"
#include "session/stage/provided_table.h"
#include "session/stage/staged.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A session with its places not made yet. */
static void
open_bare (struct stand *st, const char *more)
{
    stand_open (st, more);
    struct places *p = &st->s.places;
    fs_root_free (p->work);
    fs_root_free (p->runtime);
    free (p->work_path);
    p->work = p->runtime = NULL;
    p->work_path = NULL;
}

static void
close_bare (struct stand *st)
{
    struct places *p = &st->s.places;
    if (! p->work)
        p->work = fs_root_new (open ("/", O_RDONLY | O_DIRECTORY), "/", NULL, false);
    if (! p->runtime)
        p->runtime = fs_root_new (open ("/", O_RDONLY | O_DIRECTORY), "/", NULL, false);
    stand_close (st);
}

static void
test_a_work_folder_that_was_named (void **state)
{
    (void)state;
    struct stand st;
    open_bare (&st, NULL);
    st.asked.work.dir = st.work_dir;
    assert_succeeds (stage_work_dir (&st.s, &err));
    assert_string_equal (st.s.places.work_path, st.work_dir);
    close_bare (&st);
}

static void
test_a_default_work_folder_is_the_sessions_own (void **state)
{
    (void)state;
    struct stand st;
    open_bare (&st, NULL);
    assert_succeeds (stage_work_dir (&st.s, &err));
    _cleanup_free_ char *expected = x_asprintf ("%s/workdir/%s", st.dir, st.s.id.text);
    struct stat s;
    assert_string_equal (st.s.places.work_path, expected);
    assert_int_equal (stat (expected, &s), 0);
    close_bare (&st);
}

static void
test_exactly_the_folder_the_launcher_named (void **state)
{
    (void)state;
    struct stat s;
    for (int is_right = 0; is_right < 2; is_right++) {
        struct stand st;
        open_bare (&st, NULL);
        assert_int_equal (stat (st.work_dir, &s), 0);
        st.asked.work.dir = st.work_dir;
        st.asked.work.has_identity = true;
        st.asked.work.dev = s.st_dev;
        st.asked.work.ino = s.st_ino + (is_right ? 0 : 1);
        if (is_right)
            assert_succeeds (stage_work_dir (&st.s, &err));
        else
            assert_fails (stage_work_dir (&st.s, &err), E_RUN_051);
        close_bare (&st);
    }
}

static void
test_an_exported_root_that_leads_out_is_refused (void **state)
{
    (void)state;
    struct stand st;
    open_bare (&st, "exports:\n  files: {root: out, mode: read-only}\n");
    _cleanup_free_ char *link = x_asprintf ("%s/out", st.work_dir);
    assert_int_equal (symlink ("/etc", link), 0);
    st.asked.work.dir = st.work_dir;
    assert_fails (stage_work_dir (&st.s, &err), E_CAP_007);
    assert_int_equal (unlink (link), 0);
    assert_int_equal (mkdir (link, 0700), 0);
    assert_succeeds (stage_work_dir (&st.s, &err));
    close_bare (&st);
}

static void
test_the_copy_of_the_manifest_holds_no_key (void **state)
{
    (void)state;
    struct stand st;
    static const char text[] = "name: stand\nversion: \"0.1.0\"\n";
    stand_open (&st, NULL);
    st.asked.file.text = text;
    st.asked.file.len = strlen (text);
    st.asked.file.mode = 0640;
    assert_succeeds (stage_manifest_copy (&st.s, &err)); /* run by name: there is none */
    assert_null (stand_read (&st, "runtime/murmur.yaml"));
    st.asked.file.name = "murmur.yaml";
    assert_succeeds (stage_manifest_copy (&st.s, &err));
    _cleanup_free_ char *copy = stand_read (&st, "runtime/murmur.yaml");
    assert_string_equal (copy, text);
    _cleanup_free_ char *path = x_asprintf ("%s/murmur.yaml", st.runtime_dir);
    struct stat s;
    assert_int_equal (stat (path, &s), 0);
    assert_int_equal (s.st_mode & 0777, 0640);
    stand_close (&st);
}

/* --- the rows --- */

static void
test_every_provided_row_is_whole (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    st.s.kit.provided = provided_table;
    st.s.kit.provided_count = provided_table_len;
    assert_true (provided_table_len >= 11);
    for (size_t i = 0; i < provided_table_len; i++) {
        const struct provided_tool *row = provided_table[i];
        assert_non_null (row->name);
        assert_true (strlen (row->description) > 20);
        assert_non_null (row->missing);
        assert_non_null (row->exists);
        assert_non_null (row->call);
        assert_true ((row->parameters == NULL) != (row->parameters_of == NULL));
        assert_ptr_equal (provided_find (&st.s, row->name), row);
        if (row->parameters) {
            _cleanup_json_ json_t *schema = json_loads (row->parameters, 0, NULL);
            assert_true (json_is_object (schema));
            assert_string_equal (json_get_string (schema, "type"), "object");
            _cleanup_free_ char *sorted = json_text (schema, JSON_TEXT_SORTED);
            assert_string_equal (
                sorted, row->parameters); /* compact, keys sorted: the same bytes at each launch */
        }
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal (provided_table[k]->name, row->name);
    }
    stand_close (&st);
}

static void
test_which_rows_a_manifest_offers (void **state)
{
    (void)state;
    static const struct {
        const char *more, *tool;
    } rows[] = {
        { NULL, "session-status" },
        { "capabilities:\n  shell: {allow: [ls]}\n", "background-command" },
        { "capabilities:\n  install: {tool: [local/*]}\n", "pull-artifact" },
        { "capabilities:\n  install: {tool: [local/*]}\n", "remove-artifact" },
        { "capabilities:\n  spawn: {allow: [local/child]}\n", "delegate-task" },
        { "capabilities:\n  plan: {submit: true}\n", "submit-plan" },
        { "capabilities:\n  peer_fetch: {allow: [localhost:1]}\n", "fetch-peer-file" },
        { "  alternates:\n    - {name: fast, model: m, driver: {artifact: std/driver-scripted}}\n"
          "control: {agent_settings: [inference.driver]}\n",
          "switch-driver" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        struct stand with, without;
        stand_open (&with, rows[i].more);
        with.s.kit.provided = provided_table;
        with.s.kit.provided_count = provided_table_len;
        const struct provided_tool *row = provided_find (&with.s, rows[i].tool);
        assert_non_null (row);
        if (! row->exists (&with.s))
            fail_msg ("%s", rows[i].tool);
        const char *schema = provided_parameters (&with.s, row);
        _cleanup_json_ json_t *parsed = json_loads (schema, 0, NULL);
        assert_true (json_is_object (parsed));
        stand_close (&with);
        stand_open (&without, NULL);
        assert_int_equal (row->exists (&without.s), rows[i].more == NULL);
        stand_close (&without);
    }
}

static void
test_a_script_is_offered_nothing (void **state)
{
    (void)state;
    struct stand st;
    stand_open_manifest (
        &st, "name: s\nversion: \"0.1.0\"\ncapabilities:\n  install: {tool: [local/*]}\n");
    for (size_t i = 0; i < provided_table_len; i++)
        assert_false (provided_table[i]->exists (&st.s));
    stand_close (&st);
}

static void
test_what_staging_hands_over_is_freed (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    staged_new (&st.s);
    st.s.rooms.staged->effective_grants = x_strdup ("{}");
    st.s.rooms.staged->host_facts = x_strdup ("{}");
    staged_free (&st.s);
    assert_null (st.s.rooms.staged);
    staged_free (&st.s);
    stand_close (&st);
}

int
unit_places (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_work_folder_that_was_named),
        cmocka_unit_test (test_a_default_work_folder_is_the_sessions_own),
        cmocka_unit_test (test_exactly_the_folder_the_launcher_named),
        cmocka_unit_test (test_an_exported_root_that_leads_out_is_refused),
        cmocka_unit_test (test_the_copy_of_the_manifest_holds_no_key),
        cmocka_unit_test (test_every_provided_row_is_whole),
        cmocka_unit_test (test_which_rows_a_manifest_offers),
        cmocka_unit_test (test_a_script_is_offered_nothing),
        cmocka_unit_test (test_what_staging_hands_over_is_freed),
    };
    return cmocka_run_group_tests_name ("session/stage", tests, NULL, NULL);
}

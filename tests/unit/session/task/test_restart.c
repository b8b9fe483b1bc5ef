/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts of a task: where they come from, and what an attempt that begins anew is told.
 */
#include "fs/latch.h"
#include "tests/unit/session/stand.h"

#include "session/task/restart.h"
#include "session/task/task_text.h"

#include <string.h>
#include <unistd.h>

static void
test_where_the_text_comes_from (void **state)
{
    (void)state;
    static const struct {
        const char *files[2]; /* of the work folder: task.md, input.txt */
        const char *given;    /* already in the runtime directory */
        const char *text;     /* NULL: there is none */
    } rows[] = {
        { { NULL, NULL }, NULL, NULL }, { { "a", NULL }, NULL, "a" }, { { NULL, "b" }, NULL, "b" },
        { { "a", "b" }, NULL, "a" },    { { "a", "b" }, "c", "c" },   { { NULL, NULL }, "c", "c" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        struct stand st;
        stand_open (&st, NULL);
        if (rows[i].files[0])
            stand_write (&st, "work/task.md", rows[i].files[0]);
        if (rows[i].files[1])
            stand_write (&st, "work/input.txt", rows[i].files[1]);
        if (rows[i].given)
            assert_succeeds (
                session_write_task (&st.s, rows[i].given, strlen (rows[i].given), &err));
        assert_int_equal (task_text_import (&st.s), rows[i].text != NULL);
        if (rows[i].text) {
            _cleanup_buf_ struct buf text = { 0 };
            assert_succeeds (task_text_read (&st.s, &text, &err));
            assert_string_equal (text.data, rows[i].text);
        }
        stand_close (&st);
    }
}

static void
test_a_link_is_no_task (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    _cleanup_free_ char *link = x_asprintf ("%s/task.md", st.work_dir);
    assert_int_equal (symlink ("/etc/hostname", link), 0);
    assert_false (task_text_import (&st.s));
    struct fs_refusal *refusals;
    size_t count = fs_latch_drain (st.s.places.latch, &refusals);
    assert_int_equal (count, 1);
    fs_refusals_free (refusals, count);
    stand_close (&st);
}

static void
test_a_blank_task_is_refused (void **state)
{
    (void)state;
    static const char *const texts[] = { "", " ", "\n\t\r\n", "\v\f" };
    for (size_t i = 0; i < ARRAY_LEN (texts); i++) {
        struct stand st;
        _cleanup_buf_ struct buf text = { 0 };
        stand_open (&st, NULL);
        assert_succeeds (task_text_write (&st.s, texts[i], strlen (texts[i]), &err));
        assert_fails (task_text_read (&st.s, &text, &err), E_RUN_007);
        stand_close (&st);
    }
}

/* --- beginning anew --- */

static char *
task_of (struct stand *st)
{
    _cleanup_buf_ struct buf text = { 0 };
    assert_true (task_text_read (&st->s, &text, NULL));
    return buf_steal (&text);
}

static void
test_sections_come_in_their_order_and_the_task_is_never_compounded (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    assert_true (task_text_write (&st.s, "do it", 5, NULL));
    assert_true (restart_with (&st.s, &st.t, RESTART_CHECK, "the check failed"));
    assert_true (restart_with (&st.s, &st.t, RESTART_REOPEN, "say more"));
    assert_true (restart_with (&st.s, &st.t, RESTART_REOPEN, "and more"));
    _cleanup_free_ char *text = task_of (&st);
    assert_string_equal (
        text,
        "do it\n\n---\n\n# Reopen feedback\n\nsay more\n\nand more\n\n\n---\n\n# Done check\n\n"
        "the check failed\n");
    assert_false (st.t.onward.is_continuing);
    assert_true (restart_with (&st.s, &st.t, RESTART_MEMBERS, "m"));
    _cleanup_free_ char *again = task_of (&st);
    const char *at = again;
    size_t tasks = 0;
    while ((at = strstr (at, "do it")))
        at++, tasks++;
    assert_int_equal (tasks, 1);
    stand_close (&st);
}

static void
test_what_of_an_untrusted_task_is_fenced (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    st.t.is_fenced = true;
    assert_true (task_text_write (&st.s, "evil", 4, NULL));
    assert_true (restart_with (&st.s, &st.t, RESTART_REOPEN, "feedback"));
    assert_true (restart_with (&st.s, &st.t, RESTART_DELEGATIONS, "<fenced already>"));
    _cleanup_free_ char *text = task_of (&st);
    _cleanup_buf_ struct buf told = { 0 };
    restart_append_task (&st.s, &st.t, "task:peer", text, strlen (text), &told);
    const char *end = strstr (told.data, "</untrusted-content>");
    assert_true (str_starts (told.data, "<untrusted-content source=task:peer>\nevil"));
    assert_non_null (end);
    assert_true (strstr (told.data, "feedback") < end);
    assert_true (strstr (told.data, "<fenced already>") > end);
    stand_close (&st);
}

static void
test_a_trusted_task_is_told_as_it_is (void **state)
{
    (void)state;
    struct stand st;
    _cleanup_buf_ struct buf told = { 0 };
    stand_open (&st, NULL);
    restart_append_task (&st.s, &st.t, "task:user", "plain words", 11, &told);
    assert_string_equal (told.data, "plain words");
    st.t.is_fenced = true;
    buf_truncate (&told, 0);
    restart_append_task (&st.s, &st.t, "task:user", "plain words", 11, &told);
    assert_string_equal (told.data,
                         "<untrusted-content source=task:user>\nplain words\n</untrusted-content>");
    stand_close (&st);
}

static void
test_without_a_task_nothing_begins_anew (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    st.t.onward.is_continuing = true;
    assert_false (restart_with (&st.s, &st.t, RESTART_REOPEN, "x"));
    assert_true (st.t.onward.is_continuing);
    stand_close (&st);
}

int
unit_restart (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_where_the_text_comes_from),
        cmocka_unit_test (test_a_link_is_no_task),
        cmocka_unit_test (test_a_blank_task_is_refused),
        cmocka_unit_test (test_sections_come_in_their_order_and_the_task_is_never_compounded),
        cmocka_unit_test (test_what_of_an_untrusted_task_is_fenced),
        cmocka_unit_test (test_a_trusted_task_is_told_as_it_is),
        cmocka_unit_test (test_without_a_task_nothing_begins_anew),
    };
    return cmocka_run_group_tests_name ("session/task/restart", tests, NULL, NULL);
}

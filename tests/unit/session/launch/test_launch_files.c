/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launch says and leaves: the line for launchers, what an evaluation puts into the work
 * folder.
 */
#include "tests/unit/session/stand.h"

#include "session/eval.h"
#include "session/readiness.h"
#include "session/stage/staged.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What fn writes to standard output. Owned. */
static char *
said_by (struct stand *st, void (*fn) (struct stand *st))
{
    char text[8192];
    int pair[2], before = dup (STDOUT_FILENO);
    assert_int_equal (pipe (pair), 0);
    fflush (stdout);
    dup2 (pair[1], STDOUT_FILENO);
    fn (st);
    fflush (stdout);
    dup2 (before, STDOUT_FILENO);
    close (before);
    close (pair[1]);
    ssize_t n = read (pair[0], text, sizeof text);
    close (pair[0]);
    return x_strndup (text, n > 0 ? (size_t)n : 0);
}

static void
print_json (struct stand *st)
{
    readiness_print_json (&st->s, "http://127.0.0.1:4", true);
}

static void
print_script (struct stand *st)
{
    readiness_print_json (&st->s, "", false);
}

static void
test_the_line_of_a_launch (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    staged_new (&st.s);
    st.asked.launcher.formation_id = "frm_1";
    _cleanup_free_ char *text = said_by (&st, print_json);
    assert_true (str_ends (text, "}\n"));
    _cleanup_json_ json_t *o = json_loads (text, 0, NULL);
    static const char *const keys[] = { "formation_id", "name", "pid",     "records_dir",
                                        "session_id",   "url",  "version", "workdir" };
    assert_int_equal (json_object_size (o), ARRAY_LEN (keys));
    const char *at = text;
    for (size_t i = 0; i < ARRAY_LEN (keys); i++) { /* in the order of their names */
        _cleanup_free_ char *key = x_asprintf ("\"%s\":", keys[i]);
        at = strstr (at, key);
        assert_non_null (at);
    }
    assert_int_equal (json_integer_value (json_object_get (o, "pid")), getpid ());
    assert_string_equal (json_get_string (o, "workdir"), st.work_dir);
    assert_string_equal (json_get_string (o, "url"), "http://127.0.0.1:4");
    staged_free (&st.s);
    stand_close (&st);
}

static void
test_the_line_of_a_script_has_no_door (void **state)
{
    (void)state;
    struct stand st;
    stand_open_manifest (&st, "name: s\nversion: \"0.1.0\"\n");
    staged_new (&st.s);
    _cleanup_free_ char *text = said_by (&st, print_script);
    _cleanup_json_ json_t *o = json_loads (text, 0, NULL);
    assert_string_equal (json_get_string (o, "url"), "");
    assert_null (json_object_get (o, "auth"));
    assert_null (json_object_get (o, "tokens"));
    staged_free (&st.s);
    stand_close (&st);
}

/* --- the work folder of a case --- */

static void
test_the_files_of_a_case (void **state)
{
    (void)state;
    char first[SHA256_HEX_LEN + 1], again[SHA256_HEX_LEN + 1], other[SHA256_HEX_LEN + 1];
    for (int run = 0; run < 3; run++) {
        struct stand st;
        stand_open (&st, NULL);
        _cleanup_free_ char *folder = x_asprintf ("%s/case", st.dir);
        _cleanup_free_ char *make = x_asprintf ("mkdir -p %s/sub", folder);
        assert_int_equal (system (make), 0);
        stand_write (&st, "case/a.txt", "one");
        stand_write (&st, "case/sub/b.txt", run == 2 ? "changed" : "two");
        _cleanup_ (fs_root_freep) struct fs_root *from =
            fs_root_new (open (folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), folder, NULL, false);
        assert_succeeds (session_fill_work (&st.s, from,
                                            run == 0   ? first
                                            : run == 1 ? again
                                                       : other,
                                            &err));
        _cleanup_free_ char *copied = stand_read (&st, "work/sub/b.txt");
        assert_string_equal (copied, run == 2 ? "changed" : "two");
        stand_close (&st);
    }
    assert_string_equal (first, again);
    assert_string_not_equal (first, other);
}

static void
test_a_case_may_not_write_through_a_link (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    _cleanup_free_ char *folder = x_asprintf ("%s/case", st.dir),
                        *link = x_asprintf ("%s/a.txt", st.work_dir),
                        *outside = x_asprintf ("%s/outside.txt", st.dir);
    _cleanup_free_ char *make = x_asprintf ("mkdir -p %s", folder);
    assert_int_equal (system (make), 0);
    stand_write (&st, "case/a.txt", "from the case");
    stand_write (&st, "outside.txt", "untouched");
    assert_int_equal (symlink (outside, link), 0);
    _cleanup_ (fs_root_freep) struct fs_root *from =
        fs_root_new (open (folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), folder, NULL, false);
    char digest[SHA256_HEX_LEN + 1];
    struct mur_error *err = NULL;
    (void)session_fill_work (&st.s, from, digest, &err);
    mur_error_free (err);
    _cleanup_free_ char *text = stand_read (&st, "outside.txt");
    assert_string_equal (text, "untouched");
    stand_close (&st);
}

int
unit_launch_files (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_the_line_of_a_launch),
        cmocka_unit_test (test_the_line_of_a_script_has_no_door),
        cmocka_unit_test (test_the_files_of_a_case),
        cmocka_unit_test (test_a_case_may_not_write_through_a_link),
    };
    return cmocka_run_group_tests_name ("session/launch/files", tests, NULL, NULL);
}

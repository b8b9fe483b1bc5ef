/* SPDX-License-Identifier: Apache-2.0
 *
 * What is read of a command without running it: the programs it starts, or that they cannot be
 * seen.
 */
#include "session/calls/command_read.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* "git push|cat x", with ! after a program that may start others, ? after computed words, and
 * " opaque" when the shell itself starts something that is not read. Owned. */
static char *
told (const struct command_reading *r)
{
    struct buf out = { 0 };
    for (size_t i = 0; i < r->len; i++) {
        const struct simple_command *c = &r->items[i];
        _cleanup_free_ char *words = strv_join (&c->words, " ");
        buf_printf (&out, "%s%s%s%s", i ? "|" : "", words, c->starts_others ? "!" : "",
                    c->has_expansion ? "?" : "");
    }
    if (r->is_opaque)
        buf_puts (&out, " opaque");
    for (size_t i = 0; i < r->writes.len; i++)
        buf_printf (&out, " >%s", r->writes.items[i]);
    if (r->writes_elsewhere)
        buf_puts (&out, " >?");
    return buf_steal (&out);
}

static void
test_scripts_are_read_as_a_shell_reads_them (void **state)
{
    (void)state;
    static const struct {
        const char *script, *told;
    } rows[] = {
        { "cat x | grep y && ls", "cat x|grep y|ls" },
        { "git push", "git push!" },
        { "g'i't \"push\"", "git push!" },
        { "git $x", "git $x!?" },
        { "$g push", " opaque" },
        { "x=1 git push", "git push!" },
        { "PATH=. cat", "cat opaque" },
        { "if true; then git push; fi", "true|git push!" },
        { "echo `git push`", "echo|git push!" },
        { "echo \"$(git push)\"", "echo $(git push)? opaque" },
        { "sh -c 'git push'", "sh -c git push|git push!" },
        { "sh -c \"$x\"", "sh -c $x!?" },
        { "cat <<E\ngit push\nE\nls", "cat|ls" },
        { "cat <<E\n$(git push)\nE", "cat opaque" },
        { "echo a > f 2>&1 >> \"g h\"", "echo a >f >g h" },
        { "echo a > $f", "echo a >?" },
        { "cd d; echo a > f", "cd d|echo a >?" },
        { "/bin/cat x", "/bin/cat x!" },
        { "echo $((1 + 2)) # git push", "echo ?" },
        { "find . -name x", "find . -name x" },
        { "find . -exec git push", "find . -exec git push!" },
        { "sort --compress-program=git f", "sort --compress-program=git f!" },
        { "ls *", "ls *?" },
        { "git \\\n push", "git push!" },
        { "", "" },
        { "'", "!" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_command_reading_ struct command_reading r;
        command_read_script (rows[i].script, &r);
        _cleanup_free_ char *text = told (&r);
        if (! str_eq (text ? text : "", rows[i].told))
            fail_msg ("%s: read as \"%s\", not \"%s\"", rows[i].script, text ? text : "",
                      rows[i].told);
    }
}

static void
test_a_program_is_read_with_its_words_as_they_are (void **state)
{
    (void)state;
    _cleanup_command_reading_ struct command_reading r, bad;
    assert_true (command_read_program ("git", "-C 'a b' push $x", &r));
    _cleanup_free_ char *text = told (&r);
    assert_string_equal (text, "git -C a b push $x!");
    assert_false (command_read_program ("git", "'push", &bad));
}

static void
test_what_is_too_long_is_opaque (void **state)
{
    (void)state;
    _cleanup_buf_ struct buf script = { 0 };
    for (int i = 0; i <= COMMANDS_READ_MAX; i++)
        buf_puts (&script, "true;");
    _cleanup_command_reading_ struct command_reading r;
    command_read_script (script.data, &r);
    assert_true (r.is_opaque);
    assert_int_equal (r.len, COMMANDS_READ_MAX);
}

int unit_command_read (void);

int
unit_command_read (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_scripts_are_read_as_a_shell_reads_them),
        cmocka_unit_test (test_a_program_is_read_with_its_words_as_they_are),
        cmocka_unit_test (test_what_is_too_long_is_opaque),
    };
    return cmocka_run_group_tests_name ("session/calls/command_read", tests, NULL, NULL);
}

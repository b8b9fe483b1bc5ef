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
        { "echo `git push`", "echo ?|git push!" },
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
        command_read_script ("sh", rows[i].script, &r);
        _cleanup_free_ char *text = told (&r);
        if (! str_eq (text ? text : "", rows[i].told))
            fail_msg ("%s: read as \"%s\", not \"%s\"", rows[i].script, text ? text : "",
                      rows[i].told);
    }
}

static void
test_no_spelling_hides_a_program (void **state)
{
    (void)state;
    static const char *const scripts[] = {
        /* quotes that end elsewhere than they seem to */
        "echo $'\\'' ; git push #'",
        "echo `# x`; git push",
        "echo `echo \\`git push\\``",
        "echo `echo '`; git push; echo `'`",
        "echo ${x:-'}'} ; git push ; : ''",
        "echo \"${x:-\"'\"}\" ; git push ; : \"'\"",
        "echo ${x:-${y} # } ; git push",
        "echo a\r#; git push",
        "echo a\f#; git push",
        /* here-documents that end elsewhere */
        "cat <<E\n\tE\necho '\nE\ngit push # '",
        "cat <<E\na\\\nE\necho '\nE\ngit push # '",
        "cat <<${x}\na\n${x}\ngit push",
        "echo $(cat <<E)\ngit push\nE",
        "cat <<E\ngit push",
        "cat <<E\n${x@P}\nE",
        /* sums that are none, and sums that are no here-document */
        "echo $((git push); (ls))",
        "((x=1<<2))\ngit push\n2",
        "echo $[1<<2]\ngit push\n2]",
        "a[1<<2]=3\ngit push\n2]=3",
        "(( #x )) ; git push",
        /* words the shell looks into */
        "x='a[$(git push)]'; echo $((x))",
        "x='$(git push)'; echo ${x@P}",
        "x='a[$(git push)]'; echo ${!x}",
        "x='a[$(git push)]'; echo ${y:x}",
        "x='a[$(git push)]'; echo ${y[x]}",
        "echo ${ git push; }",
        "echo \"${ git push; }\"",
        "test -v 'a[$(git push)]'",
        "[ -v 'a[$(git push)]' ]",
        "printf -v 'a[$(git push)]' x",
        "unset 'a[$(git push)]'",
        /* which program a name means */
        "for PATH in .; do cat; done",
        "printf -v PATH .; cat",
        "unset PATH; cat",
        ": ${PATH:=.}; cat",
        ": $((PATH=1)); cat",
        "FPATH=. cat",
        "GCONV_PATH=. cat",
        "egrep x y",
        "zsh -c 'cat x'",
        "fish -c 'cat x'",
        "sh -lc 'cat x'",
        /* programs that start others */
        "split --filter='git push' f",
        "split --filt='git push' f",
        "sort --co=git f",
        "install -s --strip-program=./git a b",
        "env -i X=1 git push",
        "xargs git push",
        "find . -exec git push {} +",
        "find . -execdir git push ;",
        "eval 'git push'",
        "busybox git push",
        "nice -n 5 git push",
        "timeout 5 git push",
        "setsid git push",
        "stdbuf -o0 git push",
        "command -p git push",
        "exec -a cat git push",
        "time -p git push",
        "coproc git push",
        "/usr/bin/git push",
        "./cat x",
        "~/cat x",
        "git${IFS}push",
        "{git,push}",
        "echo Z2l0IHB1c2g= | base64 -d | sh",
        "sh <<E\ngit push\nE",
        "alias cat='git push'\ncat",
        "cat () { git push; }; cat",
        "f() { \"$@\"; }; f git push",
        "sh -c 'for x do git push; done' a b",
        "true & git push",
        "true |& git push",
        "true\ngit push",
        "echo a &>b git push",
        "cat <(git push)",
        "trap 'git push' EXIT",
        ". ./x",
        "`echo git` rm",
    };
    for (size_t i = 0; i < ARRAY_LEN (scripts); i++) {
        _cleanup_command_reading_ struct command_reading r;
        command_read_script ("sh", scripts[i], &r);
        bool is_seen = r.is_opaque;
        for (size_t k = 0; k < r.len; k++)
            is_seen |= r.items[k].starts_others;
        if (! is_seen)
            fail_msg ("%s: nothing is asked", scripts[i]);
    }
}

static void
test_no_spelling_hides_a_word (void **state)
{
    (void)state;
    static const struct {
        const char *script, *told;
    } rows[] = {
        { "npm `true` test", "npm !?|true|test" },
        { "npm $(true) test", "npm $!?|true|test" },
        { "npm \"pu\\\nblish\"", "npm publish!" },
        { "kill '9'>x", "kill 9! >x" },
        { "echo a &>b git push", "echo a git push opaque >b" },
        { "for x do npm test; done", "npm test!" },
        { "for i in a; do echo >f; cd d; done", "echo|cd d >f >?" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_command_reading_ struct command_reading r;
        command_read_script ("sh", rows[i].script, &r);
        _cleanup_free_ char *text = told (&r);
        if (! str_eq (text, rows[i].told))
            fail_msg ("%s: read as \"%s\", not \"%s\"", rows[i].script, text, rows[i].told);
    }
}

static void
test_everyday_scripts_are_read_through (void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "cat \"$1\" | grep -n 'a b' | head -5 > out.txt 2>&1",
        "for f in *.c; do wc -l \"$f\"; done",
        "x=${1:-default}; echo \"${x%.c}.o\" ${#x} ${x##*/}",
        "cat > f <<'E'\nit's $HOME\nE\nls",
        "cat <<-E\n\t${x}\n\tE\nls",
        "if [ -f x ] && [ \"$y\" = 1 ]; then echo yes; else echo no; fi # it's `x`",
        "echo $((1 + 2)); echo `date`; echo $(pwd)",
        "test -f x && mkdir -p a/b && cp x a/b",
    };
    for (size_t i = 0; i < ARRAY_LEN (scripts); i++) {
        _cleanup_command_reading_ struct command_reading r;
        command_read_script ("sh", scripts[i], &r);
        bool is_unseen = r.is_opaque;
        for (size_t k = 0; k < r.len; k++)
            is_unseen |= r.items[k].starts_others;
        if (is_unseen)
            fail_msg ("%s: not read through (%s)", scripts[i], r.opaque_by ? r.opaque_by : "?");
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
    command_read_script ("sh", script.data, &r);
    assert_true (r.is_opaque);
    assert_int_equal (r.len, COMMANDS_READ_MAX);
}

int unit_command_read (void);

int
unit_command_read (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_scripts_are_read_as_a_shell_reads_them),
        cmocka_unit_test (test_no_spelling_hides_a_program),
        cmocka_unit_test (test_no_spelling_hides_a_word),
        cmocka_unit_test (test_everyday_scripts_are_read_through),
        cmocka_unit_test (test_a_program_is_read_with_its_words_as_they_are),
        cmocka_unit_test (test_what_is_too_long_is_opaque),
    };
    return cmocka_run_group_tests_name ("session/calls/command_read", tests, NULL, NULL);
}

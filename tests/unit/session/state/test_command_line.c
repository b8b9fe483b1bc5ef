/* SPDX-License-Identifier: Apache-2.0
 *
 * Command lines as text: words, interpreters, how one is shown.
 */
#include "tests/unit/testing.h"

#include "base/words.h"
#include "session/state/command_line.h"

static void
test_words_of_a_line (void **state)
{
    (void)state;
    static const struct {
        const char *line, *words; /* joined with | */
    } rows[] = {
        { "", "" },
        { "   \t\n ", "" },
        { "ls", "ls" },
        { "  ls   -l\t/tmp\n", "ls|-l|/tmp" },
        { "a 'b c' d", "a|b c|d" },
        { "a \"b c\" d", "a|b c|d" },
        { "a 'b \"c\" d'", "a|b \"c\" d" },
        { "a \"b 'c' d\"", "a|b 'c' d" },
        { "a b\\ c", "a|b c" },
        { "a \"b\\\"c\"", "a|b\"c" },
        { "a 'b\\'c", "a|b\\c" },
        { "pre'mid'post", "premidpost" },
        { "a '' b", "a||b" },
        { "$HOME `id` $(id) *", "$HOME|`id`|$(id)|*" },
        { "a\vb\fc\rd", "a|b|c|d" },
        { "trailing\\", "trailing\\" },
        { "é ü", "é|ü" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_strv_ struct strv words = { 0 };
        assert_true (words_split (rows[i].line, &words));
        _cleanup_free_ char *joined = strv_join (&words, "|");
        assert_string_equal (joined ? joined : "", rows[i].words);
    }
}

static void
test_a_quote_that_is_not_closed_is_no_line (void **state)
{
    (void)state;
    static const char *const lines[] = { "open 'quote", "open \"quote", "a 'b' \"c", "'" };
    for (size_t i = 0; i < ARRAY_LEN (lines); i++) {
        _cleanup_strv_ struct strv words = { 0 };
        assert_false (words_split (lines[i], &words));
    }
}

static void
test_words_are_appended (void **state)
{
    (void)state;
    _cleanup_strv_ struct strv words = { 0 };
    words_split ("a b", &words);
    words_split ("c", &words);
    assert_int_equal (words.len, 3);
    assert_string_equal (words.items[2], "c");
}

static void
test_interpreters (void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool is_one;
    } rows[] = { { "bash", true }, { "sh", true },    { "zsh", true },      { "fish", true },
                 { "dash", true }, { "ksh", true },   { "python3", false }, { "env", false },
                 { "", false },    { "Bash", false }, { "/bin/sh", false }, { "bashx", false } };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++)
        assert_int_equal (command_line_is_interpreter (rows[i].name), rows[i].is_one);
}

static void
test_how_a_line_is_shown (void **state)
{
    (void)state;
    static const struct {
        const char *name, *command, *shown;
    } rows[] = { { "bash", "ls | wc", "ls | wc" },
                 { "ls", "-l /tmp", "ls -l /tmp" },
                 { "git", "", "git" } };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_free_ char *shown = command_line_text (rows[i].name, rows[i].command);
        assert_string_equal (shown, rows[i].shown);
    }
}

int
unit_command_line (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_words_of_a_line),
        cmocka_unit_test (test_a_quote_that_is_not_closed_is_no_line),
        cmocka_unit_test (test_words_are_appended),
        cmocka_unit_test (test_interpreters),
        cmocka_unit_test (test_how_a_line_is_shown),
    };
    return cmocka_run_group_tests_name ("session/state/command_line", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * .env files: lines, quotes, faults, and that a set variable is never overridden.
 */
#include "tests/unit/testing.h"

#include "manifest/text/dotenv.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void
test_lines (void **state _unused_)
{
    static const char text[] =
        "# comment\n\n A = 1 \nB=\"two words\"\nC='x'\nD=a=b # comment\nE=\nF=a#b\nG=it's\nexport H=1\n\tI=\"'x'\"\r\n"
        "J=\"v\" # words\nK='a\"b'#c\nL=\"-----BEGIN-----\r\nabc=\n-----END-----\"\nM= # none\nN=#x\nO=\"a\\nb\\\"c\\q\"\nP=`'\"`\n"
        "export S\nexport T=\"x\";\nU='y' ; # z\n"
        "export\tQ = 'a\\nb'\nexport=1\nR=\"\n";
    _cleanup_dotenv_ struct dotenv d = { 0 };
    assert_succeeds (dotenv_parse (text, strlen (text), ".env", &d, &err));
    static const struct dotenv_entry expected[] = {
        { "A", "1" },     { "B", "two words" }, { "C", "x" },
        { "D", "a=b" },   { "E", "" },          { "F", "a#b" },
        { "G", "it's" },  { "H", "1" },         { "I", "'x'" },
        { "J", "v" },     { "K", "a\"b" },      { "L", "-----BEGIN-----\nabc=\n-----END-----" },
        { "M", "" },      { "N", "#x" },        { "O", "a\nb\"c\\q" },
        { "P", "'\"" },   { "T", "x" },         { "U", "y" },
        { "Q", "a\\nb" }, { "export", "1" },    { "R", "\"" },
    };
    assert_int_equal (d.len, ARRAY_LEN (expected));
    for (size_t i = 0; i < d.len; i++) {
        assert_string_equal (d.entries[i].name, expected[i].name);
        assert_string_equal (d.entries[i].value, expected[i].value);
    }
}

static void
test_a_bad_line_is_numbered (void **state _unused_)
{
    static const char *const bad[] = { "A=1\n\nnonsense\n",
                                       "A=1\n\n=x\n",
                                       "A=1\n#\n = \n",
                                       "A=1\n\nB=\"open\nC=1\n",
                                       "A=\"x\ny\"\nexport B C=1\n",
                                       "A='\n\n' x\n",
                                       "A=1\n\n$env:B=\"x\"\n",
                                       "A=1\n\n\"B\": \"x=\"\n",
                                       "A=1\n\nexport\n",
                                       "\n\nA=\"x\";y\n" };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
        _cleanup_dotenv_ struct dotenv d = { 0 };
        _cleanup_error_ struct mur_error *err = NULL;
        assert_false (dotenv_parse (bad[i], strlen (bad[i]), "/p/.env", &d, &err));
        assert_int_equal (err->code, E_IO_003);
        assert_non_null (strstr (err->message, "/p/.env:3"));
    }
}

static void
write_file (const char *dir, const char *name, const char *text)
{
    _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, name);
    _cleanup_fclose_ FILE *f = fopen (path, "w");
    assert_non_null (f);
    fputs (text, f);
}

static void
test_manifest_34_the_first_line_wins_and_nothing_is_overridden (void **state _unused_)
{
    char dir[] = "/tmp/dotenv-XXXXXX";
    assert_non_null (mkdtemp (dir));
    write_file (dir, ".env", "DOTENV_A=1\nDOTENV_A=2\nDOTENV_B=1\nDOTENV_C=1\n");
    unsetenv ("DOTENV_A");
    setenv ("DOTENV_B", "9", 1);
    setenv ("DOTENV_C", "", 1);
    assert_succeeds (dotenv_load (dir, &err));
    assert_string_equal (getenv ("DOTENV_A"), "1");
    assert_string_equal (getenv ("DOTENV_B"), "9");
    assert_string_equal (getenv ("DOTENV_C"), "");
    _cleanup_free_ char *path = x_asprintf ("%s/.env", dir);
    unlink (path);
    assert_succeeds (dotenv_load (dir, &err));
    rmdir (dir);
}

static void
test_the_root_is_the_nearest_folder_with_a_manifest (void **state _unused_)
{
    char dir[] = "/tmp/dotenv-XXXXXX";
    assert_non_null (mkdtemp (dir));
    _cleanup_free_ char *inner = x_asprintf ("%s/a/b", dir), *middle = x_asprintf ("%s/a", dir);
    mkdir (middle, 0700);
    mkdir (inner, 0700);
    _cleanup_free_ char *none = dotenv_root (inner);
    assert_string_equal (none, inner);
    write_file (dir, "murmur.yaml", "");
    _cleanup_free_ char *found = dotenv_root (inner);
    assert_string_equal (found, dir);
    _cleanup_free_ char *manifest = x_asprintf ("%s/murmur.yaml", dir);
    unlink (manifest);
    rmdir (inner);
    rmdir (middle);
    rmdir (dir);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_lines),
        cmocka_unit_test (test_a_bad_line_is_numbered),
        cmocka_unit_test (test_manifest_34_the_first_line_wins_and_nothing_is_overridden),
        cmocka_unit_test (test_the_root_is_the_nearest_folder_with_a_manifest),
    };
    return cmocka_run_group_tests_name ("manifest/dotenv", tests, NULL, NULL);
}

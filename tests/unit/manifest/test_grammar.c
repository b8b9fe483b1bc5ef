/* SPDX-License-Identifier: Apache-2.0
 *
 * The shared grammars: durations, sizes, subpaths, environment patterns, words, endpoints,
 * suggestions.
 */
#include "base/words.h"
#include "manifest/capsule/endpoint.h"
#include "manifest/text/suggest.h"
#include "tests/unit/testing.h"

#include "base/words.h"
#include "manifest/capsule/capsule.h"
#include "manifest/capsule/capsule_schema.h"

#include <string.h>

static void
test_durations (void **state _unused_)
{
    static const struct {
        const char *text;
        uint64_t secs;
    } good[] = { { "0", 0 },
                 { "90", 90 },
                 { " 5m ", 300 },
                 { "2h", 7200 },
                 { "1d", 86400 },
                 { "30s", 30 },
                 { "18446744073709551615", UINT64_MAX } };
    static const char *const bad[] = { "",
                                       "m",
                                       "5 minutes",
                                       "-1s",
                                       "1.5h",
                                       "1h30m",
                                       "0x10",
                                       "1e3",
                                       "5M",
                                       "+5",
                                       "1w",
                                       "18446744073709551616",
                                       "307445734561825861m",
                                       "5 m" };
    uint64_t v;
    for (size_t i = 0; i < ARRAY_LEN (good); i++)
        assert_true (duration_parse (good[i].text, &v) && v == good[i].secs);
    for (size_t i = 0; i < ARRAY_LEN (bad); i++)
        if (duration_parse (bad[i], &v))
            fail_msg ("'%s' is taken", bad[i]);
}

static void
test_byte_sizes (void **state _unused_)
{
    uint64_t v;
    assert_true (byte_size_parse ("4096", &v) && v == 4096);
    assert_true (byte_size_parse ("10Mi", &v) && v == 10485760);
    assert_true (byte_size_parse ("1Gi", &v) && v == 1073741824);
    assert_true (byte_size_parse ("3Ki", &v) && v == 3072);
    static const char *const bad[] = { "10MB", "10mi",          "10M",   "Mi", "1.5Mi",
                                       "-1",   "17179869184Gi", "10 Mi", "" };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++)
        if (byte_size_parse (bad[i], &v))
            fail_msg ("'%s' is taken", bad[i]);
}

static void
test_subpaths_are_lowered_lexically (void **state _unused_)
{
    static const struct {
        const char *text, *lowered;
    } cases[] = {
        { "data", "data" },    { "a/../b", "b" }, { "./a//b/.", "a/b" }, { ".", "" },
        { "a/..", "" },        { "../x", NULL },  { "a/../../x", NULL }, { "/a", NULL },
        { "a/b/../c", "a/c" }, { "...", "..." },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        const char *why = NULL;
        _cleanup_free_ char *got = subpath_lower (cases[i].text, &why);
        if (! str_eq (got, cases[i].lowered))
            fail_msg ("'%s' became '%s'", cases[i].text, got ? got : "(refused)");
        assert_int_equal (got == NULL, why != NULL);
    }
    assert_true (subpath_is_within ("tests/a", "tests"));
    assert_true (subpath_is_within ("tests", "tests"));
    assert_false (subpath_is_within ("tests2", "tests"));
    assert_true (subpath_is_within ("anything", ""));
}

static void
test_environment_patterns (void **state _unused_)
{
    assert_true (env_pattern_matches ("FOO", "FOO"));
    assert_false (env_pattern_matches ("FOO", "foo"));
    assert_true (env_pattern_matches ("AWS_*", "AWS_REGION"));
    assert_false (env_pattern_matches ("AWS_*", "XAWS_REGION"));
    assert_true (env_pattern_matches ("*_API_KEY", "FOO_API_KEY"));
    assert_false (env_pattern_matches ("*_API_KEY", "FOO_API_KEYS"));
    assert_true (env_pattern_matches ("*MID*", "aMIDb"));
    assert_true (env_pattern_matches ("*", "anything"));
    assert_true (env_pattern_matches ("**", "anything"));
    bool is_builtin = false;
    const char *strip[] = { "DB_*", "*_API_KEY" };
    assert_string_equal (env_stripped_by ("X_API_KEY", strip, 2, &is_builtin), "*_API_KEY");
    assert_true (is_builtin);
    assert_string_equal (env_stripped_by ("DB_HOST", strip, 2, &is_builtin), "DB_*");
    assert_false (is_builtin);
    assert_null (env_stripped_by ("HOME", strip, 2, &is_builtin));
}

static void
test_credential_shaped_names (void **state _unused_)
{
    static const char *const yes[] = { "DB_PASSWORD", "my_token_x", "Secret",
                                       "X_KEY",       "SSH_AUTH",   "PAT",
                                       "dsn",         "AWS.CREDS",  "mySecretThing" };
    static const char *const no[] = { "KEYBOARD_LAYOUT", "PATH",    "AUTHOR",
                                      "MONKEY",          "COMPASS", "CREDITS" };
    for (size_t i = 0; i < ARRAY_LEN (yes); i++)
        if (! env_name_is_credential_shaped (yes[i]))
            fail_msg ("%s", yes[i]);
    for (size_t i = 0; i < ARRAY_LEN (no); i++)
        if (env_name_is_credential_shaped (no[i]))
            fail_msg ("%s", no[i]);
}

static void
assert_words (const char *text, const char *joined)
{
    _cleanup_strv_ struct strv words = { 0 };
    bool is_split = words_split (text, &words);
    _cleanup_free_ char *got = words.len ? strv_join (&words, "|") : NULL;
    assert_string_equal (! is_split ? "unclosed" : got ? got : "", joined);
}

static void
test_report_16_words_are_those_of_a_shell (void **state _unused_)
{
    assert_words ("make check", "make|check");
    assert_words ("  a  'b c'd  \"e f\" ", "a|b cd|e f");
    assert_words ("a\\ b \"c\\\"d\" 'e\\'f", "a b|c\"d|e\\f");
    assert_words ("-nE '\\bfoo\\b' t", "-nE|\\bfoo\\b|t");
    assert_words ("-nE \"\\bfoo\\b\" t", "-nE|\\bfoo\\b|t");
    assert_words ("'s/\\./-/g' \"a\\$b\\`\\\\\"", "s/\\./-/g|a$b`\\");
    assert_words ("'' x \"\" y''", "|x||y");
    assert_words ("a\\\nb \"c\\\nd\"", "ab|cd");
    assert_words ("end\\", "end\\");
    assert_words ("-c 'a t.txt", "unclosed");
    assert_words ("a \"b", "unclosed");
    assert_words ("'e\\'f'", "unclosed");
    assert_words ("$HOME *", "$HOME|*");
    assert_words ("   ", "");
}

static void
test_references_are_whole_and_upper_case (void **state _unused_)
{
    struct arena *a = arena_new ();
    assert_string_equal (reference_name (a, "${A_1}"), "A_1");
    static const char *const literals[] = { "x${A}", "${a}", "${A}${B}", "$A", "${}",
                                            "${1A}", "${A",  "A}",       "" };
    for (size_t i = 0; i < ARRAY_LEN (literals); i++)
        assert_null (reference_name (a, literals[i]));
    arena_free (a);
}

static void
test_endpoints (void **state _unused_)
{
    struct arena *a = arena_new ();
    struct endpoint e;
    const char *why;
    assert_true (endpoint_parse (a, " https://Api.Example.com/v1/ ", &e, &why));
    assert_string_equal (e.host, "api.example.com");
    assert_string_equal (e.path, "/v1");
    assert_int_equal (e.port, 443);
    assert_false (e.port_is_written);
    assert_true (endpoint_parse (a, "http://127.9.8.7:81", &e, &why));
    assert_int_equal (e.port, 81);
    assert_true (endpoint_parse (a, "http://LOCALHOST:8080/x", &e, &why));
    assert_true (endpoint_parse (a, "http://[::1]:1/", &e, &why));
    static const char *const refused[] = {
        "https://${H}/v1",
        "ftp://h",
        "example.com",
        "https://",
        "https:///p",
        "https://u@h",
        "https://h?q=1",
        "https://h#f",
        "http://0.0.0.0",
        "http://10.0.0.1",
        "http://example.com",
        "http://[::ffff:127.0.0.1]",
        "http://127.1",
        "http://2130706433",
        "http://0x7f.0.0.1",
        "https:h",
        "https://h:99999",
        "https://h:x",
        "https://a b",
        "https://h\\x",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example",
        "https://:443",
        "https://é.example",
        "https://%31/",
    };
    for (size_t i = 0; i < ARRAY_LEN (refused); i++)
        if (endpoint_parse (a, refused[i], &e, &why))
            fail_msg ("'%s' is taken", refused[i]);
    arena_free (a);
}

static void
test_userinfo_is_never_shown (void **state _unused_)
{
    struct arena *a = arena_new ();
    static const char *const texts[] = { "https://user:pa55@evil.example/x",
                                         "https:user:pa55@h",
                                         "user:pa55@h",
                                         "https://a@b:pa55@h",
                                         "https:\\\\u:pa55@h",
                                         "://u:pa55@" };
    for (size_t i = 0; i < ARRAY_LEN (texts); i++) {
        struct endpoint e;
        const char *why = "";
        assert_null (strstr (endpoint_masked (a, texts[i]), "pa55"));
        assert_false (endpoint_parse (a, texts[i], &e, &why));
        assert_null (strstr (why, "pa55"));
    }
    arena_free (a);
}

static void
test_distances (void **state _unused_)
{
    assert_int_equal (schema_distance ("allow", "allwo"), 1);
    assert_int_equal (schema_distance ("read-only", "read_only"), 1);
    assert_int_equal (schema_distance ("api_kee", "api_key"), 1);
    assert_int_equal (schema_distance ("ca", "abc"), 3);
    assert_int_equal (schema_distance ("", "abc"), 3);
    assert_int_equal (schema_distance ("naïve", "naive"), 1);
}

static const char *
suggest_at_top (const char *key)
{
    return schema_suggest (capsule_schema (), key);
}

static void
test_suggestions (void **state _unused_)
{
    assert_string_equal (suggest_at_top ("artefacts"), "artifacts");
    assert_string_equal (suggest_at_top ("mur-version"), "mur_version");
    assert_string_equal (suggest_at_top ("configs"), "config");
    assert_string_equal (suggest_at_top ("Name"), "name");
    assert_null (suggest_at_top ("quantum_teleport"));
    assert_null (suggest_at_top (""));
    assert_null (suggest_at_top ("registries"));
    char huge[4000];
    memset (huge, 'n', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    assert_null (suggest_at_top (huge));
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_durations),
        cmocka_unit_test (test_byte_sizes),
        cmocka_unit_test (test_subpaths_are_lowered_lexically),
        cmocka_unit_test (test_environment_patterns),
        cmocka_unit_test (test_credential_shaped_names),
        cmocka_unit_test (test_report_16_words_are_those_of_a_shell),
        cmocka_unit_test (test_references_are_whole_and_upper_case),
        cmocka_unit_test (test_endpoints),
        cmocka_unit_test (test_userinfo_is_never_shown),
        cmocka_unit_test (test_distances),
        cmocka_unit_test (test_suggestions),
    };
    return cmocka_run_group_tests_name ("manifest/grammar", tests, NULL, NULL);
}

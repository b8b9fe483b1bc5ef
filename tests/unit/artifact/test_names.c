/* SPDX-License-Identifier: Apache-2.0
 *
 * Names, versions, install references, patterns, platforms: the rules of spec/artifacts.md 2 and 5.
 */
#include "artifact/names/name.h"
#include "artifact/names/platform.h"
#include "artifact/names/version.h"
#include "tests/unit/testing.h"

#include <string.h>

static void
test_a_part_holds_1_to_100_of_a_z_0_9_and_dashes (void **state)
{
    (void)state;
    char long_name[102];
    memset (long_name, 'a', 101);
    long_name[101] = '\0';
    assert_true (name_part_is_valid ("tool-9", 6));
    assert_true (name_part_is_valid (long_name, 100));
    assert_false (name_part_is_valid (long_name, 101));
    assert_false (name_part_is_valid ("", 0));
    assert_false (name_part_is_valid ("-a", 2));
    assert_false (name_part_is_valid ("a-", 2));
    assert_false (name_part_is_valid ("Tool", 4));
}

static void
test_the_refusal_names_the_first_bad_character (void **state)
{
    (void)state;
    char *why = name_part_problem ("a_B", 3);
    assert_non_null (strstr (why, "'_'"));
    free (why);
    why = name_part_problem ("caf\xc3\xa9", 5);
    assert_non_null (strstr (why, "\xc3\xa9"));
    free (why);
}

static void
test_an_unscoped_name_is_answered_with_three_forms (void **state)
{
    (void)state;
    struct mur_error *err = NULL;
    assert_false (name_check_full ("murmur-tool-x", E_REG_007, NULL, &err));
    assert_int_equal (err->code, E_REG_007);
    assert_non_null (strstr (err->hint, "murmur/tool-x"));
    assert_non_null (strstr (err->hint, "<owner>/murmur-tool-x"));
    assert_non_null (strstr (err->hint, "local/murmur-tool-x"));
    mur_error_free (err);
}

static void
test_a_malformed_name_has_a_reason_and_no_hint (void **state)
{
    (void)state;
    struct mur_error *found = NULL;
    assert_false (name_check_full ("a/b/c", E_MAN_003, "artifacts[0].name", &found));
    assert_non_null (strstr (found->message, "exactly one '/'"));
    assert_non_null (strstr (found->message, "artifacts[0].name"));
    assert_null (found->hint);
    mur_error_free (found);
    assert_fails (name_check_full ("Ana/tool", E_REG_007, NULL, &err), E_REG_007);
    assert_fails (name_check_full ("ana/", E_REG_007, NULL, &err), E_REG_007);
}

static void
test_owners_become_scopes_unless_reserved (void **state)
{
    (void)state;
    char *scope = name_scope_of_owner ("Ana", "my-artifacts", E_CFG_003, NULL);
    assert_string_equal (scope, "ana");
    free (scope);
    scope = name_scope_of_owner ("Murmur-Nexus", "Default-Artifacts", E_CFG_003, NULL);
    assert_string_equal (scope, "murmur");
    free (scope);
    static const char *const reserved[] = { "local", "Murmur", "STD", "a_b" };
    for (size_t i = 0; i < ARRAY_LEN (reserved); i++) {
        struct mur_error *err = NULL;
        assert_null (name_scope_of_owner (reserved[i], "x", E_CFG_003, &err));
        assert_int_equal (err->code, E_CFG_003);
        mur_error_free (err);
    }
}

static void
test_versions_sort_by_semver_then_bytes (void **state)
{
    (void)state;
    /* Ascending. Texts that are no semver come first. */
    static const char *const ordered[] = {
        "1.0",        "banana",       "v1.0.0",        "0.9.0",
        "0.10.0",     "1.0.0-alpha",  "1.0.0-alpha.1", "1.0.0-alpha.beta",
        "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",
        "1.0.0",      "1.0.0+a",      "1.0.0+b",       "2.0.0",
    };
    for (size_t i = 0; i < ARRAY_LEN (ordered); i++)
        for (size_t j = 0; j < ARRAY_LEN (ordered); j++) {
            int order = version_compare (ordered[i], ordered[j]);
            assert_int_equal ((order > 0) - (order < 0), (i > j) - (i < j));
        }
}

static void
test_what_semver_is_and_is_not (void **state)
{
    (void)state;
    static const char *const good[] = { "0.0.0", "1.2.3-x.7.z-9+build.01",
                                        "18446744073709551615.0.0" };
    static const char *const bad[] = { "",
                                       "1",
                                       "1.2",
                                       "01.2.3",
                                       "1.2.3-",
                                       "1.2.3-01",
                                       "1.2.3+",
                                       "1.2.3 ",
                                       "v1.2.3",
                                       "1.2.3-a..b",
                                       "18446744073709551616.0.0",
                                       "1.2.3.4" };
    for (size_t i = 0; i < ARRAY_LEN (good); i++)
        assert_true (version_is_semver (good[i]));
    for (size_t i = 0; i < ARRAY_LEN (bad); i++)
        assert_false (version_is_semver (bad[i]));
}

static void
test_versions_that_would_leave_their_directory_are_no_segments (void **state)
{
    (void)state;
    static const char *const bad[] = { "", ".", "..", "a/b", "../../x", "a\\b", "a\nb" };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
        assert_false (version_is_segment (bad[i]));
        assert_fails (version_check_segment (bad[i], &err), E_IO_003);
    }
    assert_true (version_is_segment ("..."));
    assert_true (version_is_segment ("Latest"));
    assert_true (version_is_reserved ("Latest"));
    assert_false (version_is_reserved ("latest-1"));
}

static void
test_install_references_are_told_apart (void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum install_ref_kind kind;
        const char *name, *version;
    } cases[] = {
        { "./x.mur.zip", INSTALL_FILE, NULL, NULL },
        { "../x", INSTALL_FILE, NULL, NULL },
        { "/x", INSTALL_FILE, NULL, NULL },
        { "dist/x.mur.zip", INSTALL_FILE, NULL, NULL },
        { "github:Ana/Tools@v1", INSTALL_GITHUB, NULL, NULL },
        { "ana/tool@1.0.0", INSTALL_NAME, "ana/tool", "1.0.0" },
        { "ana/tool", INSTALL_NAME, "ana/tool", NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct install_ref ref;
        assert_succeeds (install_ref_parse (cases[i].text, &ref, &err));
        assert_int_equal (ref.kind, cases[i].kind);
        if (cases[i].name)
            assert_string_equal (ref.name, cases[i].name);
        if (cases[i].version)
            assert_string_equal (ref.version, cases[i].version);
        install_ref_clear (&ref);
    }
}

static void
test_install_references_that_are_refused (void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum diag_code code;
    } cases[] = {
        { "tool@1", E_REG_007 },
        { "tool", E_REG_007 },
        { "ana/tool@1@2", E_IO_003 },
        { "ana/tool@", E_IO_003 },
        { "@1", E_IO_003 },
        { "", E_IO_003 },
        { "ana/tool@latest", E_REG_004 },
        { "ana/tool@..", E_IO_003 },
        { "npm:x/y@1", E_IO_003 },
        { "github:ana@1", E_IO_003 },
        { "github:ana/@1", E_IO_003 },
        { "github:ana/x@", E_IO_003 },
        { "github:local/x@1", E_REG_007 },
        { "github:murmur/x@1", E_REG_007 },
        { "github:std/x@1", E_REG_007 },
        { "Ana/tool", E_REG_007 },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct install_ref ref;
        assert_fails (install_ref_parse (cases[i].text, &ref, &err), cases[i].code);
    }
}

static void
test_patterns_match_and_cover (void **state)
{
    (void)state;
    static const char *const good[] = { "*", "ana/*", "ana/tool-*", "ana/t*", "ana/tool" };
    static const char *const bad[] = { "",       "ana",    "*/x",   "ana/*x",  "a*/b",
                                       "ana/**", "ana/-*", "Ana/*", "ana/b/*", "/x" };
    for (size_t i = 0; i < ARRAY_LEN (good); i++)
        assert_null (pattern_problem (good[i]));
    for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
        char *why = pattern_problem (bad[i]);
        assert_non_null (why);
        free (why);
    }
    assert_true (pattern_matches ("ana/tool-*", "ana/tool-git"));
    assert_false (pattern_matches ("ana/tool-*", "ana/tool"));
    assert_false (pattern_matches ("ana/*", "anab/tool"));
    assert_true (pattern_covers ("*", "*"));
    assert_false (pattern_covers ("ana/*", "*"));
    assert_true (pattern_covers ("ana/t*", "ana/to*"));
    assert_false (pattern_covers ("ana/to*", "ana/t*"));
    assert_true (pattern_covers ("ana/t*", "ana/tool"));
    assert_false (pattern_covers ("ana/tool", "ana/too*"));
    assert_false (pattern_covers ("ana/*", "bob/x"));
}

static void
test_platforms_of_files_and_images (void **state)
{
    (void)state;
    assert_string_equal (platform_of_file ("x-1.0.0-linux-x86_64.mur.zip"), "linux-x86_64");
    assert_null (platform_of_file ("x-1.0.0.mur.zip"));
    assert_null (platform_of_file ("linux-x86_64.mur.zip"));
    assert_null (platform_of_file ("x-linux-x86_64-1.mur.zip"));
    unsigned char elf[64] = { 0x7f, 'E', 'L', 'F', 2, 1 };
    elf[18] = 0xb7;
    assert_string_equal (platform_of_binary (elf, 64), "linux-aarch64");
    assert_null (platform_of_binary (elf, 63));
    elf[4] = 1;
    assert_null (platform_of_binary (elf, 64));
    unsigned char macho[8] = { 0xcf, 0xfa, 0xed, 0xfe, 0x0c, 0, 0, 1 };
    assert_string_equal (platform_of_binary (macho, 8), "darwin-aarch64");
    assert_string_equal (platform_of_binary ("\xca\xfe\xba\xbe", 4), "darwin");
    assert_null (platform_of_binary ("#!/bin/sh\n", 10));
}

static void
test_a_binary_of_another_platform_is_refused (void **state)
{
    (void)state;
    unsigned char elf[64] = { 0x7f, 'E', 'L', 'F', 2, 1 };
    bool is_arm = strstr (platform_host (), "aarch64") != NULL;
    elf[18] = is_arm ? 0x3e : 0xb7;
    assert_fails (platform_check_binary ("ana/x", elf, sizeof (elf), &err), E_RUN_021);
    elf[18] = is_arm ? 0xb7 : 0x3e;
    assert_succeeds (platform_check_binary ("ana/x", elf, sizeof (elf), &err));
    assert_succeeds (platform_check_binary ("ana/x", "#!", 2, &err));
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_part_holds_1_to_100_of_a_z_0_9_and_dashes),
        cmocka_unit_test (test_the_refusal_names_the_first_bad_character),
        cmocka_unit_test (test_an_unscoped_name_is_answered_with_three_forms),
        cmocka_unit_test (test_a_malformed_name_has_a_reason_and_no_hint),
        cmocka_unit_test (test_owners_become_scopes_unless_reserved),
        cmocka_unit_test (test_versions_sort_by_semver_then_bytes),
        cmocka_unit_test (test_what_semver_is_and_is_not),
        cmocka_unit_test (test_versions_that_would_leave_their_directory_are_no_segments),
        cmocka_unit_test (test_install_references_are_told_apart),
        cmocka_unit_test (test_install_references_that_are_refused),
        cmocka_unit_test (test_patterns_match_and_cover),
        cmocka_unit_test (test_platforms_of_files_and_images),
        cmocka_unit_test (test_a_binary_of_another_platform_is_refused),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

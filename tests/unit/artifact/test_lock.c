/* SPDX-License-Identifier: Apache-2.0
 *
 * murmur.lock: what is refused, how pins change it, how it is written (spec/artifacts.md 7).
 */
#include "artifact/store/lock.h"
#include "artifact/store/lock_file.h"
#include "base/alloc.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "tests/unit/testing.h"

#include <fcntl.h>
#include <string.h>

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static const char example[] = "lock_version: 3\n"
                              "artifacts:\n"
                              "- name: ana/tool-git\n"
                              "  resolved_version: 1.4.0\n"
                              "  sha256:\n"
                              "    any: " HASH_A "\n"
                              "  origin: operator\n"
                              "  owner_id: 4242\n"
                              "- name: local/probe\n"
                              "  resolved_version: 0.1.0\n"
                              "  sha256:\n"
                              "    platforms:\n"
                              "      darwin-aarch64: " HASH_A "\n"
                              "      linux-x86_64: " HASH_B "\n"
                              "  origin: runtime\n"
                              "  session: ses_1\n";

static struct lock *
parse (const char *text)
{
    struct mur_error *err = NULL;
    struct lock *l = lock_parse (text, strlen (text), "murmur.lock", &err);
    if (! l)
        fail_msg ("%s", err->message);
    return l;
}

static void
test_a_lock_is_written_as_it_was_read (void **state)
{
    (void)state;
    _cleanup_lock_ struct lock *l = parse (example);
    _cleanup_free_ char *text = lock_text (l);
    assert_string_equal (text, example);
}

static void
test_an_emptied_lock_says_so (void **state)
{
    (void)state;
    _cleanup_lock_ struct lock *l = parse (example);
    assert_true (lock_drop (l, "ana/tool-git"));
    assert_false (lock_drop (l, "ana/tool-git"));
    assert_true (lock_drop (l, "local/probe"));
    _cleanup_free_ char *text = lock_text (l);
    assert_string_equal (text, "lock_version: 3\nartifacts: []\n");
    lock_free (parse (text));
}

static void
test_another_version_is_refused_for_the_version_alone (void **state)
{
    (void)state;
    static const char old[] = "lock_version: 2\nartifacts:\n- name: BAD\n  sha256: 1\n";
    struct mur_error *err = NULL;
    assert_null (lock_parse (old, sizeof (old) - 1, "murmur.lock", &err));
    assert_int_equal (err->code, E_RUN_003);
    assert_non_null (strstr (err->message, "2"));
    assert_non_null (strstr (err->message, "3"));
    assert_null (strstr (err->message, "BAD"));
    assert_non_null (strstr (err->hint, "mur install"));
    mur_error_free (err);
}

#define ENTRY(name, rest) "lock_version: 3\nartifacts:\n- name: " name "\n" rest
#define SOUND             "  resolved_version: 1.0.0\n  sha256:\n    any: x\n"

static void
test_broken_entries_are_refused_by_name (void **state)
{
    (void)state;
    static const char *const bad[] = {
        ENTRY ("ana/x", "  resolved_version: 1\n  sha256:\n    any: x\n    platforms: {a: b}\n"),
        ENTRY ("ana/x", "  resolved_version: 1\n  sha256: {}\n"),
        ENTRY ("ana/x", "  resolved_version: 1\n"),
        ENTRY ("ana/x", "  resolved_version: ' '\n  sha256:\n    any: x\n"),
        ENTRY ("ana/x", "  resolved_version: 1\n  sha256:\n    any: ''\n"),
        ENTRY ("ana/x", "  resolved_version: 1\n  sha256:\n    platforms: {a: ' '}\n"),
        ENTRY ("ana/x", "  resolved_version: 1\n  sha256:\n    platforms: {}\n"),
        ENTRY ("ana/x", SOUND "  origin: runtime\n"),
        ENTRY ("ana/x", SOUND "  session: ses_1\n"),
        ENTRY ("ana/x", SOUND "  origin: friend\n"),
        ENTRY ("ana/x", SOUND "  owner_id: me\n"),
        ENTRY ("ana/x", "  resolved_version: [1]\n  sha256:\n    any: x\n"),
    };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
        struct mur_error *err = NULL;
        assert_null (lock_parse (bad[i], strlen (bad[i]), "murmur.lock", &err));
        assert_int_equal (err->code, E_RUN_003);
        assert_non_null (strstr (err->message, "ana/x"));
        assert_non_null (err->hint);
        mur_error_free (err);
    }
}

static void
test_broken_files_are_refused (void **state)
{
    (void)state;
    static const char *const bad[] = { "",
                                       "x",
                                       "lock_version: 3\n",
                                       "lock_version: 3\nartifacts: 1\n",
                                       ENTRY ("tool", SOUND),
                                       ENTRY ("a/b/c", SOUND),
                                       "lock_version: 3\nartifacts: [1]\n",
                                       "lock_version: [\n" };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++)
        assert_fails (lock_parse (bad[i], strlen (bad[i]), "murmur.lock", &err), E_RUN_003);
}

static struct lock_pin
pin_of (const char *name, const char *version, const char *hash, const char *platform)
{
    return (
        struct lock_pin){ .name = name, .version = version, .sha256 = hash, .platform = platform };
}

static void
test_another_machines_hash_survives_a_pin_of_this_one (void **state)
{
    (void)state;
    _cleanup_lock_ struct lock *l = parse (example);
    struct lock_pin pin = pin_of ("local/probe", "0.1.0", HASH_A, "linux-x86_64");
    lock_pin (l, &pin, NULL);
    const struct lock_entry *e = lock_find (l, "local/probe");
    assert_int_equal (e->platform_count, 2);
    assert_string_equal (lock_entry_hash (e, "linux-x86_64"), HASH_A);
    assert_string_equal (lock_entry_hash (e, "darwin-aarch64"), HASH_A);
    assert_null (lock_entry_hash (e, "linux-aarch64"));
}

static void
test_a_new_version_or_shape_drops_every_hash (void **state)
{
    (void)state;
    _cleanup_lock_ struct lock *l = parse (example);
    struct lock_pin pin = pin_of ("local/probe", "0.2.0", HASH_A, "linux-x86_64");
    lock_pin (l, &pin, NULL);
    assert_int_equal (lock_find (l, "local/probe")->platform_count, 1);
    pin = pin_of ("local/probe", "0.2.0", HASH_B, NULL);
    lock_pin (l, &pin, NULL);
    assert_string_equal (lock_find (l, "local/probe")->any, HASH_B);
    assert_int_equal (lock_find (l, "local/probe")->platform_count, 0);
    _cleanup_free_ char *text = lock_text (l);
    lock_free (parse (text));
}

static void
test_an_operator_adopts_and_a_session_never_relabels (void **state)
{
    (void)state;
    _cleanup_lock_ struct lock *l = parse (example);
    struct lock_pin pin = pin_of ("ana/tool-git", "1.4.0", HASH_A, NULL);
    pin.origin = LOCK_RUNTIME;
    pin.session = "ses_2";
    _cleanup_free_ char *adopted = NULL;
    lock_pin (l, &pin, &adopted);
    assert_null (adopted);
    assert_int_equal (lock_find (l, "ana/tool-git")->origin, LOCK_OPERATOR);
    assert_null (lock_find (l, "ana/tool-git")->session);
    assert_int_equal (lock_find (l, "ana/tool-git")->owner_id, 4242);
    pin = pin_of ("local/probe", "0.1.0", HASH_B, "linux-x86_64");
    lock_pin (l, &pin, &adopted);
    assert_string_equal (adopted, "ses_1");
    assert_int_equal (lock_find (l, "local/probe")->origin, LOCK_OPERATOR);
    pin = pin_of ("ana/new", "1.0.0", HASH_B, NULL);
    pin.origin = LOCK_RUNTIME;
    pin.session = "ses_3";
    lock_pin (l, &pin, NULL);
    assert_string_equal (l->entries[2].name, "ana/new");
    assert_string_equal (l->entries[2].session, "ses_3");
}

static void
test_conflicts_are_other_version_shape_or_hash (void **state)
{
    (void)state;
    _cleanup_lock_ struct lock *l = parse (example);
    struct lock_pin pin = pin_of ("ana/tool-git", "1.4.0", HASH_A, NULL);
    assert_succeeds (lock_check_conflict (l, &pin, &err));
    pin.sha256 = HASH_B;
    assert_fails (lock_check_conflict (l, &pin, &err), E_REG_005);
    pin = pin_of ("ana/tool-git", "1.5.0", HASH_A, NULL);
    assert_fails (lock_check_conflict (l, &pin, &err), E_REG_005);
    pin = pin_of ("ana/tool-git", "1.4.0", HASH_A, "linux-x86_64");
    assert_fails (lock_check_conflict (l, &pin, &err), E_REG_005);
    pin = pin_of ("local/probe", "0.1.0", HASH_A, "linux-aarch64");
    assert_succeeds (lock_check_conflict (l, &pin, &err));
    pin = pin_of ("ana/other", "9.9.9", HASH_A, NULL);
    assert_succeeds (lock_check_conflict (l, &pin, &err));
}

static void
test_an_owner_that_changed_is_refused_for_its_scope_alone (void **state)
{
    (void)state;
    _cleanup_lock_ struct lock *l = parse (example);
    assert_succeeds (lock_check_owner (l, "ana", 4242, &err));
    assert_succeeds (lock_check_owner (l, "an", 1, &err));
    assert_fails (lock_check_owner (l, "ana", 1, &err), E_REG_010);
}

static void
test_a_missing_lock_is_empty_and_a_write_makes_it (void **state)
{
    (void)state;
    char dir[] = "/tmp/murmur-lock-XXXXXX";
    assert_non_null (mkdtemp (dir));
    _cleanup_lock_ struct lock *l = lock_read (dir, NULL);
    assert_false (l->exists);
    struct lock_pin pin = pin_of ("local/x", "1.0", HASH_A, NULL);
    lock_pin (l, &pin, NULL);
    assert_succeeds (lock_write (l, &err));
    _cleanup_lock_ struct lock *again = lock_read (dir, NULL);
    assert_true (again->exists);
    assert_string_equal (again->entries[0].version, "1.0");
    assert_succeeds (fs_remove_tree_at (AT_FDCWD, dir, &err));
}

static void
test_two_writers_keep_what_both_meant (void **state)
{
    (void)state;
    char dir[] = "/tmp/murmur-lock-XXXXXX";
    assert_non_null (mkdtemp (dir));
    _cleanup_free_ char *path = x_asprintf ("%s/" LOCK_FILE_NAME, dir);
    assert_succeeds (fs_replace_path (path, example, strlen (example), 0644, false, &err));
    _cleanup_lock_ struct lock *one = lock_read (dir, NULL);
    _cleanup_lock_ struct lock *two = lock_read (dir, NULL);
    _cleanup_lock_ struct lock *three = lock_read (dir, NULL);
    struct lock_pin pin = pin_of ("local/x", "1.0", HASH_A, NULL);
    lock_pin (one, &pin, NULL);
    assert_true (lock_drop (one, "local/probe"));
    assert_succeeds (lock_write (one, &err));
    pin = pin_of ("local/y", "1.0", HASH_B, NULL);
    lock_pin (two, &pin, NULL);
    pin = pin_of ("local/x", "1.0", HASH_A, NULL);
    lock_pin (two, &pin, NULL);
    assert_succeeds (lock_write (two, &err));
    assert_null (lock_find (two, "local/probe"));
    assert_non_null (lock_find (two, "ana/tool-git"));
    assert_succeeds (lock_write (one, &err)); /* nothing of its own: takes the other's in */
    assert_non_null (lock_find (one, "local/y"));
    _cleanup_free_ char *before = lock_text (one);

    pin = pin_of ("local/y", "2.0", HASH_A, NULL);
    lock_pin (three, &pin, NULL);
    assert_fails (lock_write (three, &err), E_REG_005);
    _cleanup_lock_ struct lock *now = lock_read (dir, NULL);
    _cleanup_free_ char *after = lock_text (now);
    assert_string_equal (before, after);
    assert_succeeds (fs_remove_tree_at (AT_FDCWD, dir, &err));
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_lock_is_written_as_it_was_read),
        cmocka_unit_test (test_an_emptied_lock_says_so),
        cmocka_unit_test (test_another_version_is_refused_for_the_version_alone),
        cmocka_unit_test (test_broken_entries_are_refused_by_name),
        cmocka_unit_test (test_broken_files_are_refused),
        cmocka_unit_test (test_another_machines_hash_survives_a_pin_of_this_one),
        cmocka_unit_test (test_a_new_version_or_shape_drops_every_hash),
        cmocka_unit_test (test_an_operator_adopts_and_a_session_never_relabels),
        cmocka_unit_test (test_conflicts_are_other_version_shape_or_hash),
        cmocka_unit_test (test_an_owner_that_changed_is_refused_for_its_scope_alone),
        cmocka_unit_test (test_a_missing_lock_is_empty_and_a_write_makes_it),
        cmocka_unit_test (test_two_writers_keep_what_both_meant),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

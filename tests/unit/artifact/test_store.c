/* SPDX-License-Identifier: Apache-2.0
 *
 * Storing, finding, verifying, rolling back (spec/artifacts.md 6).
 */
#include "artifact/names/platform.h"
#include "artifact/store/resolve.h"
#include "artifact/store/store.h"
#include "artifact/store/store_list.h"
#include "artifact/store/store_meta.h"
#include "artifact/store/store_write.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "tests/unit/testing.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct world {
    char dir[64];
    struct stores *stores;
};

static int
set_up (void **state)
{
    struct world *w = x_new0 (struct world);
    strcpy (w->dir, "/tmp/murmur-store-XXXXXX");
    assert_non_null (mkdtemp (w->dir));
    setenv ("HOME", w->dir, 1);
    _cleanup_free_ char *project = x_asprintf ("%s/project", w->dir);
    assert_int_equal (mkdir (project, 0755), 0);
    w->stores = stores_new (project, NULL);
    assert_non_null (w->stores);
    *state = w;
    return 0;
}

static int
tear_down (void **state)
{
    struct world *w = *state;
    stores_free (w->stores);
    assert_succeeds (fs_remove_tree_at (AT_FDCWD, w->dir, &err));
    free (w);
    return 0;
}

static struct package *
skill (const char *name, const char *version, const char *text)
{
    _cleanup_free_ char *manifest =
        x_asprintf ("name: %s\nversion: \"%s\"\nruntime: skill\n", name, version);
    const struct zip_source entries[] = {
        { "murmur.yaml", manifest, strlen (manifest) },
        { "skill.md", text, strlen (text) },
        { "murmur-build.json", "{\"built_at_level\":1}\n", 21 },
    };
    struct buf archive = { 0 };
    assert_succeeds (zip_write (entries, 3, &archive, &err));
    size_t len = archive.len;
    return package_from_bytes (buf_steal (&archive), len, name);
}

static bool
put (const struct store *s, const char *name, const char *version, const char *text,
     enum store_overwrite overwrite, struct mur_error **err)
{
    _cleanup_package_ struct package *p = skill (strchr (name, '/') + 1, version, text);
    struct store_write w = { .name = name, .version = version, .overwrite = overwrite };
    return store_put (s, p, &w, NULL, err);
}

static size_t
count_files (const char *dir)
{
    _cleanup_closedir_ DIR *d = opendir (dir);
    size_t count = 0;
    for (struct dirent *e; d && (e = readdir (d));)
        count += strcmp (e->d_name, ".") != 0 && strcmp (e->d_name, "..") != 0;
    return count;
}

static void
test_what_is_stored_is_found_and_verified (void **state)
{
    struct world *w = *state;
    const struct store *s = &w->stores->at[STORE_GLOBAL];
    assert_succeeds (put (s, "local/x", "0.1.0", "# X", STORE_PUBLISH, &err));
    _cleanup_payload_ struct store_payload payload = { 0 };
    assert_int_equal (stores_find (w->stores, "local/x", "0.1.0", NULL, &payload, NULL),
                      STORE_FOUND);
    assert_int_equal (payload.kind, STORE_GLOBAL);
    assert_int_equal (count_files (payload.dir), 3);
    _cleanup_package_ struct package *p = store_read (&payload, "local/x", "0.1.0", NULL);
    assert_non_null (p);
    struct store_meta meta;
    assert_true (store_meta_read (&payload, "local/x", "0.1.0", &meta, NULL));
    assert_string_equal (meta.runtime, "static");
    assert_string_equal (meta.artifact_runtime, "skill");
    assert_false (meta.has_contracts);
    assert_int_equal (meta.built_at_level, 1);
    store_meta_clear (&meta);
    struct stat st;
    _cleanup_free_ char *murmur = x_asprintf ("%s/.murmur", w->dir);
    assert_int_equal (stat (murmur, &st), 0);
    assert_int_equal (st.st_mode & 0777, 0700);
}

static void
test_a_flipped_byte_is_refused (void **state)
{
    struct world *w = *state;
    assert_succeeds (
        put (&w->stores->at[STORE_GLOBAL], "local/x", "0.1.0", "# X", STORE_PUBLISH, &err));
    _cleanup_payload_ struct store_payload payload = { 0 };
    stores_find (w->stores, "local/x", "0.1.0", NULL, &payload, NULL);
    _cleanup_close_ int fd = open (payload.path, O_RDWR);
    assert_int_equal (pwrite (fd, "!", 1, 60), 1);
    assert_fails (store_read (&payload, "local/x", "0.1.0", &err), E_REG_002);
}

static void
test_publishing_never_replaces_and_installing_does (void **state)
{
    struct world *w = *state;
    const struct store *s = &w->stores->at[STORE_GLOBAL];
    assert_succeeds (put (s, "local/x", "0.1.0", "one", STORE_PUBLISH, &err));
    assert_fails (put (s, "local/x", "0.1.0", "two", STORE_PUBLISH, &err), E_REG_003);
    assert_succeeds (put (s, "local/x", "0.1.0", "two", STORE_INSTALL, &err));
    assert_succeeds (put (s, "local/x", "0.1.0", "two", STORE_INSTALL, &err));
    _cleanup_payload_ struct store_payload payload = { 0 };
    stores_find (w->stores, "local/x", "0.1.0", NULL, &payload, NULL);
    assert_int_equal (count_files (payload.dir), 3);
    _cleanup_package_ struct package *p = store_read (&payload, "local/x", "0.1.0", NULL);
    _cleanup_buf_ struct buf text = { 0 };
    assert_succeeds (package_open_zip (p, &err));
    assert_succeeds (package_read_entry (p, "skill.md", &text, &err));
    assert_string_equal (text.data, "two");
}

static void
test_an_install_repairs_a_damaged_payload (void **state)
{
    struct world *w = *state;
    const struct store *s = &w->stores->at[STORE_PROJECT];
    assert_succeeds (put (s, "local/x", "0.1.0", "one", STORE_INSTALL, &err));
    _cleanup_payload_ struct store_payload payload = { 0 };
    stores_find (w->stores, "local/x", "0.1.0", NULL, &payload, NULL);
    assert_int_equal (truncate (payload.path, 10), 0);
    assert_succeeds (put (s, "local/x", "0.1.0", "one", STORE_INSTALL, &err));
    _cleanup_package_ struct package *p = store_read (&payload, "local/x", "0.1.0", NULL);
    assert_non_null (p);
}

static void
test_a_payload_without_its_hash_is_not_found (void **state)
{
    struct world *w = *state;
    assert_succeeds (
        put (&w->stores->at[STORE_GLOBAL], "local/x", "0.1.0", "# X", STORE_PUBLISH, &err));
    struct store_payload payload = { 0 };
    stores_find (w->stores, "local/x", "0.1.0", NULL, &payload, NULL);
    _cleanup_free_ char *hash = x_asprintf ("%s/%s.sha256", payload.dir, payload.stem);
    assert_int_equal (truncate (hash, 0), 0);
    store_payload_clear (&payload);
    assert_int_equal (stores_find (w->stores, "local/x", "0.1.0", NULL, &payload, NULL),
                      STORE_NOT_FOUND);
    assert_int_equal (unlink (hash), 0);
    assert_int_equal (stores_find (w->stores, "local/x", "0.1.0", NULL, &payload, NULL),
                      STORE_NOT_FOUND);
}

static void
test_a_packed_name_or_hash_that_disagrees_writes_nothing (void **state)
{
    struct world *w = *state;
    const struct store *s = &w->stores->at[STORE_PROJECT];
    _cleanup_package_ struct package *p = skill ("other", "0.1.0", "x");
    struct store_write write = { .name = "ana/x", .version = "0.1.0", .overwrite = STORE_INSTALL };
    struct mur_error *found = NULL;
    assert_false (store_put (s, p, &write, NULL, &found));
    assert_int_equal (found->code, E_REG_002);
    assert_non_null (strstr (found->message, "other"));
    assert_non_null (strstr (found->hint, "ana/other"));
    mur_error_free (found);
    write.name = "ana/other";
    write.expected_sha256 = "00";
    assert_fails (store_put (s, p, &write, NULL, &err), E_REG_002);
    write.expected_sha256 = NULL;
    write.version = "../../x";
    assert_fails (store_put (s, p, &write, NULL, &err), E_IO_003);
    write.version = "0.1.0";
    write.name = "std/other";
    assert_fails (store_put (s, p, &write, NULL, &err), E_IO_003);
    assert_int_not_equal (access (s->root, F_OK), 0);
}

static void
test_the_tagged_payload_comes_before_the_untagged_and_foreign_ones_never (void **state)
{
    struct world *w = *state;
    const struct store *s = &w->stores->at[STORE_GLOBAL];
    _cleanup_package_ struct package *p = skill ("x", "0.1.0", "x");
    struct store_write write = { .name = "local/x",
                                 .version = "0.1.0",
                                 .platform = "darwin-aarch64",
                                 .overwrite = STORE_INSTALL };
    struct store_payload payload;
    assert_succeeds (store_put (s, p, &write, NULL, &err));
    assert_int_equal (store_find (s, "local/x", "0.1.0", "linux-x86_64", &payload, NULL),
                      STORE_NOT_FOUND);
    write.platform = NULL;
    assert_succeeds (store_put (s, p, &write, NULL, &err));
    assert_int_equal (store_find (s, "local/x", "0.1.0", "linux-x86_64", &payload, NULL),
                      STORE_FOUND);
    assert_null (payload.platform);
    store_payload_clear (&payload);
    write.platform = "linux-x86_64";
    assert_succeeds (store_put (s, p, &write, NULL, &err));
    store_find (s, "local/x", "0.1.0", "linux-x86_64", &payload, NULL);
    assert_string_equal (payload.platform, "linux-x86_64");
    store_payload_clear (&payload);
    _cleanup_rows_ struct store_rows rows = { 0 };
    store_list (s, &rows, NULL);
    assert_int_equal (rows.len, 1);
    assert_int_equal (rows.items[0].platforms.len, 2);
    assert_string_equal (rows.items[0].platforms.items[0], "darwin-aarch64");
}

static void
test_resolution_follows_the_lock (void **state)
{
    struct world *w = *state;
    const struct store *s = &w->stores->at[STORE_GLOBAL];
    assert_succeeds (put (s, "local/x", "0.1.0", "one", STORE_PUBLISH, &err));
    assert_succeeds (put (s, "local/x", "0.2.0", "two", STORE_PUBLISH, &err));
    _cleanup_lock_ struct lock *lock = x_new0 (struct lock);
    lock->path = x_strdup ("murmur.lock");
    _cleanup_resolved_ struct resolved *first =
        artifact_resolve (w->stores, lock, "local/x", "0.1.0", NULL, NULL);
    assert_non_null (first);
    resolved_pin (first, lock);
    lock->exists = true;
    /* The pinned version runs whatever the manifest declares now. */
    _cleanup_resolved_ struct resolved *again =
        artifact_resolve (w->stores, lock, "local/x", "0.2.0", NULL, NULL);
    assert_string_equal (again->version, "0.1.0");
    assert_fails (artifact_resolve (w->stores, lock, "local/y", "0.1.0", NULL, &err), E_RUN_003);
    lock->entries[0].any[0] = lock->entries[0].any[0] == '0' ? '1' : '0';
    assert_fails (artifact_resolve (w->stores, lock, "local/x", "0.1.0", NULL, &err), E_REG_002);
}

static void
test_a_runtime_pin_is_refused_as_anything_but_a_plain_tool_or_skill (void **state)
{
    struct world *w = *state;
    assert_succeeds (
        put (&w->stores->at[STORE_GLOBAL], "local/x", "0.1.0", "one", STORE_PUBLISH, &err));
    _cleanup_lock_ struct lock *lock = x_new0 (struct lock);
    lock->path = x_strdup ("murmur.lock");
    lock->exists = true;
    struct lock_pin pin = { .name = "local/x",
                            .version = "0.1.0",
                            .sha256 = "0",
                            .origin = LOCK_RUNTIME,
                            .session = "ses_1" };
    lock_pin (lock, &pin, NULL);
    const char *const names[] = { "local/x" }, *const versions[] = { "0.1.0" };
    struct resolve_use hook = { "artifacts[0]", false, "hook" };
    struct resolve_use plain = { "artifacts[0]", true, NULL };
    assert_fails (artifact_resolve (w->stores, lock, names[0], versions[0], &hook, &err),
                  E_RUN_043);
    assert_fails (artifacts_check_present (w->stores, lock, names, versions, &hook, 1, &err),
                  E_RUN_043);
    assert_succeeds (artifacts_check_present (w->stores, lock, names, versions, &plain, 1, &err));
}

static void
test_everything_missing_is_named_at_once (void **state)
{
    struct world *w = *state;
    const char *const names[] = { "ana/a", "ana/b" }, *const versions[] = { "1.0.0", "2.0.0" };
    struct resolve_use uses[2] = { { "artifacts[0]", true, NULL }, { "artifacts[1]", true, NULL } };
    struct mur_error *err = NULL;
    assert_false (artifacts_check_present (w->stores, NULL, names, versions, uses, 2, &err));
    assert_int_equal (err->code, E_RUN_008);
    assert_non_null (strstr (err->message, "ana/a@1.0.0"));
    assert_non_null (strstr (err->message, "ana/b@2.0.0"));
    assert_non_null (strstr (err->hint, "mur install"));
    mur_error_free (err);
}

static void
test_a_native_pin_of_another_platform_is_named (void **state)
{
    struct world *w = *state;
    _cleanup_lock_ struct lock *lock = x_new0 (struct lock);
    lock->path = x_strdup ("murmur.lock");
    lock->exists = true;
    struct lock_pin pin = {
        .name = "local/n", .version = "0.1.0", .sha256 = "0", .platform = "darwin-x86_64"
    };
    lock_pin (lock, &pin, NULL);
    struct mur_error *err = NULL;
    assert_null (artifact_resolve (w->stores, lock, "local/n", "0.1.0", NULL, &err));
    assert_int_equal (err->code, E_RUN_003);
    assert_non_null (strstr (err->message, platform_host ()));
    assert_non_null (strstr (err->message, "darwin-x86_64"));
    assert_non_null (strstr (err->hint, "mur install"));
    mur_error_free (err);
}

int
main (void)
{
#define STORE_TEST(fn) cmocka_unit_test_setup_teardown (fn, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        STORE_TEST (test_what_is_stored_is_found_and_verified),
        STORE_TEST (test_a_flipped_byte_is_refused),
        STORE_TEST (test_publishing_never_replaces_and_installing_does),
        STORE_TEST (test_an_install_repairs_a_damaged_payload),
        STORE_TEST (test_a_payload_without_its_hash_is_not_found),
        STORE_TEST (test_a_packed_name_or_hash_that_disagrees_writes_nothing),
        STORE_TEST (test_the_tagged_payload_comes_before_the_untagged_and_foreign_ones_never),
        STORE_TEST (test_resolution_follows_the_lock),
        STORE_TEST (test_a_runtime_pin_is_refused_as_anything_but_a_plain_tool_or_skill),
        STORE_TEST (test_everything_missing_is_named_at_once),
        STORE_TEST (test_a_native_pin_of_another_platform_is_named),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

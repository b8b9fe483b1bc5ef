/* SPDX-License-Identifier: Apache-2.0
 *
 * The guards of reading a zip and the sameness of writing one (spec/artifacts.md 3.4, 4).
 */
#include "artifact/package/package.h"
#include "artifact/package/zip.h"
#include "tests/unit/testing.h"

#include <string.h>

static struct buf
archive_of (const struct zip_source *entries, size_t count)
{
    struct buf out = { 0 };
    assert_succeeds (zip_write (entries, count, &out, &err));
    return out;
}

/* The last place these bytes stand at. */
static char *
find_last (struct buf *b, const char *bytes, size_t len)
{
    for (size_t i = b->len - len + 1; i-- > 0;)
        if (memcmp (b->data + i, bytes, len) == 0)
            return b->data + i;
    return NULL;
}

static char *
central_record (struct buf *b)
{
    return find_last (b, "PK\x01\x02", 4);
}

static void
put_u32 (char *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (char)(v >> (8 * i));
}

static void
test_what_is_written_is_read_back (void **state)
{
    (void)state;
    char big[100000];
    memset (big, 'x', sizeof (big));
    const struct zip_source entries[] = {
        { "murmur.yaml", "name: x\n", 8 },
        { "big", big, sizeof (big) },
        { "empty", "", 0 },
    };
    _cleanup_buf_ struct buf archive = archive_of (entries, 3);
    assert_true (archive.len < 2000);
    _cleanup_ (zip_closep) struct zip *z = zip_open (archive.data, archive.len, "x", NULL);
    assert_int_equal (zip_count (z), 3);
    for (size_t i = 0; i < 3; i++) {
        _cleanup_buf_ struct buf out = { 0 };
        assert_string_equal (zip_at (z, i)->name, entries[i].name);
        assert_succeeds (zip_read (z, zip_find (z, entries[i].name), 1u << 20, &out, NULL, &err));
        assert_int_equal (out.len, entries[i].len);
        if (out.len)
            assert_memory_equal (out.data, entries[i].data, out.len);
    }
    assert_null (zip_find (z, "murmur.yam"));
}

static void
test_two_writes_give_the_same_bytes_dated_1980 (void **state)
{
    (void)state;
    const struct zip_source entry = { "a", "hello", 5 };
    _cleanup_buf_ struct buf one = archive_of (&entry, 1), two = archive_of (&entry, 1);
    assert_int_equal (one.len, two.len);
    assert_memory_equal (one.data, two.data, one.len);
    assert_memory_equal (central_record (&one) + 12, "\x00\x00\x21\x00", 4);
}

static void
test_the_ceiling_counts_what_comes_out (void **state)
{
    (void)state;
    char zeros[5000] = { 0 };
    const struct zip_source entry = { "bomb", zeros, sizeof (zeros) };
    _cleanup_buf_ struct buf archive = archive_of (&entry, 1);
    /* The header may say what it likes. */
    put_u32 (central_record (&archive) + 24, 0xfffffff0u);
    _cleanup_ (zip_closep) struct zip *z = zip_open (archive.data, archive.len, "x", NULL);
    _cleanup_buf_ struct buf out = { 0 };
    bool is_over = false;
    struct mur_error *err = NULL;
    assert_false (zip_read (z, zip_at (z, 0), 4999, &out, &is_over, &err));
    assert_true (is_over);
    assert_non_null (strstr (err->message, "decompression ceiling"));
    assert_non_null (strstr (err->message, "bomb"));
    assert_non_null (strstr (err->message, "4999"));
    mur_error_free (err);
    assert_int_equal (out.len, 0);
    assert_true (zip_read (z, zip_at (z, 0), 5000, &out, &is_over, NULL));
    assert_int_equal (out.len, 5000);
}

static void
test_an_entry_that_inflates_past_its_declared_size_is_refused (void **state)
{
    (void)state;
    char text[1000];
    memset (text, 'a', sizeof (text));
    const struct zip_source entry = { "liar", text, sizeof (text) };
    _cleanup_buf_ struct buf archive = archive_of (&entry, 1);
    put_u32 (central_record (&archive) + 24, 999);
    _cleanup_ (zip_closep) struct zip *z = zip_open (archive.data, archive.len, "x", NULL);
    _cleanup_buf_ struct buf out = { 0 };
    assert_fails (zip_read (z, zip_at (z, 0), 1u << 20, &out, NULL, &err), E_IO_003);
}

static void
test_a_wrong_checksum_is_refused (void **state)
{
    (void)state;
    const struct zip_source entry = { "a", "hello", 5 };
    _cleanup_buf_ struct buf archive = archive_of (&entry, 1);
    central_record (&archive)[16] ^= 1;
    _cleanup_ (zip_closep) struct zip *z = zip_open (archive.data, archive.len, "x", NULL);
    _cleanup_buf_ struct buf out = { 0 };
    assert_fails (zip_read (z, zip_at (z, 0), 100, &out, NULL, &err), E_IO_003);
}

static void
test_other_methods_and_encryption_are_refused (void **state)
{
    (void)state;
    static const struct {
        int offset;
        char value;
    } changes[] = { { 10, 12 }, { 8, 1 } };
    for (size_t i = 0; i < ARRAY_LEN (changes); i++) {
        const struct zip_source entry = { "a", "hello", 5 };
        _cleanup_buf_ struct buf archive = archive_of (&entry, 1);
        central_record (&archive)[changes[i].offset] = changes[i].value;
        _cleanup_ (zip_closep) struct zip *z = zip_open (archive.data, archive.len, "x", NULL);
        _cleanup_buf_ struct buf out = { 0 };
        assert_non_null (z);
        assert_fails (zip_read (z, zip_at (z, 0), 100, &out, NULL, &err), E_IO_003);
    }
}

static void
test_two_entries_of_one_name_are_refused (void **state)
{
    (void)state;
    const struct zip_source entries[] = { { "a.wasm", "1", 1 },
                                          { "b", "2", 1 },
                                          { "a.wasm", "3", 1 } };
    _cleanup_buf_ struct buf archive = archive_of (entries, 3);
    struct mur_error *err = NULL;
    assert_null (zip_open (archive.data, archive.len, "x", &err));
    assert_int_equal (err->code, E_IO_003);
    assert_non_null (strstr (err->message, "a.wasm"));
    mur_error_free (err);
}

static void
test_every_truncation_fails_cleanly (void **state)
{
    (void)state;
    const struct zip_source entries[] = { { "murmur.yaml", "name: x\n", 8 }, { "a", "hello", 5 } };
    _cleanup_buf_ struct buf archive = archive_of (entries, 2);
    for (size_t len = 0; len < archive.len; len++) {
        void *copy = x_memdup (archive.data, len ? len : 1);
        struct zip *z = zip_open (copy, len, "x", NULL);
        for (size_t i = 0; z && i < zip_count (z); i++) {
            _cleanup_buf_ struct buf out = { 0 };
            zip_read (z, zip_at (z, i), 100, &out, NULL, NULL);
        }
        if (z)
            zip_close (z);
        free (copy);
    }
}

static void
test_the_root_component_is_picked_by_raw_name (void **state)
{
    (void)state;
    static const char *const one[] = { "murmur.yaml", "tool.wasm", "sub/other.wasm" };
    static const char *const wins[] = { "b.wasm", "capsule.wasm", "a.wasm" };
    static const char *const several[] = { "b.wasm", "a.wasm" };
    static const char *const none[] = { "../../evil.wasm", "/capsule.wasm", "x/../capsule.wasm",
                                        "Tool.WASM", "a/b.wasm" };
    assert_int_equal (package_pick_root_wasm (one, 3, E_BLD_003, "x", NULL), 1);
    assert_int_equal (package_pick_root_wasm (wins, 3, E_BLD_003, "x", NULL), 1);
    struct mur_error *err = NULL;
    assert_int_equal (package_pick_root_wasm (several, 2, E_BLD_003, "x", &err), -1);
    assert_int_equal (err->code, E_BLD_003);
    assert_non_null (strstr (err->message, "a.wasm, b.wasm"));
    mur_error_free (err);
    err = NULL;
    assert_int_equal (package_pick_root_wasm (none, 5, E_IO_003, "x", &err), -1);
    assert_int_equal (err->code, E_IO_003);
    assert_non_null (strstr (err->message, "capsule.wasm"));
    mur_error_free (err);
}

static void
test_the_ceiling_comes_from_the_environment (void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t expected;
    } cases[] = {
        { "16", 16 },
        { "0", 0 },
        { "x", ZIP_DEFAULT_CEILING },
        { "-1", ZIP_DEFAULT_CEILING },
        { "", ZIP_DEFAULT_CEILING },
        { "99999999999999999999999", ZIP_DEFAULT_CEILING },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        setenv ("MURMUR_MAX_ARTIFACT_DECOMPRESSED_BYTES", cases[i].text, 1);
        assert_int_equal (zip_ceiling (), cases[i].expected);
    }
    unsetenv ("MURMUR_MAX_ARTIFACT_DECOMPRESSED_BYTES");
    assert_int_equal (zip_ceiling (), ZIP_DEFAULT_CEILING);
}

static void
test_a_ceiling_hit_on_the_manifest_is_not_a_missing_manifest (void **state)
{
    (void)state;
    static const char manifest[] = "name: x\nversion: \"1\"\nruntime: skill\n";
    const struct zip_source entry = { "murmur.yaml", manifest, sizeof (manifest) - 1 };
    struct buf archive = archive_of (&entry, 1);
    size_t len = archive.len;
    _cleanup_package_ struct package *p = package_from_bytes (buf_steal (&archive), len, "x");
    setenv ("MURMUR_MAX_ARTIFACT_DECOMPRESSED_BYTES", "16", 1);
    struct mur_error *found = NULL;
    assert_false (package_open_zip (p, &found));
    unsetenv ("MURMUR_MAX_ARTIFACT_DECOMPRESSED_BYTES");
    assert_non_null (strstr (found->message, "decompression ceiling"));
    mur_error_free (found);
    assert_succeeds (package_open_zip (p, &err));
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_what_is_written_is_read_back),
        cmocka_unit_test (test_two_writes_give_the_same_bytes_dated_1980),
        cmocka_unit_test (test_the_ceiling_counts_what_comes_out),
        cmocka_unit_test (test_an_entry_that_inflates_past_its_declared_size_is_refused),
        cmocka_unit_test (test_a_wrong_checksum_is_refused),
        cmocka_unit_test (test_other_methods_and_encryption_are_refused),
        cmocka_unit_test (test_two_entries_of_one_name_are_refused),
        cmocka_unit_test (test_every_truncation_fails_cleanly),
        cmocka_unit_test (test_the_root_component_is_picked_by_raw_name),
        cmocka_unit_test (test_the_ceiling_comes_from_the_environment),
        cmocka_unit_test (test_a_ceiling_hit_on_the_manifest_is_not_a_missing_manifest),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

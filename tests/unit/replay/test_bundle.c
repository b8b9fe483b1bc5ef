/* SPDX-License-Identifier: Apache-2.0
 *
 * Bundles: what was packed is unpacked as it was; of a bundle that holds anything else nothing is
 * written.
 */
#include "tests/unit/testing.h"

#include "artifact/package/zip.h"
#include "base/digest.h"
#include "base/fdio.h"
#include "fs/paths.h"
#include "replay/bundle/bundle.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir_path[64], bundle_path[96], into_path[96];

static void
write_file (const char *path, const void *data, size_t len)
{
    _cleanup_close_ int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true (fd >= 0 && fd_write_all (fd, data, len));
}

static int
set_up (void **state)
{
    (void)state;
    snprintf (dir_path, sizeof (dir_path), "%s/bundle-XXXXXX",
              getenv ("TMPDIR") ? getenv ("TMPDIR") : "/tmp");
    if (! mkdtemp (dir_path))
        return -1;
    snprintf (bundle_path, sizeof bundle_path, "%s/x.murtrace", dir_path);
    snprintf (into_path, sizeof into_path, "%s/into", dir_path);
    return mkdir (into_path, 0700);
}

static int
tear_down (void **state)
{
    (void)state;
    _cleanup_free_ char *command = x_asprintf ("rm -rf '%s'", dir_path);
    return system (command);
}

static bool
is_empty (const char *path)
{
    DIR *dir = opendir (path);
    size_t count = 0;
    for (struct dirent *e; (e = readdir (dir));)
        count += e->d_name[0] != '.' || (e->d_name[1] && e->d_name[1] != '.');
    closedir (dir);
    return count == 0;
}

static void
pack (const struct zip_source *entries, size_t count)
{
    _cleanup_buf_ struct buf packed = { 0 };
    assert_succeeds (zip_write (entries, count, &packed, &err));
    write_file (bundle_path, packed.data, packed.len);
}

static void
assert_refused (void)
{
    bool is_strict;
    assert_fails (bundle_unpack (bundle_path, into_path, &is_strict, &err), E_RPL_004);
    assert_true (is_empty (into_path));
}

#define ABOUT                                                                                      \
    {                                                                                              \
        "bundle.json", "{\"format\":1,\"strict\":true}", 26                                        \
    }

static void
test_what_was_packed_comes_back (void **state)
{
    (void)state;
    char sha[SHA256_HEX_LEN + 1];
    sha256_hex ("body", 4, sha);
    _cleanup_free_ char *from = x_asprintf ("%s/from", dir_path);
    _cleanup_free_ char *blobs = x_asprintf ("%s/blobs", from);
    _cleanup_free_ char *trace = x_asprintf ("%s/trace.jsonl", from);
    _cleanup_free_ char *body = x_asprintf ("%s/%s", blobs, sha);
    _cleanup_free_ char *other = x_asprintf ("%s/not-a-body", blobs);
    assert_true (mkdir (from, 0700) == 0 && mkdir (blobs, 0700) == 0);
    write_file (trace, "{}\n", 3);
    write_file (body, "body", 4);
    write_file (other, "x", 1);
    _cleanup_bundle_files_ struct bundle_files store = { 0 };
    _cleanup_buf_ struct buf packed = { 0 };
    assert_succeeds (bundle_pack (from, "ses_1", &store, NULL, NULL, &packed, &err));
    write_file (bundle_path, packed.data, packed.len);

    bool is_strict = false;
    assert_succeeds (bundle_unpack (bundle_path, into_path, &is_strict, &err));
    assert_true (is_strict);
    _cleanup_free_ char *back = x_asprintf ("%s/blobs/%s", into_path, sha);
    _cleanup_buf_ struct buf text = { 0 };
    assert_succeeds (fs_read_regular (back, 100, &text, &err));
    assert_string_equal (text.data, "body");
    _cleanup_free_ char *none = x_asprintf ("%s/blobs/not-a-body", into_path);
    assert_int_not_equal (access (none, F_OK), 0);
}

static void
test_names_that_are_no_part_of_a_bundle_are_refused (void **state)
{
    (void)state;
    static const char *const names[] = {
        "../out",          "/etc/x",          "blobs/../x",     "blobs/short",
        "store/a/b/c",     "store/a/b/c/d/e", "store/a/../c/d", "store/.a/b/c/d",
        "store/a/b/c/d e", "murmur.yaml",     "trace.jsonl/x",  "blobs/",
        "store/a/b/c/.x",  "x/trace.jsonl",   "Trace.jsonl",    "store//b/c/d",
    };
    for (size_t i = 0; i < ARRAY_LEN (names); i++) {
        const struct zip_source entries[] = { ABOUT,
                                              { "trace.jsonl", "{}\n", 3 },
                                              { names[i], "x", 1 } };
        pack (entries, ARRAY_LEN (entries));
        assert_refused ();
    }
}

static void
test_another_format_or_none_is_refused (void **state)
{
    (void)state;
    static const char *const about[] = { "{\"format\":2}", "{}", "[]", "not json", "" };
    for (size_t i = 0; i < ARRAY_LEN (about); i++) {
        const struct zip_source entries[] = { { "bundle.json", about[i], strlen (about[i]) },
                                              { "trace.jsonl", "{}\n", 3 } };
        pack (entries, ARRAY_LEN (entries));
        assert_refused ();
    }
    const struct zip_source none[] = { { "trace.jsonl", "{}\n", 3 } };
    pack (none, 1);
    assert_refused ();
}

/* A byte of a packed bundle that is another: it is what it was, or it is refused. */
static void
test_cut_and_altered_files_write_nothing (void **state)
{
    (void)state;
    const struct zip_source entries[] = { ABOUT, { "trace.jsonl", "{\"a\":1}\n", 8 } };
    _cleanup_buf_ struct buf packed = { 0 };
    assert_succeeds (zip_write (entries, ARRAY_LEN (entries), &packed, &err));
    for (size_t cut = 0; cut + 22 < packed.len; cut += 3) { /* behind it is the end's own record */
        write_file (bundle_path, packed.data, cut);
        assert_refused ();
    }
    for (size_t at = 0; at < packed.len; at++) {
        bool is_strict;
        packed.data[at] ^= 0x10;
        write_file (bundle_path, packed.data, packed.len);
        bool is_good = bundle_unpack (bundle_path, into_path, &is_strict, NULL);
        assert_true (is_good || is_empty (into_path));
        if (is_good) { /* a date, an attribute */
            _cleanup_free_ char *clear = x_asprintf ("rm -rf '%s'/*", into_path);
            assert_int_equal (system (clear), 0);
        }
        packed.data[at] ^= 0x10;
    }
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (test_what_was_packed_comes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown (test_names_that_are_no_part_of_a_bundle_are_refused,
                                         set_up, tear_down),
        cmocka_unit_test_setup_teardown (test_another_format_or_none_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown (test_cut_and_altered_files_write_nothing, set_up,
                                         tear_down),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

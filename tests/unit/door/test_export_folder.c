/* SPDX-License-Identifier: Apache-2.0
 *
 * Exported folders: what is served, what is not and under which name, whatever lies in the folder.
 */
#include "fs/latch.h"
#include "fs/paths.h"
#include "tests/unit/testing.h"

#include "door/planes/export_folder.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

struct lab {
    char path[64];
    struct fs_latch *latch;
    struct export_folder folder;
};

static void
at (const struct lab *lab, const char *name, char out[PATH_MAX])
{
    snprintf (out, PATH_MAX, "%s/%s", lab->path, name);
}

static void
put (const struct lab *lab, const char *name, const char *text)
{
    char path[PATH_MAX];
    at (lab, name, path);
    FILE *file = fopen (path, "w");
    assert_non_null (file);
    assert_true (fputs (text, file) >= 0);
    assert_int_equal (fclose (file), 0);
}

static void
folder (const struct lab *lab, const char *name)
{
    char path[PATH_MAX];
    at (lab, name, path);
    assert_int_equal (mkdir (path, 0777), 0);
}

static void
link_to (const struct lab *lab, const char *target, const char *name)
{
    char path[PATH_MAX];
    at (lab, name, path);
    assert_int_equal (symlink (target, path), 0);
}

static int
setup (void **state)
{
    struct lab *lab = x_new0 (struct lab);
    strcpy (lab->path, "/tmp/mur-export-XXXXXX");
    if (! mkdtemp (lab->path))
        return -1;
    lab->latch = fs_latch_new ();
    struct fs_root *work = fs_root_new (open (lab->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                        lab->path, lab->latch, false);
    lab->folder = (struct export_folder){ work, "out", 16, true };
    *state = lab;
    folder (lab, "out");
    folder (lab, "out/deep");
    put (lab, "out/deep/a.txt", "hello");
    put (lab, "secret", "s");
    return 0;
}

static int
teardown (void **state)
{
    struct lab *lab = *state;
    fs_root_free (lab->folder.work);
    fs_latch_free (lab->latch);
    bool gone = fs_remove_tree_at (AT_FDCWD, lab->path, NULL);
    free (lab);
    return gone ? 0 : -1;
}

/* Reads <path>; the outcome is this one, and nothing of a refused file is handed out. */
static void
reads_as (const struct lab *lab, const char *path, const char *outcome)
{
    struct export_file file = { 0 };
    enum export_outcome how = export_read (&lab->folder, path, &file);
    assert_string_equal (export_outcome_name (how), outcome);
    if (how != EXPORT_OK)
        assert_int_equal (file.bytes.len, 0);
    export_file_clear (&file);
    _cleanup_free_ char *resolved = NULL;
    assert_int_equal (export_probe (&lab->folder, path, &resolved), how);
}

static void
test_a_file_is_served_with_its_facts (void **state)
{
    struct lab *lab = *state;
    struct export_file file = { 0 };
    assert_int_equal (export_read (&lab->folder, "deep/a.txt", &file), EXPORT_OK);
    assert_string_equal (file.path, "deep/a.txt");
    assert_int_equal (file.bytes.len, 5);
    assert_memory_equal (file.bytes.data, "hello", 5);
    assert_string_equal (file.sha256,
                         "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
    export_file_clear (&file);
}

static void
test_what_is_no_file_has_a_name (void **state)
{
    struct lab *lab = *state;
    char path[PATH_MAX], name[300];
    at (lab, "out/pipe", path);
    assert_int_equal (mkfifo (path, 0666), 0);
    memset (name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    reads_as (lab, "deep", "not_a_regular_file");
    reads_as (lab, "pipe", "not_a_regular_file");
    reads_as (lab, "none", "not_found");
    reads_as (lab, "deep/a.txt/more", "not_found");
    reads_as (lab, name, "not_found");
}

static void
test_a_file_over_the_limit_is_not_served_at_all (void **state)
{
    struct lab *lab = *state;
    put (lab, "out/full", "0123456789abcdef");
    put (lab, "out/more", "0123456789abcdefg");
    reads_as (lab, "full", "ok");
    reads_as (lab, "more", "too_large");
}

static void
test_links_lead_nowhere_outside (void **state)
{
    struct lab *lab = *state;
    link_to (lab, "deep/a.txt", "out/inner");
    link_to (lab, "../secret", "out/outer");
    link_to (lab, "/etc", "out/etc");
    link_to (lab, "deep", "out/folder");
    link_to (lab, "loop", "out/loop");
    reads_as (lab, "inner", "ok");
    reads_as (lab, "folder/a.txt", "ok");
    reads_as (lab, "outer", "outside_root");
    reads_as (lab, "etc/passwd", "outside_root");
    reads_as (lab, "loop", "io_error");

    lab->folder.follows_links = false;
    reads_as (lab, "inner", "symlink_refused");
    reads_as (lab, "folder/a.txt", "symlink_refused");
    reads_as (lab, "outer", "symlink_refused");
    reads_as (lab, "deep/a.txt", "ok");
}

static void
test_a_root_that_leaves_the_work_folder_serves_nothing (void **state)
{
    struct lab *lab = *state;
    link_to (lab, "/etc", "elsewhere");
    lab->folder.root = "elsewhere";
    reads_as (lab, "passwd", "outside_root");
    struct export_listing listing;
    assert_int_equal (export_list (&lab->folder, NULL, &listing), EXPORT_OUTSIDE_ROOT);
    json_decref (listing.entries);
}

static void
listed (const struct lab *lab, const char *expected)
{
    struct export_listing listing;
    _cleanup_buf_ struct buf names = { 0 };
    size_t i;
    const json_t *one;
    assert_int_equal (export_list (&lab->folder, NULL, &listing), EXPORT_OK);
    json_array_foreach (listing.entries, i, one)
        buf_printf (&names, "%s ", json_get_string (one, "path"));
    assert_string_equal (names.data ? names.data : "", expected);
    assert_int_equal (listing.count, json_array_size (listing.entries));
    json_decref (listing.entries);
}

static void
test_a_listing_names_regular_files_only_in_order (void **state)
{
    struct lab *lab = *state;
    char path[PATH_MAX];
    put (lab, "out/z", "");
    put (lab, "out/B", "x");
    at (lab, "out/pipe", path);
    assert_int_equal (mkfifo (path, 0666), 0);
    link_to (lab, "B", "out/same");
    link_to (lab, "../secret", "out/outer");
    link_to (lab, ".", "out/deep/up");
    link_to (lab, "nowhere", "out/dangling");
    listed (lab, "B deep/a.txt same z ");
    lab->folder.follows_links = false;
    listed (lab, "B deep/a.txt z ");
}

static void
test_a_missing_root_is_an_empty_one (void **state)
{
    struct lab *lab = *state;
    lab->folder.root = "later/out";
    listed (lab, "");
    reads_as (lab, "a", "not_found");
}

/* The text as decoded and judged by its shape; NULL: refused. */
static void
plain (const char *text, const char *expected)
{
    _cleanup_buf_ struct buf decoded = { 0 };
    export_decode_path (text, strlen (text), &decoded);
    _cleanup_free_ char *path = export_plain_path (decoded.data ? decoded.data : "", decoded.len);
    if (expected)
        assert_string_equal (path, expected);
    else
        assert_null (path);
}

static void
test_paths_are_decoded_once_and_judged_by_their_shape (void **state _unused_)
{
    plain ("a/b", "a/b");
    plain ("a/", "a");
    plain ("a%20b", "a b");
    plain ("%2e%2E", NULL);
    plain ("%252e%252e/x", "%2e%2e/x");
    plain ("100%", "100%");
    plain ("%4", "%4");
    plain ("%zz%41", "%zzA");
    plain ("...", "...");
    plain (".hidden", ".hidden");
    static const char *const refused[] = { "",      "/",   "//",    "/etc",   "a//b",
                                           ".",     "./a", "a/./b", "a/../b", "a/..",
                                           "a%00b", "%ff", "a//",   "%2fetc" };
    for (size_t i = 0; i < ARRAY_LEN (refused); i++)
        plain (refused[i], NULL);
}

int
main (void)
{
#define T(test) cmocka_unit_test_setup_teardown (test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T (test_a_file_is_served_with_its_facts),
        T (test_what_is_no_file_has_a_name),
        T (test_a_file_over_the_limit_is_not_served_at_all),
        T (test_links_lead_nowhere_outside),
        T (test_a_root_that_leaves_the_work_folder_serves_nothing),
        T (test_a_listing_names_regular_files_only_in_order),
        T (test_a_missing_root_is_an_empty_one),
        cmocka_unit_test (test_paths_are_decoded_once_and_judged_by_their_shape),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

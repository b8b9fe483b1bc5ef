/* SPDX-License-Identifier: Apache-2.0
 *
 * The copy of a parent's work folder: what each kind of entry becomes, what is left out, where it
 * stops (spec/spawn.md A6).
 */
#include "tests/unit/testing.h"

#include "base/buf.h"
#include "base/fdio.h"
#include "base/json.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "spawn/child/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static char root[] = "/tmp/murmur-snapshot-XXXXXX";
static char *source, *target;

static char *
below (const char *dir, const char *name)
{
    return x_asprintf ("%s/%s", dir, name);
}

static int
make_world (void **state _unused_)
{
    if (! mkdtemp (root))
        return -1;
    setenv ("HOME", root, 1);
    return 0;
}

static int
remove_world (void **state _unused_)
{
    return fs_remove_tree_at (AT_FDCWD, root, NULL) ? 0 : -1;
}

/* A source with an empty folder of the child inside it, as when the records lie in the work folder.
 */
static int
make_folders (void **state _unused_)
{
    source = below (root, "source");
    target = below (source, "children/child-0011223344556677");
    _cleanup_free_ char *children = below (source, "children");
    return mkdir (source, 0755) || mkdir (children, 0700) || mkdir (target, 0700);
}

static int
remove_folders (void **state _unused_)
{
    bool is_gone = fs_remove_tree_at (AT_FDCWD, source, NULL);
    free (source);
    free (target);
    return is_gone ? 0 : -1;
}

static void
put (const char *name, const char *text, mode_t mode)
{
    _cleanup_free_ char *path = below (source, name);
    _cleanup_close_ int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true (fd_write_all (fd, text, strlen (text)));
    assert_int_equal (fchmod (fd, mode), 0);
    const struct timespec times[2] = { { 5, 0 }, { 1234567890, 0 } };
    assert_int_equal (futimens (fd, times), 0);
}

static char *
take (uint64_t limit, struct mur_error **err)
{
    _cleanup_close_ int fd = open (target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct snapshot what = { .source_path = source,
                                   .target_path = target,
                                   .target_fd = fd,
                                   .limit_bytes = limit,
                                   .capsule = "local/child-small" };
    return snapshot_take (&what, err);
}

static json_t *
taken (void)
{
    struct mur_error *err = NULL;
    _cleanup_free_ char *text = take (1 << 20, &err);
    if (! text)
        fail_msg ("%s", err->message);
    return json_loads (text, 0, NULL);
}

static void
assert_count (const json_t *report, const char *key, uint64_t expected)
{
    uint64_t value = UINT64_MAX;
    assert_true (json_get_u64 (report, key, &value));
    assert_int_equal (value, expected);
}

/* The reason a path was left out for, or NULL. */
static const char *
reason_of (const json_t *report, const char *path)
{
    size_t i;
    const json_t *entry;
    json_array_foreach (json_object_get (report, "skipped"), i,
                        entry) if (str_eq (json_get_string (entry, "path"),
                                           path)) return json_get_string (entry, "reason");
    return NULL;
}

static void
assert_link (const char *name, const char *expected)
{
    char text[4096] = { 0 };
    _cleanup_free_ char *path = below (target, name);
    assert_true (readlink (path, text, sizeof text - 1) > 0);
    assert_string_equal (text, expected);
}

static void
link_to (const char *to, const char *name)
{
    _cleanup_free_ char *path = below (source, name);
    assert_int_equal (symlink (to, path), 0);
}

static void
test_spawn_S17_the_copy_leaves_out_the_childs_own_folder (void **state _unused_)
{
    put ("parent-file.txt", "from the parent", 0644);
    _cleanup_json_ json_t *report = taken ();
    assert_string_equal (json_get_string (report, "source"), source);
    assert_count (report, "files", 1);
    assert_count (report, "dirs", 1);
    assert_count (report, "bytes", 15);
    assert_count (report, "skipped_count", 1);
    assert_string_equal (reason_of (report, "children/child-0011223344556677"), "excluded");
    _cleanup_free_ char *copy = below (target, "parent-file.txt");
    struct stat st;
    assert_int_equal (stat (copy, &st), 0);
    assert_int_equal (st.st_size, 15);
    assert_int_equal (st.st_mtim.tv_sec, 1234567890);
    _cleanup_free_ char *nested = below (target, "children/child-0011223344556677");
    assert_int_equal (access (nested, F_OK), -1);
}

static void
test_the_report_has_its_keys_in_order (void **state _unused_)
{
    struct mur_error *err = NULL;
    _cleanup_free_ char *text = take (1, &err);
    _cleanup_free_ char *expected = x_asprintf (
        "{\"source\":\"%s\",\"files\":0,\"dirs\":1,\"symlinks\":0,\"repointed_symlinks\":0,"
        "\"bytes\":0,\"skipped_count\":1,\"skipped\":[{\"path\":"
        "\"children/child-0011223344556677\",\"reason\":\"excluded\"}]}",
        source);
    assert_string_equal (text, expected);
}

static void
test_set_id_bits_are_dropped_and_modes_kept (void **state _unused_)
{
    put ("tool", "x", 06755);
    _cleanup_free_ char *dir = below (source, "sticky");
    assert_int_equal (mkdir (dir, 0755), 0);
    put ("sticky/in", "y", 0400);
    assert_int_equal (chmod (dir, 03555), 0);
    _cleanup_json_ json_t *report = taken ();
    assert_count (report, "files", 2);
    assert_count (report, "dirs", 2);
    struct stat st;
    _cleanup_free_ char *tool = below (target, "tool"), *copy = below (target, "sticky");
    assert_int_equal (stat (tool, &st), 0);
    assert_int_equal (st.st_mode & 07777, 0755);
    assert_int_equal (stat (copy, &st), 0);
    assert_int_equal (st.st_mode & 07777, 0555);
    assert_int_equal (chmod (dir, 0755), 0);
    assert_int_equal (chmod (copy, 0755), 0);
}

static void
test_links_are_made_again_and_never_followed (void **state _unused_)
{
    put ("file", "x", 0644);
    _cleanup_free_ char *inside = below (source, "file");
    _cleanup_free_ char *around = x_asprintf ("%s/a/../file", source);
    _cleanup_free_ char *out = x_asprintf ("%s/../elsewhere", source);
    _cleanup_free_ char *sibling = x_asprintf ("%s-else/x", source);
    link_to ("file", "relative");
    link_to ("../../etc/passwd", "climbing");
    link_to ("/etc/passwd", "outside");
    link_to (inside, "inside");
    link_to (around, "around");
    link_to (out, "out");
    link_to (sibling, "sibling");
    link_to (source, "root");
    _cleanup_json_ json_t *report = taken ();
    assert_count (report, "symlinks", 8);
    assert_count (report, "repointed_symlinks", 3);
    assert_count (report, "files", 1);
    _cleanup_free_ char *moved = below (target, "file");
    assert_link ("relative", "file");
    assert_link ("climbing", "../../etc/passwd");
    assert_link ("outside", "/etc/passwd");
    assert_link ("inside", moved);
    assert_link ("around", moved);
    assert_link ("out", out);
    assert_link ("sibling", sibling);
    assert_link ("root", target);
}

static void
test_what_is_no_file_is_left_out_with_its_kind (void **state _unused_)
{
    _cleanup_free_ char *fifo = below (source, "pipe"), *path = below (source, "door");
    assert_int_equal (mkfifo (fifo, 0644), 0);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strncpy (address.sun_path, path, sizeof address.sun_path - 1);
    _cleanup_close_ int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal (bind (fd, (struct sockaddr *)&address, sizeof address), 0);
    _cleanup_json_ json_t *report = taken ();
    assert_string_equal (reason_of (report, "pipe"), "fifo");
    assert_string_equal (reason_of (report, "door"), "socket");
    assert_count (report, "skipped_count", 3);
    assert_count (report, "files", 0);
}

static void
test_the_skip_list_shows_the_first_twenty (void **state _unused_)
{
    for (int i = 0; i < 25; i++) {
        _cleanup_free_ char *path = x_asprintf ("%s/f%02d", source, i);
        assert_int_equal (mkfifo (path, 0644), 0);
    }
    _cleanup_json_ json_t *report = taken ();
    assert_count (report, "skipped_count", 26);
    assert_int_equal (json_array_size (json_object_get (report, "skipped")), 20);
    assert_string_equal (
        json_get_string (json_array_get (json_object_get (report, "skipped"), 1), "path"), "f00");
}

static void
test_odd_names_do_not_make_the_report_longer_than_an_argument (void **state _unused_)
{
    char name[201];
    memset (name, '\001', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    _cleanup_free_ char *dir = x_strdup (source);
    for (int level = 0; level < 15; level++) {
        char *deeper = x_asprintf ("%s/%s", dir, name);
        free (dir);
        dir = deeper;
        assert_int_equal (mkdir (dir, 0755), 0);
    }
    for (int i = 0; i < 25; i++) {
        _cleanup_free_ char *path = x_asprintf ("%s/f%02d", dir, i);
        assert_int_equal (mkfifo (path, 0644), 0);
    }
    struct mur_error *err = NULL;
    _cleanup_free_ char *text = take (1 << 20, &err);
    assert_non_null (text);
    assert_true (strlen (text) < (size_t)128 << 10);
    _cleanup_json_ json_t *report = json_loads (text, 0, NULL);
    assert_count (report, "skipped_count", 26);
}

static void
test_the_runtimes_own_tree_is_left_out_and_the_childs_folder_in_it_named (void **state _unused_)
{
    setenv ("HOME", source, 1);
    _cleanup_free_ char *own = below (source, ".murmur"), *moved = below (own, "child-1");
    assert_int_equal (mkdir (own, 0700), 0);
    assert_int_equal (rename (target, moved), 0);
    char *kept = target;
    target = moved;
    put ("parent-file.txt", "from the parent", 0644);
    put (".murmur/secret", "a door's token", 0600);
    _cleanup_json_ json_t *report = taken ();
    target = kept;
    setenv ("HOME", root, 1);
    assert_count (report, "files", 1);
    assert_string_equal (reason_of (report, ".murmur"), "excluded");
    assert_string_equal (reason_of (report, ".murmur/child-1"), "excluded");
}

static void
test_spawn_S19_one_byte_past_the_ceiling_stops_the_copy (void **state _unused_)
{
    char content[4097];
    memset (content, 'x', sizeof content - 1);
    content[sizeof content - 1] = '\0';
    put ("big", content, 0644);
    struct mur_error *err = NULL;
    free (take (4096, &err));
    assert_null (err);
    _cleanup_free_ char *copy = below (target, "big");
    assert_int_equal (unlink (copy), 0);
    assert_null (take (1024, &err));
    assert_non_null (strstr (err->message, "local/child-small"));
    assert_non_null (strstr (err->message, "1024"));
    assert_non_null (strstr (err->message, "capabilities.resources.workdir_max_bytes"));
    mur_error_free (err);
}

static void
test_security_D8_holes_stay_holes_and_the_bound_is_told_before_anything_is_written (
    void **state _unused_)
{
    put ("holes", "begin", 0644);
    _cleanup_free_ char *original = below (source, "holes"), *copy = below (target, "holes");
    const off_t size = (off_t)64 << 20;
    int fd = open (original, O_WRONLY | O_CLOEXEC);
    assert_int_equal (pwrite (fd, "end", 3, size - (1 << 20)), 3);
    assert_int_equal (ftruncate (fd, size), 0);
    close (fd);

    struct mur_error *err = NULL;
    struct stat st;
    free (take ((uint64_t)size * 2, &err));
    assert_null (err);
    assert_int_equal (stat (copy, &st), 0);
    assert_int_equal (st.st_size, size);
    assert_true (st.st_blocks * 512 < size / 4);
    char end[4] = { 0 };
    fd = open (copy, O_RDONLY | O_CLOEXEC);
    assert_int_equal (pread (fd, end, 3, size - (1 << 20)), 3);
    close (fd);
    assert_string_equal (end, "end");

    assert_int_equal (unlink (copy), 0);
    assert_null (take (1 << 20, &err));
    mur_error_free (err);
    assert_true (stat (copy, &st) < 0 || st.st_blocks == 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown (f, make_folders, remove_folders)

int
main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (test_spawn_S17_the_copy_leaves_out_the_childs_own_folder),
        TEST (test_the_report_has_its_keys_in_order),
        TEST (test_set_id_bits_are_dropped_and_modes_kept),
        TEST (test_links_are_made_again_and_never_followed),
        TEST (test_what_is_no_file_is_left_out_with_its_kind),
        TEST (test_the_skip_list_shows_the_first_twenty),
        TEST (test_odd_names_do_not_make_the_report_longer_than_an_argument),
        TEST (test_the_runtimes_own_tree_is_left_out_and_the_childs_folder_in_it_named),
        TEST (test_security_D8_holes_stay_holes_and_the_bound_is_told_before_anything_is_written),
        TEST (test_spawn_S19_one_byte_past_the_ceiling_stops_the_copy),
    };
    return cmocka_run_group_tests (tests, make_world, remove_world);
}

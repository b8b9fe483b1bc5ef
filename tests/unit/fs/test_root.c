/* SPDX-License-Identifier: Apache-2.0
 *
 * Held roots: what is refused, what is latched, what stays whole when a write fails.
 */
#include "tests/unit/testing.h"

#include "fs/latch.h"
#include "fs/paths.h"
#include "fs/replace.h"
#include "fs/root.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

struct lab {
    char path[64];
    struct fs_latch *latch;
    struct fs_root *root;
};

static int
setup (void **state)
{
    struct lab *lab = x_new0 (struct lab);
    strcpy (lab->path, "/tmp/mur-fs-XXXXXX");
    if (! mkdtemp (lab->path))
        return -1;
    lab->latch = fs_latch_new ();
    lab->root = fs_root_new (open (lab->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), lab->path,
                             lab->latch, false);
    *state = lab;
    return 0;
}

static int
teardown (void **state)
{
    struct lab *lab = *state;
    fs_root_free (lab->root);
    fs_latch_free (lab->latch);
    bool gone = fs_remove_tree_at (AT_FDCWD, lab->path, NULL);
    free (lab);
    return gone ? 0 : -1;
}

static void
at (const struct lab *lab, const char *name, char out[PATH_MAX])
{
    snprintf (out, PATH_MAX, "%s/%s", lab->path, name);
}

static void
link_to (const struct lab *lab, const char *target, const char *name)
{
    char path[PATH_MAX];
    at (lab, name, path);
    assert_int_equal (symlink (target, path), 0);
}

/* Exactly one refusal is latched, with these facts. */
static void
assert_latched (struct lab *lab, const char *path, const char *refused_at, const char *operation,
                const char *reason)
{
    struct fs_refusal *refusals;
    size_t count = fs_latch_drain (lab->latch, &refusals);
    assert_int_equal (count, 1);
    assert_string_equal (refusals[0].path, path);
    assert_string_equal (refusals[0].refused_at, refused_at);
    assert_string_equal (fs_operation_name (refusals[0].operation), operation);
    assert_string_equal (fs_reason_name (refusals[0].reason), reason);
    fs_refusals_free (refusals, count);
}

static void
assert_nothing_latched (struct lab *lab)
{
    struct fs_refusal *refusals;
    assert_int_equal (fs_latch_drain (lab->latch, &refusals), 0);
    free (refusals);
}

static void
test_a_file_is_written_read_appended_and_removed (void **state)
{
    struct lab *lab = *state;
    struct buf text = { 0 };
    assert_succeeds (fs_make_dirs (lab->root, "a/b", 0700, true, &err));
    assert_succeeds (fs_write (lab->root, "a/b/f", "one", 3, 0600, true, &err));
    assert_succeeds (fs_append (lab->root, "a/b/f", "two", 3, &err));
    assert_succeeds (fs_read (lab->root, "a/b/f", 100, &text, &err));
    assert_string_equal (text.data, "onetwo");
    assert_fails (fs_read (lab->root, "a/b/f", 5, &text, &err), E_IO_003);
    assert_succeeds (fs_remove (lab->root, "a", &err));
    assert_false (fs_exists (lab->root, "a", NULL));
    assert_succeeds (fs_remove (lab->root, "a/b/f", &err));
    assert_nothing_latched (lab);
    buf_free (&text);
}

static void
test_odd_segments_are_refused_before_any_system_call (void **state)
{
    static const char *const odd[] = {
        "", ".", "..", "../x", "a//b", "/etc/passwd", "a/./b", "a/"
    };
    struct lab *lab = *state;
    for (size_t i = 0; i < ARRAY_LEN (odd); i++) {
        struct buf text = { 0 };
        assert_fails (fs_read (lab->root, odd[i], 10, &text, &err), E_RUN_050);
        struct fs_refusal *refusals;
        size_t count = fs_latch_drain (lab->latch, &refusals);
        assert_int_equal (count, 1);
        assert_int_equal (refusals[0].reason, FS_INVALID_COMPONENT);
        fs_refusals_free (refusals, count);
        buf_free (&text);
    }
}

static void
test_links_are_refused_at_every_depth_and_by_every_operation (void **state)
{
    struct lab *lab = *state;
    struct buf text = { 0 };
    assert_succeeds (fs_make_dirs (lab->root, "d", 0755, false, &err));
    link_to (lab, "/etc", "d/out");
    link_to (lab, "/etc/passwd", "d/file");
    assert_fails (fs_read (lab->root, "d/file", 100000, &text, &err), E_RUN_050);
    assert_latched (lab, "d/file", "d/file", "read", "symlink");
    assert_fails (fs_read (lab->root, "d/out/passwd", 100000, &text, &err), E_RUN_050);
    assert_latched (lab, "d/out/passwd", "d/out", "read", "symlink");
    assert_fails (fs_write (lab->root, "d/file", "x", 1, 0644, false, &err), E_RUN_050);
    assert_latched (lab, "d/file", "d/file", "write", "symlink");
    assert_fails (fs_append (lab->root, "d/file", "x", 1, &err), E_RUN_050);
    assert_latched (lab, "d/file", "d/file", "append", "symlink");
    assert_fails (fs_make_dirs (lab->root, "d/out/new", 0755, false, &err), E_RUN_050);
    assert_latched (lab, "d/out/new", "d/out", "create_dir", "symlink");
    assert_fails (fs_remove (lab->root, "d/out/passwd", &err), E_RUN_050);
    assert_latched (lab, "d/out/passwd", "d/out", "remove", "symlink");
    buf_free (&text);
}

static void
test_removing_a_tree_unlinks_the_links_in_it (void **state)
{
    struct lab *lab = *state;
    char outside[] = "/tmp/mur-fs-kept-XXXXXX";
    int fd = mkstemp (outside);
    assert_true (fd >= 0);
    close (fd);
    assert_succeeds (fs_make_dirs (lab->root, "d/e", 0755, false, &err));
    link_to (lab, outside, "d/e/link");
    assert_succeeds (fs_remove (lab->root, "d", &err));
    assert_false (fs_exists (lab->root, "d", NULL));
    assert_int_equal (access (outside, F_OK), 0);
    unlink (outside);
}

/* A tree deeper than there are descriptors. */
static void
test_a_tree_too_deep_to_hold_open_is_removed (void **state)
{
    struct lab *lab = *state;
    int fd = open (lab->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 3000; i++) {
        assert_int_equal (mkdirat (fd, i ? "d" : "deep", 0755), 0);
        int next = openat (fd, i ? "d" : "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true (next >= 0);
        close (fd);
        fd = next;
    }
    assert_int_equal (mkdirat (fd, "side", 0000), 0);
    close (fd);
    assert_succeeds (fs_remove (lab->root, "deep", &err));
    assert_false (fs_exists (lab->root, "deep", NULL));
}

/* Runs body in a mount namespace of its own; its exit status, -1 where there can be none. */
static int
with_mounts (const struct lab *lab, int (*body) (const struct lab *lab))
{
    pid_t pid = fork ();
    if (pid == 0) {
        if (unshare (geteuid () == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
            mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
            _exit (99);
        _exit (body (lab));
    }
    int status;
    waitpid (pid, &status, 0);
    return WIFEXITED (status) && WEXITSTATUS (status) != 99 ? WEXITSTATUS (status) : -1;
}

/* A folder of the same file system, bound into the tree: its device number gives nothing away. */
static int
remove_around_a_mount (const struct lab *lab)
{
    char kept[PATH_MAX], point[PATH_MAX], file[PATH_MAX];
    _cleanup_error_ struct mur_error *err = NULL;
    at (lab, "kept", kept);
    at (lab, "tree/a/point", point);
    at (lab, "kept/file", file);
    if (mount (kept, point, NULL, MS_BIND, NULL) < 0)
        return 99;
    /* Held anew: a descriptor from before sees the mounts from before. */
    _cleanup_ (fs_root_freep) struct fs_root *root =
        fs_root_new (open (lab->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), lab->path, NULL, false);
    if (fs_remove (root, "tree", &err) || ! err || err->code != E_IO_003)
        return 1;
    if (! strstr (err->message, "mounted there") || access (file, F_OK) != 0)
        return 2;
    umount2 (point, MNT_DETACH);
    return fs_remove (root, "tree", NULL) && access (file, F_OK) == 0 ? 0 : 3;
}

static void
test_removing_a_tree_enters_no_mount (void **state)
{
    struct lab *lab = *state;
    assert_succeeds (fs_make_dirs (lab->root, "tree/a/point", 0755, false, &err));
    assert_succeeds (fs_make_dirs (lab->root, "kept", 0755, false, &err));
    assert_succeeds (fs_write (lab->root, "kept/file", "x", 1, 0600, true, &err));
    int status = with_mounts (lab, remove_around_a_mount);
    if (status < 0) {
        print_message ("skipped: no mounts can be made here\n");
        skip ();
    }
    assert_int_equal (status, 0);
}

static void
test_a_second_name_is_refused_for_appending (void **state)
{
    struct lab *lab = *state;
    char a[PATH_MAX], b[PATH_MAX];
    assert_succeeds (fs_write (lab->root, "f", "x", 1, 0644, false, &err));
    at (lab, "f", a);
    at (lab, "g", b);
    assert_int_equal (link (a, b), 0);
    assert_fails (fs_append (lab->root, "f", "y", 1, &err), E_RUN_050);
    assert_latched (lab, "f", "f", "append", "hard_link");
}

static void
test_fifos_sockets_and_directories_are_refused_without_blocking (void **state)
{
    struct lab *lab = *state;
    struct buf text = { 0 };
    char path[PATH_MAX];
    at (lab, "fifo", path);
    assert_int_equal (mkfifo (path, 0600), 0);
    assert_fails (fs_read (lab->root, "fifo", 10, &text, &err), E_RUN_050);
    assert_latched (lab, "fifo", "fifo", "read", "not_a_regular_file");
    assert_fails (fs_append (lab->root, "fifo", "x", 1, &err), E_RUN_050);
    assert_latched (lab, "fifo", "fifo", "append", "not_a_regular_file");
    assert_fails (fs_write (lab->root, "fifo", "x", 1, 0644, false, &err), E_RUN_050);
    assert_latched (lab, "fifo", "fifo", "write", "not_a_regular_file");

    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf (address.sun_path, sizeof address.sun_path, "%s/socket", lab->path);
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal (bind (fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_fails (fs_read (lab->root, "socket", 10, &text, &err), E_RUN_050);
    assert_latched (lab, "socket", "socket", "read", "not_a_regular_file");
    close (fd);

    assert_succeeds (fs_make_dirs (lab->root, "d", 0755, false, &err));
    assert_fails (fs_read (lab->root, "d", 10, &text, &err), E_RUN_050);
    assert_latched (lab, "d", "d", "read", "not_a_regular_file");
    assert_succeeds (fs_write (lab->root, "f", "x", 1, 0644, false, &err));
    assert_fails (fs_read (lab->root, "f/below", 10, &text, &err), E_RUN_050);
    assert_latched (lab, "f/below", "f", "read", "not_a_regular_file");
    buf_free (&text);
}

static void
test_equal_refusals_are_latched_once (void **state)
{
    struct lab *lab = *state;
    struct buf text = { 0 };
    link_to (lab, "/etc/passwd", "l");
    for (int i = 0; i < 5; i++)
        fs_read (lab->root, "l", 10, &text, NULL);
    assert_latched (lab, "l", "l", "read", "symlink");
    buf_free (&text);
}

static void
test_an_absent_file_is_no_refusal (void **state)
{
    struct lab *lab = *state;
    struct buf text = { 0 };
    assert_fails (fs_read (lab->root, "none", 10, &text, &err), E_IO_001);
    assert_fails (fs_read (lab->root, "none/none", 10, &text, &err), E_IO_001);
    assert_nothing_latched (lab);
    buf_free (&text);
}

static void
test_exact_modes_ignore_the_umask (void **state)
{
    struct lab *lab = *state;
    mode_t old = umask (0777);
    struct stat st;
    assert_succeeds (fs_make_dirs (lab->root, "d", 0700, true, &err));
    assert_succeeds (fs_write (lab->root, "f", "x", 1, 0640, true, &err));
    umask (old);
    assert_true (fs_exists (lab->root, "d", &st));
    assert_int_equal (st.st_mode & 07777, 0700);
    assert_true (fs_exists (lab->root, "f", &st));
    assert_int_equal (st.st_mode & 07777, 0640);
}

static void
test_a_full_disk_leaves_the_old_file_and_no_temp (void **state)
{
    struct lab *lab = *state;
    char path[PATH_MAX];
    at (lab, "d", path);
    assert_succeeds (fs_make_dirs (lab->root, "d", 0755, false, &err));
    assert_succeeds (fs_write (lab->root, "d/f", "old", 3, 0644, false, &err));
    int dir = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* A name so long that the temp beside it cannot be made stands for a disk that refuses. */
    char name[256];
    memset (name, 'n', 250);
    name[250] = '\0';
    assert_fails (fs_replace_at (dir, name, "x", 1, 0644, true, &err), E_IO_003);
    DIR *list = fdopendir (dir);
    int entries = 0;
    for (struct dirent *e; (e = readdir (list));)
        entries += e->d_name[0] != '.' || strlen (e->d_name) > 2;
    assert_int_equal (entries, 1);
    closedir (list);
}

static void
test_canonical_paths_agree_before_and_after_the_directory_exists (void **state)
{
    struct lab *lab = *state;
    char path[PATH_MAX];
    assert_succeeds (fs_make_dirs (lab->root, "real", 0755, false, &err));
    link_to (lab, "real", "alias");
    at (lab, "alias/x/../y", path);
    char *before = fs_canonical_path (path, NULL);
    assert_succeeds (fs_make_dirs (lab->root, "real/x", 0755, false, &err));
    assert_succeeds (fs_make_dirs (lab->root, "real/y", 0755, false, &err));
    char *after = fs_canonical_path (path, NULL);
    assert_string_equal (before, after);
    assert_true (str_ends (after, "/real/y"));
    char *above = fs_canonical_path ("/../../etc", NULL);
    assert_string_equal (above, "/etc");
    free (before);
    free (after);
    free (above);
}

static void
test_an_absolute_walk_creates_private_levels_and_follows_no_link (void **state)
{
    struct lab *lab = *state;
    char path[PATH_MAX];
    struct stat st;
    at (lab, "one/two", path);
    int fd = fs_walk_absolute (path, true, NULL);
    assert_true (fd >= 0);
    assert_int_equal (fstat (fd, &st), 0);
    assert_int_equal (st.st_mode & 07777, 0700);
    close (fd);
    link_to (lab, "one", "alias");
    at (lab, "alias/two", path);
    struct mur_error *err = NULL;
    assert_int_equal (fs_walk_absolute (path, true, &err), -1);
    assert_int_equal (err->code, E_IO_003);
    assert_non_null (strstr (err->message, "alias"));
    mur_error_free (err);
}

static void
test_a_path_is_within_itself_its_parents_and_the_root (void **state _unused_)
{
    assert_true (fs_path_is_within ("/a/b", "/a"));
    assert_true (fs_path_is_within ("/a", "/a"));
    assert_true (fs_path_is_within ("/a/b", "/a/"));
    assert_true (fs_path_is_within ("/a", "/"));
    assert_false (fs_path_is_within ("/ab", "/a"));
    assert_false (fs_path_is_within ("/", "/a"));
}

/* As anybody but the super user, whom modes do not hold back. */
static void
test_a_tree_its_owner_may_not_write_to_is_removed (void **state)
{
    char inside[PATH_MAX], above[PATH_MAX], file[PATH_MAX];
    at (*state, "tree", above);
    at (*state, "tree/inside", inside);
    at (*state, "tree/inside/file", file);
    assert_int_equal (chmod (((struct lab *)*state)->path, 0777), 0);
    pid_t pid = fork ();
    if (pid == 0) {
        bool is_made = (getuid () != 0 || setresuid (65534, 65534, 65534) == 0) &&
                       mkdir (above, 0700) == 0 && mkdir (inside, 0700) == 0;
        int fd = open (file, O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
        is_made = is_made && fd >= 0 && chmod (inside, 0555) == 0 && chmod (above, 0555) == 0;
        _exit (is_made && fs_remove_tree_at (AT_FDCWD, above, NULL) ? 0 : 1);
    }
    int status;
    assert_int_equal (waitpid (pid, &status, 0), pid);
    assert_int_equal (status, 0);
    assert_int_equal (access (above, F_OK), -1);
}

int
main (void)
{
#define T(test) cmocka_unit_test_setup_teardown (test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T (test_a_file_is_written_read_appended_and_removed),
        T (test_odd_segments_are_refused_before_any_system_call),
        T (test_links_are_refused_at_every_depth_and_by_every_operation),
        T (test_removing_a_tree_unlinks_the_links_in_it),
        T (test_a_tree_too_deep_to_hold_open_is_removed),
        T (test_removing_a_tree_enters_no_mount),
        T (test_a_second_name_is_refused_for_appending),
        T (test_fifos_sockets_and_directories_are_refused_without_blocking),
        T (test_equal_refusals_are_latched_once),
        T (test_an_absent_file_is_no_refusal),
        T (test_exact_modes_ignore_the_umask),
        T (test_a_full_disk_leaves_the_old_file_and_no_temp),
        T (test_canonical_paths_agree_before_and_after_the_directory_exists),
        T (test_an_absolute_walk_creates_private_levels_and_follows_no_link),
        T (test_a_path_is_within_itself_its_parents_and_the_root),
        T (test_a_tree_its_owner_may_not_write_to_is_removed),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

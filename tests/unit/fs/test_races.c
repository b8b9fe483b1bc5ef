/* SPDX-License-Identifier: Apache-2.0
 *
 * Held roots while somebody swaps what lies at their paths: a directory for a link to another, a
 * file for a link, a second name, a FIFO. Whatever an operation answers, nothing outside the root
 * may change and nothing of it may be read (spec/containment.md 13).
 *
 * MURMUR_RACE_ROUNDS sets how often each operation runs; without it two seconds are given to all of
 * them.
 */
#include "tests/unit/testing.h"

#include "base/clock.h"
#include "fs/paths.h"
#include "fs/root.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define NAMED  "of somebody else\n" /* in a file that also has a name inside */
#define SECRET "of nobody inside\n" /* in a file that only a link leads to */

struct lab {
    char inside[64], outside[64];
    struct fs_root *root;
    atomic_bool is_over;
    atomic_ulong swaps;
};

static void
path_in (const char *dir, const char *name, char out[PATH_MAX])
{
    assert_true (snprintf (out, PATH_MAX, "%s/%s", dir, name) < PATH_MAX);
}

static void
put_file (int dir_fd, const char *name, const char *text)
{
    int fd = openat (dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    assert_true (write (fd, text, strlen (text)) == (ssize_t)strlen (text));
    close (fd);
}

static void
exchange (const char *dir, const char *a, const char *b)
{
    char from[PATH_MAX], to[PATH_MAX];
    path_in (dir, a, from);
    path_in (dir, b, to);
    syscall (SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE);
}

/* What may lie at d and at d/f, made again whenever an operation took it away. Never through the
 * link. */
static void
renew (const struct lab *lab)
{
    char dir[PATH_MAX], path[PATH_MAX], target[PATH_MAX];
    path_in (lab->inside, "d", dir);
    (void)mkdir (dir, 0755);
    path_in (lab->inside, "d-link", path);
    (void)symlink (lab->outside, path);
    int fd = open (dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    put_file (fd, "f", "mine\n");
    path_in (lab->outside, "only-outside", target);
    (void)symlinkat (target, fd, "f-link");
    path_in (lab->outside, "f", target);
    (void)linkat (AT_FDCWD, target, fd, "f-name", 0);
    (void)mkfifoat (fd, "f-fifo", 0644);
    close (fd);
}

static void *
swap (void *arg)
{
    static const char *const others[] = { "f-link", "f-name", "f-fifo" };
    struct lab *lab = arg;
    char dir[PATH_MAX];
    path_in (lab->inside, "d", dir);
    for (unsigned i = 0; ! lab->is_over; i++) {
        exchange (lab->inside, "d", "d-link");
        exchange (lab->inside, "d", "d-link");
        exchange (dir, "f", others[i % ARRAY_LEN (others)]);
        exchange (dir, "f", others[i % ARRAY_LEN (others)]);
        lab->swaps++;
    }
    return NULL;
}

/* --- the operations --- */

static void
do_read (struct lab *lab)
{
    struct buf text = { 0 };
    if (fs_read (lab->root, "d/f", 100, &text, NULL) && text.len)
        assert_string_not_equal (text.data, SECRET);
    buf_free (&text);
    assert_false (fs_read (lab->root, "d/only-outside", 100, &text, NULL));
}

static void
do_write (struct lab *lab)
{
    fs_write (lab->root, "d/f", "mine\n", 5, 0644, true, NULL);
    fs_write (lab->root, "d/new", "mine\n", 5, 0600, true, NULL);
}

static void
do_create (struct lab *lab)
{
    fs_create (lab->root, "d/f", "mine\n", 5, 0644, true, NULL);
}

static void
do_append (struct lab *lab)
{
    fs_append (lab->root, "d/f", "more\n", 5, NULL);
    fs_append (lab->root, "d/log", "more\n", 5, NULL);
}

static void
do_make_dirs (struct lab *lab)
{
    fs_make_dirs (lab->root, "d/e/g", 0700, true, NULL);
}

static void
do_remove (struct lab *lab)
{
    fs_remove (lab->root, "d/f", NULL);
    fs_remove (lab->root, "d", NULL);
    renew (lab);
}

static void
do_remove_dir (struct lab *lab)
{
    fs_remove (lab->root, "d/e", NULL);
}

static void
do_open_dir (struct lab *lab)
{
    struct stat here, there;
    int fd = fs_open_dir (lab->root, "d", NULL);
    if (fd < 0)
        return;
    assert_true (fstat (fd, &here) == 0 && stat (lab->outside, &there) == 0);
    assert_false (here.st_dev == there.st_dev && here.st_ino == there.st_ino);
    close (fd);
}

static void
do_exists (struct lab *lab)
{
    assert_false (fs_exists (lab->root, "d/only-outside", NULL));
}

/* --- nothing outside has changed --- */

static void
assert_file (const struct lab *lab, const char *name, const char *wanted)
{
    char path[PATH_MAX], text[64] = "";
    struct stat st;
    path_in (lab->outside, name, path);
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    assert_true (fd >= 0);
    assert_true (read (fd, text, sizeof text - 1) == (ssize_t)strlen (wanted));
    assert_string_equal (text, wanted);
    assert_int_equal (fstat (fd, &st), 0);
    assert_int_equal (st.st_mode & 07777, 0640);
    close (fd);
}

static void
assert_untouched (const struct lab *lab)
{
    struct stat st;
    unsigned entries = 0;
    assert_file (lab, "f", NAMED);
    assert_file (lab, "only-outside", SECRET);
    DIR *dir = opendir (lab->outside);
    for (struct dirent *e; (e = readdir (dir));)
        entries++;
    closedir (dir);
    assert_int_equal (entries, 4); /* ., .., f, only-outside */
    assert_int_equal (stat (lab->outside, &st), 0);
    assert_int_equal (st.st_mode & 07777, 0750);
}

static void
test_containment_13_no_swap_leads_an_operation_out_of_its_root (void **state _unused_)
{
    static void (*const operations[]) (struct lab *) = {
        do_read,   do_write,      do_create,   do_append, do_make_dirs,
        do_remove, do_remove_dir, do_open_dir, do_exists,
    };
    struct lab lab = { .inside = "/tmp/mur-race-in-XXXXXX", .outside = "/tmp/mur-race-out-XXXXXX" };
    assert_true (mkdtemp (lab.inside) && mkdtemp (lab.outside));
    int out = open (lab.outside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put_file (out, "f", NAMED);
    put_file (out, "only-outside", SECRET);
    assert_int_equal (fchmodat (out, "f", 0640, 0) + fchmodat (out, "only-outside", 0640, 0) +
                          fchmod (out, 0750),
                      0);
    close (out);
    lab.root = fs_root_new (open (lab.inside, O_RDONLY | O_DIRECTORY | O_CLOEXEC), lab.inside, NULL,
                            false);
    renew (&lab);
    pthread_t racer;
    assert_int_equal (pthread_create (&racer, NULL, swap, &lab), 0);

    const char *wanted = getenv ("MURMUR_RACE_ROUNDS");
    unsigned long rounds = wanted ? strtoul (wanted, NULL, 10) : ULONG_MAX, done = 0;
    uint64_t end = wanted ? UINT64_MAX : clock_monotonic_ms () + 2000;
    for (; done < rounds && (done < 10 || clock_monotonic_ms () < end); done++)
        for (size_t i = 0; i < ARRAY_LEN (operations); i++)
            operations[i](&lab);

    lab.is_over = true;
    pthread_join (racer, NULL);
    print_message ("%lu rounds of %zu operations against %lu swaps\n", done, ARRAY_LEN (operations),
                   lab.swaps);
    assert_true (done >= 10 && lab.swaps > 100);
    assert_untouched (&lab);
    fs_root_free (lab.root);
    assert_true (fs_remove_tree_at (AT_FDCWD, lab.inside, NULL));
    assert_true (fs_remove_tree_at (AT_FDCWD, lab.outside, NULL));
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_containment_13_no_swap_leads_an_operation_out_of_its_root),
    };
    return cmocka_run_group_tests_name ("fs/races", tests, NULL, NULL);
}

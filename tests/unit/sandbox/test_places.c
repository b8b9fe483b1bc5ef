/* SPDX-License-Identifier: Apache-2.0
 *
 * Where things lie on a host: mounts, control groups, the disk below a folder
 * (spec/containment.md 14.2).
 */
#include "tests/unit/testing.h"

#include "base/alloc.h"
#include "sandbox/kernel/block_device.h"
#include "sandbox/kernel/cgroup_places.h"
#include "sandbox/kernel/cgroup_sweep.h"
#include "sandbox/kernel/mountinfo.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HYBRID                                                                                     \
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"                          \
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"        \
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"                            \
    "39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"                                \
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"

static void
test_lines_of_mountinfo (void **state _unused_)
{
    char text[] =
        "no mount\n23 1 8:1 / /with\\040blank\\011tab rw master:1 propagate_from:2 - ext4 /dev/sd\\134a rw\n"
        "24 1 0:5 /sub / rw - proc proc\n\n25 1 0:6 / - x\n";
    char *rest = text;
    struct mountinfo_line line;
    assert_true (mountinfo_next (&rest, &line));
    assert_string_equal (line.mount_point, "/with blank\ttab");
    assert_string_equal (line.source, "/dev/sd\\a");
    assert_string_equal (line.super_options, "rw");
    assert_true (mountinfo_next (&rest, &line));
    assert_string_equal (line.mount_point, "/");
    assert_string_equal (line.type, "proc");
    assert_string_equal (line.super_options, "");
    assert_false (mountinfo_next (&rest, &line));
}

static const char *
source_for (const char *path, const char **type)
{
    static char text[1024];
    strcpy (text, "1 0 0:20 / / rw - overlay overlay rw,lowerdir=/x\n"
                  "2 1 0:21 /@ /data rw - btrfs /dev/sda2 rw\n"
                  "3 1 0:22 / /data/ram rw - tmpfs tmpfs rw\n"
                  "4 1 0:23 / /data/ram rw - btrfs /dev/sdb rw\n"
                  "5 1 0:24 / /database rw - nfs host:/x rw\n");
    return covering_source (text, path, type);
}

static void
test_containment_14_the_mount_that_covers_a_path (void **state _unused_)
{
    static const struct {
        const char *path, *source, *type;
    } rows[] = {
        { "/home/u", NULL, "overlay" },        { "/data", "/dev/sda2", "btrfs" },
        { "/data/x/y", "/dev/sda2", "btrfs" }, { "/data/ram/z", "/dev/sdb", "btrfs" },
        { "/database/x", NULL, "nfs" },        { "/datab", NULL, "overlay" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        const char *type, *source = source_for (rows[i].path, &type);
        assert_string_equal (type, rows[i].type);
        if (rows[i].source)
            assert_string_equal (source, rows[i].source);
        else
            assert_null (source);
    }
}

static void
test_containment_14_a_folder_without_a_disk_says_what_it_lies_on (void **state _unused_)
{
    unsigned disk_major, disk_minor;
    _cleanup_free_ char *why = block_device_of ("/proc/no/such/folder", &disk_major, &disk_minor);
    assert_string_equal (why, "/proc lies on proc, which is no block device");
    /* A folder that is not there yet is judged by what is. */
    _cleanup_free_ char *above = block_device_of ("/var", &disk_major, &disk_minor);
    unsigned other_major = 0, other_minor = 0;
    _cleanup_free_ char *below = block_device_of ("/var/not/there/yet", &other_major, &other_minor);
    assert_int_equal (! above, ! below);
    if (! above)
        assert_true (disk_major == other_major && disk_minor == other_minor);
}

static void
parse (const char *own, struct cgroup_places *out)
{
    char mounts[] = HYBRID, lines[512];
    strcpy (lines, own);
    cgroup_places_parse (mounts, lines, out);
}

static void
test_places_of_a_hybrid_host (void **state _unused_)
{
    struct cgroup_places p;
    parse ("8:pids:/p\n4:memory:/api/x:y\n2:cpu,cpuacct:/\n0::/user.slice\n", &p);
    assert_string_equal (p.at[H_MEMORY].mount, "/sys/fs/cgroup/memory");
    assert_string_equal (p.at[H_MEMORY].own, "/api/x:y");
    assert_string_equal (p.at[H_CPU].mount, "/sys/fs/cgroup/cpu");
    assert_string_equal (p.at[H_CPU].own, "/");
    assert_string_equal (p.at[H_UNIFIED].mount, "/sys/fs/cgroup/unified");
    assert_string_equal (p.at[H_UNIFIED].own, "/user.slice");
    assert_null (p.at[H_BLKIO].mount);
    assert_null (p.at[H_FREEZER].own);
    cgroup_places_free (&p);
}

static void
test_a_supervisor_s_leaf_is_no_place_for_groups (void **state _unused_)
{
    static const char *const rows[][2] = {
        { "0::/a/murmur-supervisor\n", "/a" },
        { "0::/murmur-supervisor/murmur-supervisor\n", "/" },
        { "0::/a/murmur-supervisor/b\n", "/a/murmur-supervisor/b" },
        { "0::/a/not-murmur-supervisor\n", "/a/not-murmur-supervisor" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        struct cgroup_places p;
        parse (rows[i][0], &p);
        assert_string_equal (p.at[H_UNIFIED].own, rows[i][1]);
        cgroup_places_free (&p);
    }
}

/* A runtime whose number names nobody, as one of another process namespace, and which lives. */
static void
test_a_sweep_leaves_a_group_that_is_held (void **state _unused_)
{
    pid_t gone = fork ();
    if (gone == 0)
        _exit (0);
    waitpid (gone, NULL, 0);
    char base[] = "/tmp/murmur-sweep-XXXXXX";
    assert_non_null (mkdtemp (base));
    _cleanup_free_ char *held =
        x_asprintf ("%s/murmur-ses_a-%d-0_%lu", base, gone, cgroup_pid_space ());
    _cleanup_free_ char *left =
        x_asprintf ("%s/murmur-ses_b-%d-0_%lu", base, gone, cgroup_pid_space ());
    assert_int_equal (mkdir (held, 0700), 0);
    assert_int_equal (mkdir (left, 0700), 0);
    int fd = open (held, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal (flock (fd, LOCK_SH), 0);
    cgroup_sweep_folder (base);
    assert_int_equal (access (held, F_OK), 0);
    assert_int_equal (access (left, F_OK), -1);
    close (fd);
    cgroup_sweep_folder (base);
    assert_int_equal (access (held, F_OK), -1);
    assert_int_equal (rmdir (base), 0);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_lines_of_mountinfo),
        cmocka_unit_test (test_a_sweep_leaves_a_group_that_is_held),
        cmocka_unit_test (test_containment_14_the_mount_that_covers_a_path),
        cmocka_unit_test (test_containment_14_a_folder_without_a_disk_says_what_it_lies_on),
        cmocka_unit_test (test_places_of_a_hybrid_host),
        cmocka_unit_test (test_a_supervisor_s_leaf_is_no_place_for_groups),
    };
    return cmocka_run_group_tests_name ("sandbox/places", tests, NULL, NULL);
}

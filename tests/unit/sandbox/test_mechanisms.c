/* SPDX-License-Identifier: Apache-2.0
 *
 * The mechanisms one by one: the system-call filter, Landlock plans, ELF closures. Each restriction
 * is applied in a forked child, because nothing lifts it again.
 */
#include "tests/unit/testing.h"

#include "sandbox/kernel/landlock.h"
#include "sandbox/kernel/syscall_filter.h"
#include "sandbox/programs/elf_closure.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static void
test_no_system_call_is_both_allowed_and_denied (void **state _unused_)
{
    for (size_t a = 0; syscall_filter_allowed[a]; a++)
        for (size_t d = 0; syscall_filter_denied[d]; d++)
            assert_string_not_equal (syscall_filter_allowed[a], syscall_filter_denied[d]);
}

/* Runs body in a child after loading the filter; returns its exit status. */
static int
filtered_as (const struct syscall_surface *surface, const pid_t *guarded, int (*body) (void))
{
    struct syscall_filter filter;
    assert_succeeds (syscall_filter_compile (surface, &filter, &err));
    if (guarded)
        assert_succeeds (syscall_filter_guard (&filter, guarded, 2, &err));
    assert_true (filter.len > 0 && filter.len <= 512);
    pid_t pid = fork ();
    if (pid == 0) {
        if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall_filter_load (&filter, NULL) < 0)
            _exit (99);
        _exit (body ());
    }
    int status;
    waitpid (pid, &status, 0);
    syscall_filter_free (&filter);
    return WIFEXITED (status) ? WEXITSTATUS (status) : 128;
}

static int
filtered (bool allows_unix_sockets, int (*body) (void))
{
    const struct syscall_surface surface = { .allows_unix_sockets = allows_unix_sockets,
                                             .has_own_ipc = true,
                                             .has_own_processes = true };
    return filtered_as (&surface, NULL, body);
}

static int
try_socket (int family)
{
    int fd = socket (family, SOCK_STREAM, 0);
    return fd >= 0 ? 0 : errno;
}

static int
socket_families (void)
{
    if (try_socket (AF_INET) != 0 || try_socket (AF_UNIX) != EACCES)
        return 1;
    if (try_socket (AF_NETLINK) != EACCES || try_socket (AF_PACKET) != EACCES)
        return 2;
    if (try_socket (AF_ALG) != EPERM || try_socket (AF_VSOCK) != EPERM)
        return 3;
    int pair[2];
    return socketpair (AF_UNIX, SOCK_STREAM, 0, pair) == 0 ? 0 : 4;
}

static int
unix_sockets_declared (void)
{
    return try_socket (AF_UNIX) == 0 && try_socket (AF_NETLINK) == EACCES ? 0 : 1;
}

static void
test_containment_19_socket_families (void **state _unused_)
{
    assert_int_equal (filtered (false, socket_families), 0);
    assert_int_equal (filtered (true, unix_sockets_declared), 0);
}

static int
denied_calls (void)
{
    static const long numbers[] = {
        SYS_io_uring_setup, SYS_bpf,   SYS_userfaultfd, SYS_perf_event_open, SYS_ptrace,
        SYS_mount,          SYS_setns, SYS_unshare,     SYS_keyctl,          SYS_open_by_handle_at,
        SYS_seccomp,        SYS_kcmp,  SYS_chroot,      SYS_pivot_root,      SYS_process_vm_readv,
    };
    for (size_t i = 0; i < ARRAY_LEN (numbers); i++) {
        errno = 0;
        if (syscall (numbers[i], 0, 0, 0, 0, 0, 0) != -1 || errno != EPERM)
            return (int)i + 1;
    }
    return getpid () > 0 ? 0 : 99;
}

static void
test_calls_outside_the_surface_are_refused (void **state _unused_)
{
    assert_int_equal (filtered (false, denied_calls), 0);
}

static int
tries_two (void)
{
    for (int i = 0; i < 3; i++)
        if (syscall (SYS_unshare, 0) != -1 || errno != EPERM || syscall (SYS_bpf, 0, 0, 0) != -1 ||
            errno != EPERM)
            return 1;
    return 0;
}

/* A child that hands its listener over by sharing descriptors. */
static int
hear (const struct syscall_filter *filter, int *listener, pid_t *pid)
{
    int ready[2];
    assert_int_equal (pipe (ready), 0);
    *pid = (pid_t)syscall (SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    if (*pid == 0) {
        int fd = -1;
        bool is_loaded =
            prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall_filter_load (filter, &fd) == 0;
        (void)! write (ready[1], &fd, sizeof fd);
        _exit (is_loaded ? tries_two () : 99);
    }
    assert_int_equal (read (ready[0], listener, sizeof *listener), sizeof *listener);
    close (ready[0]);
    close (ready[1]);
    return *listener;
}

static void
test_security_refused_calls_are_heard_of_and_stay_refused (void **state _unused_)
{
    const struct syscall_surface surface = { .has_own_ipc = true, .has_own_processes = true };
    struct syscall_filter filter;
    assert_succeeds (syscall_filter_compile (&surface, &filter, &err));
    int listener, status;
    pid_t pid;
    if (filter.is_told && hear (&filter, &listener, &pid) >= 0) {
        uint64_t told = 0;
        struct pollfd p = { .fd = listener, .events = POLLIN };
        while (poll (&p, 1, 10000) > 0 && ! (p.revents & POLLHUP))
            if (! syscall_filter_answer (listener, &told))
                break;
        assert_int_equal (waitpid (pid, &status, 0), pid);
        assert_int_equal (status, 0);
        size_t count = 0;
        for (size_t i = 0; syscall_filter_told[i]; i++)
            if (told >> i & 1) {
                count++;
                assert_true (str_eq (syscall_filter_told[i], "unshare") ||
                             str_eq (syscall_filter_told[i], "bpf"));
            }
        assert_int_equal (count, 2);
        close (listener);
    }
    syscall_filter_free (&filter);
}

/* A told call is one nobody is given, and there is a bit for each. */
static void
test_told_calls_are_not_allowed_ones (void **state _unused_)
{
    size_t count = 0;
    for (; syscall_filter_told[count]; count++)
        for (size_t a = 0; syscall_filter_allowed[a]; a++)
            assert_string_not_equal (syscall_filter_allowed[a], syscall_filter_told[count]);
    assert_in_range (count, 1, 64);
}

/* What a raw call that forks came to in the parent. */
static int
forked (long pid)
{
    if (pid == 0)
        _exit (0);
    int told = pid < 0 ? errno : 0;
    if (pid > 0)
        waitpid ((pid_t)pid, NULL, 0);
    return told;
}

static int
namespaces_by_clone (void)
{
    static const unsigned long flags[] = { CLONE_NEWUSER,  CLONE_NEWNS,  CLONE_NEWNET,
                                           CLONE_NEWPID,   CLONE_NEWIPC, CLONE_NEWUTS,
                                           CLONE_NEWCGROUP };
    for (size_t i = 0; i < ARRAY_LEN (flags); i++)
        if (forked (syscall (SYS_clone, flags[i] | SIGCHLD, 0, 0, 0, 0)) != EPERM ||
            forked (syscall (SYS_clone, flags[i] | CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)) != EPERM)
            return (int)i + 1;
    struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
    if (forked (syscall (SYS_clone3, &args, sizeof args)) != ENOSYS)
        return 20;
    return forked (syscall (SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

static void
test_security_B3_no_flag_of_clone_makes_a_namespace (void **state _unused_)
{
    assert_int_equal (filtered (false, namespaces_by_clone), 0);
}

static int
ipc_and_others (void)
{
    if (syscall (SYS_shmget, 1, 4096, 0) != -1 || errno != EPERM)
        return 1;
    if (syscall (SYS_msgget, 1, 0) != -1 || errno != EPERM)
        return 2;
    if (syscall (SYS_prlimit64, 1, RLIMIT_CORE, &(struct rlimit){ 0 }, NULL) != -1 ||
        errno != EPERM)
        return 3;
    if (setpriority (PRIO_PROCESS, 1, 19) != -1 || errno != EPERM)
        return 4;
    unsigned long mask = 1;
    if (syscall (SYS_sched_setaffinity, 1, sizeof mask, &mask) != -1 || errno != EPERM)
        return 5;
    if (kill (1, 0) != -1 || errno != EPERM || kill (-1, 0) != -1 || errno != EPERM)
        return 6;
    if (syscall (SYS_pidfd_open, 1, 0) != -1 || errno != EPERM)
        return 7;
    if (setxattr ("/", "user.x", "", 0, 0) != -1 || errno != EOPNOTSUPP)
        return 8;
    if (getxattr ("/", "user.x", NULL, 0) != -1 || errno != EOPNOTSUPP)
        return 9;
    struct rlimit limit = { 0 };
    return kill (getpid (), 0) == 0 && setrlimit (RLIMIT_CORE, &limit) == 0 ? 0 : 10;
}

static int
owners_of_files (void)
{
    int pair[2], other = 1, own = getpid ();
    struct f_owner_ex thread = { F_OWNER_TID, 1 };
    if (socketpair (AF_UNIX, SOCK_STREAM, 0, pair) < 0 || fcntl (pair[0], F_SETOWN, own) != 0)
        return 1;
    if (fcntl (pair[0], F_SETOWN, 1) != -1 || errno != EPERM ||
        fcntl (pair[0], F_SETOWN, -1) != -1 || errno != EPERM)
        return 2;
    if (fcntl (pair[0], F_SETOWN_EX, &thread) != -1 || errno != EPERM ||
        ioctl (pair[0], FIOSETOWN, &other) != -1 || errno != EPERM)
        return 3;
    if (syscall (SYS_pidfd_send_signal, pair[0], 0, NULL, 0) != -1 || errno != EPERM)
        return 4;
    return fcntl (pair[0], F_GETOWN) == own && ioctl (pair[0], FIONREAD, &other) == 0 ? 0 : 5;
}

/* Process 1 stands for the runtime. */
static void
test_security_B11_what_no_namespace_closes_the_filter_does (void **state _unused_)
{
    const struct syscall_surface bare = { 0 };
    const pid_t guarded[] = { 1, 1 };
    assert_int_equal (filtered_as (&bare, guarded, ipc_and_others), 0);
    assert_int_equal (filtered_as (&bare, guarded, owners_of_files), 0);
}

static void
test_landlock_confines_to_the_granted_tree (void **state _unused_)
{
    int abi = landlock_kernel_abi ();
    if (abi == 0) {
        print_message ("skipped: no Landlock on this kernel\n");
        skip ();
    }
    char dir[] = "/tmp/mur-ll-XXXXXX";
    assert_non_null (mkdtemp (dir));
    char inside[64];
    snprintf (inside, sizeof inside, "%s/f", dir);
    struct landlock_plan plan;
    landlock_plan_init (&plan, abi);
    assert_succeeds (landlock_plan_add (&plan, dir, LANDLOCK_WRITABLE_TREE, false, true, &err));
    assert_succeeds (
        landlock_plan_add (&plan, "/nowhere", LANDLOCK_READABLE_TREE, false, false, &err));
    assert_fails (landlock_plan_add (&plan, "/nowhere", LANDLOCK_READABLE_TREE, false, true, &err),
                  E_IO_003);
    /* A list right on a file would be EINVAL and lose the whole domain. */
    assert_succeeds (
        landlock_plan_add (&plan, "/dev/null", LANDLOCK_READABLE_TREE, false, true, &err));
    pid_t pid = fork ();
    if (pid == 0) {
        prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (landlock_restrict (&plan) < 0)
            _exit (99);
        int fd = open (inside, O_CREAT | O_WRONLY, 0600);
        if (fd < 0)
            _exit (1);
        if (open ("/etc/passwd", O_RDONLY) >= 0 || errno != EACCES)
            _exit (2);
        if (access ("/etc/passwd", F_OK) != 0)
            _exit (3);
        if (open ("/dev/null", O_RDONLY) < 0 || open ("/dev/null", O_WRONLY) >= 0)
            _exit (4);
        execl ("/bin/true", "true", NULL);
        _exit (errno == EACCES ? 0 : 5);
    }
    int status;
    waitpid (pid, &status, 0);
    assert_int_equal (status, 0);
    landlock_plan_free (&plan);
    unlink (inside);
    rmdir (dir);
}

static void
test_an_elf_closure_holds_interpreter_and_libraries (void **state _unused_)
{
    struct strv files = { 0 };
    elf_closure ("/bin/ls", &files);
    assert_true (files.len >= 3);
    bool has_libc = false, has_loader = false;
    for (size_t i = 0; i < files.len; i++) {
        assert_int_equal (files.items[i][0], '/');
        has_libc |= strstr (files.items[i], "/libc.so") != NULL;
        has_loader |= strstr (files.items[i], "/ld-linux") != NULL;
    }
    assert_true (has_libc && has_loader);
    strv_free (&files);
    elf_closure ("/etc/passwd", &files);
    assert_int_equal (files.len, 1);
    strv_free (&files);
    elf_closure ("/nowhere", &files);
    assert_int_equal (files.len, 0);
    strv_free (&files);
}

static void
test_an_image_closure_takes_the_script_interpreter (void **state _unused_)
{
    static const char script[] = "#! /bin/sh -e\necho\n";
    struct strv files = { 0 };
    elf_image_closure (script, sizeof script - 1, "/work", &files);
    assert_true (files.len >= 2);
    strv_free (&files);
    elf_image_closure (script, sizeof script - 1, "/", &files);
    strv_free (&files);
    elf_image_closure ("\177ELF\2\1", 6, NULL, &files);
    assert_int_equal (files.len, 0);
    strv_free (&files);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_no_system_call_is_both_allowed_and_denied),
        cmocka_unit_test (test_containment_19_socket_families),
        cmocka_unit_test (test_calls_outside_the_surface_are_refused),
        cmocka_unit_test (test_security_refused_calls_are_heard_of_and_stay_refused),
        cmocka_unit_test (test_told_calls_are_not_allowed_ones),
        cmocka_unit_test (test_security_B3_no_flag_of_clone_makes_a_namespace),
        cmocka_unit_test (test_security_B11_what_no_namespace_closes_the_filter_does),
        cmocka_unit_test (test_landlock_confines_to_the_granted_tree),
        cmocka_unit_test (test_an_elf_closure_holds_interpreter_and_libraries),
        cmocka_unit_test (test_an_image_closure_takes_the_script_interpreter),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

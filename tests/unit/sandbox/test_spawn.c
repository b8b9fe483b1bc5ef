/* SPDX-License-Identifier: Apache-2.0
 *
 * The spawn sequence end to end: a real shell under each kind of mounts, with its network
 * namespace, its control group, its filter and its Landlock domain. Skipped, with the reason, where
 * the host cannot.
 */
#include "tests/unit/sandbox/folders.h"

#include "base/clock.h"
#include "base/fdio.h"
#include "fs/paths.h"
#include "fs/replace.h"
#include "fs/root.h"
#include "sandbox/host/probe.h"
#include "sandbox/programs/elf_closure.h"
#include "sandbox/run/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct lab {
    char base[64];
    struct mount_folders folders;
    char *sealed_etc;
    struct arena *arena;
    struct session_namespaces namespaces[2]; /* scoped, sealed: made when first asked for */
    struct syscall_filter filter;
    struct cgroup_scope *scope;
    struct host_probe probe;
};

static void
write_text (const char *dir, const char *name, const char *text)
{
    int fd = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_succeeds (fs_replace_at (fd, name, text, strlen (text), 0644, false, &err));
    close (fd);
}

static int
setup (void **state)
{
    struct lab *lab = x_new0 (struct lab);
    lab->arena = arena_new ();
    strcpy (lab->base, "/var/tmp/mur-spawn-XXXXXX");
    if (! folders_make (lab->arena, lab->base, &lab->folders))
        return -1;
    lab->sealed_etc = folder (lab->arena, lab->base, "etc", NULL);
    lab->folders.sealed_etc = lab->sealed_etc;
    write_text (lab->sealed_etc, "passwd", "root:x:0:0:root:/root:/bin/sh\n");
    write_text (lab->sealed_etc, "group", "root:x:0:\n");
    write_text (lab->folders.runtime.path, "task.md", "the task\n");
    host_probe_run (&lab->probe);
    for (size_t i = 0; i < ARRAY_LEN (lab->namespaces); i++)
        lab->namespaces[i] = (struct session_namespaces)SESSION_NAMESPACES_NONE;
    struct cgroup_limits limits = {
        .memory_bytes = 1 << 28, .pids_max = 32, .cpu_percent = 200, .io_bytes_per_sec = 0
    };
    lab->scope = cgroup_scope_new ("ses_test", &limits, NULL);
    const struct syscall_surface surface = { .has_own_ipc = true, .has_own_processes = true };
    if (! syscall_filter_compile (&surface, &lab->filter, NULL))
        return -1;
    *state = lab;
    return 0;
}

static int
teardown (void **state)
{
    struct lab *lab = *state;
    cgroup_scope_free (lab->scope);
    for (size_t i = 0; i < ARRAY_LEN (lab->namespaces); i++)
        session_namespaces_close (&lab->namespaces[i]);
    syscall_filter_free (&lab->filter);
    bool gone = fs_remove_tree_at (AT_FDCWD, lab->base, NULL);
    arena_free (lab->arena);
    free (lab);
    return gone ? 0 : -1;
}

static bool
can_run (const struct lab *lab, bool is_sealed)
{
    const struct attempt *a = is_sealed ? &lab->probe.sealed : &lab->probe.mounts;
    if (a->state == PROBE_SUCCEEDED && lab->probe.landlock.state == PROBE_SUCCEEDED)
        return true;
    print_message ("skipped: this host cannot do %s\n", is_sealed ? "sealed" : "scoped");
    return false;
}

static void
grant (struct landlock_plan *plan, const char *path, enum landlock_grant g)
{
    assert_succeeds (landlock_plan_add (plan, path, g, false, false, &err));
}

static void
fill_landlock (struct lab *lab, struct landlock_plan *plan, bool is_sealed)
{
    landlock_plan_init (plan, lab->probe.landlock_abi);
    grant (plan, lab->folders.work.path, LANDLOCK_WRITABLE_TREE);
    grant (plan, lab->folders.temp.path, LANDLOCK_WRITABLE_TREE);
    grant (plan, lab->folders.home.path, LANDLOCK_WRITABLE_TREE);
    grant (plan, lab->folders.runtime.path, LANDLOCK_READABLE_TREE);
    grant (plan, lab->folders.records.path, LANDLOCK_READABLE_TREE);
    grant (plan, "/dev/null", LANDLOCK_DEVICE_WRITE);
    static const char *const binaries[] = { "/bin/sh", "/bin/cat", "/bin/ls", "/bin/sleep",
                                            "/bin/readlink" };
    struct strv files = { 0 };
    for (size_t i = 0; i < ARRAY_LEN (binaries); i++)
        elf_closure (binaries[i], &files);
    for (size_t i = 0; i < files.len; i++)
        grant (plan, files.items[i], LANDLOCK_EXECUTABLE_FILE);
    strv_free (&files);
    if (is_sealed) {
        grant (plan, "/usr", LANDLOCK_READABLE_TREE);
        char *passwd = arena_printf (lab->arena, "%s/passwd", lab->sealed_etc);
        grant (plan, passwd, LANDLOCK_READABLE_FILE);
    }
}

static const struct session_namespaces *
namespaces (struct lab *lab, bool is_sealed)
{
    struct session_namespaces *ns = &lab->namespaces[is_sealed];
    if (ns->control_fd >= 0)
        return ns;
    struct mount_plan mounts;
    if (is_sealed)
        assert_succeeds (mount_plan_sealed (&mounts, &lab->folders, lab->arena, &err));
    else
        mount_plan_tmp (&mounts, &lab->folders, lab->arena);
    struct namespace_failure failure;
    const struct namespace_request request = { .mounts = &mounts, .scope = lab->scope };
    uint64_t start = clock_monotonic_us ();
    if (! session_namespaces_make (&request, ns, &failure))
        fail_msg ("%s %s: %s", failure.attempt.step, failure.detail,
                  strerror (failure.attempt.errno_value));
    print_message ("namespaces: %llu us\n", (unsigned long long)(clock_monotonic_us () - start));
    return ns;
}

/* Runs a shell script; its output and exit code. */
static int
run (struct lab *lab, bool is_sealed, const char *script, struct buf *output)
{
    struct landlock_plan landlock;
    const struct session_namespaces *ns = namespaces (lab, is_sealed);
    fill_landlock (lab, &landlock, is_sealed);
    int pipe_fds[2];
    assert_int_equal (pipe2 (pipe_fds, O_CLOEXEC), 0);
    int null_fd = open ("/dev/null", O_RDONLY | O_CLOEXEC);
    char *const argv[] = { "sh", "-c", (char *)(uintptr_t)script, NULL };
    char *const env[] = { "PATH=/usr/bin:/bin", NULL };
    struct spawn_request request = {
        .path = "/bin/sh",
        .argv = argv,
        .env = env,
        .stdin_fd = null_fd,
        .stdout_fd = pipe_fds[1],
        .stderr_fd = pipe_fds[1],
        .limits = { .max_open_files = 64,
                    .max_file_size_bytes = 1 << 20,
                    .cpu_seconds = 10,
                    .memory_bytes = 1ULL << 31 },
        .scope = lab->scope,
        .namespaces = ns,
        .landlock = &landlock,
        .filter = &lab->filter,
    };
    struct spawned child;
    uint64_t start = clock_monotonic_us ();
    assert_succeeds (sandbox_spawn (&request, &child, &err));
    print_message ("%s spawn: %llu us\n", is_sealed ? "sealed" : "scoped",
                   (unsigned long long)(clock_monotonic_us () - start));
    close (pipe_fds[1]);
    close (null_fd);
    assert_true (fd_read_all (pipe_fds[0], 1 << 20, output));
    close (pipe_fds[0]);
    int status;
    waitpid (child.pid, &status, 0);
    close (child.pidfd);
    landlock_plan_free (&landlock);
    return WIFEXITED (status) ? WEXITSTATUS (status) : 128 + WTERMSIG (status);
}

static void
expect (struct lab *lab, bool is_sealed, const char *script, int code, const char *output)
{
    struct buf got = { 0 };
    int exit_code = run (lab, is_sealed, script, &got);
    if (exit_code != code || (output && ! strstr (got.data ? got.data : "", output)))
        fail_msg ("%s: exit %d, output: %s", script, exit_code, got.data ? got.data : "");
    buf_free (&got);
}

static void
test_a_scoped_command_sees_its_folders_and_nothing_else (void **state)
{
    struct lab *lab = *state;
    if (! can_run (lab, false))
        skip ();
    expect (lab, false, "echo hello > f; cat f", 0, "hello");
    expect (lab, false, "cat /etc/passwd", 1, "Permission denied");
    expect (lab, false, "echo x > /tmp/a; cat /tmp/a", 0, "x");
    assert_int_equal (access ("/tmp/a", F_OK), -1);
    char *mapped = arena_printf (lab->arena, "%s/a", lab->folders.temp.path);
    assert_int_equal (access (mapped, F_OK), 0);
    char *script = arena_printf (lab->arena, "cat %s/task.md && ! echo x > %s/task.md",
                                 lab->folders.runtime.path, lab->folders.runtime.path);
    expect (lab, false, script, 0, "the task");
    expect (lab, false, "/usr/bin/id", 126, "Permission denied");
    expect (lab, false, "ls -d /root; cat /proc/self/cwd/../../../../etc/shadow", 1, NULL);
}

static void
test_a_sealed_command_has_a_root_of_its_own (void **state)
{
    struct lab *lab = *state;
    if (! can_run (lab, true))
        skip ();
    expect (lab, true, "echo hello > f; cat f", 0, "hello");
    expect (lab, true, "cat /etc/shadow", 1, "No such file");
    expect (lab, true, "cat /etc/passwd", 0, "root:x:0:0:root:/root:/bin/sh");
    expect (lab, true, "echo x > /tmp/a; cat /tmp/a", 0, "x");
    expect (lab, true, "ls -d /root", 2, "No such file");
    expect (lab, true, "cd / && echo x > new", 2, NULL);
    expect (lab, true, "readlink /dev/fd", 0, "/proc/self/fd");
    assert_int_equal (access ("/tmp/a", F_OK), -1);
}

static void
test_limits_reach_the_command_and_only_three_descriptors_do (void **state)
{
    struct lab *lab = *state;
    if (! can_run (lab, false))
        skip ();
    expect (lab, false, "ulimit -n", 0, "64");
    expect (lab, false, "ulimit -c", 0, "0");
    expect (lab, false, ": > /dev/fd/7", 2, NULL);
}

static void
test_the_scope_kills_what_left_its_process_group (void **state)
{
    struct lab *lab = *state;
    if (! can_run (lab, false) || ! lab->scope)
        skip ();
    expect (lab, false, "(trap '' TERM HUP; sleep 600 >/dev/null 2>&1 </dev/null &) ; echo out", 0,
            "out");
    assert_false (cgroup_scope_is_empty (lab->scope));
    cgroup_scope_kill (lab->scope);
    for (int i = 0; i < 2000 && ! cgroup_scope_is_empty (lab->scope); i++)
        usleep (1000);
    assert_true (cgroup_scope_is_empty (lab->scope));
}

static void
test_a_swapped_folder_stops_the_session (void **state)
{
    struct lab *lab = *state;
    if (! can_run (lab, false))
        skip ();
    struct mount_plan mounts;
    lab->folders.temp.ino++;
    mount_plan_tmp (&mounts, &lab->folders, lab->arena);
    const struct namespace_request request = { .mounts = &mounts };
    struct session_namespaces ns;
    struct namespace_failure failure;
    assert_false (session_namespaces_make (&request, &ns, &failure));
    assert_int_equal (failure.attempt.errno_value, ESTALE);
    assert_string_equal (failure.detail, lab->folders.temp.path);
    assert_int_equal (waitpid (-1, NULL, WNOHANG), -1);
}

static void
handle_nothing (int number)
{
    (void)number;
}

struct starter {
    struct lab *lab;
    struct landlock_plan *landlock;
    int null_fd, failures;
};

/* Of every two commands one has no program; what went otherwise is counted. */
static void *
start_many (void *arg)
{
    struct starter *s = arg;
    char *const argv[] = { "sh", "-c", "exit 7", NULL };
    char *const env[] = { NULL };
    for (int i = 0; i < 20; i++) {
        struct spawn_request request = {
            .path = i % 2 ? "/bin/sh" : "/bin/none",
            .argv = argv,
            .env = env,
            .stdin_fd = s->null_fd,
            .stdout_fd = s->null_fd,
            .stderr_fd = s->null_fd,
            .limits = { .max_open_files = 64, .max_file_size_bytes = 1, .cpu_seconds = 10 },
            .scope = s->lab->scope,
            .namespaces = &s->lab->namespaces[0],
            .landlock = s->landlock,
            .filter = &s->lab->filter,
        };
        struct spawned child;
        struct mur_error *caught = NULL;
        int status = 0;
        bool is_started = sandbox_spawn (&request, &child, &caught);
        bool has_run = is_started && waitpid (child.pid, &status, 0) == child.pid &&
                       WIFEXITED (status) && WEXITSTATUS (status) == 7;
        s->failures += i % 2 ? ! has_run : is_started || ! strstr (caught->message, "/bin/none");
        if (is_started)
            close (child.pidfd);
        mur_error_free (caught);
    }
    return NULL;
}

static void
test_commands_started_at_once_leave_the_runtime_as_it_is (void **state)
{
    struct lab *lab = *state;
    if (! can_run (lab, false))
        skip ();
    struct landlock_plan landlock;
    (void)namespaces (lab, false);
    fill_landlock (lab, &landlock, false);
    const struct sigaction wanted = { .sa_handler = handle_nothing };
    struct sigaction handler;
    sigset_t before = { 0 }, after = { 0 };
    sigaction (SIGUSR1, &wanted, NULL);
    pthread_sigmask (SIG_SETMASK, NULL, &before);
    char *cwd = getcwd (NULL, 0);
    int null_fd = open ("/dev/null", O_RDWR | O_CLOEXEC);
    struct starter starters[3];
    pthread_t threads[ARRAY_LEN (starters)];
    for (size_t i = 0; i < ARRAY_LEN (starters); i++) {
        starters[i] = (struct starter){ lab, &landlock, null_fd, 0 };
        assert_int_equal (pthread_create (&threads[i], NULL, start_many, &starters[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN (starters); i++) {
        pthread_join (threads[i], NULL);
        assert_int_equal (starters[i].failures, 0);
    }
    sigaction (SIGUSR1, NULL, &handler);
    pthread_sigmask (SIG_SETMASK, NULL, &after);
    char *cwd_after = getcwd (NULL, 0);
    assert_ptr_equal (handler.sa_handler, handle_nothing);
    assert_memory_equal (&before, &after, sizeof before);
    assert_string_equal (cwd, cwd_after);
    assert_true (waitpid (-1, NULL, WNOHANG) <= 0); /* the namespaces' own init goes on */
    signal (SIGUSR1, SIG_DFL);
    free (cwd);
    free (cwd_after);
    close (null_fd);
    landlock_plan_free (&landlock);
}

int
main (void)
{
#define T(test) cmocka_unit_test_setup_teardown (test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T (test_a_scoped_command_sees_its_folders_and_nothing_else),
        T (test_a_sealed_command_has_a_root_of_its_own),
        T (test_limits_reach_the_command_and_only_three_descriptors_do),
        T (test_the_scope_kills_what_left_its_process_group),
        T (test_a_swapped_folder_stops_the_session),
        T (test_commands_started_at_once_leave_the_runtime_as_it_is),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

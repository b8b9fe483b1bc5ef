/* SPDX-License-Identifier: Apache-2.0
 *
 * The supervisor with real commands: output, leftovers, background, stopping, many at once.
 */
#include "fs/paths.h"
#include "tests/unit/sandbox/folders.h"

#include "base/clock.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "sandbox/run/command.h"
#include "sandbox/run/command_log.h"
#include "sandbox/run/commands.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct lab {
    char base[64];
    struct arena *arena;
    struct host_probe probe;
    struct confinement_spec spec;
    struct allow_list network;
    struct confinement *confinement;
    struct fs_root *records;
    struct commands *commands;
};

static int
setup (void **state)
{
    static const char *const allow[] = { "sh", "cat", "sleep", "head", "setsid", NULL };
    struct lab *lab = x_new0 (struct lab);
    lab->arena = arena_new ();
    strcpy (lab->base, "/var/tmp/mur-cmd-XXXXXX");
    if (! folders_make (lab->arena, lab->base, &lab->spec.folders))
        return -1;
    host_probe_run (&lab->probe);
    const struct mount_folders *f = &lab->spec.folders;
    lab->spec.session_id = "ses_test";
    lab->spec.probe = &lab->probe;
    lab->spec.tier =
        lab->probe.landlock.state == PROBE_SUCCEEDED ? CONFINEMENT_LANDLOCK : CONFINEMENT_SECCOMP;
    lab->spec.shell_allow = allow;
    lab->spec.path = "/usr/bin:/bin";
    lab->spec.network = &lab->network;
    lab->spec.cgroup_is_optional = true;
    lab->spec.cgroup =
        (struct cgroup_limits){ .memory_bytes = 1 << 28, .pids_max = 256, .cpu_percent = 400 };
    lab->spec.limits = (struct spawn_limits){ .max_processes = 256,
                                              .max_open_files = 64,
                                              .max_file_size_bytes = 1 << 24,
                                              .cpu_seconds = 60,
                                              .memory_bytes = 1ULL << 31 };
    if (lab->probe.network.state == PROBE_SUCCEEDED)
        lab->confinement = confinement_new (&lab->spec, NULL);
    lab->records = fs_root_new (open (f->records.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                f->records.path, NULL, true);
    if (lab->confinement)
        lab->commands = commands_new (lab->confinement, lab->records);
    *state = lab;
    return 0;
}

static int
teardown (void **state)
{
    struct lab *lab = *state;
    commands_free (lab->commands);
    confinement_free (lab->confinement);
    fs_root_free (lab->records);
    bool gone = fs_remove_tree_at (AT_FDCWD, lab->base, NULL);
    arena_free (lab->arena);
    free (lab);
    return gone ? 0 : -1;
}

static void
need_sandbox (const struct lab *lab)
{
    if (lab->commands)
        return;
    print_message ("skipped: this host cannot confine a command\n");
    skip ();
}

static struct command *
start (struct lab *lab, const char *script, const char *input)
{
    char *const argv[] = { "sh", "-c", (char *)(uintptr_t)script, NULL };
    char *const env[] = { "PATH=/usr/bin:/bin", NULL };
    const struct command_start s = {
        .path = exec_allowlist_find (confinement_allowlist (lab->confinement), "sh")->path,
        .argv = argv,
        .env = env,
        .line = script,
        .input = input,
        .input_len = input ? strlen (input) : 0
    };
    struct mur_error *err = NULL;
    struct command *c = command_start (lab->commands, &s, &err);
    if (! c)
        fail_msg ("%s", err->message);
    return c;
}

static void
test_output_and_exit_code_come_back (void **state)
{
    struct lab *lab = *state;
    need_sandbox (lab);
    struct command *c = start (lab, "echo out; echo err >&2; cat; exit 3", "from stdin");
    assert_true (command_wait (c, -1, NULL));
    struct command_result r = command_look (c);
    assert_int_equal (r.state, COMMAND_EXITED);
    assert_int_equal (r.exit_code, 3);
    assert_string_equal (r.out.kept.data, "out\nfrom stdin");
    assert_string_equal (r.err.kept.data, "err\n");
    assert_int_equal (r.leftover, LEFTOVER_NONE);
    command_unref (c);
}

static void
test_large_output_is_cut_in_memory_and_whole_in_the_log (void **state)
{
    struct lab *lab = *state;
    need_sandbox (lab);
    struct command *c = start (lab, "head -c 3000000 /dev/zero; echo end >&2", NULL);
    assert_true (command_wait (c, -1, NULL));
    struct command_result r = command_look (c);
    assert_int_equal (r.out.kept.len, COMMAND_KEPT_BYTES);
    assert_int_equal (r.out.total_bytes, 3000000);
    char *name = command_write_log (c, NULL);
    assert_non_null (name);
    struct buf log = { 0 };
    assert_succeeds (fs_read (lab->records, name, 4000000, &log, &err));
    assert_true (log.len > 3000000);
    assert_memory_equal (log.data, "Command: head -c", 16);
    assert_memory_equal (log.data + log.len - 12, "Stderr:\nend\n", 12);
    buf_free (&log);
    free (name);
    command_unref (c);
}

static void
test_containment_36_a_holder_of_the_pipe_is_killed_and_noted (void **state)
{
    struct lab *lab = *state;
    need_sandbox (lab);
    uint64_t began = clock_monotonic_ms ();
    struct command *c = start (lab, "sleep 600 & echo hi", NULL);
    assert_true (command_wait (c, -1, NULL));
    struct command_result r = command_look (c);
    uint64_t took = clock_monotonic_ms () - began;
    assert_true (took >= 900 && took < 10000);
    assert_string_equal (r.out.kept.data, "hi\n");
    assert_int_equal (r.leftover, LEFTOVER_KILLED);
    command_unref (c);
    c = start (lab, "setsid sleep 600 & echo hi", NULL);
    assert_true (command_wait (c, -1, NULL));
    assert_int_equal (command_look (c).leftover, LEFTOVER_ESCAPED);
    command_unref (c);
}

static void
test_a_silent_background_process_is_left_alone (void **state)
{
    struct lab *lab = *state;
    need_sandbox (lab);
    struct command *c = start (lab, "sleep 600 >/dev/null 2>&1 & echo hi", NULL);
    assert_true (command_wait (c, -1, NULL));
    assert_int_equal (command_look (c).leftover, LEFTOVER_NONE);
    assert_true (command_look (c).duration_ms < 900);
    command_unref (c);
}

static void
test_a_command_past_its_grace_goes_on_in_the_background (void **state)
{
    struct lab *lab = *state;
    need_sandbox (lab);
    struct command *c = start (lab, "echo before; sleep 1; echo after; exit 7", NULL);
    assert_false (command_wait (c, 0, NULL));
    struct id id = id_new ("wrk_");
    const char *work_id = id.text;
    assert_succeeds (command_detach (c, work_id, &err));
    assert_true (command_wait (c, 20000, NULL));
    struct command_result r = command_look (c);
    assert_int_equal (r.exit_code, 7);
    char *name = x_asprintf ("logs/%s.log", work_id);
    struct buf log = { 0 };
    assert_succeeds (fs_read (lab->records, name, 10000, &log, &err));
    assert_non_null (strstr (log.data, "Command: echo before"));
    assert_non_null (strstr (log.data, "before\nafter\n\nExit code: 7\n"));
    assert_int_equal (command_log_bytes (c), log.len);
    uint64_t bytes;
    char *tail = command_tail (c, &bytes);
    assert_string_equal (tail, "before\nafter\n");
    assert_int_equal (bytes, 13);
    free (tail);
    free (name);
    buf_free (&log);
    command_unref (c);
}

/* Control groups whose name starts with <prefix>, in every hierarchy. */
static size_t
count_groups (const char *prefix)
{
    char command[256];
    snprintf (command, sizeof command,
              "find /sys/fs/cgroup -maxdepth 6 -type d -name '%s*' 2>/dev/null | wc -l", prefix);
    FILE *f = popen (command, "r");
    size_t count = 0;
    assert_int_equal (fscanf (f, "%zu", &count), 1);
    pclose (f);
    return count;
}

static void
test_stop_ends_a_command_that_ignores_sigterm (void **state)
{
    struct lab *lab = *state;
    need_sandbox (lab);
    struct command *c = start (lab, "trap '' TERM; echo ready; while :; do sleep 1; done", NULL);
    while (command_look (c).out.total_bytes == 0)
        assert_false (command_wait (c, 10, NULL));
    assert_true (command_stop (c));
    struct command_result r = command_look (c);
    assert_int_equal (r.exit_code, 128 + 9);
    assert_true (r.was_stopped);
    command_unref (c);
}

static void
test_a_cancel_ends_the_wait_and_not_the_command (void **state)
{
    struct lab *lab = *state;
    need_sandbox (lab);
    struct cancel *cancel = cancel_new ();
    struct command *c = start (lab, "sleep 600", NULL);
    cancel_raise (cancel);
    assert_false (command_wait (c, -1, cancel));
    assert_int_equal (command_look (c).state, COMMAND_RUNNING);
    command_kill (c);
    assert_true (command_wait (c, 10000, NULL));
    assert_int_equal (command_look (c).exit_code, 128 + 9);
    command_unref (c);
    cancel_unref (cancel);
}

/* Runs a whole runtime of its own in a child, kills that with SIGKILL, and looks whether its
 * command lives on. */
static void
test_containment_35_a_killed_runtime_leaves_nothing (void **state)
{
    struct lab *lab = *state;
    need_sandbox (lab);
    if (! confinement_scope (lab->confinement)) {
        print_message ("skipped: no control group here\n");
        skip ();
    }
    int told[2];
    assert_int_equal (pipe2 (told, O_CLOEXEC), 0);
    pid_t runtime = fork ();
    if (runtime == 0) {
        lab->confinement = confinement_new (&lab->spec, NULL);
        lab->commands = commands_new (lab->confinement, lab->records);
        struct command *c =
            start (lab, "(setsid sleep 600 >/dev/null 2>&1 </dev/null &) ; echo up", NULL);
        command_wait (c, -1, NULL);
        ssize_t n _unused_ = write (told[1], "x", 1);
        for (;;)
            pause ();
    }
    close (told[1]);
    char byte;
    assert_int_equal (read (told[0], &byte, 1), 1);
    close (told[0]);
    char pattern[64];
    snprintf (pattern, sizeof pattern, "murmur-ses_test-%d-", runtime);
    assert_true (count_groups (pattern) > 0);
    kill (runtime, SIGKILL);
    waitpid (runtime, NULL, 0);
    uint64_t end = clock_monotonic_ms () + 5000;
    while (count_groups (pattern) && clock_monotonic_ms () < end)
        usleep (10000);
    assert_int_equal (count_groups (pattern),
                      0); /* a group goes only when its last process has gone */
}

static size_t
open_descriptors (void)
{
    size_t count = 0;
    DIR *dir = opendir ("/proc/self/fd");
    while (readdir (dir))
        count++;
    closedir (dir);
    return count;
}

static void
test_many_commands_leak_nothing (void **state)
{
    struct lab *lab = *state;
    need_sandbox (lab);
    struct command *first = start (lab, "true", NULL);
    assert_true (command_wait (first, -1, NULL));
    command_unref (first);
    size_t before = open_descriptors ();
    for (int i = 0; i < 100; i++) {
        struct command *c = start (lab, "true", NULL);
        assert_true (command_wait (c, -1, NULL));
        assert_int_equal (command_look (c).exit_code, 0);
        command_unref (c);
    }
    struct command *many[32];
    for (size_t i = 0; i < ARRAY_LEN (many); i++)
        many[i] = start (lab, "head -c 1000000 /dev/zero", NULL);
    for (size_t i = 0; i < ARRAY_LEN (many); i++) {
        assert_true (command_wait (many[i], -1, NULL));
        assert_int_equal (command_look (many[i]).out.total_bytes, 1000000);
        command_unref (many[i]);
    }
    assert_int_equal (open_descriptors (), before);
}

int
main (void)
{
#define T(test) cmocka_unit_test_setup_teardown (test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T (test_output_and_exit_code_come_back),
        T (test_large_output_is_cut_in_memory_and_whole_in_the_log),
        T (test_containment_36_a_holder_of_the_pipe_is_killed_and_noted),
        T (test_a_silent_background_process_is_left_alone),
        T (test_a_command_past_its_grace_goes_on_in_the_background),
        T (test_stop_ends_a_command_that_ignores_sigterm),
        T (test_a_cancel_ends_the_wait_and_not_the_command),
        T (test_containment_35_a_killed_runtime_leaves_nothing),
        T (test_many_commands_leak_nothing),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

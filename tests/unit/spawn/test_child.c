/* SPDX-License-Identifier: Apache-2.0
 *
 * Launching and ending children through the public header, with a script in place of `mur`: what it
 * is given, what is believed of its answer, how it ends (spec/spawn.md A5-A15).
 *
 * Every test ends with no child of this process left, not even a zombie.
 */
#include "tests/unit/testing.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "murmur/child.h"
#include "spawn/child/work_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define APPROVAL "msa1.the-approval.x"

/* It notes what it was given in its work folder, then plays a part. */
static const char script[] =
    "#!/bin/sh\n"
    "IFS= read -r line; printf %s \"$line\" >grant; read -r more && echo more >>grant\n"
    "cat /proc/$$/environ >environ; printf '%s\\n' \"$0\" \"$@\" >argv; pwd -P >cwd\n"
    "ls -l /proc/$$/fd >fds; readlink /proc/$$/fd/$MURMUR_SPAWNER_LIFELINE >lifeline\n"
    "grep '^flags' /proc/$$/fdinfo/$MURMUR_SPAWNER_LIFELINE >>lifeline; echo $$ >pid\n"
    "mkdir -p $HOME/.murmur/records/w/ses_1\n"
    "ready () { echo '{\"session_id\":\"ses_1\",\"url\":\"localhost:1\",'"
    "'\"tokens\":{\"operator\":\"mdt1.t\"},\"formation_id\":\"frm_bad\",'"
    "'\"records_dir\":\"'$HOME'/.murmur/records/w/'$1'\"}'; }\n"
    "case $PART in\n"
    "ready) ready ses_1; exec sleep 300;;\n"
    "misreports) echo '{\"session_id\":\"ses_misreported\",\"url\":\"\","
    "\"records_dir\":\"/tmp/ses_misreported\"}'; exec sleep 300;;\n"
    "climbs) ready ../w/ses_1; exec sleep 300;;\n"
    "other) ready ses_2; exec sleep 300;;\n"
    "nothing) echo '{\"session_id\":\"ses_1\"}'; exec sleep 300;;\n"
    "nameless) echo '{\"url\":\"\"}'; exec sleep 300;;\n"
    "babbles) echo hello; exec sleep 300;;\n"
    "silent) exec sleep 300;;\n"
    "rambles) printf '{\"session_id\":\"s\",\"records_dir\":\"/%0900000d\"}\\n' 1; exec sleep "
    "300;;\n"
    "shouts) i=1; while [ $i -le 20 ]; do printf '%0100000d\\n' $i >&2; i=$((i+1)); done; exit "
    "3;;\n"
    "fails) i=1; while [ $i -le 30 ]; do echo \"line $i\" >&2; i=$((i+1)); done; exit 3;;\n"
    "ends) ready ses_1; exit 4;;\n"
    "stubborn) trap '' TERM; ready ses_1; exec sleep 300;;\n"
    "seven) trap 'exit 7' TERM; ready ses_1; while :; do sleep 0.02; done;;\n"
    "chatty) ready ses_1; i=0; while [ $i -lt 3000 ]; do\n"
    "  echo \"a line of some length, number $i\"; i=$((i+1)); done >&2; exit 0;;\n"
    "esac\n";

static char root[] = "/tmp/murmur-child-XXXXXX";
static char *records, *program;

static int
make_world (void **state _unused_)
{
    if (! mkdtemp (root))
        return -1;
    records = x_asprintf ("%s/parent", root);
    program = x_asprintf ("%s/mur", root);
    setenv ("HOME", root, 1);
    setenv ("MURMUR_MUR_BINARY", program, 1);
    signal (SIGPIPE, SIG_IGN);
    _cleanup_close_ int fd = open (program, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    return mkdir (records, 0755) == 0 && fd_write_all (fd, script, sizeof script - 1) ? 0 : -1;
}

static int
remove_world (void **state _unused_)
{
    free (records);
    free (program);
    return fs_remove_tree_at (AT_FDCWD, root, NULL) ? 0 : -1;
}

static int
no_child_is_left (void **state _unused_)
{
    return waitpid (-1, NULL, WNOHANG) < 0 && errno == ECHILD ? 0 : -1;
}

static const char *const passed_on[] = { "PART", NULL };

static struct mur_child_launch
launch_of (const char *part)
{
    setenv ("PART", part, 1);
    return (struct mur_child_launch){ .approval = APPROVAL,
                                      .capsule = "local/worker",
                                      .version = "0.1.0",
                                      .parent_records_dir = records,
                                      .roost_url = "http://127.0.0.1:7700",
                                      .env_allow = passed_on };
}

static struct mur_child *
launched (const struct mur_child_launch *l)
{
    struct mur_error *err = NULL;
    struct mur_child *c = mur_child_launch (l, &err);
    if (! c)
        fail_msg ("%s", err->message);
    return c;
}

static void
expect_refusal (const struct mur_child_launch *l, const char *part)
{
    struct mur_error *err = NULL;
    assert_null (mur_child_launch (l, &err));
    if (! strstr (err->message, part))
        fail_msg ("\"%s\" does not say \"%s\"", err->message, part);
    assert_null (strstr (err->message, APPROVAL));
    mur_error_free (err);
    assert_int_equal (no_child_is_left (NULL), 0);
}

/* What it noted. */
static char *
noted (const struct mur_child *c, const char *name)
{
    struct buf text = { 0 };
    _cleanup_close_ int fd = openat (mur_child_workdir_fd (c), name, O_RDONLY | O_CLOEXEC);
    assert_true (fd_read_all (fd, 1 << 20, &text));
    return buf_steal (&text);
}

static size_t
occurrences_of (const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr (at, part)); at++)
        count++;
    return count;
}

static void
test_a_child_is_given_its_approval_and_nothing_more (void **state _unused_)
{
    struct mur_child_launch l = launch_of ("ready");
    l.inherited_deadline_ms = 1700000000123;
    struct mur_child *c = launched (&l);
    struct stat st;
    assert_string_equal (mur_child_session_id (c), "ses_1");
    assert_string_equal (mur_child_url (c), "http://localhost:1");
    assert_string_equal (mur_child_door_token (c), "mdt1.t");
    assert_null (mur_child_formation_id (c)); /* malformed is none, not an error */
    assert_int_equal (fstat (mur_child_records_fd (c), &st), 0);
    assert_int_equal (fstat (mur_child_workdir_fd (c), &st), 0);
    assert_int_equal (st.st_mode & 07777, 0700);

    _cleanup_free_ char *grant = noted (c, "grant"), *argv = noted (c, "argv");
    _cleanup_free_ char *cwd = noted (c, "cwd");
    assert_string_equal (grant, APPROVAL);
    _cleanup_free_ char *expected = x_asprintf (
        "%s\nrun\n--capsule\nlocal/worker\n--capsule-version\n0.1.0\n--workdir\n%s\n"
        "--workdir-identity\n%llu:%llu\n--json\n--readiness-tokens\n--no-env-file\n"
        "--spawn-grant-stdin\n--inherited-deadline\n1700000000123\n--contained-launch\n",
        program, mur_child_workdir (c), (unsigned long long)st.st_dev,
        (unsigned long long)st.st_ino);
    assert_string_equal (argv, expected);
    assert_memory_equal (cwd, mur_child_workdir (c), strlen (mur_child_workdir (c)));
    mur_child_free (c);
}

static void
test_spawn_S7_the_same_capsule_twice_has_two_folders (void **state _unused_)
{
    struct mur_child_launch l = launch_of ("ready");
    struct mur_child *one = launched (&l), *two = launched (&l);
    const char *const paths[] = { mur_child_workdir (one), mur_child_workdir (two) };
    _cleanup_free_ char *prefix = x_asprintf ("%s/children/worker-", records);
    assert_string_not_equal (paths[0], paths[1]);
    for (size_t i = 0; i < ARRAY_LEN (paths); i++) {
        assert_memory_equal (paths[i], prefix, strlen (prefix));
        assert_int_equal (strspn (paths[i] + strlen (prefix), "0123456789abcdef"), 16);
        assert_int_equal (strlen (paths[i]), strlen (prefix) + 16);
    }
    struct stat st;
    _cleanup_free_ char *children = x_asprintf ("%s/children", records);
    assert_int_equal (stat (children, &st), 0);
    assert_int_equal (st.st_mode & 07777, 0700);
    mur_child_free (one);
    mur_child_free (two);
}

static void
test_spawn_S12_a_folders_name_is_never_the_same (void **state _unused_)
{
    _cleanup_free_ char *one = work_folder_path ("/r", "local/worker");
    _cleanup_free_ char *two = work_folder_path ("/r", "local/worker");
    assert_string_not_equal (one, two);
    assert_memory_equal (one, "/r/children/worker-", 19);
    assert_int_equal (strspn (one + 19, "0123456789abcdef"), 16);
}

static void
test_spawn_S8_the_approval_is_in_no_argument_variable_or_file (void **state _unused_)
{
    struct mur_child_launch l = launch_of ("ready");
    struct mur_child *c = launched (&l);
    _cleanup_free_ char *argv = noted (c, "argv");
    assert_null (strstr (argv, APPROVAL));
    for (size_t i = 0; mur_child_argv (c)[i]; i++)
        assert_null (strstr (mur_child_argv (c)[i], APPROVAL));
    struct buf raw = { 0 };
    _cleanup_close_ int fd = openat (mur_child_workdir_fd (c), "environ", O_RDONLY | O_CLOEXEC);
    assert_true (fd_read_all (fd, 1 << 20, &raw));
    assert_null (memmem (raw.data, raw.len, APPROVAL, strlen (APPROVAL)));
    /* What was computed is what arrived, in order. */
    size_t at = 0;
    for (size_t i = 0; mur_child_environment (c)[i]; i++) {
        assert_string_equal (raw.data + at, mur_child_environment (c)[i]);
        at += strlen (raw.data + at) + 1;
    }
    assert_int_equal (at, raw.len);
    buf_free (&raw);
    mur_child_free (c);
}

/* How many of our descriptors are on this pipe. */
static size_t
held_here (const char *pipe_name, int *last)
{
    size_t count = 0;
    for (int fd = 3; fd < 256; fd++) {
        char path[32], target[64] = { 0 };
        snprintf (path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink (path, target, sizeof target - 1) > 0 && str_eq (target, pipe_name)) {
            count++;
            *last = fd;
        }
    }
    return count;
}

static void
test_spawn_S16_one_end_of_the_lifeline_each (void **state _unused_)
{
    struct mur_child_launch l = launch_of ("ready");
    struct mur_child *c = launched (&l), *sibling = launched (&l);
    _cleanup_free_ char *name = noted (c, "lifeline"), *fds = noted (c, "fds");
    _cleanup_free_ char *of_sibling = noted (sibling, "fds");
    char *flags = strchr (name, '\n');
    *flags++ = '\0';
    assert_memory_equal (name, "pipe:[", 6);
    assert_int_equal (strtol (flags + strcspn (flags, "0"), NULL, 8) & O_ACCMODE, O_RDONLY);
    assert_int_equal (occurrences_of (fds, name), 1);
    assert_int_equal (occurrences_of (of_sibling, name), 0);
    int fd = -1;
    assert_int_equal (held_here (name, &fd), 1);
    assert_int_equal (fcntl (fd, F_GETFL) & O_ACCMODE, O_WRONLY);
    assert_true (fcntl (fd, F_GETFD) & FD_CLOEXEC);
    mur_child_end (c);
    assert_int_equal (held_here (name, &fd), 0);
    mur_child_free (c);
    mur_child_free (sibling);
}

static void
test_spawn_S13_S14_a_child_lives_as_long_as_its_handle (void **state _unused_)
{
    struct mur_child_launch l = launch_of ("ready");
    struct mur_child *c = launched (&l);
    pid_t pid = mur_child_pid (c);
    assert_false (mur_child_has_exited (c, NULL));
    assert_false (mur_child_is_being_ended (c));
    assert_int_equal (kill (pid, 0), 0);
    uint64_t begun_ms = clock_monotonic_ms ();
    mur_child_free (c);
    assert_true (clock_monotonic_ms () - begun_ms < 10000);
    assert_int_equal (kill (pid, 0), -1);
    assert_int_equal (errno, ESRCH);
}

static void
test_spawn_S15_records_elsewhere_are_not_believed (void **state _unused_)
{
    struct mur_child_launch l = launch_of ("misreports");
    expect_refusal (&l, "named /tmp/ses_misreported as its records directory");
    l = launch_of ("climbs");
    expect_refusal (&l, "/../w/ses_1 as its records directory");
    l = launch_of ("other");
    expect_refusal (&l, "/w/ses_2 as its records directory");
    l = launch_of ("nothing");
    expect_refusal (&l, "carried no records directory");
}

/* A model reads why: what a child says of itself never floods it. */
static void
test_however_much_a_child_says_the_refusal_is_short (void **state _unused_)
{
    static const struct {
        const char *part;
        size_t most;
    } cases[] = { { "rambles", 8 << 10 }, { "shouts", 96 << 10 } };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct mur_child_launch l = launch_of (cases[i].part);
        struct mur_error *err = NULL;
        assert_null (mur_child_launch (&l, &err));
        assert_true (strlen (err->message) < cases[i].most);
        mur_error_free (err);
    }
}

static void
test_a_line_that_is_no_readiness_line_refuses_the_launch (void **state _unused_)
{
    struct mur_child_launch l = launch_of ("nameless");
    expect_refusal (&l, "session_id");
    l = launch_of ("babbles");
    expect_refusal (&l, "readiness line");
    l = launch_of ("silent");
    l.readiness_timeout_ms = 1000;
    expect_refusal (&l, "not ready within 1 s");
}

static void
test_a_child_that_dies_first_is_quoted (void **state _unused_)
{
    struct mur_error *err = NULL;
    struct mur_child_launch l = launch_of ("fails");
    assert_null (mur_child_launch (&l, &err));
    assert_non_null (strstr (err->message, "exit status 3"));
    assert_non_null (strstr (err->message, "\nline 11\n"));
    assert_null (strstr (err->message, "\nline 10\n"));
    assert_true (str_ends (err->message, "\nline 30"));
    mur_error_free (err);
}

static void
test_a_program_that_cannot_start_leaves_no_folder (void **state _unused_)
{
    struct mur_child_launch l = launch_of ("ready");
    _cleanup_free_ char *elsewhere = x_asprintf ("%s/unused", root);
    _cleanup_free_ char *children = x_asprintf ("%s/children", elsewhere);
    assert_int_equal (mkdir (elsewhere, 0700), 0);
    l.parent_records_dir = elsewhere;
    setenv ("MURMUR_MUR_BINARY", "/nonexistent/mur", 1);
    expect_refusal (&l, "/nonexistent/mur");
    setenv ("MURMUR_MUR_BINARY", program, 1);
    assert_int_equal (rmdir (children), 0); /* empty */
}

static void
test_no_link_is_followed_to_the_folder (void **state _unused_)
{
    struct mur_child_launch l = launch_of ("ready");
    _cleanup_free_ char *elsewhere = x_asprintf ("%s/linked", root);
    _cleanup_free_ char *children = x_asprintf ("%s/children", elsewhere);
    assert_int_equal (mkdir (elsewhere, 0700), 0);
    assert_int_equal (symlink (root, children), 0);
    l.parent_records_dir = elsewhere;
    assert_fails (mur_child_launch (&l, &err), E_RUN_050);
}

static void
wait_for_exit (struct mur_child *c, int *status)
{
    uint64_t until_ms = clock_monotonic_ms () + 20000;
    while (! mur_child_has_exited (c, status)) {
        assert_true (clock_monotonic_ms () < until_ms);
        usleep (2000);
    }
}

static void
test_an_end_of_its_own_is_seen_and_not_ours (void **state _unused_)
{
    struct mur_child_launch l = launch_of ("ends");
    struct mur_child *c = launched (&l);
    int status;
    wait_for_exit (c, &status);
    assert_int_equal (WEXITSTATUS (status), 4);
    mur_child_begin_ending (c); /* must signal nobody */
    assert_false (mur_child_is_being_ended (c));
    mur_child_end (c);
    assert_true (mur_child_has_exited (c, &status));
    assert_int_equal (WEXITSTATUS (status), 4);
    mur_child_free (c);
}

static void
test_a_full_pipe_never_stops_a_child (void **state _unused_)
{
    struct mur_child_launch l = launch_of ("chatty");
    struct mur_child *c = launched (&l);
    int status;
    wait_for_exit (c, &status);
    assert_int_equal (WEXITSTATUS (status), 0);
    _cleanup_free_ char *tail = mur_child_stderr_tail (c);
    assert_int_equal (occurrences_of (tail, "\n"), 19);
    assert_true (str_ends (tail, "number 2999"));
    mur_child_free (c);
}

static void
test_spawn_D6_the_ladder_and_its_shared_grace (void **state _unused_)
{
    struct mur_child_launch l = launch_of ("stubborn");
    struct mur_child *one = launched (&l), *two = launched (&l);
    l = launch_of ("seven");
    struct mur_child *willing = launched (&l);
    struct mur_child *all[] = { one, two, willing };
    int status;
    uint64_t begun_ms = clock_monotonic_ms ();
    for (size_t i = 0; i < ARRAY_LEN (all); i++)
        mur_child_begin_ending (all[i]);
    assert_true (mur_child_is_being_ended (one));
    wait_for_exit (willing, &status);
    assert_int_equal (WEXITSTATUS (status), 7);
    assert_true (clock_monotonic_ms () - begun_ms < 5000);
    for (size_t i = 0; i < ARRAY_LEN (all); i++)
        mur_child_end (all[i]);
    uint64_t took_ms = clock_monotonic_ms () - begun_ms;
    assert_true (took_ms >= 5000);
    assert_true (took_ms < 10000);
    assert_true (mur_child_has_exited (two, &status));
    assert_int_equal (WTERMSIG (status), SIGKILL);
    for (size_t i = 0; i < ARRAY_LEN (all); i++)
        mur_child_free (all[i]);
}

int
main (void)
{
#define TEST(name) cmocka_unit_test_teardown (name, no_child_is_left)
    const struct CMUnitTest tests[] = {
        TEST (test_a_child_is_given_its_approval_and_nothing_more),
        TEST (test_spawn_S7_the_same_capsule_twice_has_two_folders),
        TEST (test_spawn_S12_a_folders_name_is_never_the_same),
        TEST (test_spawn_S8_the_approval_is_in_no_argument_variable_or_file),
        TEST (test_spawn_S16_one_end_of_the_lifeline_each),
        TEST (test_spawn_S13_S14_a_child_lives_as_long_as_its_handle),
        TEST (test_spawn_S15_records_elsewhere_are_not_believed),
        TEST (test_however_much_a_child_says_the_refusal_is_short),
        TEST (test_a_line_that_is_no_readiness_line_refuses_the_launch),
        TEST (test_a_child_that_dies_first_is_quoted),
        TEST (test_a_program_that_cannot_start_leaves_no_folder),
        TEST (test_no_link_is_followed_to_the_folder),
        TEST (test_an_end_of_its_own_is_seen_and_not_ours),
        TEST (test_a_full_pipe_never_stops_a_child),
        TEST (test_spawn_D6_the_ladder_and_its_shared_grace),
    };
    return cmocka_run_group_tests (tests, make_world, remove_world);
}

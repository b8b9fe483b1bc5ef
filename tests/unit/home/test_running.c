/* SPDX-License-Identifier: Apache-2.0
 *
 * Running records: their form, their modes, who is pruned and who never is.
 */
#include "tests/unit/testing.h"

#include "base/buf.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "home/running.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ID_A "ses_0197f0000000700080000000000000aa"
#define ID_B "ses_0197f0000001700080000000000000bb"

static char home[64];

static int
new_home (void **state)
{
    (void)state;
    strcpy (home, "/tmp/test_running.XXXXXX");
    assert_non_null (mkdtemp (home));
    setenv ("HOME", home, 1);
    umask (022);
    return 0;
}

static int
drop_home (void **state)
{
    (void)state;
    _cleanup_close_ int tmp = open ("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_succeeds (fs_remove_tree_at (tmp, strrchr (home, '/') + 1, &err));
    return 0;
}

static char *
path_of (const char *name)
{
    return x_asprintf ("%s/.murmur/running/%s", home, name);
}

static unsigned
mode_of (const char *name)
{
    _cleanup_free_ char *path = path_of (name);
    struct stat st;
    return lstat (path, &st) == 0 ? st.st_mode & 07777 : 0;
}

static void
put_file (const char *name, const char *text)
{
    _cleanup_free_ char *path = path_of (name);
    FILE *f = fopen (path, "w");
    assert_non_null (f);
    fputs (text, f);
    fclose (f);
}

static struct running_record
own_record (const char *id)
{
    struct running_record r = { 0 };
    running_record_fill_self (&r);
    r.session_id = x_strdup (id);
    r.url = x_strdup ("localhost:40123");
    r.capsule_name = x_strdup ("demo");
    r.capsule_version = x_strdup ("0.1.0");
    r.workdir = x_strdup ("/w");
    r.records_dir = x_strdup ("/r");
    return r;
}

static void
write_own (const char *id)
{
    struct running_record r = own_record (id);
    assert_succeeds (running_write (&r, &err));
    running_record_clear (&r);
}

static void
test_door_37_a_public_record_has_exactly_ten_keys_and_closed_modes (void **state)
{
    (void)state;
    write_own (ID_A);
    _cleanup_free_ char *dir = path_of ("");
    chmod (dir, 0755);
    write_own (ID_A);
    assert_int_equal (mode_of (""), 0700);
    assert_int_equal (mode_of (ID_A ".json"), 0600);
    _cleanup_free_ char *path = path_of (ID_A ".json");
    _cleanup_buf_ struct buf text = { 0 };
    assert_succeeds (fs_read_path (path, 65536, &text, &err));
    static const char *const keys[] = { "session_id",    "url",          "pid",
                                        "process_start", "capsule_name", "capsule_version",
                                        "workdir",       "records_dir",  "outlives_launcher",
                                        "started_at" };
    const char *at = text.data;
    for (size_t i = 0; i < ARRAY_LEN (keys); i++) {
        _cleanup_free_ char *mark = x_asprintf ("\n  \"%s\": ", keys[i]);
        at = strstr (at, mark);
        assert_non_null (at);
    }
    int lines = 0;
    for (const char *p = text.data; *p; p++)
        lines += *p == '\n';
    assert_int_equal (lines, 11);
    assert_true (str_ends (text.data, "+00:00\"\n}"));
}

static void
test_what_was_written_is_read_back (void **state)
{
    (void)state;
    struct running_record r = own_record (ID_A);
    r.door_token = secret_new ("mdt1.x.y", 8);
    r.credentials = x_new_array (struct running_credential, 1);
    r.credentials[0] = (struct running_credential){ x_strdup ("dash"), secret_new ("tok", 3) };
    r.credential_count = 1;
    assert_succeeds (running_write (&r, &err));
    running_record_clear (&r);
    write_own (ID_B);
    struct running_scan scan;
    assert_succeeds (running_scan (false, &scan, &err));
    assert_int_equal (scan.len, 2);
    assert_string_equal (scan.entries[0].record.session_id, ID_B); /* newest first */
    const struct running_record *read = &scan.entries[1].record;
    assert_int_equal (scan.entries[1].liveness, RUNNING_HELD);
    assert_int_equal (read->pid, getpid ());
    assert_string_equal (secret_reveal (read->door_token), "mdt1.x.y");
    assert_int_equal (read->credential_count, 1);
    assert_string_equal (read->credentials[0].name, "dash");
    running_scan_free (&scan);
    running_remove (ID_A);
    assert_int_equal (mode_of (ID_A ".json"), 0);
}

static void
test_only_evidence_prunes (void **state)
{
    (void)state;
    write_own (ID_A);
    put_file ("x.json", "{\"half\":");
    put_file ("old.json", "{\"session_id\":\"ses_1\"}");
    put_file ("note.txt", "not ours");
    put_file (".staged.tmp", "{");
    struct running_record stranger = own_record (ID_B); /* a live pid with another start time */
    free (stranger.process_start);
    stranger.process_start = x_strdup ("1");
    assert_succeeds (running_write (&stranger, &err));
    running_record_clear (&stranger);
    _cleanup_secret_ struct secret *token = secret_new ("ctl1.a.b", 8);
    assert_succeeds (running_write_control (ID_B, token, &err));
    assert_int_equal (mode_of (ID_B ".control"), 0600);
    struct running_scan scan;
    assert_succeeds (running_scan (false, &scan, &err));
    assert_int_equal (scan.len, 2);
    assert_int_equal (scan.entries[0].liveness, RUNNING_GONE);
    assert_non_null (scan.entries[0].gone_reason);
    assert_int_equal (scan.unreadable_len, 1);
    assert_int_equal (scan.older_len, 1);
    running_prune (&scan);
    running_scan_free (&scan);
    assert_int_equal (mode_of (ID_B ".json"), 0);
    assert_int_equal (mode_of (ID_B ".control"), 0);
    assert_int_equal (mode_of ("x.json"), 0);
    assert_int_not_equal (mode_of (ID_A ".json"), 0);
    assert_int_not_equal (mode_of ("old.json"), 0);
    assert_int_not_equal (mode_of ("note.txt"), 0);
    assert_int_not_equal (mode_of (".staged.tmp"), 0);
}

static void
test_scanning_creates_nothing_unless_told (void **state)
{
    (void)state;
    struct running_scan scan;
    assert_succeeds (running_scan (false, &scan, &err));
    assert_int_equal (scan.len, 0);
    _cleanup_free_ char *murmur = x_asprintf ("%s/.murmur", home);
    assert_int_equal (access (murmur, F_OK), -1);
    assert_succeeds (running_scan (true, &scan, &err));
    assert_int_equal (mode_of (""), 0700);
    put_file ("a.json", "{}");
    _cleanup_free_ char *dir = path_of ("");
    if (geteuid () != 0) {
        chmod (dir, 0);
        assert_fails (running_scan (false, &scan, &err), E_RUN_028);
        chmod (dir, 0700);
    }
    running_scan_free (&scan);
}

static void
test_liveness_needs_pid_and_start_time (void **state)
{
    (void)state;
    char start[24];
    const char *reason;
    assert_true (process_start_text (getpid (), start));
    assert_int_equal (running_check (getpid (), start, &reason), RUNNING_HELD);
    assert_int_equal (running_check (getpid (), "", &reason), RUNNING_UNVERIFIED);
    assert_int_equal (running_check (getpid (), "1", &reason), RUNNING_GONE);
    assert_int_equal (running_check (0, start, &reason), RUNNING_GONE);
    assert_int_equal (running_check (-1, start, &reason), RUNNING_GONE);

    pid_t child = fork ();
    if (child == 0) {
        pause ();
        _exit (0);
    }
    assert_true (process_start_text (child, start));
    enum running_liveness liveness;
    assert_false (running_signal (child, "1", SIGKILL, &liveness));
    assert_int_equal (kill (child, 0), 0);
    assert_true (running_signal (child, start, SIGKILL, &liveness));
    siginfo_t info;
    assert_int_equal (waitid (P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal (running_check (child, start, &reason), RUNNING_GONE); /* a zombie */
    waitpid (child, NULL, 0);
    assert_int_equal (running_check (child, start, &reason), RUNNING_GONE);
}

int
main (void)
{
#define IN_A_HOME(test) cmocka_unit_test_setup_teardown (test, new_home, drop_home)
    const struct CMUnitTest tests[] = {
        IN_A_HOME (test_door_37_a_public_record_has_exactly_ten_keys_and_closed_modes),
        IN_A_HOME (test_what_was_written_is_read_back),
        IN_A_HOME (test_only_evidence_prunes),
        IN_A_HOME (test_scanning_creates_nothing_unless_told),
        IN_A_HOME (test_liveness_needs_pid_and_start_time),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

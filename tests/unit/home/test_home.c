/* SPDX-License-Identifier: Apache-2.0
 *
 * ~/.murmur: where it is, modes, records groups, a session's directories and the sweep of dead
 * ones, conversation records.
 */
#include "tests/unit/testing.h"

#include "base/ids.h"
#include "base/json.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "home/conversations.h"
#include "home/paths.h"
#include "home/session_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

/* Each test has a home of its own below this. */
static char home[64];

static int
new_home (void **state)
{
    (void)state;
    strcpy (home, "/tmp/test_home.XXXXXX");
    assert_non_null (mkdtemp (home));
    setenv ("HOME", home, 1);
    unsetenv ("USERPROFILE");
    umask (022);
    return 0;
}

static int
drop_home (void **state)
{
    (void)state;
    _cleanup_close_ int tmp = open ("/tmp", O_RDONLY | O_DIRECTORY);
    assert_succeeds (fs_remove_tree_at (tmp, strrchr (home, '/') + 1, &err));
    return 0;
}

/* "<home>/<below>". Valid until the fourth next call. */
static const char *
at (const char *below)
{
    static char texts[4][512];
    static unsigned next;
    char *text = texts[next++ % 4];
    snprintf (text, 512, "%s/%s", home, below);
    return text;
}

static unsigned
mode_of (const char *path)
{
    struct stat st;
    return lstat (path, &st) == 0 ? st.st_mode & 07777 : 0;
}

static bool
exists (const char *path)
{
    struct stat st;
    return lstat (path, &st) == 0;
}

static void
write_file (const char *path, const char *text)
{
    _cleanup_fclose_ FILE *f = fopen (path, "w");
    assert_non_null (f);
    fputs (text, f);
}

static char *
read_whole (const char *path)
{
    struct buf text = { 0 };
    assert_succeeds (fs_read_path (path, 1 << 20, &text, &err));
    return buf_steal (&text);
}

/* --- where it is --- */

static void
test_the_home_comes_from_home_else_userprofile (void **state)
{
    (void)state;
    _cleanup_free_ char *path = home_path (NULL);
    assert_string_equal (path, at (".murmur"));
    unsetenv ("HOME");
    setenv ("USERPROFILE", "/profile/", 1);
    _cleanup_free_ char *other = home_path (NULL);
    assert_string_equal (other, "/profile/.murmur");
    unsetenv ("USERPROFILE");
    assert_fails (home_path (&err), E_IO_004);
    setenv ("HOME", "", 1);
    assert_fails (home_path (&err), E_IO_004);
    setenv ("HOME", "relative/home", 1);
    assert_fails (home_path (&err), E_IO_004);
}

static void
test_the_launch_check_creates_nothing_and_names_what_is_wrong (void **state)
{
    (void)state;
    assert_succeeds (home_check_for_launch (&err));
    assert_false (exists (at (".murmur")));
    setenv ("HOME", at ("absent/deeper"), 1);
    assert_succeeds (home_check_for_launch (&err));
    assert_false (exists (at ("absent")));
    setenv ("HOME", home, 1);

    write_file (at (".murmur"), "a file");
    assert_fails (home_check_for_launch (&err), E_IO_004);
    unlink (at (".murmur"));
    mkdir (at (".murmur"), 0700);
    write_file (at (".murmur/records"), "a file");
    assert_fails (home_check_for_launch (&err), E_IO_004);
    unlink (at (".murmur/records"));
    chmod (at (".murmur"), 0500);
    assert_fails (home_check_for_launch (&err), E_IO_004);
    chmod (at (".murmur"), 0700);
    assert_succeeds (home_check_for_launch (&err));
}

/* --- modes --- */

static void
test_levels_are_0700_whatever_the_umask (void **state)
{
    (void)state;
    static const unsigned masks[] = { 0, 022, 0777 };
    for (size_t i = 0; i < ARRAY_LEN (masks); i++) {
        umask (masks[i]);
        char below[32];
        snprintf (below, sizeof (below), "state/store%zu", i);
        _cleanup_close_ int fd = home_open_dir (below, NULL);
        umask (022);
        assert_true (fd >= 0);
        _cleanup_free_ char *path = home_path_below (below, NULL);
        assert_int_equal (mode_of (path), 0700);
        assert_int_equal (mode_of (at (".murmur/state")), 0700);
        assert_int_equal (mode_of (at (".murmur")), 0700);
    }
}

static void
test_older_levels_are_narrowed_and_never_widened (void **state)
{
    (void)state;
    mkdir (at (".murmur"), 0755);
    mkdir (at (".murmur/running"), 0777);
    chmod (at (".murmur/running"), 0577);
    close (home_open_dir ("running", NULL));
    assert_int_equal (mode_of (at (".murmur")), 0700);
    assert_int_equal (mode_of (at (".murmur/running")), 0500);
}

static void
test_readers_create_and_change_nothing (void **state)
{
    (void)state;
    struct mur_error *err = NULL;
    assert_int_equal (home_find_dir ("running", &err), -1);
    assert_null (err);
    assert_false (exists (at (".murmur")));
    mkdir (at (".murmur"), 0755);
    mkdir (at (".murmur/running"), 0755);
    int fd = home_find_dir ("running", &err);
    assert_true (fd >= 0);
    close (fd);
    assert_int_equal (mode_of (at (".murmur/running")), 0755);
}

static void
test_a_link_below_the_home_is_named (void **state)
{
    (void)state;
    mkdir (at (".murmur"), 0700);
    mkdir (at ("elsewhere"), 0700);
    assert_int_equal (symlink (at ("elsewhere"), at (".murmur/state")), 0);
    struct mur_error *caught = NULL;
    assert_int_equal (home_open_dir ("state/notes", &caught), -1);
    assert_int_equal (caught->code, E_IO_003);
    assert_non_null (strstr (caught->message, "state is a symbolic link"));
    mur_error_free (caught);
    assert_false (exists (at ("elsewhere/notes")));
    assert_fails (home_open_dir ("a/../b", &err) >= 0, E_IO_003);
}

/* --- records groups --- */

static void
test_every_spelling_of_a_work_root_is_one_group (void **state)
{
    (void)state;
    mkdir (at ("project"), 0755);
    assert_int_equal (symlink (at ("project"), at ("alias")), 0);
    assert_int_equal (chdir (at ("project")), 0);
    _cleanup_free_ char *plain = home_work_root (NULL, at ("project"), NULL);
    _cleanup_free_ char *relative = home_work_root (NULL, ".", NULL);
    _cleanup_free_ char *linked = home_work_root (at ("alias/workdir"), ".", NULL);
    _cleanup_free_ char *dotted = home_work_root ("../project/./workdir/", ".", NULL);
    assert_string_equal (plain, at ("project/workdir"));
    assert_string_equal (relative, plain);
    assert_string_equal (linked, plain);
    assert_string_equal (dotted, plain);
    _cleanup_free_ char *above = home_work_root ("/../../nowhere-at-all", ".", NULL);
    assert_string_equal (above, "/nowhere-at-all");
    _cleanup_free_ char *group = home_records_group (plain, NULL);
    _cleanup_free_ char *expected = x_asprintf ("%s/.murmur/records%s/project/workdir", home, home);
    assert_string_equal (group, expected);
    assert_int_equal (chdir ("/"), 0);
}

static void
test_only_real_session_directories_are_listed_newest_first (void **state)
{
    (void)state;
    _cleanup_close_ int group = home_open_records_group ("/some/work", NULL);
    assert_true (group >= 0);
    mkdirat (group, "ses_1", 0700);
    mkdirat (group, "ses_3", 0700);
    mkdirat (group, "ses_2", 0700);
    mkdirat (group, "other", 0700);
    assert_int_equal (symlinkat ("ses_1", group, "ses_9"), 0);
    close (openat (group, "ses_8", O_CREAT | O_WRONLY, 0600));
    _cleanup_strv_ struct strv names = { 0 };
    assert_succeeds (home_list_sessions (group, "group", &names, &err));
    _cleanup_free_ char *list = strv_join (&names, " ");
    assert_string_equal (list, "ses_3 ses_2 ses_1");
}

/* --- one session --- */

static void
test_a_session_gets_its_directories_and_leaves_its_records (void **state)
{
    (void)state;
    struct id id = id_new ("ses_");
    struct home_session s;
    umask (077);
    assert_succeeds (home_session_create (&s, id.text, "/some/work", &err));
    umask (022);
    static const char *const inside[] = { "runtime", "sealed-etc", "harness" };
    for (size_t i = 0; i < ARRAY_LEN (inside); i++) {
        _cleanup_free_ char *path = x_asprintf ("%s/%s", s.session_path, inside[i]);
        assert_int_equal (mode_of (path), 0700);
    }
    _cleanup_free_ char *lock = x_asprintf ("%s/.lock", s.session_path);
    assert_int_equal (mode_of (lock), 0600);
    _cleanup_close_ int other = open (lock, O_RDONLY);
    assert_int_equal (flock (other, LOCK_EX | LOCK_NB), -1);
    _cleanup_free_ char *records = x_asprintf ("%s/.murmur/records/some/work/%s", home, id.text);
    assert_string_equal (s.records_path, records);
    _cleanup_free_ char *tmp = x_asprintf ("%s/tmp", records);
    assert_int_equal (mode_of (tmp), 0700);
    _cleanup_free_ char *session_path = x_strdup (s.session_path);
    home_session_end (&s);
    assert_false (exists (session_path));
    assert_true (exists (records));
    home_session_end (&s); /* again is fine */
}

static void
test_a_link_in_the_mirrored_path_refuses_and_creates_nothing (void **state)
{
    (void)state;
    mkdir (at ("target"), 0700);
    close (home_open_dir ("records/some", NULL));
    assert_int_equal (symlink (at ("target"), at (".murmur/records/some/work")), 0);
    struct home_session s;
    struct mur_error *err = NULL;
    assert_false (home_session_create (&s, "ses_x", "/some/work/deep", &err));
    assert_int_equal (err->code, E_IO_003);
    assert_non_null (strstr (err->message, "the component work is a symbolic link"));
    mur_error_free (err);
    assert_int_equal (rmdir (at ("target")), 0); /* still empty */
    assert_int_equal (rmdir (at (".murmur/sessions")), 0);
}

/* Makes sessions/<name>, with a .lock when <has_lock>, both <age_s> old. */
static void
plant_session (const char *name, bool has_lock, int age_s)
{
    _cleanup_close_ int sessions = home_open_dir ("sessions", NULL);
    mkdirat (sessions, name, 0700);
    struct timespec times[2];
    clock_gettime (CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= age_s;
    times[1] = times[0];
    if (has_lock) {
        _cleanup_free_ char *lock = x_asprintf ("%s/.lock", name);
        close (openat (sessions, lock, O_CREAT | O_WRONLY, 0600));
        utimensat (sessions, lock, times, 0);
    }
    utimensat (sessions, name, times, 0);
}

static void
test_the_sweep_removes_dead_sessions_and_no_others (void **state)
{
    (void)state;
    plant_session ("ses_dead", true, 120);
    plant_session ("ses_just_killed", true, 0);
    plant_session ("ses_unlocked", false, 120);
    plant_session ("ses_starting", false, 5);
    plant_session ("ses_live", true, 120);
    _cleanup_close_ int live = open (at (".murmur/sessions/ses_live/.lock"), O_RDONLY);
    assert_int_equal (flock (live, LOCK_EX | LOCK_NB), 0);

    struct home_session s;
    assert_succeeds (home_session_create (&s, "ses_new", "/some/work", &err));

    assert_false (exists (at (".murmur/sessions/ses_dead")));
    assert_false (exists (at (".murmur/sessions/ses_unlocked")));
    assert_false (exists (at (".murmur/sessions/ses_just_killed")));
    assert_true (exists (at (".murmur/sessions/ses_starting")));
    assert_true (exists (at (".murmur/sessions/ses_live")));
    assert_true (exists (at (".murmur/sessions/ses_new")));
    home_session_free (&s);
}

static void
plant_file (const char *dir, const char *name, int age_s)
{
    _cleanup_close_ int fd = home_open_dir (dir, NULL);
    close (openat (fd, name, O_CREAT | O_WRONLY, 0600));
    struct timespec times[2];
    clock_gettime (CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= age_s;
    times[1] = times[0];
    utimensat (fd, name, times, 0);
}

#define TEMPORARY ".a.json.01a22e0a-d9dc-70b3-9e78-b23984ec9dbd.tmp"

static void
test_the_sweep_removes_files_that_never_got_their_name (void **state)
{
    (void)state;
    plant_file ("conversations/a/ctx", TEMPORARY, 120);
    plant_file ("running", TEMPORARY, 2);
    plant_file ("running", ".mine.tmp", 120);
    plant_file ("records/w/ses_1/home", TEMPORARY, 120);
    home_sweep ();
    assert_false (exists (at (".murmur/conversations/a/ctx/" TEMPORARY)));
    assert_true (exists (at (".murmur/running/" TEMPORARY)));
    assert_true (exists (at (".murmur/running/.mine.tmp")));
    assert_true (exists (at (".murmur/records/w/ses_1/home/" TEMPORARY)));
    /* Once an hour, where the file system keeps attributes. */
    if (getxattr (at (".murmur"), HOME_SWEPT_ATTRIBUTE, NULL, 0) < 0)
        return;
    plant_file ("running", TEMPORARY "x" TEMPORARY, 120);
    home_sweep ();
    assert_true (exists (at (".murmur/running/" TEMPORARY "x" TEMPORARY)));
    int64_t before = (int64_t)time (NULL) - 4000;
    assert_int_equal (setxattr (at (".murmur"), HOME_SWEPT_ATTRIBUTE, &before, sizeof before, 0),
                      0);
    home_sweep ();
    assert_false (exists (at (".murmur/running/" TEMPORARY "x" TEMPORARY)));
    /* Elsewhere, when the same folder is written to again. */
    plant_file ("elsewhere", TEMPORARY, 120);
    assert_true (fs_replace_path (at (".murmur/elsewhere/a"), "a", 1, 0600, false, NULL));
    assert_false (exists (at (".murmur/elsewhere/" TEMPORARY)));
}

/* --- conversations --- */

#define M1 "{\"id\":\"msg_1\",\"role\":\"user\",\"content\":\"one\"}"
#define M2 "{ \"role\": \"assistant\",  \"id\":\"msg_2\",\"content\":\"two\" }"
#define M3 "{\"id\":\"msg_3\",\"role\":\"user\",\"content\":\"three\"}"

static void
plant_record (const char *record, const char *context, const char *text)
{
    char below[128];
    snprintf (below, sizeof (below), "conversations/%s/%s", record, context);
    close (home_open_dir (below, NULL));
    char path[256];
    snprintf (path, sizeof (path), ".murmur/%s/conversation.jsonl", below);
    write_file (at (path), text);
}

static void
test_messages_are_objects_with_a_role (void **state)
{
    (void)state;
    plant_record ("bot", "c1", M1 "\nnot json\n[1]\n{\"x\":1}\n" M2 "\n" M3);
    plant_record ("bot", "c2", "");
    plant_record ("other", "c1", M1 "\n");
    struct conversation_files all = { 0 };
    assert_succeeds (conversation_files_read (NULL, NULL, &all, &err));
    assert_int_equal (all.len, 3);
    assert_int_equal (all.items[0].len, 3);
    assert_string_equal (all.items[0].lines[2].id, "msg_3");
    assert_int_equal (all.items[1].len, 0);
    assert_string_equal (all.items[2].record, "other");
    conversation_files_free (&all);
    assert_succeeds (conversation_files_read ("bot", "c1", &all, &err));
    assert_int_equal (all.len, 1);
    conversation_files_free (&all);
}

static void
test_a_cut_keeps_the_bytes_of_what_stays_and_counts_on (void **state)
{
    (void)state;
    plant_record ("bot", "c1", M1 "\n" M2 "\n" M3 "\n");
    const char *path = at (".murmur/conversations/bot/c1/conversation.jsonl");
    struct conversation_files all = { 0 };
    uint64_t dropped;
    assert_succeeds (conversation_files_read (NULL, NULL, &all, &err));
    assert_succeeds (conversation_cut (&all.items[0], 3, &dropped, &err));
    assert_int_equal (dropped, 0);
    assert_succeeds (conversation_cut (&all.items[0], 2, &dropped, &err));
    assert_int_equal (dropped, 1);
    conversation_files_free (&all);
    assert_int_equal (mode_of (path), 0600);
    _cleanup_free_ char *text = read_whole (path);
    assert_true (
        str_starts (text, "{\"type\":\"murmur.record\",\"capsule\":\"bot\",\"created_ms\":"));
    assert_true (str_ends (text, "\n" M2 "\n" M3 "\n"));

    assert_succeeds (conversation_files_read (NULL, NULL, &all, &err));
    assert_succeeds (conversation_cut (&all.items[0], 1, &dropped, &err));
    conversation_files_free (&all);
    assert_succeeds (conversation_files_read (NULL, NULL, &all, &err));
    const json_t *truncated = conversation_truncated (&all.items[0]);
    uint64_t in_all;
    assert_true (json_get_u64 (truncated, "dropped", &in_all));
    assert_int_equal (in_all, 2);
    assert_string_equal (json_get_string (truncated, "oldest_surviving_id"), "msg_3");
    assert_string_equal (json_get_string (truncated, "last_dropped_id"), "msg_2");
    assert_succeeds (conversation_remove (&all.items[0], &err));
    assert_false (exists (at (".murmur/conversations/bot/c1")));
    conversation_files_free (&all);
}

static void
test_a_line_appended_meanwhile_survives_a_cut (void **state)
{
    (void)state;
    plant_record ("bot", "c1", M1 "\n" M2 "\n");
    const char *path = at (".murmur/conversations/bot/c1/conversation.jsonl");
    struct conversation_files all = { 0 };
    uint64_t dropped;
    assert_succeeds (conversation_files_read (NULL, NULL, &all, &err));
    plant_record ("bot", "c1", M1 "\n" M2 "\n" M3 "\n");
    assert_succeeds (conversation_cut (&all.items[0], 1, &dropped, &err));
    _cleanup_free_ char *text = read_whole (path);
    assert_true (str_ends (text, "\n" M2 "\n" M3 "\n"));
    conversation_files_free (&all);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, new_home, drop_home)

int
main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (test_the_home_comes_from_home_else_userprofile),
        TEST (test_the_launch_check_creates_nothing_and_names_what_is_wrong),
        TEST (test_levels_are_0700_whatever_the_umask),
        TEST (test_older_levels_are_narrowed_and_never_widened),
        TEST (test_readers_create_and_change_nothing),
        TEST (test_a_link_below_the_home_is_named),
        TEST (test_every_spelling_of_a_work_root_is_one_group),
        TEST (test_only_real_session_directories_are_listed_newest_first),
        TEST (test_a_session_gets_its_directories_and_leaves_its_records),
        TEST (test_a_link_in_the_mirrored_path_refuses_and_creates_nothing),
        TEST (test_the_sweep_removes_dead_sessions_and_no_others),
        TEST (test_the_sweep_removes_files_that_never_got_their_name),
        TEST (test_messages_are_objects_with_a_role),
        TEST (test_a_cut_keeps_the_bytes_of_what_stays_and_counts_on),
        TEST (test_a_line_appended_meanwhile_survives_a_cut),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace writer: whole lines, in order, each below a node that is already in the file.
 */
#include "tests/unit/testing.h"

#include "base/json.h"
#include "trace/lines/blobs.h"
#include "trace/lines/writer.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir_path[64];
static struct fs_root *records;

static int
set_up (void **state)
{
    (void)state;
    snprintf (dir_path, sizeof (dir_path), "%s/trace-XXXXXX",
              getenv ("TMPDIR") ? getenv ("TMPDIR") : "/tmp");
    if (! mkdtemp (dir_path))
        return -1;
    records =
        fs_root_new (open (dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), dir_path, NULL, true);
    return 0;
}

static int
tear_down (void **state)
{
    (void)state;
    fs_root_free (records);
    _cleanup_free_ char *command = x_asprintf ("rm -rf '%s'", dir_path);
    return system (command);
}

/* Every line of the file, parsed. */
static json_t *
lines (void)
{
    _cleanup_buf_ struct buf text = { 0 };
    assert_succeeds (fs_read (records, "trace.jsonl", SIZE_MAX / 2, &text, &err));
    json_t *list = json_array ();
    for (char *line = strtok (text.data, "\n"); line; line = strtok (NULL, "\n")) {
        json_t *value = json_loads (line, 0, NULL);
        assert_non_null (value);
        json_array_append_new (list, value);
    }
    return list;
}

static const char *
member (const json_t *list, size_t i, const char *key)
{
    return json_get_string (json_array_get (list, i), key);
}

static void
write_task (struct trace_writer *w)
{
    assert_succeeds (TRACE (w, &err, task_start, .task_id = "tsk_1", .context_id = "ctx_1",
                            .source = "task_md", .origin = "user", .trust = "trusted",
                            .lane = "user"));
    assert_succeeds (TRACE (w, &err, inference, .turn = 0, .task_id = "tsk_1", .decision = "text"));
    assert_succeeds (TRACE (w, &err, tool_call, .tool_name = "t", .input = "{}", .status = "ok"));
    assert_succeeds (TRACE (w, &err, inference, .origin = "hook:h", .decision = "text"));
    assert_succeeds (TRACE (w, &err, task_end, .task_id = "tsk_1", .exit_status = "ok"));
    assert_succeeds (TRACE (w, &err, session_end, .exit_status = "ok"));
}

static void
test_the_tree_of_a_session (void **state)
{
    (void)state;
    struct trace_writer *w = trace_writer_new (records, "ses_x", NULL, NULL);
    assert_succeeds (TRACE (w, &err, session_start, .capsule_name = "c", .effective_grants = "{}"));
    write_task (w);
    trace_writer_free (w);
    _cleanup_json_ json_t *list = lines ();
    const char *session = member (list, 0, "event_id"), *task = member (list, 1, "event_id"),
               *turn = member (list, 2, "event_id");
    assert_true (json_is_null (json_object_get (json_array_get (list, 0), "parent_id")));
    assert_string_equal (member (list, 1, "parent_id"), session);
    assert_string_equal (member (list, 2, "parent_id"), task);
    assert_string_equal (member (list, 3, "parent_id"), turn);
    assert_string_equal (member (list, 4, "parent_id"), turn); /* a hook's call is no turn */
    assert_string_equal (member (list, 5, "parent_id"), task);
    assert_string_equal (member (list, 6, "parent_id"), session);
    for (size_t i = 1; i < json_array_size (list); i++)
        assert_true (strcmp (member (list, i - 1, "event_id"), member (list, i, "event_id")) < 0);
}

static void
test_without_a_session_start_every_parent_is_null (void **state)
{
    (void)state;
    struct trace_writer *w = trace_writer_new (records, "ses_x", NULL, NULL);
    assert_succeeds (TRACE (w, &err, a2a_send, .peer_url = "http://p", .trust = "trusted"));
    trace_writer_free (w);
    _cleanup_json_ json_t *list = lines ();
    assert_true (json_is_null (json_object_get (json_array_get (list, 0), "parent_id")));
}

static void
test_unset_members_are_null_or_left_out (void **state)
{
    (void)state;
    struct trace_writer *w = trace_writer_new (records, "ses_x", NULL, NULL);
    assert_succeeds (TRACE (w, &err, task_failed, .cause = "driver_error", .reason = "r"));
    assert_succeeds (
        TRACE (w, &err, task_reopened, .task_id = "tsk_1", .turns_remaining = TRACE_NO_NUM));
    trace_writer_free (w);
    _cleanup_buf_ struct buf text = { 0 };
    assert_succeeds (fs_read (records, "trace.jsonl", 65536, &text, &err));
    assert_non_null (strstr (text.data, ",\"cause\":\"driver_error\",\"reason\":\"r\"}\n"));
    assert_null (strstr (text.data, "\"turn\""));
    assert_non_null (strstr (text.data, "\"turns_remaining\":null"));
}

static void
test_free_text_is_redacted_and_cut_on_a_character (void **state)
{
    (void)state;
    struct redactor *redactor = redactor_new ();
    struct secret *key = secret_new ("sk-very-secret", 14);
    redactor_add (redactor, key);
    struct trace_writer *w = trace_writer_new (records, "ses_x", redactor, NULL);
    struct buf reason = { 0 };
    buf_puts (&reason, "bad key sk-very-secret ");
    for (int i = 0; i < 2000; i++)
        buf_puts (&reason, "\xc3\xa9");
    assert_succeeds (TRACE (w, &err, task_failed, .cause = "driver_error", .reason = reason.data));
    trace_writer_free (w);
    _cleanup_json_ json_t *list = lines ();
    const char *kept = member (list, 0, "reason");
    assert_true (str_starts (kept, "bad key [redacted] "));
    assert_true (strlen (kept) <= 2000 && strlen (kept) >= 1998);
    buf_free (&reason);
    secret_free (key);
    redactor_free (redactor);
}

static void
test_a_line_that_does_not_fit_leaves_nothing_behind (void **state)
{
    (void)state;
    struct trace_writer *w = trace_writer_new (records, "ses_x", NULL, NULL);
    assert_succeeds (TRACE (w, &err, session_start, .capsule_name = "c", .effective_grants = "{}"));
    struct stat st;
    _cleanup_free_ char *path = x_asprintf ("%s/trace.jsonl", dir_path);
    assert_int_equal (stat (path, &st), 0);
    struct rlimit before, small;
    assert_int_equal (getrlimit (RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){ (rlim_t)st.st_size + 10, before.rlim_max };
    signal (SIGXFSZ, SIG_IGN);
    assert_int_equal (setrlimit (RLIMIT_FSIZE, &small), 0);
    assert_false (TRACE (w, NULL, inference, .turn = 0, .task_id = "tsk_1", .decision = "text"));
    assert_int_equal (setrlimit (RLIMIT_FSIZE, &before), 0);
    assert_succeeds (TRACE (w, &err, session_end, .exit_status = "ok"));
    trace_writer_free (w);
    _cleanup_json_ json_t *all = lines ();
    assert_int_equal (json_array_size (all), 2);
    assert_string_equal (member (all, 1, "event_type"), "session_end");
}

static void *
write_many (void *arg)
{
    for (int i = 0; i < 200; i++)
        TRACE (arg, NULL, harness_note, .task_id = "tsk_1", .text = "from a thread \"of\" many\n");
    return NULL;
}

static void
test_lines_of_several_threads_stay_whole (void **state)
{
    (void)state;
    struct trace_writer *w = trace_writer_new (records, "ses_x", NULL, NULL);
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_LEN (threads); i++)
        pthread_create (&threads[i], NULL, write_many, w);
    for (size_t i = 0; i < ARRAY_LEN (threads); i++)
        pthread_join (threads[i], NULL);
    trace_writer_free (w);
    _cleanup_json_ json_t *list = lines ();
    assert_int_equal (json_array_size (list), 800);
    for (size_t i = 1; i < 800; i++)
        assert_true (strcmp (member (list, i - 1, "event_id"), member (list, i, "event_id")) < 0);
}

static void
test_a_link_in_place_of_a_blob_is_refused (void **state)
{
    (void)state;
    assert_succeeds (trace_blob_store (records, "aa", "one", 3, &err));
    assert_succeeds (trace_blob_store (records, "aa", "two", 3, &err)); /* kept as it is */
    _cleanup_buf_ struct buf kept = { 0 };
    assert_succeeds (fs_read (records, "blobs/aa", 10, &kept, &err));
    assert_string_equal (kept.data, "one");
    _cleanup_free_ char *link_path = x_asprintf ("%s/blobs/bb", dir_path);
    assert_int_equal (symlink ("aa", link_path), 0);
    assert_fails (trace_blob_store (records, "bb", "x", 1, &err), E_RUN_050);
}

int
main (void)
{
#define WITH_DIR(test) cmocka_unit_test_setup_teardown (test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_DIR (test_the_tree_of_a_session),
        WITH_DIR (test_without_a_session_start_every_parent_is_null),
        WITH_DIR (test_unset_members_are_null_or_left_out),
        WITH_DIR (test_free_text_is_redacted_and_cut_on_a_character),
        WITH_DIR (test_a_line_that_does_not_fit_leaves_nothing_behind),
        WITH_DIR (test_lines_of_several_threads_stay_whole),
        WITH_DIR (test_a_link_in_place_of_a_blob_is_refused),
    };
    return cmocka_run_group_tests_name ("trace/writer", tests, NULL, NULL);
}

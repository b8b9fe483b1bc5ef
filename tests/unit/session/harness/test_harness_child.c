/* SPDX-License-Identifier: Apache-2.0
 *
 * The harness as a process, with real ones: lines, the end of the input, what is kept of stderr,
 * how it ends.
 */
#include "tests/unit/session/stand.h"

#include "session/harness/harness_child.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

static int
open_stand (void **state)
{
    struct stand *st = x_new0 (struct stand);
    stand_open (st, NULL);
    st->s.rooms.harness = x_new0 (struct harness);
    pthread_mutex_init (&st->s.rooms.harness->lock, NULL);
    st->s.rooms.harness->binary = x_strdup ("/bin/sh");
    *state = st;
    return 0;
}

static int
close_stand (void **state)
{
    struct stand *st = *state;
    free (st->s.rooms.harness->binary);
    free (st->s.rooms.harness);
    stand_close (st);
    free (st);
    return 0;
}

static void
start (struct stand *st, const char *script, struct harness_child *c)
{
    char *const argv[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" }, x_strdup (script), NULL };
    char *const env[] = { (char[]){ "PATH=/usr/bin:/bin" }, NULL };
    assert_succeeds (harness_child_start (&st->s, argv, env, c, &err));
    free (argv[2]);
    assert_true (st->s.rooms.harness->pid > 0);
}

/* Everything it wrote, its lines joined by |. Owned. */
static char *
all_lines (struct harness_child *c)
{
    struct buf b = { 0 };
    const char *line;
    size_t len;
    while (! harness_child_is_at_end (c) || harness_child_has_line (c)) {
        while (harness_child_line (c, &line, &len)) {
            buf_puts (&b, b.len ? "|" : "");
            buf_append (&b, line, len);
        }
        if (! harness_child_is_at_end (c))
            harness_child_pump (c, -1, 5000);
    }
    while (harness_child_line (c, &line, &len)) {
        buf_puts (&b, b.len ? "|" : "");
        buf_append (&b, line, len);
    }
    return b.data ? buf_steal (&b) : x_strdup ("");
}

static void
test_lines (void **state)
{
    struct stand *st = *state;
    static const struct {
        const char *script, *input, *lines;
    } rows[] = {
        { "printf 'a\\nb\\n'", "", "a|b" },
        { "printf 'a\\nb'", "", "a|b" },
        { "true", "", "" },
        { "cat", "one\ntwo\n", "one|two" },
        { "read x; echo got $x; cat >/dev/null", "hello\nmore\n", "got hello" },
        { "head -c 200000 /dev/zero | tr '\\0' x | wc -c", "", "200000" },
        { "wc -c", "", "0" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        struct harness_child c = { 0 };
        start (st, rows[i].script, &c);
        harness_child_write (&c, rows[i].input, strlen (rows[i].input));
        harness_child_end_input (&c);
        _cleanup_free_ char *lines = all_lines (&c);
        assert_string_equal (lines, rows[i].lines);
        harness_child_reap (&st->s, &c);
        assert_true (WIFEXITED (c.status) && WEXITSTATUS (c.status) == 0);
        assert_int_equal (st->s.rooms.harness->pid, 0);
        harness_child_clear (&st->s, &c);
    }
}

static void
test_large_input_and_output_cross (void **state)
{
    struct stand *st = *state;
    struct harness_child c = { 0 };
    size_t size = 1 << 20;
    _cleanup_free_ char *data = x_malloc (size);
    memset (data, 'x', size);
    data[size - 1] = '\n';
    start (st, "cat", &c);
    harness_child_write (&c, data, size);
    harness_child_end_input (&c);
    _cleanup_free_ char *lines = all_lines (&c);
    assert_int_equal (strlen (lines), size - 1);
    harness_child_reap (&st->s, &c);
    harness_child_clear (&st->s, &c);
}

static void
test_the_end_of_its_complaints_is_kept (void **state)
{
    struct stand *st = *state;
    struct harness_child c = { 0 };
    size_t len;
    start (st, "i=0; while [ $i -lt 2000 ]; do echo complaint $i >&2; i=$((i+1)); done; exit 3",
           &c);
    harness_child_end_input (&c);
    _cleanup_free_ char *lines = all_lines (&c);
    harness_child_reap (&st->s, &c);
    assert_int_equal (WEXITSTATUS (c.status), 3);
    const char *tail = harness_child_tail (&c, &len);
    assert_true (len > 0 && len <= HARNESS_TAIL_MAX);
    assert_non_null (memmem (tail, len, "complaint 1999", 14));
    assert_true (str_starts (tail, "complaint ")); /* whole lines */
    harness_child_clear (&st->s, &c);
}

static void
test_it_is_killed_with_its_group (void **state)
{
    struct stand *st = *state;
    struct harness_child c = { 0 };
    const char *line;
    size_t len;
    start (st, "sleep 1000 & echo $!; wait", &c);
    while (! harness_child_line (&c, &line, &len))
        harness_child_pump (&c, -1, 5000);
    pid_t grandchild = (pid_t)strtol (line, NULL, 10);
    assert_int_equal (kill (grandchild, 0), 0);
    assert_false (harness_child_has_exited (&c));
    harness_child_kill (&st->s, &c);
    harness_child_reap (&st->s, &c);
    assert_true (c.was_killed);
    assert_true (WIFSIGNALED (c.status) && WTERMSIG (c.status) == SIGKILL);
    assert_int_equal (st->s.rooms.harness->pid, 0);
    harness_kill (&st->s); /* nobody is there any more */
    harness_child_clear (&st->s, &c);
}

static void *
kill_it (void *arg)
{
    harness_kill (arg);
    return NULL;
}

static void
test_another_thread_may_kill_it (void **state)
{
    struct stand *st = *state;
    struct harness_child c = { 0 };
    pthread_t thread;
    start (st, "sleep 1000", &c);
    pthread_create (&thread, NULL, kill_it, &st->s);
    _cleanup_free_ char *lines = all_lines (&c);
    pthread_join (thread, NULL);
    harness_child_reap (&st->s, &c);
    assert_true (WIFSIGNALED (c.status));
    harness_child_clear (&st->s, &c);
}

static void
test_what_cannot_be_started (void **state)
{
    struct stand *st = *state;
    struct harness_child c = { 0 };
    char *const argv[] = { (char[]){ "/nonexistent/harness" }, NULL };
    char *const env[] = { NULL };
    free (st->s.rooms.harness->binary);
    st->s.rooms.harness->binary = x_strdup ("/nonexistent/harness");
    assert_fails (harness_child_start (&st->s, argv, env, &c, &err), E_IO_003);
    assert_int_equal (st->s.rooms.harness->pid, 0);
    harness_child_clear (&st->s, &c);
}

int
unit_harness_child (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (test_lines, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_large_input_and_output_cross, open_stand,
                                         close_stand),
        cmocka_unit_test_setup_teardown (test_the_end_of_its_complaints_is_kept, open_stand,
                                         close_stand),
        cmocka_unit_test_setup_teardown (test_it_is_killed_with_its_group, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_another_thread_may_kill_it, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_what_cannot_be_started, open_stand, close_stand),
    };
    return cmocka_run_group_tests_name ("session/harness/harness_child", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Watching a child to its end: what each ending leaves in completion.json and whether the parent's
 * door is told (spec/spawn.md A17). A script stands in place of `mur`.
 */
#include "tests/unit/testing.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "spawn/report/watch.h"
#include "tests/unit/net/loop_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define DELEGATION "dlg_00000000000000000000000000000001"

/* $1 of `report`: whether the notice arrived. */
static const char script[] =
    "#!/bin/sh\n"
    "read -r grant; r=$HOME/.murmur/records/w/ses_1; mkdir -p $r; rm -f $r/completion.json\n"
    "report () { printf '{\"delegation_id\":\"" DELEGATION "\",\"capsule_name\":\"local/worker\",'"
    "'\"capsule_version\":\"0.1.0\",\"session_id\":\"ses_1\",\"status\":\"ok\",\"workdir\":\"/w\",'"
    "'\"duration_ms\":1,\"reported_by\":\"child\",\"delivered\":'$1'}' >$r/completion.json; }\n"
    "echo '{\"session_id\":\"ses_1\",\"url\":\"\",\"records_dir\":\"'$r'\"}'\n"
    "case $PART in\n"
    "delivered) report true; exit 0;;\n"
    "undelivered) report false; exit 0;;\n"
    "dies) echo 'last words' >&2; exit 3;;\n"
    "stays) exec sleep 300;;\n"
    "lies) trap 'report true; exit 0' TERM; while :; do sleep 0.02; done;;\n"
    "esac\n";

static char root[] = "/tmp/murmur-watch-XXXXXX";
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

/* --- one child, watched --- */

struct scene {
    struct mur_child *child;
    struct http_client *http;
    struct loop_server *door;
    char *url;
    struct watch *watch;
    atomic_int notices, ends;
    bool refuses;
    struct completion record;
    struct arena *arena;
};

static void
serve (void *ctx, int fd, int number _unused_)
{
    struct scene *s = ctx;
    struct buf head = { 0 }, body = { 0 };
    if (loop_read_request (fd, &head, &body)) {
        s->notices++;
        loop_answer (fd, "200 OK",
                     s->refuses ? "{\"error\":{\"code\":-31002,\"message\":\"nobody waits\"}}"
                                : "{\"result\":{\"message\":{}}}");
    }
    buf_free (&head);
    buf_free (&body);
}

static void
note_end (void *ctx)
{
    struct scene *s = ctx;
    s->ends++;
}

static void
begin (struct scene *s, const char *part, uint64_t bound_secs)
{
    static const char *const passed_on[] = { "PART", NULL };
    struct mur_error *err = NULL;
    setenv ("PART", part, 1);
    const struct mur_child_launch l = { .approval = "msa1.x.y",
                                        .capsule = "local/worker",
                                        .version = "0.1.0",
                                        .parent_records_dir = records,
                                        .roost_url = "http://127.0.0.1:1",
                                        .env_allow = passed_on };
    s->child = mur_child_launch (&l, &err);
    if (! s->child)
        fail_msg ("%s", err->message);
    s->arena = arena_new ();
    s->http = http_client_new ();
    s->door = loop_server_new (serve, s);
    s->url = x_asprintf ("http://127.0.0.1:%d", loop_server_port (s->door));
    const struct watched what = {
        .child = s->child,
        .http = s->http,
        .delegation_id = DELEGATION,
        .capsule = "local/worker",
        .version = "0.1.0",
        .address = { .url = s->url, .context_id = "ctx_1", .session_id = "ses_parent" },
        .started_ms = clock_monotonic_ms (),
        .bound_secs = bound_secs,
        .on_done = note_end,
        .ctx = s,
    };
    s->watch = watch_start (&what);
    assert_non_null (s->watch);
}

/* Waits for the watcher and reads what it left. False: there is no record. */
static bool
settle (struct scene *s)
{
    assert_true (watch_wait (s->watch, 20000));
    return completion_read (mur_child_records_fd (s->child), s->arena, &s->record, NULL);
}

static void
end (struct scene *s)
{
    watch_free (s->watch);
    assert_int_equal (s->ends, 1);
    mur_child_free (s->child);
    http_client_free (s->http);
    loop_server_free (s->door);
    arena_free (s->arena);
    free (s->url);
    assert_true (waitpid (-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static void
assert_launcher_says (const struct scene *s, enum completion_status status, const char *detail)
{
    assert_string_equal (completion_status_name (s->record.status),
                         completion_status_name (status));
    assert_int_equal (s->record.reported_by, REPORTED_BY_LAUNCHER);
    if (! strstr (s->record.detail, detail))
        fail_msg ("\"%s\" does not say \"%s\"", s->record.detail, detail);
}

static void
test_a_report_that_arrived_is_left_alone (void **state _unused_)
{
    struct scene s = { 0 };
    begin (&s, "delivered", 60);
    assert_true (settle (&s));
    assert_int_equal (s.record.reported_by, REPORTED_BY_CHILD);
    assert_true (s.record.is_delivered);
    assert_int_equal (s.notices, 0);
    end (&s);
}

static void
test_a_report_that_did_not_arrive_is_posted_once_more (void **state _unused_)
{
    struct scene s = { 0 };
    begin (&s, "undelivered", 60);
    assert_true (settle (&s));
    assert_int_equal (s.record.reported_by, REPORTED_BY_CHILD);
    assert_true (s.record.is_delivered);
    assert_int_equal (s.notices, 1);
    end (&s);
}

static void
test_a_second_failure_is_written_down_and_is_the_last (void **state _unused_)
{
    struct scene s = { .refuses = true };
    begin (&s, "undelivered", 60);
    assert_true (settle (&s));
    assert_false (s.record.is_delivered);
    assert_string_equal (s.record.delivery_error, "nobody waits");
    assert_int_equal (s.notices, 1);
    end (&s);
}

static void
test_spawn_D4_an_exit_without_a_record_is_a_crash (void **state _unused_)
{
    struct scene s = { 0 };
    begin (&s, "dies", 60);
    assert_true (settle (&s));
    assert_launcher_says (&s, COMPLETION_CRASHED, "exit status 3\nlast words");
    assert_true (s.record.is_delivered);
    assert_int_equal (s.notices, 1);
    end (&s);
}

static void
test_spawn_D1_the_bound_ends_the_child_and_is_posted (void **state _unused_)
{
    struct scene s = { 0 };
    begin (&s, "stays", 1);
    assert_true (settle (&s));
    assert_launcher_says (&s, COMPLETION_TERMINATED, "1s");
    assert_non_null (strstr (s.record.detail, "delegation deadline"));
    assert_true (s.record.is_delivered);
    assert_int_equal (s.notices, 1);
    end (&s);
}

static void
test_spawn_trap_13_what_a_child_that_is_ended_wrote_is_no_outcome (void **state _unused_)
{
    struct scene s = { 0 };
    begin (&s, "lies", 60);
    mur_child_end (s.child);
    assert_true (settle (&s));
    assert_launcher_says (&s, COMPLETION_TERMINATED, "ended by the session");
    assert_false (s.record.is_delivered);
    assert_null (s.record.delivery_error);
    assert_int_equal (s.notices, 0);
    end (&s);
}

static void
test_a_child_that_was_left_is_its_parents (void **state _unused_)
{
    struct scene s = { 0 };
    begin (&s, "stays", 60);
    watch_leave (s.watch);
    assert_false (settle (&s));
    mur_child_end (s.child);
    assert_int_equal (s.notices, 0);
    end (&s);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_report_that_arrived_is_left_alone),
        cmocka_unit_test (test_a_report_that_did_not_arrive_is_posted_once_more),
        cmocka_unit_test (test_a_second_failure_is_written_down_and_is_the_last),
        cmocka_unit_test (test_spawn_D4_an_exit_without_a_record_is_a_crash),
        cmocka_unit_test (test_spawn_D1_the_bound_ends_the_child_and_is_posted),
        cmocka_unit_test (test_spawn_trap_13_what_a_child_that_is_ended_wrote_is_no_outcome),
        cmocka_unit_test (test_a_child_that_was_left_is_its_parents),
    };
    return cmocka_run_group_tests (tests, make_world, remove_world);
}

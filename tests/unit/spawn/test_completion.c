/* SPDX-License-Identifier: Apache-2.0
 *
 * Completions: what is on the disk, what goes over the wire, who is believed (spec/spawn.md A16).
 */
#include "tests/unit/testing.h"

#include "base/ids.h"
#include "base/json.h"
#include "spawn/report/completion.h"
#include "tests/unit/net/loop_server.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct place {
    char path[32];
    int fd;
    struct arena *arena;
};

static void
place_make (struct place *p)
{
    strcpy (p->path, "/tmp/completion-XXXXXX");
    assert_non_null (mkdtemp (p->path));
    p->fd = open (p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    p->arena = arena_new ();
}

static void
place_clear (struct place *p)
{
    _cleanup_free_ char *command = x_asprintf ("rm -r %s", p->path);
    assert_int_equal (system (command), 0);
    close (p->fd);
    arena_free (p->arena);
}

static struct completion
sample (void)
{
    return (struct completion){ .delegation_id = "dlg_1",
                                .capsule_name = "local/worker",
                                .capsule_version = "0.1.0",
                                .session_id = "ses_1",
                                .status = COMPLETION_OK,
                                .workdir = "/w",
                                .duration_ms = 17 };
}

static char *
file_text (const struct place *p)
{
    char text[8192];
    int fd = openat (p->fd, COMPLETION_FILE, O_RDONLY);
    assert_true (fd >= 0);
    ssize_t len = read (fd, text, sizeof text - 1);
    close (fd);
    assert_true (len > 0);
    return x_strndup (text, (size_t)len);
}

static void
plant (const struct place *p, const char *text)
{
    int fd = openat (p->fd, COMPLETION_FILE, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal (write (fd, text, strlen (text)), (ssize_t)strlen (text));
    close (fd);
}

/* --- the record --- */

static void
test_the_keys_are_in_their_order_and_what_is_not_there_is_left_out (void **state _unused_)
{
    struct place p;
    place_make (&p);
    struct completion c = sample ();
    assert_succeeds (completion_write (p.fd, &c, &err));
    _cleanup_free_ char *text = file_text (&p);
    assert_string_equal (text, "{\n"
                               "  \"delegation_id\": \"dlg_1\",\n"
                               "  \"capsule_name\": \"local/worker\",\n"
                               "  \"capsule_version\": \"0.1.0\",\n"
                               "  \"session_id\": \"ses_1\",\n"
                               "  \"status\": \"ok\",\n"
                               "  \"workdir\": \"/w\",\n"
                               "  \"duration_ms\": 17,\n"
                               "  \"reported_by\": \"child\",\n"
                               "  \"delivered\": false\n"
                               "}\n");
    struct stat st;
    assert_int_equal (fstatat (p.fd, COMPLETION_FILE, &st, 0), 0);
    assert_int_equal (st.st_mode & 07777, 0644);

    c.status = COMPLETION_CRASHED;
    c.result_path = "/r/out/result.txt";
    c.detail = "signal 9";
    c.reported_by = REPORTED_BY_LAUNCHER;
    c.delivery_error = "no";
    assert_succeeds (completion_write (p.fd, &c, &err));
    static const char *const order[] = { "delegation_id", "capsule_name",  "capsule_version",
                                         "session_id",    "status",        "result_path",
                                         "workdir",       "duration_ms",   "detail",
                                         "reported_by",   "\"delivered\"", "delivery_error" };
    _cleanup_free_ char *whole = file_text (&p);
    const char *at = whole;
    for (size_t i = 0; i < ARRAY_LEN (order); i++)
        assert_non_null (at = strstr (at, order[i]));
    place_clear (&p);
}

static void
test_what_was_written_is_read_back (void **state _unused_)
{
    struct place p;
    place_make (&p);
    static const enum completion_status all[] = { COMPLETION_OK, COMPLETION_ERROR,
                                                  COMPLETION_CRASHED, COMPLETION_TERMINATED };
    for (size_t i = 0; i < ARRAY_LEN (all); i++) {
        struct completion c = sample (), back;
        c.status = all[i];
        c.result_path = i ? "/r" : NULL;
        c.detail = i > 1 ? "d\n\"e" : NULL;
        c.is_delivered = i % 2;
        c.delivery_error = i == 2 ? "why" : NULL;
        c.reported_by = i > 1 ? REPORTED_BY_LAUNCHER : REPORTED_BY_CHILD;
        assert_succeeds (completion_write (p.fd, &c, &err));
        assert_succeeds (completion_read (p.fd, p.arena, &back, &err));
        assert_string_equal (back.delegation_id, "dlg_1");
        assert_string_equal (back.capsule_name, "local/worker");
        assert_string_equal (back.capsule_version, "0.1.0");
        assert_string_equal (back.session_id, "ses_1");
        assert_string_equal (back.workdir, "/w");
        assert_int_equal (back.status, c.status);
        assert_int_equal (back.duration_ms, 17);
        assert_int_equal (back.reported_by, c.reported_by);
        assert_int_equal (back.is_delivered, c.is_delivered);
        assert_true (str_eq (back.result_path, c.result_path));
        assert_true (str_eq (back.detail, c.detail));
        assert_true (str_eq (back.delivery_error, c.delivery_error));
    }
    place_clear (&p);
}

static void
test_a_long_detail_is_cut_between_characters (void **state _unused_)
{
    struct place p;
    place_make (&p);
    char detail[2100];
    memset (detail, 'x', sizeof detail);
    memcpy (detail + 1999, "é", 2); /* the limit would cut it */
    detail[2099] = '\0';
    struct completion c = sample (), back;
    c.detail = detail;
    assert_succeeds (completion_write (p.fd, &c, &err));
    assert_succeeds (completion_read (p.fd, p.arena, &back, &err));
    assert_int_equal (strlen (back.detail), 1999 + strlen (" […]"));
    assert_true (str_ends (back.detail, "x […]"));
    /* Once: a record that is brought up to date keeps it. */
    assert_succeeds (completion_write (p.fd, &back, &err));
    struct completion again;
    assert_succeeds (completion_read (p.fd, p.arena, &again, &err));
    assert_string_equal (again.detail, back.detail);
    place_clear (&p);
}

/* A child may write what it likes: its detail enters its parent's conversation. */
static void
test_a_detail_that_was_never_cut_is_cut_as_it_is_read (void **state _unused_)
{
    struct place p;
    struct completion out;
    place_make (&p);
    _cleanup_free_ char *record = x_asprintf (
        "{\"delegation_id\":\"d\",\"capsule_name\":\"n\",\"capsule_version\":\"v\",\"session_id\":"
        "\"s\",\"status\":\"ok\",\"workdir\":\"/w\",\"duration_ms\":1,\"detail\":\"%0900000d\","
        "\"reported_by\":\"child\",\"delivered\":true}",
        1);
    plant (&p, record);
    assert_succeeds (completion_read (p.fd, p.arena, &out, &err));
    assert_int_equal (strlen (out.detail), 2000 + strlen (" […]"));
    place_clear (&p);
}

static void
test_a_record_that_is_none_is_refused (void **state _unused_)
{
    struct place p;
    struct completion out;
    place_make (&p);
    assert_fails (completion_read (p.fd, p.arena, &out, &err), E_IO_001);
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{}",
        "\"ok\"",
        "{\"delegation_id\":\"d\",\"capsule_name\":\"n\",\"capsule_version\":\"v\",\"session_id\":"
        "\"s\","
        "\"status\":\"fine\",\"workdir\":\"/w\",\"duration_ms\":1,\"reported_by\":\"child\","
        "\"delivered\":false}",
        "{\"delegation_id\":\"d\",\"capsule_name\":\"n\",\"capsule_version\":\"v\",\"session_id\":"
        "\"s\","
        "\"status\":\"ok\",\"workdir\":\"/w\",\"duration_ms\":-1,\"reported_by\":\"child\","
        "\"delivered\":false}",
        "{\"delegation_id\":\"d\",\"capsule_name\":\"n\",\"capsule_version\":\"v\",\"session_id\":"
        "\"s\","
        "\"status\":\"ok\",\"workdir\":\"/w\",\"duration_ms\":1,\"reported_by\":\"child\","
        "\"delivered\":\"yes\"}",
        "{\"delegation_id\":\"d\",\"capsule_name\":\"n\",\"capsule_version\":\"v\",\"session_id\":"
        "\"s\","
        "\"status\":\"ok\",\"workdir\":\"/"
        "w\",\"duration_ms\":1,\"detail\":5,\"reported_by\":\"child\","
        "\"delivered\":true}",
    };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
        plant (&p, bad[i]);
        assert_fails (completion_read (p.fd, p.arena, &out, &err), E_IO_003);
    }
    /* More than any record can be. */
    int fd = openat (p.fd, COMPLETION_FILE, O_WRONLY | O_TRUNC);
    assert_int_equal (ftruncate (fd, (1 << 20) + 1), 0);
    close (fd);
    assert_fails (completion_read (p.fd, p.arena, &out, &err), E_IO_003);
    place_clear (&p);
}

static void
test_neither_a_link_nor_a_pipe_is_a_record (void **state _unused_)
{
    struct place p;
    struct completion c = sample (), out;
    place_make (&p);
    assert_succeeds (completion_write (p.fd, &c, &err));
    assert_int_equal (renameat (p.fd, COMPLETION_FILE, p.fd, "other.json"), 0);
    assert_int_equal (symlinkat ("other.json", p.fd, COMPLETION_FILE), 0);
    assert_fails (completion_read (p.fd, p.arena, &out, &err), E_IO_003);
    /* Writing replaces the link and leaves what it named alone. */
    c.status = COMPLETION_ERROR;
    assert_succeeds (completion_write (p.fd, &c, &err));
    assert_succeeds (completion_read (p.fd, p.arena, &out, &err));
    assert_int_equal (out.status, COMPLETION_ERROR);
    assert_int_equal (unlinkat (p.fd, COMPLETION_FILE, 0), 0);
    assert_int_equal (mkfifoat (p.fd, COMPLETION_FILE, 0600), 0);
    assert_fails (completion_read (p.fd, p.arena, &out, &err), E_IO_003);
    place_clear (&p);
}

static void
test_a_result_is_a_regular_file_of_the_records_first (void **state _unused_)
{
    struct place records, work;
    place_make (&records);
    place_make (&work);
    struct arena *a = records.arena;
    assert_null (completion_result_path (records.fd, "/rec", work.fd, "/folder", a));
    assert_int_equal (mkdirat (work.fd, "out", 0700), 0);
    assert_int_equal (symlinkat ("/etc/passwd", work.fd, "out/result.txt"), 0);
    assert_null (completion_result_path (records.fd, "/rec", work.fd, "/folder", a));
    assert_int_equal (unlinkat (work.fd, "out/result.txt", 0), 0);
    close (openat (work.fd, "out/result.txt", O_WRONLY | O_CREAT, 0600));
    assert_string_equal (completion_result_path (records.fd, "/rec", work.fd, "/folder", a),
                         "/folder/out/result.txt");
    assert_int_equal (mkdirat (records.fd, "out", 0700), 0);
    close (openat (records.fd, "out/result.txt", O_WRONLY | O_CREAT, 0600));
    assert_string_equal (completion_result_path (records.fd, "/rec", work.fd, "/folder", a),
                         "/rec/out/result.txt");
    assert_string_equal (completion_result_path (-1, "/rec", work.fd, "/folder", a),
                         "/folder/out/result.txt");
    place_clear (&records);
    place_clear (&work);
}

/* --- the notice --- */

struct wire {
    const char *status, *answer;
    const struct place *records; /* what it holds while the notice is under way, or NULL */
    struct arena *arena;
    struct completion seen;
    struct buf head, body;
};

static void
serve (void *ctx, int fd, int number _unused_)
{
    struct wire *w = ctx;
    if (! loop_read_request (fd, &w->head, &w->body))
        return;
    if (w->records)
        completion_read (w->records->fd, w->arena, &w->seen, NULL);
    loop_answer (fd, w->status, w->answer);
}

/* Posts the sample to a door that answers so. The reason, or NULL when it was delivered. */
static const char *
post (const char *status, const char *answer, struct wire *w, struct arena *arena)
{
    *w = (struct wire){ .status = status, .answer = answer };
    struct loop_server *server = loop_server_new (serve, w);
    struct http_client *http = http_client_new ();
    _cleanup_free_ char *url = x_asprintf ("http://127.0.0.1:%d/a//b", loop_server_port (server));
    const struct completion_address to = { url, "ctx_1", "ses_parent" };
    const struct completion c = sample ();
    const char *reason = NULL;
    assert_true (completion_post (http, &to, &c, arena, &reason) == ! reason);
    http_client_free (http);
    loop_server_free (server);
    return reason;
}

static void
wire_clear (struct wire *w)
{
    buf_free (&w->head);
    buf_free (&w->body);
}

static const char *
text_of (const json_t *value)
{
    assert_non_null (json_string_value (value));
    return json_string_value (value);
}

static void
test_the_request_is_exactly_this (void **state _unused_)
{
    struct wire w;
    _cleanup_arena_ struct arena *arena = arena_new ();
    assert_null (post ("200 OK", "{\"result\":{\"message\":{}}}", &w, arena));
    assert_memory_equal (w.head.data, "POST /a//b HTTP/1.1\r\n", 21);
    static const char *const lines[] = { "\r\na2a-version: 1.0\r\n",
                                         "\r\ncontent-type: application/json\r\n",
                                         "\r\nx-murmur-task-origin: completion\r\n",
                                         "\r\nx-murmur-delegation-id: dlg_1\r\n",
                                         "\r\nx-murmur-completion-session: ses_parent\r\n" };
    for (size_t i = 0; i < ARRAY_LEN (lines); i++)
        assert_non_null (strcasestr (w.head.data, lines[i]));
    assert_null (strcasestr (w.head.data, "authorization"));

    _cleanup_json_ json_t *body = json_loads (w.body.data, 0, NULL);
    const char *id = text_of (json_object_get (body, "id"));
    json_t *message = json_object_get (json_object_get (body, "params"), "message");
    const char *message_id = text_of (json_object_get (message, "messageId"));
    assert_true (id_is_valid (id, "req_") && id_is_valid (message_id, "msg_"));
    _cleanup_free_ char *expected = x_asprintf (
        "{\"id\":\"%s\",\"jsonrpc\":\"2.0\",\"method\":\"SendMessage\",\"params\":{"
        "\"configuration\":"
        "{\"returnImmediately\":true},\"message\":{\"contextId\":\"ctx_1\",\"messageId\":\"%s\","
        "\"parts\":[{\"mediaType\":\"text/plain\",\"text\":\"A delegated capsule has ended.\\n"
        "delegation_id: dlg_1\\ncapsule: worker@0.1.0\\nsession_id: ses_1\\nstatus: ok\\n"
        "duration_ms: 17\\nworkdir: /w\"}],\"role\":\"ROLE_USER\"}}}",
        id, message_id);
    assert_string_equal (w.body.data, expected);
    wire_clear (&w);
}

static void
test_the_reason_is_the_reason_alone (void **state _unused_)
{
    static const struct {
        const char *status, *answer, *reason;
    } cases[] = {
        { "200 OK", "{\"error\":{\"code\":-31001,\"message\":\"not here\"}}", "not here" },
        { "200 OK", "{\"error\":{\"code\":1}}", "the parent's door answered an error" },
        { "500 Internal Server Error", "{\"result\":{}}", "the parent's door answered HTTP 500" },
        { "200 OK", "hello", "the parent's door answered something other than JSON-RPC" },
        { "200 OK", "", "the parent's door answered something other than JSON-RPC" },
    };
    _cleanup_arena_ struct arena *arena = arena_new ();
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct wire w;
        const char *reason = post (cases[i].status, cases[i].answer, &w, arena);
        assert_non_null (reason);
        assert_string_equal (reason, cases[i].reason);
        wire_clear (&w);
    }
}

/* --- the procedure --- */

static void
test_the_record_is_there_before_the_notice_and_says_afterwards_how_it_went (void **state _unused_)
{
    struct place p;
    place_make (&p);
    for (int is_taken = 0; is_taken < 2; is_taken++) {
        struct wire w = { .status = "200 OK",
                          .answer =
                              is_taken ? "{\"result\":{}}" : "{\"error\":{\"message\":\"why\"}}",
                          .records = &p,
                          .arena = p.arena };
        struct loop_server *server = loop_server_new (serve, &w);
        struct http_client *http = http_client_new ();
        _cleanup_free_ char *url = x_asprintf ("http://127.0.0.1:%d", loop_server_port (server));
        const struct completion_address to = { url, "ctx_1", "ses_parent" };
        struct completion c = sample (), after;
        assert_succeeds (completion_report (p.fd, http, &to, &c, p.arena, &err));
        http_client_free (http);
        loop_server_free (server);
        assert_string_equal (w.seen.delegation_id, "dlg_1");
        assert_false (w.seen.is_delivered);
        assert_succeeds (completion_read (p.fd, p.arena, &after, &err));
        assert_int_equal (after.is_delivered, is_taken);
        assert_int_equal (c.is_delivered, is_taken);
        assert_true (str_eq (after.delivery_error, is_taken ? NULL : "why"));
        wire_clear (&w);
    }
    place_clear (&p);
}

static void
test_a_parent_that_is_gone_is_no_failure_and_a_record_that_cannot_be_written_is (
    void **state _unused_)
{
    struct place p;
    place_make (&p);
    struct http_client *http = http_client_new ();
    const struct completion_address to = { "http://127.0.0.1:1/", "ctx_1", "ses_parent" };
    struct completion c = sample (), after;
    assert_succeeds (completion_report (p.fd, http, &to, &c, p.arena, &err));
    assert_succeeds (completion_read (p.fd, p.arena, &after, &err));
    assert_false (after.is_delivered);
    assert_non_null (after.delivery_error);
    assert_fails (completion_report (-1, http, &to, &c, p.arena, &err), E_IO_003);
    http_client_free (http);
    place_clear (&p);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_the_keys_are_in_their_order_and_what_is_not_there_is_left_out),
        cmocka_unit_test (test_what_was_written_is_read_back),
        cmocka_unit_test (test_a_long_detail_is_cut_between_characters),
        cmocka_unit_test (test_a_detail_that_was_never_cut_is_cut_as_it_is_read),
        cmocka_unit_test (test_a_record_that_is_none_is_refused),
        cmocka_unit_test (test_neither_a_link_nor_a_pipe_is_a_record),
        cmocka_unit_test (test_a_result_is_a_regular_file_of_the_records_first),
        cmocka_unit_test (test_the_request_is_exactly_this),
        cmocka_unit_test (test_the_reason_is_the_reason_alone),
        cmocka_unit_test (
            test_the_record_is_there_before_the_notice_and_says_afterwards_how_it_went),
        cmocka_unit_test (
            test_a_parent_that_is_gone_is_no_failure_and_a_record_that_cannot_be_written_is),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

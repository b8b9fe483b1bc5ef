/* SPDX-License-Identifier: Apache-2.0
 *
 * The tool bridge as a harness meets it: over its socket, with its token, from several connections
 * at once, and when the run is over.
 */
#include "tests/unit/session/stand.h"

#include "base/clock.h"
#include "session/harness/bridge.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int
open_stand (void **state)
{
    struct stand *st = x_new0 (struct stand);
    stand_open (st, NULL);
    st->s.rooms.harness = x_new0 (struct harness);
    st->s.rooms.harness->bridge_fd = -1;
    st->s.loop_lock.is_shared = true;
    struct staged_artifact *a =
        stand_artifact (st, "weigh", ROLE_TOOL,
                        "{\"type\":\"object\",\"properties\":{\"what\":{\"type\":\"string\"}}}");
    a->shown.description = x_strdup ("Weighs a thing.");
    stand_tools (st);
    *state = st;
    return 0;
}

static int
close_stand (void **state)
{
    struct stand *st = *state;
    free (st->s.rooms.harness);
    stand_close (st);
    free (st);
    return 0;
}

static struct bridge *
open_bridge (struct stand *st)
{
    struct bridge *b;
    assert_succeeds (b = bridge_open (&st->s, &st->t, &err));
    return b;
}

/* As the task's thread does: with the loop lock. */
static void
close_bridge (struct stand *st, struct bridge *b)
{
    loop_lock_take (&st->s.loop_lock);
    bridge_close (b);
    loop_lock_release (&st->s.loop_lock);
}

/* A connection, or -1 when nobody listens. */
static int
dial (const char *url)
{
    unsigned port = 0;
    assert_int_equal (sscanf (url, "http://127.0.0.1:%u/bridge", &port), 1);
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons ((uint16_t)port),
                              .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
    struct timeval patience = { .tv_sec = 20 };
    setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect (fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close (fd);
    return -1;
}

/* Everything that is answered to these bytes. Owned; "" when the connection is closed without one.
 */
static char *
exchange (const char *url, const char *bytes)
{
    struct buf all = { 0 };
    char chunk[4096];
    int fd = dial (url);
    assert_true (fd >= 0);
    assert_int_equal (send (fd, bytes, strlen (bytes), MSG_NOSIGNAL), (ssize_t)strlen (bytes));
    shutdown (fd, SHUT_WR);
    for (ssize_t n; (n = recv (fd, chunk, sizeof chunk, 0)) > 0;)
        buf_append (&all, chunk, (size_t)n);
    close (fd);
    return all.data ? buf_steal (&all) : x_strdup ("");
}

/* The answer to one message under the bridge's token. Owned. */
static char *
post (const struct bridge *b, const char *body)
{
    _cleanup_free_ char *request = x_asprintf (
        "POST /bridge HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %zu\r\n\r\n%s",
        bridge_token (b), strlen (body), body);
    return exchange (bridge_url (b), request);
}

static json_t *
result_of (const struct bridge *b, const char *body)
{
    _cleanup_free_ char *answer = post (b, body);
    const char *text = strstr (answer, "\r\n\r\n");
    assert_non_null (text);
    _cleanup_json_ json_t *whole = json_loads (text + 4, 0, NULL);
    json_t *result = json_object_get (whole, "result");
    if (! result)
        fail_msg ("no result: %s", answer);
    return json_incref (result);
}

static int
status_of (const char *answer)
{
    int status = 0;
    if (sscanf (answer, "HTTP/1.1 %d", &status) != 1)
        fail_msg ("no answer: \"%s\"", answer);
    return status;
}

/* --- who may ask, and how --- */

static void
test_only_its_own_token_opens_it (void **state)
{
    struct stand *st = *state;
    struct bridge *b = open_bridge (st);
    _cleanup_free_ char *right = x_asprintf ("Bearer %s", bridge_token (b));
    _cleanup_free_ char *lower = x_asprintf ("bearer %s", bridge_token (b));
    _cleanup_free_ char *longer = x_asprintf ("Bearer %s0", bridge_token (b));
    _cleanup_free_ char *shorter = x_asprintf ("Bearer %.63s", bridge_token (b));
    _cleanup_free_ char *basic = x_asprintf ("Basic %s", bridge_token (b));
    _cleanup_free_ char *other = x_strdup (right);
    other[strlen (other) - 1] = other[strlen (other) - 1] == '0' ? '1' : '0';
    const struct {
        const char *authorization;
        int status;
    } rows[] = { { right, 202 }, { lower, 202 },     { longer, 401 }, { shorter, 401 },
                 { basic, 401 }, { "Bearer ", 401 }, { other, 401 },  { NULL, 401 } };
    static const char note[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";
    assert_int_equal (strlen (bridge_token (b)), 64);
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_free_ char *line =
            rows[i].authorization ? x_asprintf ("authorization: %s\r\n", rows[i].authorization)
                                  : x_strdup ("");
        _cleanup_free_ char *request = x_asprintf (
            "POST /bridge HTTP/1.1\r\n%scontent-length: %zu\r\n\r\n%s", line, strlen (note), note);
        _cleanup_free_ char *answer = exchange (bridge_url (b), request);
        assert_int_equal (status_of (answer), rows[i].status);
    }
    close_bridge (st, b);
}

static void
test_what_is_no_message_is_refused_by_its_head (void **state)
{
    struct stand *st = *state;
    struct bridge *b = open_bridge (st);
    static const struct {
        const char *line, *headers, *body;
        int status; /* 0: the connection is closed without an answer */
    } rows[] = {
        { "POST /bridge HTTP/1.1", "content-length: 2\r\n", "{}", 400 },
        { "POST /bridge HTTP/1.1", "content-length: 4\r\n", "[{}]", 400 },
        { "POST /bridge HTTP/1.1", "content-length: 8\r\n", "not JSON", 400 },
        { "POST /bridge HTTP/1.1", "", "{}", 411 },
        { "POST /bridge HTTP/1.1", "content-length: 99999999\r\n", "", 413 },
        { "POST /bridge HTTP/1.1", "content-length: 40\r\n", "{}", 0 }, /* cut short */
        { "GET /bridge HTTP/1.1", "", "", 405 },
        { "POST /other HTTP/1.1", "content-length: 2\r\n", "{}", 404 },
        { "POST /bridge?x=1 HTTP/1.1", "content-length: 2\r\n", "{}", 404 },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_free_ char *request =
            x_asprintf ("%s\r\nauthorization: Bearer %s\r\n%s\r\n%s", rows[i].line,
                        bridge_token (b), rows[i].headers, rows[i].body);
        _cleanup_free_ char *answer = exchange (bridge_url (b), request);
        if (rows[i].status)
            assert_int_equal (status_of (answer), rows[i].status);
        else
            assert_string_equal (answer, "");
    }
    close_bridge (st, b);
}

/* --- what it serves --- */

#define CALL(method, params)                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":" params "}"

static void
test_the_tools_are_those_of_the_session_now (void **state)
{
    struct stand *st = *state;
    struct bridge *b = open_bridge (st);
    _cleanup_json_ json_t *before = result_of (b, CALL ("tools/list", "{}"));
    const json_t *tools = json_object_get (before, "tools");
    assert_int_equal (json_array_size (tools), 1);
    const json_t *tool = json_array_get (tools, 0);
    assert_string_equal (json_get_string (tool, "name"), "weigh");
    assert_string_equal (json_get_string (tool, "description"), "Weighs a thing.");
    assert_non_null (json_object_get (json_object_get (tool, "inputSchema"), "properties"));
    loop_lock_take (&st->s.loop_lock); /* as a pull that takes it away does */
    st->s.kit.artifacts[0].is_removed = true;
    stand_tools (st);
    loop_lock_release (&st->s.loop_lock);
    _cleanup_json_ json_t *after = result_of (b, CALL ("tools/list", "{}"));
    assert_int_equal (json_array_size (json_object_get (after, "tools")), 0);
    close_bridge (st, b);
}

static void
test_it_says_who_it_is_and_refuses_what_it_does_not_serve (void **state)
{
    struct stand *st = *state;
    struct bridge *b = open_bridge (st);
    _cleanup_json_ json_t *hello =
        result_of (b, CALL ("initialize", "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},"
                                          "\"clientInfo\":{\"name\":\"h\",\"version\":\"1\"}}"));
    assert_string_equal (json_get_string (hello, "protocolVersion"), "2025-06-18");
    assert_non_null (json_object_get (json_object_get (hello, "capabilities"), "tools"));
    _cleanup_free_ char *unknown = post (b, CALL ("resources/subscribe", "{}"));
    assert_non_null (strstr (unknown, "-32601"));
    close_bridge (st, b);
}

static void
test_a_request_is_activity (void **state)
{
    struct stand *st = *state;
    struct bridge *b = open_bridge (st);
    assert_int_equal (bridge_active_ms (b), 0);
    uint64_t before = clock_monotonic_ms ();
    json_decref (result_of (b, CALL ("ping", "{}")));
    assert_true (bridge_active_ms (b) >= before);
    close_bridge (st, b);
}

/* --- several at once, and the end --- */

#define ASKERS  8
#define OF_EACH 12

static void *
ask_often (void *arg)
{
    for (int i = 0; i < OF_EACH; i++) {
        _cleanup_json_ json_t *list = result_of (arg, CALL ("tools/list", "{}"));
        if (json_array_size (json_object_get (list, "tools")) != 1)
            return arg;
    }
    return NULL;
}

static void
test_several_connections_are_served_beside_the_loop (void **state)
{
    struct stand *st = *state;
    struct bridge *b = open_bridge (st);
    pthread_t threads[ASKERS];
    for (size_t i = 0; i < ASKERS; i++)
        assert_int_equal (pthread_create (&threads[i], NULL, ask_often, b), 0);
    for (int i = 0; i < 50; i++) { /* the loop, which acts in turns with them */
        loop_lock_take (&st->s.loop_lock);
        stand_tools (st);
        loop_lock_release (&st->s.loop_lock);
    }
    for (size_t i = 0; i < ASKERS; i++) {
        void *failed;
        pthread_join (threads[i], &failed);
        assert_null (failed);
    }
    close_bridge (st, b);
}

static void
test_when_the_run_is_over_nobody_is_served (void **state)
{
    struct stand *st = *state;
    struct bridge *b = open_bridge (st);
    _cleanup_free_ char *url = x_strdup (bridge_url (b));
    int waiting = dial (url); /* says nothing: it keeps nobody from closing */
    assert_true (waiting >= 0);
    close_bridge (st, b);
    char byte;
    assert_true (recv (waiting, &byte, 1, 0) <= 0);
    close (waiting);
    assert_int_equal (dial (url), -1);
    bridge_close (NULL);
}

static void
test_each_run_has_an_address_and_a_token_of_its_own (void **state)
{
    struct stand *st = *state;
    struct bridge *a = open_bridge (st), *b = open_bridge (st);
    assert_string_not_equal (bridge_url (a), bridge_url (b));
    assert_string_not_equal (bridge_token (a), bridge_token (b));
    close_bridge (st, a);
    json_decref (result_of (b, CALL ("ping", "{}")));
    close_bridge (st, b);
}

int
unit_bridge (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, open_stand, close_stand)
    const struct CMUnitTest tests[] = {
        TEST (test_only_its_own_token_opens_it),
        TEST (test_what_is_no_message_is_refused_by_its_head),
        TEST (test_the_tools_are_those_of_the_session_now),
        TEST (test_it_says_who_it_is_and_refuses_what_it_does_not_serve),
        TEST (test_a_request_is_activity),
        TEST (test_several_connections_are_served_beside_the_loop),
        TEST (test_when_the_run_is_over_nobody_is_served),
        TEST (test_each_run_has_an_address_and_a_token_of_its_own),
    };
    return cmocka_run_group_tests_name ("session/harness/bridge", tests, NULL, NULL);
}

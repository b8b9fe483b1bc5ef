/* SPDX-License-Identifier: Apache-2.0
 *
 * The handle a child reads, and its registration: what goes over the wire, what a refusal says and
 * never says (spec/spawn.md A9, A13).
 */
#include "tests/unit/testing.h"

#include "spawn/child/spawner.h"
#include "spawn/report/registration.h"
#include "tests/unit/net/loop_server.h"

#include <string.h>

/* --- the handle --- */

static void
test_a_handle_is_read_whole_and_blank_is_none (void **state _unused_)
{
    struct spawner s;
    static const char *const none[] = { NULL, "", " \t\r\n" };
    for (size_t i = 0; i < ARRAY_LEN (none); i++) {
        assert_succeeds (spawner_parse (none[i], &s, &err));
        assert_null (s.session_id);
        assert_null (s.url);
    }
    assert_succeeds (spawner_parse ("{\"session_id\":\"s\",\"context_id\":\"c\",\"delegation_id\":"
                                    "\"d\",\"url\":\"http://x:1\",\"more\":1}",
                                    &s, &err));
    assert_string_equal (s.session_id, "s");
    assert_string_equal (s.context_id, "c");
    assert_string_equal (s.delegation_id, "d");
    assert_string_equal (s.url, "http://x:1");
    spawner_clear (&s);
    assert_null (s.session_id);
    assert_succeeds (spawner_parse (
        "{\"session_id\":\"s\",\"context_id\":\"c\",\"delegation_id\":\"d\"}", &s, &err));
    assert_null (s.url);
    spawner_clear (&s);
}

static void
test_a_handle_that_says_too_little_is_refused_unquoted (void **state _unused_)
{
    static const char *const bad[] = {
        "{}",
        "garbage-xyz",
        "[\"garbage-xyz\"]",
        "{\"session_id\":\"garbage-xyz\",\"context_id\":\"c\"}",
        "{\"session_id\":\"\",\"context_id\":\"garbage-xyz\",\"delegation_id\":\"d\"}",
        "{\"session_id\":1,\"context_id\":\"garbage-xyz\",\"delegation_id\":\"d\"}",
        "{\"session_id\":\"s\",\"context_id\":\"c\",\"delegation_id\":\"garbage-xyz\",\"url\":"
        "\"\"}",
        "{\"session_id\":\"s\",\"context_id\":\"c\",\"delegation_id\":\"garbage-xyz\",\"url\":"
        "null}",
    };
    for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
        struct spawner s;
        struct mur_error *err = NULL;
        assert_false (spawner_parse (bad[i], &s, &err));
        assert_int_equal (err->code, E_RUN_020);
        assert_non_null (strstr (err->message, "MURMUR_SPAWNER"));
        assert_null (strstr (err->message, "garbage-xyz"));
        assert_null (s.session_id);
        mur_error_free (err);
    }
}

/* --- registering --- */

#define GRANT "msa1.the-grant.x"

struct wire {
    const char *status, *answer;
    struct buf head, body;
};

static void
serve (void *ctx, int fd, int number _unused_)
{
    struct wire *w = ctx;
    if (loop_read_request (fd, &w->head, &w->body))
        loop_answer (fd, w->status, w->answer);
}

static void
wire_clear (struct wire *w)
{
    buf_free (&w->head);
    buf_free (&w->body);
}

/* Registers with a daemon that answers so; the refusal's text, or NULL and the credential. */
static char *
ask (struct wire *w, const char *grant, struct secret **credential)
{
    struct loop_server *server = loop_server_new (serve, w);
    struct http_client *http = http_client_new ();
    struct secret *held = grant ? secret_new (grant, strlen (grant)) : NULL;
    _cleanup_free_ char *url = x_asprintf ("http://127.0.0.1:%d//", loop_server_port (server));
    const struct registrant who = { "ses_1", "local/worker", "0.1.0", held };
    struct mur_error *err = NULL;
    *credential = registration_ask (http, url, &who, &err);
    assert_true ((*credential == NULL) == (err != NULL));
    http_client_free (http);
    loop_server_free (server);
    secret_free (held);
    char *said = NULL;
    if (err) {
        assert_int_equal (err->code, E_RUN_019);
        said = x_strdup (err->message);
        assert_non_null (strstr (said, url));
        assert_non_null (strstr (said, "mur-roost"));
        assert_non_null (strstr (said, "capabilities.spawn.allow"));
        assert_null (strstr (said, GRANT));
        mur_error_free (err);
    }
    return said;
}

static void
test_a_credential_is_had_for_a_grant_or_without_one (void **state _unused_)
{
    static const char *const grants[] = { GRANT, NULL };
    for (size_t i = 0; i < ARRAY_LEN (grants); i++) {
        struct wire w = { .status = "200 OK", .answer = "{\"credential\":\"msc1.a.b\"}" };
        struct secret *credential;
        assert_null (ask (&w, grants[i], &credential));
        assert_string_equal (secret_reveal (credential), "msc1.a.b");
        assert_memory_equal (w.head.data, "POST /register HTTP/1.1\r\n", 25);
        assert_true ((strstr (w.head.data, "x-murmur-spawn-approval: " GRANT "\r\n") != NULL) ==
                     (grants[i] != NULL));
        assert_string_equal (
            w.body.data,
            "{\"session_id\":\"ses_1\",\"name\":\"local/worker\",\"version\":\"0.1.0\"}");
        secret_free (credential);
        wire_clear (&w);
    }
}

static void
test_spawn_S9_a_refusal_says_where_why_and_no_token (void **state _unused_)
{
    static const struct {
        const char *status, *answer, *says;
    } cases[] = {
        { "403 Forbidden", "{\"error\":\"not on the list\"}", "not on the list" },
        { "403 Forbidden", "{\"error\":\"what is " GRANT "?\"}", "refused" },
        { "500 Internal Server Error", "it broke", "it broke" },
        { "200 OK", "{\"credentail\":\"msc1.a.b\"}", "credential" },
        { "200 OK", "{\"credential\":\"\"}", "credential" },
        { "200 OK", "msc1.a.b", "credential" },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct wire w = { .status = cases[i].status, .answer = cases[i].answer };
        struct secret *credential;
        _cleanup_free_ char *said = ask (&w, GRANT, &credential);
        assert_non_null (said);
        if (! strstr (said, cases[i].says))
            fail_msg ("\"%s\" does not say \"%s\"", said, cases[i].says);
        assert_null (strstr (said, "msc1.a.b"));
        wire_clear (&w);
    }
}

static void
test_a_daemon_that_has_no_address_or_is_not_there (void **state _unused_)
{
    struct http_client *http = http_client_new ();
    const struct registrant who = { "ses_1", "local/worker", "0.1.0", NULL };
    static const struct {
        const char *url, *shown;
    } cases[] = {
        { NULL, "<unset>" },
        { " ", "<unset>" },
        { "http://127.0.0.1:1", "http://127.0.0.1:1" },
        { "https://127.0.0.1:1", "https://127.0.0.1:1" },
    };
    for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
        struct mur_error *err = NULL, *probed = NULL;
        assert_null (registration_ask (http, cases[i].url, &who, &err));
        assert_false (registration_probe (http, cases[i].url, &probed));
        assert_int_equal (err->code, E_RUN_019);
        assert_int_equal (probed->code, E_RUN_019);
        assert_non_null (strstr (err->message, cases[i].shown));
        mur_error_free (err);
        mur_error_free (probed);
    }
    http_client_free (http);
}

static void
test_the_end_is_told_with_the_credential (void **state _unused_)
{
    for (int is_complete = 0; is_complete < 2; is_complete++) {
        struct wire w = { .status = is_complete ? "200 OK" : "403 Forbidden",
                          .answer = is_complete ? "{}" : "{\"error\":\"who?\"}" };
        struct loop_server *server = loop_server_new (serve, &w);
        struct http_client *http = http_client_new ();
        struct secret *credential = secret_new ("msc1.a.b", 8);
        _cleanup_free_ char *url = x_asprintf ("http://127.0.0.1:%d", loop_server_port (server));
        _cleanup_free_ char *reason = NULL;
        assert_int_equal (
            registration_end (http, url, credential, is_complete, NULL, 5000, &reason),
            is_complete);
        assert_true (str_eq (reason, is_complete ? NULL : "who?"));
        assert_memory_equal (w.head.data, "POST /deregister HTTP/1.1\r\n", 27);
        assert_non_null (strstr (w.head.data, "x-murmur-spawn-credential: msc1.a.b\r\n"));
        assert_string_equal (w.body.data, is_complete ? "{\"outcome\":\"complete\"}"
                                                      : "{\"outcome\":\"failed\"}");
        http_client_free (http);
        loop_server_free (server);
        secret_free (credential);
        wire_clear (&w);
    }
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_handle_is_read_whole_and_blank_is_none),
        cmocka_unit_test (test_a_handle_that_says_too_little_is_refused_unquoted),
        cmocka_unit_test (test_a_credential_is_had_for_a_grant_or_without_one),
        cmocka_unit_test (test_spawn_S9_a_refusal_says_where_why_and_no_token),
        cmocka_unit_test (test_a_daemon_that_has_no_address_or_is_not_there),
        cmocka_unit_test (test_the_end_is_told_with_the_credential),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

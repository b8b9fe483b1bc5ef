/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking for an approval: what goes over the wire, what a refusal says, what never is said
 * (spec/spawn.md A3).
 */
#include "tests/unit/testing.h"

#include "spawn/child/approval.h"
#include "tests/unit/net/loop_server.h"

#include <string.h>

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

#define CREDENTIAL "msc1.the-credential.x"
#define GRANTED                                                                                    \
    "{\"approval\":\"msa1.a.b\",\"name\":\"a/b\",\"version\":\"1\",\"sha256\":\"ab\","             \
    "\"expires_at_ms\":5}"

/* Asks a daemon that answers so; the refusal's text, or NULL when granted. */
static char *
ask (const char *status, const char *answer, struct approval *out)
{
    struct wire w = { .status = status, .answer = answer };
    struct loop_server *server = loop_server_new (serve, &w);
    struct http_client *http = http_client_new ();
    struct secret *credential = secret_new (CREDENTIAL, strlen (CREDENTIAL));
    _cleanup_free_ char *url = x_asprintf ("http://127.0.0.1:%d/", loop_server_port (server));
    struct mur_error *err = NULL;
    bool is_granted = approval_ask (http, url, credential, "a/b", "1", NULL, NULL, out, &err);
    assert_true (is_granted == ! err);
    http_client_free (http);
    loop_server_free (server);
    secret_free (credential);
    assert_memory_equal (w.head.data, "POST /spawn HTTP/1.1\r\n", 22);
    assert_non_null (strstr (w.head.data, "x-murmur-spawn-credential: " CREDENTIAL "\r\n"));
    assert_string_equal (w.body.data, "{\"name\":\"a/b\",\"version\":\"1\"}");
    buf_free (&w.head);
    buf_free (&w.body);
    char *said = err ? x_strdup (err->message) : NULL;
    assert_true (! said || ! strstr (said, CREDENTIAL));
    mur_error_free (err);
    return said;
}

static void
test_an_approval_is_held_and_nothing_else_is_asked (void **state _unused_)
{
    struct approval a;
    assert_null (ask ("200 OK", GRANTED, &a));
    assert_string_equal (secret_reveal (a.token), "msa1.a.b");
    assert_string_equal (a.sha256, "ab");
    assert_int_equal (a.expires_ms, 5);
    approval_clear (&a);
}

static void
expect_refusal (const char *status, const char *answer, const char *part, const char *never)
{
    struct approval a;
    _cleanup_free_ char *said = ask (status, answer, &a);
    assert_non_null (said);
    assert_null (a.token);
    if (! strstr (said, part))
        fail_msg ("\"%s\" does not say \"%s\"", said, part);
    assert_true (! never || ! strstr (said, never));
}

static void
test_a_refusal_is_the_daemons_own_sentence (void **state _unused_)
{
    struct approval a;
    _cleanup_free_ char *said = ask ("403 Forbidden", "{\"error\":\"no level is left\"}", &a);
    assert_string_equal (said, "no level is left");
    expect_refusal ("500 Internal Server Error", "it broke", "500", NULL);
    expect_refusal ("500 Internal Server Error", "it broke", "it broke", NULL);
    /* A body that may hold a token is never quoted. */
    expect_refusal ("200 OK", "{\"aproval\":\"msa1.secret\"}", "approval", "msa1.secret");
    expect_refusal ("200 OK", "{\"approval\":1}", "approval", NULL);
    expect_refusal ("200 OK", "msa1.secret", "approval", "msa1.secret");
    /* Nor is one that sends our own back: ask() looks for it in every refusal. */
    expect_refusal ("403 Forbidden", "{\"error\":\"bad " CREDENTIAL "\"}", "it refused", NULL);
    expect_refusal ("500 Internal Server Error", "bad " CREDENTIAL, "it refused", NULL);
}

/* A model reads it. */
static void
test_a_refusal_is_a_sentence_and_no_book (void **state _unused_)
{
    struct approval a;
    _cleanup_free_ char *book = x_asprintf ("{\"error\":\"%0900000d\"}", 1);
    _cleanup_free_ char *said = ask ("403 Forbidden", book, &a);
    assert_int_equal (strlen (said), 4096 + strlen (" […]"));
}

static void
test_spawn_S8_a_daemon_that_is_not_there_is_named_and_no_token (void **state _unused_)
{
    struct approval a;
    struct mur_error *said = NULL;
    struct http_client *http = http_client_new ();
    struct secret *credential = secret_new (CREDENTIAL, strlen (CREDENTIAL));
    assert_false (
        approval_ask (http, "http://127.0.0.1:1", credential, "a/b", "1", NULL, NULL, &a, &said));
    assert_non_null (strstr (said->message, "http://127.0.0.1:1"));
    assert_null (strstr (said->message, CREDENTIAL));
    mur_error_free (said);
    assert_fails (
        approval_ask (http, "https://127.0.0.1:1", credential, "a/b", "1", NULL, NULL, &a, &err),
        E_RUN_007);
    secret_free (credential);
    http_client_free (http);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_an_approval_is_held_and_nothing_else_is_asked),
        cmocka_unit_test (test_a_refusal_is_the_daemons_own_sentence),
        cmocka_unit_test (test_a_refusal_is_a_sentence_and_no_book),
        cmocka_unit_test (test_spawn_S8_a_daemon_that_is_not_there_is_named_and_no_token),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

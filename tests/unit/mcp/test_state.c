/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server gives a client to bring back, and what it asks a client while a call runs.
 */
#include "tests/unit/testing.h"

#include "base/alloc.h"
#include "mcp/outgoing.h"
#include "mcp/request_state.h"

#include <string.h>

static const unsigned char key[MCP_STATE_KEY_LEN] = { 1, 2, 3 };
static const unsigned char other_key[MCP_STATE_KEY_LEN] = { 1, 2, 4 };

static void
expect_refused (const unsigned char *k, const char *state, const char *binding, uint64_t now)
{
    _cleanup_free_ char *subject = mcp_state_read (k, state, binding, now);
    assert_null (subject);
}

static void
test_a_state_is_good_for_what_it_was_made_for (void **state)
{
    (void)state;
    _cleanup_free_ char *made = mcp_state_make (key, "tsk_1", "call a", 1000);
    _cleanup_free_ char *subject = mcp_state_read (key, made, "call a", 1000);
    assert_string_equal (subject, "tsk_1");
    expect_refused (key, made, "call a", 1001); /* past its end */
    expect_refused (key, made, "call b", 0);
    expect_refused (key, made, "", 0);
    expect_refused (other_key, made, "call a", 0);
}

static void
test_no_altered_state_is_good (void **state)
{
    (void)state;
    _cleanup_free_ char *made = mcp_state_make (key, "tsk_1", "call", 1000);
    for (size_t i = 0; made[i]; i++) {
        _cleanup_free_ char *bent = x_strdup (made);
        bent[i] = bent[i] == '1' ? '2' : '1';
        expect_refused (key, bent, "call", 0);
        bent[i] = '\0';
        expect_refused (key, bent, "call", 0);
    }
    static const char *const odd[] = { "", ".", "..", "a.b", "a.1.b", "tsk_1.1000." };
    for (size_t i = 0; i < ARRAY_LEN (odd); i++)
        expect_refused (key, odd[i], "call", 0);
}

struct client {
    struct mcp_outgoing *out;
    char *sent;
    const char *reply; /* what is answered at once: printed with the id; NULL: nothing */
};

static void
send (void *ctx, char *text)
{
    struct client *c = ctx;
    _cleanup_mcp_message_ struct mcp_message asked = { 0 }, answer = { 0 };
    c->sent = text;
    mcp_message_read (&asked, text, strlen (text));
    assert_int_equal (asked.kind, MCP_REQUEST);
    if (! c->reply)
        return;
    _cleanup_free_ char *said = x_asprintf ("{\"jsonrpc\":\"2.0\",\"id\":\"%s\",%s}",
                                            json_string_value (asked.id), c->reply);
    mcp_message_read (&answer, said, strlen (said));
    assert_int_equal (answer.kind, MCP_RESPONSE);
    mcp_outgoing_take (c->out, &answer);
}

static json_t *
ask (struct client *c, struct mcp_outgoing *out, struct cancel *cancel)
{
    c->out = out;
    json_t *result = mcp_outgoing_ask (out, send, c, "elicitation/create", NULL, 50, cancel);
    assert_null (out->open);
    free (c->sent);
    return result;
}

static void
test_a_client_is_asked_and_answers_or_does_not (void **state)
{
    (void)state;
    struct mcp_outgoing out;
    mcp_outgoing_init (&out);
    struct client good = { .reply = "\"result\":{\"action\":\"accept\"}" };
    struct client bad = { .reply = "\"error\":{\"code\":-32601,\"message\":\"no\"}" };
    struct client silent = { 0 };
    _cleanup_json_ json_t *result = ask (&good, &out, NULL);
    assert_string_equal (json_get_string (result, "action"), "accept");
    assert_null (ask (&bad, &out, NULL));
    assert_null (ask (&silent, &out, NULL));
    struct cancel *cancel = cancel_new ();
    cancel_raise (cancel);
    assert_null (ask (&silent, &out, cancel));
    cancel_unref (cancel);
    mcp_outgoing_close (&out);
    assert_null (ask (&silent, &out, NULL));
    mcp_outgoing_destroy (&out);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_state_is_good_for_what_it_was_made_for),
        cmocka_unit_test (test_no_altered_state_is_good),
        cmocka_unit_test (test_a_client_is_asked_and_answers_or_does_not),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

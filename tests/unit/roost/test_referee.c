/* SPDX-License-Identifier: Apache-2.0
 *
 * The referee's tokens as it judges them, without a store: what no registry is read for
 * (spec/spawn.md B3, C1). Tokens it would have to have minted itself are tests/integration's.
 */
#include "tests/unit/testing.h"

#include "base/digest.h"
#include "base/keys/token.h"
#include "roost/census.h"
#include "roost/referee.h"
#include "roost/referee_register.h"
#include "roost/referee_spawn.h"

#include <string.h>

static struct referee *
referee_without_store (void)
{
    static char *const roots[] = { "a/root", NULL };
    const struct referee_options options = { .registry_path = "/nonexistent",
                                             .spawn_allow = roots,
                                             .max_depth = 3,
                                             .max_concurrent = 4,
                                             .max_live = 16 };
    struct census_facts facts;
    return referee_new (&options, census_take ("/nonexistent", &facts, NULL));
}

static void
expect (struct verdict v, int status, const char *part)
{
    const char *text = json_get_string (v.body, "error");
    assert_int_equal (v.status, status);
    assert_non_null (text);
    if (! strstr (text, part))
        fail_msg ("\"%s\" does not say \"%s\"", text, part);
    json_decref (v.body);
}

#define SPAWN(r, token, body) referee_spawn (r, token, body, strlen (body))

static void
test_a_token_of_another_key_is_no_identity (void **state _unused_)
{
    struct referee *r = referee_without_store ();
    unsigned char key[TOKEN_KEY_LEN];
    random_bytes (key, sizeof key);
    json_t *payload = json_pack ("{s:i,s:s,s:s}", "v", 1, "sid", "ses_1", "n", "00");
    _cleanup_free_ char *forged = token_mint (&token_spawn_credential, key, payload, NULL);
    json_decref (payload);
    const char *ask = "{\"name\":\"a/b\",\"version\":\"1\"}";
    expect (SPAWN (r, NULL, ask), 403, "credential");
    expect (SPAWN (r, "", ask), 403, "credential");
    expect (SPAWN (r, forged, ask), 403, "credential");
    const char *done = "{\"outcome\":\"complete\"}";
    expect (referee_deregister (r, forged, done, strlen (done)), 403, "credential");
    referee_free (r);
}

static void
test_the_body_is_judged_first (void **state _unused_)
{
    static const char *const bodies[] = {
        "", "{", "null", "[]", "{\"name\":\"a/b\"}", "{}", "{\"name\":1,\"version\":\"1\"}"
    };
    struct referee *r = referee_without_store ();
    for (size_t i = 0; i < ARRAY_LEN (bodies); i++) {
        struct verdict v = SPAWN (r, NULL, bodies[i]);
        assert_int_equal (v.status, 400);
        json_decref (v.body);
    }
    referee_free (r);
}

static void
test_a_root_must_be_named_on_the_command_line (void **state _unused_)
{
    const struct caller nobody = { 0 };
    struct referee *r = referee_without_store ();
    const char *other = "{\"session_id\":\"ses_1\",\"name\":\"a/other\",\"version\":\"1\"}";
    const char *root = "{\"session_id\":\"ses_1\",\"name\":\"a/root\",\"version\":\"1\"}";
    expect (referee_register (r, NULL, other, strlen (other), &nobody), 403, "--spawn-allow");
    expect (referee_register (r, NULL, root, strlen (root), &nobody), 500, "a/root@1");
    expect (referee_status (r, "ses_1"), 404, "session not found");
    referee_free (r);
}

static void
test_bound_values_and_families_keep_tokens_apart (void **state _unused_)
{
    unsigned char key[TOKEN_KEY_LEN];
    random_bytes (key, sizeof key);
    json_t *payload = json_pack ("{s:i}", "v", 1);
    _cleanup_free_ char *approval = token_mint (&token_spawn_approval, key, payload, NULL);
    _cleanup_free_ char *bound = token_mint (&token_peer_handle, key, payload, "audience");
    json_decref (payload);
    json_t *read = token_verify (&token_spawn_approval, key, approval, NULL);
    assert_non_null (read);
    json_decref (read);
    assert_null (token_verify (&token_spawn_credential, key, approval, NULL));
    assert_null (token_verify (&token_peer_handle, key, bound, "another"));
    assert_null (token_verify (&token_peer_handle, key, bound, NULL));
    read = token_verify (&token_peer_handle, key, bound, "audience");
    assert_non_null (read);
    json_decref (read);
    /* Every byte of it counts. */
    for (size_t i = 0; approval[i]; i++) {
        char kept = approval[i];
        approval[i] = kept == 'A' ? 'B' : 'A';
        if (i + 1 < strlen (approval)) /* the last character has bits nothing is made of */
            assert_null (token_verify (&token_spawn_approval, key, approval, NULL));
        approval[i] = kept;
    }
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_token_of_another_key_is_no_identity),
        cmocka_unit_test (test_the_body_is_judged_first),
        cmocka_unit_test (test_a_root_must_be_named_on_the_command_line),
        cmocka_unit_test (test_bound_values_and_families_keep_tokens_apart),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

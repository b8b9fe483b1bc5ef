/* SPDX-License-Identifier: Apache-2.0
 *
 * Formation tokens: whose door they open, and that no byte of one can be changed.
 */
#include "tests/unit/testing.h"

#include "base/digest.h"
#include "base/json.h"
#include "base/keys/formation_token.h"

#include <string.h>

#define FORMATION "frm_00000000000000000000000000000001"
#define OTHER     "frm_00000000000000000000000000000002"

static unsigned char private_key[ED25519_KEY_LEN], public_key[ED25519_KEY_LEN];

static int
make_key (void **state _unused_)
{
    return ed25519_load (NULL) && ed25519_new_pair (private_key, public_key) ? 0 : -1;
}

static enum formation_verdict
judge (const char *token)
{
    _cleanup_free_ char *from = NULL;
    enum formation_verdict verdict =
        formation_token_verify (public_key, FORMATION, "coder", token, &from);
    assert_true (! from == (verdict == FORMATION_INVALID));
    return verdict;
}

/* RFC 8032, 7.1, TEST 2. */
static void
test_signatures_are_those_of_the_standard (void **state _unused_)
{
    static const char secret[] = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
    static const char expected[] = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69d"
                                   "a085ac1e43e15996e458f3613d0f"
                                   "11d8c387b2eaeb4302aeeb00d291612bb0c00";
    unsigned char key[ED25519_KEY_LEN], signature[ED25519_SIGNATURE_LEN];
    char text[2 * ED25519_SIGNATURE_LEN + 1];
    for (size_t i = 0; i < sizeof key; i++) {
        char pair[] = { secret[2 * i], secret[2 * i + 1], '\0' };
        key[i] = (unsigned char)strtoul (pair, NULL, 16);
    }
    assert_true (ed25519_sign (key, "r", 1, signature));
    hex_encode (signature, sizeof signature, text);
    assert_string_equal (text, expected);
}

static void
test_a_token_opens_one_door_of_one_formation (void **state _unused_)
{
    _cleanup_free_ char *mine = formation_token_mint (private_key, FORMATION, "lead", "coder");
    _cleanup_free_ char *elsewhere = formation_token_mint (private_key, FORMATION, "lead", "other");
    _cleanup_free_ char *foreign = formation_token_mint (private_key, OTHER, "lead", "coder");
    _cleanup_free_ char *from = NULL;
    assert_int_equal (formation_token_verify (public_key, FORMATION, "coder", mine, &from),
                      FORMATION_GENUINE);
    assert_string_equal (from, "lead");
    assert_int_equal (judge (elsewhere), FORMATION_NOT_HERE);
    assert_int_equal (judge (foreign), FORMATION_INVALID);
}

static void
test_a_token_of_another_key_is_none (void **state _unused_)
{
    unsigned char stranger[ED25519_KEY_LEN], unused[ED25519_KEY_LEN];
    assert_true (ed25519_new_pair (stranger, unused));
    _cleanup_free_ char *forged = formation_token_mint (stranger, FORMATION, "lead", "coder");
    assert_int_equal (judge (forged), FORMATION_INVALID);
}

static void
test_no_byte_of_a_token_can_change (void **state _unused_)
{
    _cleanup_free_ char *token = formation_token_mint (private_key, FORMATION, "lead", "coder");
    size_t len = strlen (token);
    for (size_t i = 0; i < len; i++) {
        char before = token[i];
        token[i] = before == 'A' ? 'B' : 'A';
        assert_int_equal (judge (token), FORMATION_INVALID);
        token[i] = '\0'; /* and no shorter one will do */
        assert_int_equal (judge (token), FORMATION_INVALID);
        token[i] = before;
    }
    _cleanup_free_ char *longer = x_asprintf ("%sA", token);
    assert_int_equal (judge (longer), FORMATION_INVALID);
}

static void
test_a_signed_payload_of_another_shape_is_refused (void **state _unused_)
{
    static const char *const payloads[] = {
        "[]",
        "7",
        "not json",
        "{}",
        "{\"formation\":\"" FORMATION "\",\"from\":\"lead\"}",
        "{\"formation\":\"" FORMATION "\",\"from\":\"lead\",\"to\":7}",
        "{\"formation\":\"" FORMATION "\",\"from\":\"lead\",\"to\":\"coder\",\"more\":1}",
    };
    for (size_t i = 0; i < ARRAY_LEN (payloads); i++) {
        _cleanup_free_ char *segment = base64url_encode (payloads[i], strlen (payloads[i]));
        _cleanup_free_ char *input =
            x_asprintf ("murmur-formation-token-v1\x1fmft1\x1f%s", segment);
        unsigned char signature[ED25519_SIGNATURE_LEN];
        assert_true (ed25519_sign (private_key, input, strlen (input), signature));
        _cleanup_free_ char *mark = base64url_encode (signature, sizeof signature);
        _cleanup_free_ char *token = x_asprintf (FORMATION_TOKEN_TAG "%s.%s", segment, mark);
        assert_int_equal (judge (token), FORMATION_INVALID);
    }
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_signatures_are_those_of_the_standard),
        cmocka_unit_test (test_a_token_opens_one_door_of_one_formation),
        cmocka_unit_test (test_a_token_of_another_key_is_none),
        cmocka_unit_test (test_no_byte_of_a_token_can_change),
        cmocka_unit_test (test_a_signed_payload_of_another_shape_is_refused),
    };
    return cmocka_run_group_tests (tests, make_key, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Base: errors, ids, digests, text, secrets and cancels.
 */
#include "tests/unit/testing.h"

#include "base/arena.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/digest.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/secret.h"

#include <pthread.h>
#include <string.h>

static void
test_the_first_cause_is_kept_and_context_goes_in_front (void **state _unused_)
{
    struct mur_error *err = NULL;
    assert_false (mur_fail (&err, E_CAP_001, "entry %d", 3));
    mur_fail (&err, E_IO_003, "later");
    mur_context (&err, "while staging %s", "x");
    mur_hint (&err, "write %s", "it");
    assert_int_equal (err->code, E_CAP_001);
    assert_string_equal (err->message, "while staging x: entry 3");
    assert_string_equal (err->hint, "write it");
    mur_error_free (err);
    assert_false (mur_fail (NULL, E_CAP_001, "dropped"));
}

static void
test_every_code_is_found_by_its_printed_name (void **state _unused_)
{
    for (int i = 0; i < DIAG_COUNT; i++) {
        enum diag_code found;
        assert_true (diag_code_find (diag_code_name ((enum diag_code)i), &found));
        assert_int_equal (found, i);
    }
    enum diag_code unused;
    assert_false (diag_code_find ("E-RUN-031", &unused));
}

#define MINTED 20000

static void *
mint (void *arg)
{
    struct id *ids = arg;
    for (int i = 0; i < MINTED; i++)
        ids[i] = id_new ("evt_");
    return NULL;
}

static int
compare_ids (const void *a, const void *b)
{
    return strcmp (a, b);
}

static void
test_ids_increase_strictly_and_never_repeat_across_threads (void **state _unused_)
{
    struct id *ids = x_new_array (struct id, 2 * MINTED);
    pthread_t thread;
    pthread_create (&thread, NULL, mint, ids + MINTED);
    mint (ids);
    pthread_join (thread, NULL);
    for (int half = 0; half < 2; half++)
        for (int i = 1; i < MINTED; i++)
            assert_true (strcmp (ids[half * MINTED + i - 1].text, ids[half * MINTED + i].text) < 0);
    assert_true (id_is_valid (ids[0].text, "evt_"));
    uint64_t now = clock_unix_ms ();
    assert_true (id_time_ms (ids[0].text) <= now + 1000 && id_time_ms (ids[0].text) + 5000 > now);
    qsort (ids, 2 * MINTED, sizeof *ids, compare_ids);
    for (int i = 1; i < 2 * MINTED; i++)
        assert_string_not_equal (ids[i - 1].text, ids[i].text);
    free (ids);
}

static void
test_ids_of_another_shape_are_refused (void **state _unused_)
{
    assert_false (id_is_valid ("ses_0", "ses_"));
    assert_false (id_is_valid ("tsk_0123456789abcdef0123456789abcdef", "ses_"));
    assert_false (id_is_valid ("ses_0123456789ABCDEF0123456789abcdef", "ses_"));
    assert_false (id_is_valid ("ses_0123456789abcdef0123456789abcdef0", "ses_"));
    assert_true (id_is_valid ("ses_0123456789abcdef0123456789abcdef", "ses_"));
}

static void
test_digests_match_the_published_vectors (void **state _unused_)
{
    char hex[SHA256_HEX_LEN + 1];
    sha256_hex ("abc", 3, hex);
    assert_string_equal (hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_true (sha256_hex_is_valid (hex));
    hex[0] = 'B';
    assert_false (sha256_hex_is_valid (hex));
    /* RFC 4231, case 2 */
    unsigned char mac[32];
    hmac_sha256 ("Jefe", 4, "what do ya want for nothing?", 28, mac);
    char mac_hex[65];
    hex_encode (mac, 32, mac_hex);
    assert_string_equal (mac_hex,
                         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

static void
test_base64url_round_trips_and_is_strict (void **state _unused_)
{
    unsigned char bytes[64];
    for (size_t len = 0; len <= sizeof bytes; len++) {
        random_bytes (bytes, len);
        char *text = base64url_encode (bytes, len);
        size_t out_len;
        unsigned char *out = base64url_decode (text, strlen (text), &out_len);
        assert_non_null (out);
        assert_int_equal (out_len, len);
        assert_memory_equal (out, bytes, len);
        free (out);
        free (text);
    }
    size_t len;
    assert_null (base64url_decode ("a", 1, &len));
    assert_null (base64url_decode ("ab==", 4, &len));
    assert_null (base64url_decode ("a+b/", 4, &len));
    assert_null (base64url_decode ("ab", 2, &len)); /* stray bits */
}

static void
test_base64_is_standard_and_padded (void **state _unused_)
{
    size_t len;
    _cleanup_free_ char *text = base64_encode ("\xfb\xff\xfe\x01", 4);
    assert_string_equal (text, "+//+AQ==");
    _cleanup_free_ unsigned char *bytes = base64_decode (text, strlen (text), &len);
    assert_int_equal (len, 4);
    assert_memory_equal (bytes, "\xfb\xff\xfe\x01", 4);
    assert_null (base64_decode ("-_", 2, &len));
}

static void
test_utf8_is_judged_and_cut_on_characters (void **state _unused_)
{
    assert_true (utf8_is_valid ("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80", 11));
    assert_false (utf8_is_valid ("\xc0\xaf", 2));
    assert_false (utf8_is_valid ("\xed\xa0\x80", 3));
    assert_false (utf8_is_valid ("\xf4\x90\x80\x80", 4));
    assert_false (utf8_is_valid ("\xc3", 1));
    assert_int_equal (utf8_cut ("a\xc3\xbc", 3, 2), 1);
    assert_int_equal (utf8_cut ("a\xc3\xbc", 3, 3), 3);
    json_t *lossy = json_string_lossy ("a\xff\xc3\xbc", 4);
    assert_string_equal (json_string_value (lossy), "a\xef\xbf\xbd\xc3\xbc");
    json_decref (lossy);
}

static void
test_json_is_compact_and_sorted_on_demand (void **state _unused_)
{
    struct mur_error *err = NULL;
    static const char text[] = "{\"b\": 1, \"a\": [true, null]}";
    json_t *value = json_parse (text, strlen (text), "test", E_IO_003, &err);
    char *sorted = json_text (value, JSON_TEXT_SORTED);
    char *ordered = json_text (value, JSON_TEXT_ORDERED);
    assert_string_equal (sorted, "{\"a\":[true,null],\"b\":1}");
    assert_string_equal (ordered, "{\"b\":1,\"a\":[true,null]}");
    free (sorted);
    free (ordered);
    json_decref (value);
    assert_null (json_parse ("{\"a\":1,\"a\":2}", 13, "x", E_MAN_002, &err));
    assert_int_equal (err->code, E_MAN_002);
    mur_error_free (err);
}

static void
test_secrets_are_redacted_longest_first (void **state _unused_)
{
    struct redactor *r = redactor_new ();
    struct secret *short_one = secret_new ("key-1", 5), *long_one = secret_new ("key-12345", 9);
    redactor_add (r, short_one);
    redactor_add (r, long_one);
    char *text = redactor_apply (r, "a key-12345 b key-1 c");
    assert_string_equal (text, "a [redacted] b [redacted] c");
    free (text);
    secret_free (short_one);
    secret_free (long_one);
    redactor_free (r);
}

static void
count_up (void *ctx)
{
    ++*(int *)ctx;
}

static void *
raise_it (void *c)
{
    cancel_raise (c);
    return NULL;
}

static void
test_a_cancel_wakes_sleepers_and_late_listeners (void **state _unused_)
{
    struct cancel *c = cancel_new ();
    int early = 0, removed = 0, late = 0;
    cancel_add (c, count_up, &early);
    cancel_remove (c, cancel_add (c, count_up, &removed));
    assert_true (cancel_sleep (c, 1));
    pthread_t thread;
    uint64_t start = clock_monotonic_ms ();
    pthread_create (&thread, NULL, raise_it, c);
    assert_false (cancel_sleep (c, 60000));
    assert_true (clock_monotonic_ms () - start < 10000);
    pthread_join (thread, NULL);
    cancel_raise (c);
    cancel_add (c, count_up, &late);
    assert_int_equal (early, 1);
    assert_int_equal (removed, 0);
    assert_int_equal (late, 1);
    cancel_unref (c);
}

static void
test_an_arena_gives_zeroed_aligned_memory_of_any_size (void **state _unused_)
{
    struct arena *a = arena_new ();
    for (size_t size = 1; size < 3000000; size = size * 3 + 1) {
        char *p = arena_alloc (a, size);
        assert_int_equal ((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal (p[i], 0);
        memset (p, 0xff, size);
    }
    assert_string_equal (arena_printf (a, "%s-%d", "x", 7), "x-7");
    arena_free (a);
}

static void
test_what_others_said_stands_behind_a_bar_in_a_message (void **state _unused_)
{
    _cleanup_buf_ struct buf out = { 0 };
    diag_append_message (&out, "it ended\nerror[E-IO-003]: no\n  hint: do\nplain\n  deep\n");
    assert_string_equal (
        out.data, "it ended\n    | error[E-IO-003]: no\n    |   hint: do\n    plain\n  deep\n");
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_the_first_cause_is_kept_and_context_goes_in_front),
        cmocka_unit_test (test_every_code_is_found_by_its_printed_name),
        cmocka_unit_test (test_ids_increase_strictly_and_never_repeat_across_threads),
        cmocka_unit_test (test_ids_of_another_shape_are_refused),
        cmocka_unit_test (test_digests_match_the_published_vectors),
        cmocka_unit_test (test_base64url_round_trips_and_is_strict),
        cmocka_unit_test (test_base64_is_standard_and_padded),
        cmocka_unit_test (test_utf8_is_judged_and_cut_on_characters),
        cmocka_unit_test (test_json_is_compact_and_sorted_on_demand),
        cmocka_unit_test (test_secrets_are_redacted_longest_first),
        cmocka_unit_test (test_a_cancel_wakes_sleepers_and_late_listeners),
        cmocka_unit_test (test_an_arena_gives_zeroed_aligned_memory_of_any_size),
        cmocka_unit_test (test_what_others_said_stands_behind_a_bar_in_a_message),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

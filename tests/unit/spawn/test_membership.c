/* SPDX-License-Identifier: Apache-2.0
 *
 * The member's end of the formation channel: what its first line must say, when addresses come, and
 * that nothing real is left in a text for a model.
 */
#include "tests/unit/testing.h"

#include "base/clock.h"
#include "base/digest.h"
#include "base/keys/formation_token.h"
#include "spawn/formation/membership.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define FORMATION "frm_00000000000000000000000000000001"
#define VARIABLE  "MURMUR_FORMATION_CHANNEL"

static unsigned char private_key[ED25519_KEY_LEN], public_key[ED25519_KEY_LEN];
static int writer = -1;

static int
make_key (void **state _unused_)
{
    return ed25519_load (NULL) && ed25519_new_pair (private_key, public_key) ? 0 : -1;
}

static void
say (const char *text)
{
    assert_int_equal (write (writer, text, strlen (text)), strlen (text));
}

static void
close_writer (void)
{
    if (writer >= 0)
        close (writer);
    writer = -1;
}

/* A channel on which this was said; it stays open until close_writer. */
static struct membership *
take (const char *said, struct mur_error **err)
{
    int fds[2];
    char number[16];
    close_writer ();
    assert_int_equal (pipe (fds), 0);
    writer = fds[1];
    snprintf (number, sizeof number, "%d", fds[0]);
    setenv (VARIABLE, number, 1);
    say (said);
    struct membership *m = membership_take (FORMATION, err);
    unsetenv (VARIABLE);
    return m;
}

/* The first line of "lead", which may call "coder". Owned. */
static char *
first_line (const char *token)
{
    _cleanup_free_ char *key = base64url_encode (public_key, sizeof public_key);
    return x_asprintf ("{\"formation_id\":\"" FORMATION "\",\"member\":\"lead\",\"entry\":true,"
                       "\"verify_key\":\"%s\",\"launcher\":{\"pid\":7,\"process_start\":\"b:1\"},"
                       "\"calls\":[{\"name\":\"coder\",\"token\":\"%s\"}]}\n",
                       key, token);
}

static char *
good_token (void)
{
    return formation_token_mint (private_key, FORMATION, "lead", "coder");
}

static struct membership *
good_member (void)
{
    _cleanup_free_ char *token = good_token (), *line = first_line (token);
    struct membership *m = NULL;
    assert_succeeds ((m = take (line, &err)) != NULL);
    return m;
}

static void
test_the_first_line_says_who_and_whom (void **state _unused_)
{
    _cleanup_ (membership_freep) struct membership *m = good_member ();
    _cleanup_free_ char *token = good_token (), *peers = membership_peers_text (m);
    const char *start;
    assert_string_equal (membership_member (m), "lead");
    assert_true (membership_is_entry (m));
    assert_int_equal (membership_launcher (m, &start), 7);
    assert_string_equal (start, "b:1");
    assert_memory_equal (membership_verify_key (m), public_key, sizeof public_key);
    assert_int_equal (membership_callee_count (m), 1);
    assert_string_equal (secret_reveal (membership_token (m, "coder")), token);
    assert_null (membership_token (m, "other"));
    assert_string_equal (peers, "coder=http://coder.formation.invalid");
}

static void
test_a_line_that_does_not_hold_is_refused_without_its_text (void **state _unused_)
{
    _cleanup_free_ char *mine = good_token ();
    _cleanup_free_ char *theirs = formation_token_mint (private_key, FORMATION, "other", "coder");
    _cleanup_free_ char *elsewhere = formation_token_mint (private_key, FORMATION, "lead", "other");
    _cleanup_free_ char *good = first_line (mine);
    char *lines[] = {
        first_line (theirs), first_line (elsewhere), first_line ("mft1.SECRET.x"),
        x_strdup ("[]\n"),   x_strdup ("SECRET\n"),  x_strdup ("{\"member\":\"lead\"}\n"),
        x_strdup (good),     x_strdup (good),        x_strdup (good),
    };
    *strstr (lines[6], "0001") = '1';              /* another formation */
    memcpy (strstr (lines[7], "lead"), "LEAD", 4); /* no member's name */
    memcpy (strstr (lines[8], "verify_key"), "verify_kez", 10);
    for (size_t i = 0; i < ARRAY_LEN (lines); i++) {
        struct mur_error *err = NULL;
        assert_null (take (lines[i], &err));
        assert_int_equal (err->code, E_RUN_046);
        assert_null (strstr (err->message, "SECRET"));
        assert_null (strstr (err->message, "mft1"));
        mur_error_free (err);
        free (lines[i]);
    }
    close_writer ();
}

static void
test_descriptors_that_are_no_channel_are_refused (void **state _unused_)
{
    static const char *const values[] = { "0", "1", "2", "-1", "x", "3x", "1000", "4294967296" };
    for (size_t i = 0; i < ARRAY_LEN (values); i++) {
        setenv (VARIABLE, values[i], 1);
        assert_fails (membership_take (FORMATION, &err), E_RUN_046);
    }
    setenv (VARIABLE, "9", 1);
    assert_fails (membership_take (NULL, &err), E_RUN_046);
    setenv (VARIABLE, " ", 1);
    assert_null (membership_take (NULL, NULL));
    unsetenv (VARIABLE);
}

static void *
say_later (void *text)
{
    usleep (100000);
    say (text);
    return NULL;
}

static void
test_an_address_is_waited_for_and_may_come_in_pieces (void **state _unused_)
{
    _cleanup_ (membership_freep) struct membership *m = good_member ();
    pthread_t thread;
    assert_null (membership_address (m, "other", NULL));
    say ("not understood\n{\"addresses\":[{\"name\":\"coder\",\"url\":\"http://evil/path\"},");
    say ("{\"name\":\"stranger\",\"url\":\"http://127.0.0.1:1\"}]}\n{\"addresses\":[{\"name\":");
    assert_int_equal (pthread_create (&thread, NULL, say_later,
                                      "\"coder\",\"url\":\"http://127.0.0.1:4711\"}]}\n"),
                      0);
    _cleanup_free_ char *url = membership_address (m, "coder", NULL);
    pthread_join (thread, NULL);
    assert_string_equal (url, "http://127.0.0.1:4711");
    close_writer (); /* what came stays known */
    _cleanup_free_ char *again = membership_address (m, "coder", NULL);
    assert_string_equal (again, url);
}

static void
test_a_wait_for_an_address_ends_with_its_cancel (void **state _unused_)
{
    _cleanup_ (membership_freep) struct membership *m = good_member ();
    struct cancel *cancel = cancel_new ();
    uint64_t start_ms = clock_monotonic_ms ();
    cancel_raise (cancel);
    assert_null (membership_address (m, "coder", cancel));
    assert_true (clock_monotonic_ms () - start_ms < FORMATION_ADDRESS_MS / 2);
    cancel_unref (cancel);
}

static void
test_nothing_real_is_left_in_a_text (void **state _unused_)
{
    _cleanup_ (membership_freep) struct membership *m = good_member ();
    _cleanup_free_ char *token = good_token ();
    say ("{\"addresses\":[{\"name\":\"coder\",\"url\":\"http://127.0.0.1:4711\"}]}\n");
    free (membership_address (m, "coder", NULL));
    _cleanup_free_ char *text =
        x_asprintf ("at http://127.0.0.1:4711/x and 127.0.0.1:4711 with %s, %s", token, token);
    _cleanup_free_ char *clean = membership_redact (m, text);
    assert_string_equal (clean, "at http://coder.formation.invalid/x and coder.formation.invalid "
                                "with [redacted], [redacted]");
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_the_first_line_says_who_and_whom),
        cmocka_unit_test (test_a_line_that_does_not_hold_is_refused_without_its_text),
        cmocka_unit_test (test_descriptors_that_are_no_channel_are_refused),
        cmocka_unit_test (test_an_address_is_waited_for_and_may_come_in_pieces),
        cmocka_unit_test (test_a_wait_for_an_address_ends_with_its_cancel),
        cmocka_unit_test (test_nothing_real_is_left_in_a_text),
    };
    return cmocka_run_group_tests (tests, make_key, NULL);
}

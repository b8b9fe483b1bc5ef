/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversation records on disk: what is appended is what is loaded, once, and only where it may
 * lie.
 */
#include "tests/unit/session/stand.h"

#include "session/conversation/conversation.h"
#include "session/resume.h"

#include <string.h>
#include <sys/stat.h>

#define STORE            "stand-store"
#define FILE_OF(context) ".murmur/conversations/" STORE "/" context "/conversation.jsonl"

static int
open_stand (void **state)
{
    struct stand *st = x_new0 (struct stand);
    stand_open (st, NULL);
    *state = st;
    return 0;
}

static int
close_stand (void **state)
{
    stand_close (*state);
    free (*state);
    return 0;
}

static void
say (struct message_list *l, const char *text)
{
    message_list_add (l, message_new_user (text, strlen (text), NULL));
}

static size_t
lines_of (struct stand *st, const char *path)
{
    _cleanup_free_ char *text = stand_read (st, path);
    size_t n = 0;
    for (const char *c = text ? text : ""; *c; c++)
        n += *c == '\n';
    return n;
}

static void
test_what_was_appended_is_loaded (void **state)
{
    struct stand *st = *state;
    _cleanup_messages_ struct message_list l = { 0 }, back = { 0 };
    _cleanup_ (conversation_freep) struct conversation *c = conversation_new (STORE, "ctx_a", NULL);
    assert_false (conversation_exists (STORE, "ctx_a"));
    say (&l, "one");
    say (&l, "two");
    conversation_append (c, &l);
    assert_true (conversation_exists (STORE, "ctx_a"));
    assert_int_equal (lines_of (st, FILE_OF ("ctx_a")), 2);
    conversation_load (c, NULL, &back);
    assert_int_equal (back.len, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal (back.items[i]->id, l.items[i]->id);
        assert_string_equal (back.items[i]->wire, l.items[i]->wire);
        assert_true (back.items[i]->is_recorded);
    }
}

static void
test_a_message_is_recorded_once (void **state)
{
    struct stand *st = *state;
    _cleanup_messages_ struct message_list l = { 0 };
    _cleanup_ (conversation_freep) struct conversation *c = conversation_new (STORE, "ctx_b", NULL);
    for (size_t i = 1; i <= 5; i++) {
        say (&l, "again");
        conversation_append (c, &l);
        conversation_append (c, &l);
        assert_int_equal (lines_of (st, FILE_OF ("ctx_b")), i);
    }
    struct stat s;
    _cleanup_free_ char *path = x_asprintf ("%s/" FILE_OF ("ctx_b"), st->dir);
    assert_int_equal (stat (path, &s), 0);
    assert_int_equal (s.st_mode & 07777, 0600);
}

static void
test_a_canceled_reply_is_in_the_record_alone (void **state)
{
    (void)state;
    _cleanup_messages_ struct message_list back = { 0 };
    _cleanup_ (conversation_freep) struct conversation *c = conversation_new (STORE, "ctx_c", NULL);
    _cleanup_json_ json_t *content = json_pack ("[{s:s,s:s}]", "type", "text", "text", "stopped");
    _cleanup_message_ struct message *m = message_new_assistant (content);
    m->is_canceled = true;
    conversation_append_one (c, m);
    conversation_load (c, NULL, &back);
    assert_int_equal (back.len, 1);
    assert_true (back.items[0]->is_canceled);
}

static void
test_who_retains_heads_the_record (void **state)
{
    struct stand *st = *state;
    _cleanup_messages_ struct message_list l = { 0 }, back = { 0 };
    _cleanup_ (conversation_freep) struct conversation *c =
        conversation_new (STORE, "ctx_d", "owner");
    say (&l, "one");
    conversation_append (c, &l);
    _cleanup_free_ char *text = stand_read (st, FILE_OF ("ctx_d"));
    assert_true (
        str_starts (text, "{\"type\":\"murmur.record\",\"capsule\":\"owner\",\"created_ms\":"));
    conversation_load (c, NULL, &back);
    assert_int_equal (back.len, 1); /* the header is no message */
}

static void
test_a_record_from_before_is_adopted_once (void **state)
{
    struct stand *st = *state;
    _cleanup_messages_ struct message_list l = { 0 };
    struct conversation *plain = conversation_new (STORE, "ctx_e", NULL);
    say (&l, "old");
    conversation_append (plain, &l);
    conversation_free (plain);
    conversation_adopt (STORE, "ctx_e", "owner");
    assert_int_equal (lines_of (st, FILE_OF ("ctx_e")), 2);
    conversation_adopt (STORE, "ctx_e", "another");
    _cleanup_free_ char *text = stand_read (st, FILE_OF ("ctx_e"));
    assert_int_equal (lines_of (st, FILE_OF ("ctx_e")), 2);
    assert_non_null (strstr (text, "\"capsule\":\"owner\""));
    conversation_adopt (STORE, "ctx_none", "owner"); /* nothing there: nothing made */
    assert_false (conversation_exists (STORE, "ctx_none"));
}

static void
test_lines_that_are_no_messages_are_passed_over (void **state)
{
    struct stand *st = *state;
    _cleanup_messages_ struct message_list l = { 0 }, back = { 0 };
    _cleanup_ (conversation_freep) struct conversation *c = conversation_new (STORE, "ctx_f", NULL);
    say (&l, "good");
    conversation_append (c, &l);
    _cleanup_free_ char *good = stand_read (st, FILE_OF ("ctx_f"));
    _cleanup_free_ char *text =
        x_asprintf ("not json\n%s[1,2]\n{\"role\":7}\n%s{\"cut\":", good, good);
    stand_write (st, FILE_OF ("ctx_f"), text);
    conversation_load (c, NULL, &back);
    assert_int_equal (back.len, 2);
}

static void
test_a_context_that_is_no_path_segment_runs_unrecorded (void **state)
{
    (void)state;
    static const char *const contexts[] = { "../x", "a/b", ".hidden", "", "/etc" };
    for (size_t i = 0; i < ARRAY_LEN (contexts); i++) {
        _cleanup_messages_ struct message_list l = { 0 }, back = { 0 };
        _cleanup_ (conversation_freep) struct conversation *c =
            conversation_new (STORE, contexts[i], NULL);
        say (&l, "x");
        conversation_append (c, &l);
        assert_false (l.items[0]->is_recorded);
        conversation_load (c, NULL, &back);
        assert_int_equal (back.len, 0);
        assert_false (conversation_exists (STORE, contexts[i]));
    }
}

static void
test_without_a_store_nothing_is_recorded (void **state)
{
    (void)state;
    _cleanup_messages_ struct message_list l = { 0 };
    _cleanup_ (conversation_freep) struct conversation *c = conversation_new (NULL, "ctx_g", NULL);
    say (&l, "x");
    conversation_append (c, &l);
    assert_false (l.items[0]->is_recorded);
    assert_string_equal (conversation_context (c), "ctx_g");
    assert_false (conversation_exists (NULL, "ctx_g"));
}

int
unit_conversation (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_what_was_appended_is_loaded),
        cmocka_unit_test (test_a_message_is_recorded_once),
        cmocka_unit_test (test_a_canceled_reply_is_in_the_record_alone),
        cmocka_unit_test (test_who_retains_heads_the_record),
        cmocka_unit_test (test_a_record_from_before_is_adopted_once),
        cmocka_unit_test (test_lines_that_are_no_messages_are_passed_over),
        cmocka_unit_test (test_a_context_that_is_no_path_segment_runs_unrecorded),
        cmocka_unit_test (test_without_a_store_nothing_is_recorded),
    };
    return cmocka_run_group_tests_name ("session/conversation/conversation", tests, open_stand,
                                        close_stand);
}

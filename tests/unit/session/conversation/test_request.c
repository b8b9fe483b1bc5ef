/* SPDX-License-Identifier: Apache-2.0
 *
 * The request text: the same bytes for the same input, a turn adds what is new and moves nothing.
 */
#include "tests/unit/testing.h"

#include "session/conversation/request.h"

#include <string.h>

static const char base[] = "std/driver";

static void
begin (struct request *r)
{
    request_init (r, "m", x_strdup ("[]"), x_strdup ("be good"), "name", "1.0.0", "ctx_1");
}

static void
say (struct message_list *l, const char *text)
{
    message_list_add (l, message_new_user (text, strlen (text), NULL));
}

/* An answer with a thinking block and a text, made by this choice. */
static void
answer (struct message_list *l, const char *text, const char *driver, const char *model)
{
    _cleanup_json_ json_t *content = json_pack ("[{s:s,s:s},{s:s,s:s}]", "type", "thinking",
                                                "thinking", "hm", "type", "text", "text", text);
    struct message *m = message_new_assistant (content);
    if (driver)
        message_set_producer (m, driver, model);
    message_list_add (l, m);
}

static json_t *
parsed (const struct request *r)
{
    json_t *o = json_loadb (r->text.data, r->text.len, 0, NULL);
    assert_non_null (o);
    return o;
}

static void
test_the_members_in_order (void **state)
{
    (void)state;
    struct request r;
    _cleanup_messages_ struct message_list l = { 0 };
    begin (&r);
    say (&l, "hello");
    request_build (&r, &l, 0, 100, NULL);
    _cleanup_free_ char *text = x_strndup (r.text.data, r.text.len);
    const char *order[] = { "{\"max_tokens\":100,\"messages\":[",
                            "hello",
                            "],\"model\":\"m\"",
                            "\"params\":{}",
                            "\"prompt_cache_key\":\"name:1.0.0:ctx_1\"",
                            "\"system\":\"be good\"",
                            "\"tools\":[]}" };
    const char *at = text;
    for (size_t i = 0; i < ARRAY_LEN (order); i++) {
        const char *next = strstr (at, order[i]);
        assert_non_null (next);
        at = next;
    }
    _cleanup_json_ json_t *o = parsed (&r);
    assert_int_equal (json_array_size (json_object_get (o, "messages")), 1);
    assert_null (json_object_get (o, "continuation_id"));
    request_free (&r);
}

static void
test_a_turn_keeps_every_byte_that_was_there (void **state)
{
    (void)state;
    struct request r;
    _cleanup_messages_ struct message_list l = { 0 };
    begin (&r);
    say (&l, "one");
    request_build (&r, &l, 0, 100, NULL);
    for (int turn = 0; turn < 20; turn++) {
        size_t kept = r.messages_end;
        _cleanup_free_ char *before = x_strndup (r.text.data, kept);
        say (&l, "more");
        request_build (&r, &l, 0, 100, NULL);
        assert_memory_equal (r.text.data, before, kept);
        assert_true (r.messages_end > kept);
        _cleanup_json_ json_t *o = parsed (&r);
        assert_int_equal (json_array_size (json_object_get (o, "messages")), (size_t)turn + 2);
    }
    request_free (&r);
}

static void
test_built_step_by_step_or_at_once_it_is_the_same (void **state)
{
    (void)state;
    struct request steps, once;
    _cleanup_messages_ struct message_list l = { 0 };
    begin (&steps);
    begin (&once);
    for (int i = 0; i < 7; i++) {
        say (&l, "text");
        answer (&l, "reply", base, "m");
        request_build (&steps, &l, 0, 50, NULL);
    }
    request_build (&once, &l, 0, 50, NULL);
    assert_int_equal (steps.text.len, once.text.len);
    assert_memory_equal (steps.text.data, once.text.data, once.text.len);
    request_free (&steps);
    request_free (&once);
}

static void
test_another_head_builds_it_anew (void **state)
{
    (void)state;
    struct request r;
    _cleanup_messages_ struct message_list l = { 0 };
    begin (&r);
    say (&l, "one");
    say (&l, "two");
    static const struct {
        size_t first;
        uint64_t cap;
        const char *continuation;
        size_t messages;
    } rows[] = { { 0, 10, NULL, 2 },     { 0, 20, NULL, 2 },     { 1, 20, "resp_1", 1 },
                 { 1, 20, "resp_2", 1 }, { 2, 20, "resp_3", 0 }, { 0, 20, NULL, 2 } };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        request_build (&r, &l, rows[i].first, rows[i].cap, rows[i].continuation);
        _cleanup_json_ json_t *o = parsed (&r);
        assert_int_equal (json_array_size (json_object_get (o, "messages")), rows[i].messages);
        assert_int_equal (json_integer_value (json_object_get (o, "max_tokens")), rows[i].cap);
        if (rows[i].continuation)
            assert_string_equal (json_get_string (o, "continuation_id"), rows[i].continuation);
        else
            assert_null (json_object_get (o, "continuation_id"));
    }
    request_free (&r);
}

static void
test_what_was_replaced_is_built_from_nothing (void **state)
{
    (void)state;
    struct request r;
    _cleanup_messages_ struct message_list l = { 0 };
    begin (&r);
    say (&l, "old words");
    request_build (&r, &l, 0, 10, NULL);
    message_list_clear (&l);
    say (&l, "new words");
    request_forget (&r);
    request_build (&r, &l, 0, 10, NULL);
    _cleanup_free_ char *text = x_strndup (r.text.data, r.text.len);
    assert_null (strstr (text, "old words"));
    assert_non_null (strstr (text, "new words"));
    request_free (&r);
}

static void
test_tools_are_replaced_with_their_digest (void **state)
{
    (void)state;
    struct request r;
    _cleanup_messages_ struct message_list l = { 0 };
    begin (&r);
    char before[SHA256_HEX_LEN + 1];
    memcpy (before, r.tools_sha, sizeof before);
    say (&l, "x");
    uint64_t tokens = request_tokens (&r, &l);
    request_set_tools (
        &r,
        x_strdup (
            "[{\"description\":\"a tool with a long description\",\"name\":\"t\",\"parameters\":{}}]"));
    assert_string_not_equal (before, r.tools_sha);
    assert_true (request_tokens (&r, &l) > tokens);
    request_build (&r, &l, 0, 10, NULL);
    _cleanup_json_ json_t *o = parsed (&r);
    assert_int_equal (json_array_size (json_object_get (o, "tools")), 1);
    request_free (&r);
}

/* --- several models --- */

static void
test_another_model_is_sent_no_thinking (void **state)
{
    (void)state;
    struct request r;
    _cleanup_messages_ struct message_list l = { 0 };
    begin (&r);
    say (&l, "q");
    answer (&l, "of primary", NULL, NULL);
    answer (&l, "of fast", base, "fast");
    static const struct {
        const char *model;
        size_t blocks[2]; /* of the two answers */
    } rows[] = { { "m", { 2, 1 } }, { "fast", { 1, 2 } }, { "third", { 1, 1 } } };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        const struct request_reader reader = { base, rows[i].model, base, "m" };
        request_set_reader (&r, &reader);
        request_build (&r, &l, 0, 10, NULL);
        _cleanup_json_ json_t *o = parsed (&r);
        assert_string_equal (json_get_string (o, "model"), rows[i].model);
        const json_t *messages = json_object_get (o, "messages");
        for (size_t k = 0; k < 2; k++)
            assert_int_equal (
                json_array_size (json_object_get (json_array_get (messages, k + 1), "content")),
                rows[i].blocks[k]);
    }
    request_free (&r);
}

static void
test_a_message_of_nothing_but_thinking_is_left_out (void **state)
{
    (void)state;
    struct request r;
    _cleanup_messages_ struct message_list l = { 0 };
    begin (&r);
    say (&l, "q");
    _cleanup_json_ json_t *content =
        json_pack ("[{s:s,s:s}]", "type", "thinking", "thinking", "only this");
    struct message *m = message_new_assistant (content);
    message_set_producer (m, base, "m");
    message_list_add (&l, m);
    say (&l, "again");
    const struct request_reader other = { base, "fast", base, "m" };
    request_set_reader (&r, &other);
    request_build (&r, &l, 0, 10, NULL);
    _cleanup_json_ json_t *o = parsed (&r);
    assert_int_equal (json_array_size (json_object_get (o, "messages")), 2);
    assert_null (request_view (&r, m));
    request_free (&r);
}

static void
test_the_same_reader_changes_nothing (void **state)
{
    (void)state;
    struct request r;
    _cleanup_messages_ struct message_list l = { 0 };
    begin (&r);
    const struct request_reader reader = { base, "m", base, "m" };
    request_set_reader (&r, &reader);
    say (&l, "x");
    request_build (&r, &l, 0, 10, NULL);
    size_t len = r.text.len;
    request_set_reader (&r, &reader);
    assert_int_equal (r.text.len, len);
    request_free (&r);
}

/* --- the estimate and the key --- */

static void
test_tokens_grow_with_what_is_added (void **state)
{
    (void)state;
    struct request r;
    _cleanup_messages_ struct message_list l = { 0 };
    begin (&r);
    uint64_t before = request_tokens (&r, &l);
    assert_true (before > 0);
    for (int i = 0; i < 5; i++) {
        say (&l, "some words that cost something");
        uint64_t now = request_tokens (&r, &l);
        assert_int_equal (now - before, message_tokens (l.items[l.len - 1]));
        before = now;
    }
    request_free (&r);
}

static void
test_the_cache_key_has_64_bytes_at_most (void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool is_whole;
    } rows[] = { { "a", true },
                 { "a-name-that-is-rather-long-but-still-fits-here-ok", true },
                 { "a-name-that-is-so-long-that-the-key-has-to-be-cut-somewhere-in-it-and-hashed",
                   false },
                 { "ééééééééééééééééééééééééééééééééééééééééééé", false } };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_free_ char *key = request_cache_key (rows[i].name, "1.0.0", "ctx_1");
        assert_true (strlen (key) <= 64);
        assert_int_equal (str_ends (key, ":1.0.0:ctx_1"), rows[i].is_whole);
        assert_true (utf8_is_valid (key, strlen (key)));
        _cleanup_free_ char *other = request_cache_key (rows[i].name, "1.0.0", "ctx_2");
        assert_string_not_equal (key, other);
    }
}

int
unit_request (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_the_members_in_order),
        cmocka_unit_test (test_a_turn_keeps_every_byte_that_was_there),
        cmocka_unit_test (test_built_step_by_step_or_at_once_it_is_the_same),
        cmocka_unit_test (test_another_head_builds_it_anew),
        cmocka_unit_test (test_what_was_replaced_is_built_from_nothing),
        cmocka_unit_test (test_tools_are_replaced_with_their_digest),
        cmocka_unit_test (test_another_model_is_sent_no_thinking),
        cmocka_unit_test (test_a_message_of_nothing_but_thinking_is_left_out),
        cmocka_unit_test (test_the_same_reader_changes_nothing),
        cmocka_unit_test (test_tokens_grow_with_what_is_added),
        cmocka_unit_test (test_the_cache_key_has_64_bytes_at_most),
    };
    return cmocka_run_group_tests_name ("session/conversation/request", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What hooks see and give: messages there and back, and the texts of the task that runs, looked at
 * from several threads.
 */
#include "tests/unit/session/stand.h"

#include "session/hooks/hook_messages.h"
#include "session/hooks/hook_task.h"
#include "session/hooks/hooks_internal.h"

#include <pthread.h>
#include <string.h>

/* --- messages --- */

static void
test_there_and_back_it_is_the_same (void **state)
{
    (void)state;
    _cleanup_json_ json_t *blocks = value_of (
        "[{'type':'text','text':'hi'},{'type':'tool_call','id':'c','name':'t','input':{}}]");
    struct message *made[] = { message_new_user ("plain text", 10, NULL),
                               message_new_assistant (blocks),
                               message_new_tool ("call_1", false, "the result", 10, "tool:t"),
                               message_new_tool ("call_2", true, "", 0, NULL) };
    for (size_t i = 0; i < ARRAY_LEN (made); i++) {
        _cleanup_arena_ struct arena *arena = arena_new ();
        struct hook_message seen;
        hook_message_fill (made[i], arena, &seen);
        _cleanup_message_ struct message *back = hook_message_take (&seen);
        assert_non_null (back);
        assert_string_equal (back->wire, made[i]->wire);
        assert_string_equal (back->id, made[i]->id);
        assert_int_equal (back->role, made[i]->role);
        message_free (made[i]);
    }
}

static void
test_what_a_hook_may_give (void **state)
{
    (void)state;
    static const struct {
        const char *role, *content, *text; /* of its first block; NULL: refused */
    } rows[] = {
        { "user", "plain", "plain" },
        { "user", "", "" },
        { "user", "\"quoted\"", "quoted" },
        { "user", "[{\"type\":\"text\",\"text\":\"in a block\"}]", "in a block" },
        { "user", "[{\"text\":\"no type\"}]", "[{\"text\":\"no type\"}]" },
        { "user", "{\"a\":1}", "{\"a\":1}" },
        { "user", "5", "5" },
        { "assistant", "said", "said" },
        { "system", "as a user", "as a user" },
        { "tool", "plain", NULL },
        { "tool", "{\"tool_call_id\":\"c\",\"body\":\"x\"}", NULL },
        { "tool", "{\"__murmur_tool_msg__\":true,\"body\":\"x\"}", NULL },
        { "tool", "{\"__murmur_tool_msg__\":true,\"tool_call_id\":\"\",\"body\":\"x\"}", NULL },
        { "tool", "{\"__murmur_tool_msg__\":true,\"tool_call_id\":\"c\"}", NULL },
        { "tool", "{\"__murmur_tool_msg__\":true,\"tool_call_id\":\"c\",\"body\":7}", NULL },
        { "tool", "{\"__murmur_tool_msg__\":true,\"tool_call_id\":\"c\",\"body\":\"x\"}", "x" },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        const struct hook_message given = { .role = rows[i].role,
                                            .content = rows[i].content,
                                            .content_len = strlen (rows[i].content) };
        _cleanup_message_ struct message *m = hook_message_take (&given);
        assert_int_equal (m != NULL, rows[i].text != NULL);
        if (! m)
            continue;
        _cleanup_json_ json_t *wire = json_loadb (m->wire, m->wire_len, 0, NULL);
        const json_t *first = json_array_get (json_object_get (wire, "content"), 0);
        assert_string_equal (json_get_string (first, "text"), rows[i].text);
        assert_true (id_is_valid (m->id, "msg_"));
    }
}

static void
test_ids_a_hook_gives_are_kept (void **state)
{
    (void)state;
    const struct hook_message given = {
        .role = "user", .content = "x", .content_len = 1, .id = "msg_mine", .source_id = "src"
    };
    _cleanup_message_ struct message *m = hook_message_take (&given);
    assert_string_equal (m->id, "msg_mine");
    assert_string_equal (m->source_id, "src");
    const struct hook_message blank = {
        .role = "user", .content = "x", .content_len = 1, .id = ""
    };
    _cleanup_message_ struct message *fresh = hook_message_take (&blank);
    assert_true (id_is_valid (fresh->id, "msg_"));
}

/* --- the task's texts --- */

static int
open_stand (void **state)
{
    struct stand *st = x_new0 (struct stand);
    stand_open (st, NULL);
    st->s.rooms.hooks = x_new0 (struct hooks);
    pthread_mutex_init (&st->s.rooms.hooks->lock, NULL);
    *state = st;
    return 0;
}

static int
close_stand (void **state)
{
    struct stand *st = *state;
    struct hooks *h = st->s.rooms.hooks;
    free (h->context_id);
    free (h->as_given);
    free (h->original);
    free (h->output);
    free (h);
    stand_close (st);
    free (st);
    return 0;
}

static void
assert_text (struct stand *st, enum task_io_text which, enum task_io_error error,
             const char *expected)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    const char *text = NULL;
    size_t len = 0;
    assert_int_equal (hook_task_text (&st->s, which, arena, &text, &len), error);
    if (expected) {
        assert_int_equal (len, strlen (expected));
        assert_memory_equal (text, expected, len);
    }
}

static void
test_the_texts_of_a_task (void **state)
{
    struct stand *st = *state;
    assert_text (st, TASK_IO_ORIGINAL, TASK_IO_NO_TASK, NULL);
    assert_text (st, TASK_IO_OUTPUT, TASK_IO_NO_TASK, NULL);
    hooks_task_begin (&st->s, &st->task);
    hooks_attempt_begin (&st->s, "first", 5);
    assert_text (st, TASK_IO_OUTPUT, TASK_IO_NO_OUTPUT, NULL);
    assert_text (st, TASK_IO_ORIGINAL, TASK_IO_OK, "first");
    hooks_output (&st->s, "the answer");
    assert_text (st, TASK_IO_OUTPUT, TASK_IO_OK, "the answer");
    hooks_attempt_begin (&st->s, "first, and more", 15);
    assert_text (st, TASK_IO_ORIGINAL, TASK_IO_OK, "first");
    assert_text (st, TASK_IO_AS_GIVEN, TASK_IO_OK, "first, and more");
    assert_text (st, TASK_IO_OUTPUT, TASK_IO_NO_OUTPUT, NULL); /* not of this attempt */
    hooks_attempt_begin (&st->s, NULL, 0);                     /* goes on: nothing new is given */
    assert_text (st, TASK_IO_AS_GIVEN, TASK_IO_OK, "first, and more");
    hooks_task_end (&st->s);
    assert_text (st, TASK_IO_ORIGINAL, TASK_IO_NO_TASK, NULL);
    hooks_attempt_begin (&st->s, "second", 6);
    assert_text (st, TASK_IO_ORIGINAL, TASK_IO_OK, "second");
}

static void
test_the_context_of_the_task (void **state)
{
    struct stand *st = *state;
    _cleanup_arena_ struct arena *arena = arena_new ();
    assert_string_equal (hook_task_context (&st->s, arena, "ctx_else"), "ctx_else");
    hooks_task_begin (&st->s, &st->task);
    assert_string_equal (hook_task_context (&st->s, arena, "ctx_else"), st->task.context_id);
}

static void
test_without_hooks_nothing_is_kept (void **state)
{
    struct stand *st = *state;
    struct hooks *h = st->s.rooms.hooks;
    st->s.rooms.hooks = NULL;
    hooks_task_begin (&st->s, &st->task);
    hooks_attempt_begin (&st->s, "x", 1);
    hooks_output (&st->s, "x");
    hooks_task_end (&st->s);
    assert_text (st, TASK_IO_ORIGINAL, TASK_IO_NO_TASK, NULL);
    assert_false (hooks_watch (&st->s, HOOK_ON_TOOL_CALL));
    st->s.rooms.hooks = h;
}

static void *
look_often (void *arg)
{
    struct stand *st = arg;
    for (int i = 0; i < 2000; i++) {
        _cleanup_arena_ struct arena *arena = arena_new ();
        const char *text = NULL;
        size_t len = 0;
        if (hook_task_text (&st->s, TASK_IO_OUTPUT, arena, &text, &len) == TASK_IO_OK)
            for (size_t k = 1; k < len; k++)
                assert_int_equal (text[k], text[0]); /* whole, never half of two */
    }
    return NULL;
}

static void
test_hooks_on_other_threads_see_whole_texts (void **state)
{
    struct stand *st = *state;
    pthread_t threads[2];
    hooks_attempt_begin (&st->s, "x", 1);
    for (size_t i = 0; i < ARRAY_LEN (threads); i++)
        pthread_create (&threads[i], NULL, look_often, st);
    for (int i = 0; i < 2000; i++) {
        char text[200];
        size_t len = (size_t)(i % 190);
        memset (text, 'a' + i % 26, len);
        text[len] = '\0';
        hooks_output (&st->s, text);
    }
    for (size_t i = 0; i < ARRAY_LEN (threads); i++)
        pthread_join (threads[i], NULL);
}

int
unit_hook_messages (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_there_and_back_it_is_the_same),
        cmocka_unit_test (test_what_a_hook_may_give),
        cmocka_unit_test (test_ids_a_hook_gives_are_kept),
        cmocka_unit_test_setup_teardown (test_the_texts_of_a_task, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_the_context_of_the_task, open_stand, close_stand),
        cmocka_unit_test_setup_teardown (test_without_hooks_nothing_is_kept, open_stand,
                                         close_stand),
        cmocka_unit_test_setup_teardown (test_hooks_on_other_threads_see_whole_texts, open_stand,
                                         close_stand),
    };
    return cmocka_run_group_tests_name ("session/hooks", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The view of a watched session: wrapping, the live line of a call being written, thinking, and
 * what happens between tasks.
 */
#include "tests/unit/testing.h"

#include "cli/running/watch_view.h"
#include "door/card/card.h"

#include <string.h>

static char *
shown (struct watch_view *v, const char *event)
{
    _cleanup_json_ json_t *json = json_loads (event, 0, NULL);
    assert_non_null (json);
    struct buf out = { 0 };
    _cleanup_buf_ struct buf notes = { 0 };
    assert_true (watch_view_event (v, json, &out, &notes));
    return buf_steal (&out);
}

static void
assert_shows (struct watch_view *v, const char *event, const char *expected)
{
    _cleanup_free_ char *text = shown (v, event);
    assert_string_equal (text, expected);
}

#define STATUS(task, state, text)                                                                  \
    "{\"statusUpdate\":{\"taskId\":\"" task "\",\"contextId\":\"ctx_0123456789\",\"status\":"      \
    "{\"state\":\"TASK_STATE_" state "\",\"message\":{\"parts\":[{\"text\":\"" text "\"}]}}}}"
#define FRAME(members)                                                                             \
    "{\"statusUpdate\":{\"taskId\":\"tsk_a\",\"contextId\":\"ctx_0123456789\",\"status\":{"        \
    "\"state\":\"TASK_STATE_WORKING\"},\"metadata\":{\"" CARD_STREAM_URI "\":{" members "}}}}"
#define ANSWER(text)                                                                               \
    "{\"artifactUpdate\":{\"taskId\":\"tsk_a\",\"contextId\":\"ctx_0123456789\",\"artifact\":{"    \
    "\"name\":\"response\",\"parts\":[{\"text\":\"" text "\"}]}}}"

static void
test_answers_are_wrapped_between_words_and_blanks_are_one (void **state)
{
    (void)state;
    struct watch_view *v = watch_view_new (&(struct watch_style){ 0 });
    free (
        shown (v, ANSWER ("a  b\\tc\\n\\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                          "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx yy\\n")));
    assert_shows (
        v, STATUS ("tsk_a", "COMPLETED", "task completed"),
        "[completed]\n  a b c\n\n  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n  yy\n\n");
    watch_view_free (v);
}

static void
test_text_is_raw_and_a_status_starts_its_own_line (void **state)
{
    (void)state;
    struct watch_view *v = watch_view_new (&(struct watch_style){ 0 });
    assert_shows (v, FRAME ("\"frame\":\"text\",\"text\":\"par\",\"final\":false"), "par");
    assert_shows (v, FRAME ("\"frame\":\"thinking\",\"text\":\"hm\",\"final\":false"), "");
    assert_shows (v, FRAME ("\"frame\":\"text\",\"text\":\"t\",\"final\":false"), "t");
    assert_shows (v, STATUS ("tsk_a", "INPUT_REQUIRED", "which one?"),
                  "\n[input-required]  which one?\n");
    assert_shows (v, FRAME ("\"frame\":\"text\",\"text\":\"whole\",\"final\":true"), "whole\n");
    watch_view_free (v);
}

static void
test_an_artifact_without_numbers_shows_none (void **state)
{
    (void)state;
    struct watch_view *v = watch_view_new (&(struct watch_style){ 0 });
    assert_shows (v,
                  FRAME ("\"frame\":\"artifact\",\"toolName\":\"h\",\"content\":\"\","
                         "\"isError\":false,\"durationMs\":null,\"exitCode\":null"),
                  "[artifact] tool: h [ok] | \n");
    assert_shows (v,
                  FRAME ("\"frame\":\"artifact\",\"toolName\":\"s\",\"content\":\"a\\nb\","
                         "\"isError\":true,\"durationMs\":3,\"exitCode\":2,\"truncated\":true"),
                  "[artifact] tool: s [error, exit 2, 3ms, truncated] | a\n  b\n");
    watch_view_free (v);
}

static void
test_the_turn_of_a_threaded_context_counts_its_tasks (void **state)
{
    (void)state;
    struct watch_view *v = watch_view_new (&(struct watch_style){ 0 });
    assert_shows (v,
                  "{\"message\":{\"metadata\":{\"" CARD_STREAM_URI
                  "\":{\"frame\":\"connection-ack\",\"conversationMode\":\"threaded\"}}}}",
                  "");
    assert_shows (v, STATUS ("tsk_a", "CANCELED", "task canceled"),
                  "[ctx_01234567... / turn 1 / canceled]\n\n");
    assert_shows (v, STATUS ("tsk_b", "WORKING", "inference turn 1"),
                  "[ctx_01234567... / turn 2 / working]  inference turn 1\n");
    watch_view_free (v);
}

static void
test_a_call_being_written_is_one_line_that_its_result_replaces (void **state)
{
    (void)state;
    struct watch_view *v = watch_view_new (&(struct watch_style){ .is_terminal = true });
    assert_shows (v, FRAME ("\"frame\":\"thinking\",\"text\":\"hm\\u001b[2J\",\"final\":false"),
                  "● tsk_a\n  ");
    assert_shows (v,
                  FRAME ("\"frame\":\"tool-call-started\",\"toolCallId\":\"c\","
                         "\"toolName\":\"files\""),
                  "hm·[2J\n  … files");
    assert_shows (v,
                  FRAME ("\"frame\":\"tool-call-progress\",\"toolCallId\":\"c\","
                         "\"inputBytes\":2048"),
                  "\r\033[K  … files  2048 bytes");
    assert_shows (v,
                  FRAME ("\"frame\":\"artifact\",\"toolName\":\"files\",\"content\":"
                         "\"<untrusted-content source=x>\\n\\none\\ntwo\",\"isError\":false"),
                  "\r\033[K  ✓ files  [ok]  one\n");
    struct buf out = { 0 };
    watch_view_end (v, &out);
    assert_int_equal (out.len, 0);
    watch_view_free (v);
}

static void
test_an_unstreamed_answer_is_shown_once (void **state)
{
    (void)state;
    struct watch_view *v = watch_view_new (&(struct watch_style){ .is_terminal = true });
    assert_shows (v, STATUS ("tsk_a", "WORKING", "inference turn 1"), "● tsk_a\n  turn 1\n");
    free (shown (v, ANSWER ("quiet")));
    assert_shows (v, STATUS ("tsk_a", "COMPLETED", "task completed"),
                  "  quiet\n  ✓ completed  1 turn\n\n");
    watch_view_free (v);
}

static unsigned
twenty (void)
{
    return 20;
}

static void
test_streamed_text_is_wrapped_between_words_as_it_comes (void **state)
{
    (void)state;
    struct watch_view *v =
        watch_view_new (&(struct watch_style){ .is_terminal = true, .width = twenty });
    assert_shows (v, FRAME ("\"frame\":\"text\",\"text\":\"one two thr\",\"final\":false"),
                  "● tsk_a\n  one two");
    assert_shows (v, FRAME ("\"frame\":\"text\",\"text\":\"ee fourteen  x\",\"final\":false"),
                  " three\n  fourteen");
    assert_shows (v, FRAME ("\"frame\":\"text\",\"text\":\"\\n  - é\\u0007 \",\"final\":false"),
                  "  x\n    - é·");
    assert_shows (v,
                  FRAME ("\"frame\":\"text\",\"text\":\"a-word-longer-than-the-line y\","
                         "\"final\":true"),
                  "\n  a-word-longer-than-the-line\n  y\n");
    watch_view_free (v);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_answers_are_wrapped_between_words_and_blanks_are_one),
        cmocka_unit_test (test_text_is_raw_and_a_status_starts_its_own_line),
        cmocka_unit_test (test_an_artifact_without_numbers_shows_none),
        cmocka_unit_test (test_the_turn_of_a_threaded_context_counts_its_tasks),
        cmocka_unit_test (test_a_call_being_written_is_one_line_that_its_result_replaces),
        cmocka_unit_test (test_streamed_text_is_wrapped_between_words_as_it_comes),
        cmocka_unit_test (test_an_unstreamed_answer_is_shown_once),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

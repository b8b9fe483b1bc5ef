/* SPDX-License-Identifier: Apache-2.0
 *
 * The guest SDK's JSON, text and files: what a model or a runtime may send, read and written
 * without a slip.
 */
#include "tests/unit/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "murmur_sdk.h"
#include "murmur_sse.h"

static struct mur_json *
parse (const char *text)
{
    return mur_json_parse (text, strlen (text));
}

static void
assert_text (const char *json, const char *key, const char *expected)
{
    struct mur_json *doc = parse (json);
    char *text = mur_json_text (doc, mur_json_get (doc, 0, key));
    assert_non_null (text);
    assert_string_equal (text, expected);
    free (text);
    mur_json_free (doc);
}

static void
test_values_are_found_by_key_index_and_walk (void **state)
{
    (void)state;
    struct mur_json *doc =
        parse ("{\"a\": 1, \"list\": [true, null, {\"deep\": [7]}, \"x\"], \"o\": {}, \"z\": -5}");
    mur_node list = mur_json_get (doc, 0, "list");
    assert_int_equal (mur_json_int (doc, mur_json_get (doc, 0, "a"), 0), 1);
    assert_int_equal (mur_json_int (doc, mur_json_get (doc, 0, "z"), 0), -5);
    assert_int_equal (mur_json_count (doc, list), 4);
    assert_true (mur_json_bool (doc, mur_json_at (doc, list, 0), false));
    assert_int_equal (mur_json_kind (doc, mur_json_at (doc, list, 1)), MUR_JSON_NULL);
    mur_node deep = mur_json_get (doc, mur_json_at (doc, list, 2), "deep");
    assert_int_equal (mur_json_int (doc, mur_json_at (doc, deep, 0), 0), 7);
    assert_true (mur_json_is (doc, mur_json_at (doc, list, 3), "x"));
    assert_int_equal (mur_json_at (doc, list, 4), -1);
    assert_int_equal (mur_json_count (doc, mur_json_get (doc, 0, "o")), 0);
    assert_int_equal (mur_json_first (doc, mur_json_get (doc, 0, "o")), -1);
    size_t keys = 0;
    for (mur_node n = mur_json_first (doc, 0); n >= 0; n = mur_json_next (doc, n)) {
        char *key = mur_json_key (doc, n);
        assert_string_equal (key, ((const char *[]){ "a", "list", "o", "z" })[keys++]);
        free (key);
    }
    assert_int_equal (keys, 4);
    mur_json_free (doc);
}

static void
test_escapes_become_characters (void **state)
{
    (void)state;
    assert_text ("{\"t\":\"a\\n\\t\\\"\\\\\\/b\"}", "t", "a\n\t\"\\/b");
    assert_text ("{\"t\":\"\\u00e9\\u20AC\\ud83d\\ude00\"}", "t", "é€😀");
    assert_text ("{\"t\":\"\\ud83dx\\ude00\"}", "t", "\xef\xbf\xbdx\xef\xbf\xbd");
    assert_text ("{\"\\u0074\":\"found by its unescaped key\"}", "t", "found by its unescaped key");
}

static void
test_what_is_absent_or_of_another_kind_answers_so (void **state)
{
    (void)state;
    struct mur_json *doc = parse ("{\"n\": 1.5, \"s\": \"1\", \"a\": []}");
    assert_null (mur_json_text (doc, mur_json_get (doc, 0, "n")));
    assert_null (mur_json_text (doc, mur_json_get (doc, 0, "nowhere")));
    assert_null (mur_json_text (NULL, mur_json_get (NULL, 0, "s")));
    assert_int_equal (mur_json_int (doc, mur_json_get (doc, 0, "n"), 9), 9);
    assert_int_equal (mur_json_int (doc, mur_json_get (doc, 0, "s"), 9), 9);
    assert_true (mur_json_bool (doc, mur_json_get (doc, 0, "s"), true));
    assert_int_equal (mur_json_get (doc, mur_json_get (doc, 0, "a"), "s"), -1);
    mur_json_free (doc);
}

static void
test_what_is_no_document_is_refused (void **state)
{
    (void)state;
    static const char *const bad[] = { "",
                                       "x",
                                       "1",
                                       "\"s\"",
                                       "{",
                                       "{\"a\":",
                                       "[1,2",
                                       "{} {}",
                                       "[1]]",
                                       "{\"a\":\"\\x\"}",
                                       "{\"a\":\"\\u12\"}" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (parse (bad[i]) != NULL)
            fail_msg ("taken as JSON: %s", bad[i]);
}

static void
test_raw_gives_the_very_bytes (void **state)
{
    (void)state;
    struct mur_json *doc = parse ("{\"a\": {\"b\": [1, \"\\u0041\"]}, \"s\": \"q\\\"\"}");
    size_t len;
    const char *raw = mur_json_raw (doc, mur_json_get (doc, 0, "a"), &len);
    assert_int_equal (len, strlen ("{\"b\": [1, \"\\u0041\"]}"));
    assert_memory_equal (raw, "{\"b\": [1, \"\\u0041\"]}", len);
    raw = mur_json_raw (doc, mur_json_get (doc, 0, "s"), &len);
    assert_int_equal (len, 5);
    assert_memory_equal (raw, "\"q\\\"\"", len);
    mur_json_free (doc);
}

static void
test_strings_are_written_as_json (void **state)
{
    (void)state;
    struct mur_text text = { 0 };
    mur_text_json_bytes (&text, "a\"\\\n\x01é\xff\xc3", 9);
    assert_string_equal (text.data, "\"a\\\"\\\\\\n\\u0001é\\ufffd\\ufffd\"");
    mur_text_free (&text);
}

static void
test_a_cut_never_splits_a_character (void **state)
{
    (void)state;
    assert_int_equal (mur_utf8_prefix ("aé€", 6, 6), 6);
    assert_int_equal (mur_utf8_prefix ("aé€", 6, 5), 3);
    assert_int_equal (mur_utf8_prefix ("aé€", 6, 2), 1);
    assert_true (mur_utf8_valid ("aé€😀", 10));
    assert_false (mur_utf8_valid ("\xc0\x80", 2));
    assert_false (mur_utf8_valid ("\xed\xa0\x80", 3));
    assert_false (mur_utf8_valid ("\xf4\x90\x80\x80", 4));
}

static void
test_files_are_bounded_and_errors_are_sentences (void **state)
{
    (void)state;
    char folder[] = "/tmp/sdk-XXXXXX";
    assert_non_null (mkdtemp (folder));
    assert_int_equal (chdir (folder), 0);
    char *error = NULL;
    size_t len = 0;
    assert_true (mur_file_write ("a/b/c.txt", "hello", 5, true, &error));
    char *text = mur_file_read ("a/b/c.txt", 5, &len, &error);
    assert_string_equal (text, "hello");
    assert_int_equal (len, 5);
    free (text);
    assert_null (mur_file_read ("a/b/c.txt", 4, NULL, &error));
    assert_string_equal (error, "a/b/c.txt is larger than 4 bytes");
    free (error);
    assert_null (mur_file_read ("a/b", 4, NULL, &error));
    assert_string_equal (error, "a/b is a folder");
    free (error);
    assert_null (mur_file_read ("nope", 4, NULL, &error));
    assert_string_equal (error, "nope: No such file or directory");
    free (error);
    assert_int_equal (
        remove ("a/b/c.txt") + remove ("a/b") + remove ("a") + chdir ("/") + remove (folder), 0);
}

static void
test_json_is_judged_by_the_letter (void **state)
{
    static const char *const good[] = { "{}",
                                        " [1, -0, 2.5e-3, 1E+9] ",
                                        "\"\\u00e9\\n\"",
                                        "null",
                                        "true ",
                                        "{\"a\": {\"b\": [[]]}}",
                                        "0" };
    static const struct {
        const char *text;
        size_t wrong_at;
    } bad[] = {
        { "", 0 },          { "{", 1 },      { "[1 2]", 3 },   { "[1,]", 3 },
        { "{\"a\" 1}", 5 }, { "{a: 1}", 1 }, { "01", 1 },      { "1.", 0 },
        { "-", 0 },         { "\"a", 2 },    { "\"\\x\"", 1 }, { "\"\\u12g4\"", 1 },
        { "\"\n\"", 1 },    { "nul", 0 },    { "{} {}", 3 },   { "[1}", 2 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true (mur_json_check (good[i], strlen (good[i]), NULL));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t wrong_at = 99;
        assert_false (mur_json_check (bad[i].text, strlen (bad[i].text), &wrong_at));
        assert_int_equal (wrong_at, bad[i].wrong_at);
    }
    assert_false (mur_json_check ("\"\xff\"", 3, NULL));
    char deep[2000];
    memset (deep, '[', sizeof deep / 2);
    memset (deep + sizeof deep / 2, ']', sizeof deep / 2);
    assert_false (mur_json_check (deep, sizeof deep, NULL));
    assert_true (mur_json_check (deep + sizeof deep / 2 - 400, 800, NULL));
}

static void
test_members_and_items_bring_their_own_commas (void **state)
{
    struct mur_text text = { 0 };
    struct mur_json *doc = parse ("{\"n\": [1,  2]}");
    (void)state;
    mur_text_puts (&text, "{");
    mur_text_string (&text, "a", "x{");
    mur_text_string (&text, "none", NULL);
    mur_text_node (&text, "b", doc, mur_json_get (doc, 0, "n"));
    mur_text_node (&text, "c", doc, -1);
    mur_text_key (&text, "d");
    mur_text_puts (&text, "[");
    for (int i = 0; i < 2; i++) {
        mur_text_comma (&text);
        mur_text_puts (&text, "{}");
    }
    mur_text_puts (&text, "]}");
    assert_string_equal (text.data, "{\"a\":\"x{\",\"b\":[1,  2],\"d\":[{},{}]}");
    mur_text_free (&text);
    mur_json_free (doc);
}

static void
test_what_is_no_text_becomes_the_replacement_character (void **state)
{
    struct mur_text text = { 0 };
    (void)state;
    mur_text_utf8 (&text, "a\xff\xc3\xa9\xe2\x82", 6);
    mur_text_character (&text, 0x1f989);
    mur_text_character (&text, 0xd800);
    mur_text_character (&text, 0);
    assert_string_equal (text.data, "a\ufffd\u00e9\ufffd\ufffd\U0001f989\ufffd\ufffd");
    mur_text_free (&text);
}

static void
note_event (void *context, const char *data, size_t len)
{
    mur_text_printf (context, "<%.*s>", (int)len, data);
}

/* The same stream in pieces of every size gives the same events. */
static void
assert_events (const char *stream, const char *expected)
{
    for (size_t size = 1; size <= strlen (stream); size++) {
        struct mur_text seen = { 0 };
        struct mur_sse sse = { .take = note_event, .context = &seen };
        for (size_t at = 0; at < strlen (stream); at += size)
            mur_sse_feed (&sse, stream + at,
                          strlen (stream) - at < size ? strlen (stream) - at : size);
        mur_sse_end (&sse);
        assert_string_equal (seen.data, expected);
        mur_text_free (&seen);
    }
}

static void
test_events_are_read_whatever_their_lines_and_pieces (void **state)
{
    (void)state;
    assert_events ("data: a\n\ndata:b\n\n", "<a><b>");
    assert_events ("event: x\r\ndata: a\r\ndata:  b\r\nid: 7\r\n\r\n: comment\r\n\r\ndata\r\n\r\n",
                   "<a\n b><>");
    assert_events ("data: a\r\rdata: b\r\r", "<a><b>");
    assert_events ("\xef\xbb\xbf"
                   "data: \xc3\xa9\xff\n\n",
                   "<\u00e9\ufffd>");
    assert_events ("datax: no\ndata: last", "<last>");
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_values_are_found_by_key_index_and_walk),
        cmocka_unit_test (test_escapes_become_characters),
        cmocka_unit_test (test_what_is_absent_or_of_another_kind_answers_so),
        cmocka_unit_test (test_what_is_no_document_is_refused),
        cmocka_unit_test (test_raw_gives_the_very_bytes),
        cmocka_unit_test (test_strings_are_written_as_json),
        cmocka_unit_test (test_a_cut_never_splits_a_character),
        cmocka_unit_test (test_files_are_bounded_and_errors_are_sentences),
        cmocka_unit_test (test_json_is_judged_by_the_letter),
        cmocka_unit_test (test_members_and_items_bring_their_own_commas),
        cmocka_unit_test (test_what_is_no_text_becomes_the_replacement_character),
        cmocka_unit_test (test_events_are_read_whatever_their_lines_and_pieces),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * OTLP's two encodings, ids of spans, and what collectors answer.
 */
#include "tests/unit/testing.h"

#include "base/json.h"
#include "trace/export/gen_ai_provider.h"
#include "trace/export/otlp_post.h"
#include "trace/export/telemetry.h"
#include "trace/export/trace_ids.h"

#include <string.h>

static void
write_sample (struct otlp_writer *w)
{
    const uint64_t counts[] = { 1, 300 };
    const double bounds[] = { 0.5 };
    otlp_begin (w);
    otlp_string (w, 1, "text", "a\"b");
    otlp_list_begin (w, 2, "items");
    otlp_item_begin (w);
    otlp_int (w, 1, "n", -1);
    otlp_item_end (w);
    otlp_item_begin (w);
    otlp_id (w, 1, "id", "00ff10");
    otlp_item_end (w);
    otlp_list_end (w);
    otlp_message_begin (w, 3, "inner");
    otlp_bool (w, 1, "yes", true);
    otlp_fixed32 (w, 2, "small", 7);
    otlp_message_end (w);
    otlp_fixed64s (w, 4, "counts", counts, 2);
    otlp_doubles (w, 5, "bounds", bounds, 1);
    otlp_end (w);
}

static void
test_json_is_one_object_with_commas_where_they_belong (void **state)
{
    (void)state;
    struct otlp_writer w = { .encoding = OTLP_JSON };
    write_sample (&w);
    assert_string_equal (w.out.data,
                         "{\"text\":\"a\\\"b\",\"items\":[{\"n\":\"-1\"},{\"id\":\"00ff10\"}],"
                         "\"inner\":{\"yes\":true,\"small\":7},\"counts\":[\"1\",\"300\"],"
                         "\"bounds\":[0.5]}");
    buf_free (&w.out);
}

static void
test_protobuf_is_tags_lengths_and_little_endian_numbers (void **state)
{
    (void)state;
    static const unsigned char wanted[] = {
        0x0a, 3,    'a',  '"',  'b',                                         /* text */
        0x12, 0x8b, 0x80, 0x80, 0x00,                                        /* 11 bytes */
        0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,    /* -1 */
        0x12, 0x85, 0x80, 0x80, 0x00, 0x0a, 3,    0x00, 0xff, 0x10,          /* id */
        0x1a, 0x87, 0x80, 0x80, 0x00, 0x08, 1,    0x15, 7,    0,    0,    0, /* inner */
        0x22, 16,   1,    0,    0,    0,    0,    0,    0,    0,    0x2c, 1, 0,    0,
        0,    0,    0,    0,    0x2a, 8,    0,    0,    0,    0,    0,    0, 0xe0, 0x3f,
    };
    struct otlp_writer w = { .encoding = OTLP_PROTOBUF };
    write_sample (&w);
    assert_int_equal (w.out.len, sizeof wanted);
    assert_memory_equal (w.out.data, wanted, sizeof wanted);
    buf_free (&w.out);
}

static void
test_malformed_text_becomes_well_formed_in_both (void **state)
{
    (void)state;
    for (enum otlp_encoding encoding = OTLP_PROTOBUF; encoding <= OTLP_JSON; encoding++) {
        struct otlp_writer w = { .encoding = encoding };
        otlp_begin (&w);
        otlp_string (&w, 1, "text", "a\xff\xc3");
        otlp_end (&w);
        assert_true (utf8_is_valid (w.out.data, w.out.len));
        assert_non_null (strstr (w.out.data, "\xef\xbf\xbd"));
        buf_free (&w.out);
    }
}

static void
test_a_second_value_of_a_key_and_empty_ones_are_left_out (void **state)
{
    (void)state;
    struct attributes a = { 0 };
    attributes_string (&a, "k", "first");
    attributes_string (&a, "k", "second");
    attributes_string (&a, "none", NULL);
    attributes_string (&a, "empty", "");
    assert_int_equal (a.len, 1);
    assert_string_equal (attributes_find (&a, "k")->text, "first");
    attributes_free (&a);
}

static void
test_a_traceparent_is_taken_whole_or_not_at_all (void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_fine, is_sampled;
    } rows[] = {
        { "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true, true },
        { "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true, false },
        { "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03", true, true },
        { "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false, true },
        { "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false, true },
        { "00-00000000000000000000000000000000-b7ad6b7169203331-01", false, true },
        { "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false, true },
        { "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0", false, true },
        { "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-", false, true },
        { "", false, true },
        { NULL, false, true },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct trace_context c;
        assert_int_equal (trace_context_parse (rows[i].text, &c), rows[i].is_fine);
        assert_int_equal (c.is_sampled, rows[i].is_sampled);
        assert_int_equal (c.trace_id[0] != '\0', rows[i].is_fine);
        if (! rows[i].is_fine)
            continue;
        char text[TRACEPARENT_LEN + 1];
        trace_context_text (&c, text);
        assert_memory_equal (text, rows[i].text, TRACEPARENT_LEN - 2);
    }
}

static void
test_ids_follow_from_the_line_alone (void **state)
{
    (void)state;
    const struct trace_context nobody = { .is_sampled = true };
    struct trace_context one, two, other;
    trace_context_of_task ("evt_1", &nobody, &one);
    trace_context_of_task ("evt_1", &nobody, &two);
    trace_context_of_task ("evt_2", &nobody, &other);
    assert_memory_equal (&one, &two, sizeof one);
    assert_string_not_equal (one.trace_id, other.trace_id);
    assert_string_not_equal (one.span_id, other.span_id);
    char tool[SPAN_ID_LEN + 1], chat[SPAN_ID_LEN + 1];
    span_id_of ("evt_1", "tool", tool);
    span_id_of ("evt_1", "chat", chat);
    assert_string_not_equal (tool, chat);
}

static void
test_what_a_collector_did_not_take_is_read_in_both_encodings (void **state)
{
    (void)state;
    static const struct {
        enum otlp_encoding encoding;
        const char *body;
        size_t len;
        int64_t count;
        const char *words;
    } rows[] = {
        { OTLP_PROTOBUF, "", 0, 0, NULL },
        { OTLP_PROTOBUF, "\x0a\x07\x08\x03\x12\x03old", 9, 3, "old" },
        { OTLP_PROTOBUF, "\x0a\x07\x08\x03\x12\x09old", 9, 3, NULL }, /* a length that lies */
        { OTLP_PROTOBUF, "\x0a\xff", 2, 0, NULL },
        { OTLP_PROTOBUF, "\x0a\x00", 2, 0, NULL },
        { OTLP_PROTOBUF, "<html>", 6, 0, NULL },
        { OTLP_JSON, "{}", 2, 0, NULL },
        { OTLP_JSON, "{\"partialSuccess\":{\"rejectedSpans\":\"2\",\"errorMessage\":\"x\"}}", 59, 2,
          "x" },
        { OTLP_JSON, "not json", 8, 0, NULL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *words = NULL;
        assert_int_equal (otlp_rejected (rows[i].encoding, rows[i].body, rows[i].len, &words),
                          rows[i].count);
        if (rows[i].words)
            assert_string_equal (words, rows[i].words);
        else
            assert_null (words);
        free (words);
    }
}

static void
test_providers_have_the_conventions_names (void **state)
{
    (void)state;
    assert_string_equal (gen_ai_provider_name ("std/driver-openai", "api.mistral.ai"),
                         "mistral_ai");
    assert_string_equal (gen_ai_provider_name ("x/y", "me.openai.azure.com"), "azure.ai.openai");
    assert_string_equal (gen_ai_provider_name ("std/driver-openai", "127.0.0.1"), "openai");
    assert_string_equal (gen_ai_provider_name ("acme/other", NULL), "other");
    assert_null (gen_ai_provider_name (NULL, NULL));
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_json_is_one_object_with_commas_where_they_belong),
        cmocka_unit_test (test_protobuf_is_tags_lengths_and_little_endian_numbers),
        cmocka_unit_test (test_malformed_text_becomes_well_formed_in_both),
        cmocka_unit_test (test_a_second_value_of_a_key_and_empty_ones_are_left_out),
        cmocka_unit_test (test_a_traceparent_is_taken_whole_or_not_at_all),
        cmocka_unit_test (test_ids_follow_from_the_line_alone),
        cmocka_unit_test (test_what_a_collector_did_not_take_is_read_in_both_encodings),
        cmocka_unit_test (test_providers_have_the_conventions_names),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

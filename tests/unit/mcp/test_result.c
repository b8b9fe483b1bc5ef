/* SPDX-License-Identifier: Apache-2.0
 *
 * Results of tools: as text for a model, as they came for a client, and how far a call is.
 */
#include "tests/unit/testing.h"

#include "base/json.h"
#include "mcp/media.h"
#include "mcp/progress.h"
#include "mcp/result.h"

#include <string.h>

static json_t *
value_of (const char *text)
{
    json_t *value = json_loads (text, JSON_DECODE_ANY, NULL);
    assert_non_null (value);
    return value;
}

static char *
keep (void *ctx, const char *mime, const void *data, size_t len)
{
    size_t *kept = ctx;
    (void)mime;
    (void)data;
    *kept += len;
    return x_strdup ("/kept");
}

static void
expect_text (const char *result, bool is_good, const char *expected)
{
    size_t kept = 0;
    const struct mcp_result_reader reader = { keep, &kept };
    _cleanup_json_ json_t *value = value_of (result);
    _cleanup_buf_ struct buf out = { 0 };
    assert_true (mcp_result_read (value, &reader, &out) == is_good);
    assert_string_equal (out.data, expected);
}

static void
test_parts_are_texts_names_and_links (void **state)
{
    (void)state;
    expect_text ("{}", true, "(the tool returned no data)");
    expect_text ("{\"content\":7,\"isError\":true}", false, "(the tool returned no data)");
    expect_text (
        "{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\"},7,{}]}", true,
        "a\n[content of an unknown type: text]\n[content of an unknown type: ?]\n[content of "
        "an unknown type: ?]");
    expect_text (
        "{\"content\":[{\"type\":\"image\",\"data\":\"AAAA\",\"mimeType\":\"image/png\"}]}", true,
        "[image image/png, 3 bytes, kept as /kept]");
    expect_text ("{\"content\":[{\"type\":\"audio\",\"data\":\"!\"}]}", true,
                 "[audio of no type: its bytes are not base64]");
    expect_text (
        "{\"content\":[{\"type\":\"resource_link\",\"uri\":\"a:b\",\"mimeType\":\"x/y\"}]}", true,
        "[link a:b, x/y]");
    expect_text (
        "{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\",\"text\":\"t\"}},"
        "{\"type\":\"resource\"}]}",
        true, "[resource a:b]\nt\n[resource of no type: its bytes are not base64]");
}

static void
test_structure_is_shown_where_no_text_says_it (void **state)
{
    (void)state;
    expect_text ("{\"content\":[],\"structuredContent\":{\"n\":1}}", true, "{\"n\":1}");
    expect_text ("{\"content\":[{\"type\":\"text\",\"text\":\"{ \\\"n\\\": 1 }\"}],"
                 "\"structuredContent\":{\"n\":1}}",
                 true, "{ \"n\": 1 }");
    expect_text (
        "{\"content\":[{\"type\":\"text\",\"text\":\"no\"}],\"structuredContent\":{\"n\":1},"
        "\"isError\":true}",
        false, "no");
    expect_text ("{\"structuredContent\":null}", true, "(the tool returned no data)");
}

static bool
passes (const char *part, const char *revision)
{
    _cleanup_free_ char *text = x_asprintf ("{\"content\":[%s],\"structuredContent\":{\"n\":1},"
                                            "\"_meta\":{\"x\":1}}",
                                            part);
    _cleanup_json_ json_t *result = value_of (text);
    _cleanup_json_ json_t *passed = mcp_result_passed (result, mcp_revision_find (revision));
    assert_true (! passed ||
                 (json_object_size (passed) == 3 && ! json_object_get (passed, "_meta")));
    return passed != NULL;
}

static void
test_a_client_is_handed_on_what_its_revision_knows_and_whole_parts_alone (void **state)
{
    (void)state;
    static const char link[] = "{\"type\":\"resource_link\",\"uri\":\"a:b\",\"name\":\"n\"}";
    static const char audio[] = "{\"type\":\"audio\",\"data\":\"\",\"mimeType\":\"audio/wav\"}";
    assert_true (passes ("{\"type\":\"text\",\"text\":\"\"}", "2024-11-05"));
    assert_true (passes ("{\"type\":\"image\",\"data\":\"\",\"mimeType\":\"i\"}", "2024-11-05"));
    assert_false (passes (audio, "2024-11-05"));
    assert_true (passes (audio, "2025-03-26"));
    assert_false (passes (link, "2025-03-26"));
    assert_true (passes (link, "2025-06-18"));
    assert_true (passes (link, "2026-07-28"));
    assert_true (passes ("{\"type\":\"resource\",\"resource\":{\"uri\":\"u\",\"blob\":\"\"}}",
                         "2024-11-05"));
    assert_false (passes ("{\"type\":\"resource\",\"resource\":{\"uri\":\"u\"}}", "2026-07-28"));
    assert_false (passes ("{\"type\":\"image\",\"data\":\"\"}", "2026-07-28"));
    assert_false (passes ("{\"type\":\"text\",\"text\":7}", "2026-07-28"));
    assert_false (passes ("{\"type\":\"video\"}", "2026-07-28"));
    assert_false (passes ("7", "2026-07-28"));
    _cleanup_json_ json_t *none = value_of ("{\"content\":{}}");
    assert_null (mcp_result_passed (none, mcp_revision_find ("2026-07-28")));
}

/* The number a notification tells, or -1 when there is none. */
static double
told (char *text)
{
    _cleanup_free_ char *owned = text;
    _cleanup_json_ json_t *message = text ? value_of (text) : NULL;
    const json_t *params = json_object_get (message, "params");
    return text ? json_number_value (json_object_get (params, "progress")) : -1;
}

static void
test_progress_only_grows_whoever_tells_it (void **state)
{
    (void)state;
    _cleanup_json_ json_t *token = json_string ("p");
    const struct mcp_request wanted = { .progress_token = token }, unwanted = { 0 };
    struct mcp_progress p = { 0 }, nobody = { 0 };
    assert_true (told (mcp_progress_beat (&p, &wanted)) == 1);
    assert_true (told (mcp_progress_beat (&p, &wanted)) == 2);
    assert_true (told (mcp_progress_tell (&p, &wanted, 0, 100, "begun")) == 2);
    assert_true (told (mcp_progress_tell (&p, &wanted, 50, 100, NULL)) == 52);
    assert_true (told (mcp_progress_tell (&p, &wanted, 50, 100, NULL)) == -1);
    assert_true (told (mcp_progress_tell (&p, &wanted, 0.0 / 0.0, 100, NULL)) == -1);
    double beat = told (mcp_progress_beat (&p, &wanted));
    assert_true (beat > 52 && beat < 102);
    assert_true (told (mcp_progress_tell (&p, &wanted, 100, 100, NULL)) == 102);
    assert_true (told (mcp_progress_beat (&p, &wanted)) == 103);
    assert_true (told (mcp_progress_tell (&nobody, &unwanted, 1, 2, NULL)) == -1);
    assert_true (told (mcp_progress_beat (&nobody, &unwanted)) == -1);
}

static void
test_a_file_is_of_the_kind_its_name_says (void **state)
{
    (void)state;
    assert_string_equal (mcp_media_of ("a/b.PNG", "x"), "image/png");
    assert_string_equal (mcp_media_of ("a.jpeg", "x"), "image/jpeg");
    assert_string_equal (mcp_media_of ("a/b", "x"), "x");
    assert_string_equal (mcp_media_ending ("image/jpeg"), "jpg");
    assert_string_equal (mcp_media_ending ("a/b"), "bin");
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_parts_are_texts_names_and_links),
        cmocka_unit_test (test_structure_is_shown_where_no_text_says_it),
        cmocka_unit_test (test_a_client_is_handed_on_what_its_revision_knows_and_whole_parts_alone),
        cmocka_unit_test (test_progress_only_grows_whoever_tells_it),
        cmocka_unit_test (test_a_file_is_of_the_kind_its_name_says),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The message library of MCP: reading, judging, answering, lines, headers.
 */
#include "tests/unit/testing.h"

#include "base/alloc.h"
#include "mcp/headers.h"
#include "mcp/lines.h"
#include "mcp/server.h"

#include <string.h>
#include <strings.h>

#define MODERN                                                                                     \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}}"

/* --- messages --- */

static void
expect_bad (const char *text, enum mcp_code code)
{
    _cleanup_mcp_message_ struct mcp_message m;
    mcp_message_read (&m, text, strlen (text));
    assert_int_equal (m.kind, MCP_BAD);
    assert_int_equal (m.code, code);
}

static void
test_a_message_says_what_is_wrong_with_it (void **state)
{
    (void)state;
    expect_bad ("{", MCP_PARSE_ERROR);
    expect_bad ("\xff", MCP_PARSE_ERROR);
    expect_bad ("[]", MCP_INVALID_REQUEST);
    expect_bad ("3", MCP_INVALID_REQUEST);
    expect_bad ("{\"id\":1,\"method\":\"ping\"}", MCP_INVALID_REQUEST);
    expect_bad ("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", MCP_INVALID_REQUEST);
    expect_bad ("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", MCP_INVALID_REQUEST);
    expect_bad ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", MCP_INVALID_REQUEST);
    expect_bad ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[]}",
                MCP_INVALID_REQUEST);
    expect_bad ("{\"jsonrpc\":\"2.0\",\"id\":1}", MCP_INVALID_REQUEST);
    expect_bad ("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}", MCP_INVALID_REQUEST);
}

static void
expect_id (const char *id)
{
    _cleanup_free_ char *text =
        x_asprintf ("{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"ping\"}", id);
    _cleanup_free_ char *wanted = x_asprintf ("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", id);
    _cleanup_mcp_message_ struct mcp_message m;
    _cleanup_json_ json_t *nothing = json_object ();
    mcp_message_read (&m, text, strlen (text));
    assert_int_equal (m.kind, MCP_REQUEST);
    _cleanup_free_ char *answer = mcp_result_text (m.id, nothing);
    assert_string_equal (answer, wanted);
}

static void
test_an_id_is_returned_as_it_was_sent (void **state)
{
    (void)state;
    expect_id ("0");
    expect_id ("\"\"");
    expect_id ("\"a\"");
    expect_id ("-7");
}

/* --- judging --- */

struct judged {
    struct mcp_request r;
    struct mcp_answer no;
    bool is_good;
};

static void
judge (struct judged *j, const struct mcp_peer *peer, const char *method, const char *params)
{
    _cleanup_free_ char *text = x_asprintf (
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s}}", method, params);
    *j = (struct judged){ 0 };
    mcp_message_read (&j->r.message, text, strlen (text));
    j->is_good = mcp_request_judge (&j->r, peer, &j->no);
}

static void
judged_clear (struct judged *j)
{
    mcp_request_clear (&j->r);
    mcp_answer_clear (&j->no);
}

static void
expect_refused (const char *method, const char *params, enum mcp_code code)
{
    struct judged j;
    judge (&j, NULL, method, params);
    assert_false (j.is_good);
    assert_int_equal (j.no.code, code);
    judged_clear (&j);
}

static void
test_a_modern_request_says_all_it_must (void **state)
{
    (void)state;
    struct judged j;
    judge (&j, NULL, "tools/list", MODERN);
    assert_true (j.is_good);
    assert_string_equal (j.r.revision->name, MCP_NEWEST_MODERN);
    assert_true (mcp_client_can (&j.r, "elicitation"));
    assert_false (mcp_client_can (&j.r, "sampling"));
    judged_clear (&j);
    expect_refused ("tools/list", "", MCP_INVALID_PARAMS);
    expect_refused ("tools/list",
                    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}",
                    MCP_INVALID_PARAMS);
    expect_refused ("tools/list", "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":7}",
                    MCP_INVALID_PARAMS);
    expect_refused ("nothing/such", MODERN, MCP_NO_METHOD);
    expect_refused ("initialize", MODERN, MCP_NO_METHOD);
}

static void
test_an_unserved_revision_is_answered_with_both_lists (void **state)
{
    (void)state;
    struct judged j;
    judge (&j, NULL, "tools/list",
           "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"1900-01-01\"}");
    assert_int_equal (j.no.code, MCP_VERSION_UNSERVED);
    assert_non_null (j.r.revision);
    assert_string_equal (json_get_string (j.no.data, "requested"), "1900-01-01");
    assert_int_equal (json_array_size (json_object_get (j.no.data, "supported")), 1);
    judged_clear (&j);
}

static void
test_a_legacy_peer_needs_no_meta (void **state)
{
    (void)state;
    struct mcp_peer peer = { .revision = mcp_revision_find ("2025-06-18") };
    struct judged j;
    judge (&j, &peer, "tools/call", "\"name\":\"a\",\"_meta\":{\"progressToken\":0}");
    assert_true (j.is_good);
    assert_int_equal (j.r.revision->era, MCP_LEGACY);
    assert_non_null (j.r.progress_token);
    judged_clear (&j);
    judge (&j, NULL, "ping", "");
    assert_true (j.is_good);
    judged_clear (&j);
}

/* --- serving --- */

static void
no_tools (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    (void)ctx;
    (void)call;
    answer->result = json_array ();
}

static const struct mcp_service service = {
    .name = "test", .version = "1", .offers = MCP_OFFERS_TOOLS, .tools_list = no_tools
};

static char *
serve (const char *method, const char *params)
{
    struct judged j;
    _cleanup_mcp_answer_ struct mcp_answer a = { 0 };
    struct mcp_peer peer = { 0 };
    _cleanup_json_ json_t *info = mcp_service_info (&service);
    judge (&j, NULL, method, params);
    assert_true (j.is_good);
    mcp_serve (&service, &peer, &j.r, NULL, NULL, &a);
    char *text = mcp_answer_text (&j.r, &a, info);
    judged_clear (&j);
    mcp_peer_clear (&peer);
    return text;
}

static void
expect_answer (const char *method, const char *params, const char *part)
{
    _cleanup_free_ char *text = serve (method, params);
    if (! strstr (text, part))
        fail_msg ("%s lacks %s", text, part);
}

static void
test_initialize_echoes_a_served_revision_and_else_names_the_newest (void **state)
{
    (void)state;
    static const char *const served[] = { "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25" };
    for (size_t i = 0; i < ARRAY_LEN (served); i++) {
        _cleanup_free_ char *params = x_asprintf ("\"protocolVersion\":\"%s\"", served[i]);
        expect_answer ("initialize", params, params);
    }
    expect_answer ("initialize", "\"protocolVersion\":\"1900-01-01\"",
                   "\"protocolVersion\":\"2025-11-25\"");
    expect_answer ("initialize", "", "\"protocolVersion\":\"2024-11-05\"");
}

static void
test_a_modern_answer_is_complete (void **state)
{
    (void)state;
    expect_answer ("tools/list", MODERN, "\"tools\":[],\"ttlMs\":");
    expect_answer ("tools/list", MODERN, "\"resultType\":\"complete\"");
    expect_answer ("server/discover", MODERN, "\"supportedVersions\":[\"2026-07-28\"]");
    expect_answer ("tools/list", "\"cursor\":\"x\"," MODERN, "-32602");
    expect_answer ("resources/list", MODERN, "-32601");
}

/* --- lines --- */

static void
test_lines_end_at_a_line_feed_and_nowhere_else (void **state)
{
    (void)state;
    struct mcp_lines l = { .limit = 16 };
    const char *line;
    size_t len;
    static const char text[] = "a\xe2\x80\xa8"
                               "b\r\n\n  \nsecond\nthi";
    mcp_lines_feed (&l, text, sizeof text - 1);
    assert_int_equal (mcp_lines_next (&l, &line, &len), MCP_LINE);
    assert_int_equal (len, 5);
    assert_int_equal (mcp_lines_next (&l, &line, &len), MCP_LINE);
    assert_memory_equal (line, "second", 6);
    assert_int_equal (mcp_lines_next (&l, &line, &len), MCP_LINE_NONE);
    mcp_lines_feed (&l, "rd\n", 3);
    assert_int_equal (mcp_lines_next (&l, &line, &len), MCP_LINE);
    assert_memory_equal (line, "third", 5);
    mcp_lines_clear (&l);
}

static void
test_a_line_too_long_is_dropped_whole (void **state)
{
    (void)state;
    struct mcp_lines l = { .limit = 8 };
    const char *line;
    size_t len;
    for (int i = 0; i < 1000; i++) {
        mcp_lines_feed (&l, "0123456789", 10);
        assert_int_equal (mcp_lines_next (&l, &line, &len), MCP_LINE_NONE);
        assert_true (l.held.len < 64);
    }
    mcp_lines_feed (&l, "\nshort\n", 7);
    assert_int_equal (mcp_lines_next (&l, &line, &len), MCP_LINE_TOO_LONG);
    assert_int_equal (mcp_lines_next (&l, &line, &len), MCP_LINE);
    assert_memory_equal (line, "short", 5);
    mcp_lines_clear (&l);
}

/* --- headers --- */

struct header {
    const char *name, *value;
};

static const char *
header_of (const void *ctx, const char *name)
{
    for (const struct header *h = ctx; h->name; h++)
        if (strcasecmp (h->name, name) == 0)
            return h->value;
    return NULL;
}

static bool
matches (const struct header *headers, const char *schema)
{
    struct judged j;
    _cleanup_json_ json_t *s = schema ? json_loads (schema, 0, NULL) : NULL;
    judge (&j, NULL, "tools/call", "\"name\":\"na\\u00efve\",\"arguments\":{\"n\":7}," MODERN);
    bool is = mcp_headers_match (&j.r, s, header_of, headers, &j.no);
    assert_true (is || j.no.code == MCP_HEADER_MISMATCH);
    judged_clear (&j);
    return is;
}

#define FIRST                                                                                      \
    { "mcp-protocol-version", "2026-07-28" },                                                      \
    {                                                                                              \
        "MCP-METHOD", "tools/call"                                                                 \
    }

static void
test_headers_repeat_the_body (void **state)
{
    (void)state;
    static const char schema[] =
        "{\"properties\":{\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"N\"}}}";
    _cleanup_free_ char *name = mcp_header_value ("na\xc3\xafve");
    assert_true (str_starts (name, "=?base64?"));
    assert_true (matches ((struct header[]){ FIRST, { "Mcp-Name", name }, { 0 } }, NULL));
    assert_false (matches ((struct header[]){ FIRST, { "Mcp-Name", "other" }, { 0 } }, NULL));
    assert_false (
        matches ((struct header[]){ FIRST, { "Mcp-Name", "=?base64?%?=" }, { 0 } }, NULL));
    assert_false (matches ((struct header[]){ FIRST, { 0 } }, NULL));
    assert_false (matches ((struct header[]){ { "Mcp-Method", "tools/call" }, { 0 } }, NULL));
    assert_true (matches (
        (struct header[]){ FIRST, { "Mcp-Name", name }, { "mcp-param-n", "7.0" }, { 0 } }, schema));
    assert_false (matches (
        (struct header[]){ FIRST, { "Mcp-Name", name }, { "Mcp-Param-N", "8" }, { 0 } }, schema));
    assert_false (matches ((struct header[]){ FIRST, { "Mcp-Name", name }, { 0 } }, schema));
}

static bool
is_valid_schema (const char *text)
{
    _cleanup_json_ json_t *schema = json_loads (text, 0, NULL);
    assert_non_null (schema);
    return mcp_params_visit (schema, NULL, NULL, NULL);
}

static void
test_an_annotation_is_a_token_on_a_plain_property (void **state)
{
    (void)state;
    assert_true (is_valid_schema ("{\"type\":\"object\"}"));
    assert_true (is_valid_schema ("{\"properties\":{\"a\":{\"type\":\"object\",\"properties\":"
                                  "{\"b\":{\"type\":\"string\",\"x-mcp-header\":\"B\"}}}}}"));
    assert_false (is_valid_schema ("{\"properties\":{\"a\":{\"type\":\"number\","
                                   "\"x-mcp-header\":\"A\"}}}"));
    assert_false (is_valid_schema ("{\"properties\":{\"a\":{\"type\":\"string\","
                                   "\"x-mcp-header\":\"A B\"}}}"));
    assert_false (is_valid_schema ("{\"properties\":{\"a\":{\"type\":\"string\","
                                   "\"x-mcp-header\":\"A\"},\"b\":{\"type\":\"string\","
                                   "\"x-mcp-header\":\"a\"}}}"));
    assert_false (is_valid_schema ("{\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":"
                                   "\"string\",\"x-mcp-header\":\"A\"}}}}"));
}

static void
test_a_page_of_another_site_is_foreign (void **state)
{
    (void)state;
    assert_false (mcp_is_foreign (NULL, "127.0.0.1:8080", true));
    assert_false (mcp_is_foreign ("http://localhost:3000", "localhost:8080", true));
    assert_false (mcp_is_foreign ("http://[::1]", "[::1]:1", true));
    assert_true (mcp_is_foreign ("https://evil.example", "localhost", true));
    assert_true (mcp_is_foreign ("http://localhost.evil.example", NULL, true));
    assert_true (mcp_is_foreign ("http://127.0.0.1.evil.example", NULL, true));
    assert_true (mcp_is_foreign ("null", NULL, true));
    assert_true (mcp_is_foreign (NULL, "evil.example", true));
    assert_false (mcp_is_foreign (NULL, "agent.example", false));
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_message_says_what_is_wrong_with_it),
        cmocka_unit_test (test_an_id_is_returned_as_it_was_sent),
        cmocka_unit_test (test_a_modern_request_says_all_it_must),
        cmocka_unit_test (test_an_unserved_revision_is_answered_with_both_lists),
        cmocka_unit_test (test_a_legacy_peer_needs_no_meta),
        cmocka_unit_test (test_initialize_echoes_a_served_revision_and_else_names_the_newest),
        cmocka_unit_test (test_a_modern_answer_is_complete),
        cmocka_unit_test (test_lines_end_at_a_line_feed_and_nowhere_else),
        cmocka_unit_test (test_a_line_too_long_is_dropped_whole),
        cmocka_unit_test (test_headers_repeat_the_body),
        cmocka_unit_test (test_an_annotation_is_a_token_on_a_plain_property),
        cmocka_unit_test (test_a_page_of_another_site_is_foreign),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

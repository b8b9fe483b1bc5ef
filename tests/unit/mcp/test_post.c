/* SPDX-License-Identifier: Apache-2.0
 *
 * A client's message as an HTTP request, and what of a server far away is pinned.
 */
#include "tests/unit/testing.h"

#include "base/alloc.h"
#include "mcp/pinned.h"
#include "mcp/post.h"

#include <string.h>

static const char *
value_of (const struct strv *headers, const char *name)
{
    for (size_t i = 0; i + 1 < headers->len; i += 2)
        if (strcmp (headers->items[i], name) == 0)
            return headers->items[i + 1];
    return NULL;
}

static json_t *
json (const char *text)
{
    json_t *value = json_loads (text, 0, NULL);
    assert_non_null (value);
    return value;
}

static void
test_a_modern_call_repeats_its_body_in_headers (void **state)
{
    (void)state;
    struct mcp_client c = { .revision = mcp_revision_find (MCP_NEWEST_MODERN) };
    _cleanup_json_ json_t *schema = json ("{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-"
                                          "header\":\"A\"},\"n\":{\"type\":\"integer\","
                                          "\"x-mcp-header\":\"N\"},\"f\":{\"type\":\"boolean\","
                                          "\"x-mcp-header\":\"F\"}}}");
    _cleanup_json_ json_t *params = mcp_client_params (
        &c, json ("{\"name\":\"t\\u00fcr\",\"arguments\":{\"a\":\"x\\r\\ny\",\"n\":3}}"), 0);
    _cleanup_strv_ struct strv headers = { 0 };
    mcp_post_headers (&c, "tools/call", params, schema, &headers);
    assert_string_equal (value_of (&headers, "MCP-Protocol-Version"), MCP_NEWEST_MODERN);
    assert_string_equal (value_of (&headers, "Mcp-Method"), "tools/call");
    assert_string_equal (value_of (&headers, "Mcp-Name"), "=?base64?dMO8cg==?=");
    assert_string_equal (value_of (&headers, "Mcp-Param-A"), "=?base64?eA0KeQ==?=");
    assert_string_equal (value_of (&headers, "Mcp-Param-N"), "3");
    assert_null (value_of (&headers, "Mcp-Param-F")); /* it was not given */
}

static void
test_a_legacy_message_says_its_revision_alone (void **state)
{
    (void)state;
    struct mcp_client c = { .revision = mcp_revision_find ("2025-06-18") };
    _cleanup_json_ json_t *params = json ("{\"name\":\"t\"}");
    _cleanup_strv_ struct strv headers = { 0 }, before = { 0 };
    mcp_post_headers (&c, "tools/call", params, NULL, &headers);
    assert_int_equal (headers.len, 2);
    assert_string_equal (value_of (&headers, "MCP-Protocol-Version"), "2025-06-18");
    c.revision = NULL;
    mcp_post_headers (&c, "initialize", params, NULL, &before);
    assert_int_equal (before.len, 0);
}

static void
test_a_session_id_is_visible_ascii_and_bounded (void **state)
{
    (void)state;
    char long_one[MCP_SESSION_MAX + 2];
    memset (long_one, 'a', sizeof long_one - 1);
    long_one[sizeof long_one - 1] = '\0';
    assert_true (mcp_session_id_is_valid ("a-B_1~"));
    assert_false (mcp_session_id_is_valid (""));
    assert_false (mcp_session_id_is_valid ("a b"));
    assert_false (mcp_session_id_is_valid ("a\r\nx: y"));
    assert_false (mcp_session_id_is_valid ("\xc3\xbc"));
    assert_false (mcp_session_id_is_valid (long_one));
}

static void
test_the_kind_of_a_body (void **state)
{
    (void)state;
    assert_int_equal (mcp_body_of ("application/json"), MCP_BODY_JSON);
    assert_int_equal (mcp_body_of ("Application/JSON; charset=utf-8"), MCP_BODY_JSON);
    assert_int_equal (mcp_body_of ("text/event-stream;x"), MCP_BODY_EVENTS);
    assert_int_equal (mcp_body_of ("application/jsonp"), MCP_BODY_OTHER);
    assert_int_equal (mcp_body_of ("text/html"), MCP_BODY_OTHER);
    assert_int_equal (mcp_body_of (NULL), MCP_BODY_OTHER);
}

static void
test_tools_that_cannot_go_over_http_are_dropped (void **state)
{
    (void)state;
    _cleanup_json_ json_t *tools =
        json ("[{\"name\":\"good\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"bad\","
              "\"inputSchema\":{\"properties\":{\"a\":{\"type\":\"object\",\"x-mcp-header\":"
              "\"A\"}}}}]");
    _cleanup_strv_ struct strv dropped = { 0 };
    _cleanup_json_ json_t *kept = mcp_tools_over_http (tools, &dropped);
    assert_int_equal (json_array_size (kept), 1);
    assert_int_equal (dropped.len, 1);
    assert_string_equal (dropped.items[0], "bad");
}

static void
expect_pinned (const char *text, bool is_good)
{
    _cleanup_mcp_pinned_ struct mcp_pinned p = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    assert_int_equal (mcp_pinned_read (&p, text, strlen (text), "mcp.json", &err), is_good);
}

static void
test_what_is_far_away_is_pinned_by_its_address (void **state)
{
    (void)state;
    expect_pinned ("{\"format\":1,\"source\":\"https://a.example/mcp\",\"url\":"
                   "\"https://a.example/mcp\",\"revision\":\"2026-07-28\",\"tools\":[]}",
                   true);
    expect_pinned ("{\"format\":1,\"source\":\"x\",\"url\":\"https://a.example/mcp\",\"entry\":"
                   "\"x.py\",\"revision\":\"2026-07-28\",\"tools\":[]}",
                   false);
    expect_pinned ("{\"format\":1,\"source\":\"x\",\"revision\":\"2026-07-28\",\"tools\":[]}",
                   false);
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_modern_call_repeats_its_body_in_headers),
        cmocka_unit_test (test_a_legacy_message_says_its_revision_alone),
        cmocka_unit_test (test_a_session_id_is_visible_ascii_and_bounded),
        cmocka_unit_test (test_the_kind_of_a_body),
        cmocka_unit_test (test_tools_that_cannot_go_over_http_are_dropped),
        cmocka_unit_test (test_what_is_far_away_is_pinned_by_its_address),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

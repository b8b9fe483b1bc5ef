/* SPDX-License-Identifier: Apache-2.0
 *
 * The asking half of MCP: what a client sends to open a server of either era, and what it believes
 * of the answer.
 */
#include "tests/unit/testing.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_write.h"
#include "mcp/client.h"
#include "mcp/elicitation.h"

#include <string.h>

static json_t *
value_of (const char *text)
{
    json_t *value = json_loads (text, JSON_DECODE_ANY, NULL);
    assert_non_null (value);
    return value;
}

/* The revision a client speaks after the answer, or "" when there is none in common. */
static const char *
opened (bool (*take) (struct mcp_client *, const json_t *, char **), const char *answer,
        const char *expected_words)
{
    struct mcp_client c = { .asks = MCP_INPUT_ELICITATION };
    _cleanup_json_ json_t *result = value_of (answer);
    _cleanup_free_ char *said = NULL;
    bool is_open = take (&c, result, &said);
    const char *name = is_open ? c.revision->name : "";
    assert_true (is_open == ! said);
    if (expected_words)
        assert_string_equal (said, expected_words);
    assert_int_equal (c.asks, MCP_INPUT_ELICITATION); /* what is declared never changes */
    mcp_client_clear (&c);
    return name;
}

static void
test_initialize_is_believed_when_its_revision_is_a_legacy_one (void **state)
{
    (void)state;
    bool (*take) (struct mcp_client *, const json_t *, char **) = mcp_client_take_initialize;
    assert_string_equal (opened (take, "{\"protocolVersion\":\"2024-11-05\"}", NULL), "2024-11-05");
    assert_string_equal (opened (take, "{\"protocolVersion\":\"2026-07-28\"}", "2026-07-28"), "");
    assert_string_equal (opened (take, "{\"protocolVersion\":\"x\"}", "x"), "");
    assert_string_equal (opened (take, "{\"protocolVersion\":7}", "no protocolVersion"), "");
    assert_string_equal (opened (take, "[]", "no protocolVersion"), "");
    assert_string_equal (opened (take,
                                 "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":[],"
                                 "\"serverInfo\":7,\"instructions\":{}}",
                                 NULL),
                         "2025-11-25");
}

static void
test_discover_takes_the_newest_revision_in_common (void **state)
{
    (void)state;
    bool (*take) (struct mcp_client *, const json_t *, char **) = mcp_client_take_discover;
    assert_string_equal (
        opened (take, "{\"supportedVersions\":[\"2999-01-01\",\"2026-07-28\",3]}", NULL),
        "2026-07-28");
    assert_string_equal (
        opened (take, "{\"supportedVersions\":[\"2025-11-25\"]}", "[\"2025-11-25\"]"),
        ""); /* a legacy revision is opened by initialize */
    assert_string_equal (opened (take, "{}", "no supportedVersions"), "");
}

static void
test_what_a_server_says_of_itself_is_kept (void **state)
{
    (void)state;
    struct mcp_client c = { 0 };
    char *said = NULL;
    _cleanup_json_ json_t *result =
        value_of ("{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}},"
                  "\"instructions\":\"Be brief.\",\"_meta\":{\"io.modelcontextprotocol/"
                  "serverInfo\":{\"name\":\"s\"}}}");
    assert_true (mcp_client_take_discover (&c, result, &said));
    assert_string_equal (c.instructions, "Be brief.");
    assert_string_equal (json_get_string (c.info, "name"), "s");
    assert_true (json_is_object (json_object_get (c.capabilities, "tools")));
    mcp_client_clear (&c);
    assert_null (c.info);
}

static void
test_each_modern_request_says_who_asks_and_a_legacy_one_does_not (void **state)
{
    (void)state;
    struct mcp_client modern = { .revision = mcp_revision_find ("2026-07-28"),
                                 .asks = MCP_INPUT_ELICITATION };
    struct mcp_client legacy = { .revision = mcp_revision_find ("2025-06-18") };
    _cleanup_json_ json_t *said = mcp_client_params (&modern, json_pack ("{s:i}", "a", 1), 5);
    _cleanup_json_ json_t *nothing = mcp_client_params (&legacy, NULL, 0);
    const json_t *meta = json_object_get (said, "_meta");
    assert_int_equal (json_integer_value (json_object_get (meta, "progressToken")), 5);
    assert_string_equal (json_get_string (meta, MCP_META_VERSION), "2026-07-28");
    assert_true (
        json_is_object (json_object_get (json_object_get (meta, MCP_META_CAPS), "elicitation")));
    assert_int_equal (json_object_size (nothing), 0);
    _cleanup_json_ json_t *opening = mcp_client_initialize_params (&legacy);
    assert_string_equal (json_get_string (opening, "protocolVersion"), MCP_NEWEST_LEGACY);
    assert_int_equal (json_object_size (json_object_get (opening, "capabilities")), 0);
    _cleanup_json_ json_t *probe = mcp_client_discover_params (&modern);
    assert_string_equal (json_get_string (json_object_get (probe, "_meta"), MCP_META_VERSION),
                         MCP_NEWEST_MODERN);
}

static char *
answer_to (const char *request, json_t *input)
{
    _cleanup_mcp_message_ struct mcp_message m;
    mcp_message_read (&m, request, strlen (request));
    assert_int_equal (m.kind, MCP_REQUEST);
    return mcp_client_answer (&m, input);
}

static void
test_what_a_server_asks_is_answered_or_refused_by_name (void **state)
{
    (void)state;
    _cleanup_free_ char *pong =
        answer_to ("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}", NULL);
    assert_string_equal (pong, "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}");
    _cleanup_free_ char *no = answer_to (
        "{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"sampling/createMessage\"}", NULL);
    assert_non_null (strstr (no, "-32601"));
    assert_non_null (strstr (no, "sampling/createMessage is not offered"));
    _cleanup_free_ char *yes =
        answer_to ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\"}",
                   json_pack ("{s:s}", "action", "decline"));
    assert_string_equal (yes, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"action\":\"decline\"}}");
}

static void
test_an_error_is_told_in_words (void **state)
{
    (void)state;
    _cleanup_json_ json_t *error = value_of ("{\"code\":-32022,\"message\":\"no\"}");
    _cleanup_json_ json_t *bare = value_of ("{}");
    _cleanup_free_ char *words = mcp_error_words (error), *none = mcp_error_words (bare);
    assert_string_equal (words, "-32022: no");
    assert_string_equal (none, "0: (no message)");
    assert_true (mcp_client_is_version_error (error));
    assert_false (mcp_client_is_version_error (bare));
}

static void
test_versions_of_the_older_era_alone_are_told_from_others (void **state)
{
    (void)state;
    static const struct {
        const char *versions;
        bool is_legacy;
    } rows[] = {
        { "[\"2025-11-25\",\"2024-11-05\"]", true },
        { "[\"2026-07-28\",\"2025-11-25\"]", false },
        { "[\"2999-01-01\",\"2025-06-18\"]", true },
        { "[\"2999-01-01\"]", false },
        { "[]", false },
        { "[7,null]", false },
        { "{}", false },
    };
    for (size_t i = 0; i < ARRAY_LEN (rows); i++) {
        _cleanup_json_ json_t *versions = value_of (rows[i].versions);
        assert_int_equal (mcp_client_names_legacy (versions), rows[i].is_legacy);
    }
    assert_false (mcp_client_names_legacy (NULL));
}

static char *
said_to (const char *response, const char *answers)
{
    _cleanup_json_ json_t *r = value_of (response), *a = answers ? value_of (answers) : NULL;
    return mcp_elicitation_answer (r, a);
}

static void
test_an_elicitation_of_ours_is_asked_and_answered (void **state)
{
    (void)state;
    _cleanup_json_ json_t *words = value_of ("[\"once\",\"no\"]");
    _cleanup_json_ json_t *params = mcp_elicitation_params ("May it?", words);
    _cleanup_free_ char *text = json_text (params, JSON_TEXT_SORTED);
    assert_string_equal (text,
                         "{\"message\":\"May it?\",\"mode\":\"form\",\"requestedSchema\":{"
                         "\"properties\":{\"answer\":{\"description\":\"The answer.\",\"enum\":["
                         "\"once\",\"no\"],\"type\":\"string\"}},\"required\":[\"answer\"],"
                         "\"type\":\"object\"}}");
    _cleanup_free_ char *once =
        said_to ("{\"action\":\"accept\",\"content\":{\"answer\":\"once\"}}", "[\"once\",\"no\"]");
    _cleanup_free_ char *no = said_to ("{\"action\":\"decline\"}", "[\"once\",\"no\"]");
    _cleanup_free_ char *declined = said_to ("{\"action\":\"cancel\"}", NULL);
    assert_string_equal (once, "once");
    assert_string_equal (no, "no");
    assert_string_equal (declined, "The person declined to answer.");
    assert_null (said_to ("{\"action\":\"accept\"}", NULL));
    assert_null (said_to ("{}", NULL));
    assert_null (said_to ("7", NULL));
}

int
main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_initialize_is_believed_when_its_revision_is_a_legacy_one),
        cmocka_unit_test (test_discover_takes_the_newest_revision_in_common),
        cmocka_unit_test (test_what_a_server_says_of_itself_is_kept),
        cmocka_unit_test (test_each_modern_request_says_who_asks_and_a_legacy_one_does_not),
        cmocka_unit_test (test_what_a_server_asks_is_answered_or_refused_by_name),
        cmocka_unit_test (test_an_error_is_told_in_words),
        cmocka_unit_test (test_versions_of_the_older_era_alone_are_told_from_others),
        cmocka_unit_test (test_an_elicitation_of_ours_is_asked_and_answered),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON a server of tools sent, or that stands in the file of a package: taken for an answer that
 * opens it, for its tools, for a result and for the pinned file. What must hold: a tool that was
 * judged good has a name and is its own unchanged self; what is kept of tools is judged the same
 * again; a text shown hides nothing; no result is empty text, and what is passed on has parts.
 */
#include "tests/fuzz/fuzzing.h"

#include "base/alloc.h"
#include "mcp/client.h"
#include "mcp/definitions.h"
#include "mcp/pinned.h"
#include "mcp/result.h"

static char *
keep (void *ctx, const char *mime, const void *data, size_t len)
{
    size_t *kept = ctx;
    (void)data;
    *kept += len + strlen (mime);
    return *kept % 2 ? x_strdup ("/kept") : NULL;
}

static void
open_with (const json_t *value)
{
    bool (*const takes[]) (struct mcp_client *, const json_t *,
                           char **) = { mcp_client_take_initialize, mcp_client_take_discover };
    for (size_t i = 0; i < ARRAY_LEN (takes); i++) {
        struct mcp_client c = { .asks = i == 0 ? MCP_INPUT_ELICITATION : 0 };
        _cleanup_free_ char *said = NULL;
        bool is_open = takes[i](&c, value, &said);
        assert (is_open == (c.revision != NULL) && is_open == ! said);
        if (is_open)
            json_decref (mcp_client_params (&c, NULL, 1));
        mcp_client_clear (&c);
    }
    free (mcp_error_words (value));
    (void)mcp_client_is_version_error (value);
}

static void
judge_tools (const json_t *tools)
{
    size_t i;
    json_t *tool;
    json_array_foreach (tools, i, tool)
    {
        char hash[SHA256_HEX_LEN + 1];
        _cleanup_free_ char *fault = mcp_definition_fault (tool);
        _cleanup_strv_ struct strv findings = { 0 };
        if (fault)
            continue;
        assert (json_get_string (tool, "name"));
        mcp_definition_hash (tool, hash);
        mcp_definition_findings (tool, tools, &findings);
        _cleanup_json_ json_t *one = json_pack ("[O]", tool);
        assert (! mcp_definition_change (tool, one));
        _cleanup_json_ json_t *sorted = mcp_definitions_sorted (one);
        _cleanup_free_ char *again = mcp_definition_fault (json_array_get (sorted, 0));
        assert (! again);
        for (size_t k = 0; k < findings.len; k++) {
            _cleanup_free_ char *shown = mcp_text_shown (findings.items[k]);
            _cleanup_free_ char *twice = mcp_text_shown (shown);
            assert (strcmp (shown, twice) == 0);
        }
    }
}

static void
read_result (const json_t *value)
{
    size_t kept = 0;
    const struct mcp_result_reader reader = { keep, &kept };
    _cleanup_buf_ struct buf out = { 0 };
    mcp_result_read (value, &reader, &out);
    assert (out.len > 0);
    for (size_t i = 0; i < mcp_revision_count; i++) {
        _cleanup_json_ json_t *passed = mcp_result_passed (value, &mcp_revisions[i]);
        assert (! passed || json_is_array (json_object_get (passed, "content")));
    }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = fuzz_text (data, size);
    _cleanup_mcp_pinned_ struct mcp_pinned pinned = { 0 };
    struct mur_error *err = NULL;
    if (mcp_pinned_read (&pinned, text, size, "fuzz", &err)) {
        json_decref (mcp_pinned_hashes (&pinned));
        judge_tools (pinned.tools);
    }
    mur_error_freep (&err);
    _cleanup_json_ json_t *value = json_loadb (text, size, JSON_DECODE_ANY, NULL);
    if (! value)
        return 0;
    open_with (value);
    judge_tools (json_object_get (value, "tools"));
    read_result (value);
    _cleanup_mcp_message_ struct mcp_message m;
    mcp_message_read (&m, text, size);
    if (m.kind == MCP_REQUEST)
        free (mcp_client_answer (&m, NULL));
    return 0;
}

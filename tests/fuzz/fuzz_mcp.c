/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of an MCP client: split into lines, each judged and, when good, served and answered; its
 * own parameters are taken as headers and as a schema, too. What must hold: exactly one answer for
 * each request, well formed, on one line; what is held is bounded.
 */
#include "tests/fuzz/fuzzing.h"

#include "base/json.h"
#include "mcp/headers.h"
#include "mcp/lines.h"
#include "mcp/server.h"

#include <string.h>

#define LINE_MOST 4096

static void
no_tools (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    (void)ctx;
    (void)call;
    answer->result = json_array ();
}

static void
echo (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    (void)ctx;
    answer->result = mcp_text_result (call->name, strlen (call->name), false);
}

static const struct mcp_service service = {
    .name = "fuzz",
    .version = "1",
    .offers = MCP_OFFERS_TOOLS,
    .tools_list = no_tools,
    .tools_call = echo,
};

static const char *
header_of (const void *ctx, const char *name)
{
    return json_get_string (ctx, name);
}

static void
answer_one (struct mcp_peer *peer, const char *line, size_t len)
{
    struct mcp_request r = { 0 };
    _cleanup_mcp_answer_ struct mcp_answer a = { 0 };
    _cleanup_json_ json_t *info = mcp_service_info (&service);
    mcp_message_read (&r.message, line, len);
    if (r.message.kind == MCP_BAD || r.message.kind == MCP_REQUEST) {
        const json_t *arguments = json_object_get (r.message.params, "arguments");
        if (mcp_request_judge (&r, peer, &a) &&
            (! arguments || mcp_headers_match (&r, arguments, header_of, arguments, &a)) &&
            r.method->id != MCP_LISTEN)
            mcp_serve (&service, peer, &r, NULL, NULL, &a);
        else if (r.method->id == MCP_LISTEN)
            mcp_listen_end (&r, &a);
        char *text = mcp_answer_text (&r, &a, info);
        json_t *back = json_loads (text, JSON_ALLOW_NUL, NULL);
        if (! back || strchr (text, '\n') || ! json_object_get (back, "id"))
            abort ();
        json_decref (back);
        free (text);
        free (mcp_progress_text (&r, 1, 2, "x"));
    }
    mcp_request_clear (&r);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct mcp_lines lines = { .limit = LINE_MOST };
    struct mcp_peer peer = { 0 };
    const char *line;
    size_t len;
    for (size_t at = 0; at < size; at += 512) {
        mcp_lines_feed (&lines, (const char *)data + at, size - at < 512 ? size - at : 512);
        for (enum mcp_line what; (what = mcp_lines_next (&lines, &line, &len)) != MCP_LINE_NONE;)
            if (what == MCP_LINE)
                answer_one (&peer, line, len);
        if (lines.held.len > LINE_MOST + 1024)
            abort ();
    }
    mcp_lines_clear (&lines);
    mcp_peer_clear (&peer);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/protocol.h"

#include "base/buf.h"

const struct mcp_revision mcp_revisions[] = {
    { MCP_NEWEST_MODERN, MCP_MODERN }, { MCP_NEWEST_LEGACY, MCP_LEGACY },
    { "2025-06-18", MCP_LEGACY },      { MCP_OLDEST_HTTP, MCP_LEGACY },
    { "2024-11-05", MCP_LEGACY },
};
const size_t mcp_revision_count = ARRAY_LEN (mcp_revisions);

const struct mcp_revision *
mcp_revision_find (const char *name)
{
    for (size_t i = 0; i < mcp_revision_count; i++)
        if (str_eq (mcp_revisions[i].name, name))
            return &mcp_revisions[i];
    return NULL;
}

static const struct {
    enum mcp_code code;
    int modern, legacy;
} statuses[] = {
    { MCP_PARSE_ERROR, 400, 400 },        { MCP_INVALID_REQUEST, 400, 400 },
    { MCP_NO_METHOD, 404, 200 },          { MCP_INVALID_PARAMS, 400, 200 },
    { MCP_INTERNAL, 500, 200 },           { MCP_HEADER_MISMATCH, 400, 400 },
    { MCP_CAPABILITY_MISSING, 400, 400 }, { MCP_VERSION_UNSERVED, 400, 400 },
};

int
mcp_http_status (enum mcp_code code, enum mcp_era era)
{
    for (size_t i = 0; i < ARRAY_LEN (statuses); i++)
        if (statuses[i].code == code)
            return era == MCP_LEGACY ? statuses[i].legacy : statuses[i].modern;
    return 200;
}

#define BOTH (MCP_LEGACY | MCP_MODERN)

static const struct mcp_method methods[] = {
    { "initialize", MCP_INITIALIZE, MCP_LEGACY, NULL, 0, false },
    { "server/discover", MCP_DISCOVER, MCP_MODERN, NULL, 0, false },
    { "ping", MCP_PING, MCP_LEGACY, NULL, 0, false },
    { "logging/setLevel", MCP_SET_LEVEL, MCP_LEGACY, NULL, 0, false },
    { "tools/list", MCP_TOOLS_LIST, BOTH, NULL, MCP_OFFERS_TOOLS, false },
    { "tools/call", MCP_TOOLS_CALL, BOTH, "name", MCP_OFFERS_TOOLS, true },
    { "resources/list", MCP_RESOURCES_LIST, BOTH, NULL, MCP_OFFERS_RESOURCES, true },
    { "resources/templates/list", MCP_RESOURCE_TEMPLATES, BOTH, NULL, MCP_OFFERS_RESOURCES, false },
    { "resources/read", MCP_RESOURCES_READ, BOTH, "uri", MCP_OFFERS_RESOURCES, true },
    { "resources/subscribe", MCP_SUBSCRIBE, MCP_LEGACY, "uri", MCP_OFFERS_RESOURCES, false },
    { "resources/unsubscribe", MCP_UNSUBSCRIBE, MCP_LEGACY, "uri", MCP_OFFERS_RESOURCES, false },
    { "prompts/list", MCP_PROMPTS_LIST, BOTH, NULL, MCP_OFFERS_PROMPTS, false },
    { "prompts/get", MCP_PROMPTS_GET, BOTH, "name", MCP_OFFERS_PROMPTS, false },
    { "completion/complete", MCP_COMPLETE, BOTH, NULL, MCP_OFFERS_COMPLETIONS, true },
    { "subscriptions/listen", MCP_LISTEN, MCP_MODERN, NULL, 0, false },
    { "skills/list", MCP_SKILLS_LIST, BOTH, NULL, MCP_OFFERS_SKILLS, false },
    { "skills/get", MCP_SKILLS_GET, BOTH, "uri", MCP_OFFERS_SKILLS, false },
    { "tasks/get", MCP_TASKS_GET, MCP_MODERN, "taskId", MCP_OFFERS_TASKS, false },
    { "tasks/update", MCP_TASKS_UPDATE, MCP_MODERN, "taskId", MCP_OFFERS_TASKS, false },
    { "tasks/cancel", MCP_TASKS_CANCEL, MCP_MODERN, "taskId", MCP_OFFERS_TASKS, false },
};

const struct mcp_method *
mcp_method_find (const char *name)
{
    static const struct mcp_method none = { "", MCP_NO_SUCH_METHOD, BOTH, NULL, 0, false };
    for (size_t i = 0; i < ARRAY_LEN (methods); i++)
        if (str_eq (methods[i].name, name))
            return &methods[i];
    return &none;
}

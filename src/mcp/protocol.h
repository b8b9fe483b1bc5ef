/* SPDX-License-Identifier: Apache-2.0
 *
 * The Model Context Protocol as data: its revisions, the two eras they fall into, the methods and
 * the errors with the HTTP status each is answered with.
 *
 * Always true: what this program serves or asks is a row here; a revision newer than the first row
 * is one row and no branch.
 */
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

enum mcp_era {
    MCP_LEGACY = 1, /* opened by `initialize` */
    MCP_MODERN = 2, /* every request says its revision in _meta */
};

struct mcp_revision {
    const char *name;
    enum mcp_era era;
};

/* Newest first. */
extern const struct mcp_revision mcp_revisions[];
extern const size_t mcp_revision_count;
#define MCP_NEWEST_MODERN "2026-07-28"
#define MCP_NEWEST_LEGACY "2025-11-25"
#define MCP_OLDEST_HTTP   "2025-03-26" /* what an absent version header means in the legacy era */

/* NULL: not served. */
const struct mcp_revision *mcp_revision_find (const char *name);

/* Keys of _meta. */
#define MCP_META(name)      "io.modelcontextprotocol/" name
#define MCP_META_VERSION    MCP_META ("protocolVersion")
#define MCP_META_CAPS       MCP_META ("clientCapabilities")
#define MCP_META_CLIENT     MCP_META ("clientInfo")
#define MCP_META_SERVER     MCP_META ("serverInfo")
#define MCP_META_LOG_LEVEL  MCP_META ("logLevel")
#define MCP_META_SUBSCRIBED MCP_META ("subscriptionId")
#define MCP_EXT_TASKS       "io.modelcontextprotocol/tasks"
#define MCP_EXT_SKILLS      "io.modelcontextprotocol/skills"

enum mcp_code {
    MCP_NO_ERROR = 0,
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_NO_METHOD = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_INTERNAL = -32603,
    MCP_HEADER_MISMATCH = -32020,
    MCP_CAPABILITY_MISSING = -32021,
    MCP_VERSION_UNSERVED = -32022,
    MCP_OLD_RESOURCE_MISSING = -32002, /* accepted, never sent */
    MCP_OLD_URL_ELICITATION = -32042,  /* accepted, never sent */
};

/* The HTTP status of an answer with this error; the legacy era answers well-formed requests with
 * 200. */
int mcp_http_status (enum mcp_code code, enum mcp_era era);

enum mcp_method_id {
    MCP_INITIALIZE,
    MCP_DISCOVER,
    MCP_PING,
    MCP_TOOLS_LIST,
    MCP_TOOLS_CALL,
    MCP_RESOURCES_LIST,
    MCP_RESOURCE_TEMPLATES,
    MCP_RESOURCES_READ,
    MCP_SUBSCRIBE,
    MCP_UNSUBSCRIBE,
    MCP_PROMPTS_LIST,
    MCP_PROMPTS_GET,
    MCP_LISTEN,
    MCP_SKILLS_LIST,
    MCP_SKILLS_GET,
    MCP_TASKS_GET,
    MCP_TASKS_UPDATE,
    MCP_TASKS_CANCEL,
    MCP_SET_LEVEL,
    MCP_COMPLETE,
    MCP_NO_SUCH_METHOD,
};

struct mcp_method {
    const char *name;
    enum mcp_method_id id;
    unsigned eras;        /* of mcp_era */
    const char *named_by; /* the member of params that Mcp-Name repeats; NULL: none */
    unsigned needs;       /* of mcp_offer: what a server must offer to have it; 0: every one */
    bool may_wait;        /* a transport gives it a thread of its own */
};

/* What a server offers. */
enum mcp_offer {
    MCP_OFFERS_TOOLS = 1,
    MCP_OFFERS_RESOURCES = 2,
    MCP_OFFERS_PROMPTS = 4,
    MCP_OFFERS_SKILLS = 8,
    MCP_OFFERS_TASKS = 16,
    MCP_OFFERS_COMPLETIONS = 32,
};

/* Never NULL: a method of no row is the one with MCP_NO_SUCH_METHOD. */
const struct mcp_method *mcp_method_find (const char *name);

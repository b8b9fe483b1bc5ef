/* SPDX-License-Identifier: Apache-2.0
 *
 * A server's tools as a client judges them: whether a definition can be offered at all, what a
 * person should look at before it is, what is pinned of it, and what has changed since.
 *
 * Always true: what is pinned is everything a model reads and nothing else; a definition that was
 * judged is bounded in size and depth.
 */
#pragma once

#include "base/digest.h"
#include "base/json.h"

#define MCP_TOOLS_MAX      1000
#define MCP_DEFINITION_MAX ((size_t)65536) /* bytes of one, as compact JSON */

/* The members that are pinned; NULL-terminated. */
extern const char *const mcp_pinned_members[];

/* SHA-256 of what of a tool is pinned, as compact JSON with sorted keys. */
void mcp_definition_hash (const json_t *tool, char out[SHA256_HEX_LEN + 1]);
/* Why it cannot be offered: its name, size or schemas. Owned; NULL: nothing. */
char *mcp_definition_fault (const json_t *tool);
/* What a person should look at, a line each; <all> are the tools of the server. */
void mcp_definition_findings (const json_t *tool, const json_t *all, struct strv *out);
/* The text with every hidden character shown as U+FFFD. Owned. */
char *mcp_text_shown (const char *text);

/* The tool of that name, or NULL. */
const json_t *mcp_definition_find (const json_t *tools, const char *name);
/* What of <pinned> is different among <live>: a member's name, "gone", or NULL. Static. */
const char *mcp_definition_change (const json_t *pinned, const json_t *live);
/* The tools sorted by name, each as it is pinned. A new array. */
json_t *mcp_definitions_sorted (const json_t *tools);

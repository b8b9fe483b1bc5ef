/* SPDX-License-Identifier: Apache-2.0
 *
 * What was reviewed of a server when it was added: where it came from, how it is started, what it
 * speaks and every tool it offers. The file `mcp.json` of its package.
 *
 * One that is far away is its address and its tools: nothing is started.
 *
 * Always true: what was read is whole and its tools were judged; texts and values are borrowed from
 * it.
 */
#pragma once

#include "base/json.h"
#include "mcp/protocol.h"

#define MCP_PINNED_FILE "mcp.json"
#define MCP_TREE_PREFIX "tree/" /* what is started lies below this in a package */

struct mcp_pinned {
    json_t *whole;           /* owned */
    const char *source;      /* "npm:left-pad@1.0.0" as it was asked for */
    const char *url;         /* where it is, far away; NULL: it is started here */
    const char *key_header;  /* which header its key goes into; NULL: authorization, as a bearer */
    const char *interpreter; /* a program's name; NULL, like the four below, when far away */
    const char *entry;       /* of the tree: what the interpreter runs */
    const json_t *flags;     /* array: before the entry */
    const json_t *args;      /* array: after it, as reviewed */
    const json_t *env;       /* object of texts, as reviewed */
    enum mcp_era era;
    const char *revision;
    const char *instructions; /* NULL: none */
    const json_t *info;       /* NULL: it did not say */
    const json_t *tools;      /* array, sorted by name */
};

/* E-IO-003 naming <what>. */
bool mcp_pinned_read (struct mcp_pinned *p, const char *text, size_t len, const char *what,
                      struct mur_error **err);
void mcp_pinned_clear (struct mcp_pinned *p);
#define _cleanup_mcp_pinned_ _cleanup_ (mcp_pinned_clear)
/* SHA-256 of each tool's pin by name. A new object. */
json_t *mcp_pinned_hashes (const struct mcp_pinned *p);

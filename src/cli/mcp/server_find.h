/* SPDX-License-Identifier: Apache-2.0
 *
 * A server that was added, by what a person calls it.
 */
#pragma once

#include "artifact/package/package.h"
#include "mcp/pinned.h"

struct found_server {
    char *name, *version; /* full name */
    const char *short_name;
    struct package *package;
    struct mcp_pinned pinned;
    char *tree;
};

/* "filesystem", "mcp-filesystem" or "local/mcp-filesystem", with @version or the newest. E-REG-001,
 * E-REG-002, E-IO-003. */
bool server_find (const char *typed, struct found_server *out, struct mur_error **err);
void found_server_clear (struct found_server *f);
#define _cleanup_found_ _cleanup_ (found_server_clear)

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kinds of sources share: names, and the files package managers write.
 */
#pragma once

#include "cli/mcp/server_source.h"

/* --- source_names.c --- */

/* "filesystem" of "@modelcontextprotocol/server-filesystem", "time" of "mcp-server-time". Owned. */
char *source_name_of (const char *package);
/* "name" and "1.0" (NULL: none) of "name@1.0"; a leading @ is a scope. Both owned. */
void source_split_version (const char *text, char **name, char **version);
/* A file of JSON; a new value, or NULL with E-IO-*. */
json_t *source_read_json (const char *path, struct mur_error **err);

/* --- source_npm.c --- */

/* The program of a package.json: the only one, the one of the package's own name, or <wanted>.
 * Borrowed; NULL with E-MCP-001. */
const char *source_pick_bin (const json_t *package, const char *wanted, struct mur_error **err);
/* <what> is NAME or NAME@VERSION; the folder is made. */
bool source_fetch_npm (const struct source_request *q, const char *what, struct server_source *s,
                       struct mur_error **err);

/* --- source_pypi.c --- */

bool source_fetch_pypi (const struct source_request *q, const char *what, struct server_source *s,
                        struct mur_error **err);

/* SPDX-License-Identifier: Apache-2.0
 *
 * From a package to what the model is offered of a server: the reviewed tools the entry wants,
 * under the names it gives them.
 */
#pragma once

#include "mcp/pinned.h"
#include "session/state/session.h"

struct staged_server;

/* One of its tools, as the model sees it. Owned by its staged_server. */
struct server_offer {
    char *name;          /* with its prefix */
    const char *tool;    /* as the server calls it */
    char *description;   /* NULL: none */
    char *parameters;    /* compact JSON */
    char *output_schema; /* compact JSON of type object, or NULL */
    struct strv required;
    const json_t *schema;
    bool is_read_only;
};

/* From its package, which is open. E-IO-003, E-MCP-004, E-MCP-007. */
bool staged_server_read (struct staged_artifact *a, struct mur_error **err);
void staged_server_free (struct staged_server *v);
const struct server_offer *staged_server_offers (const struct staged_server *v, size_t *count);
/* Reviewed instructions the entry wants in the prompt; NULL: none. Borrowed. */
const char *staged_server_instructions (const struct staged_artifact *a);

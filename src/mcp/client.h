/* SPDX-License-Identifier: Apache-2.0
 *
 * The asking half of MCP, without a transport: what a client of either era puts into its requests
 * and takes from the answers that open a server.
 *
 * Always true: a client declares one fixed set of capabilities; what a server asks beyond it is
 * refused by name; who a server says it is decides nothing.
 */
#pragma once

#include "mcp/input.h"
#include "mcp/message.h"

struct mcp_client {
    const struct mcp_revision *revision; /* NULL: not opened */
    unsigned asks;                       /* of mcp_input: what a server may ask us */
    json_t *capabilities;                /* of the server; owned, may be NULL */
    json_t *info;                        /* owned, may be NULL */
    char *instructions;                  /* owned, may be NULL */
};
void mcp_client_clear (struct mcp_client *c);

/* Parameters of a request; <params> is taken over and may be NULL. <progress> 0: no token. */
json_t *mcp_client_params (const struct mcp_client *c, json_t *params, int64_t progress);
json_t *mcp_client_initialize_params (const struct mcp_client *c);
/* The same for `server/discover`, before anything is known. */
json_t *mcp_client_discover_params (const struct mcp_client *c);

/* Takes a result of `initialize` or `server/discover`. False: no revision in common; *said (owned)
 * is what the server named. */
bool mcp_client_take_initialize (struct mcp_client *c, const json_t *result, char **said);
bool mcp_client_take_discover (struct mcp_client *c, const json_t *result, char **said);
/* True when it names revisions of the older era and none of the modern one. */
bool mcp_client_names_legacy (const json_t *versions);
/* True for an error that only a modern server gives: it serves another version. */
bool mcp_client_is_version_error (const json_t *error);

/* The answer to what a server asks a client of this era; <input> (taken over; NULL: refused) is the
 * result of an elicitation. Owned. */
char *mcp_client_answer (const struct mcp_message *request, json_t *input);
/* "-32602: Unknown tool"; owned. */
char *mcp_error_words (const json_t *error);

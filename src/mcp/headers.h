/* SPDX-License-Identifier: Apache-2.0
 *
 * The headers of streamable HTTP: what a modern request repeats of its body, and what a page of a
 * browser may not send.
 *
 * Always true: names are compared without case, values with it; a value in the form =?base64?...?=
 * is decoded before it is compared.
 */
#pragma once

#include "mcp/request.h"

/* The first header line of a name, in any case; NULL: none. */
typedef const char *mcp_header_fn (const void *ctx, const char *name);

/* Of a judged modern request. <schema>: of the tool that is called, NULL when unknown or another
 * method. False: MCP_HEADER_MISMATCH in *no. */
bool mcp_headers_match (const struct mcp_request *r, const json_t *schema, mcp_header_fn *header,
                        const void *ctx, struct mcp_answer *no);
/* Of a modern request whose revision is not served: where the header names another one, that is
 * what is wrong with it, MCP_HEADER_MISMATCH in *no. */
void mcp_headers_judge_version (const struct mcp_request *r, mcp_header_fn *header, const void *ctx,
                                struct mcp_answer *no);
/* The value as it may stand in a header. Owned. */
char *mcp_header_value (const char *text);

/* Each property of <schema> with x-mcp-header: its header's full name and the value in
 * <arguments> (NULL: not there). The walk goes through `properties` only. */
typedef void mcp_param_fn (void *ctx, const char *header, const json_t *value);
/* False when an annotation is invalid: a client drops such a tool. <fn> may be NULL. */
bool mcp_params_visit (const json_t *schema, const json_t *arguments, mcp_param_fn *fn, void *ctx);

/* True when a browser's page may have sent it although it is of another site: an Origin that is
 * not this machine, or a foreign Host on a loopback address. NULL: the header is not there. */
bool mcp_is_foreign (const char *origin, const char *host, bool is_loopback);

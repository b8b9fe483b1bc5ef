/* SPDX-License-Identifier: Apache-2.0
 *
 * One question to a server and the wait for its answer: bounded twice, ended by a cancel, told to
 * the server when nobody waits any more.
 */
#pragma once

#include "session/servers/server.h"
#include "session/state/call.h"

/* Asks it something; the answer's result is a new value, or NULL with *err (E-MCP-*), or without
 * one when <cancel> was raised. */
struct server_ask {
    const char *method;
    json_t *params;           /* taken over */
    uint64_t idle_ms, cap_ms; /* without progress; in all */
    struct cancel *cancel;    /* may be NULL */
    /* answers what a legacy server asks; a new result, NULL: refused. May be NULL */
    json_t *(*answer) (void *ctx, const char *method, const json_t *params);
    void *ctx;
    json_t **error;           /* receives a JSON-RPC error instead of *err; may be NULL */
    uint64_t *progress_count; /* may be NULL */
    const struct call_listener *listener; /* hears of progress; may be NULL */
    unsigned withholds; /* of mcp_input: what a modern server may not ask for in this call */
    bool is_repeatable; /* asked twice it does no harm */
    /* Set by the answer: the HTTP status it failed with, 0: none; it reached the server, which has
     * not begun with it. */
    int status;
    bool is_unserved;
};
json_t *server_request (struct mcp_server *s, struct server_ask *ask, struct mur_error **err);

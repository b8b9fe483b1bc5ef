/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session holds of one server, for the files of this room alone.
 */
#pragma once

#include "session/servers/server.h"
#include "session/servers/stage_server.h"

#include <stdatomic.h>

struct gateway_door;

#define SERVER_CAP_FACTOR 10 /* progress extends a call's deadline up to so many times */

struct staged_server {
    const struct staged_artifact *artifact;
    struct mcp_pinned pinned;
    const char *name; /* as people call it */
    struct server_offer *offers;
    size_t offer_count;
    struct strv args, offered, env, protected;
    char *archive, *sha256; /* of its package */
    char *dir, *work, *log_path, *tree;
    struct session *session;
    struct gateway_door *door;
    struct mcp_server *process; /* NULL before the folders are there */
    unsigned asks;              /* of mcp_input: what it may ask for */
    atomic_uint calls;          /* under way */
    uint64_t kept; /* what was kept of results, for their names; under the loop's lock */
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * Who listens at the door for what changes: a modern client by a subscription, a legacy session by
 * a stream of its own, or, without one, with its next call.
 */
#pragma once

#include "door/planes/mcp_plane.h"

/* A list of the service changed. From any thread. */
void mcp_listen_tell_list (struct mcp_plane *p, enum mcp_list list);
/* A resource changed, and who looks after it is told. From any thread. */
void mcp_listen_tell_resource (struct mcp_plane *p, const char *uri);

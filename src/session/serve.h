/* SPDX-License-Identifier: Apache-2.0
 *
 * Serving a session to MCP clients: what `mur mcp serve` asks for between staging and launch.
 *
 * Always true: what the manifest's exports.mcp does not name is served to nobody.
 */
#pragma once

#include "session/stage.h"

/* The launch will serve one client on these descriptors, which it takes over, and end when that
 * client is gone. E-MCP-010: nothing is exported, or a tool that is not there. */
bool session_serve_stdio (struct session *s, int in_fd, int out_fd, struct mur_error **err);

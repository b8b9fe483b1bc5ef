/* SPDX-License-Identifier: Apache-2.0
 *
 * The door: the HTTP surface of a running agent capsule (spec/door.md).
 *
 * Order: door_bind, (session_start is written), door_serve, registry work, announce, door_close.
 * Always true: no handler waits for the agent loop; door_close returns with no thread left.
 */
#pragma once

#include "base/error.h"
#include "door/callers/auth.h"
#include "door/card/card.h"
#include "door/planes/control_plane.h"
#include "door/planes/mcp_plane.h"
#include "door/planes/peer_files.h"
#include "door/planes/planes.h"
#include "door/tasks/tasks.h"

struct door;

/* Binds <bind_address>:<port>, port 0 for any. E-RUN-010 naming a taken port, E-IO-003 for any
 * other failure. */
struct door *door_bind (const char *bind_address, unsigned port, struct mur_error **err);
unsigned door_port (const struct door *d);
/* "localhost:<port>", whatever was bound. Borrowed. */
const char *door_url (const struct door *d);

/* Makes the door an authenticated one; before door_serve. <auth> is borrowed until door_close. */
void door_set_auth (struct door *d, struct door_auth *auth);

/* Whose files the planes serve; before door_serve. Copied; what it points to is borrowed until
 * door_close. */
void door_set_planes (struct door *d, const struct plane_facts *facts, const char *session_id);
/* Gives the door a control plane; before door_serve. */
void door_set_control (struct door *d, const struct control_spec *spec);
/* Serves MCP at /mcp; before door_serve, after door_set_auth. */
void door_set_mcp (struct door *d, const struct mcp_plane_spec *spec);
/* No MCP call runs after this, and none is taken. */
void door_stop_mcp (struct door *d);
/* Its tools, or the resources that are listed, are others now. <d> may be NULL. */
void door_tell_mcp_list (struct door *d, enum mcp_list list);
/* A resource it serves has changed. <d> may be NULL. */
void door_tell_mcp_resource (struct door *d, const char *uri);
/* Mints for share-file. NULL before door_set_planes. */
struct peer_files *door_peer_files (struct door *d);

/* Starts answering. <facts> is read now and not kept; <registry> is borrowed until door_close.
 * E-IO-003. */
bool door_serve (struct door *d, const struct card_facts *facts, struct registry *registry,
                 struct mur_error **err);
/* door.md 20: closes the listener, lets streams write what is queued and held sends answer, 500 ms
 * in all. NULL is fine. */
void door_close (struct door *d);
DEFINE_CLEANUP (struct door, door_close)

/* SPDX-License-Identifier: Apache-2.0
 *
 * The servers of tools of one session: what of each package is offered to the model, and its
 * process, which starts with the first call.
 *
 * Always true: the model reads what was reviewed, never what a server says now; a server gets its
 * own folders, its own network and the variables its entry names, and nothing of the capsule's.
 */
#pragma once

#include "session/state/session.h"

/* A staging step, once the folders are there: nothing is started. E-MCP-008, E-IO-003. */
bool servers_stage (struct session *s, struct mur_error **err);
/* Starts those that are to start with the launch. */
bool servers_start (struct session *s, struct mur_error **err);
/* Ends them, all at once. Safe when there are none. */
void servers_end (struct session *s);

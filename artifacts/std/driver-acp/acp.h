/* SPDX-License-Identifier: Apache-2.0
 *
 * What the sources of this driver share.
 */
#ifndef DRIVER_ACP_H
#define DRIVER_ACP_H

#include "murmur_harness.h"

/* --- rules.c --- */

/* The manifest's rules as the runtime hands them ("$rules" of the config), and the config's own
 * allow and deny. Kept for the run. */
void acp_rules_begin (const struct mur_json *config);
/* True when it runs inside walls. */
bool acp_rules_are_walled (void);
/* Where the agent works. */
const char *acp_rules_folder (void);
/* session/request_permission: answered at once. */
void acp_permission (const struct mur_json *line);

/* --- calls.c --- */

/* The tools of the capsule (NULL: none), kept for the run. */
void acp_calls_begin (const struct mur_bridge *served);
/* "mcp__<server>__<tool>" when the title is a tool of the capsule in one of the ways agents write
 * it; NULL else. */
char *acp_capsule_tool (const char *title);
/* What the agent has said of a call before: its kind, or the name of a tool of the capsule, and its
 * input as JSON. NULL where it said nothing. */
const char *acp_call_kind (const char *id);
const char *acp_call_input (const char *id);
/* A tool_call or tool_call_update of the agent's own. */
void acp_call_update (const struct mur_json *line, mur_node update);

#endif

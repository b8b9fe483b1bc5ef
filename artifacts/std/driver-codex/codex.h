/* SPDX-License-Identifier: Apache-2.0
 *
 * What the sources of this driver share.
 */
#ifndef DRIVER_CODEX_H
#define DRIVER_CODEX_H

#include "murmur_harness.h"

/* --- driver_codex.c --- */

/* -c key="value"; nothing when the value is NULL. */
void codex_setting (struct mur_plan *plan, const char *key, const char *value);
/* A member that is a text; NULL else. */
char *codex_text (const struct mur_json *line, mur_node object, const char *key);
/* {"input_tokens", ...} in either spelling of its members. */
void codex_usage (const struct mur_json *line, mur_node usage, struct mur_process_usage *to);

/* --- app_server.c --- */

/* True when somebody is to be asked: the manifest has approvals, or the config an approval_policy
 * that asks. Then the program is run as a server, since its exec mode asks nobody. */
bool codex_asks (const struct mur_json *config);
/* What that mode's arguments and input are; the rest of the plan is the other mode's. */
void codex_server_plan (const struct mur_launch *launch, struct mur_plan *plan);
/* A line of that mode. */
void codex_server_line (const struct mur_json *line, const char *raw, size_t len);
/* The last error it told, for a run without an end; NULL: none. */
const char *codex_server_error (void);

#endif

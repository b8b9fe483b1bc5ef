/* SPDX-License-Identifier: Apache-2.0
 *
 * The variables of guests (docs/spec/session.md 4.2): later wins, and a guest sees each name once.
 */
#pragma once

#include "base/buf.h"

struct policy;
struct session;
struct staged_artifact;

/* Fills the variables of every guest once the door's URL is known ("" for a script). */
void guest_env_fill (struct session *s, const char *url);
/* Those of one tool that came later. */
void guest_env_fill_tool (struct session *s, const char *url, struct staged_artifact *a);
/* Those of a hook: nothing of the host's and nothing of the session's but its own. */
void guest_env_fill_hook (struct session *s, struct staged_artifact *a);

/* Host values of capabilities.env.allow, past the credential filter, added to <env>. */
void guest_env_add_allowed (const struct policy *p, struct strv *env);
/* Sets a variable, replacing an earlier value; NULL takes it away. */
void guest_env_set (struct strv *env, const char *name, const char *value);

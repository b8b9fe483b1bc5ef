/* SPDX-License-Identifier: Apache-2.0
 *
 * What the model is told before anything else: the capsule's identity, the facts of its grants,
 * the operator's prompt (docs/spec/session.md 10).
 *
 * Always true: a pure function of the manifest: no path of this machine, no id, no time.
 */
#pragma once

#include "session/state/session.h"

/* A step of staging, before anything exists. */
bool stage_system_prompt (struct session *s, struct mur_error **err);

/* Appends the fact lines, each with its newline. */
void fact_lines_append (const struct session *s, struct buf *out);
/* Appends the limits as the Limits: line and MURMUR.md state them: parts joined by "; ", or "none".
 */
void limit_parts_append (const struct session *s, struct buf *out);
/* The system text of a request over http. Owned. */
char *system_text (const struct session *s);
/* What a harness is given as its system prompt: no identity, the rest the same. Owned. */
char *system_text_process (const struct session *s);

/* SPDX-License-Identifier: Apache-2.0
 *
 * What `mur run` learns before it stages: a session to resume, where the script's component lies
 * (spec/cli.md 2).
 *
 * Callers: cmd_run.c.
 */
#pragma once

#include "base/error.h"

/* The context of a recorded session's first task. *session_id and *context_id are owned. E-TRC-002,
 * E-RUN-016. */
bool run_resolve_resume (const char *address, const char *work_root, char **session_id,
                         char **context_id, struct mur_error **err);

/* The component of a script capsule's folder: capsule.wasm, else its only .wasm. Owned. E-RUN-004,
 * E-IO-003. */
char *run_find_component (const char *dir, struct mur_error **err);

/* "DEV:INO". E-RUN-051. */
bool run_parse_identity (const char *text, unsigned long long *dev, unsigned long long *ino,
                         struct mur_error **err);

/* SPDX-License-Identifier: Apache-2.0
 *
 * The files below tools/ of the runtime directory (docs/spec/session.md 3.1): one folder a tool,
 * with the manifest a program can read it by.
 */
#pragma once

#include "base/error.h"

struct session;
struct staged_artifact;

/* Step 19. */
bool stage_tool_files (struct session *s, struct mur_error **err);
/* The files of one artifact, its native program aside. */
bool stage_artifact_files (struct session *s, struct staged_artifact *a, struct mur_error **err);

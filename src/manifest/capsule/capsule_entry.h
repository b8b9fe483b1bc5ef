/* SPDX-License-Identifier: Apache-2.0
 *
 * One entry of a capsule's artifacts: found by its name, what its role is called, and what a
 * server's tools are called.
 */
#pragma once

#include "manifest/capsule/capsule.h"

/* "tool", "driver", "hook", "skill". Static. */
const char *artifact_role_name (enum artifact_role role);
/* The entry of that full (or, for sources, bare) name, or NULL. */
const struct artifact_entry *
capsule_manifest_artifact (const struct capsule_manifest *m, const char *name);
/* What a model calls a tool of the server <name>; <m> NULL: as nothing says otherwise. Owned. */
char *mcp_offered_name (const struct mcp_block *m, const char *name, const char *tool);

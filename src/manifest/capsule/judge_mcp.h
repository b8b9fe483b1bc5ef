/* SPDX-License-Identifier: Apache-2.0
 *
 * Judging the `mcp` block of an entry of runtime: mcp: constants that are keys, names that are
 * none, and what excludes each other.
 */
#pragma once

#include "manifest/capsule/reading.h"

/* Fills in an absent block. <path> is the block's. E-MAN-003. */
/* The address of a server far away without its query: where a key goes. */
const char *judge_mcp_endpoint (struct reading *rd, const struct mcp_block *m);
bool
judge_mcp (struct reading *rd, struct artifact_entry *e, const char *path, struct mur_error **err);

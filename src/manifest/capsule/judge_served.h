/* SPDX-License-Identifier: Apache-2.0
 *
 * Judging `exports.mcp`: names clients can use, and prompts whose places all have an argument.
 */
#pragma once

#include "manifest/capsule/reading.h"

/* True where there is none. E-MAN-003. */
bool judge_exported_mcp (struct reading *rd, const struct exports *e, struct mur_error **err);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing a record with what ran.
 */
#pragma once

#include "replay/record/record.h"

/* Writes the bundle of a record to <path>. What is in no store any more is said. E-IO-003. */
bool
packing_pack (const struct record *r, const char *path, bool is_redacted, struct mur_error **err);

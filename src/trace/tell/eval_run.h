/* SPDX-License-Identifier: Apache-2.0
 *
 * The record of one `mur eval run` (evr_<id>.json) read back: its arms side by side
 * (spec/records.md 9).
 *
 * A record is a JSON object with ordered keys; what is read from a file was checked, so the readers
 * here trust its shape.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"

/* Finds the record <address> names (an id, a suffix, @N, a literal path) in the group of
 * <work_root>. Owned path, or NULL: E-EVAL-002. */
char *eval_run_resolve (const char *address, const char *work_root, struct mur_error **err);
/* Reads one. Owned; NULL: E-IO-001 (absent), E-IO-003, E-EVAL-001 (not such a record). */
json_t *eval_run_read (const char *path, struct mur_error **err);

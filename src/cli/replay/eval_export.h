/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur replay --export-eval`: a recorded session as a case of an evaluation that runs without a
 * key.
 */
#pragma once

#include "replay/record/record.h"

/* Writes task.md, start/, murmur.yaml, record.murtrace and eval.jsonl into <dir>, which must not be
 * there or be empty. <manifest>: of the session. <check> NULL: nothing is checked. E-IO-003. */
bool eval_export (const struct record *r, const char *manifest, size_t manifest_len,
                  const char *dir, const char *check, struct mur_error **err);

/* SPDX-License-Identifier: Apache-2.0
 *
 * What an eval run adds up to: each arm over a case and over all, as JSON and as a table.
 */
#pragma once

#include "trace/tell/eval_run.h"

/* The comparison as JSON (owned) and as text. */
json_t *eval_run_json (const json_t *run);
void eval_run_text (const json_t *run, struct buf *out);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a run of an evaluation is a good one: what its scorers say, and of a session from its
 * record, that it ran as it did then and its check holds.
 */
#pragma once

#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>

/* "pass", "fail", or of a run that is not from a record "no_scores", from a run's record. */
const char *eval_verdict (const json_t *run, bool is_recorded);
/* The runs of an evaluation's record that pass; *total: all of them. */
size_t eval_verdict_count (const json_t *record, bool is_recorded, size_t *total);

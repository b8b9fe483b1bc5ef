/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace diff --steps`: two sessions side by side, aligned by what they did (spec/records.md
 * 8.4). A call that one made and the other did not stands alone; the same call with other input,
 * outcome or answer stands beside it as changed.
 */
#pragma once

#include "base/json.h"
#include "trace/read/reader.h"
#include "trace/read/text.h"

/* {schema, a, b, same, changed, only_a, only_b, facts[{name, a, b}], steps[{kind, a, b}]}, a step
 * {n, what, text, status, duration_ms}; n: of its event in the trace. Owned. */
json_t *trace_diff_steps (const struct trace *a, const struct trace *b);
/* Appends the same as lines: what is the same, "~" changed, "-" only before, "+" only after. */
void trace_diff_steps_report (const json_t *answer, struct report *report);

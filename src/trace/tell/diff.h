/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace diff`: two sessions side by side (spec/records.md 8.4).
 */
#pragma once

#include "trace/read/reader.h"
#include "trace/read/text.h"

/* Appends the comparison of two complete traces. */
void trace_diff (const struct trace *a, const struct trace *b, struct report *report);

/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace diff` and `mur trace report`: sessions side by side, and many summed up
 * (spec/records.md 8.4, 8.5).
 */
#pragma once

#include "base/buf.h"
#include "trace/read/reader.h"

/* Appends the comparison of two complete traces. */
void trace_diff (const struct trace *a, const struct trace *b, struct buf *out);

/* Appends the report of <count> complete traces; <workdir> is named in its summary. */
void trace_report (const struct trace *const *traces, size_t count, const char *workdir,
                   struct buf *out);

/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace report`: many sessions summed up (spec/records.md 8.5).
 */
#pragma once

#include "base/buf.h"
#include "trace/read/reader.h"

/* Appends the report of <count> complete traces; <workdir> is named in its summary. */
void trace_report (const struct trace *const *traces, size_t count, const char *workdir,
                   struct buf *out);

/* SPDX-License-Identifier: Apache-2.0
 *
 * The spans of a finished trace: what would have been sent while it was written, the same bytes
 * each time. A trace without an end is one whose task was killed.
 */
#pragma once

#include "trace/export/otel_settings.h"
#include "trace/read/reader.h"

/* The body of one POST /v1/traces with all spans of <t>. <records> may be NULL: then no messages
 * are in it whatever the settings say. Owned bytes in *out. */
void trace_spans_encode (const struct trace *t, const struct otel_settings *settings,
                         struct fs_root *records, struct buf *out);

/* SPDX-License-Identifier: Apache-2.0
 *
 * The spans of a finished trace: what would have been sent while it was written, the same bytes
 * each time. A trace without an end is one whose task was killed.
 */
#pragma once

#include "trace/export/otel_settings.h"
#include "trace/read/reader.h"

/* Where they go, piece by piece: a trace may have more spans than memory holds. */
struct trace_spans_sink {
    /* Whole bodies of POST /v1/traces, of some megabytes each; else pieces of one. */
    bool takes_bodies;
    bool (*put) (void *ctx, const char *data, size_t len, struct mur_error **err);
    void *ctx;
};

/* Encodes all spans of <t>. <records> may be NULL: then no messages are in it whatever the settings
 * say. Pieces of one body need settings->encoding to be JSON. Fails as <put> does. */
bool trace_spans_encode (const struct trace *t, const struct otel_settings *settings,
                         struct fs_root *records, const struct trace_spans_sink *sink,
                         struct mur_error **err);

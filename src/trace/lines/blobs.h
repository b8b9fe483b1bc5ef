/* SPDX-License-Identifier: Apache-2.0
 *
 * Bodies kept beside the trace under trace.capture: content (spec/records.md 3.2).
 *
 * Always true: a link where a body or its directory should be is a refusal, never "already stored".
 */
#pragma once

#include "trace/lines/writer.h"

/* Stores a body once as blobs/<sha256> (records.md 3.2). Fails with E-RUN-050 or E-IO-003. */
bool trace_blob_store (struct fs_root *records, const char *sha256, const void *data, size_t len,
                       struct mur_error **err);

/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace show --body`: the exact bytes of one captured request part or response
 * (spec/records.md 8.1).
 */
#pragma once

#include "base/buf.h"
#include "trace/read/reader.h"

/* Reads the body <selector> names: system, tools, response or message:<i> of <turn> (NULL when
 * --turn was not given), or a digest of 8 to 64 characters. <records_dir> holds blobs/. E-TRC-001
 * for everything that names no stored body. */
bool trace_body (const struct trace *t, const char *records_dir, const char *selector,
                 const uint64_t *turn, struct buf *out, struct mur_error **err);

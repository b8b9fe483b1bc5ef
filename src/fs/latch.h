/* SPDX-License-Identifier: Apache-2.0
 *
 * The refusal latch: what the runtime declined to follow, kept until a checkpoint looks.
 */
#pragma once

#include "fs/root.h"

/* "write" ... "remove" and "symlink" ... "invalid_component", as the trace spells them. */
const char *fs_operation_name (enum fs_operation operation);
const char *fs_reason_name (enum fs_reason reason);

struct fs_latch *fs_latch_new (void);
void fs_latch_free (struct fs_latch *l);
DEFINE_CLEANUP (struct fs_latch, fs_latch_free)
void fs_refusals_free (struct fs_refusal *refusals, size_t count);

/* Takes what was latched, distinct refusals in order; the caller frees with fs_refusals_free.
 * Returns the count. */
size_t fs_latch_drain (struct fs_latch *l, struct fs_refusal **refusals);

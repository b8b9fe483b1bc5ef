/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking a program of the host about itself: an interpreter for its import path, a compiler for its
 * helpers (spec/containment.md 8.2, 12.5).
 *
 * The program runs unconfined, so nothing a capsule can write may be asked: the callers see to it.
 */
#pragma once

#include "base/buf.h"

/* Runs <path> with these arguments and nothing of ours: an empty environment, "/" as its folder,
 * /dev/null for input and complaints; killed after five seconds. True when it exited with 0; what
 * it printed, at most 64 KiB of it, is appended. */
bool host_query (const char *path, const char *const *argv, struct buf *out);

/* SPDX-License-Identifier: Apache-2.0
 *
 * The untrusted fence: text that came from outside, marked so that the model reads it as data
 * (docs/spec/session.md 8.2).
 *
 * Always true: whatever the content holds, the only closing marker in the result is its last line;
 * clean content is unchanged byte for byte.
 */
#pragma once

#include "base/buf.h"

/* Appends the fenced block. <source> is the label ("tool:echo"); a '>' in it becomes '_', a newline
 * a space. */
void fence_append (struct buf *out, const char *source, const char *content, size_t len);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Text of the manual pages, written while murmur is built.
 */
#pragma once

#include "base/buf.h"

/* Text as roff reads it: nothing in it is a request or an escape. */
void roff_put (struct buf *out, const char *text);
/* ".<request> <text>" on a line of its own. */
void roff_line (struct buf *out, const char *request, const char *text);

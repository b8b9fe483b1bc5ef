/* SPDX-License-Identifier: Apache-2.0
 *
 * What the first and the last line of a trace say, which is what a list of sessions shows.
 */
#pragma once

#include "base/json.h"

/* The event of the first whole line, NULL: there is none that can be read. Owned. */
json_t *ui_trace_first (const char *path);
/* The session_end, when that is the last whole line. NULL: it is not. Owned. */
json_t *ui_trace_end (const char *path);

/* SPDX-License-Identifier: Apache-2.0
 *
 * The tool array of a request: held byte for byte from call to call (docs/spec/session.md 5.4).
 */
#pragma once

#include "session/state/session.h"

/* The array as compact JSON with sorted keys, tools in name order. Owned. */
char *tools_array_text (const struct session *s);
/* Appends the array to logs/bootstrap.log unless it is what was logged last. Never fails the
 * session. */
void tools_array_log (struct session *s, const char *tools_text);

/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of a command line (docs/spec/session.md 8.5): quotes and backslashes are honoured,
 * nothing is expanded.
 */
#pragma once

#include "base/buf.h"

/* Appends them. */
void words_split (const char *line, struct strv *words);

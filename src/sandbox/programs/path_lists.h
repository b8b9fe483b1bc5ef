/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of paths: whether a path lies at or below one of them, and each kept once.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

/* True when <path> is <root> or below it, for some root. */
bool path_is_below_any (const char *path, const char *const *roots);
/* Appends what is not there yet. */
void strv_push_once (struct strv *v, const char *s);

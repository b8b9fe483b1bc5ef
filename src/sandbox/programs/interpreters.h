/* SPDX-License-Identifier: Apache-2.0
 *
 * Interpreters that find their library by asking themselves (spec/containment.md 8.2).
 */
#pragma once

#include "sandbox/programs/exec_allowlist.h"

/* Asks <program> (found as <unlinked>) for its import path when it is one, and grants it to <list>
 * for reading, told as derived by <n>. False: it is no such interpreter. */
bool interpreter_derive (struct exec_allowlist *list, struct exec_name *n, const char *program,
                         const char *unlinked, const char *const *writable_roots);

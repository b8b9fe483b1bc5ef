/* SPDX-License-Identifier: Apache-2.0
 *
 * The programs a compiler driver starts, and whether a sealed root lets it (spec/containment.md
 * 12.5).
 */
#pragma once

#include "sandbox/programs/exec_allowlist.h"

struct compiler_helpers {
    struct strv uncovered; /* "cc1 (/usr/lib/gcc/x/12/cc1), started by gcc": not executable */
    struct strv unchecked; /* "cc1 of gcc": the driver would not tell */
};

/* Asks every driver among the allowed names. <trees>: folders whose files may be executed
 * (NULL-terminated). <path>: where a helper without a folder of its own is looked for. Files at or
 * below <writable_roots> are never run. */
void compiler_helpers_check (const struct exec_allowlist *list, const char *const *trees,
                             const char *path, const char *const *writable_roots,
                             struct compiler_helpers *out);
void compiler_helpers_free (struct compiler_helpers *h);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Version managers put a small script or a link of their own where PATH finds a program first
 * (pyenv, rbenv, nodenv, asdf, mise, volta, rustup), and wrappers do the same by hand. Inside the
 * walls the manager cannot work: its own state is private. So the program it would start is found
 * here, before the launch.
 */
#pragma once

#include "base/cleanup.h"

enum shim_kind {
    SHIM_NONE,     /* the file is the program */
    SHIM_RESOLVED, /* *real is what it would start */
    SHIM_PASSED,   /* the manager says: the system's own, the next on PATH */
    SHIM_LOST,     /* *why says what is missing and what helps */
};

/* <candidate> is a file on PATH named <name>; <work_dir> holds the project's own choice of a
 * version (NULL: none). *real (with SHIM_RESOLVED) and *why (with SHIM_LOST) are the caller's to
 * free. */
enum shim_kind shim_resolve (const char *name, const char *candidate, const char *work_dir,
                             char **real, char **why);

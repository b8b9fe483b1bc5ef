/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of the person's own machine, run as they would run it: a package manager that fetches
 * what is packed. Nothing of it is confined.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/* Runs <argv> (NULL-terminated) in <dir>. What it prints is shown only when it fails: E-IO-003 with
 * its end. */
bool run_program (const char *const *argv, const char *dir, struct mur_error **err);
/* The same; what it printed is appended to <out>. */
bool run_program_reading (const char *const *argv, const char *dir, struct buf *out,
                          struct mur_error **err);

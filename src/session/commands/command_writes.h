/* SPDX-License-Identifier: Apache-2.0
 *
 * Which paths a command line says it writes (docs/spec/containment.md 13.1): read, never
 * evaluated.
 *
 * Always true: quotes are honoured, expansions are left as they are written.
 */
#pragma once

#include <stdbool.h>

/* Told of each path with the evidence, both borrowed. True: enough was seen, stop. */
typedef bool command_write_fn (void *ctx, const char *path, const char *signal);

/* A script of a shell: redirections and the recognised verbs of every segment. True when <fn>
 * stopped it. */
bool command_writes_of_script (const char *script, command_write_fn *fn, void *ctx);
/* A program and its arguments as one line, split into words like shell.h does: verbs only. */
bool command_writes_of_program (const char *name, const char *arguments, command_write_fn *fn,
                                void *ctx);

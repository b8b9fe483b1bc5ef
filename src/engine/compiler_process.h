/* SPDX-License-Identifier: Apache-2.0
 *
 * The compiler in a process of its own: what it took of memory goes with it, and a component that
 * makes it crash, or eat all there is, takes no session along.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/* The only argument of a program that is asked to be the compiler. */
#define COMPILER_ARGUMENT "--compile-component"

/* Compiles by PROGRAM COMPILER_ARGUMENT; <program> must answer it with compiler_process_serve.
 * Appends the form to <form>. Returns false with E-RUN-001 when the wasm does not compile or the
 * compiler ended without an answer. *is_there is false when the process could not be started, with
 * nothing set: then there is no answer at all. */
bool compiler_process_run (const char *program, const void *wasm, size_t len, struct buf *form,
                           bool *is_there, struct mur_error **err);

/* What that program does: reads the component from its standard input and writes the form, or what
 * is wrong, to its standard output. Returns the exit status. */
int compiler_process_serve (void);

/* SPDX-License-Identifier: Apache-2.0
 *
 * The one error value: a diagnostic code, a message, an optional hint, and errno when there was
 * one.
 *
 * A function that can fail returns bool, a pointer or a descriptor (-1) and takes `struct mur_error
 * **err` last. A caller adds what it knows with mur_context and returns; only main prints. Passing
 * err == NULL drops the error. A second mur_fail on a set error keeps the first cause.
 */
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>

enum diag_code {
#define DIAG(id, code, meaning, remedy) id,
#include "base/diag_codes.def"
#undef DIAG
    DIAG_COUNT
};

struct mur_error {
    enum diag_code code;
    char *message;   /* UTF-8, may hold newlines */
    char *hint;      /* NULL, or what to do about it */
    int errno_value; /* 0 when no system call was at fault */
};

/* Sets *err. Always returns false, so `return mur_fail (...)` reads well in a bool function. */
bool mur_fail (struct mur_error **err, enum diag_code code, const char *fmt, ...) _printf_ (3, 4);
/* The same with ": <strerror (errno)>" added and errno kept. */
bool
mur_fail_errno (struct mur_error **err, enum diag_code code, const char *fmt, ...) _printf_ (3, 4);
/* Puts "<text>: " before the message of a set error. Always returns false. */
bool mur_context (struct mur_error **err, const char *fmt, ...) _printf_ (2, 3);
/* Sets the hint of a set error, replacing an older one. Always returns false. */
bool mur_hint (struct mur_error **err, const char *fmt, ...) _printf_ (2, 3);
/* Moves a caught error into err (or frees it when err is NULL). Always returns false. */
bool mur_propagate (struct mur_error **err, struct mur_error *caught);

void mur_error_free (struct mur_error *e);
DEFINE_CLEANUP (struct mur_error, mur_error_free)
#define _cleanup_error_ _cleanup_ (mur_error_freep)

/* "E-CAP-003" for E_CAP_003. Static storage. */
const char *diag_code_name (enum diag_code code);
/* One sentence: what the code means. Static storage. */
const char *diag_code_meaning (enum diag_code code);
/* What to do about it. Static storage. */
const char *diag_code_remedy (enum diag_code code);
/* True of a code that this version knows the meaning of and never prints. */
bool diag_code_is_unraised (enum diag_code code);
/* Finds a code by its printed name, upper or lower case. Returns false when there is none. */
bool diag_code_find (const char *name, enum diag_code *code);

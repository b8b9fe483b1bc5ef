/* SPDX-License-Identifier: Apache-2.0
 *
 * What the referee answers. One text for every fault of identity: anything more precise would be an
 * oracle.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"

/* An answer: an HTTP status and a JSON object whose members are in the order of the spec's table.
 */
struct verdict {
    int status;
    json_t *body; /* owned */
};

/* {"error": text}. */
struct verdict verdict_error (int status, const char *fmt, ...) _printf_ (2, 3);
/* The fault of identity. */
struct verdict verdict_not_you (void);
/* Takes the error over. */
struct verdict verdict_from_error (int status, struct mur_error *e);

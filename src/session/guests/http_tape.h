/* SPDX-License-Identifier: Apache-2.0
 *
 * What one guest sent over HTTP and was given, kept piece by piece as it came.
 *
 * Always true: a request is kept as the guest made it, before a key is put in; a driver's request
 * is kept as its digest, for it holds the whole conversation each time.
 */
#pragma once

#include "net/guest_http.h"
#include "replay/tape/tape.h"

struct http_tape;

/* <place> is copied. What <redactor> would change is not kept: its digest is. */
struct http_tape *
http_tape_new (struct tape *tape, const char *place, struct redactor *redactor, bool is_driver);
void http_tape_free (struct http_tape *t);
/* How errors are called on record; NULL for none. */
enum guest_http_error http_tape_error (const char *name);
extern const struct guest_http_watch http_tape_watch; /* its ctx: the http_tape */

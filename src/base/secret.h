/* SPDX-License-Identifier: Apache-2.0
 *
 * Secrets: keys and tokens in memory that is locked when the limit allows, zeroed when freed, and
 * never printable by accident: there is no field to pass to "%s". The few places that must send the
 * bytes call secret_reveal, which a search finds.
 */
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>

struct secret;

struct secret *secret_new (const char *text, size_t len);
struct secret *secret_copy (const struct secret *s);
void secret_free (struct secret *s);
DEFINE_CLEANUP (struct secret, secret_free)
#define _cleanup_secret_ _cleanup_ (secret_freep)

size_t secret_len (const struct secret *s);
/* The NUL-terminated bytes. Borrowed; never stored, logged or traced. */
const char *secret_reveal (const struct secret *s);
bool secret_equal (const struct secret *a, const struct secret *b);

/* Overwrites memory in a way the compiler keeps. */
void secret_wipe (void *p, size_t len);

/* A set of secrets whose values are replaced by "[redacted]" in any text that leaves the process.
 * Thread-safe. */
struct redactor;
struct redactor *redactor_new (void);
void redactor_free (struct redactor *r);
DEFINE_CLEANUP (struct redactor, redactor_free)
/* Remembers a value (copied). Values shorter than 4 bytes are ignored: replacing them would shred
 * every text. */
void redactor_add (struct redactor *r, const struct secret *s);
/* The text with every known value replaced; the caller frees it. */
char *redactor_apply (struct redactor *r, const char *text);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of the HTTP client: looked up with net/resolver (hosts file, then DNS, five seconds at
 * most), both families at once, and remembered for a minute.
 */
#pragma once

#include "base/error.h"

struct http_names;

struct http_names *http_names_new (struct mur_error **err);
/* Lookups still open are answered with a fault. NULL is fine. */
void http_names_free (struct http_names *n);

/* <addresses> as libcurl takes them, "192.0.2.1,[2001:db8::1]", or NULL with a static <fault>. Both
 * are valid during the call. */
typedef void http_names_fn (void *ctx, const char *addresses, const char *fault);
/* Calls <fn> once: now, when the answer is known, else from http_names_process. */
void http_names_find (struct http_names *n, const char *host, http_names_fn *fn, void *ctx);

/* To be polled for input, and how long at most (milliseconds) until http_names_process is due;
 * <max_ms> when nothing is open. */
int http_names_fd (const struct http_names *n);
int http_names_timeout_ms (struct http_names *n, int max_ms);
void http_names_process (struct http_names *n);

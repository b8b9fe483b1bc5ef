/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of `WWW-Authenticate`: which ways to show who one is a server offers, and their
 * parameters (RFC 9110 11.3).
 *
 * Always true: nothing is guessed; what is malformed is passed over, and a value has a bound.
 */
#pragma once

#include <stddef.h>

/* One parameter of a challenge; with a NULL name the start of the challenge itself. All borrowed,
 * valid during the call; <name_len> bytes of <name>. */
typedef void auth_challenge_fn (void *ctx, const char *scheme, size_t scheme_len, const char *name,
                                size_t name_len, const char *value);

/* Goes through every challenge in order; <header> may be NULL (none) and may join several lines
 * with commas. */
void auth_challenge_each (const char *header, auth_challenge_fn *take, void *ctx);

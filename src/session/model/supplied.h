/* SPDX-License-Identifier: Apache-2.0
 *
 * Secrets a controller supplies while the session runs (docs/spec/door.md 15): the names of
 * control.secrets and what each holds now.
 *
 * Thread-safe. Always true: a value lives in memory alone and is overwritten when it is replaced,
 * forgotten or the session ends; nothing says more of it than whether it is set.
 */
#pragma once

#include "base/secret.h"
#include "manifest/capsule/capsule.h"

struct supplied_secrets;

/* None of them set. The names are borrowed. */
struct supplied_secrets *supplied_secrets_new (const struct str_list *names);
void supplied_secrets_free (struct supplied_secrets *s);
DEFINE_CLEANUP (struct supplied_secrets, supplied_secrets_free)

/* True when only a controller supplies this secret. <s> may be NULL: none. */
bool supplied_secrets_owns (const struct supplied_secrets *s, const char *name);
/* What was supplied: a copy, or NULL while it is not set. */
struct secret *supplied_secrets_get (struct supplied_secrets *s, const char *name);
/* Puts a value (taken over; NULL: none) in its place; true when there was one. */
bool supplied_secrets_put (struct supplied_secrets *s, const char *name, struct secret *value);

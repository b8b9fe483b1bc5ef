/* SPDX-License-Identifier: Apache-2.0
 *
 * Which repository serves which scope, from the two configuration files. Internal to artifact/.
 *
 * Always true: one source a scope; `murmur` is always there and is always the default repository.
 */
#pragma once

#include "base/error.h"
#include "base/secret.h"

#include <stddef.h>

struct source {
    char *scope;
    char *owner, *repo;   /* as configured */
    struct secret *token; /* its own, else GITHUB_TOKEN, else NULL */
};

struct source_list {
    struct source *items;
    size_t len;
};

/* E-CFG-003 for an unusable `registry:`, E-IO-003, E-IO-004. */
struct source_list *source_list_load (struct mur_error **err);
void source_list_free (struct source_list *l);
/* GITHUB_TOKEN trimmed, or NULL. Owned. */
struct secret *source_default_token (void);

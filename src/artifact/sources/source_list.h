/* SPDX-License-Identifier: Apache-2.0
 *
 * Which repository, or which place of a registry, serves which scope, from the two configuration
 * files. Internal to artifact/.
 *
 * Always true: one source a scope; `murmur` is always there and is always the default repository.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/secret.h"

#include <stddef.h>

struct source {
    char *scope;
    char *owner, *repo;   /* as configured; NULL for a registry's */
    char *oci;            /* "host/path" of a registry, below which an artifact's bare name is a
                             repository; NULL: a repository of GitHub */
    struct secret *token; /* its own, else GITHUB_TOKEN, else NULL */
};

struct source_list {
    struct source *items;
    size_t len;
    struct strv plain_http; /* registries spoken to in http */
};

/* E-CFG-003 for an unusable `registry:`, E-IO-003, E-IO-004. */
struct source_list *source_list_load (struct mur_error **err);
void source_list_free (struct source_list *l);
/* GITHUB_TOKEN trimmed, or NULL. Owned. */
struct secret *source_default_token (void);

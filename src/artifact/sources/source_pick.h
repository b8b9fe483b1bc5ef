/* SPDX-License-Identifier: Apache-2.0
 *
 * Which version of a name a source would deliver.
 *
 * Always true: the owner's numeric id is checked before an index is read, the index's scope before
 * a name is looked up.
 */
#pragma once

#include "artifact/sources/source.h"

/* What a source would deliver. */
struct source_pick {
    char *name, *version;
    char *release; /* tag */
    char *file;    /* its name, or what a registry calls it */
    char *sha256;
    char *platform;    /* NULL for an untagged payload */
    char *label;       /* "github:owner/repo", "oci://host/path" */
    char *runtime;     /* the index's role */
    bool has_owner_id; /* false when the owner was not asked, or a registry has none */
    uint64_t owner_id;
    char *source; /* "oci://host/repository@sha256:…", of its index or manifest; NULL: GitHub */
    char *manifest_digest; /* of a registry's: of the manifest, which signatures refer to */
    struct strv platforms; /* of a registry's index: "<platform> <hex SHA-256>" each */
    uint64_t size;         /* bytes, of a registry's */
};

void source_pick_clear (struct source_pick *p);
#define _cleanup_pick_ _cleanup_ (source_pick_clear)

/* Finds name@version (NULL: the newest that fits) for <platform> through the source of its scope.
 * <lock> may be NULL. In order: E-REG-001 (local, std), E-REG-008, E-REG-010, E-IDX-002, E-REG-009,
 * E-REG-001, E-WIT-LEVEL-001, E-REG-001; E-REG-006 whenever the source does not answer. */
bool remote_pick (struct remote *r, const struct lock *lock, const char *name, const char *version,
                  const char *platform, struct source_pick *out, struct mur_error **err);
/* The same from the index alone, the owner not asked (pulls): check it before remote_fetch. */
bool remote_pick_listed (struct remote *r, const char *name, const char *version,
                         const char *platform, struct source_pick *out, struct mur_error **err);

/* Sets the hint of an E-WIT-LEVEL-001: which version of <name> fits, or why none can be named. Asks
 * the index now. Always returns false. */
bool remote_hint_fit (struct remote *r, const char *name, struct mur_error **err);

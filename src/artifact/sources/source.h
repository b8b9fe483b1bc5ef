/* SPDX-License-Identifier: Apache-2.0
 *
 * Sources: the GitHub repositories artifacts come from, one repository a scope (spec/artifacts.md
 * 8).
 *
 * Callers: `mur install`, pulls of a running session, `mur search` (plain index fetch), hints of
 * refusals. Always true: the owner's numeric id is checked before an index is read, the index's
 * scope before a name is looked up, the hash before an archive is parsed; nothing is written; each
 * question is asked once for the life of a registry, also when several threads want it.
 */
#pragma once

#include "artifact/package/package.h"
#include "artifact/sources/index.h"
#include "artifact/store/lock.h"
#include "base/cancel.h"

struct remote;

/* Reads the configuration and prepares the sources; asks nothing yet. E-CFG-003, E-IO-003,
 * E-IO-004. */
struct remote *remote_new (struct mur_error **err);
void remote_free (struct remote *r);
DEFINE_CLEANUP (struct remote, remote_free)
#define _cleanup_remote_ _cleanup_ (remote_freep)
/* Raised, every request in flight is abandoned. Borrowed. */
void remote_set_cancel (struct remote *r, struct cancel *cancel);

/* What a source would deliver. */
struct source_pick {
    char *name, *version;
    char *release; /* tag */
    char *file;
    char *sha256;
    char *platform; /* NULL for an untagged payload */
    char *label;    /* "github:owner/repo" */
    char *runtime;  /* the index's role */
    uint64_t owner_id;
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
/* Downloads, verifies and opens it. E-REG-001, E-REG-002, E-REG-006, E-IO-003. */
struct package *
remote_fetch (struct remote *r, const struct source_pick *pick, struct mur_error **err);
/* The owner's numeric id of the scope's source, checked like remote_pick does first (E-REG-010).
 */
bool remote_check_owner (struct remote *r, const struct lock *lock, const char *scope,
                         uint64_t *owner_id, struct mur_error **err);
/* E-REG-010 when this owner id is not the one the scope has: the built-in one of `murmur`, else
 * every one <lock> records (may be NULL). */
bool registry_check_owner_id (const char *scope, uint64_t owner_id, const struct lock *lock,
                              struct mur_error **err);
/* The scopes that have a source, `murmur` among them; NULL after the last. Borrowed. */
const char *remote_scope (const struct remote *r, size_t i);
/* "github:<owner>/<repo>" of a scope that has a source. Owned. */
char *remote_label (const struct remote *r, const char *scope);
/* The index of a scope, owner unchecked (listings of a pull). Borrowed until remote_free.
 * E-REG-008, E-IDX-002, E-REG-009. */
const struct artifact_index *
remote_index (struct remote *r, const char *scope, struct mur_error **err);

/* Sets the hint of an E-WIT-LEVEL-001: which version of <name> fits, or why none can be named. Asks
 * the index now. Always returns false. */
bool remote_hint_fit (struct remote *r, const char *name, struct mur_error **err);

/* Every package of one release of a repository that need not be configured: `mur install
 * github:o/r@tag`. */
struct release_packages {
    struct package **items;
    size_t len;
    uint64_t owner_id;
};

void release_packages_clear (struct release_packages *p);
bool remote_fetch_release (struct remote *r, const struct lock *lock, const char *owner,
                           const char *repo, const char *scope, const char *tag,
                           struct release_packages *out, struct mur_error **err);

struct config; /* manifest/settings/config.h */
/* registry.index_url of the configuration, else the published index. Borrowed. */
const char *index_address (const struct config *c);
/* Fetches an index from an http(s) URL or reads it from a path. E-IO-003, E-IDX-002. */
struct artifact_index *index_load (const char *path_or_url, struct mur_error **err);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Sources: the GitHub repositories and the places of OCI registries artifacts come from, one a
 * scope (spec/artifacts.md 8).
 *
 * Always true: nothing is written; each question is asked once for the life of a registry, also
 * when several threads want it.
 */
#pragma once

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

/* What could not be answered is asked again; answers stay. With nothing being asked. */
void remote_forget_failures (struct remote *r);

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
/* "github:<owner>/<repo>" or "oci://<host>/<path>" of a scope that has a source. Owned. */
char *remote_label (const struct remote *r, const char *scope);
/* The index of a scope, owner unchecked (listings of a pull). Borrowed until remote_free.
 * E-REG-008, E-IDX-002, E-REG-009. */
const struct artifact_index *
remote_index (struct remote *r, const char *scope, struct mur_error **err);

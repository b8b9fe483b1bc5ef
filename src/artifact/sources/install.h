/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur install`: bring artifacts into a store and pin them (spec/artifacts.md 10).
 *
 * Always true: everything that can be refused without a store is refused before one is touched;
 * fetches run side by side, the lock is written once, by one thread, after them; one failure never
 * loses the pins of the successes.
 */
#pragma once

#include "artifact/names/name.h"
#include "artifact/sources/source.h"
#include "artifact/store/lock.h"
#include "artifact/store/store.h"

struct install {
    char *project_root; /* NULL with is_global */
    bool is_global;
    bool precompiles;
    struct stores *stores;
    struct lock *lock;       /* NULL with is_global */
    struct remote *registry; /* made when first needed */
};

/* Finds the project (E-IO-001 without one, unless global), reads the configuration and the lock.
 * Creates nothing. */
bool install_open (struct install *in, bool is_global, bool precompiles, struct mur_error **err);
void install_close (struct install *in);
#define _cleanup_install_ _cleanup_ (install_close)

/* Drops the pin of <name>, or (NULL) those of what comes with this mur in other bytes, from the
 * lock in memory, so that what is found now is pinned. E-IO-003. */
bool install_unpin (struct install *in, const char *name, struct mur_error **err);
/* One reference: a file, a release, a package of a registry, a name with or without a version. */
bool install_ref_run (struct install *in, const struct install_ref *ref, struct mur_error **err);
/* Payloads of every platform of one name@version into the global store. */
bool
install_all_platforms (struct install *in, const struct install_ref *ref, struct mur_error **err);

/* --- shared by the halves (internal) --- */

/* A package on its way into a store and the lock. */
struct install_item {
    char *name, *version; /* full name */
    struct package *package;
    char *platform;      /* of the file; NULL: untagged */
    bool comes_with_mur; /* it lies in the bundled store */
    bool has_owner_id;
    uint64_t owner_id;
    char *source;          /* of a registry; NULL: none */
    struct strv platforms; /* of a registry: "<platform> <hex SHA-256>" of all there are */
    char *signer;          /* once trust was checked: as murmur.lock names it; NULL: none */
};

void install_item_clear (struct install_item *item);
/* The store new payloads go to. */
const struct store *install_target (const struct install *in);
bool install_need_registry (struct install *in, struct mur_error **err);
/* Opens a payload found in a store: hash, zip. The owner id comes from its sidecar. */
bool install_from_payload (const struct store_payload *payload, const char *name,
                           const char *version, struct install_item *item, struct mur_error **err);
/* Fetches what was picked. */
struct source_pick;
bool install_from_pick (struct install *in, const struct source_pick *pick,
                        struct install_item *item, struct mur_error **err);
/* E-WIT-LEVEL-001 with its hint. */
bool install_check_fit (struct install *in, struct install_item *item, struct mur_error **err);
/* E-REG-010 for a stored payload whose sidecar records another owner. */
bool install_check_owner (const struct install *in, const struct install_item *item,
                          struct mur_error **err);
/* Finds its signer. E-TRU-001..004 when the user's policy wants it signed otherwise. */
bool
install_check_trust (const struct install *in, struct install_item *item, struct mur_error **err);
/* Checks that, then stores into the target. *path owned, may be NULL. */
bool install_store (const struct install *in, struct install_item *item, char **path,
                    struct mur_error **err);
/* The pin an item calls for; strings borrowed from it. */
struct lock_pin install_pin_of (const struct install_item *item);
/* Pins in memory and says so when a runtime pin was adopted. */
void install_pin (struct install *in, const struct install_item *item);
/* Compiles what a launch here would; best effort. */
void install_precompile (const struct install *in, struct install_item *const *items, size_t count);

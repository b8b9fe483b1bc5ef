/* SPDX-License-Identifier: Apache-2.0
 *
 * murmur.lock, version 3: which bytes a project runs (spec/artifacts.md 7).
 *
 * Always true: a file that breaks any rule is refused whole (E-RUN-003) and left as it is; a write
 * is validated first and replaces the file in one rename; entries keep their order and everything
 * this code did not mean to change.
 */
#pragma once

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"

#include <stdint.h>

#define LOCK_VERSION   3
#define LOCK_FILE_NAME "murmur.lock"

enum lock_origin {
    LOCK_OPERATOR,
    LOCK_RUNTIME,
};

struct lock_platform {
    char *platform;
    char *sha256;
};

struct lock_entry {
    char *name;
    char *version;
    char *any;                       /* sha256.any, or NULL when per platform */
    struct lock_platform *platforms; /* sorted by tag */
    size_t platform_count;
    enum lock_origin origin;
    char *session; /* with LOCK_RUNTIME */
    bool has_owner_id;
    uint64_t owner_id;
    char *source; /* "oci://host/repository[@sha256:…]" it was fetched from; NULL: none of these */
    char *signer; /* "ed25519:<64 hex>", the key that was seen to have signed it; NULL: none */
};

struct lock {
    char *path;
    bool exists; /* the file was there */
    char *base;  /* its text when it was read or last written; NULL: there was none */
    struct lock_entry *entries;
    size_t count, cap;
};

/* The same over bytes (tests, fuzzing). */
struct lock *lock_parse (const char *text, size_t len, const char *path, struct mur_error **err);
void lock_free (struct lock *l);
DEFINE_CLEANUP (struct lock, lock_free)
#define _cleanup_lock_ _cleanup_ (lock_freep)
/* The text lock_write would write; one entry of it. Owned. */
char *lock_text (const struct lock *l);
char *lock_entry_text (const struct lock_entry *e);

/* Every entry by the rules of one entry; E-RUN-003 names the first that breaks one. */
bool lock_check (const struct lock *l, struct mur_error **err);

struct lock_entry *lock_find (const struct lock *l, const char *name);
/* The entry's hash for this platform tag: `any`, or that platform's; NULL when it has none for it.
 * Borrowed. */
const char *lock_entry_hash (const struct lock_entry *e, const char *platform);
/* "darwin-aarch64, linux-x86_64". Owned. */
char *lock_entry_platforms (const struct lock_entry *e);

struct lock_pin {
    const char *name;
    const char *version;
    const char *sha256;
    const char *platform;         /* NULL: any */
    const struct strv *platforms; /* "<platform> <hex SHA-256>" of others; may be NULL */
    enum lock_origin origin;
    const char *session; /* with LOCK_RUNTIME */
    bool has_owner_id;
    uint64_t owner_id;
    const char *source; /* NULL: not from a registry */
    const char *signer; /* NULL: no key that is known here */
};

/* Adds or replaces one entry by the pinning rules. *adopted_session (owned, may be NULL) is set
 * when an operator pin took over a runtime one. */
void lock_pin (struct lock *l, const struct lock_pin *pin, char **adopted_session);
/* E-REG-005 naming entry, pinned and resolved values when the pin contradicts the lock. */
bool lock_check_conflict (const struct lock *l, const struct lock_pin *pin, struct mur_error **err);
/* Drops one entry; returns false when there was none. */
bool lock_drop (struct lock *l, const char *name);
/* E-REG-010 when some entry of <scope> records another owner id. */
bool lock_check_owner (const struct lock *l, const char *scope, uint64_t owner_id,
                       struct mur_error **err);
/* E-REG-010 when some entry of <scope> came from an account, or from a registry's place other than
 * <place> ("oci://host/path"). */
bool lock_check_place (const struct lock *l, const char *scope, const char *place,
                       struct mur_error **err);

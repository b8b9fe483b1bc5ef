/* SPDX-License-Identifier: Apache-2.0
 *
 * Verified resolution for a launch.
 */
#include "artifact/store/resolve.h"

#include "artifact/names/name.h"
#include "artifact/names/platform.h"
#include "artifact/store/store_near.h"
#include "base/alloc.h"
#include "manifest/settings/artifact_manifest.h"

#include <string.h>

void
resolved_free (struct resolved *r)
{
    if (r->package)
        package_free (r->package);
    store_payload_clear (&r->payload);
    free (r->name);
    free (r->version);
    free (r->platform);
    free (r->session);
    free (r->signer);
    free (r);
}

/* --- what the lock says --- */

static bool
has_lock (const struct lock *lock)
{
    return lock && lock->exists;
}

/* The entry's hash for this host. A per-platform map is never answered from anything but this
 * host's own key. */
static const char *
expected_hash (const struct lock_entry *e, struct mur_error **err)
{
    const char *hash = lock_entry_hash (e, platform_host ());
    if (hash)
        return hash;
    _cleanup_free_ char *pinned = lock_entry_platforms (e);
    mur_fail (err, E_RUN_003, "%s@%s is pinned for %s but not for this host (%s)", e->name,
              e->version, pinned, platform_host ());
    mur_hint (err, "run `mur install` here to add this platform to murmur.lock");
    return NULL;
}

static const struct lock_entry *
locked_entry (const struct lock *lock, const char *name, struct mur_error **err)
{
    const struct lock_entry *e = lock_find (lock, name);
    if (! e) {
        mur_fail (err, E_RUN_003, "%s is declared but has no entry in %s", name, lock->path);
        mur_hint (err, "run `mur install`");
    }
    return e;
}

/* A pin a session wrote for itself may not become a hook, a driver, a key holder or the system
 * prompt. */
static bool
check_origin (const struct lock_entry *e, const struct resolve_use *use, struct mur_error **err)
{
    if (e->origin != LOCK_RUNTIME || ! use || use->is_plain)
        return true;
    mur_fail (
        err, E_RUN_043,
        "%s@%s was pulled by session %s while it ran and may be declared only as a plain tool "
        "or skill, not as %s",
        e->name, e->version, e->session, use->use_name ? use->use_name : "this");
    return mur_hint (err, "adopt it with `mur install %s@%s` when you trust it", e->name,
                     e->version);
}

static bool
check_locked_hash (const struct resolved *r, const char *expected, struct mur_error **err)
{
    if (strcmp (r->package->sha256, expected) == 0)
        return true;
    mur_fail (err, E_REG_002, "%s@%s: murmur.lock pins sha256 %s but the %s store holds %s",
              r->name, r->version, expected, store_kind_name (r->payload.kind), r->package->sha256);
    if (r->payload.kind == STORE_BUNDLED)
        return mur_hint (err, "it comes with mur, and another build of mur pinned it: `mur install "
                              "--update` pins what this one brings");
    return mur_hint (err,
                     "`mur install` fetches the pinned bytes where a source has them; when the "
                     "change is meant, `mur install --update %s` pins these",
                     r->name);
}

/* --- one artifact --- */

/* Judges the signature that came with the package, and finds its signer. */
static bool
check_trust (struct resolved *r, const struct stores *stores, struct mur_error **err)
{
    const char *signature = r->package->signature;
    const struct trust_subject of = { r->name, r->version, r->package->sha256,
                                      r->payload.kind == STORE_BUNDLED };
    r->signer = trust_policy_signer (stores->trust, &of, signature);
    return trust_policy_check (stores->trust, &of, signature, err);
}

/* What a name stands for. One of scope std is what comes with mur, whatever another store holds
 * under it, but for other bytes that the lock pins: a checkout brings a store along, too. */
static enum store_found
find_meant (const struct stores *stores, const char *name, const char *version,
            const char *expected, struct store_payload *out, struct mur_error **err)
{
    enum store_found found = stores_find (stores, name, version, NULL, out, err);
    if (found != STORE_FOUND || out->kind == STORE_BUNDLED ||
        ! name_has_scope (name, SCOPE_BUNDLED))
        return found;
    _cleanup_payload_ struct store_payload own = { 0 };
    found = store_find (&stores->at[STORE_BUNDLED], name, version, NULL, &own, err);
    if (found == STORE_FAILED)
        return found;
    bool is_own = found == STORE_FOUND && strcmp (own.sha256, out->sha256) != 0 &&
                  (! expected || strcmp (own.sha256, expected) == 0);
    if (is_own) {
        store_payload_clear (out);
        *out = own;
        own = (struct store_payload){ 0 };
    }
    return STORE_FOUND;
}

static bool
find_and_open (struct resolved *r, const struct stores *stores, const char *expected,
               const char *head_entry, struct mur_error **err)
{
    enum store_found found = find_meant (stores, r->name, r->version, expected, &r->payload, err);
    if (found == STORE_FAILED)
        return false;
    if (found == STORE_NOT_FOUND) {
        mur_fail (err, E_REG_001, "%s@%s is in no store of this project or user", r->name,
                  r->version);
        return mur_hint (err, "run `mur install %s@%s`", r->name, r->version);
    }
    r->package = head_entry ? store_read_head (&r->payload, r->name, r->version, head_entry, err)
                            : store_read (&r->payload, r->name, r->version, err);
    if (! r->package || (expected && ! check_locked_hash (r, expected, err)) ||
        ! check_trust (r, stores, err) || ! package_open_zip (r->package, err))
        return false;
    r->is_native = r->package->manifest->packaging == PACKAGING_NATIVE;
    r->is_untagged_native = r->is_native && ! r->payload.platform;
    if (r->is_native)
        r->platform = x_strdup (platform_host ());
    return true;
}

struct resolved *
artifact_resolve (const struct stores *stores, const struct lock *lock, const char *name,
                  const char *version, const struct resolve_use *use, struct mur_error **err)
{
    _cleanup_resolved_ struct resolved *r = x_new0 (struct resolved);
    const char *expected = NULL;
    r->name = x_strdup (name);
    if (has_lock (lock)) {
        const struct lock_entry *e = locked_entry (lock, name, err);
        if (! e)
            return NULL;
        r->version = x_strdup (e->version);
        r->origin = e->origin;
        r->session = e->session ? x_strdup (e->session) : NULL;
        expected = expected_hash (e, err);
        if (! expected || ! check_origin (e, use, err))
            return NULL;
    } else {
        r->version = x_strdup (version);
    }
    return find_and_open (r, stores, expected, use ? use->head_entry : NULL, err) ? steal_ptr (&r)
                                                                                  : NULL;
}

/* --- all of a manifest --- */

static bool
refuse_missing (const struct stores *stores, const struct strv *missing, struct mur_error **err)
{
    const char *first = missing->items[0], *at = strchr (first, '@');
    _cleanup_free_ char *name = x_strndup (first, (size_t)(at - first));
    _cleanup_free_ char *near = store_near_hint (stores, name, at + 1);
    _cleanup_free_ char *list = strv_join (missing, ", ");
    mur_fail (err, E_RUN_008, "not installed: %s", list);
    if (near)
        return mur_hint (err, "%s", near);
    if (missing->len == 1)
        return mur_hint (err, "run `mur install` or `mur install %s`", missing->items[0]);
    return mur_hint (err, "run `mur install`");
}

bool
artifacts_check_present (const struct stores *stores, const struct lock *lock,
                         const char *const *names, const char *const *versions,
                         const struct resolve_use *uses, size_t count, struct mur_error **err)
{
    const struct lock_entry *entry = NULL;
    for (size_t i = 0; has_lock (lock) && i < count; i++)
        if (! (entry = locked_entry (lock, names[i], err)) || ! expected_hash (entry, err) ||
            ! check_origin (entry, &uses[i], err))
            return false;
    _cleanup_strv_ struct strv missing = { 0 };
    for (size_t i = 0; i < count; i++) {
        const char *version = versions[i];
        if (has_lock (lock))
            version = lock_find (lock, names[i])->version;
        _cleanup_payload_ struct store_payload payload = { 0 };
        enum store_found found = stores_find (stores, names[i], version, NULL, &payload, err);
        if (found == STORE_FAILED)
            return false;
        if (found == STORE_NOT_FOUND)
            strv_printf (&missing, "%s@%s", names[i], version);
    }
    return missing.len == 0 || refuse_missing (stores, &missing, err);
}

void
resolved_pin (const struct resolved *r, struct lock *lock)
{
    struct lock_pin pin = {
        .name = r->name,
        .version = r->version,
        .sha256 = r->package->sha256,
        .platform = r->platform,
        .origin = LOCK_OPERATOR,
        .signer = r->signer,
    };
    lock_pin (lock, &pin, NULL);
}

/* --- a capsule by name --- */

struct resolved *
capsule_resolve (const struct stores *stores, const char *name, const char *version,
                 const char *expected_sha256, struct mur_error **err)
{
    if (! name_check_full (name, E_REG_007, NULL, err))
        return NULL;
    _cleanup_resolved_ struct resolved *r = x_new0 (struct resolved);
    r->name = x_strdup (name);
    r->version = x_strdup (version);
    enum store_found found = stores_find (stores, name, version, NULL, &r->payload, err);
    if (found == STORE_FAILED)
        return NULL;
    if (found == STORE_NOT_FOUND) {
        mur_fail (err, E_RUN_008, "capsule %s@%s is not installed", name, version);
        if (name_has_scope (name, SCOPE_LOCAL))
            mur_hint (err, "run `mur build` and `mur publish` in the folder of its project");
        else
            mur_hint (err, "run `mur install -g %s@%s`", name, version);
        return NULL;
    }
    r->package = store_read (&r->payload, name, version, err);
    if (! r->package)
        return NULL;
    if (expected_sha256 && strcmp (expected_sha256, r->package->sha256) != 0)
        return mur_fail (err, E_RUN_047, "capsule %s@%s: its bytes hash to %s but %s was admitted",
                         name, version, r->package->sha256, expected_sha256),
               NULL;
    return check_trust (r, stores, err) && package_open_zip (r->package, err) ? steal_ptr (&r)
                                                                              : NULL;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Installing one reference. All of a manifest: install_manifest.c.
 */
#include "artifact/sources/install.h"
#include "artifact/names/version.h"
#include "artifact/store/store_meta.h"
#include "artifact/store/store_write.h"

#include "artifact/names/platform.h"
#include "artifact/package/precompile.h"
#include "artifact/sources/source_fetch.h"
#include "artifact/sources/source_oci.h"
#include "artifact/sources/source_pick.h"
#include "artifact/store/lock_file.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "home/paths.h"
#include "manifest/settings/artifact_manifest.h"
#include "manifest/settings/config.h"

#include <string.h>

/* --- opening --- */

bool
install_open (struct install *in, bool is_global, bool precompiles, struct mur_error **err)
{
    *in = (struct install){ .is_global = is_global, .precompiles = precompiles };
    _cleanup_config_ struct config *config = config_load (err);
    if (! config)
        return false;
    if (! is_global) {
        in->project_root = project_root_find (".");
        if (! in->project_root) {
            mur_fail (err, E_IO_001, "no murmur.yaml in this folder or above it");
            return mur_hint (err, "run it inside a project, or add -g for the global store");
        }
        in->lock = lock_read (in->project_root, err);
        if (! in->lock)
            return false;
    }
    in->stores = stores_new (in->project_root, err);
    return in->stores != NULL;
}

/* True when this mur brings that version in other bytes than are pinned. */
static bool
is_bundled_anew (const struct install *in, const struct lock_entry *e)
{
    _cleanup_payload_ struct store_payload own = { 0 };
    return name_has_scope (e->name, SCOPE_BUNDLED) &&
           store_find (&in->stores->at[STORE_BUNDLED], e->name, e->version, NULL, &own, NULL) ==
               STORE_FOUND &&
           ! (e->any && str_eq (own.sha256, e->any));
}

bool
install_unpin (struct install *in, const char *name, struct mur_error **err)
{
    if (! in->lock)
        return mur_fail (err, E_IO_003,
                         "--update changes murmur.lock, and there is none to change");
    for (size_t i = in->lock->count; i-- > 0;) {
        const struct lock_entry *e = &in->lock->entries[i];
        if (name ? ! str_eq (e->name, name) : ! is_bundled_anew (in, e))
            continue;
        diag_note ("%s: murmur.lock pinned %s (sha256 %.12s); what is found now is pinned instead",
                   e->name, e->version, e->any ? e->any : "of each platform");
        _cleanup_free_ char *dropped = x_strdup (e->name);
        lock_drop (in->lock, dropped);
    }
    return true;
}

void
install_close (struct install *in)
{
    free (in->project_root);
    if (in->stores)
        stores_free (in->stores);
    if (in->lock)
        lock_free (in->lock);
    if (in->registry)
        remote_free (in->registry);
    *in = (struct install){ 0 };
}

void
install_item_clear (struct install_item *item)
{
    free (item->name);
    free (item->version);
    free (item->platform);
    free (item->source);
    free (item->signer);
    strv_free (&item->platforms);
    if (item->package)
        package_free (item->package);
    *item = (struct install_item){ 0 };
}
#define _cleanup_item_ _cleanup_ (install_item_clear)

const struct store *
install_target (const struct install *in)
{
    return &in->stores->at[in->is_global ? STORE_GLOBAL : STORE_PROJECT];
}

bool
install_need_registry (struct install *in, struct mur_error **err)
{
    if (! in->registry)
        in->registry = remote_new (err);
    return in->registry != NULL;
}

/* --- steps --- */

static bool
is_native (const struct install_item *item)
{
    return item->package->manifest->packaging == PACKAGING_NATIVE;
}

bool
install_from_payload (const struct store_payload *payload, const char *name, const char *version,
                      struct install_item *item, struct mur_error **err)
{
    *item = (struct install_item){
        .name = x_strdup (name),
        .version = x_strdup (version),
        .platform = payload->platform ? x_strdup (payload->platform) : NULL,
        .comes_with_mur = payload->kind == STORE_BUNDLED,
    };
    item->package = store_read (payload, name, version, err);
    if (! item->package || ! package_open_zip (item->package, err))
        return false;
    struct store_meta meta;
    if (store_meta_read (payload, name, version, &meta, NULL)) {
        item->has_owner_id = meta.has_owner_id;
        item->owner_id = meta.owner_id;
    }
    store_meta_clear (&meta);
    return true;
}

bool
install_check_fit (struct install *in, struct install_item *item, struct mur_error **err)
{
    _cleanup_contracts_ struct wit_contracts contracts = { 0 };
    _cleanup_misfits_ struct wit_misfits misfits = { 0 };
    package_contracts (item->package, &contracts, NULL);
    if (wit_fits (&contracts, wit_served_level (), &misfits))
        return true;
    wit_refuse (item->name, item->version, &misfits, err);
    if (install_need_registry (in, NULL))
        remote_hint_fit (in->registry, item->name, err);
    return false;
}

bool
install_check_owner (const struct install *in, const struct install_item *item,
                     struct mur_error **err)
{
    if (! item->has_owner_id)
        return true;
    _cleanup_free_ char *scope = name_scope (item->name);
    return registry_check_owner_id (scope, item->owner_id, in->lock, err);
}

bool
install_check_trust (const struct install *in, struct install_item *item, struct mur_error **err)
{
    const struct trust_subject of = { item->name, item->version, item->package->sha256,
                                      item->comes_with_mur };
    free (item->signer);
    item->signer = trust_policy_signer (in->stores->trust, &of, item->package->signature);
    return trust_policy_check (in->stores->trust, &of, item->package->signature, err);
}

bool
install_store (const struct install *in, struct install_item *item, char **path,
               struct mur_error **err)
{
    struct store_write w = {
        .name = item->name,
        .version = item->version,
        .platform = item->platform,
        .has_owner_id = item->has_owner_id,
        .owner_id = item->owner_id,
        .overwrite = STORE_INSTALL,
    };
    return install_check_trust (in, item, err) &&
           store_put (install_target (in), item->package, &w, path, err);
}

struct lock_pin
install_pin_of (const struct install_item *item)
{
    struct lock_pin pin = {
        .name = item->name,
        .version = item->version,
        .sha256 = item->package->sha256,
        .origin = LOCK_OPERATOR,
        .has_owner_id = item->has_owner_id,
        .owner_id = item->owner_id,
    };
    pin.source = item->source;
    pin.signer = item->signer;
    pin.platforms = &item->platforms;
    if (is_native (item))
        pin.platform = item->platform ? item->platform : platform_host ();
    return pin;
}

/* A new version that another key signed than the pinned one, or none that is known here. */
static void
tell_other_signer (const struct lock *lock, const struct install_item *item)
{
    const struct lock_entry *e = lock_find (lock, item->name);
    if (e && e->signer && ! str_eq (e->signer, item->signer))
        diag_plain_warning ("%s@%s was signed by the key %s; %s is %s%s", e->name, e->version,
                            e->signer, item->version,
                            item->signer ? "signed by " : "signed by no key that is trusted here",
                            item->signer ? item->signer : "");
}

void
install_pin (struct install *in, const struct install_item *item)
{
    tell_other_signer (in->lock, item);
    struct lock_pin pin = install_pin_of (item);
    _cleanup_free_ char *session = NULL;
    lock_pin (in->lock, &pin, &session);
    if (session)
        out_printf ("Adopted %s@%s, pulled by session %s\n", item->name, item->version, session);
}

static bool
pin_and_write (struct install *in, const struct install_item *item, struct mur_error **err)
{
    if (in->is_global)
        return true;
    install_pin (in, item);
    return lock_write (in->lock, err);
}

void
install_precompile (const struct install *in, struct install_item *const *items, size_t count)
{
    if (! in->precompiles)
        return;
    _cleanup_free_ char *murmur_dir = home_path (NULL);
    if (! murmur_dir)
        return;
    _cleanup_precompiler_ struct precompiler c = {
        .spec = { .murmur_dir = murmur_dir, .ceiling_bytes = zip_ceiling () },
    };
    for (size_t i = 0; i < count; i++)
        precompile_package (&c, items[i]->package, NULL);
}

static void
precompile_one (const struct install *in, struct install_item *item)
{
    install_precompile (in, &item, 1);
}

/* --- s/n@v and s/n --- */

static void
say_stored (const struct install_item *item, const char *note, const char *path)
{
    _cleanup_free_ char *shown = path_with_tilde (path);
    out_printf ("Installed %s@%s%s → %s\n", item->name, item->version, note, shown);
}

/* A payload of the global or the bundled store. The bundled one is pinned where it lies. */
static bool
install_stored (struct install *in, const struct store_payload *payload, struct install_item *item,
                struct mur_error **err)
{
    if (! install_check_fit (in, item, err) || ! install_check_owner (in, item, err) ||
        ! install_check_trust (in, item, err))
        return false;
    struct lock_pin pin = install_pin_of (item);
    if (in->lock && ! lock_check_conflict (in->lock, &pin, err))
        return false;
    _cleanup_free_ char *path = x_strdup (payload->path);
    bool is_there = payload->kind == STORE_BUNDLED || in->is_global;
    if (! is_there) {
        free (path);
        path = NULL;
        if (! install_store (in, item, &path, err))
            return false;
    }
    if (! pin_and_write (in, item, err))
        return false;
    say_stored (item, "", path);
    precompile_one (in, item);
    return true;
}

bool
install_from_pick (struct install *in, const struct source_pick *pick, struct install_item *item,
                   struct mur_error **err)
{
    *item = (struct install_item){
        .name = x_strdup (pick->name),
        .version = x_strdup (pick->version),
        .platform = pick->platform ? x_strdup (pick->platform) : NULL,
        .has_owner_id = pick->has_owner_id,
        .owner_id = pick->owner_id,
        .source = pick->source ? x_strdup (pick->source) : NULL,
    };
    for (size_t i = 0; i < pick->platforms.len; i++)
        strv_push (&item->platforms, pick->platforms.items[i]);
    item->package = remote_fetch (in->registry, pick, err);
    return item->package != NULL;
}

static bool
take_picked (struct install *in, const struct source_pick *pick, struct mur_error **err)
{
    _cleanup_item_ struct install_item item = { 0 };
    if (! install_from_pick (in, pick, &item, err) || ! install_store (in, &item, NULL, err) ||
        ! pin_and_write (in, &item, err))
        return false;
    out_printf ("Installed %s@%s from %s\n", item.name, item.version, pick->label);
    precompile_one (in, &item);
    return true;
}

static bool
install_reference (struct install *in, const struct install_ref *ref, struct mur_error **err)
{
    _cleanup_pick_ struct source_pick pick = { 0 };
    return install_need_registry (in, err) &&
           source_oci_pick_ref (in->registry, in->lock, ref->path, platform_host (), &pick, err) &&
           take_picked (in, &pick, err);
}

static bool
install_from_source (struct install *in, const struct install_ref *ref, struct mur_error **err)
{
    _cleanup_pick_ struct source_pick pick = { 0 };
    return install_need_registry (in, err) &&
           remote_pick (in->registry, in->lock, ref->name, ref->version, platform_host (), &pick,
                        err) &&
           take_picked (in, &pick, err);
}

static bool
install_named (struct install *in, const struct install_ref *ref, struct mur_error **err)
{
    static const enum store_kind kinds[] = { STORE_GLOBAL, STORE_BUNDLED };
    for (size_t i = 0; ref->version && i < ARRAY_LEN (kinds); i++) {
        _cleanup_payload_ struct store_payload payload = { 0 };
        _cleanup_item_ struct install_item item = { 0 };
        enum store_found found =
            store_find (&in->stores->at[kinds[i]], ref->name, ref->version, NULL, &payload, err);
        if (found == STORE_NOT_FOUND)
            continue;
        return found == STORE_FOUND &&
               install_from_payload (&payload, ref->name, ref->version, &item, err) &&
               install_stored (in, &payload, &item, err);
    }
    return install_from_source (in, ref, err);
}

/* --- files and releases --- */

/* The tag a native payload is filed under: the one of its file name, else this host's. */
static bool
choose_platform (struct install_item *item, const char *file, bool *is_guessed,
                 struct mur_error **err)
{
    *is_guessed = false;
    if (! is_native (item))
        return true;
    const char *slash = strrchr (file, '/');
    const char *tag = platform_of_file (slash ? slash + 1 : file);
    if (! tag) {
        tag = platform_host ();
        *is_guessed = true;
    }
    if (strcmp (tag, "unknown") == 0)
        return mur_fail (err, E_IO_003,
                         "%s: this host is none of the known platforms; name the file "
                         "<name>-<version>-<platform>.mur.zip",
                         file);
    item->platform = x_strdup (tag);
    return true;
}

static bool
name_item (struct install_item *item, const char *scope, struct mur_error **err)
{
    const struct artifact_manifest *m = item->package->manifest;
    item->name = x_asprintf ("%s/%s", scope, m->name);
    item->version = x_strdup (m->version);
    return name_check_full (item->name, E_REG_007, NULL, err) &&
           version_check_segment (item->version, err);
}

static bool
install_file (struct install *in, const struct install_ref *ref, struct mur_error **err)
{
    _cleanup_item_ struct install_item item = { 0 };
    bool is_guessed;
    item.package = package_from_file (ref->path, err);
    if (! item.package || ! package_open_zip (item.package, err) ||
        ! name_item (&item, SCOPE_LOCAL, err) ||
        ! choose_platform (&item, ref->path, &is_guessed, err) ||
        ! install_store (in, &item, NULL, err))
        return false;
    if (is_guessed)
        out_printf ("Platform: %s (auto-detected)\n", item.platform);
    if (! pin_and_write (in, &item, err))
        return false;
    out_printf ("Installed %s@%s from %s\n", item.name, item.version, ref->path);
    if (! item.platform || strcmp (item.platform, platform_host ()) == 0)
        precompile_one (in, &item);
    return true;
}

static bool
prepare_release (const struct install_ref *ref, struct release_packages *packages,
                 struct install_item *items, struct mur_error **err)
{
    for (size_t i = 0; i < packages->len; i++) {
        struct install_item *item = &items[i];
        bool is_guessed;
        item->package = steal_ptr (&packages->items[i]);
        item->has_owner_id = true;
        item->owner_id = packages->owner_id;
        if (! name_item (item, ref->scope, err) ||
            ! choose_platform (item, item->package->label, &is_guessed, err))
            return false;
    }
    return true;
}

static bool
store_release (struct install *in, const struct install_ref *ref, struct install_item *items,
               size_t count, struct mur_error **err)
{
    for (size_t i = 0; i < count; i++) {
        if (! install_store (in, &items[i], NULL, err) || ! pin_and_write (in, &items[i], err))
            return false;
        out_printf ("Installed %s@%s from github:%s/%s\n", items[i].name, items[i].version,
                    ref->owner, ref->repo);
    }
    for (size_t i = 0; i < count; i++)
        if (! items[i].platform || strcmp (items[i].platform, platform_host ()) == 0)
            precompile_one (in, &items[i]);
    return true;
}

static bool
install_release (struct install *in, const struct install_ref *ref, struct mur_error **err)
{
    struct release_packages packages;
    if (! install_need_registry (in, err) ||
        ! remote_fetch_release (in->registry, in->lock, ref->owner, ref->repo, ref->scope, ref->tag,
                                &packages, err))
        return false;
    size_t count = packages.len;
    struct install_item *items = x_new_array (struct install_item, count);
    bool ok =
        prepare_release (ref, &packages, items, err) && store_release (in, ref, items, count, err);
    for (size_t i = 0; i < count; i++) {
        install_item_clear (&items[i]);
        if (packages.items[i])
            package_free (packages.items[i]);
    }
    free (items);
    free (packages.items);
    return ok;
}

bool
install_ref_run (struct install *in, const struct install_ref *ref, struct mur_error **err)
{
    switch (ref->kind) {
    case INSTALL_FILE:
        return install_file (in, ref, err);
    case INSTALL_GITHUB:
        return install_release (in, ref, err);
    case INSTALL_OCI:
        return install_reference (in, ref, err);
    case INSTALL_NAME:
        break;
    }
    return install_named (in, ref, err);
}

/* --- every platform --- */

static bool
install_for_platform (struct install *in, const struct install_ref *ref, const char *platform,
                      struct mur_error **err)
{
    _cleanup_pick_ struct source_pick pick = { 0 };
    _cleanup_item_ struct install_item item = { 0 };
    _cleanup_free_ char *path = NULL;
    if (! remote_pick (in->registry, NULL, ref->name, ref->version, platform, &pick, err) ||
        ! install_from_pick (in, &pick, &item, err) || ! install_store (in, &item, &path, err))
        return false;
    _cleanup_free_ char *note = x_asprintf (" (%s)", platform);
    say_stored (&item, note, path);
    return true;
}

bool
install_all_platforms (struct install *in, const struct install_ref *ref, struct mur_error **err)
{
    static const char *const platforms[] = { "linux-x86_64", "darwin-aarch64" };
    size_t installed = 0;
    if (! install_need_registry (in, err))
        return false;
    for (size_t i = 0; i < ARRAY_LEN (platforms); i++) {
        _cleanup_error_ struct mur_error *caught = NULL;
        if (install_for_platform (in, ref, platforms[i], &caught)) {
            installed++;
            continue;
        }
        bool is_last_chance = i + 1 == ARRAY_LEN (platforms) && installed == 0;
        if (caught->code != E_REG_001 || is_last_chance)
            return mur_propagate (err, steal_ptr (&caught));
        diag_plain_warning ("%s", caught->message);
    }
    return true;
}

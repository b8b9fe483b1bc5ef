/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/sources/source_oci.h"

#include "artifact/names/name.h"
#include "artifact/names/version.h"
#include "artifact/registry/oci_fetch.h"
#include "artifact/registry/oci_publish.h"
#include "artifact/registry/oci_signature.h"
#include "base/alloc.h"

#include <string.h>

#define NEWEST_MAX 20 /* versions looked at for one that fits */

/* --- what the lock says --- */

/* The entry of the very version that is wished for. */
static const struct lock_entry *
pinned_entry (const struct source_wish *wish)
{
    const struct lock_entry *e =
        wish->lock && wish->version ? lock_find (wish->lock, wish->name) : NULL;
    return e && str_eq (e->version, wish->version) ? e : NULL;
}

bool
source_is_pinned (struct remote *r, const struct source_wish *wish)
{
    const struct lock_entry *e = pinned_entry (wish);
    _cleanup_free_ char *scope = name_scope (wish->name);
    return e && e->source && ! remote_facts_of (r, scope);
}

/* The pinned reference of an entry. One that pins a single platform's manifest, or an index from
 * before this platform was published, leads nowhere here: then the tag of the version is asked, and
 * what is pinned of other platforms is compared. */
static bool
pinned_ref (const struct source_wish *wish, const struct lock_entry *e, struct oci_ref *ref,
            struct mur_error **err)
{
    if (! oci_ref_parse (e->source, ref, err))
        return false;
    if (ref->digest && e->platforms && ! lock_entry_hash (e, wish->platform)) {
        free (ref->digest);
        ref->digest = NULL;
    }
    if (! ref->digest && ! ref->tag)
        ref->tag = oci_version_tag (wish->version);
    return true;
}

static bool
check_pinned (const struct source_wish *wish, const char *platform, const char *sha256,
              struct mur_error **err)
{
    const struct lock_entry *e = pinned_entry (wish);
    const char *hash = e ? lock_entry_hash (e, platform) : NULL;
    if (! hash || str_eq (hash, sha256))
        return true;
    mur_fail (err, E_REG_005,
              "%s@%s: murmur.lock pins sha256 %s, and the registry has %s under this version now",
              wish->name, wish->version, hash, sha256);
    return mur_hint (err,
                     "a published version never changes: ask its publisher; when the change is "
                     "meant, remove the entry of %s from murmur.lock and install again",
                     wish->name);
}

static bool
check_pinned_bytes (const struct source_wish *wish, const struct oci_package *p,
                    struct mur_error **err)
{
    for (size_t i = 0; i < p->platforms.len; i++) {
        const char *text = p->platforms.items[i], *space = strchr (text, ' ');
        _cleanup_free_ char *platform = x_strndup (text, (size_t)(space - text));
        if (! check_pinned (wish, platform, space + 1, err))
            return false;
    }
    return check_pinned (wish, p->platform ? p->platform : wish->platform, p->layer_digest + 7,
                         err);
}

static bool
check_newer (const struct source_wish *wish, const char *newest, const char *place,
             struct mur_error **err)
{
    const struct lock_entry *e = wish->lock ? lock_find (wish->lock, wish->name) : NULL;
    if (! e || ! version_is_semver (e->version) || version_compare (newest, e->version) >= 0)
        return true;
    mur_fail (err, E_REG_014, "%s: the newest version at %s is %s, and murmur.lock pins %s",
              wish->name, place, newest, e->version);
    return mur_hint (err, "`mur install %s@%s` goes back when that is meant", wish->name, newest);
}

/* --- one version --- */

static bool
refuse_absent (const struct source_wish *wish, const struct oci_ref *ref, struct mur_error **err)
{
    _cleanup_free_ char *shown = oci_ref_text (ref);
    return mur_fail (err, E_REG_001, "%s%s%s: oci://%s is not there", wish->name,
                     wish->version ? "@" : "", wish->version ? wish->version : "", shown);
}

static bool
check_fit (const struct source_wish *wish, const char *version, const struct oci_package *p,
           struct mur_error **err)
{
    _cleanup_misfits_ struct wit_misfits misfits = { 0 };
    if (wit_names_fit (&p->interfaces, wit_served_level (), &misfits))
        return true;
    wit_refuse (wish->name, version, &misfits, err);
    return mur_hint (err, "`mur install %s` takes the newest version that fits", wish->name);
}

static void
fill (const struct source_wish *wish, const char *version, const struct oci_ref *ref,
      const struct oci_package *p, const char *label, struct source_pick *out)
{
    *out = (struct source_pick){
        .name = x_strdup (wish->name),
        .version = x_strdup (version),
        .file = oci_ref_text (ref),
        .sha256 = x_strdup (p->layer_digest + 7),
        .platform = p->platform ? x_strdup (p->platform) : NULL,
        .label = x_strdup (label),
        .runtime = x_strdup (p->runtime),
        .source = x_asprintf (OCI_SCHEME "%s/%s@%s", ref->host, ref->repository,
                              p->index_digest[0] ? p->index_digest : p->digest),
        .manifest_digest = x_strdup (p->digest),
        .size = p->size,
    };
    for (size_t i = 0; i < p->platforms.len; i++)
        strv_push (&out->platforms, p->platforms.items[i]);
}

/* The package of a reference for a wish of one version. */
static bool
pick_version (struct remote *r, const struct source_wish *wish, const struct oci_ref *ref,
              const char *label, struct source_pick *out, struct mur_error **err)
{
    _cleanup_oci_package_ struct oci_package p = { 0 };
    struct mur_error *caught = NULL;
    if (! oci_package_find (r->oci, ref, wish->platform, &p, &caught))
        return caught ? mur_propagate (err, caught) : refuse_absent (wish, ref, err);
    if (! check_fit (wish, wish->version, &p, err) || ! check_pinned_bytes (wish, &p, err))
        return false;
    fill (wish, wish->version, ref, &p, label, out);
    return true;
}

bool
source_oci_pick_pinned (struct remote *r, const struct source_wish *wish, struct source_pick *out,
                        struct mur_error **err)
{
    const struct lock_entry *e = pinned_entry (wish);
    _cleanup_oci_ref_ struct oci_ref ref = { 0 };
    if (! pinned_ref (wish, e, &ref, err))
        return mur_context (err, "%s: source of %s", wish->lock->path, e->name);
    _cleanup_free_ char *label = x_asprintf (OCI_SCHEME "%s/%s", ref.host, ref.repository);
    return pick_version (r, wish, &ref, label, out, err);
}

/* --- the newest --- */

static int
newest_first (const void *a, const void *b)
{
    return version_compare (*(char *const *)b, *(char *const *)a);
}

/* The versions among the tags, the newest first. */
static bool
list_versions (struct remote *r, const struct oci_ref *repository, struct strv *versions,
               struct mur_error **err)
{
    _cleanup_strv_ struct strv tags = { 0 };
    if (! oci_tags (r->oci, repository, &tags, err))
        return false;
    for (size_t i = 0; i < tags.len; i++) {
        char *plus = strchr (tags.items[i], '_');
        if (plus)
            *plus = '+';
        if (version_is_semver (tags.items[i]))
            strv_push (versions, tags.items[i]);
    }
    if (versions->len)
        qsort (versions->items, versions->len, sizeof *versions->items, newest_first);
    return true;
}

/* One candidate: picked; false without *err when it does not fit here, *why saying so. */
static bool
pick_candidate (struct remote *r, const struct source_wish *wish, const struct oci_ref *repository,
                const char *version, const char *label, struct source_pick *out,
                struct mur_error **why, struct mur_error **err)
{
    struct oci_ref ref = *repository;
    struct source_wish exact = *wish;
    _cleanup_free_ char *tag = oci_version_tag (version);
    struct mur_error *caught = NULL;
    ref.tag = tag;
    exact.version = version;
    if (pick_version (r, &exact, &ref, label, out, &caught))
        return true;
    bool is_unfit =
        caught->code == E_REG_001 || caught->code == E_WIT_LEVEL_001 || caught->code == E_REG_013;
    return mur_propagate (is_unfit ? why : err, caught);
}

static bool
pick_newest (struct remote *r, const struct source_wish *wish, const struct oci_ref *repository,
             const char *label, struct source_pick *out, struct mur_error **err)
{
    _cleanup_strv_ struct strv versions = { 0 };
    _cleanup_error_ struct mur_error *why = NULL;
    struct mur_error *caught = NULL;
    if (! list_versions (r, repository, &versions, err))
        return false;
    if (! versions.len)
        return mur_fail (err, E_REG_001, "%s: oci://%s/%s has no version of it", wish->name,
                         repository->host, repository->repository);
    for (size_t i = 0; i < versions.len && i < NEWEST_MAX; i++) {
        if (pick_candidate (r, wish, repository, versions.items[i], label, out, &why, &caught))
            return check_newer (wish, versions.items[i], label, err);
        if (caught)
            return mur_propagate (err, caught);
    }
    return mur_fail (err, E_REG_001, "no version of %s fits here; the newest is %s: %s", wish->name,
                     versions.items[0], why ? why->message : "it is not there");
}

bool
source_oci_pick (struct remote *r, const struct source *s, const struct source_wish *wish,
                 struct source_pick *out, struct mur_error **err)
{
    _cleanup_free_ char *label = source_label (s);
    _cleanup_free_ char *text = x_asprintf ("%s/%s", s->oci, name_bare (wish->name));
    _cleanup_oci_ref_ struct oci_ref ref = { 0 };
    const struct lock_entry *e = pinned_entry (wish);
    bool is_pinned = e && e->source && strchr (e->source, '@');
    if (! (is_pinned ? pinned_ref (wish, e, &ref, err) : oci_ref_parse (text, &ref, err)))
        return false;
    if (! wish->version)
        return pick_newest (r, wish, &ref, label, out, err);
    if (! is_pinned)
        ref.tag = oci_version_tag (wish->version);
    return pick_version (r, wish, &ref, label, out, err);
}

/* --- bytes --- */

struct package *
source_oci_fetch (struct remote *r, const struct source_pick *pick, struct mur_error **err)
{
    _cleanup_oci_ref_ struct oci_ref ref = { 0 };
    if (! oci_ref_parse (pick->source, &ref, err))
        return NULL;
    struct oci_package p = { .size = pick->size };
    snprintf (p.layer_digest, sizeof p.layer_digest, "sha256:%s", pick->sha256);
    _cleanup_package_ struct package *package =
        oci_package_fetch (r->oci, &ref, &p, pick->file, err);
    struct mur_error *caught = NULL;
    if (package)
        package->signature = oci_signature_get (r->oci, &ref, pick->manifest_digest, &caught);
    if (caught)
        return mur_propagate (err, caught), NULL;
    return steal_ptr (&package);
}

/* --- by reference --- */

/* The scope whose source's place this repository lies in, else `local`. Owned. */
static char *
scope_of_repository (const struct remote *r, const struct oci_ref *ref)
{
    _cleanup_free_ char *place = x_asprintf ("%s/%s", ref->host, ref->repository);
    char *slash = strrchr (place, '/');
    *slash = '\0';
    for (size_t i = 0; i < r->sources->len; i++)
        if (str_eq (r->sources->items[i].oci, place))
            return x_strdup (r->sources->items[i].scope);
    return x_strdup (SCOPE_LOCAL);
}

bool
source_oci_pick_ref (struct remote *r, const struct lock *lock, const char *text,
                     const char *platform, struct source_pick *out, struct mur_error **err)
{
    _cleanup_oci_ref_ struct oci_ref ref = { 0 };
    _cleanup_oci_package_ struct oci_package p = { 0 };
    struct mur_error *caught = NULL;
    *out = (struct source_pick){ 0 };
    if (! oci_ref_parse (text, &ref, err))
        return false;
    struct source_wish wish = { .name = text, .platform = platform, .lock = lock };
    if (! oci_package_find (r->oci, &ref, platform, &p, &caught))
        return caught ? mur_propagate (err, caught) : refuse_absent (&wish, &ref, err);
    if (! p.version || ! p.name)
        return mur_fail (err, E_REG_013, "%s: its manifest says no name and version", text);
    _cleanup_free_ char *scope = scope_of_repository (r, &ref);
    _cleanup_free_ char *name = x_asprintf ("%s/%s", scope, p.name);
    wish.name = name;
    wish.version = p.version;
    if (! name_check_full (name, E_REG_007, NULL, err) ||
        ! version_check_segment (p.version, err) || ! check_fit (&wish, p.version, &p, err) ||
        ! check_pinned_bytes (&wish, &p, err))
        return false;
    _cleanup_free_ char *own_tag = oci_version_tag (p.version);
    bool may_move = ! ref.digest && ! str_eq (ref.tag, own_tag);
    if (may_move && ! check_newer (&wish, p.version, text, err))
        return false;
    fill (&wish, p.version, &ref, &p, text, out);
    return true;
}

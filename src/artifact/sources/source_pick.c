/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/sources/source_pick.h"

#include "artifact/names/name.h"
#include "artifact/names/platform.h"
#include "artifact/sources/source_internal.h"
#include "artifact/sources/source_oci.h"
#include "base/alloc.h"

#include <string.h>

void
source_pick_clear (struct source_pick *p)
{
    free (p->name);
    free (p->version);
    free (p->release);
    free (p->file);
    free (p->sha256);
    free (p->platform);
    free (p->label);
    free (p->runtime);
    free (p->source);
    free (p->manifest_digest);
    strv_free (&p->platforms);
    *p = (struct source_pick){ 0 };
}

static char *
known_versions (const struct index_artifact *a)
{
    _cleanup_strv_ struct strv versions = { 0 };
    for (size_t i = 0; i < a->version_count; i++)
        strv_push (&versions, a->versions[i].version);
    return strv_join (&versions, ", ");
}

/* Why one version cannot be taken here. Owned. */
static char *
why_unfit (const struct index_version *v, const char *platform)
{
    _cleanup_misfits_ struct wit_misfits misfits = { 0 };
    if (! wit_names_fit (&v->interfaces, wit_served_level (), &misfits))
        return wit_misfits_text (&misfits);
    _cleanup_free_ char *published = index_platforms_text (v);
    return x_asprintf ("it is published for %s, not for %s", published, platform);
}

static const struct index_version *
pick_newest (const struct index_artifact *a, const char *name, const char *platform,
             struct mur_error **err)
{
    const struct index_version *v = index_newest_fit (a, platform);
    if (v)
        return v;
    _cleanup_free_ char *why = why_unfit (&a->versions[0], platform);
    mur_fail (err, E_REG_001, "no version of %s fits here; the newest is %s: %s", name,
              a->versions[0].version, why);
    return NULL;
}

static void
hint_fit (const struct index_artifact *a, const char *name, struct mur_error **err)
{
    const struct index_version *fitting = a ? index_newest_fit (a, platform_host ()) : NULL;
    if (fitting)
        mur_hint (err, "the newest version that fits is %s@%s", name, fitting->version);
    else
        mur_hint (err,
                  "no published version of %s fits WIT level %u; ask its publisher to rebuild it",
                  name, wit_served_level ());
}

static const struct index_version *
pick_given (const struct index_artifact *a, const char *name, const char *version,
            const char *platform, struct mur_error **err)
{
    const struct index_version *v = index_find_version (a, version);
    if (! v) {
        _cleanup_free_ char *known = known_versions (a);
        mur_fail (err, E_REG_001, "%s has no version %s; known: %s", name, version, known);
        return NULL;
    }
    _cleanup_misfits_ struct wit_misfits misfits = { 0 };
    if (! wit_names_fit (&v->interfaces, wit_served_level (), &misfits)) {
        wit_refuse (name, version, &misfits, err);
        hint_fit (a, name, err);
        return NULL;
    }
    if (index_asset_for (v, platform))
        return v;
    _cleanup_free_ char *published = index_platforms_text (v);
    mur_fail (err, E_REG_001, "%s@%s has no payload for %s; published: %s", name, version, platform,
              published);
    return NULL;
}

static void
fill_pick (const struct source_facts *f, const char *name, const struct index_artifact *a,
           const struct index_version *v, const char *platform, struct source_pick *out)
{
    const struct index_asset *asset = index_asset_for (v, platform);
    *out = (struct source_pick){
        .name = x_strdup (name),
        .version = x_strdup (v->version),
        .release = x_strdup (v->release),
        .file = x_strdup (asset->file),
        .sha256 = x_strdup (asset->sha256),
        .platform = asset->platform ? x_strdup (asset->platform) : NULL,
        .label = source_label (f->source),
        .runtime = x_strdup (a->runtime),
    };
}

static bool
pick_listed (struct remote *r, struct source_facts *f, const char *name, const char *version,
             const char *platform, struct source_pick *out, struct mur_error **err)
{
    const struct artifact_index *index = source_ask_index (&r->github, f, err);
    if (! index)
        return false;
    const struct index_artifact *a = index_find (index, name_bare (name));
    if (! a)
        return mur_fail (err, E_REG_001, "github:%s/%s does not list %s", f->source->owner,
                         f->source->repo, name);
    const struct index_version *v = version ? pick_given (a, name, version, platform, err)
                                            : pick_newest (a, name, platform, err);
    if (v)
        fill_pick (f, name, a, v, platform, out);
    return v != NULL;
}

bool
remote_pick (struct remote *r, const struct lock *lock, const char *name, const char *version,
             const char *platform, struct source_pick *out, struct mur_error **err)
{
    *out = (struct source_pick){ 0 };
    const struct source_wish wish = { name, version, platform, lock };
    if (source_is_pinned (r, &wish))
        return source_oci_pick_pinned (r, &wish, out, err);
    struct source_facts *f = remote_facts_for (r, name, version, err);
    if (! f)
        return false;
    uint64_t owner_id;
    if (! source_check_owner (r, f, lock, &owner_id, err))
        return false;
    if (f->source->oci)
        return source_oci_pick (r, f->source, &wish, out, err);
    if (! pick_listed (r, f, name, version, platform, out, err))
        return false;
    out->has_owner_id = true;
    out->owner_id = owner_id;
    return true;
}

bool
remote_pick_listed (struct remote *r, const char *name, const char *version, const char *platform,
                    struct source_pick *out, struct mur_error **err)
{
    *out = (struct source_pick){ 0 };
    struct source_facts *f = remote_facts_for (r, name, version, err);
    if (! f)
        return false;
    const struct source_wish wish = { name, version, platform, NULL };
    return f->source->oci ? source_oci_pick (r, f->source, &wish, out, err)
                          : pick_listed (r, f, name, version, platform, out, err);
}

bool
remote_hint_fit (struct remote *r, const char *name, struct mur_error **err)
{
    _cleanup_free_ char *scope = name_scope (name);
    if (strcmp (scope, SCOPE_LOCAL) == 0)
        return mur_hint (err, "%s came from a file; rebuild it for WIT level %u", name,
                         wit_served_level ());
    struct source_facts *f = remote_facts_of (r, scope);
    if (! f)
        return mur_hint (err, "no source serves the scope \"%s\", so no other version is known",
                         scope);
    if (f->source->oci)
        return mur_hint (err, "`mur install %s` takes the newest version that fits", name);
    _cleanup_error_ struct mur_error *caught = NULL;
    const struct artifact_index *index = source_ask_index (&r->github, f, &caught);
    if (! index)
        return mur_hint (err, "the index of scope \"%s\" could not be read: %s", scope,
                         caught->message);
    hint_fit (index_find (index, name_bare (name)), name, err);
    return false;
}

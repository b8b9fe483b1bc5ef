/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/sources/source_fetch.h"

#include "artifact/names/name.h"
#include "artifact/sources/source_internal.h"
#include "artifact/sources/source_oci.h"
#include "artifact/sources/source_pick.h"
#include "base/alloc.h"
#include "manifest/settings/artifact_manifest.h"

#include <ctype.h>
#include <string.h>

/* What does not open is reported as unreadable, whatever was wrong inside. */
static bool
open_fetched (struct package *p, const char *file, struct mur_error **err)
{
    _cleanup_error_ struct mur_error *caught = NULL;
    return package_open_zip (p, &caught) ||
           mur_fail (err, E_IO_003, "%s does not open as an artifact: %s", file, caught->message);
}

static bool
equals_trimmed (const char *text, const char *wanted)
{
    text += strspn (text, " \t\r\n");
    size_t len = strlen (text);
    while (len && isspace ((unsigned char)text[len - 1]))
        len--;
    return strlen (wanted) == len && memcmp (text, wanted, len) == 0;
}

static bool
check_fetched (struct package *p, const struct source_pick *pick, struct mur_error **err)
{
    if (strcmp (p->sha256, pick->sha256) != 0)
        return mur_fail (err, E_REG_002, "%s@%s: %s hashes to %s but the index of %s lists %s",
                         pick->name, pick->version, pick->file, p->sha256, pick->label,
                         pick->sha256);
    if (! open_fetched (p, pick->file, err))
        return false;
    if (strcmp (p->manifest->name, name_bare (pick->name)) != 0)
        return mur_fail (err, E_REG_002, "%s@%s: %s is packed as \"%s\"", pick->name, pick->version,
                         pick->file, p->manifest->name);
    if (! equals_trimmed (p->manifest->version, pick->version))
        return mur_fail (err, E_REG_002, "%s@%s: %s is packed as version \"%s\"", pick->name,
                         pick->version, pick->file, p->manifest->version);
    return true;
}

/* The signature a release has beside a package of it. */
static bool
fetch_signature (const struct github *g, const struct github_repo *repo,
                 const struct github_release *release, struct package *p, const char *file,
                 struct mur_error **err)
{
    _cleanup_free_ char *name = x_asprintf ("%s" PACKAGE_SIGNATURE_ENDING, file);
    const struct github_asset *asset = github_find_asset (release, name);
    _cleanup_buf_ struct buf text = { 0 };
    if (! asset)
        return true;
    if (! github_download (g, repo, asset, PACKAGE_SIGNATURE_MAX, &text, err))
        return false;
    p->signature = text.data ? buf_steal (&text) : x_strdup ("");
    return true;
}

struct package *
remote_fetch (struct remote *r, const struct source_pick *pick, struct mur_error **err)
{
    if (pick->source) {
        _cleanup_package_ struct package *p = source_oci_fetch (r, pick, err);
        return p && check_fetched (p, pick, err) ? steal_ptr (&p) : NULL;
    }
    struct source_facts *f = remote_facts_for (r, pick->name, pick->version, err);
    if (! f)
        return NULL;
    struct github_repo repo = source_repo (f->source);
    _cleanup_error_ struct mur_error *caught = NULL;
    const struct github_release *release =
        source_ask_release (&r->github, f, pick->release, &caught);
    const struct github_asset *asset = release ? github_find_asset (release, pick->file) : NULL;
    if (caught)
        return mur_propagate (err, steal_ptr (&caught)), NULL;
    if (! asset)
        return mur_fail (err, E_REG_001, "%s@%s: release %s of %s %s", pick->name, pick->version,
                         pick->release, pick->label,
                         release ? "does not hold the file its index names" : "is not there"),
               NULL;
    _cleanup_buf_ struct buf bytes = { 0 };
    if (! github_download (&r->github, &repo, asset, PACKAGE_FILE_MAX, &bytes, err))
        return NULL;
    size_t len = bytes.len;
    _cleanup_package_ struct package *p = package_from_bytes (buf_steal (&bytes), len, pick->file);
    return check_fetched (p, pick, err) &&
                   fetch_signature (&r->github, &repo, release, p, pick->file, err)
               ? steal_ptr (&p)
               : NULL;
}

/* --- a whole release --- */

static void
release_packages_clear (struct release_packages *p)
{
    for (size_t i = 0; i < p->len; i++)
        package_free (p->items[i]);
    free (p->items);
    *p = (struct release_packages){ 0 };
}

static bool
fetch_assets (const struct github *g, const struct github_repo *repo,
              const struct github_release *release, struct release_packages *out,
              struct mur_error **err)
{
    out->items = x_new_array (struct package *, release->count + 1);
    for (size_t i = 0; i < release->count; i++) {
        const struct github_asset *asset = &release->assets[i];
        if (! str_ends (asset->name, ".mur.zip"))
            continue;
        _cleanup_buf_ struct buf bytes = { 0 };
        if (! github_download (g, repo, asset, PACKAGE_FILE_MAX, &bytes, err))
            return false;
        size_t len = bytes.len;
        struct package *p = package_from_bytes (buf_steal (&bytes), len, asset->name);
        out->items[out->len++] = p;
        if (! open_fetched (p, asset->name, err) ||
            ! fetch_signature (g, repo, release, p, asset->name, err))
            return false;
    }
    return out->len > 0 || mur_fail (err, E_IO_003, "release %s of github:%s/%s holds no .mur.zip",
                                     release->tag, repo->owner, repo->name);
}

bool
remote_fetch_release (struct remote *r, const struct lock *lock, const char *owner,
                      const char *repo_name, const char *scope, const char *tag,
                      struct release_packages *out, struct mur_error **err)
{
    *out = (struct release_packages){ 0 };
    struct source_facts *f = remote_facts_of (r, scope);
    _cleanup_secret_ struct secret *fallback = f ? NULL : source_default_token ();
    struct github_repo repo = { .owner = owner,
                                .name = repo_name,
                                .token = f ? f->source->token : fallback };
    if (! github_owner_id (&r->github, &repo, &out->owner_id, err) ||
        ! registry_check_owner_id (scope, out->owner_id, lock, err))
        return false;
    _cleanup_error_ struct mur_error *caught = NULL;
    _cleanup_ (github_release_freep) struct github_release *release =
        github_release_by_tag (&r->github, &repo, tag, &caught);
    if (caught)
        return mur_propagate (err, steal_ptr (&caught));
    if (! release)
        return mur_fail (err, E_IO_003, "github:%s/%s has no release %s", owner, repo_name, tag);
    bool ok = fetch_assets (&r->github, &repo, release, out, err);
    if (! ok)
        release_packages_clear (out);
    return ok;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/sources/source.h"

#include "artifact/names/name.h"
#include "artifact/sources/source_internal.h"
#include "artifact/store/store_near.h"
#include "base/alloc.h"

#include <string.h>

#define MURMUR_OWNER_ID 190196424ull

struct remote *
remote_new (struct mur_error **err)
{
    struct source_list *sources = source_list_load (err);
    if (! sources)
        return NULL;
    struct remote *r = x_new0 (struct remote);
    r->sources = sources;
    r->facts = x_new_array (struct source_facts, sources->len);
    for (size_t i = 0; i < sources->len; i++)
        source_facts_init (&r->facts[i], &sources->items[i]);
    github_init (&r->github);
    r->oci = oci_client_new (&(struct oci_options){ .plain_hosts = &sources->plain_http });
    return r;
}

void
remote_free (struct remote *r)
{
    github_clear (&r->github);
    oci_client_free (r->oci);
    for (size_t i = 0; i < r->sources->len; i++)
        source_facts_clear (&r->facts[i]);
    free (r->facts);
    source_list_free (r->sources);
    free (r);
}

void
remote_set_cancel (struct remote *r, struct cancel *cancel)
{
    r->github.cancel = cancel;
    oci_client_set_cancel (r->oci, cancel);
}

void
remote_forget_failures (struct remote *r)
{
    for (size_t i = 0; i < r->sources->len; i++)
        source_facts_forget_failures (&r->facts[i]);
}

struct source_facts *
remote_facts_of (const struct remote *r, const char *scope)
{
    for (size_t i = 0; i < r->sources->len; i++)
        if (strcmp (r->sources->items[i].scope, scope) == 0)
            return &r->facts[i];
    return NULL;
}

/* --- scope and owner --- */

const char *
remote_scope (const struct remote *r, size_t i)
{
    return i < r->sources->len ? r->sources->items[i].scope : NULL;
}

char *
source_label (const struct source *s)
{
    return s->oci ? x_asprintf (OCI_SCHEME "%s", s->oci)
                  : x_asprintf ("github:%s/%s", s->owner, s->repo);
}

char *
remote_label (const struct remote *r, const char *scope)
{
    return source_label (remote_facts_of (r, scope)->source);
}

static bool
refuse_sourceless (const char *name, const char *version, const char *scope, struct mur_error **err)
{
    if (strcmp (scope, SCOPE_LOCAL) == 0) {
        mur_fail (err, E_REG_001, "%s is in no store, and no source serves the scope \"local\"",
                  name);
        return mur_hint (err, "install it from its file: mur install ./%s-%s.mur.zip",
                         name_bare (name), version ? version : "<version>");
    }
    if (strcmp (scope, SCOPE_BUNDLED) == 0) {
        _cleanup_stores_ struct stores *stores = stores_new (NULL, NULL);
        _cleanup_free_ char *near = stores ? store_near_hint (stores, name, version) : NULL;
        if (! version && near && str_starts (near, "there "))
            mur_fail (err, E_REG_001,
                      "%s comes with this mur in a version, which an install has to name", name);
        else
            mur_fail (err, E_REG_001, "%s%s%s is not among the artifacts that come with this mur",
                      name, version ? "@" : "", version ? version : "");
        return mur_hint (err, "%s", near ? near : "`mur list --all` shows what is there");
    }
    mur_fail (err, E_REG_008, "no source serves the scope \"%s\" of %s", scope, name);
    return mur_hint (err,
                     "add to ~/.murmur/config.yaml:\n"
                     "    registry:\n"
                     "      sources:\n"
                     "        - repo: %s/<repository>   # or oci: <host>/%s",
                     scope, scope);
}

struct source_facts *
remote_facts_for (struct remote *r, const char *name, const char *version, struct mur_error **err)
{
    _cleanup_free_ char *scope = name_scope (name);
    struct source_facts *f = NULL;
    if (strcmp (scope, SCOPE_LOCAL) != 0 && strcmp (scope, SCOPE_BUNDLED) != 0)
        f = remote_facts_of (r, scope);
    if (! f)
        refuse_sourceless (name, version, scope, err);
    return f;
}

bool
registry_check_owner_id (const char *scope, uint64_t owner_id, const struct lock *lock,
                         struct mur_error **err)
{
    if (strcmp (scope, SCOPE_MURMUR) == 0 && owner_id != MURMUR_OWNER_ID) {
        mur_fail (err, E_REG_010,
                  "the repository of scope \"murmur\" belongs to owner id %llu, expected %llu",
                  (unsigned long long)owner_id, MURMUR_OWNER_ID);
        return mur_hint (err, "nothing was fetched; the account may have changed hands");
    }
    return ! lock || lock_check_owner (lock, scope, owner_id, err);
}

bool
source_check_owner (struct remote *r, struct source_facts *f, const struct lock *lock,
                    uint64_t *owner_id, struct mur_error **err)
{
    *owner_id = 0;
    if (f->source->oci) {
        _cleanup_free_ char *place = source_label (f->source);
        return ! lock || lock_check_place (lock, f->source->scope, place, err);
    }
    return source_ask_owner (&r->github, f, owner_id, err) &&
           registry_check_owner_id (f->source->scope, *owner_id, lock, err);
}

bool
remote_check_owner (struct remote *r, const struct lock *lock, const char *scope,
                    uint64_t *owner_id, struct mur_error **err)
{
    struct source_facts *f = remote_facts_of (r, scope);
    if (! f)
        return refuse_sourceless (scope, NULL, scope, err);
    return source_check_owner (r, f, lock, owner_id, err);
}

const struct artifact_index *
remote_index (struct remote *r, const char *scope, struct mur_error **err)
{
    struct source_facts *f = remote_facts_of (r, scope);
    if (! f)
        return refuse_sourceless (scope, NULL, scope, err), NULL;
    return source_ask_index (&r->github, f, err);
}

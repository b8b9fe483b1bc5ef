/* SPDX-License-Identifier: Apache-2.0 */
#include "session/toolbox/pull.h"
#include "artifact/store/store_list.h"
#include "artifact/store/store_meta.h"

#include "artifact/names/name.h"
#include "artifact/names/platform.h"
#include "artifact/names/version.h"
#include "artifact/sources/source.h"
#include "artifact/sources/source_fetch.h"
#include "artifact/sources/source_pick.h"
#include "artifact/store/lock_file.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "door/door.h"
#include "manifest/capsule/capsule_entry.h"
#include "manifest/settings/artifact_manifest.h"
#include "session/commands/native.h"
#include "session/guests/guests.h"
#include "session/state/session.h"
#include "session/toolbox/murmur_md.h"
#include "session/toolbox/stage_artifacts.h"
#include "session/toolbox/stage_inventory.h"
#include "session/toolbox/tool_files.h"

#include <string.h>

void
pulled_clear (struct pulled *p)
{
    free (p->fetched_from);
    strv_free (&p->notes);
    *p = (struct pulled){ 0 };
}

bool
pull_is_granted (const struct session *s)
{
    return s->policy->install.skill.len + s->policy->install.tool.len > 0;
}

static bool _printf_ (2, 3) refuse (char **refusal, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    *refusal = x_vasprintf (fmt, ap);
    va_end (ap);
    return false;
}

char *
pull_error_line (struct mur_error *e)
{
    char *text = x_asprintf ("[%s] %s%s%s", diag_code_name (e->code), e->message,
                             e->hint ? "; hint: " : "", e->hint ? e->hint : "");
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
    mur_error_free (e);
    return text;
}

static bool
refuse_with (char **refusal, const char *token, struct mur_error *e)
{
    _cleanup_free_ char *line = pull_error_line (e);
    return refuse (refusal, "%s%s", token, line);
}

bool
pull_check_name (const char *name, char **refusal)
{
    _cleanup_error_ struct mur_error *err = NULL;
    return name_check_full (name, E_REG_007, NULL, &err) ||
           refuse (refusal, "not-granted: %s%s%s", err->message, err->hint ? "; " : "",
                   err->hint ? err->hint : "");
}

/* --- grants --- */

static bool
some_matches (const struct str_list *patterns, const char *name)
{
    for (size_t i = 0; i < patterns->len; i++)
        if (pattern_matches (patterns->items[i], name))
            return true;
    return false;
}

bool
pull_covers_role (const struct session *s, const char *name, const char *role)
{
    return (str_eq (role, "skill") && some_matches (&s->policy->install.skill, name)) ||
           (str_eq (role, "tool") && some_matches (&s->policy->install.tool, name));
}

static bool
check_name (struct session *s, const char *name, const char *version, char **refusal)
{
    if (! pull_is_granted (s))
        return refuse (refusal, "not-granted: this capsule declares no capabilities.install");
    if (! pull_check_name (name, refusal))
        return false;
    if (version && ! version_is_segment (version))
        return refuse (refusal, "not-granted: \"%s\" is no version", version);
    if (! some_matches (&s->policy->install.skill, name) &&
        ! some_matches (&s->policy->install.tool, name))
        return refuse (refusal, "not-granted: capabilities.install names nothing that covers %s",
                       name);
    return true;
}

/* A tool name belongs to one artifact of a session. */
static bool
check_tool_name (const struct session *s, const char *name, char **refusal)
{
    const char *bare = name_bare (name);
    const struct staged_artifact *held = session_artifact (s, bare);
    if (name_is_reserved_tool (bare))
        return refuse (refusal, "not-granted: the tool name %s is the runtime's own", bare);
    if (held && ! str_eq (held->full_name, name))
        return refuse (refusal, "not-granted: the tool name %s is held by %s", bare,
                       held->full_name);
    return true;
}

static bool
check_role (const struct session *s, const char *name, const char *role, char **refusal)
{
    if (! str_eq (role, "skill") && ! str_eq (role, "tool"))
        return refuse (refusal, "not-granted: %s is a %s; only tools and skills can be pulled",
                       name, role);
    return pull_covers_role (s, name, role) ||
           refuse (refusal, "not-granted: capabilities.install.%s does not cover %s", role, name);
}

/* Packaging and role agree, and the list of that tier covers the name. */
static bool
check_tier (const struct session *s, const char *name, const struct artifact_manifest *m,
            enum artifact_role *role, char **refusal)
{
    bool is_skill = str_eq (m->runtime, "skill") && m->packaging == PACKAGING_STATIC;
    bool is_tool = str_eq (m->runtime, "tool") && m->packaging != PACKAGING_STATIC;
    if (! is_skill && ! is_tool)
        return refuse (refusal, "not-granted: %s is a %s; only tools and skills can be pulled",
                       name, m->runtime);
    if (! check_role (s, name, m->runtime, refusal))
        return false;
    *role = is_skill ? ROLE_SKILL : ROLE_TOOL;
    return true;
}

/* --- which version --- */

struct candidate {
    char *version; /* NULL: none fits */
    struct store_payload payload;
    bool is_stored;
    struct source_pick pick;
    bool is_picked;
    bool was_seen; /* some version exists, fitting or not */
    char *misfit;  /* why the first that does not fit does not; NULL: none was met */
    char *misfit_role;
};

static void
candidate_clear (struct candidate *c)
{
    free (c->version);
    free (c->misfit);
    free (c->misfit_role);
    store_payload_clear (&c->payload);
    source_pick_clear (&c->pick);
}

/* Keeps why, of the first that does not. */
static bool
payload_fits (const struct store_payload *payload, const char *name, const char *version,
              struct candidate *c)
{
    struct store_meta meta = { 0 };
    struct mur_error *err = NULL;
    _cleanup_misfits_ struct wit_misfits misfits = { 0 };
    bool fits = store_meta_read (payload, name, version, &meta, &err) &&
                (! meta.has_contracts || wit_fits (&meta.contracts, wit_served_level (), &misfits));
    if (! fits && ! c->misfit) {
        if (! err)
            wit_refuse (name, version, &misfits, &err);
        c->misfit_role = meta.artifact_runtime ? x_strdup (meta.artifact_runtime) : NULL;
        c->misfit = pull_error_line (err);
    } else {
        mur_error_free (err);
    }
    store_meta_clear (&meta);
    return fits;
}

/* A store's version, when it is newer than the choice so far; the first store wins a tie. */
static void
consider (const struct store *store, const char *name, const char *version, struct candidate *c)
{
    struct store_payload payload = { 0 };
    if (store_find (store, name, version, NULL, &payload, NULL) != STORE_FOUND) {
        store_payload_clear (&payload);
        return;
    }
    c->was_seen = true;
    if ((c->version && version_compare (version, c->version) <= 0) ||
        ! payload_fits (&payload, name, version, c)) {
        store_payload_clear (&payload);
        return;
    }
    free (c->version);
    store_payload_clear (&c->payload);
    c->version = x_strdup (version);
    c->payload = payload;
    c->is_stored = true;
}

static void
look_in_stores (const struct stores *stores, const char *name, const char *version,
                struct candidate *c)
{
    for (int kind = 0; kind < STORE_COUNT; kind++) {
        const struct store *store = &stores->at[kind];
        _cleanup_strv_ struct strv versions = { 0 };
        if (! store->root)
            continue;
        if (version)
            strv_push (&versions, version);
        else
            store_versions (store, name, &versions);
        for (size_t i = 0; i < versions.len; i++)
            consider (store, name, versions.items[i], c);
    }
}

/* The scope's index, unless the store has the very version. An unreadable index is a note when
 * something else fits. */
static bool
look_in_source (struct remote *remote, const char *name, const char *version, struct candidate *c,
                struct strv *notes, char **refusal)
{
    if (version && c->is_stored)
        return true;
    struct mur_error *err = NULL;
    if (remote_pick_listed (remote, name, version, platform_host (), &c->pick, &err)) {
        c->is_picked = ! c->version || version_compare (c->pick.version, c->version) > 0;
        c->was_seen = true;
        return true;
    }
    if (c->version) {
        strv_take (notes, pull_error_line (err));
        return true;
    }
    bool is_absent = err->code == E_REG_001 || err->code == E_REG_008;
    return refuse_with (refusal,
                        err->code == E_WIT_LEVEL_001 ? "does-not-fit: "
                        : is_absent                  ? "not-found: "
                                                     : "not-fetched: ",
                        err);
}

static bool
choose (struct session *s, struct remote *remote, const char *name, const char *version,
        struct candidate *c, struct strv *notes, char **refusal)
{
    look_in_stores (s->asked->stores, name, version, c);
    if (remote && ! look_in_source (remote, name, version, c, notes, refusal))
        return false;
    if (c->version || c->is_picked)
        return true;
    /* Of one version the tier is judged before the fit. */
    if (version && c->misfit_role && ! check_role (s, name, c->misfit_role, refusal))
        return false;
    if (c->misfit)
        return refuse (refusal, "does-not-fit: %s", c->misfit);
    return refuse (refusal,
                   c->was_seen ? "does-not-fit: no version of %s%s%s fits this runtime"
                               : "not-found: %s%s%s is in no store of this session",
                   name, version ? "@" : "", version ? version : "");
}

/* --- the bytes --- */

struct payload {
    struct package *package;
    const char *version;
    const char *platform; /* to pin; NULL: any */
    bool has_owner_id;
    uint64_t owner_id;
    const char *source;           /* of a registry; NULL: none */
    const struct strv *platforms; /* "<platform> <hex SHA-256>" of a registry's index, or NULL */
    char *signer;                 /* as murmur.lock names it; NULL: none */
};

static void
payload_clear (struct payload *p)
{
    if (p->package)
        package_free (p->package);
    free (p->signer);
}

static bool
open_stored (const struct candidate *c, const char *name, const struct lock *lock,
             struct payload *p, char **refusal)
{
    struct mur_error *err = NULL;
    struct store_meta meta = { 0 };
    p->version = c->version;
    p->package = store_read (&c->payload, name, c->version, &err);
    if (! p->package || ! package_open_zip (p->package, &err))
        return refuse_with (refusal, "not-fetched: ", err);
    if (store_meta_read (&c->payload, name, c->version, &meta, NULL)) {
        p->has_owner_id = meta.has_owner_id;
        p->owner_id = meta.owner_id;
    }
    store_meta_clear (&meta);
    _cleanup_free_ char *scope = name_scope (name);
    if (p->has_owner_id && ! registry_check_owner_id (scope, p->owner_id, lock, &err))
        return refuse_with (refusal, "not-fetched: ", err);
    return true;
}

/* Role and owner are judged before anything is downloaded. */
static bool
open_picked (const struct session *s, struct remote *remote, const struct lock *lock,
             const struct candidate *c, struct payload *p, char **refusal)
{
    struct mur_error *err = NULL;
    _cleanup_free_ char *scope = name_scope (c->pick.name);
    if (! check_role (s, c->pick.name, c->pick.runtime, refusal))
        return false;
    if (! remote_check_owner (remote, lock, scope, &p->owner_id, &err))
        return refuse_with (refusal, "not-fetched: ", err);
    p->version = c->pick.version;
    p->source = c->pick.source;
    p->platforms = &c->pick.platforms;
    p->has_owner_id = ! p->source;
    p->package = remote_fetch (remote, &c->pick, &err);
    if (! p->package || ! package_open_zip (p->package, &err))
        return refuse_with (refusal, "not-fetched: ", err);
    return true;
}

static bool
check_trust (const struct session *s, const char *name, const struct candidate *c,
             struct payload *p, char **refusal)
{
    struct mur_error *err = NULL;
    struct trust_policy *policy = s->asked->stores->trust;
    const struct trust_subject of = { name, p->version, p->package->sha256,
                                      c->is_stored && c->payload.kind == STORE_BUNDLED };
    p->signer = trust_policy_signer (policy, &of, p->package->signature);
    return trust_policy_check (policy, &of, p->package->signature, &err) ||
           refuse_with (refusal, "not-fetched: ", err);
}

static bool
check_fit (const char *name, struct payload *p, char **refusal)
{
    _cleanup_contracts_ struct wit_contracts contracts = { 0 };
    _cleanup_misfits_ struct wit_misfits misfits = { 0 };
    struct mur_error *err = NULL;
    if (p->package->manifest->packaging != PACKAGING_WASM)
        return true;
    if (package_contracts (p->package, &contracts, &err) != PACKAGE_CONTRACTS)
        return refuse_with (refusal, "does-not-fit: ", err);
    if (wit_fits (&contracts, wit_served_level (), &misfits))
        return true;
    wit_refuse (name, p->version, &misfits, &err);
    return refuse_with (refusal, "does-not-fit: ", err);
}

/* --- the writes --- */

static bool
pin (struct session *s, struct lock *lock, const char *name, const struct payload *p,
     const char *sha256, struct mur_error **err)
{
    if (! lock)
        return true;
    struct lock_pin entry = { .name = name,
                              .version = p->version,
                              .sha256 = sha256,
                              .platform = p->platform,
                              .origin = LOCK_RUNTIME,
                              .session = s->id.text,
                              .has_owner_id = p->has_owner_id,
                              .owner_id = p->owner_id,
                              .source = p->source,
                              .platforms = p->platforms,
                              .signer = p->signer };
    lock_pin (lock, &entry, NULL);
    return lock_write (lock, err);
}

static const char *
url_of (const struct session *s)
{
    return s->door ? door_url (s->door) : "";
}

static void
inventory_changed (struct session *s)
{
    stage_inventory (s, NULL);
    s->kit.tools_generation++;
    if (s->kit.tools_changed)
        s->kit.tools_changed (s);
    if (s->door)
        murmur_md_write (s, url_of (s));
}

static void
remove_files (struct session *s, const struct staged_artifact *a)
{
    _cleanup_free_ char *dir = x_asprintf ("tools/%s", a->tool_name);
    (void)fs_remove (s->places.runtime, dir, NULL);
}

/* Read and compiled first; then files, lock and tables, in that order. */
static bool
commit (struct session *s, struct lock *lock, const char *name, enum artifact_role role,
        struct payload *p, struct pulled *out, char **refusal)
{
    struct mur_error *err = NULL;
    if (s->kit.artifact_count >= s->kit.artifact_cap)
        return refuse (refusal, "not-fetched: this session has pulled as much as it may");
    struct staged_artifact *a = &s->kit.artifacts[s->kit.artifact_count];
    char sha256[SHA256_HEX_LEN + 1];
    memcpy (sha256, p->package->sha256, sizeof (sha256));
    if (! stage_pulled (s, a, name, role, steal_ptr (&p->package), &err) ||
        ! guests_add (s, a, url_of (s), &err)) {
        staged_artifact_clear (a);
        return refuse_with (refusal, "not-fetched: ", err);
    }
    if (! stage_artifact_files (s, a, &err) || ! stage_native_tool (s, a, &err) ||
        ! pin (s, lock, name, p, sha256, &err)) {
        remove_files (s, a);
        staged_artifact_clear (a);
        return refuse_with (refusal, "not-fetched: ", err);
    }
    package_free (a->resolved->package);
    a->resolved->package = NULL;
    s->kit.artifact_count++;
    out->artifact = a;
    out->is_new = true;
    out->has_owner_id = p->has_owner_id;
    out->owner_id = p->owner_id;
    inventory_changed (s);
    return true;
}

/* --- a pull --- */

static bool
check_lock (struct session *s, const struct lock *lock, const char *name, struct payload *p,
            char **refusal)
{
    struct mur_error *err = NULL;
    const struct staged_artifact *held = session_artifact (s, name_bare (name));
    p->platform = p->package->manifest->packaging == PACKAGING_NATIVE ? platform_host () : NULL;
    struct lock_pin entry = {
        .name = name, .version = p->version, .sha256 = p->package->sha256, .platform = p->platform
    };
    if (lock && ! lock_check_conflict (lock, &entry, &err))
        return refuse_with (refusal, "", err);
    if (held && ! str_eq (held->version, p->version))
        return refuse (refusal, "%s: this session holds %s@%s, resolved was %s@%s", name, name,
                       held->version, name, p->version);
    return true;
}

static bool
fetch_and_commit (struct session *s, struct remote *remote, struct lock *lock, const char *name,
                  const char *version, struct pulled *out, char **refusal)
{
    _cleanup_ (candidate_clear) struct candidate c = { 0 };
    _cleanup_ (payload_clear) struct payload p = { 0 };
    enum artifact_role role = ROLE_SKILL;
    if (! choose (s, remote, name, version, &c, &out->notes, refusal))
        return false;
    if (! (c.is_picked ? open_picked (s, remote, lock, &c, &p, refusal)
                       : open_stored (&c, name, lock, &p, refusal)))
        return false;
    if (! check_tier (s, name, p.package->manifest, &role, refusal) ||
        ! check_trust (s, name, &c, &p, refusal) || ! check_fit (name, &p, refusal) ||
        ! check_lock (s, lock, name, &p, refusal))
        return false;
    out->fetched_from = c.is_picked ? x_strdup (c.pick.label)
                                    : x_asprintf ("%s store", store_kind_name (c.payload.kind));
    out->artifact = session_artifact (s, name_bare (name));
    return out->artifact || commit (s, lock, name, role, &p, out, refusal);
}

#define SOURCES_KEPT_MS (10 * 60 * 1000)

static void
forget_sources (struct session *s)
{
    if (s->kit.sources)
        remote_free (s->kit.sources);
    s->kit.sources = NULL;
}

bool
pull_open_remote (struct session *s, struct cancel *cancel, struct remote **remote, char **refusal)
{
    struct mur_error *err = NULL;
    uint64_t now = clock_monotonic_ms ();
    if (! s->policy->install.from_sources)
        return true;
    if (s->kit.sources && now - s->kit.sources_read_ms > SOURCES_KEPT_MS)
        forget_sources (s);
    if (! s->kit.sources) {
        s->kit.sources = remote_new (&err);
        s->kit.sources_read_ms = now;
    }
    *remote = s->kit.sources;
    if (! *remote)
        return refuse_with (refusal, "not-fetched: ", err);
    remote_set_cancel (*remote, cancel);
    return true;
}

void
pull_close_remote (struct remote **remote)
{
    if (! *remote)
        return;
    remote_set_cancel (*remote, NULL);
    remote_forget_failures (*remote);
}

static bool
pull_once (struct session *s, struct lock *lock, const char *name, const char *version,
           struct cancel *cancel, struct pulled *out, char **refusal)
{
    _cleanup_ (pull_close_remote) struct remote *remote = NULL;
    return pull_open_remote (s, cancel, &remote, refusal) &&
           fetch_and_commit (s, remote, lock, name, version, out, refusal);
}

bool
pull_artifact (struct session *s, const char *name, const char *version, struct cancel *cancel,
               struct pulled *out, char **refusal)
{
    _cleanup_lock_ struct lock *lock = NULL;
    struct mur_error *err = NULL;
    if (! check_name (s, name, version, refusal) || ! check_tool_name (s, name, refusal))
        return false;
    if (s->asked->lock && ! (lock = lock_read (s->asked->file.dir, &err)))
        return refuse_with (refusal, "not-fetched: ", err);
    bool may_be_stale = s->kit.sources != NULL;
    if (pull_once (s, lock, name, version, cancel, out, refusal))
        return true;
    if (! may_be_stale || ! str_starts (*refusal, "not-found: "))
        return false;
    /* It may have been published since. */
    forget_sources (s);
    free (steal_ptr (refusal));
    return pull_once (s, lock, name, version, cancel, out, refusal);
}

void
pull_record (struct session *s, const struct pulled *p)
{
    const struct staged_artifact *a = p->artifact;
    _cleanup_free_ char *owner =
        p->has_owner_id ? x_asprintf ("%llu", (unsigned long long)p->owner_id) : NULL;
    TRACE (s->trace, NULL, artifact_pulled, .name = a->full_name, .version = a->version,
           .runtime = artifact_role_name (a->role), .origin = "runtime", .session = s->id.text,
           .trust = "untrusted", .fetched_from = p->fetched_from, .owner_id = owner);
}

/* --- a removal --- */

static bool
is_declared (const struct session *s, const char *name)
{
    for (size_t i = 0; i < s->manifest->artifacts.len; i++)
        if (str_eq (s->manifest->artifacts.items[i].name, name))
            return true;
    return false;
}

bool
pull_remove (struct session *s, const char *name, bool *was_removed, char **refusal)
{
    _cleanup_lock_ struct lock *lock = NULL;
    struct mur_error *err = NULL;
    *was_removed = false;
    if (! pull_is_granted (s))
        return refuse (refusal, "not-granted: this capsule declares no capabilities.install");
    if (! pull_check_name (name, refusal))
        return false;
    struct staged_artifact *a = session_artifact (s, name_bare (name));
    if (! a || ! str_eq (a->full_name, name))
        return true;
    if (is_declared (s, name))
        return refuse (refusal, "not-removable: %s is declared in murmur.yaml", name);
    if (s->asked->lock && ! (lock = lock_read (s->asked->file.dir, &err)))
        return refuse_with (refusal, "not-removable: ", err);
    const struct lock_entry *entry = lock ? lock_find (lock, name) : NULL;
    if (a->origin != LOCK_RUNTIME || (lock && (! entry || entry->origin != LOCK_RUNTIME)))
        return refuse (refusal, "not-removable: %s was not pulled by a running capsule", name);
    if (lock && (! lock_drop (lock, name) || ! lock_write (lock, &err)))
        return refuse_with (refusal, "not-removable: ", err);
    a->is_removed = true;
    remove_files (s, a);
    inventory_changed (s);
    *was_removed = true;
    return true;
}

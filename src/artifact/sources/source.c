/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolving through sources, in the order that makes a wrong answer harmless.
 */
#include "artifact/sources/source.h"

#include "artifact/names/name.h"
#include "artifact/names/platform.h"
#include "artifact/sources/github.h"
#include "artifact/sources/source_list.h"
#include "base/alloc.h"
#include "base/locks.h"
#include "fs/root.h"
#include "manifest/settings/artifact_manifest.h"
#include "manifest/settings/config.h"
#include "net/http_fetch.h"

#include <ctype.h>
#include <pthread.h>
#include <string.h>

#define MURMUR_OWNER_ID 190196424ull

/* --- questions asked once --- */

/* Whether something was asked, and how asking failed. */
struct question {
    bool is_asked;
    struct mur_error *error;
};

static bool
repeat_error (const struct question *q, struct mur_error **err)
{
    if (! q->error)
        return true;
    mur_fail (err, q->error->code, "%s", q->error->message);
    return q->error->hint ? mur_hint (err, "%s", q->error->hint) : false;
}

struct tagged_release {
    char *tag;
    struct github_release *release; /* NULL: there is none */
    struct question question;
};

/* What is known of one source. The mutex is held while one of its questions is asked; no other lock
 * is taken under it but the HTTP client's own. */
struct source_facts {
    const struct source *source;
    pthread_mutex_t mutex;
    struct question owner_question, latest_question, index_question;
    uint64_t owner_id;
    struct github_release *latest;
    struct artifact_index *index;
    struct tagged_release *tagged;
    size_t tagged_count;
};

struct remote {
    struct github github;
    struct source_list *sources;
    struct source_facts *facts; /* one a source */
};

struct remote *
remote_new (struct mur_error **err)
{
    struct source_list *sources = source_list_load (err);
    if (! sources)
        return NULL;
    struct remote *r = x_new0 (struct remote);
    r->sources = sources;
    r->facts = x_new_array (struct source_facts, sources->len);
    for (size_t i = 0; i < sources->len; i++) {
        r->facts[i].source = &sources->items[i];
        pthread_mutex_init (&r->facts[i].mutex, NULL);
    }
    github_init (&r->github);
    return r;
}

static void
facts_clear (struct source_facts *f)
{
    struct question *questions[] = { &f->owner_question, &f->latest_question, &f->index_question };
    for (size_t i = 0; i < ARRAY_LEN (questions); i++)
        if (questions[i]->error)
            mur_error_free (questions[i]->error);
    for (size_t i = 0; i < f->tagged_count; i++) {
        free (f->tagged[i].tag);
        if (f->tagged[i].release)
            github_release_free (f->tagged[i].release);
        if (f->tagged[i].question.error)
            mur_error_free (f->tagged[i].question.error);
    }
    free (f->tagged);
    if (f->latest)
        github_release_free (f->latest);
    if (f->index)
        index_free (f->index);
    pthread_mutex_destroy (&f->mutex);
}

void
remote_free (struct remote *r)
{
    github_clear (&r->github);
    for (size_t i = 0; i < r->sources->len; i++)
        facts_clear (&r->facts[i]);
    free (r->facts);
    source_list_free (r->sources);
    free (r);
}

void
remote_set_cancel (struct remote *r, struct cancel *cancel)
{
    r->github.cancel = cancel;
}

static struct source_facts *
facts_of (const struct remote *r, const char *scope)
{
    for (size_t i = 0; i < r->sources->len; i++)
        if (strcmp (r->sources->items[i].scope, scope) == 0)
            return &r->facts[i];
    return NULL;
}

static struct github_repo
repo_of (const struct source *s)
{
    return (struct github_repo){ .owner = s->owner, .name = s->repo, .token = s->token };
}

static bool
ask_owner (struct remote *r, struct source_facts *f, struct mur_error **err)
{
    if (! f->owner_question.is_asked) {
        struct github_repo repo = repo_of (f->source);
        f->owner_question.is_asked = true;
        github_owner_id (&r->github, &repo, &f->owner_id, &f->owner_question.error);
    }
    return repeat_error (&f->owner_question, err);
}

static bool
ask_latest (struct remote *r, struct source_facts *f, struct mur_error **err)
{
    if (! f->latest_question.is_asked) {
        struct github_repo repo = repo_of (f->source);
        f->latest_question.is_asked = true;
        f->latest = github_release_latest (&r->github, &repo, &f->latest_question.error);
    }
    return repeat_error (&f->latest_question, err);
}

static void
fetch_index (struct remote *r, struct source_facts *f, struct mur_error **err)
{
    const struct source *s = f->source;
    struct github_repo repo = repo_of (s);
    if (! ask_latest (r, f, err))
        return;
    const struct github_asset *asset =
        f->latest ? github_find_asset (f->latest, INDEX_FILE_NAME) : NULL;
    if (! asset) {
        mur_fail (err, E_IDX_002, "github:%s/%s publishes no index: %s", s->owner, s->repo,
                  f->latest ? "its latest release has no " INDEX_FILE_NAME
                            : "it has no published release");
        return;
    }
    _cleanup_buf_ struct buf text = { 0 };
    if (! github_download (&r->github, &repo, asset, INDEX_BYTES_MAX, &text, err))
        return;
    _cleanup_free_ char *what = x_asprintf ("index of github:%s/%s", s->owner, s->repo);
    _cleanup_index_ struct artifact_index *x =
        index_parse (text.data ? text.data : "", text.len, what, err);
    if (x && strcmp (x->scope, s->scope) != 0)
        mur_fail (err, E_REG_009,
                  "the index of github:%s/%s speaks for scope \"%s\", but that repository serves "
                  "\"%s\"",
                  s->owner, s->repo, x->scope, s->scope);
    else
        f->index = steal_ptr (&x);
}

static bool
ask_index (struct remote *r, struct source_facts *f, struct mur_error **err)
{
    if (! f->index_question.is_asked) {
        f->index_question.is_asked = true;
        fetch_index (r, f, &f->index_question.error);
    }
    return repeat_error (&f->index_question, err);
}

/* The release of a tag; NULL without an error when there is none. Borrowed. */
static const struct github_release *
ask_release (struct remote *r, struct source_facts *f, const char *tag, struct mur_error **err)
{
    if (f->latest && strcmp (f->latest->tag, tag) == 0)
        return f->latest;
    for (size_t i = 0; i < f->tagged_count; i++)
        if (strcmp (f->tagged[i].tag, tag) == 0)
            return repeat_error (&f->tagged[i].question, err) ? f->tagged[i].release : NULL;
    f->tagged = x_reallocarray (f->tagged, f->tagged_count + 1, sizeof (*f->tagged));
    struct tagged_release *t = &f->tagged[f->tagged_count++];
    struct github_repo repo = repo_of (f->source);
    *t = (struct tagged_release){ .tag = x_strdup (tag), .question = { .is_asked = true } };
    t->release = github_release_by_tag (&r->github, &repo, tag, &t->question.error);
    return repeat_error (&t->question, err) ? t->release : NULL;
}

/* --- scope and owner --- */

const char *
remote_scope (const struct remote *r, size_t i)
{
    return i < r->sources->len ? r->sources->items[i].scope : NULL;
}

static char *
label_of (const struct source *s)
{
    return x_asprintf ("github:%s/%s", s->owner, s->repo);
}

char *
remote_label (const struct remote *r, const char *scope)
{
    return label_of (facts_of (r, scope)->source);
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
        mur_fail (err, E_REG_001, "%s is not among the artifacts that come with this mur", name);
        return mur_hint (err, "`mur list --all` shows what is there");
    }
    mur_fail (err, E_REG_008, "no source serves the scope \"%s\" of %s", scope, name);
    return mur_hint (err,
                     "add to ~/.murmur/config.yaml:\n"
                     "    registry:\n"
                     "      sources:\n"
                     "        - repo: %s/<repository>",
                     scope);
}

static struct source_facts *
facts_for (struct remote *r, const char *name, const char *version, struct mur_error **err)
{
    _cleanup_free_ char *scope = name_scope (name);
    struct source_facts *f = NULL;
    if (strcmp (scope, SCOPE_LOCAL) != 0 && strcmp (scope, SCOPE_BUNDLED) != 0)
        f = facts_of (r, scope);
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

static bool
check_owner (struct remote *r, struct source_facts *f, const struct lock *lock,
             struct mur_error **err)
{
    return ask_owner (r, f, err) &&
           registry_check_owner_id (f->source->scope, f->owner_id, lock, err);
}

bool
remote_check_owner (struct remote *r, const struct lock *lock, const char *scope,
                    uint64_t *owner_id, struct mur_error **err)
{
    struct source_facts *f = facts_of (r, scope);
    if (! f)
        return refuse_sourceless (scope, NULL, scope, err);
    pthread_mutex_lock (&f->mutex);
    bool ok = check_owner (r, f, lock, err);
    *owner_id = f->owner_id;
    pthread_mutex_unlock (&f->mutex);
    return ok;
}

const struct artifact_index *
remote_index (struct remote *r, const char *scope, struct mur_error **err)
{
    struct source_facts *f = facts_of (r, scope);
    if (! f)
        return refuse_sourceless (scope, NULL, scope, err), NULL;
    pthread_mutex_lock (&f->mutex);
    bool ok = ask_index (r, f, err);
    pthread_mutex_unlock (&f->mutex);
    return ok ? f->index : NULL;
}

/* --- picking a version --- */

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
        .label = label_of (f->source),
        .runtime = x_strdup (a->runtime),
        .owner_id = f->owner_id,
    };
}

static bool
pick_locked (struct remote *r, struct source_facts *f, const char *name, const char *version,
             const char *platform, struct source_pick *out, struct mur_error **err)
{
    if (! ask_index (r, f, err))
        return false;
    const struct index_artifact *a = index_find (f->index, name_bare (name));
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
    struct source_facts *f = facts_for (r, name, version, err);
    if (! f)
        return false;
    pthread_mutex_lock (&f->mutex);
    bool ok =
        check_owner (r, f, lock, err) && pick_locked (r, f, name, version, platform, out, err);
    pthread_mutex_unlock (&f->mutex);
    return ok;
}

bool
remote_pick_listed (struct remote *r, const char *name, const char *version, const char *platform,
                    struct source_pick *out, struct mur_error **err)
{
    *out = (struct source_pick){ 0 };
    struct source_facts *f = facts_for (r, name, version, err);
    if (! f)
        return false;
    pthread_mutex_lock (&f->mutex);
    bool ok = pick_locked (r, f, name, version, platform, out, err);
    pthread_mutex_unlock (&f->mutex);
    return ok;
}

bool
remote_hint_fit (struct remote *r, const char *name, struct mur_error **err)
{
    _cleanup_free_ char *scope = name_scope (name);
    if (strcmp (scope, SCOPE_LOCAL) == 0)
        return mur_hint (err, "%s came from a file; rebuild it for WIT level %u", name,
                         wit_served_level ());
    struct source_facts *f = facts_of (r, scope);
    if (! f)
        return mur_hint (err, "no source serves the scope \"%s\", so no other version is known",
                         scope);
    _cleanup_error_ struct mur_error *caught = NULL;
    pthread_mutex_lock (&f->mutex);
    bool has_index = ask_index (r, f, &caught);
    pthread_mutex_unlock (&f->mutex);
    if (! has_index)
        return mur_hint (err, "the index of scope \"%s\" could not be read: %s", scope,
                         caught->message);
    hint_fit (index_find (f->index, name_bare (name)), name, err);
    return false;
}

/* --- fetching --- */

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

struct package *
remote_fetch (struct remote *r, const struct source_pick *pick, struct mur_error **err)
{
    struct source_facts *f = facts_for (r, pick->name, pick->version, err);
    if (! f)
        return NULL;
    struct github_repo repo = repo_of (f->source);
    _cleanup_error_ struct mur_error *caught = NULL;
    pthread_mutex_lock (&f->mutex);
    const struct github_release *release = ask_release (r, f, pick->release, &caught);
    const struct github_asset *asset = release ? github_find_asset (release, pick->file) : NULL;
    pthread_mutex_unlock (&f->mutex);
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
    return check_fetched (p, pick, err) ? steal_ptr (&p) : NULL;
}

/* --- a whole release --- */

void
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
        if (! open_fetched (p, asset->name, err))
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
    struct source_facts *f = facts_of (r, scope);
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

/* --- an index by address --- */

static bool
fetch_text (const char *url, struct buf *text, struct mur_error **err)
{
    _cleanup_ (http_client_freep) struct http_client *client = http_client_new ();
    struct http_header agent = { "user-agent", "murmur-cli", 10 };
    struct http_fetch fetch = {
        .request = { .method = "GET",
                     .url = url,
                     .headers = &agent,
                     .header_count = 1,
                     .first_byte_timeout_ms = 30000,
                     .between_bytes_timeout_ms = 30000,
                     .uses_proxy_env = true },
        .limit_bytes = INDEX_BYTES_MAX,
        .redirect_limit = 5,
    };
    _cleanup_http_response_ struct http_response response = { 0 };
    if (! http_fetch (client, &fetch, &response, NULL, err))
        return mur_context (err, "cannot fetch %s", url);
    if (response.status != 200)
        return mur_fail (err, E_IO_003, "cannot fetch %s: HTTP %d", url, response.status);
    *text = response.body;
    response.body = (struct buf){ 0 };
    return true;
}

const char *
index_address (const struct config *c)
{
    static const char published[] = "https://github.com/murmur-nexus/default-artifacts/releases/"
                                    "latest/download/" INDEX_FILE_NAME;
    return c->index_url[0] ? c->index_url : published;
}

struct artifact_index *
index_load (const char *path_or_url, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    bool is_url = str_starts (path_or_url, "http://") || str_starts (path_or_url, "https://");
    if (is_url) {
        if (! fetch_text (path_or_url, &text, err))
            return NULL;
    } else {
        _cleanup_error_ struct mur_error *caught = NULL;
        if (! fs_read_path (path_or_url, INDEX_BYTES_MAX, &text, &caught))
            return mur_fail (err, E_IO_003, "%s", caught->message), NULL;
    }
    return index_parse (text.data ? text.data : "", text.len, path_or_url, err);
}

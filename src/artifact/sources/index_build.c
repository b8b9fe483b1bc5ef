/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/sources/index_build.h"

#include "artifact/names/name.h"
#include "artifact/names/platform.h"
#include "artifact/names/version.h"
#include "artifact/package/package.h"
#include "artifact/sources/index.h"
#include "base/alloc.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "manifest/settings/artifact_manifest.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* --- one file --- */

/* What one package contributes. */
struct found {
    char *file;
    char *bare, *runtime, *description;
    enum packaging packaging;
    struct index_version version; /* with its one asset */
};

static void
found_clear (struct found *f)
{
    free (f->file);
    free (f->bare);
    free (f->runtime);
    free (f->description);
    index_version_clear (&f->version);
}

static bool
unindexable (const char *file, struct mur_error **err, const char *fmt, ...) _printf_ (3, 4);

static bool
unindexable (const char *file, struct mur_error **err, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *why = x_vasprintf (fmt, ap);
    va_end (ap);
    return mur_fail (err, E_IDX_001, "%s: %s", file, why);
}

/* The first sentence of the first line that is not blank; NULL when there is none. */
static char *
first_sentence (const char *text)
{
    if (! text)
        return NULL;
    const char *start = text + strspn (text, " \t\r\n");
    size_t line = strcspn (start, "\r\n"), len = line;
    for (size_t i = 0; i < line; i++)
        if (strchr (".!?", start[i]) && (i + 1 == line || isspace ((unsigned char)start[i + 1]))) {
            len = i + 1;
            break;
        }
    while (len && isspace ((unsigned char)start[len - 1]))
        len--;
    return len ? x_strndup (start, len) : NULL;
}

static void
derive_level (struct index_version *v)
{
    if (v->has_level)
        return;
    struct wit_contracts names = { .exports = v->interfaces };
    v->built_at_level = wit_newest_fit (&names);
    v->has_level = v->built_at_level > 0;
}

static bool
check_identity (const char *file, const struct artifact_manifest *m, const char *platform,
                struct mur_error **err)
{
    _cleanup_free_ char *why = name_part_problem (m->name, strlen (m->name));
    if (why)
        return unindexable (file, err, "its name \"%s\" %s", m->name, why);
    if (version_is_reserved (m->version))
        return unindexable (file, err, "version \"%s\" is reserved", m->version);
    if (! version_is_semver (m->version))
        return unindexable (file, err, "version \"%s\" is no semantic version", m->version);
    _cleanup_free_ char *expected = index_asset_file (m->name, m->version, platform);
    if (strcmp (file, expected) != 0)
        return unindexable (file, err, "its packed name and version call for the file name %s",
                            expected);
    bool is_native = m->packaging == PACKAGING_NATIVE;
    if (is_native && ! platform)
        return unindexable (file, err, "a native payload needs its platform in the file name");
    if (! is_native && platform)
        return unindexable (file, err, "a %s payload runs everywhere; its file name may not say %s",
                            packaging_name (m->packaging), platform);
    return true;
}

static bool
take_contracts (struct package *p, struct found *f, struct mur_error **err)
{
    if (f->packaging != PACKAGING_WASM)
        return true;
    _cleanup_contracts_ struct wit_contracts contracts = { 0 };
    _cleanup_error_ struct mur_error *caught = NULL;
    if (package_contracts (p, &contracts, &caught) != PACKAGE_CONTRACTS)
        return unindexable (f->file, err, "%s", caught->message);
    wit_contracts_names (&contracts, &f->version.interfaces);
    return true;
}

static bool
read_package (const char *path, struct found *f, const char *release, struct mur_error **err)
{
    _cleanup_error_ struct mur_error *caught = NULL;
    _cleanup_package_ struct package *p = package_from_file (path, &caught);
    if (! p || ! package_open_zip (p, &caught))
        return unindexable (f->file, err, "%s", caught->message);
    const struct artifact_manifest *m = p->manifest;
    const char *platform = platform_of_file (f->file);
    if (! check_identity (f->file, m, platform, err))
        return false;
    f->bare = x_strdup (m->name);
    f->runtime = x_strdup (m->runtime);
    f->description = first_sentence (m->description);
    f->packaging = m->packaging;
    f->version.version = x_strdup (m->version);
    f->version.release = x_strdup (release);
    f->version.has_level = p->has_level;
    f->version.built_at_level = p->built_at_level;
    f->version.assets = x_new0 (struct index_asset);
    f->version.asset_count = 1;
    f->version.assets[0] = (struct index_asset){
        .file = x_strdup (f->file),
        .platform = platform ? x_strdup (platform) : NULL,
        .sha256 = x_strdup (p->sha256),
    };
    if (! take_contracts (p, f, err))
        return false;
    derive_level (&f->version);
    return true;
}

/* --- the folder --- */

static bool
list_packages (const char *dir, struct strv *files, struct mur_error **err)
{
    _cleanup_closedir_ DIR *d = opendir (dir);
    if (! d)
        return mur_fail_errno (err, E_IO_003, "cannot read the folder %s", dir);
    for (struct dirent *e; (e = readdir (d));) {
        struct stat st;
        if (str_ends (e->d_name, ".mur.zip") &&
            fstatat (dirfd (d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG (st.st_mode))
            strv_push (files, e->d_name);
    }
    strv_sort (files);
    return files->len > 0 || mur_fail (err, E_IDX_001, "%s: no .mur.zip file in it", dir);
}

/* Newest first within one name; names ascending; files of one version ascending. */
static int
found_order (const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    int order = strcmp (x->bare, y->bare);
    if (order == 0)
        order = version_compare (y->version.version, x->version.version);
    return order != 0 ? order : strcmp (x->file, y->file);
}

static bool
check_agreement (const struct found *a, const struct found *b, struct mur_error **err)
{
    const char *what = strcmp (a->runtime, b->runtime) != 0 ? "role"
                       : a->packaging != b->packaging       ? "packaging"
                       : a->version.has_level != b->version.has_level ||
                               a->version.built_at_level != b->version.built_at_level
                           ? "WIT level"
                           : NULL;
    return ! what || unindexable (b->file, err, "its %s differs from that of %s", what, a->file);
}

static void
derive_tags (struct index_artifact *a)
{
    strv_push (&a->tags, a->runtime);
    if (strcmp (a->runtime, "driver") == 0)
        strv_push (&a->tags, "inference");
    for (const char *at = a->name; *at;) {
        size_t len = strcspn (at, "-");
        _cleanup_free_ char *word = x_strndup (at, len);
        if (len && strcmp (word, "murmur") != 0 && ! strv_contains (&a->tags, word))
            strv_push (&a->tags, word);
        at += len + (at[len] != '\0');
    }
}

static struct index_version *
add_version (struct index_artifact *a)
{
    a->versions = x_reallocarray (a->versions, a->version_count + 1, sizeof (*a->versions));
    a->versions[a->version_count] = (struct index_version){ 0 };
    return &a->versions[a->version_count++];
}

static struct index_artifact *
add_artifact (struct artifact_index *x)
{
    x->artifacts = x_reallocarray (x->artifacts, x->count + 1, sizeof (*x->artifacts));
    x->artifacts[x->count] = (struct index_artifact){ 0 };
    return &x->artifacts[x->count++];
}

static void
add_asset (struct index_version *v, struct index_version *from)
{
    v->assets = x_reallocarray (v->assets, v->asset_count + 1, sizeof (*v->assets));
    v->assets[v->asset_count++] = from->assets[0];
    from->asset_count = 0;
}

/* Groups sorted packages. What goes into the index is moved out of <all>. */
static bool
group (struct found *all, size_t count, struct artifact_index *x, struct mur_error **err)
{
    for (size_t i = 0; i < count; i++) {
        bool same_name = i > 0 && strcmp (all[i - 1].bare, all[i].bare) == 0;
        bool same_version =
            same_name && strcmp (x->artifacts[x->count - 1]
                                     .versions[x->artifacts[x->count - 1].version_count - 1]
                                     .version,
                                 all[i].version.version) == 0;
        if (same_version) {
            struct index_artifact *a = &x->artifacts[x->count - 1];
            if (! check_agreement (&all[i - 1], &all[i], err))
                return false;
            add_asset (&a->versions[a->version_count - 1], &all[i].version);
            continue;
        }
        struct index_artifact *a = same_name ? &x->artifacts[x->count - 1] : add_artifact (x);
        if (! same_name) {
            a->name = x_strdup (all[i].bare);
            a->runtime = x_strdup (all[i].runtime);
            a->description = steal_ptr (&all[i].description);
            derive_tags (a);
        }
        struct index_version *v = add_version (a);
        v->version = x_strdup (all[i].version.version);
        v->release = steal_ptr (&all[i].version.release);
        v->has_level = all[i].version.has_level;
        v->built_at_level = all[i].version.built_at_level;
        v->interfaces = all[i].version.interfaces;
        all[i].version.interfaces = (struct strv){ 0 };
        add_asset (v, &all[i].version);
    }
    return true;
}

static bool
read_folder (const struct index_request *r, struct artifact_index *x, struct mur_error **err)
{
    _cleanup_strv_ struct strv files = { 0 };
    if (! list_packages (r->dir, &files, err))
        return false;
    struct found *all = x_new_array (struct found, files.len);
    bool ok = true;
    for (size_t i = 0; ok && i < files.len; i++) {
        _cleanup_free_ char *path = x_asprintf ("%s/%s", r->dir, files.items[i]);
        all[i].file = x_strdup (files.items[i]);
        ok = read_package (path, &all[i], r->release, err);
    }
    if (ok) {
        qsort (all, files.len, sizeof (*all), found_order);
        ok = group (all, files.len, x, err);
    }
    for (size_t i = 0; i < files.len; i++)
        found_clear (&all[i]);
    free (all);
    return ok;
}

/* --- merging --- */

static bool
same_assets (const struct index_version *a, const struct index_version *b)
{
    if (a->asset_count != b->asset_count)
        return false;
    for (size_t i = 0; i < a->asset_count; i++)
        if (strcmp (a->assets[i].file, b->assets[i].file) != 0 ||
            strcmp (a->assets[i].sha256, b->assets[i].sha256) != 0)
            return false;
    return true;
}

static int
newest_first (const void *a, const void *b)
{
    return version_compare (((const struct index_version *)b)->version,
                            ((const struct index_version *)a)->version);
}

static int
by_artifact_name (const void *a, const void *b)
{
    return strcmp (((const struct index_artifact *)a)->name,
                   ((const struct index_artifact *)b)->name);
}

/* Moves the versions of <old> that <a> does not list into it. */
static void
merge_versions (struct index_artifact *a, struct index_artifact *old, struct index_outcome *out)
{
    /* Fields of the artifact itself follow its newest version, wherever that came from. */
    if (version_compare (old->versions[0].version, a->versions[0].version) > 0) {
        struct index_artifact fields = { .name = old->name };
        fields.runtime = steal_ptr (&a->runtime);
        fields.description = steal_ptr (&a->description);
        fields.tags = a->tags;
        a->runtime = steal_ptr (&old->runtime);
        a->description = steal_ptr (&old->description);
        a->tags = old->tags;
        old->tags = (struct strv){ 0 };
        fields.name = NULL;
        index_artifact_clear (&fields);
    }
    for (size_t i = 0; i < old->version_count; i++) {
        struct index_version *was = &old->versions[i];
        struct index_version *now = (struct index_version *)index_find_version (a, was->version);
        if (! now) {
            derive_level (was);
            *add_version (a) = *was;
            *was = (struct index_version){ 0 };
            out->kept++;
        } else if (! same_assets (now, was)) {
            out->replaced++;
        } else if (was->has_level) {
            now->has_level = true;
            now->built_at_level = was->built_at_level;
        }
    }
    qsort (a->versions, a->version_count, sizeof (*a->versions), newest_first);
}

static void
merge_index (struct artifact_index *x, struct artifact_index *old, struct index_outcome *out)
{
    for (size_t i = 0; i < old->count; i++) {
        struct index_artifact *was = &old->artifacts[i];
        struct index_artifact *now = (struct index_artifact *)index_find (x, was->name);
        if (now) {
            merge_versions (now, was, out);
            continue;
        }
        for (size_t v = 0; v < was->version_count; v++)
            derive_level (&was->versions[v]);
        out->kept += was->version_count;
        *add_artifact (x) = *was;
        *was = (struct index_artifact){ 0 };
    }
    qsort (x->artifacts, x->count, sizeof (*x->artifacts), by_artifact_name);
}

static struct artifact_index *
read_older (const struct index_request *r, const char *scope, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    if (! fs_read_path (r->merge, INDEX_BYTES_MAX, &text, err))
        return NULL;
    _cleanup_index_ struct artifact_index *old =
        index_parse (text.data ? text.data : "", text.len, r->merge, err);
    if (! old)
        return NULL;
    if (strcmp (old->scope, scope) != 0)
        return mur_fail (err, E_IDX_003, "%s is the index of scope \"%s\", not of \"%s\"", r->merge,
                         old->scope, scope),
               NULL;
    return steal_ptr (&old);
}

/* --- the command --- */

static bool
is_word (const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)s[i] <= 0x20 || s[i] == 0x7f)
            return false;
    return len > 0;
}

static char *
scope_of_repo (const char *repo, struct mur_error **err)
{
    const char *slash = strchr (repo, '/');
    size_t owner_len = slash ? (size_t)(slash - repo) : 0;
    if (! slash || strchr (slash + 1, '/') || ! is_word (repo, owner_len) ||
        ! is_word (slash + 1, strlen (slash + 1)))
        return mur_fail (err, E_IDX_003, "--repo \"%s\": expected <owner>/<repo>", repo), NULL;
    _cleanup_free_ char *owner = x_strndup (repo, owner_len);
    return name_scope_of_owner (owner, slash + 1, E_IDX_003, err);
}

bool
index_folder (const struct index_request *r, struct index_outcome *out, struct mur_error **err)
{
    *out = (struct index_outcome){ 0 };
    _cleanup_free_ char *scope = scope_of_repo (r->repo, err);
    if (! scope)
        return false;
    if (! is_word (r->release, strlen (r->release)))
        return mur_fail (err, E_IDX_003,
                         "--release \"%s\": a tag is not empty and holds no whitespace",
                         r->release);
    _cleanup_index_ struct artifact_index *old = r->merge ? read_older (r, scope, err) : NULL;
    if (r->merge && ! old)
        return false;
    _cleanup_index_ struct artifact_index *x = x_new0 (struct artifact_index);
    x->scope = x_strdup (scope);
    if (! read_folder (r, x, err))
        return false;
    if (old)
        merge_index (x, old, out);
    out->artifacts = x->count;
    for (size_t i = 0; i < x->count; i++)
        out->versions += x->artifacts[i].version_count;
    out->scope = steal_ptr (&scope);
    _cleanup_free_ char *text = index_text (x);
    if (strlen (text) > INDEX_BYTES_MAX)
        return mur_fail (err, E_IDX_001, "%s: the index would have %zu bytes; at most %u are read",
                         r->dir, strlen (text), INDEX_BYTES_MAX);
    return fs_replace_path (r->output, text, strlen (text), 0644, true, err);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading, writing and asking an artifact index.
 */
#include "artifact/sources/index.h"

#include "artifact/names/name.h"
#include "artifact/names/platform.h"
#include "artifact/names/version.h"
#include "base/alloc.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/json_write.h"

#include <string.h>

/* --- freeing --- */

void
index_version_clear (struct index_version *v)
{
    free (v->version);
    free (v->release);
    strv_free (&v->interfaces);
    for (size_t i = 0; i < v->asset_count; i++) {
        free (v->assets[i].file);
        free (v->assets[i].platform);
        free (v->assets[i].sha256);
    }
    free (v->assets);
    *v = (struct index_version){ 0 };
}

void
index_artifact_clear (struct index_artifact *a)
{
    free (a->name);
    free (a->runtime);
    free (a->description);
    strv_free (&a->tags);
    for (size_t i = 0; i < a->version_count; i++)
        index_version_clear (&a->versions[i]);
    free (a->versions);
    *a = (struct index_artifact){ 0 };
}

void
index_free (struct artifact_index *x)
{
    for (size_t i = 0; i < x->count; i++)
        index_artifact_clear (&x->artifacts[i]);
    free (x->artifacts);
    free (x->scope);
    free (x);
}

/* --- reading --- */

/* A value and where it stands: "artifacts[2].versions[0]". */
struct place {
    const char *what;
    char path[160];
};

static bool fault (const struct place *at, struct mur_error **err, const char *member,
                   const char *fmt, ...) _printf_ (4, 5);

static bool
fault (const struct place *at, struct mur_error **err, const char *member, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *why = x_vasprintf (fmt, ap);
    va_end (ap);
    const char *dot = at->path[0] && member[0] ? "." : "";
    return mur_fail (err, E_IDX_002, "%s: %s%s%s: %s", at->what, at->path, dot, member, why);
}

static struct place
inside (const struct place *at, const char *list, size_t index)
{
    struct place deeper = { .what = at->what };
    snprintf (deeper.path, sizeof (deeper.path), "%.100s%s%s[%zu]", at->path,
              at->path[0] ? "." : "", list, index);
    return deeper;
}

static bool
take_string (const struct place *at, const json_t *object, const char *key, char **out,
             struct mur_error **err)
{
    const json_t *value = json_object_get (object, key);
    if (! json_is_string (value))
        return fault (at, err, key, value ? "expected a string" : "missing");
    if (strlen (json_string_value (value)) != json_string_length (value))
        return fault (at, err, key, "holds a NUL character");
    *out = x_strdup (json_string_value (value));
    return true;
}

static bool
take_list (const struct place *at, const json_t *object, const char *key, bool may_be_empty,
           const json_t **out, struct mur_error **err)
{
    *out = json_object_get (object, key);
    if (! json_is_array (*out))
        return fault (at, err, key, *out ? "expected a list" : "missing");
    if (! may_be_empty && json_array_size (*out) == 0)
        return fault (at, err, key, "is empty");
    return true;
}

static bool
take_strings (const struct place *at, const json_t *object, const char *key, struct strv *out,
              struct mur_error **err)
{
    const json_t *list;
    if (! take_list (at, object, key, true, &list, err))
        return false;
    for (size_t i = 0; i < json_array_size (list); i++) {
        const char *text = json_string_value (json_array_get (list, i));
        struct place item = inside (at, key, i);
        if (! text)
            return fault (&item, err, "", "expected a string");
        strv_push (out, text);
    }
    return true;
}

static bool
read_asset (const struct place *at, const json_t *j, const char *bare, const char *version,
            struct index_asset *a, struct mur_error **err)
{
    if (! json_is_object (j))
        return fault (at, err, "", "expected an object");
    if (! take_string (at, j, "file", &a->file, err))
        return false;
    if (json_object_get (j, "platform")) {
        if (! take_string (at, j, "platform", &a->platform, err))
            return false;
        if (! platform_is_tag (a->platform))
            return fault (at, err, "platform", "\"%s\" is no platform tag", a->platform);
    }
    _cleanup_free_ char *expected = index_asset_file (bare, version, a->platform);
    if (strcmp (a->file, expected) != 0)
        return fault (at, err, "file", "\"%s\" should be \"%s\"", a->file, expected);
    if (! take_string (at, j, "sha256", &a->sha256, err))
        return false;
    return sha256_hex_is_valid (a->sha256) ||
           fault (at, err, "sha256", "expected 64 lower-case hex digits");
}

static bool
read_assets (const struct place *at, const json_t *j, const char *bare, struct index_version *v,
             struct mur_error **err)
{
    const json_t *list;
    if (! take_list (at, j, "assets", false, &list, err))
        return false;
    v->assets = x_new_array (struct index_asset, json_array_size (list));
    for (size_t i = 0; i < json_array_size (list); i++) {
        struct place item = inside (at, "assets", i);
        v->asset_count = i + 1;
        if (! read_asset (&item, json_array_get (list, i), bare, v->version, &v->assets[i], err))
            return false;
        if (i > 0 && strcmp (v->assets[i - 1].file, v->assets[i].file) >= 0)
            return fault (at, err, "assets", "not ascending by file at \"%s\"", v->assets[i].file);
    }
    return true;
}

static bool
has_space_or_control (const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s <= 0x20 || *s == 0x7f)
            return true;
    return false;
}

static bool
read_interfaces (const struct place *at, const json_t *j, struct index_version *v,
                 struct mur_error **err)
{
    if (! take_strings (at, j, "interfaces", &v->interfaces, err))
        return false;
    for (size_t i = 0; i < v->interfaces.len; i++) {
        const char *name = v->interfaces.items[i];
        if (! str_starts (name, "murmur:"))
            return fault (at, err, "interfaces", "\"%s\" does not start with murmur:", name);
        if (i > 0 && strcmp (v->interfaces.items[i - 1], name) >= 0)
            return fault (at, err, "interfaces", "not ascending at \"%s\"", name);
    }
    return true;
}

static bool
read_version (const struct place *at, const json_t *j, const char *bare, struct index_version *v,
              struct mur_error **err)
{
    if (! json_is_object (j))
        return fault (at, err, "", "expected an object");
    if (! take_string (at, j, "version", &v->version, err))
        return false;
    if (version_is_reserved (v->version))
        return fault (at, err, "version", "\"%s\" is reserved", v->version);
    if (! version_is_semver (v->version) || ! version_is_segment (v->version))
        return fault (at, err, "version", "\"%s\" is no semantic version", v->version);
    if (! take_string (at, j, "release", &v->release, err))
        return false;
    if (! v->release[0] || has_space_or_control (v->release))
        return fault (at, err, "release", "is empty or holds whitespace or control characters");
    if (json_object_get (j, "built_at_level")) {
        v->has_level = json_get_u64 (j, "built_at_level", &v->built_at_level);
        if (! v->has_level)
            return fault (at, err, "built_at_level", "expected a non-negative whole number");
    }
    return read_interfaces (at, j, v, err) && read_assets (at, j, bare, v, err);
}

static bool
read_tags (const struct place *at, const json_t *j, struct index_artifact *a,
           struct mur_error **err)
{
    if (! take_strings (at, j, "tags", &a->tags, err))
        return false;
    _cleanup_strv_ struct strv sorted = { 0 };
    for (size_t i = 0; i < a->tags.len; i++)
        strv_push (&sorted, a->tags.items[i]);
    strv_sort (&sorted);
    for (size_t i = 1; i < sorted.len; i++)
        if (strcmp (sorted.items[i - 1], sorted.items[i]) == 0)
            return fault (at, err, "tags", "\"%s\" is repeated", sorted.items[i]);
    return true;
}

static bool
read_head (const struct place *at, const json_t *j, struct index_artifact *a,
           struct mur_error **err)
{
    if (! json_is_object (j))
        return fault (at, err, "", "expected an object");
    if (! take_string (at, j, "name", &a->name, err))
        return false;
    if (! name_part_is_valid (a->name, strlen (a->name))) {
        _cleanup_free_ char *why = name_part_problem (a->name, strlen (a->name));
        return fault (at, err, "name", "\"%s\" %s", a->name, why);
    }
    if (! take_string (at, j, "runtime", &a->runtime, err))
        return false;
    if (! a->runtime[0])
        return fault (at, err, "runtime", "is empty");
    if (json_object_get (j, "description")) {
        if (! take_string (at, j, "description", &a->description, err))
            return false;
        if (! a->description[0])
            return fault (at, err, "description", "is empty");
    }
    return read_tags (at, j, a, err);
}

static bool
read_artifact (const struct place *at, const json_t *j, struct index_artifact *a,
               struct mur_error **err)
{
    const json_t *list;
    if (! read_head (at, j, a, err) || ! take_list (at, j, "versions", false, &list, err))
        return false;
    a->versions = x_new_array (struct index_version, json_array_size (list));
    for (size_t i = 0; i < json_array_size (list); i++) {
        struct place item = inside (at, "versions", i);
        a->version_count = i + 1;
        if (! read_version (&item, json_array_get (list, i), a->name, &a->versions[i], err))
            return false;
        if (i > 0 && version_compare (a->versions[i - 1].version, a->versions[i].version) <= 0)
            return fault (at, err, "versions", "not newest first at \"%s\"",
                          a->versions[i].version);
    }
    return true;
}

static bool
check_schema (const struct place *at, const json_t *root, struct mur_error **err)
{
    const json_t *version = json_object_get (root, "schema_version");
    if (json_is_integer (version) && json_integer_value (version) == 2)
        return true;
    if (! version)
        return fault (at, err, "schema_version", "missing; this is no schema 2 index");
    if ((json_is_integer (version) && json_integer_value (version) == 1) ||
        str_eq (json_string_value (version), "1"))
        return fault (
            at, err, "schema_version",
            "this is a schema 1 index, from before artifacts had scopes; the publisher must "
            "write it anew with `mur index`");
    _cleanup_free_ char *found = json_dumps (version, JSON_ENCODE_ANY | JSON_COMPACT);
    return fault (at, err, "schema_version", "%s is not supported; this mur reads schema 2", found);
}

static bool
check_scope (const struct place *at, const json_t *root, char **scope, struct mur_error **err)
{
    if (! take_string (at, root, "scope", scope, err))
        return false;
    if (! name_part_is_valid (*scope, strlen (*scope)))
        return fault (at, err, "scope", "\"%s\" is no valid scope", *scope);
    if (str_eq (*scope, SCOPE_LOCAL) || str_eq (*scope, SCOPE_BUNDLED))
        return fault (at, err, "scope", "\"%s\" is reserved", *scope);
    return true;
}

struct artifact_index *
index_parse (const char *text, size_t len, const char *what, struct mur_error **err)
{
    struct place top = { .what = what };
    _cleanup_json_ json_t *root = json_parse (text, len, what, E_IDX_002, err);
    if (! root)
        return NULL;
    if (! json_is_object (root))
        return fault (&top, err, "", "expected an object"), NULL;
    _cleanup_index_ struct artifact_index *x = x_new0 (struct artifact_index);
    const json_t *list;
    if (! check_schema (&top, root, err) || ! check_scope (&top, root, &x->scope, err) ||
        ! take_list (&top, root, "artifacts", true, &list, err))
        return NULL;
    x->artifacts = x_new_array (struct index_artifact, json_array_size (list) + 1);
    for (size_t i = 0; i < json_array_size (list); i++) {
        struct place item = inside (&top, "artifacts", i);
        x->count = i + 1;
        if (! read_artifact (&item, json_array_get (list, i), &x->artifacts[i], err))
            return NULL;
        if (i > 0 && strcmp (x->artifacts[i - 1].name, x->artifacts[i].name) >= 0)
            return fault (&top, err, "artifacts", "not ascending by name at \"%s\"",
                          x->artifacts[i].name),
                   NULL;
    }
    return steal_ptr (&x);
}

/* --- writing --- */

static json_t *
strings_json (const struct strv *v)
{
    json_t *list = json_array ();
    for (size_t i = 0; i < v->len; i++)
        json_array_append_new (list, json_string_lossy (v->items[i], strlen (v->items[i])));
    return list;
}

static json_t *
version_json (const struct index_version *v)
{
    json_t *j = json_object ();
    json_set_string (j, "version", v->version);
    json_set_string (j, "release", v->release);
    if (v->has_level)
        json_set_u64 (j, "built_at_level", v->built_at_level);
    json_object_set_new (j, "interfaces", strings_json (&v->interfaces));
    json_t *assets = json_array ();
    for (size_t i = 0; i < v->asset_count; i++) {
        json_t *a = json_object ();
        json_set_string (a, "file", v->assets[i].file);
        if (v->assets[i].platform)
            json_set_string (a, "platform", v->assets[i].platform);
        json_set_string (a, "sha256", v->assets[i].sha256);
        json_array_append_new (assets, a);
    }
    json_object_set_new (j, "assets", assets);
    return j;
}

static json_t *
artifact_json (const struct index_artifact *a)
{
    json_t *j = json_object ();
    json_set_string (j, "name", a->name);
    json_set_string (j, "runtime", a->runtime);
    if (a->description)
        json_set_string (j, "description", a->description);
    json_object_set_new (j, "tags", strings_json (&a->tags));
    json_t *versions = json_array ();
    for (size_t i = 0; i < a->version_count; i++)
        json_array_append_new (versions, version_json (&a->versions[i]));
    json_object_set_new (j, "versions", versions);
    return j;
}

char *
index_text (const struct artifact_index *x)
{
    _cleanup_json_ json_t *root = json_object ();
    json_set_u64 (root, "schema_version", 2);
    json_set_string (root, "scope", x->scope);
    json_t *artifacts = json_array ();
    for (size_t i = 0; i < x->count; i++)
        json_array_append_new (artifacts, artifact_json (&x->artifacts[i]));
    json_object_set_new (root, "artifacts", artifacts);
    _cleanup_free_ char *text = json_pretty (root, JSON_TEXT_ORDERED);
    return x_asprintf ("%s\n", text);
}

/* --- asking --- */

const struct index_artifact *
index_find (const struct artifact_index *x, const char *bare)
{
    for (size_t i = 0; i < x->count; i++)
        if (strcmp (x->artifacts[i].name, bare) == 0)
            return &x->artifacts[i];
    return NULL;
}

const struct index_version *
index_find_version (const struct index_artifact *a, const char *version)
{
    for (size_t i = 0; i < a->version_count; i++)
        if (strcmp (a->versions[i].version, version) == 0)
            return &a->versions[i];
    return NULL;
}

const struct index_asset *
index_asset_for (const struct index_version *v, const char *platform)
{
    const struct index_asset *untagged = NULL;
    for (size_t i = 0; i < v->asset_count; i++) {
        const struct index_asset *a = &v->assets[i];
        if (! a->platform)
            untagged = a;
        else if (strcmp (a->platform, platform) == 0)
            return a;
    }
    return untagged;
}

const struct index_version *
index_newest_fit (const struct index_artifact *a, const char *platform)
{
    for (size_t i = 0; i < a->version_count; i++) {
        const struct index_version *v = &a->versions[i];
        if (wit_names_fit (&v->interfaces, wit_served_level (), NULL) &&
            (! platform || index_asset_for (v, platform)))
            return v;
    }
    return NULL;
}

char *
index_asset_file (const char *bare, const char *version, const char *platform)
{
    return platform ? x_asprintf ("%s-%s-%s.mur.zip", bare, version, platform)
                    : x_asprintf ("%s-%s.mur.zip", bare, version);
}

char *
index_platforms_text (const struct index_version *v)
{
    _cleanup_strv_ struct strv names = { 0 };
    for (size_t i = 0; i < v->asset_count; i++)
        strv_push (&names, v->assets[i].platform ? v->assets[i].platform : "any platform");
    return strv_join (&names, ", ");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/registry/oci_package.h"

#include "artifact/names/platform.h"
#include "base/alloc.h"
#include "manifest/settings/artifact_manifest.h"

#include <string.h>

#define TYPE_PREFIX "application/vnd.murmur."
#define TYPE_OTHER  TYPE_PREFIX "artifact.v1"

static const char note_sha256[] = "dev.murmur.package.sha256";
static const char note_runtime[] = "dev.murmur.runtime";
static const char note_interfaces[] = "dev.murmur.interfaces";
static const char note_level[] = "dev.murmur.level";
static const char note_title[] = "org.opencontainers.image.title";
static const char note_version[] = "org.opencontainers.image.version";
static const char note_description[] = "org.opencontainers.image.description";

static const struct {
    const char *tag, *os, *architecture;
} platforms[] = {
    { "linux-x86_64", "linux", "amd64" },
    { "linux-aarch64", "linux", "arm64" },
    { "darwin-x86_64", "darwin", "amd64" },
    { "darwin-aarch64", "darwin", "arm64" },
};

void
oci_package_clear (struct oci_package *p)
{
    free (p->name);
    free (p->version);
    free (p->runtime);
    free (p->platform);
    strv_free (&p->platforms);
    strv_free (&p->interfaces);
    *p = (struct oci_package){ 0 };
}

bool
oci_platform_words (const char *tag, const char **os, const char **architecture)
{
    for (size_t i = 0; i < ARRAY_LEN (platforms); i++)
        if (str_eq (platforms[i].tag, tag)) {
            *os = platforms[i].os;
            *architecture = platforms[i].architecture;
            return true;
        }
    return false;
}

/* The type of a role; one for all other words. Static. */
static const char *
package_type (const char *runtime)
{
    static const struct {
        const char *runtime, *type;
    } types[] = {
        { "capsule", TYPE_PREFIX "capsule.v1" }, { "tool", TYPE_PREFIX "tool.v1" },
        { "skill", TYPE_PREFIX "skill.v1" },     { "driver", TYPE_PREFIX "driver.v1" },
        { "hook", TYPE_PREFIX "hook.v1" },
    };
    for (size_t i = 0; i < ARRAY_LEN (types); i++)
        if (str_eq (types[i].runtime, runtime))
            return types[i].type;
    return TYPE_OTHER;
}

/* --- reading --- */

static bool
refuse_type (const struct oci_manifest *m, const char *name, struct mur_error **err)
{
    const char *type = json_get_string (m->json, "artifactType");
    if (! type)
        type = json_get_string (json_object_get (m->json, "config"), "mediaType");
    mur_fail (err, E_REG_013, "%s is no package of murmur but of the type \"%.100s\"", name,
              type ? type : m->media_type);
    return mur_hint (err, "a package is put into a registry by `mur publish oci://`");
}

static void
read_notes (const json_t *notes, struct oci_package *out)
{
    const char *version = json_get_string (notes, note_version);
    const char *runtime = json_get_string (notes, note_runtime);
    const char *name = json_get_string (notes, note_title);
    const char *level = json_get_string (notes, note_level);
    const char *at = json_get_string (notes, note_interfaces);
    out->name = name ? x_strdup (name) : NULL;
    out->version = version ? x_strdup (version) : NULL;
    out->runtime = x_strdup (runtime ? runtime : "");
    while (at && *at) {
        size_t len = strcspn (at, ",");
        if (len)
            strv_take (&out->interfaces, x_strndup (at, len));
        at += len + (at[len] == ',');
    }
    char *end = NULL;
    out->built_at_level = level ? strtoull (level, &end, 10) : 0;
    out->has_level = level && *level && ! *end;
}

bool
oci_package_read (const struct oci_manifest *m, const char *name, struct oci_package *out,
                  struct mur_error **err)
{
    *out = (struct oci_package){ 0 };
    const char *type = json_get_string (m->json, "artifactType");
    const json_t *layers = json_object_get (m->json, "layers");
    const json_t *notes = json_object_get (m->json, "annotations");
    struct oci_descriptor layer = { 0 };
    if (! type || ! str_starts (type, TYPE_PREFIX) || oci_is_index (m))
        return refuse_type (m, name, err);
    if (json_array_size (layers) != 1 ||
        ! oci_descriptor_read (json_array_get (layers, 0), &layer) ||
        ! str_eq (layer.media_type, OCI_TYPE_PACKAGE))
        return mur_fail (err, E_REG_013, "%s: a package has one layer, of the type %s", name,
                         OCI_TYPE_PACKAGE);
    const char *said = json_get_string (notes, note_sha256);
    if (said && ! str_eq (said, layer.digest + 7))
        return mur_fail (err, E_REG_002,
                         "%s: its manifest says the package hashes to %.64s, and its layer to %s",
                         name, said, layer.digest + 7);
    memcpy (out->digest, m->digest, sizeof out->digest);
    memcpy (out->layer_digest, layer.digest, sizeof out->layer_digest);
    out->size = layer.size;
    out->manifest_size = m->len;
    read_notes (notes, out);
    return true;
}

/* --- writing --- */

static json_t *
interface_list (struct package *p)
{
    _cleanup_contracts_ struct wit_contracts contracts = { 0 };
    _cleanup_strv_ struct strv names = { 0 };
    json_t *list = json_array ();
    package_contracts (p, &contracts, NULL);
    wit_contracts_names (&contracts, &names);
    for (size_t i = 0; i < names.len; i++)
        json_array_append_new (list, json_string (names.items[i]));
    return list;
}

char *
oci_package_config (struct package *p)
{
    const struct artifact_manifest *m = p->manifest;
    _cleanup_json_ json_t *config = json_object ();
    json_set_string (config, "name", m->name);
    json_set_string (config, "version", m->version);
    json_set_string (config, "runtime", m->runtime);
    json_set_string (config, "sha256", p->sha256);
    json_object_set_new (config, "interfaces", interface_list (p));
    if (p->has_level)
        json_set_u64 (config, "built_at_level", p->built_at_level);
    return json_text (config, JSON_TEXT_ORDERED);
}

static json_t *
notes_of (const struct package *p, const json_t *config)
{
    const struct artifact_manifest *m = p->manifest;
    json_t *notes = json_object ();
    struct buf names = { 0 };
    size_t i;
    json_t *name;
    json_array_foreach (json_object_get (config, "interfaces"), i, name)
        buf_printf (&names, "%s%s", i ? "," : "", json_string_value (name));
    json_set_string (notes, note_sha256, p->sha256);
    json_set_string (notes, note_runtime, m->runtime);
    if (names.len)
        json_set_string (notes, note_interfaces, names.data);
    buf_free (&names);
    if (p->has_level) {
        _cleanup_free_ char *level = x_asprintf ("%llu", (unsigned long long)p->built_at_level);
        json_set_string (notes, note_level, level);
    }
    json_set_string (notes, note_title, m->name);
    json_set_string (notes, note_version, m->version);
    if (m->description)
        json_set_string (notes, note_description, m->description);
    return notes;
}

char *
oci_package_manifest (struct package *p, const char *platform, const char *config)
{
    const struct artifact_manifest *m = p->manifest;
    char config_digest[OCI_DIGEST_LEN + 1];
    _cleanup_free_ char *layer_digest = x_asprintf ("sha256:%s", p->sha256);
    _cleanup_free_ char *file = x_asprintf ("%s-%s%s%s.mur.zip", m->name, m->version,
                                            platform ? "-" : "", platform ? platform : "");
    _cleanup_json_ json_t *parsed = json_loads (config, 0, NULL);
    oci_digest_of (config, strlen (config), config_digest);
    json_t *layer = oci_descriptor_json (OCI_TYPE_PACKAGE, layer_digest, p->len);
    json_t *layer_notes = json_object (), *layers = json_array ();
    json_set_string (layer_notes, note_title, file); /* what other clients call the file */
    json_object_set_new (layer, "annotations", layer_notes);
    json_array_append_new (layers, layer);
    _cleanup_json_ json_t *manifest = json_object ();
    json_set_u64 (manifest, "schemaVersion", 2);
    json_set_string (manifest, "mediaType", OCI_TYPE_MANIFEST);
    json_set_string (manifest, "artifactType", package_type (m->runtime));
    json_object_set_new (manifest, "config",
                         oci_descriptor_json (OCI_TYPE_CONFIG, config_digest, strlen (config)));
    json_object_set_new (manifest, "layers", layers);
    json_object_set_new (manifest, "annotations", notes_of (p, parsed));
    return json_text (manifest, JSON_TEXT_ORDERED);
}

/* --- indexes --- */

/* "linux-x86_64" of a descriptor's platform; NULL: it has none that we know. Static. */
static const char *
platform_tag (const json_t *descriptor)
{
    const json_t *platform = json_object_get (descriptor, "platform");
    const char *os = json_get_string (platform, "os");
    const char *architecture = json_get_string (platform, "architecture");
    for (size_t i = 0; i < ARRAY_LEN (platforms); i++)
        if (str_eq (platforms[i].os, os) && str_eq (platforms[i].architecture, architecture))
            return platforms[i].tag;
    return NULL;
}

bool
oci_is_index (const struct oci_manifest *m)
{
    return str_eq (m->media_type, OCI_TYPE_INDEX) ||
           str_ends (m->media_type, "manifest.list.v2+json");
}

bool
oci_index_find (const struct oci_manifest *index, const char *platform, struct oci_descriptor *out)
{
    size_t i;
    json_t *item;
    json_array_foreach (json_object_get (index->json, "manifests"), i,
                        item) if (str_eq (platform_tag (item), platform) &&
                                  oci_descriptor_read (item, out)) return true;
    return false;
}

void
oci_index_packages (const struct oci_manifest *index, struct strv *out)
{
    size_t i;
    json_t *item;
    json_array_foreach (json_object_get (index->json, "manifests"), i, item)
    {
        const char *tag = platform_tag (item);
        const char *sha256 = json_get_string (json_object_get (item, "annotations"), note_sha256);
        _cleanup_free_ char *digest = sha256 ? x_asprintf ("sha256:%.65s", sha256) : NULL;
        if (tag && digest && oci_digest_is_valid (digest))
            strv_printf (out, "%s %s", tag, sha256);
    }
}

char *
oci_index_platforms (const struct oci_manifest *index)
{
    _cleanup_strv_ struct strv tags = { 0 };
    size_t i;
    json_t *item;
    json_array_foreach (json_object_get (index->json, "manifests"), i, item)
    {
        const char *tag = platform_tag (item);
        if (tag)
            strv_push (&tags, tag);
    }
    return tags.len ? strv_join (&tags, ", ") : x_strdup ("no platform");
}

static json_t *
platform_entry (const char *platform, const struct package *p, const char *manifest)
{
    char digest[OCI_DIGEST_LEN + 1];
    oci_digest_of (manifest, strlen (manifest), digest);
    json_t *entry = oci_descriptor_json (OCI_TYPE_MANIFEST, digest, strlen (manifest));
    json_t *place = json_object (), *notes = json_object ();
    const char *os, *architecture;
    if (oci_platform_words (platform, &os, &architecture)) {
        json_set_string (place, "architecture", architecture);
        json_set_string (place, "os", os);
    }
    json_set_string (entry, "artifactType", package_type (p->manifest->runtime));
    json_set_string (notes, note_sha256, p->sha256);
    json_object_set_new (entry, "annotations", notes);
    json_object_set_new (entry, "platform", place);
    return entry;
}

char *
oci_index_with (const struct oci_manifest *index, const struct package *p, const char *platform,
                const char *manifest)
{
    _cleanup_json_ json_t *out = index ? json_deep_copy (index->json) : json_object ();
    json_t *list = json_array ();
    size_t i;
    json_t *item;
    json_array_foreach (json_object_get (out, "manifests"), i,
                        item) if (! str_eq (platform_tag (item), platform))
        json_array_append (list, item);
    json_array_append_new (list, platform_entry (platform, p, manifest));
    json_set_u64 (out, "schemaVersion", 2);
    json_set_string (out, "mediaType", OCI_TYPE_INDEX);
    json_set_string (out, "artifactType", package_type (p->manifest->runtime));
    json_object_set_new (out, "manifests", list);
    return json_text (out, JSON_TEXT_ORDERED);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/store/store_meta.h"

#include "artifact/store/store_internal.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/json_write.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "manifest/settings/artifact_manifest.h"

#include <string.h>

#define SIDECAR_MAX (8u * 1024 * 1024)

void
store_meta_clear (struct store_meta *m)
{
    free (m->name);
    free (m->version);
    free (m->runtime);
    free (m->artifact_runtime);
    strv_free (&m->platforms);
    wit_contracts_clear (&m->contracts);
    *m = (struct store_meta){ 0 };
}

/* --- writing --- */

static json_t *
names_json (const struct strv *names)
{
    json_t *list = json_array ();
    for (size_t i = 0; i < names->len; i++)
        json_array_append_new (list, json_string_lossy (names->items[i], strlen (names->items[i])));
    return list;
}

/* "linux-x86_64" as ["linux", "x86_64"]; other texts are cut at their first dash. */
static json_t *
platforms_json (const struct strv *platforms)
{
    json_t *list = json_array ();
    for (size_t i = 0; i < platforms->len; i++) {
        const char *tag = platforms->items[i];
        const char *dash = strchr (tag, '-');
        json_t *pair = json_array ();
        size_t os_len = dash ? (size_t)(dash - tag) : strlen (tag);
        json_array_append_new (pair, json_string_lossy (tag, os_len));
        const char *arch = dash ? dash + 1 : "";
        json_array_append_new (pair, json_string_lossy (arch, strlen (arch)));
        json_array_append_new (list, pair);
    }
    return list;
}

char *
store_meta_text (const struct store_meta *m)
{
    _cleanup_json_ json_t *root = json_object ();
    json_t *meta = json_object ();
    json_object_set_new (root, "meta", meta);
    json_set_string (meta, "name", m->name);
    json_set_string (meta, "version", m->version);
    json_set_string (meta, "runtime", m->runtime);
    json_set_string (meta, "artifact_runtime", m->artifact_runtime);
    json_object_set_new (meta, "platforms", platforms_json (&m->platforms));
    json_set_string (meta, "description", NULL);
    json_object_set_new (meta, "tags", json_array ());
    if (m->has_contracts) {
        json_t *contracts = json_object ();
        json_object_set_new (contracts, "exports", names_json (&m->contracts.exports));
        json_object_set_new (contracts, "imports", names_json (&m->contracts.imports));
        json_object_set_new (meta, "wit_contracts", contracts);
    }
    if (m->has_owner_id)
        json_set_u64 (meta, "owner_id", m->owner_id);
    if (m->has_level)
        json_set_u64 (meta, "built_at_level", m->built_at_level);
    return json_pretty (root, JSON_TEXT_ORDERED);
}

/* --- reading --- */

static void
take_names (const json_t *object, const char *key, struct strv *out)
{
    size_t i;
    json_t *item;
    json_array_foreach (json_object_get (object, key), i, item)
    {
        if (json_is_string (item))
            strv_push (out, json_string_value (item));
    }
}

static void
take_platforms (const json_t *list, struct strv *out)
{
    size_t i;
    json_t *pair;
    json_array_foreach (list, i, pair)
    {
        const char *os = json_string_value (json_array_get (pair, 0));
        const char *arch = json_string_value (json_array_get (pair, 1));
        if (os && arch)
            strv_printf (out, "%s-%s", os, arch);
    }
}

/* Parses it. Returns false when it is no such JSON. */
static bool
store_meta_parse (const char *text, size_t len, struct store_meta *out)
{
    *out = (struct store_meta){ 0 };
    _cleanup_json_ json_t *root = json_parse (text, len, "sidecar", E_IO_003, NULL);
    const json_t *meta = json_object_get (root, "meta");
    const char *runtime = json_get_string (meta, "runtime");
    if (! runtime)
        return false;
    const char *role = json_get_string (meta, "artifact_runtime");
    out->runtime = x_strdup (runtime);
    out->artifact_runtime = x_strdup (role ? role : "");
    take_platforms (json_object_get (meta, "platforms"), &out->platforms);
    const json_t *contracts = json_object_get (meta, "wit_contracts");
    if (json_is_object (contracts)) {
        out->has_contracts = true;
        take_names (contracts, "exports", &out->contracts.exports);
        take_names (contracts, "imports", &out->contracts.imports);
    }
    out->has_owner_id = json_get_u64 (meta, "owner_id", &out->owner_id);
    out->has_level = json_get_u64 (meta, "built_at_level", &out->built_at_level);
    return true;
}

void
store_meta_of_package (struct package *p, const char *name, const char *version,
                       const char *platform, struct store_meta *out)
{
    *out = (struct store_meta){ .name = x_strdup (name), .version = x_strdup (version) };
    bool is_open = package_try_open (p);
    out->runtime = x_strdup (packaging_name (is_open ? p->manifest->packaging : PACKAGING_WASM));
    out->artifact_runtime = x_strdup (is_open ? p->manifest->runtime : "");
    if (platform)
        strv_push (&out->platforms, platform);
    out->has_contracts = package_contracts (p, &out->contracts, NULL) == PACKAGE_CONTRACTS;
    if (is_open && package_open_zip (p, NULL)) {
        out->has_level = p->has_level;
        out->built_at_level = p->built_at_level;
    }
}

bool
store_meta_read (const struct store_payload *payload, const char *name, const char *version,
                 struct store_meta *out, struct mur_error **err)
{
    *out = (struct store_meta){ 0 };
    _cleanup_free_ char *path = x_asprintf ("%s/%s.meta.json", payload->dir, payload->stem);
    _cleanup_buf_ struct buf text = { 0 };
    if (fs_read_path (path, SIDECAR_MAX, &text, NULL) &&
        store_meta_parse (text.data ? text.data : "", text.len, out)) {
        out->name = x_strdup (name);
        out->version = x_strdup (version);
        return true;
    }
    store_meta_clear (out);
    _cleanup_package_ struct package *p = package_from_file (payload->path, err);
    if (! p)
        return false;
    store_meta_of_package (p, name, version, payload->platform, out);
    return true;
}

char *
store_meta_derived (struct package *p, const char *name, const char *version, const char *platform)
{
    struct store_meta meta;
    store_meta_of_package (p, name, version, platform, &meta);
    char *text = store_meta_text (&meta);
    store_meta_clear (&meta);
    return text;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/image.h"

#include "artifact/names/name.h"
#include "artifact/names/platform.h"
#include "artifact/registry/oci_package.h"
#include "artifact/store/lock_file.h"
#include "artifact/store/resolve.h"
#include "artifact/store/store_meta.h"
#include "base/alloc.h"
#include "base/fdio.h"
#include "deploy/deploy_internal.h"
#include "deploy/tar.h"
#include "deploy/team.h"
#include "fs/paths.h"

#include <errno.h>
#include <string.h>

#define CAPSULE_DIR  "capsule"
#define CAPSULE_HOME CAPSULE_DIR "/.murmur"

/* One file of the layer. Its bytes are read when they are written, so that one package at a time is
 * in memory. */
struct file {
    char *name;     /* in the layer */
    char *text;     /* its bytes; NULL: those of <package> */
    size_t len;     /* of text */
    char *source;   /* archive of a package */
    char *sha256;   /* of the archive */
    bool is_shared; /* the capsule's own store has it, too */
};

struct building {
    const struct image_request *request;
    struct stores *stores;
    struct file *files;
    size_t len, cap;
    json_t *notes; /* digest of each package, by name@version */
    struct layout *layout;
    json_t *manifest, *config; /* JSON, being put together */
    json_t *layers;            /* borrowed from the manifest */
    uint64_t size;
};

static void
building_clear (struct building *b)
{
    for (size_t i = 0; i < b->len; i++) {
        free (b->files[i].name);
        free (b->files[i].text);
        free (b->files[i].source);
        free (b->files[i].sha256);
    }
    free (b->files);
    if (b->stores)
        stores_free (b->stores);
    if (b->layout)
        layout_close (b->layout);
    json_decref (b->notes);
    json_decref (b->manifest);
    json_decref (b->config);
}

/* --- what is in it --- */

static struct file *
add_file (struct building *b, char *name)
{
    x_grow (b->files, b->len, b->cap);
    b->files[b->len] = (struct file){ .name = name };
    return &b->files[b->len++];
}

static void
add_text (struct building *b, char *name, char *text, size_t len, bool is_shared)
{
    struct file *f = add_file (b, name);
    f->text = text;
    f->len = len;
    f->is_shared = is_shared;
}

/* The three files of a payload, once. */
static void
add_payload (struct building *b, const struct resolved *r)
{
    const char *platform = r->payload.platform;
    _cleanup_free_ char *key = x_asprintf ("%s@%s", r->name, r->version);
    _cleanup_free_ char *stem =
        x_asprintf ("artifacts/%s/%s/%s", r->name, r->version, r->payload.stem);
    if (json_object_get (b->notes, key))
        return;
    json_set_string (b->notes, key, r->package->sha256);
    char *meta = store_meta_derived (r->package, r->name, r->version, platform);
    add_text (b, x_asprintf ("%s.meta.json", stem), meta, strlen (meta), true);
    add_text (b, x_asprintf ("%s.sha256", stem), x_strdup (r->package->sha256), SHA256_HEX_LEN,
              true);
    struct file *f = add_file (b, x_asprintf ("%s.mur.zip", stem));
    f->source = x_strdup (r->payload.path);
    f->sha256 = x_strdup (r->package->sha256);
    f->is_shared = true;
}

/* Every artifact a manifest names; pinned into <pins> when that is not NULL. */
static bool
add_artifacts (struct building *b, const struct capsule_manifest *m, const struct lock *lock,
               struct lock *pins, struct mur_error **err)
{
    for (size_t i = 0; i < m->artifacts.len; i++) {
        const struct artifact_entry *e = &m->artifacts.items[i];
        const struct resolve_use use = { .field = "artifacts", .is_plain = true };
        if (e->source) {
            mur_fail (err, E_DEP_005, "%s: artifact %s is read from %s, a folder of this machine",
                      m->file, e->name, e->source);
            return mur_hint (err, "`mur build` and `mur publish` it, and name its version");
        }
        _cleanup_resolved_ struct resolved *r =
            artifact_resolve (b->stores, lock, e->name, e->version, &use, err);
        if (! r)
            return false;
        if (pins)
            resolved_pin (r, pins);
        add_payload (b, r);
    }
    return true;
}

static bool
add_capsule (struct building *b, const char *reference, struct mur_error **err)
{
    struct install_ref ref = { 0 };
    if (! install_ref_parse (reference, &ref, err))
        return false;
    bool is_named = ref.kind == INSTALL_NAME && ref.version;
    _cleanup_resolved_ struct resolved *r =
        is_named ? capsule_resolve (b->stores, ref.name, ref.version, NULL, err) : NULL;
    install_ref_clear (&ref);
    if (! is_named)
        return mur_fail (err, E_IO_003, "%s: expected <scope>/<name>@<version> of a capsule",
                         reference);
    if (! r)
        return false;
    _cleanup_ (capsule_manifest_freep) struct capsule_manifest *m = capsule_manifest_parse (
        r->package->manifest_text, r->package->manifest_len, reference, MANIFEST_SECRETLESS, err);
    if (! m || ! deploy_check_keys (m, err))
        return false;
    add_payload (b, r);
    return add_artifacts (b, m, NULL, NULL, err);
}

/* The pins it has, else those a first run would make; nothing of the project is written. */
static bool
add_packages (struct building *b, const struct capsule_manifest *m, struct mur_error **err)
{
    _cleanup_lock_ struct lock *lock = lock_read (b->request->dir, err);
    if (! lock || ! add_artifacts (b, m, lock, lock->exists ? NULL : lock, err))
        return false;
    char *text = lock->exists ? x_strdup (lock->base) : lock_text (lock);
    add_text (b, x_strdup (CAPSULE_DIR "/" LOCK_FILE_NAME), text, strlen (text), false);
    for (size_t i = 0; i < b->request->capsule_count; i++)
        if (! add_capsule (b, b->request->capsules[i], err))
            return false;
    return true;
}

/* The manifest, and the component of a capsule that is a script. */
static bool
add_own (struct building *b, const char *path, const struct capsule_manifest *m,
         struct mur_error **err)
{
    struct buf text = { 0 };
    if (! fs_read_regular (path, PACKAGE_FILE_MAX, &text, err))
        return false;
    size_t len = text.len;
    add_text (b, x_strdup (CAPSULE_DIR "/murmur.yaml"), buf_steal (&text), len, false);
    if (m->inference)
        return true;
    _cleanup_free_ char *component = package_component_in (b->request->dir, err);
    if (! component || ! fs_read_regular (component, PACKAGE_FILE_MAX, &text, err))
        return false;
    len = text.len;
    add_text (b, x_asprintf (CAPSULE_DIR "/%s", strrchr (component, '/') + 1), buf_steal (&text),
              len, false);
    return true;
}

/* What it is called, and the digest of each package in it. */
static void
annotate (struct building *b, const struct capsule_manifest *m)
{
    json_t *notes = json_object ();
    const char *key;
    json_t *sha256;
    json_set_string (notes, "org.opencontainers.image.title", m->name);
    json_set_string (notes, "org.opencontainers.image.version", m->version);
    json_object_foreach (b->notes, key, sha256)
    {
        _cleanup_free_ char *name = x_asprintf ("dev.murmur.package.sha256/%s", key);
        json_object_set (notes, name, sha256);
    }
    json_object_set_new (b->manifest, "annotations", notes);
}

/* A member's package as it was admitted, and what its manifest names. */
static bool
add_member (struct building *b, const struct admitted_member *member, struct mur_error **err)
{
    if (! deploy_check_keys (member->manifest, err))
        return false;
    add_payload (b, member->capsule);
    return add_artifacts (b, member->manifest, NULL, NULL, err);
}

/* Roster and lock, and the members; it is called what its entry is. */
static bool
collect_roster (struct building *b, struct mur_error **err)
{
    _cleanup_team_ struct team team = { 0 };
    if (! team_read (b->request->dir, &team, err))
        return false;
    b->stores = stores_new (b->request->dir, err);
    if (! b->stores)
        return false;
    size_t len = team.text.len;
    add_text (b, x_strdup (CAPSULE_DIR "/roster.yaml"), buf_steal (&team.text), len, false);
    add_text (b, x_strdup (CAPSULE_DIR "/" LOCK_FILE_NAME), x_strdup (team.lock_text),
              strlen (team.lock_text), false);
    for (size_t i = 0; i < team.admission.roster->len; i++)
        if (! add_member (b, &team.admission.members[i], err))
            return mur_context (err, "member '%s'", team.admission.roster->members[i].name);
    for (size_t i = 0; i < b->request->capsule_count; i++)
        if (! add_capsule (b, b->request->capsules[i], err))
            return false;
    annotate (b, team_entry (&team));
    return true;
}

static bool
collect_capsule (struct building *b, struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("%s/murmur.yaml", b->request->dir);
    _cleanup_ (capsule_manifest_freep) struct capsule_manifest *m =
        capsule_manifest_read (path, MANIFEST_SECRETLESS, err);
    b->stores = m ? stores_new (b->request->dir, err) : NULL;
    if (! b->stores || ! deploy_check_keys (m, err) || ! add_own (b, path, m, err) ||
        ! add_packages (b, m, err))
        return false;
    annotate (b, m);
    return true;
}

/* --- the layer --- */

static int
compare_files (const void *a, const void *b)
{
    return strcmp (((const struct file *)a)->name, ((const struct file *)b)->name);
}

/* The folders a name lies in that have not been there yet; names come sorted. */
static void
add_folders (struct tar *t, struct strv *seen, const char *name)
{
    for (const char *slash = strchr (name, '/'); slash; slash = strchr (slash + 1, '/')) {
        _cleanup_free_ char *folder = x_strndup (name, (size_t)(slash - name));
        if (strv_contains (seen, folder))
            continue;
        tar_add_dir (t, folder);
        strv_take (seen, steal_ptr (&folder));
    }
}

static bool
write_file (struct tar *t, const struct file *f, struct mur_error **err)
{
    if (f->text) {
        tar_add_file (t, f->name, f->text, f->len);
        return true;
    }
    _cleanup_package_ struct package *p = package_from_file (f->source, err);
    if (! p)
        return false;
    if (! str_eq (p->sha256, f->sha256))
        return mur_fail (err, E_REG_002, "%s changed while it was packed", f->source);
    tar_add_file (t, f->name, p->bytes, p->len);
    return true;
}

static bool
write_entries (struct building *b, struct tar *t, struct mur_error **err)
{
    _cleanup_strv_ struct strv seen = { 0 };
    qsort (b->files, b->len, sizeof *b->files, compare_files);
    for (size_t i = 0; i < b->len; i++) {
        add_folders (t, &seen, b->files[i].name);
        if (! write_file (t, &b->files[i], err))
            return false;
    }
    for (size_t i = 0; i < b->len; i++) {
        _cleanup_free_ char *second = x_asprintf (CAPSULE_HOME "/%s", b->files[i].name);
        if (! b->files[i].is_shared)
            continue;
        add_folders (t, &seen, second);
        tar_add_link (t, second, b->files[i].name);
    }
    return true;
}

static bool
write_layer (struct building *b, struct mur_error **err)
{
    struct tar t;
    char hex[SHA256_HEX_LEN + 1];
    _cleanup_close_ int fd = layout_blob_new (b->layout, err);
    if (fd < 0)
        return false;
    tar_begin (&t, fd);
    bool is_whole = write_entries (b, &t, err);
    if (! tar_end (&t, hex) && is_whole)
        return mur_fail_errno (err, E_IO_003, "cannot write the layer below %s", b->layout->path);
    if (! is_whole || ! layout_blob_keep (b->layout, hex, err))
        return false;
    _cleanup_free_ char *digest = x_asprintf ("sha256:%s", hex);
    json_array_append_new (b->layers, oci_descriptor_json (LAYOUT_TYPE_LAYER, digest, t.len));
    json_array_append_new (json_object_get (json_object_get (b->config, "rootfs"), "diff_ids"),
                           json_string (digest));
    json_array_append_new (json_object_get (b->config, "history"),
                           json_pack ("{s:s}", "created_by", "mur image build"));
    b->size += t.len;
    return true;
}

/* --- the base --- */

static bool
copy_blob (struct building *b, const struct layout *from, const struct oci_descriptor *blob,
           struct mur_error **err)
{
    char piece[65536];
    if (layout_has (b->layout, blob))
        return true;
    _cleanup_close_ int in = layout_open_blob (from, blob, err);
    _cleanup_close_ int out = in >= 0 ? layout_blob_new (b->layout, err) : -1;
    struct sha256 *sha = out >= 0 ? sha256_new () : NULL;
    char hex[SHA256_HEX_LEN + 1];
    bool ok = sha;
    for (ssize_t n = 1; ok && n > 0;) {
        n = read (in, piece, sizeof piece);
        ok = n >= 0 && fd_write_all (out, piece, (size_t)n);
        if (ok)
            sha256_add (sha, piece, (size_t)n);
    }
    if (! sha)
        return false;
    sha256_finish (sha, hex);
    if (! ok)
        return mur_fail_errno (err, E_IO_003, "cannot copy %s of %s", blob->digest, from->path);
    return str_eq (hex, blob->digest + 7)
               ? layout_blob_keep (b->layout, hex, err)
               : mur_fail (err, E_REG_002, "%s: %s changed while it was read", from->path,
                           blob->digest);
}

static bool
judge_base (const struct building *b, const char *path, const json_t *config,
            struct mur_error **err)
{
    const char *os, *architecture, *has = json_get_string (config, "architecture");
    const json_t *diffs = json_object_get (json_object_get (config, "rootfs"), "diff_ids");
    if (! oci_platform_words (platform_host (), &os, &architecture) ||
        ! str_eq (json_get_string (config, "os"), os) || ! str_eq (has, architecture))
        return mur_fail (err, E_DEP_005, "--base %s is an image for %s/%s, and this machine is %s",
                         path, json_get_string (config, "os"), has, platform_host ());
    return json_array_size (diffs) == json_array_size (b->layers) ||
           mur_fail (err, E_REG_013, "%s: its configuration tells of other layers than it has",
                     path);
}

/* Its layers come first, and its settings stay but for what is started. */
static bool
take_base (struct building *b, struct mur_error **err)
{
    struct oci_descriptor at, blob;
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_layout_ struct layout *base = layout_open (b->request->base, err);
    _cleanup_json_ json_t *image = base ? layout_image (base, err) : NULL;
    if (! image || ! oci_descriptor_read (image, &at))
        return false;
    _cleanup_json_ json_t *manifest = layout_manifest (base, &at, err);
    if (! manifest || ! oci_descriptor_read (json_object_get (manifest, "config"), &blob) ||
        ! layout_read (base, &blob, OCI_MANIFEST_MAX, &text, err))
        return false;
    json_decref (b->config);
    b->config = json_parse (text.data, text.len, base->path, E_REG_013, err);
    if (! b->config)
        return false;
    size_t i;
    json_t *layer;
    json_array_foreach (json_object_get (manifest, "layers"), i, layer)
    {
        json_array_append (b->layers, layer);
        oci_descriptor_read (layer, &blob);
        if (! copy_blob (b, base, &blob, err))
            return false;
        b->size += blob.size;
    }
    if (! judge_base (b, base->path, b->config, err))
        return false;
    if (! json_is_array (json_object_get (b->config, "history")))
        json_object_set_new (b->config, "history", json_array ());
    if (! json_is_object (json_object_get (b->config, "config")))
        json_object_set_new (b->config, "config", json_object ());
    json_object_update_new (
        json_object_get (b->config, "config"),
        json_pack ("{s:[s], s:[sss]}", "Entrypoint", "mur", "Cmd", "run",
                   b->request->is_roster ? "--roster" : "--manifest",
                   b->request->is_roster ? "/" CAPSULE_DIR : "/" CAPSULE_DIR "/murmur.yaml"));
    return true;
}

/* --- the whole --- */

static bool
start (struct building *b, struct mur_error **err)
{
    const char *os, *architecture;
    if (! oci_platform_words (platform_host (), &os, &architecture))
        return mur_fail (err, E_DEP_005, "images have no name for the platform %s",
                         platform_host ());
    b->notes = json_object ();
    b->config = json_pack ("{s:s, s:s, s:{}, s:{s:s, s:[]}, s:[]}", "architecture", architecture,
                           "os", os, "config", "rootfs", "type", "layers", "diff_ids", "history");
    b->manifest = json_pack ("{s:i, s:s, s:s, s:{}, s:[]}", "schemaVersion", 2, "mediaType",
                             OCI_TYPE_MANIFEST, "artifactType", IMAGE_TYPE, "config", "layers");
    b->layers = json_object_get (b->manifest, "layers");
    return true;
}

static bool
put_json (struct building *b, const json_t *json, char digest[OCI_DIGEST_LEN + 1], size_t *len,
          struct mur_error **err)
{
    _cleanup_free_ char *text = json_text (json, JSON_TEXT_ORDERED);
    *len = strlen (text);
    b->size += *len;
    oci_digest_of (text, *len, digest);
    return layout_put (b->layout, text, *len, err);
}

static bool
finish (struct building *b, struct image_made *out, struct mur_error **err)
{
    size_t len;
    json_t *notes = json_object_get (b->manifest, "annotations");
    if (! put_json (b, b->config, out->digest, &len, err))
        return false;
    json_object_set_new (b->manifest, "config",
                         oci_descriptor_json (LAYOUT_TYPE_CONFIG, out->digest, len));
    if (! put_json (b, b->manifest, out->digest, &len, err))
        return false;
    _cleanup_json_ json_t *entry = oci_descriptor_json (OCI_TYPE_MANIFEST, out->digest, len);
    json_object_set_new (entry, "platform",
                         json_pack ("{s:O, s:O}", "architecture",
                                    json_object_get (b->config, "architecture"), "os",
                                    json_object_get (b->config, "os")));
    out->size = b->size;
    out->packages = json_object_size (b->notes);
    out->layers = json_array_size (b->layers);
    return layout_finish (b->layout, entry,
                          json_get_string (notes, "org.opencontainers.image.version"), err);
}

bool
image_build (const struct image_request *r, struct image_made *out, struct mur_error **err)
{
    struct building b = { .request = r };
    *out = (struct image_made){ 0 };
    bool ok =
        start (&b, err) && (r->is_roster ? collect_roster (&b, err) : collect_capsule (&b, err));
    b.layout = ok ? layout_create (r->output, err) : NULL;
    ok = b.layout && (! r->base || take_base (&b, err)) && write_layer (&b, err) &&
         finish (&b, out, err);
    building_clear (&b);
    return ok;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/layout.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "fs/replace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define MARK      "oci-layout"
#define MARK_TEXT "{\"imageLayoutVersion\":\"1.0.0\"}"
#define INDEX     "index.json"
#define BLOB_MAX  ((uint64_t)1 << 40)

/* A blob that got no name. */
static void
forget_new (struct layout *l)
{
    if (l->unnamed)
        unlinkat (l->blobs, l->unnamed, 0);
    free (steal_ptr (&l->unnamed));
}

void
layout_close (struct layout *l)
{
    forget_new (l);
    if (l->dir >= 0)
        close (l->dir);
    if (l->blobs >= 0)
        close (l->blobs);
    strv_free (l->added);
    free (l->added);
    free (l->path);
    free (l);
}

static struct layout *
layout_new (const char *path)
{
    struct layout *l = x_new0 (struct layout);
    l->path = x_strdup (path);
    l->dir = l->blobs = -1;
    l->added = x_new0 (struct strv);
    return l;
}

/* --- opening --- */

/* A small ordinary file of the folder. A pipe or a device is not waited for. */
static bool
read_small (const struct layout *l, const char *name, struct buf *out, struct mur_error **err)
{
    struct stat st;
    _cleanup_close_ int fd =
        openat (l->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT)
        return mur_fail (err, E_REG_013, "%s is no OCI image layout: it has no %s", l->path, name);
    if (fd < 0 || fstat (fd, &st) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s/%s", l->path, name);
    if (! S_ISREG (st.st_mode))
        return mur_fail (err, E_REG_013, "%s/%s is no ordinary file", l->path, name);
    return fd_read_all (fd, OCI_MANIFEST_MAX, out) ||
           mur_fail_errno (err, E_IO_003, "cannot read %s/%s", l->path, name);
}

static bool
check_mark (const struct layout *l, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    if (! read_small (l, MARK, &text, err))
        return false;
    _cleanup_json_ json_t *mark = json_parse (text.data, text.len, MARK, E_REG_013, NULL);
    return str_eq (json_get_string (mark, "imageLayoutVersion"), "1.0.0") ||
           mur_fail (err, E_REG_013, "%s: its %s says another version than 1.0.0", l->path, MARK);
}

static bool
open_blobs (struct layout *l, struct mur_error **err)
{
    _cleanup_close_ int kinds =
        openat (l->dir, "blobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (kinds >= 0)
        l->blobs = openat (kinds, "sha256", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return l->blobs >= 0 || mur_fail_errno (err, E_IO_003, "cannot open %s/blobs/sha256", l->path);
}

struct layout *
layout_open (const char *path, struct mur_error **err)
{
    _cleanup_layout_ struct layout *l = layout_new (path);
    l->dir = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->dir < 0)
        return mur_fail_errno (err, errno == ENOENT ? E_IO_001 : E_IO_003, "cannot open %s", path),
               NULL;
    return check_mark (l, err) && open_blobs (l, err) ? steal_ptr (&l) : NULL;
}

static bool
is_empty (int dir_fd)
{
    int fd = openat (dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_closedir_ DIR *d = fd >= 0 ? fdopendir (fd) : NULL;
    for (struct dirent *e; d && (e = readdir (d));)
        if (! str_eq (e->d_name, ".") && ! str_eq (e->d_name, ".."))
            return false;
    return d != NULL;
}

/* The empty folder becomes one. */
static bool
lay_out (const struct layout *l, struct mur_error **err)
{
    static const char *const folders[] = { "blobs", "blobs/sha256" };
    for (size_t i = 0; i < ARRAY_LEN (folders); i++)
        if (mkdirat (l->dir, folders[i], 0755) < 0 && errno != EEXIST)
            return mur_fail_errno (err, E_IO_003, "cannot make %s/%s", l->path, folders[i]);
    return fs_replace_at (l->dir, MARK, MARK_TEXT, strlen (MARK_TEXT), 0644, false, err);
}

struct layout *
layout_create (const char *path, struct mur_error **err)
{
    _cleanup_layout_ struct layout *l = layout_new (path);
    if (mkdir (path, 0755) < 0 && errno != EEXIST)
        return mur_fail_errno (err, E_IO_003, "cannot make %s", path), NULL;
    l->dir = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->dir < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s", path), NULL;
    if (is_empty (l->dir) ? ! lay_out (l, err) : ! check_mark (l, NULL)) {
        if (! err || ! *err) {
            mur_fail (err, E_IO_003, "%s holds other things than an OCI image layout", path);
            mur_hint (err, "name a folder that is new, empty, or a layout to be replaced");
        }
        return NULL;
    }
    return open_blobs (l, err) ? steal_ptr (&l) : NULL;
}

/* --- reading --- */

static bool
is_image_type (const char *type)
{
    return str_eq (type, OCI_TYPE_MANIFEST) ||
           str_eq (type, "application/vnd.docker.distribution.manifest.v2+json");
}

json_t *
layout_image (const struct layout *l, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    struct oci_descriptor at;
    if (! read_small (l, INDEX, &text, err))
        return NULL;
    _cleanup_json_ json_t *index = json_parse (text.data, text.len, INDEX, E_REG_013, NULL);
    json_t *list = json_object_get (index, "manifests"), *image = json_array_get (list, 0);
    if (! json_is_array (list))
        return mur_fail (err, E_REG_013, "%s/%s is no index of images", l->path, INDEX), NULL;
    if (json_array_size (list) != 1) {
        mur_fail (err, E_REG_013, "%s holds %zu images, and one is taken", l->path,
                  json_array_size (list));
        mur_hint (err, "copy the one you mean into a layout of its own");
        return NULL;
    }
    if (oci_descriptor_read (image, &at) && ! is_image_type (at.media_type))
        return mur_fail (err, E_REG_013, "%s holds a thing of the type \"%.100s\", and no image",
                         l->path, at.media_type),
               NULL;
    if (! oci_descriptor_read (image, &at))
        return mur_fail (err, E_REG_013, "%s/%s: its image has no sha256 digest and size", l->path,
                         INDEX),
               NULL;
    return json_incref (image);
}

static int
open_named (const struct layout *l, const struct oci_descriptor *blob, struct mur_error **err)
{
    struct stat st;
    _cleanup_close_ int fd = openat (l->blobs, blob->digest + 7,
                                     O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat (fd, &st) < 0)
        return mur_fail_errno (err, E_IO_003, "%s: cannot open the blob %s", l->path, blob->digest),
               -1;
    if (! S_ISREG (st.st_mode))
        return mur_fail (err, E_REG_013, "%s: the blob %s is no ordinary file", l->path,
                         blob->digest),
               -1;
    if ((uint64_t)st.st_size != blob->size)
        return mur_fail (err, E_REG_002, "%s: the blob %s has %lld bytes, and should have %llu",
                         l->path, blob->digest, (long long)st.st_size,
                         (unsigned long long)blob->size),
               -1;
    return steal_fd (&fd);
}

static bool
refuse_bytes (const struct layout *l, const struct oci_descriptor *blob, struct mur_error **err)
{
    return mur_fail (err, E_REG_002, "%s: the bytes of the blob %s have another digest", l->path,
                     blob->digest);
}

int
layout_open_blob (const struct layout *l, const struct oci_descriptor *blob, struct mur_error **err)
{
    char hex[SHA256_HEX_LEN + 1];
    _cleanup_close_ int fd = open_named (l, blob, err);
    if (fd < 0)
        return -1;
    if (! sha256_hex_fd_upto (fd, BLOB_MAX, hex) || lseek (fd, 0, SEEK_SET) < 0)
        return mur_fail (err, E_IO_003, "%s: cannot read the blob %s", l->path, blob->digest), -1;
    return str_eq (hex, blob->digest + 7) ? steal_fd (&fd) : (refuse_bytes (l, blob, err), -1);
}

bool
layout_read (const struct layout *l, const struct oci_descriptor *blob, size_t limit,
             struct buf *out, struct mur_error **err)
{
    char digest[OCI_DIGEST_LEN + 1];
    if (blob->size > limit)
        return mur_fail (err, E_REG_013, "%s: the blob %s has %llu bytes; at most %zu are read",
                         l->path, blob->digest, (unsigned long long)blob->size, limit);
    _cleanup_close_ int fd = open_named (l, blob, err);
    if (fd < 0)
        return false;
    if (! fd_read_all (fd, limit, out))
        return mur_fail_errno (err, E_IO_003, "%s: cannot read %s", l->path, blob->digest);
    oci_digest_of (out->data ? out->data : "", out->len, digest);
    return str_eq (digest, blob->digest) || refuse_bytes (l, blob, err);
}

json_t *
layout_manifest_parse (const char *text, size_t len, const char *name, struct mur_error **err)
{
    struct oci_descriptor part;
    _cleanup_json_ json_t *m = json_parse (text, len, "manifest", E_REG_013, NULL);
    const json_t *layers = json_object_get (m, "layers");
    size_t i;
    json_t *layer;
    if (! json_is_array (layers) || ! oci_descriptor_read (json_object_get (m, "config"), &part))
        return mur_fail (err, E_REG_013, "%s: its manifest is of no image", name), NULL;
    if (json_array_size (layers) > LAYOUT_LAYERS_MAX)
        return mur_fail (err, E_REG_013, "%s: its manifest has %zu layers; at most %d are read",
                         name, json_array_size (layers), LAYOUT_LAYERS_MAX),
               NULL;
    json_array_foreach (layers, i, layer)
    {
        if (! oci_descriptor_read (layer, &part))
            return mur_fail (err, E_REG_013, "%s: layer %zu has no sha256 digest and size", name,
                             i + 1),
                   NULL;
    }
    return steal_ptr (&m);
}

json_t *
layout_manifest (const struct layout *l, const struct oci_descriptor *at, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    if (! layout_read (l, at, OCI_MANIFEST_MAX, &text, err))
        return NULL;
    return layout_manifest_parse (text.data, text.len, l->path, err);
}

/* --- writing --- */

int
layout_blob_new (struct layout *l, struct mur_error **err)
{
    _cleanup_free_ char *name = fs_temp_name ("blob");
    int fd = openat (l->blobs, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
    if (fd < 0)
        return mur_fail_errno (err, E_IO_003, "cannot write below %s/blobs", l->path), -1;
    forget_new (l);
    l->unnamed = steal_ptr (&name);
    return fd;
}

bool
layout_blob_keep (struct layout *l, const char *hex, struct mur_error **err)
{
    if (renameat (l->blobs, l->unnamed, l->blobs, hex) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot write %s/blobs/sha256/%s", l->path, hex);
    free (steal_ptr (&l->unnamed));
    strv_push (l->added, hex);
    return true;
}

bool
layout_has (struct layout *l, const struct oci_descriptor *blob)
{
    _cleanup_close_ int fd = layout_open_blob (l, blob, NULL);
    if (fd >= 0)
        strv_push (l->added, blob->digest + 7);
    return fd >= 0;
}

bool
layout_put (struct layout *l, const char *text, size_t len, struct mur_error **err)
{
    char hex[SHA256_HEX_LEN + 1];
    sha256_hex (text, len, hex);
    strv_push (l->added, hex);
    return fs_replace_at (l->blobs, hex, text, len, 0644, false, err);
}

/* What its image does not lead to, and what killed writers left. */
static void
drop_others (const struct layout *l)
{
    int fd = openat (l->blobs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_closedir_ DIR *d = fd >= 0 ? fdopendir (fd) : NULL;
    for (struct dirent *e; d && (e = readdir (d));)
        if (! strv_contains (l->added, e->d_name))
            unlinkat (l->blobs, e->d_name, 0);
}

bool
layout_finish (struct layout *l, const json_t *manifest, const char *name, struct mur_error **err)
{
    _cleanup_json_ json_t *index = json_object (), *entry = json_deep_copy (manifest);
    json_t *notes = json_object_get (entry, "annotations"), *list = json_array ();
    if (name && ! notes)
        json_object_set_new (entry, "annotations", (notes = json_object ()));
    if (name)
        json_set_string (notes, "org.opencontainers.image.ref.name", name);
    json_array_append (list, entry);
    json_set_u64 (index, "schemaVersion", 2);
    json_set_string (index, "mediaType", OCI_TYPE_INDEX);
    json_object_set_new (index, "manifests", list);
    _cleanup_free_ char *text = json_text (index, JSON_TEXT_ORDERED);
    if (! fs_replace_at (l->dir, INDEX, text, strlen (text), 0644, true, err))
        return false;
    drop_others (l);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/image_carry.h"

#include "artifact/registry/oci_package.h"
#include "base/alloc.h"
#include "base/fdio.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* What one blob of an image is carried with. */
struct carrying {
    struct oci_client *client;
    const struct oci_ref *ref;
    struct layout *layout;
    struct image_made *out;
};

typedef bool
carry_fn (const struct carrying *c, const struct oci_descriptor *blob, struct mur_error **err);

/* The layers, then the configuration. */
static bool
each_blob (const struct carrying *c, const json_t *manifest, carry_fn *carry,
           struct mur_error **err)
{
    struct oci_descriptor blob;
    const json_t *layers = json_object_get (manifest, "layers");
    size_t count = json_array_size (layers);
    for (size_t i = 0; i <= count; i++) {
        oci_descriptor_read (
            i < count ? json_array_get (layers, i) : json_object_get (manifest, "config"), &blob);
        c->out->size += blob.size;
        if (! carry (c, &blob, err))
            return false;
    }
    c->out->layers = count;
    return true;
}

/* --- there --- */

static bool
push_blob (const struct carrying *c, const struct oci_descriptor *blob, struct mur_error **err)
{
    _cleanup_close_ int fd = layout_open_blob (c->layout, blob, err);
    if (fd < 0)
        return false;
    if (! blob->size)
        return oci_blob_put (c->client, c->ref, "", 0, blob->digest, err);
    void *bytes = mmap (NULL, blob->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return mur_fail_errno (err, E_IO_003, "%s: cannot read %s", c->layout->path, blob->digest);
    bool ok = oci_blob_put (c->client, c->ref, bytes, blob->size, blob->digest, err);
    munmap (bytes, blob->size);
    return ok;
}

/* The tag leads to what was put, so far as the registry says. */
static bool
check_tag (const struct carrying *c, struct mur_error **err)
{
    struct mur_error *caught = NULL;
    _cleanup_free_ char *name = oci_ref_text (c->ref);
    _cleanup_free_ char *now = oci_tag_digest (c->client, c->ref, &caught);
    if (caught)
        return mur_propagate (err, caught);
    return str_eq (now, c->out->digest) ||
           mur_fail (err, E_REG_003, "%s leads to %s, and %s was put there", name,
                     now ? now : "nothing", c->out->digest);
}

bool
image_push (struct oci_client *client, const struct oci_ref *ref, const char *path,
            struct image_made *out, struct mur_error **err)
{
    struct oci_descriptor at;
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_layout_ struct layout *layout = layout_open (path, err);
    _cleanup_json_ json_t *image = layout ? layout_image (layout, err) : NULL;
    const struct carrying c = { .client = client, .ref = ref, .layout = layout, .out = out };
    *out = (struct image_made){ 0 };
    if (! image || ! oci_descriptor_read (image, &at) ||
        ! layout_read (layout, &at, OCI_MANIFEST_MAX, &text, err))
        return false;
    _cleanup_json_ json_t *manifest = layout_manifest_parse (text.data, text.len, path, err);
    if (! manifest || ! each_blob (&c, manifest, push_blob, err))
        return false;
    out->size += text.len;
    memcpy (out->digest, at.digest, sizeof out->digest);
    const struct oci_put put = {
        .reference = ref->tag, .media_type = at.media_type, .text = text.data, .len = text.len
    };
    return oci_manifest_put (client, ref, &put, NULL, err) && check_tag (&c, err);
}

/* --- and back --- */

struct sink {
    int fd, failed;
};

static bool
write_piece (void *ctx, const void *data, size_t len)
{
    struct sink *s = ctx;
    if (! fd_write_all (s->fd, data, len))
        s->failed = errno;
    return ! s->failed;
}

static bool
pull_blob (const struct carrying *c, const struct oci_descriptor *blob, struct mur_error **err)
{
    if (layout_has (c->layout, blob))
        return true;
    struct mur_error *caught = NULL;
    _cleanup_close_ int fd = layout_blob_new (c->layout, err);
    struct sink s = { .fd = fd };
    if (fd < 0)
        return false;
    if (oci_blob_stream (c->client, c->ref, blob, write_piece, &s, &caught))
        return layout_blob_keep (c->layout, blob->digest + 7, err);
    if (! s.failed)
        return mur_propagate (err, caught);
    mur_error_free (caught);
    errno = s.failed;
    return mur_fail_errno (err, E_IO_003, "cannot write %s below %s", blob->digest,
                           c->layout->path);
}

static struct oci_manifest *
find (struct oci_client *client, const struct oci_ref *ref, struct mur_error **err)
{
    struct mur_error *caught = NULL;
    _cleanup_free_ char *name = oci_ref_text (ref);
    struct oci_manifest *m = oci_manifest_get (client, ref, &caught);
    if (caught)
        mur_propagate (err, caught);
    else if (! m)
        mur_fail (err, E_REG_001, "%s is not there", name);
    return m;
}

/* The manifest of an image, through an index to a platform's where there is one. */
static struct oci_manifest *
find_image (struct oci_client *client, const struct oci_ref *ref, const char *platform,
            struct mur_error **err)
{
    struct oci_descriptor at;
    _cleanup_oci_manifest_ struct oci_manifest *m = find (client, ref, err);
    if (! m || ! oci_is_index (m))
        return steal_ptr (&m);
    _cleanup_free_ char *name = oci_ref_text (ref);
    if (! oci_index_find (m, platform, &at)) {
        _cleanup_free_ char *there = oci_index_platforms (m);
        return mur_fail (err, E_REG_001, "%s has no image for %s; there are: %s", name, platform,
                         there),
               NULL;
    }
    struct oci_ref child = *ref;
    child.tag = NULL;
    child.digest = (char *)(uintptr_t)at.digest;
    return find (client, &child, err);
}

bool
image_pull (struct oci_client *client, const struct oci_ref *ref, const char *platform,
            const char *path, struct image_made *out, struct mur_error **err)
{
    _cleanup_free_ char *name = oci_ref_text (ref);
    _cleanup_oci_manifest_ struct oci_manifest *m = find_image (client, ref, platform, err);
    _cleanup_json_ json_t *manifest = m ? layout_manifest_parse (m->text, m->len, name, err) : NULL;
    _cleanup_layout_ struct layout *layout = manifest ? layout_create (path, err) : NULL;
    const struct carrying c = { .client = client, .ref = ref, .layout = layout, .out = out };
    *out = (struct image_made){ 0 };
    if (! layout || ! each_blob (&c, manifest, pull_blob, err) ||
        ! layout_put (layout, m->text, m->len, err))
        return false;
    out->size += m->len;
    memcpy (out->digest, m->digest, sizeof out->digest);
    _cleanup_json_ json_t *entry = oci_descriptor_json (m->media_type, m->digest, m->len);
    return layout_finish (layout, entry, ref->tag, err);
}

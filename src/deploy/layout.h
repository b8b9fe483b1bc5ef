/* SPDX-License-Identifier: Apache-2.0
 *
 * A folder in the OCI image layout (image specification 1.1): one image in it, on disk.
 *
 * Always true: whoever reads the folder finds the image it held before or the new one whole: its
 * index is written last, in one rename; nothing in a folder of somebody else's is believed: a blob
 * that is handed out is an ordinary file, with the size and the digest that were asked for.
 */
#pragma once

#include "net/oci/oci_blob.h"

#define LAYOUT_TYPE_LAYER  "application/vnd.oci.image.layer.v1.tar"
#define LAYOUT_TYPE_CONFIG "application/vnd.oci.image.config.v1+json"
#define LAYOUT_LAYERS_MAX  128 /* of an image that is read at all */

struct layout {
    char *path;
    int dir, blobs;     /* the folder; its blobs/sha256 */
    char *unnamed;      /* a blob that is being written; NULL: none */
    struct strv *added; /* hex digests of this use, which layout_finish keeps */
};

/* Opens a layout that is there. E-IO-001, E-IO-003, E-REG-013 (it is none). */
struct layout *layout_open (const char *path, struct mur_error **err);
/* Opens one to write an image into, made when it is not there. E-IO-003: cannot be, or other things
 * lie in it. */
struct layout *layout_create (const char *path, struct mur_error **err);
void layout_close (struct layout *l);
DEFINE_CLEANUP (struct layout, layout_close)
#define _cleanup_layout_ _cleanup_ (layout_closep)

/* --- reading: E-REG-002 (other bytes than the digest says), E-REG-013, E-IO-003 --- */

/* The descriptor of its image's manifest, which must be the only one. A new reference. */
json_t *layout_image (const struct layout *l, struct mur_error **err);
/* A blob of at most <limit> bytes. */
bool layout_read (const struct layout *l, const struct oci_descriptor *blob, size_t limit,
                  struct buf *out, struct mur_error **err);
/* The same opened, for blobs of any size. A descriptor the caller owns, or -1. */
int layout_open_blob (const struct layout *l, const struct oci_descriptor *blob,
                      struct mur_error **err);
/* A manifest as JSON, with at most LAYOUT_LAYERS_MAX layers, all of them descriptors. A new
 * reference. */
json_t *
layout_manifest (const struct layout *l, const struct oci_descriptor *at, struct mur_error **err);
/* The JSON of a manifest's text, judged as layout_manifest does. <name> is for messages. */
json_t *
layout_manifest_parse (const char *text, size_t len, const char *name, struct mur_error **err);

/* --- writing --- */

/* A new file for a blob, one at a time, without its name yet. A descriptor the caller owns, or -1.
 */
int layout_blob_new (struct layout *l, struct mur_error **err);
/* Gives it its name. <hex>: the SHA-256 of what was written to it. */
bool layout_blob_keep (struct layout *l, const char *hex, struct mur_error **err);
/* True when a blob of this digest and size is there, whole; it is kept then. */
bool layout_has (struct layout *l, const struct oci_descriptor *blob);
bool layout_put (struct layout *l, const char *text, size_t len, struct mur_error **err);
/* The image is this one from now on; blobs of earlier ones go. <name>: its tag, may be NULL. */
bool
layout_finish (struct layout *l, const json_t *manifest, const char *name, struct mur_error **err);

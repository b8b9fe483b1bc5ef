/* SPDX-License-Identifier: Apache-2.0
 *
 * Blobs of an OCI registry, and the descriptors that name them.
 *
 * Always true: a blob that is handed out had the size and the digest that were asked for. Every
 * function fails with E-REG-006 or E-REG-012 as oci_client.h says, and what is said at it.
 */
#pragma once

#include "net/oci/oci_client.h"

/* What a manifest says of something it holds. Borrowed from its JSON. */
struct oci_descriptor {
    const char *media_type;
    const char *digest;
    uint64_t size;
    const json_t *json; /* annotations, platform */
};
/* False when it is no descriptor with a sha256 digest. */
bool oci_descriptor_read (const json_t *json, struct oci_descriptor *out);
/* The JSON of one. A new reference. */
json_t *oci_descriptor_json (const char *media_type, const char *digest, uint64_t size);

/* A blob of at most <limit> bytes (E-REG-013). E-REG-001 (not there), E-REG-002 (other bytes),
 * E-REG-006 (fewer came). */
bool oci_blob_get (struct oci_client *c, const struct oci_ref *repository,
                   const struct oci_descriptor *blob, size_t limit, struct buf *out,
                   struct mur_error **err);

/* The same of any size, each piece handed to <sink> as it comes, on another thread; false of it
 * ends the asking. What it was given counts for nothing when this fails. */
typedef bool oci_sink_fn (void *ctx, const void *data, size_t len);
bool oci_blob_stream (struct oci_client *c, const struct oci_ref *repository,
                      const struct oci_descriptor *blob, oci_sink_fn *sink, void *ctx,
                      struct mur_error **err);

/* Uploads a blob in one piece unless it is there already. <digest> is of these bytes. */
bool oci_blob_put (struct oci_client *c, const struct oci_ref *repository, const void *data,
                   size_t len, const char *digest, struct mur_error **err);

/* SPDX-License-Identifier: Apache-2.0
 *
 * An OCI registry asked: manifests and indexes by tag or digest, tags
 * (OCI distribution specification 1.1). Blobs: oci_blob.h.
 *
 * Always true: a manifest that is handed out was compared with its digest; a
 * digest in a reference wins over its tag; http is spoken to loopback hosts and to those the
 * operator names, https to all others; credentials go to the registry's origin and to the token
 * server it names, never after a redirect to another one, and are kept nowhere.
 */
#pragma once

#include "base/cancel.h"
#include "base/json.h"
#include "net/oci/oci_ref.h"

#include <stdint.h>

#define OCI_MANIFEST_MAX ((size_t)4 << 20) /* bytes of a manifest or index that is read at all */

#define OCI_TYPE_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define OCI_TYPE_INDEX    "application/vnd.oci.image.index.v1+json"
#define OCI_TYPE_EMPTY    "application/vnd.oci.empty.v1+json"

struct oci_client;

struct oci_options {
    const struct strv *plain_hosts; /* "host[:port]" spoken to in http; may be NULL */
};

/* Loads nothing and asks nothing yet. One client serves any number of registries, from any number
 * of threads. */
struct oci_client *oci_client_new (const struct oci_options *options);
void oci_client_free (struct oci_client *c);
DEFINE_CLEANUP (struct oci_client, oci_client_free)
#define _cleanup_oci_client_ _cleanup_ (oci_client_freep)

/* Raised, every request in flight is abandoned. Borrowed, may be NULL; with nothing in flight. */
void oci_client_set_cancel (struct oci_client *c, struct cancel *cancel);

/* Every function below fails with E-REG-006 (no answer, or one that is not understood), E-REG-012
 * (who we are does not suffice, or cannot be found out), and what is said at it. */

/* --- reading --- */

struct oci_manifest {
    char *media_type;
    char *text; /* the very bytes, NUL after them */
    size_t len;
    char digest[OCI_DIGEST_LEN + 1]; /* of those bytes */
    json_t *json;                    /* an object */
};
void oci_manifest_free (struct oci_manifest *m);
DEFINE_CLEANUP (struct oci_manifest, oci_manifest_free)
#define _cleanup_oci_manifest_ _cleanup_ (oci_manifest_freep)

/* The manifest or index a reference names (its digest, else its tag, else "latest"). NULL without
 * *err: it is not there. E-REG-002 (other bytes than the digest says), E-REG-013 (too large, no
 * JSON object, or of a media type that is neither). */
struct oci_manifest *
oci_manifest_get (struct oci_client *c, const struct oci_ref *ref, struct mur_error **err);
/* The digest a tag has now, without its manifest. Owned. NULL without *err: there is no such tag.
 */
char *oci_tag_digest (struct oci_client *c, const struct oci_ref *ref, struct mur_error **err);
/* The tags of a repository, as it gives them; a repository that is not there has none. E-REG-013:
 * no list, or one too long to be read whole, of which a part would say wrongly what is newest. */
bool oci_tags (struct oci_client *c, const struct oci_ref *repository, struct strv *out,
               struct mur_error **err);

/* --- writing --- */

struct oci_put {
    const char *reference; /* a tag, or the digest of the text */
    const char *media_type;
    const char *text;
    size_t len;
};
/* Puts a manifest or index. *keeps_list (may be NULL): the registry says that it lists what refers
 * to this one's subject. */
bool oci_manifest_put (struct oci_client *c, const struct oci_ref *repository,
                       const struct oci_put *put, bool *keeps_list, struct mur_error **err);

/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/registry/oci_publish.h"

#include "artifact/names/version.h"
#include "base/alloc.h"
#include "manifest/settings/artifact_manifest.h"

#include <string.h>

void
oci_published_clear (struct oci_published *p)
{
    free (p->reference);
    *p = (struct oci_published){ 0 };
}

char *
oci_version_tag (const char *version)
{
    char *tag = x_strdup (version);
    for (char *plus = strchr (tag, '+'); plus; plus = strchr (plus, '+'))
        *plus = '_';
    return tag;
}

struct publishing {
    struct oci_client *client;
    const struct oci_ref *ref; /* with its tag */
    struct package *package;
    const char *platform; /* NULL: any */
    bool is_version;      /* the tag is the package's version */
    char *config, *manifest;
};

static bool
refuse_other (const struct publishing *p, const char *there, struct mur_error **err)
{
    _cleanup_free_ char *name = oci_ref_text (p->ref);
    mur_fail (err, E_REG_003, "%s is there already with other bytes (%s)", name, there);
    return mur_hint (err, "raise `version:` in murmur.yaml, build again and publish the new one");
}

/* What the tag has now, judged: *is_there when it is this package already. */
static bool
judge_present (const struct publishing *p, const struct oci_manifest *there, bool *is_there,
               struct mur_error **err)
{
    _cleanup_free_ char *name = oci_ref_text (p->ref);
    struct oci_descriptor at = { 0 };
    char digest[OCI_DIGEST_LEN + 1];
    oci_digest_of (p->manifest, strlen (p->manifest), digest);
    *is_there = str_eq (there->digest, digest);
    if (*is_there || ! p->is_version)
        return true;
    if (! p->platform || ! oci_is_index (there))
        return refuse_other (p, there->digest, err);
    if (! oci_index_find (there, p->platform, &at))
        return true;
    *is_there = str_eq (at.digest, digest);
    return *is_there || refuse_other (p, at.digest, err);
}

static bool
put (const struct publishing *p, const char *reference, const char *type, const char *text,
     struct mur_error **err)
{
    const struct oci_put what = {
        .reference = reference, .media_type = type, .text = text, .len = strlen (text)
    };
    return oci_manifest_put (p->client, p->ref, &what, NULL, err);
}

/* Two publishers at one moment: the tag has the bytes of the later. */
static bool
check_kept (const struct publishing *p, const struct oci_published *out, struct mur_error **err)
{
    struct mur_error *caught = NULL;
    _cleanup_free_ char *now = oci_tag_digest (p->client, p->ref, &caught);
    if (caught)
        return mur_propagate (err, caught);
    if (str_eq (now, out->tag_digest))
        return true;
    mur_fail (err, E_REG_003, "%s was published by somebody else at the same moment: it is %s now",
              out->reference, now ? now : "gone");
    return mur_hint (err, "look at what is there, and raise your version");
}

static bool
put_all (const struct publishing *p, const struct oci_manifest *there, struct oci_published *out,
         struct mur_error **err)
{
    char config_digest[OCI_DIGEST_LEN + 1];
    _cleanup_free_ char *layer_digest = x_asprintf ("sha256:%s", p->package->sha256);
    oci_digest_of (p->config, strlen (p->config), config_digest);
    if (! oci_blob_put (p->client, p->ref, p->package->bytes, p->package->len, layer_digest, err) ||
        ! oci_blob_put (p->client, p->ref, p->config, strlen (p->config), config_digest, err))
        return false;
    if (! p->platform)
        return put (p, p->ref->tag, OCI_TYPE_MANIFEST, p->manifest, err);
    bool is_added = there && p->is_version;
    _cleanup_free_ char *index =
        oci_index_with (is_added ? there : NULL, p->package, p->platform, p->manifest);
    oci_digest_of (index, strlen (index), out->tag_digest);
    return put (p, out->digest, OCI_TYPE_MANIFEST, p->manifest, err) &&
           put (p, p->ref->tag, OCI_TYPE_INDEX, index, err);
}

static bool
publish (const struct publishing *p, struct oci_published *out, struct mur_error **err)
{
    struct mur_error *caught = NULL;
    _cleanup_oci_manifest_ struct oci_manifest *there =
        oci_manifest_get (p->client, p->ref, &caught);
    if (caught)
        return mur_propagate (err, caught);
    out->reference = oci_ref_text (p->ref);
    out->size = strlen (p->manifest);
    oci_digest_of (p->manifest, strlen (p->manifest), out->digest);
    memcpy (out->tag_digest, there ? there->digest : out->digest, sizeof out->tag_digest);
    if (there && ! judge_present (p, there, &out->was_there, err))
        return false;
    if (out->was_there)
        return true;
    memcpy (out->tag_digest, out->digest, sizeof out->tag_digest);
    return put_all (p, there, out, err) && check_kept (p, out, err);
}

bool
oci_publish (struct oci_client *c, const struct oci_ref *ref, struct package *p,
             const char *platform, struct oci_published *out, struct mur_error **err)
{
    const char *version = p->manifest->version;
    *out = (struct oci_published){ 0 };
    if (version_is_reserved (version))
        return mur_fail (err, E_REG_004, "version \"%s\" of %s is reserved and cannot be published",
                         version, p->manifest->name);
    if (ref->digest)
        return mur_fail (err, E_REG_007, "a package is published under a tag, not under a digest");
    _cleanup_free_ char *own_tag = oci_version_tag (version);
    struct oci_ref tagged = *ref;
    tagged.tag = ref->tag ? ref->tag : own_tag;
    if (! oci_tag_is_valid (tagged.tag))
        return mur_fail (err, E_REG_007, "version \"%s\" is no tag of a registry", version);
    _cleanup_free_ char *config = oci_package_config (p);
    _cleanup_free_ char *manifest = oci_package_manifest (p, platform, config);
    const struct publishing job = { .client = c,
                                    .ref = &tagged,
                                    .package = p,
                                    .platform = platform,
                                    .is_version = str_eq (tagged.tag, own_tag),
                                    .config = config,
                                    .manifest = manifest };
    return publish (&job, out, err);
}

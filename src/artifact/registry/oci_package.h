/* SPDX-License-Identifier: Apache-2.0
 *
 * The shape a package has in an OCI registry: an image-shaped manifest with our media types, whose
 * one layer is the very bytes of the .mur.zip; for several platforms an index of such manifests.
 *
 * Pure data. Always true: what was read has one layer, whose digest is the package's SHA-256 that
 * the annotation repeats; the same package gives the same manifest.
 */
#pragma once

#include "artifact/package/package.h"
#include "net/oci/oci_blob.h"

#define OCI_TYPE_PACKAGE "application/vnd.murmur.package.v1+zip"
#define OCI_TYPE_CONFIG  "application/vnd.murmur.config.v1+json"

/* What a manifest says of its package. */
struct oci_package {
    char digest[OCI_DIGEST_LEN + 1];       /* the manifest's */
    char index_digest[OCI_DIGEST_LEN + 1]; /* of the index it was found in; "": in none */
    char layer_digest[OCI_DIGEST_LEN + 1]; /* the package's */
    uint64_t size;                         /* of the package, bytes */
    uint64_t manifest_size;
    char *name;             /* bare, as packed; NULL: not said */
    char *version;          /* as packed; NULL: not said */
    char *runtime;          /* its role; "" when it is not said */
    char *platform;         /* "linux-x86_64"; NULL: any */
    struct strv platforms;  /* "<platform> <hex SHA-256 of its package>" of that index */
    struct strv interfaces; /* murmur:*, ascending */
    bool has_level;
    uint64_t built_at_level;
};
void oci_package_clear (struct oci_package *p);
#define _cleanup_oci_package_ _cleanup_ (oci_package_clear)

/* The package a manifest is of. E-REG-013 saying what else it is. <name> is for messages. */
bool oci_package_read (const struct oci_manifest *m, const char *name, struct oci_package *out,
                       struct mur_error **err);
/* The text of the configuration of an opened package, and of its manifest. Owned. <platform> NULL:
 * any. */
char *oci_package_config (struct package *p);
char *oci_package_manifest (struct package *p, const char *platform, const char *config);

/* --- indexes of platforms --- */

/* "linux" and "amd64" of "linux-x86_64". Static. False: no platform of ours. */
bool oci_platform_words (const char *tag, const char **os, const char **architecture);
bool oci_is_index (const struct oci_manifest *m);
/* The descriptor for a platform in an index. False: there is none. */
bool
oci_index_find (const struct oci_manifest *index, const char *platform, struct oci_descriptor *out);
/* "<platform> <hex SHA-256>" of each platform whose package an index names. */
void oci_index_packages (const struct oci_manifest *index, struct strv *out);
/* "linux-x86_64, darwin-aarch64" of an index. Owned. */
char *oci_index_platforms (const struct oci_manifest *index);
/* <index> (NULL: a new one) with a platform's manifest added or replaced. Owned text. */
char *oci_index_with (const struct oci_manifest *index, const struct package *p,
                      const char *platform, const char *manifest);

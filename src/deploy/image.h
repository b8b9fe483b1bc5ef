/* SPDX-License-Identifier: Apache-2.0
 *
 * A capsule as an image: the folder of an OCI image layout, written here.
 *
 * Its layer holds the packages in a store at /artifacts, and the capsule with its lock at /capsule,
 * whose store is the same files under second names. So it serves as a volume of a pod, and, on a
 * base that has mur, as what a container runs. Of a roster it holds the packages of every member in
 * /artifacts, and at /capsule the roster with a lock that pins them.
 *
 * Always true: the same packages give the same bytes; every package was compared with the lock; no
 * key and no .env is in it.
 */
#pragma once

#include "deploy/layout.h"

#define IMAGE_TYPE "application/vnd.murmur.capsule.v1"

struct image_request {
    const char *dir;             /* of the capsule's murmur.yaml, or of a roster.yaml */
    bool is_roster;              /* its members are what is in it */
    const char *output;          /* layout to write */
    const char *base;            /* layout of an image it is put on; NULL: none */
    const char *const *capsules; /* "<scope>/<name>@<version>": what it delegates to */
    size_t capsule_count;
};

struct image_made {
    char digest[OCI_DIGEST_LEN + 1]; /* of its manifest */
    uint64_t size;                   /* of all blobs */
    size_t packages, layers;
};

/* Builds an image for this machine's platform. E-ROS-*, E-DEP-004 (a key in the manifest),
 * E-DEP-005, E-IO-*, E-MAN-*, E-REG-*, E-RUN-003, E-RUN-008. */
bool image_build (const struct image_request *r, struct image_made *out, struct mur_error **err);

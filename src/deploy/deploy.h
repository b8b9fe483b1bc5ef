/* SPDX-License-Identifier: Apache-2.0
 *
 * A capsule as a workload of another machine: what a manifest and a few words become for each
 * target.
 *
 * Always true: pure. The same request gives the same bytes, in one order; nothing is asked of a
 * network or a clock; no value of a key is in any of them, only where it lies.
 */
#pragma once

#include "base/buf.h"
#include "manifest/settings/roster.h"

/* Annotation of a Job: the digest of what it was made of. */
#define DEPLOY_RENDERED "murmur.dev/rendered"

enum deploy_target {
    DEPLOY_KUBERNETES,
    DEPLOY_KUEUE,
    DEPLOY_SYSTEMD,
    DEPLOY_QUADLET,
    DEPLOY_SANDBOX,
    DEPLOY_KAGENT,
    DEPLOY_NOMAD,
    DEPLOY_TARGET_COUNT,
};

enum deploy_door {
    DEPLOY_DOOR_NONE,
    DEPLOY_DOOR_SERVICE, /* reached inside the cluster */
    DEPLOY_DOOR_ROUTE,   /* and by its public address, through a gateway */
};

/* The members of a roster, admitted, in its order. */
struct deploy_formation {
    const struct roster *roster;
    bool is_spread;                      /* a Job each, of which this is the entry's */
    const char *roster_text, *lock_text; /* the lock pins the members */
    const struct capsule_manifest *const *manifests;
    const char *const *sha256;
};

struct deploy_request {
    enum deploy_target target;
    const struct capsule_manifest *manifest;
    const struct deploy_formation
        *formation;            /* all in one pod, and <manifest> its entry's; or NULL */
    const char *image;         /* holds mur and the capsule at /capsule; NULL for systemd */
    const char *capsule_image; /* a volume of its own for the capsule; NULL: in <image> */
    const char *capsule;       /* folder of the capsule on a machine without an image */
    const char *space;         /* namespace */
    const char *queue;         /* LocalQueue of Kueue */
    const char *public_url;    /* NULL: none */
    const char *roost_url;     /* the fleet's referee; NULL: a session of its own */
    const char *records_store; /* NULL: records stay in the pod */
    const char *records_role;  /* of the store at Amazon, of the pod's account; NULL: keys */
    const char *ca;            /* ConfigMap with ca.crt; NULL: the image's authorities alone */
    const char *task;          /* NULL: the door takes them */
    const char *deadline;      /* seconds; NULL: none */
    const char *seccomp; /* profile on the nodes, below their folder of them; NULL: the runtime's */
    enum deploy_door door;
};

struct deploy_file {
    char *name; /* "job.yaml" */
    struct buf text;
};

struct deploy_files {
    struct deploy_file *items;
    size_t len, cap;
    char *name;       /* of the objects, "mur-<capsule>" */
    struct strv keys; /* entries its Secret must have, sorted */
};

/* False: no target of that name. */
bool deploy_target_parse (const char *text, enum deploy_target *out);
/* Of the list of all targets, which ends with NULL. */
const char *deploy_target_name (size_t i);
/* The files by name, what runs after what its pod needs. E-DEP-001 to E-DEP-005 name what the
 * target cannot keep. */
bool deploy_render (const struct deploy_request *request, struct deploy_files *out,
                    struct mur_error **err);
void deploy_files_free (struct deploy_files *files);

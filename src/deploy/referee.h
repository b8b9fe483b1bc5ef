/* SPDX-License-Identifier: Apache-2.0
 *
 * The referee of a fleet as objects of a cluster: a Deployment of one with its account and rights,
 * the account of sessions, its address and who may reach it.
 *
 * Always true: pure, as deploy.h says. Its keys and its certificate are Secrets that are named and
 * made by whoever deploys.
 */
#pragma once

#include "deploy/deploy.h"

#define REFEREE_NAME       "mur-roost"
#define REFEREE_KEY_SECRET "mur-roost"     /* entry "key": 64 bytes */
#define REFEREE_TLS_SECRET "mur-roost-tls" /* of type kubernetes.io/tls */

struct referee_deployment {
    const char *image; /* holds mur-roost and mur, and the capsules in /artifacts */
    const char *space, *roost_url;
    const char *ca;      /* ConfigMap with ca.crt; NULL: none */
    const char *seccomp; /* profile on the nodes; NULL: the runtime's */
    const char *queue;   /* NULL: none */
    const char *records_store, *records_role;
    const char *placement;
    const struct strv *spawn_allow; /* at least one */
    const char *limits[4][2];       /* flags of mur-roost with numbers; NULL: as it is by itself */
};

/* E-DEP-002, E-DEP-005. */
bool deploy_referee (const struct referee_deployment *d, struct deploy_files *out,
                     struct mur_error **err);

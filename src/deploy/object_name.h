/* SPDX-License-Identifier: Apache-2.0
 *
 * What a capsule's objects are called in a cluster: its workload, its account, the Secret of its
 * keys.
 */
#pragma once

#define DEPLOY_KEYS      "/var/run/secrets/murmur.dev/keys" /* where a pod finds that Secret */
#define DEPLOY_CA        "/var/run/secrets/murmur.dev/ca"   /* further authorities, as ca.crt */
#define DEPLOY_TOKEN     "/var/run/secrets/murmur"          /* and its token for a referee */
#define DEPLOY_AUDIENCE  "mur-roost"                        /* of that token */
#define DEPLOY_PORT      8080                               /* where a referee looks for doors */
#define DEPLOY_POD_IP    "MURMUR_POD_IP"                    /* variable with the pod's address */
#define DEPLOY_CARD_PATH "/.well-known/agent-card.json"     /* what a door shows without a token */

/* "mur-<capsule>", as a name of Kubernetes; of a full name its bare one. Owned. */
char *deploy_object_name (const char *capsule);

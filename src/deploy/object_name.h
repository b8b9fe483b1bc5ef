/* SPDX-License-Identifier: Apache-2.0
 *
 * What a capsule's objects are called in a cluster: its workload, its account, the Secret of its
 * keys.
 */
#pragma once

#define DEPLOY_KEYS "/var/run/secrets/murmur.dev/keys" /* where a pod finds that Secret */

/* "mur-<capsule>", as a name of Kubernetes; of a full name its bare one. Owned. */
char *deploy_object_name (const char *capsule);

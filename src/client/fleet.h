/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of a cluster, Jobs or Deployments, as whoever runs it meets them: the list, one of them,
 * and its door (docs/fleet.md).
 *
 * Asked with the caller's own rights at the API server. Who may write a session's Job is given its
 * door: shown by writing there the digest of a secret, which mur-roost is then told. Always true:
 * no credential of the cluster's goes anywhere but to its API server.
 */
#pragma once

#include "base/json.h"
#include "base/secret.h"
#include "client/fleet_job.h"
#include "net/http_client.h"

struct kube;

struct fleet_view {
    struct kube *kube;
    char *space;   /* the namespace, escaped */
    json_t *items; /* the Jobs of sessions as listed, then the Deployments */
};

/* <kubeconfig> and <namespace> NULL: the defaults of kube_access_read. E-KUB-001, E-KUB-002. */
bool fleet_view_open (const char *kubeconfig, const char *namespace, struct fleet_view *v,
                      struct mur_error **err);
/* Lists anew. E-KUB-002. */
bool fleet_view_again (struct fleet_view *v, struct mur_error **err);
/* False: the cluster says that there is no such namespace. */
bool fleet_view_has_space (const struct fleet_view *v);
void fleet_view_clear (struct fleet_view *v);
#define _cleanup_fleet_view_ _cleanup_ (fleet_view_clear)

/* The one Job that is meant: by the session's id, its last characters, the Job's name, or a
 * formation ("frm_..." its entry, "frm_.../<member>" another). NULL: the
 * newest that runs. Borrowed; NULL with E-RUN-022. */
const json_t *
fleet_view_find (const struct fleet_view *v, const char *meant, struct mur_error **err);
/* Deletes it; the pod gets its grace, what it started goes with it. E-KUB-002. */
bool fleet_view_delete (const struct fleet_view *v, const json_t *job, struct mur_error **err);

struct fleet_door {
    char *url; /* "host:port" */
    struct secret *token;
};
void fleet_door_clear (struct fleet_door *d);
/* The door of its session, with the operator's token. MURMUR_ROOST_URL is asked, else what the Job
 * itself asks. E-RUN-022: it does not run, or is a Deployment; E-RUN-023: mur-roost did not answer
 * or refused; E-KUB-002. */
bool fleet_door_open (const struct fleet_view *v, const json_t *job, struct http_client *http,
                      struct fleet_door *out, struct mur_error **err);

/* Adds the lines of its trace from byte *at on, and moves *at behind them. E-IO-003. */
bool fleet_trace_read (struct http_client *http, const struct fleet_door *door, uint64_t *at,
                       struct buf *out, struct mur_error **err);

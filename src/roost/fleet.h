/* SPDX-License-Identifier: Apache-2.0
 *
 * The referee over a cluster: a child is a Job, started here, and the Jobs are what is remembered
 * (docs/fleet.md).
 *
 * Always true: a Job is created once for a delegation, whatever is repeated; no approval leaves the
 * referee; a session is who the cluster says its pod is. Losing the referee ends nothing.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct fleet;
struct referee;

/* Borrowed but for what says so. */
struct fleet_options {
    const char *kubeconfig;    /* NULL: as kube_access_read finds it */
    const char *namespace;     /* NULL: the access' own */
    const char *image;         /* of the children's container and of their store */
    const char *seccomp;       /* profile on the nodes; NULL: the runtime's */
    const char *queue;         /* kueue.x-k8s.io/queue-name of children; NULL: none */
    const char *records_store; /* where records of children go; NULL: nowhere */
    const char *ca;            /* ConfigMap with ca.crt for children; NULL: none */
    const char *roost_url;     /* where pods reach this referee */
    uint64_t queue_timeout_s;
    const char *key_file; /* 64 bytes that outlive this process; NULL: new ones each time */
    bool places_all;      /* every child becomes a Job; else only its root did */
};

/* Reads access and keys. E-KUB-001, E-IO-003. */
struct fleet *fleet_new (const struct fleet_options *options, struct mur_error **err);
/* Gives the referee its keys, lists what runs already, and goes on watching; returns once the list
 * is whole. E-KUB-002 after half a minute without one. */
bool fleet_start (struct fleet *f, struct referee *r, struct mur_error **err);
/* The daemon is to end: whoever waits for news is answered now. <f> may be NULL. */
void fleet_stop (struct fleet *f);
void fleet_free (struct fleet *f);

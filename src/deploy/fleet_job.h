/* SPDX-License-Identifier: Apache-2.0
 *
 * A child, or a member of a formation, as a Job, and the names of what belongs to it. Pure: the
 * same facts, the same object.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"

struct job_seat {
    const char *formation, *member; /* NULL: none */
    const char *job;                /* name of its Job */
};

struct job_facts {
    const char *namespace, *image, *queue, *roost_url; /* queue NULL: none */
    const char *records_store;                         /* NULL: records stay in the pod */
    const char *ca;      /* ConfigMap with ca.crt; NULL: the image's authorities alone */
    const char *seccomp; /* profile on the nodes; NULL: the runtime's */
    const char *delegation, *context_id; /* NULL: a member of a formation */
    struct job_seat seat;                /* its place in a formation; of a child none */
    const char *name, *version, *sha256;
    const char *grant;                       /* the approval's payload under its MAC */
    const char *root, *parent_session;       /* of a member NULL */
    const char *parent_job;                  /* of the session that asks */
    const char *parent_pod, *parent_pod_uid; /* the owner */
    bool has_v6;                             /* pods have addresses of IPv6 */
    uint32_t depth;                          /* levels left below the child */
    const struct strv *env;                  /* names whose values come from ConfigMap murmur-env */
    uint64_t run_s;                          /* what the delegation may take */
    uint64_t inherited_deadline_ms;          /* Unix; 0: none */
    uint64_t start_s;                        /* what waiting for a place may take */
};

/* "mur-" and the last 16 hex digits of the delegation: a repeat meets what was created. Owned. */
char *fleet_job_name (const char *delegation);
/* Owned. */
json_t *fleet_job_object (const struct job_facts *facts);

/* SPDX-License-Identifier: Apache-2.0
 *
 * One session as the cluster has it: a Job, or for a capsule that stays a Deployment.
 */
#pragma once

#include "base/json.h"

enum fleet_kind {
    FLEET_JOB,
    FLEET_DEPLOYMENT,
};

/* "Job". */
const char *fleet_kind_name (enum fleet_kind kind);
/* Path of the list of them in a namespace, escaped. Owned. */
char *fleet_kind_list (enum fleet_kind kind, const char *space);

enum fleet_kind fleet_job_kind (const json_t *job);
/* Its own path. Owned. */
char *fleet_job_path (const json_t *job, const char *space);
/* A member of its metadata. Borrowed. */
const char *fleet_job_meta (const json_t *job, const char *name);
/* The word of its end, else "running" or "queued". Owned. */
char *fleet_job_state (const json_t *job);

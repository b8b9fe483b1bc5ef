/* SPDX-License-Identifier: Apache-2.0 */
#include "client/fleet_job.h"

#include "base/alloc.h"
#include "net/kube/kube_object.h"

static const struct {
    const char *name, *group, *list, *selector;
} kinds[] = {
    [FLEET_JOB] = { "Job", "batch/v1", "jobs", "murmur.dev%2Froot" },
    [FLEET_DEPLOYMENT] = { "Deployment", "apps/v1", "deployments",
                           "app.kubernetes.io%2Fmanaged-by%3Dmurmur,murmur.dev%2Fcapsule" },
};

const char *
fleet_kind_name (enum fleet_kind kind)
{
    return kinds[kind].name;
}

char *
fleet_kind_list (enum fleet_kind kind, const char *space)
{
    return x_asprintf ("/apis/%s/namespaces/%s/%s?labelSelector=%s", kinds[kind].group, space,
                       kinds[kind].list, kinds[kind].selector);
}

enum fleet_kind
fleet_job_kind (const json_t *job)
{
    return str_eq (json_get_string (job, "kind"), kinds[FLEET_DEPLOYMENT].name) ? FLEET_DEPLOYMENT
                                                                                : FLEET_JOB;
}

char *
fleet_job_path (const json_t *job, const char *space)
{
    enum fleet_kind kind = fleet_job_kind (job);
    return x_asprintf ("/apis/%s/namespaces/%s/%s/%s", kinds[kind].group, space, kinds[kind].list,
                       fleet_job_meta (job, "name"));
}

const char *
fleet_job_meta (const json_t *job, const char *name)
{
    return json_get_string (json_object_get (job, "metadata"), name);
}

static bool
has_ready (const json_t *job, const char *name)
{
    return json_integer_value (json_object_get (json_object_get (job, "status"), name)) > 0;
}

char *
fleet_job_state (const json_t *job)
{
    const char *outcome = kube_own_annotation (job, "outcome");
    _cleanup_json_ json_t *o = outcome ? json_loads (outcome, 0, NULL) : NULL;
    if (fleet_job_kind (job) == FLEET_DEPLOYMENT)
        return x_strdup (has_ready (job, "readyReplicas") ? "running" : "queued");
    if (json_get_string (o, "status"))
        return x_strdup (json_get_string (o, "status"));
    const json_t *end = kube_job_end (job);
    if (end)
        return x_strdup (str_eq (json_get_string (end, "type"), "Complete") ? "ok" : "failed");
    /* One that no referee knows runs, too. */
    return x_strdup (kube_own_annotation (job, "session") || has_ready (job, "ready") ? "running"
                                                                                      : "queued");
}

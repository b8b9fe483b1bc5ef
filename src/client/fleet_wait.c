/* SPDX-License-Identifier: Apache-2.0 */
#include "client/fleet_wait.h"

#include "base/alloc.h"
#include "net/kube/kube.h"
#include "net/kube/kube_object.h"

#include <string.h>

#define BATCH "/apis/batch/v1/"
#define JOBS  "/jobs"

json_t *
fleet_pods (const struct fleet_view *v)
{
    if (! str_starts (v->path, BATCH) || ! str_ends (v->path, JOBS))
        return NULL;
    size_t len = strlen (v->path) - strlen (BATCH) - strlen (JOBS);
    _cleanup_free_ char *path = x_asprintf ("/api/v1/%.*s/pods?labelSelector=murmur.dev%%2Froot",
                                            (int)len, v->path + strlen (BATCH));
    const struct kube_call call = { .method = "GET", .path = path };
    _cleanup_kube_answer_ struct kube_answer answer = { 0 };
    if (! kube_call (v->kube, &call, &answer, NULL) || ! kube_answer_is_ok (&answer))
        return NULL;
    return json_incref (json_object_get (answer.body, "items"));
}

static const json_t *
pod_of (const json_t *pods, const char *job)
{
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod)
    {
        const json_t *labels = json_object_get (json_object_get (pod, "metadata"), "labels");
        if (str_eq (json_get_string (labels, "job-name"), job))
            return pod;
    }
    return NULL;
}

static char *
tell (const json_t *said)
{
    const char *reason = json_get_string (said, "reason");
    const char *message = json_get_string (said, "message");
    return x_asprintf ("%s%s%s", reason ? reason : "", reason && message ? ": " : "",
                       message ? message : "");
}

/* What a node, or the search for one, says of it. */
static char *
pod_wait (const json_t *pod)
{
    size_t i;
    json_t *one;
    const json_t *status = json_object_get (pod, "status");
    if (! str_eq (json_get_string (status, "phase"), "Pending"))
        return NULL;
    json_array_foreach (
        json_object_get (status, "conditions"), i,
        one) if (str_eq (json_get_string (one, "type"), "PodScheduled") &&
                 str_eq (json_get_string (one, "status"), "False")) return tell (one);
    json_array_foreach (json_object_get (status, "containerStatuses"), i, one)
    {
        const json_t *waiting = json_object_get (json_object_get (one, "state"), "waiting");
        if (json_get_string (waiting, "message") ||
            (waiting && ! str_eq (json_get_string (waiting, "reason"), "ContainerCreating")))
            return tell (waiting);
    }
    if (! json_get_string (json_object_get (pod, "spec"), "nodeName"))
        return x_asprintf ("no node has taken its pod yet: kubectl describe pod %s",
                           fleet_job_meta (pod, "name"));
    return x_asprintf ("its pod is being made: kubectl describe pod %s",
                       fleet_job_meta (pod, "name"));
}

char *
fleet_job_wait (const json_t *job, const json_t *pods)
{
    const char *name = fleet_job_meta (job, "name");
    _cleanup_free_ char *state = fleet_job_state (job);
    if (! str_eq (state, "queued"))
        return NULL;
    if (json_is_true (json_object_get (json_object_get (job, "spec"), "suspend")))
        return x_strdup ("its queue has not admitted it");
    const json_t *pod = pod_of (pods, name);
    if (pod)
        return pod_wait (pod);
    return pods ? x_asprintf ("it has no pod yet: kubectl describe job %s", name) : NULL;
}

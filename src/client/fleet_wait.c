/* SPDX-License-Identifier: Apache-2.0 */
#include "client/fleet_wait.h"

#include "base/alloc.h"
#include "net/kube/kube.h"
#include "net/kube/kube_object.h"

#include <string.h>

#define POD_LIST     "pods?labelSelector=murmur.dev%2Froot"
#define WARNING_LIST "events?fieldSelector=type%3DWarning&limit=500"

/* Owned; NULL: it may not be seen. */
static json_t *
list (const struct fleet_view *v, const char *what)
{
    _cleanup_free_ char *path = x_asprintf ("/api/v1/namespaces/%s/%s", v->space, what);
    const struct kube_call call = { .method = "GET", .path = path };
    _cleanup_kube_answer_ struct kube_answer answer = { 0 };
    if (! kube_call (v->kube, &call, &answer, NULL) || ! kube_answer_is_ok (&answer))
        return NULL;
    return json_incref (json_object_get (answer.body, "items"));
}

static bool
has_waiting (const struct fleet_view *v)
{
    size_t i;
    json_t *job;
    json_array_foreach (v->items, i, job)
    {
        _cleanup_free_ char *state = fleet_job_state (job);
        if (str_eq (state, "queued"))
            return true;
    }
    return false;
}

json_t *
fleet_news (const struct fleet_view *v)
{
    json_t *news = json_object (), *pods = list (v, POD_LIST);
    if (pods)
        json_object_set_new (news, "pods", pods);
    json_t *warnings = has_waiting (v) ? list (v, WARNING_LIST) : NULL;
    if (warnings)
        json_object_set_new (news, "warnings", warnings);
    return news;
}

/* A Deployment's pods are of no Job, and their root is its name. */
static bool
is_pod_of (const json_t *pod, const json_t *job)
{
    const json_t *labels = json_object_get (json_object_get (pod, "metadata"), "labels");
    const char *job_name = json_get_string (labels, "job-name"),
               *name = fleet_job_meta (job, "name");
    return fleet_job_kind (job) == FLEET_JOB
               ? str_eq (job_name, name)
               : ! job_name && str_eq (kube_own_label (pod, "root"), name);
}

static const json_t *
pod_of (const json_t *pods, const json_t *job)
{
    size_t i;
    json_t *pod;
    json_array_foreach (pods, i, pod) if (is_pod_of (pod, job)) return pod;
    return NULL;
}

/* Reasons a node gives, and what they mean to whoever deployed. */
static const struct {
    const char *reason, *meaning;
} reasons[] = {
    { "ErrImagePull", "its image cannot be pulled: is the name right, and may the nodes read it?" },
    { "ImagePullBackOff",
      "its image cannot be pulled: is the name right, and may the nodes read it?" },
    { "InvalidImageName", "its image's name is none: correct --image" },
    { "FailedMount", "a Secret or ConfigMap its pod mounts is not there, or lacks an entry" },
    { "FailedCreate", "the namespace does not take its pod: a quota, an account or a rule" },
    { "CreateContainerConfigError", "a Secret or ConfigMap it is given lacks an entry" },
    { "CrashLoopBackOff", "it ends as soon as it starts: kubectl logs says why" },
    { "Unschedulable", "no node has room for it, or none it may run on" },
};

static char *
tell (const json_t *said)
{
    const char *reason = json_get_string (said, "reason"), *meaning = NULL;
    const char *message = json_get_string (said, "message");
    for (size_t i = 0; reason && i < ARRAY_LEN (reasons); i++)
        if (str_eq (reasons[i].reason, reason))
            meaning = reasons[i].meaning;
    return x_asprintf ("%s%s%s%s%s", reason ? reason : "", reason && message ? ": " : "",
                       message ? message : "", meaning ? " — " : "", meaning ? meaning : "");
}

static char *
container_wait (const json_t *status)
{
    size_t i;
    json_t *one;
    json_array_foreach (json_object_get (status, "containerStatuses"), i, one)
    {
        const json_t *waiting = json_object_get (json_object_get (one, "state"), "waiting");
        if (json_get_string (waiting, "message") ||
            (waiting && ! str_eq (json_get_string (waiting, "reason"), "ContainerCreating")))
            return tell (waiting);
    }
    return NULL;
}

/* What was last said against an object: a volume that is not there, a quota, an account. */
static char *
warning_of (const json_t *news, const char *name)
{
    size_t i;
    json_t *one;
    const json_t *found = NULL;
    const char *at = "";
    json_array_foreach (json_object_get (news, "warnings"), i, one)
    {
        const char *when = json_get_string (one, "lastTimestamp");
        when = when ? when : fleet_job_meta (one, "creationTimestamp");
        if (! str_eq (json_get_string (json_object_get (one, "involvedObject"), "name"), name) ||
            (when && strcmp (when, at) < 0))
            continue;
        found = one;
        at = when ? when : at;
    }
    return found ? tell (found) : NULL;
}

/* What a node, or the search for one, says of it. */
static char *
pod_wait (const json_t *news, const json_t *pod)
{
    size_t i;
    json_t *one;
    const json_t *status = json_object_get (pod, "status");
    const char *phase = json_get_string (status, "phase"), *name = fleet_job_meta (pod, "name");
    char *wait = container_wait (status);
    if (wait)
        return wait;
    if (str_eq (phase, "Running"))
        return x_asprintf ("its door does not answer yet: kubectl logs %s", name);
    if (! str_eq (phase, "Pending"))
        return NULL;
    json_array_foreach (
        json_object_get (status, "conditions"), i,
        one) if (str_eq (json_get_string (one, "type"), "PodScheduled") &&
                 str_eq (json_get_string (one, "status"), "False")) return tell (one);
    char *warning = warning_of (news, name);
    if (warning)
        return warning;
    if (! json_get_string (json_object_get (pod, "spec"), "nodeName"))
        return x_asprintf ("no node has taken its pod yet: kubectl describe pod %s", name);
    return x_asprintf ("its pod is being made: kubectl describe pod %s", name);
}

/* What the controller that makes its pods says of those it could not make. */
static char *
unmade (const json_t *job)
{
    size_t i;
    json_t *one;
    json_array_foreach (
        json_object_get (json_object_get (job, "status"), "conditions"), i,
        one) if (str_eq (json_get_string (one, "type"), "ReplicaFailure")) return tell (one);
    return NULL;
}

char *
fleet_job_wait (const json_t *job, const json_t *news)
{
    const json_t *pods = json_object_get (news, "pods");
    const char *name = fleet_job_meta (job, "name");
    _cleanup_free_ char *state = fleet_job_state (job);
    if (! str_eq (state, "queued"))
        return NULL;
    if (json_is_true (json_object_get (json_object_get (job, "spec"), "suspend")))
        return x_strdup ("its queue has not admitted it");
    char *failed = unmade (job);
    if (failed)
        return failed;
    const json_t *pod = pod_of (pods, job);
    if (pod)
        return pod_wait (news, pod);
    failed = warning_of (news, name);
    if (failed)
        return failed;
    return pods ? x_asprintf ("it has no pod yet: kubectl describe %s %s",
                              fleet_job_kind (job) == FLEET_JOB ? "job" : "deployment", name)
                : NULL;
}

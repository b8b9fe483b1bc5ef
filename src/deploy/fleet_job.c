/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/fleet_job.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "deploy/authorities.h"
#include "deploy/object_name.h"
#include "net/kube/kube_object.h"

#include <string.h>

#define MARGIN_S 60 /* beyond the deadlines the session keeps itself */
#define TTL_S    600

char *
fleet_job_name (const char *delegation)
{
    return x_asprintf ("mur-%s", delegation + strlen (delegation) - 16);
}

static const char *
bare (const char *name)
{
    const char *slash = strrchr (name, '/');
    return slash ? slash + 1 : name;
}

static json_t *
metadata_of (const struct job_facts *j)
{
    _cleanup_free_ char *name =
        j->seat.job ? x_strdup (j->seat.job) : fleet_job_name (j->delegation);
    char depth[16];
    snprintf (depth, sizeof depth, "%u", j->depth);
    json_t *labels = json_pack ("{s:s,s:s,s:s,s:s}", KUBE_OWN_PREFIX "root", j->root,
                                KUBE_OWN_PREFIX "parent", j->parent_job, KUBE_OWN_PREFIX "capsule",
                                bare (j->name), KUBE_OWN_PREFIX "depth", depth);
    if (j->queue)
        json_set_string (labels, "kueue.x-k8s.io/queue-name", j->queue);
    json_t *annotations = json_pack (
        "{s:s*,s:s,s:s,s:s,s:s,s:s*,s:s*,s:s*}", KUBE_OWN_PREFIX "delegation", j->delegation,
        KUBE_OWN_PREFIX "name", j->name, KUBE_OWN_PREFIX "version", j->version,
        KUBE_OWN_PREFIX "sha256", j->sha256, KUBE_OWN_PREFIX "grant", j->grant,
        KUBE_OWN_PREFIX "parent-session", j->parent_session, KUBE_OWN_PREFIX "formation",
        j->seat.formation, KUBE_OWN_PREFIX "member", j->seat.member);
    /* The pod, not its Job: one that takes its place takes no children over. No controller: a queue
     * would pass over what has one. */
    json_t *owner = json_pack ("[{s:s,s:s,s:s,s:s,s:b,s:b}]", "apiVersion", "v1", "kind", "Pod",
                               "name", j->parent_pod, "uid", j->parent_pod_uid, "controller", 0,
                               "blockOwnerDeletion", 0);
    return json_pack ("{s:s,s:s,s:o,s:o,s:o}", "name", name, "namespace", j->namespace, "labels",
                      labels, "annotations", annotations, "ownerReferences", owner);
}

/* No value of the parent's travels: names, and where the cluster keeps their values. */
static json_t *
environment_of (const struct job_facts *j)
{
    _cleanup_json_ json_t *spawner =
        j->delegation ? json_pack ("{s:s,s:s,s:s}", "session_id", j->parent_session, "context_id",
                                   j->context_id, "delegation_id", j->delegation)
                      : NULL;
    _cleanup_free_ char *spawner_text = spawner ? json_text (spawner, JSON_TEXT_ORDERED) : NULL;
    json_t *env = json_array ();
    for (size_t i = 0; i < j->env->len; i++)
        json_array_append_new (env,
                               json_pack ("{s:s,s:{s:{s:s,s:s,s:b}}}", "name", j->env->items[i],
                                          "valueFrom", "configMapKeyRef", "name", "murmur-env",
                                          "key", j->env->items[i], "optional", 1));
    /* Known to the node alone, and only once the pod has a place. */
    json_array_append_new (env, json_pack ("{s:s,s:{s:{s:s}}}", "name", DEPLOY_POD_IP, "valueFrom",
                                           "fieldRef", "fieldPath", "status.podIP"));
    const struct {
        const char *name, *value;
    } fixed[] = { { "HOME", "/home/murmur" },
                  { "MURMUR_ROOST_URL", j->roost_url },
                  { "MURMUR_SPAWNER", spawner_text } };
    for (size_t i = 0; i < ARRAY_LEN (fixed); i++)
        if (fixed[i].value)
            json_array_append_new (
                env, json_pack ("{s:s,s:s}", "name", fixed[i].name, "value", fixed[i].value));
    return env;
}

/* Its door is where the pod is, for whoever has a token; and says so. */
static json_t *
arguments_of (const struct job_facts *j)
{
    char port[8], deadline[24];
    snprintf (port, sizeof port, "%d", DEPLOY_PORT);
    snprintf (deadline, sizeof deadline, "%llu", (unsigned long long)j->inherited_deadline_ms);
    _cleanup_free_ char *url =
        x_asprintf (j->has_v6 ? "http://[$(%s)]:%s" : "http://$(%s):%s", DEPLOY_POD_IP, port);
    const char *const pairs[][2] = {
        { "--capsule", j->name },
        { "--capsule-version", j->version },
        { "--capsule-sha256", j->seat.member ? j->sha256 : NULL },
        { "--workdir", "/work" },
        { "--bind", j->has_v6 ? "::" : "0.0.0.0" },
        { "--port", port },
        { "--public-url", url },
        { "--fleet-token", DEPLOY_TOKEN "/token" },
        { "--secrets-dir", DEPLOY_KEYS },
        { "--records-store", j->records_store },
        { "--inherited-deadline", j->inherited_deadline_ms ? deadline : NULL },
    };
    json_t *args = json_pack ("[s,s,s]", "run", "--no-env-file",
                              j->seat.member ? "--fleet-member" : "--contained-launch");
    for (size_t i = 0; i < ARRAY_LEN (pairs); i++)
        for (size_t n = 0; pairs[i][1] && n < 2; n++)
            json_array_append_new (args, json_string (pairs[i][n]));
    return args;
}

static json_t *
container_of_child (const struct job_facts *j)
{
    json_t *mounts = json_pack (
        "[{s:s,s:s},{s:s,s:s},{s:s,s:s},{s:s,s:s},{s:s,s:s,s:b},{s:s,s:s,s:b},"
        "{s:s,s:s,s:s,s:b}]",
        "name", "home", "mountPath", "/home/murmur", "name", "state", "mountPath",
        "/home/murmur/.murmur", "name", "work", "mountPath", "/work", "name", "tmp", "mountPath",
        "/tmp", "name", "token", "mountPath", DEPLOY_TOKEN, "readOnly", 1, "name", "keys",
        "mountPath", DEPLOY_KEYS, "readOnly", 1, "name", "capsules", "mountPath",
        "/home/murmur/.murmur/artifacts", "subPath", "artifacts", "readOnly", 1);
    json_t *env = environment_of (j);
    authorities_of_container (j->ca, env, mounts);
    json_t *security =
        json_pack ("{s:b,s:b,s:b,s:{s:[s]}}", "runAsNonRoot", 1, "readOnlyRootFilesystem", 1,
                   "allowPrivilegeEscalation", 0, "capabilities", "drop", "ALL");
    json_t *resources = json_pack ("{s:{s:s,s:s},s:{s:s}}", "requests", "cpu", "100m", "memory",
                                   "512Mi", "limits", "memory", "512Mi");
    json_t *ports = json_pack ("[{s:s,s:i}]", "name", "door", "containerPort", DEPLOY_PORT);
    /* The card is what a door shows without a token. */
    json_t *ready = json_pack ("{s:{s:s,s:s},s:i}", "httpGet", "path", DEPLOY_CARD_PATH, "port",
                               "door", "periodSeconds", 5);
    return json_pack ("{s:s,s:s,s:[s],s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:s}", "name", "mur", "image",
                      j->image, "command", "mur", "args", arguments_of (j), "env", env, "ports",
                      ports, "readinessProbe", ready, "volumeMounts", mounts, "securityContext",
                      security, "resources", resources, "terminationMessagePolicy",
                      "FallbackToLogsOnError");
}

static json_t *
pod_of (const struct job_facts *j)
{
    /* Its own below the home: what a volume is mounted on elsewhere belongs to root. */
    json_t *volumes =
        json_pack ("[{s:s,s:{s:s}},{s:s,s:{s:s}},{s:s,s:{s:s}},{s:s,s:{s:s}},{s:s,s:{s:s,s:s}},"
                   "{s:s,s:{s:i,s:[{s:{s:s,s:i,s:s}}]}}]",
                   "name", "home", "emptyDir", "sizeLimit", "1Gi", "name", "state", "emptyDir",
                   "sizeLimit", "2Gi", "name", "tmp", "emptyDir", "sizeLimit", "1Gi", "name",
                   "work", "emptyDir", "sizeLimit", "10Gi", "name", "capsules", "image",
                   "reference", j->image, "pullPolicy", "IfNotPresent", "name", "token",
                   "projected", "defaultMode", 0440, "sources", "serviceAccountToken", "audience",
                   DEPLOY_AUDIENCE, "expirationSeconds", 600, "path", "token");
    /* The capsule's own Secret, as of one that is deployed; without one it has no keys. */
    _cleanup_free_ char *secret = deploy_object_name (j->name);
    json_array_append_new (volumes,
                           json_pack ("{s:s,s:{s:s,s:i,s:b}}", "name", "keys", "secret",
                                      "secretName", secret, "defaultMode", 0440, "optional", 1));
    authorities_of_pod (j->ca, volumes);
    json_t *filter =
        j->seccomp ? json_pack ("{s:s,s:s}", "type", "Localhost", "localhostProfile", j->seccomp)
                   : json_pack ("{s:s}", "type", "RuntimeDefault");
    json_t *security = json_pack ("{s:b,s:i,s:i,s:i,s:o}", "runAsNonRoot", 1, "runAsUser", 10001,
                                  "runAsGroup", 10001, "fsGroup", 10001, "seccompProfile", filter);
    json_t *labels =
        json_pack ("{s:s,s:s,s:s}", KUBE_OWN_PREFIX "root", j->root, KUBE_OWN_PREFIX "capsule",
                   bare (j->name), KUBE_OWN_PREFIX "fleet", "session");
    json_t *spec =
        json_pack ("{s:s,s:b,s:b,s:s,s:i,s:o,s:[o],s:o}", "restartPolicy", "Never",
                   "automountServiceAccountToken", 0, "enableServiceLinks", 0, "serviceAccountName",
                   "murmur-session", "terminationGracePeriodSeconds", 25, "securityContext",
                   security, "containers", container_of_child (j), "volumes", volumes);
    return json_pack ("{s:{s:o},s:o}", "metadata", "labels", labels, "spec", spec);
}

/* The least of its own time and what is left of an inherited deadline. */
static uint64_t
longest_s (const struct job_facts *j)
{
    uint64_t now = clock_unix_ms (), least = j->run_s;
    if (j->inherited_deadline_ms) {
        uint64_t left =
            j->inherited_deadline_ms > now ? (j->inherited_deadline_ms - now) / 1000 : 0;
        least = left < least ? left : least;
    }
    return least + MARGIN_S + (j->queue ? 0 : j->start_s);
}

json_t *
fleet_job_object (const struct job_facts *j)
{
    json_t *fail_job = json_pack ("{s:[{s:s,s:{s:s,s:[i]}}]}", "rules", "action", "FailJob",
                                  "onExitCodes", "operator", "NotIn", "values", 0);
    json_t *spec = json_pack (
        "{s:i,s:i,s:i,s:s,s:o,s:I,s:i,s:o}", "backoffLimit", 0, "completions", 1, "parallelism", 1,
        "podReplacementPolicy", "Failed", "podFailurePolicy", fail_job, "activeDeadlineSeconds",
        (json_int_t)longest_s (j), "ttlSecondsAfterFinished", TTL_S, "template", pod_of (j));
    if (j->queue)
        json_set_bool (spec, "suspend", true);
    return json_pack ("{s:s,s:s,s:o,s:o}", "apiVersion", "batch/v1", "kind", "Job", "metadata",
                      metadata_of (j), "spec", spec);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A capsule on Kubernetes: a Job that ends, or a Deployment with a door; and what is around it.
 *
 * Nothing of it asks for more than pod security's profile `restricted`, and no session gets a token
 * of the API.
 */
#include "deploy/deploy_internal.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "deploy/authorities.h"
#include "net/url.h"

#include <string.h>

#define MIB  1048576ULL
#define HOME "/home/murmur"

#define TEAM_DIR "/formation" /* a roster's own folder in its pod */

#define DEADLINE_MARGIN_S 60 /* beyond the deadline the session keeps itself */

static json_t *
metadata_of (const struct deploy_facts *f, const char *name)
{
    const struct deploy_request *r = f->request;
    return json_pack ("{s:s, s:s, s:{s:s, s:s}}", "name", name, "namespace", r->space, "labels",
                      "app.kubernetes.io/managed-by", "murmur", "murmur.dev/capsule", f->name + 4);
}

/* A quantity of bytes, as Kubernetes writes one. */
static json_t *
mebibytes (uint64_t bytes)
{
    _cleanup_free_ char *text =
        x_asprintf ("%lluMi", (unsigned long long)((bytes + MIB - 1) / MIB));
    return json_string (text);
}

static json_t *
resources (const struct deploy_facts *f)
{
    json_t *requests =
        json_pack ("{s:s, s:o}", "cpu", "100m", "memory", mebibytes (f->memory_bytes));
    json_t *limits = json_pack ("{s:o}", "memory", mebibytes (f->memory_bytes));
    _cleanup_free_ char *cpu = x_asprintf ("%um", f->cpu_percent * 10);
    if (f->cpu_percent)
        json_object_set_new (limits, "cpu", json_string (cpu));
    return json_pack ("{s:o, s:o}", "requests", requests, "limits", limits);
}

/* The capsule with its store, and the same packages for the capsules it starts beside itself; of a
 * formation those alone. */
static void
mount_capsule (const struct deploy_facts *f, json_t *mounts)
{
    static const char *const places[][2] = { { "/capsule", "capsule" },
                                             { HOME "/.murmur/artifacts", "artifacts" } };
    for (size_t i = f->request->formation ? 1 : 0; i < ARRAY_LEN (places); i++)
        json_array_append_new (mounts,
                               json_pack ("{s:s, s:s, s:s, s:b}", "name", "capsule", "mountPath",
                                          places[i][0], "subPath", places[i][1], "readOnly", 1));
}

/* The image a volume of the pod is; NULL: it has none. The store of a formation's members is one.
 */
static const char *
volume_image (const struct deploy_facts *f)
{
    const struct deploy_request *r = f->request;
    return r->capsule_image ? r->capsule_image : r->formation ? r->image : NULL;
}

static const char *
work_dir (const struct deploy_facts *f)
{
    return deploy_is_in_one_pod (f->request) ? TEAM_DIR : "/work";
}

/* In the work folder, which is the entry's, as where a formation is launched by hand. */
static void
mount_roster (json_t *mounts)
{
    static const char *const files[][2] = { { TEAM_DIR "/roster.yaml", "roster.yaml" },
                                            { TEAM_DIR "/murmur.lock", "murmur.lock" } };
    for (size_t i = 0; i < ARRAY_LEN (files); i++)
        json_array_append_new (mounts,
                               json_pack ("{s:s, s:s, s:s, s:b}", "name", "config", "mountPath",
                                          files[i][0], "subPath", files[i][1], "readOnly", 1));
}

static json_t *
container (const struct deploy_facts *f)
{
    json_t *c =
        json_pack ("{s:s, s:s, s:[s], s:o, s:o, s:s, s:{s:b, s:b, s:b, s:{s:[s]}}}", "name", "mur",
                   "image", f->request->image, "command", "mur", "args",
                   deploy_arguments (f, "/capsule", work_dir (f), DEPLOY_KEYS), "resources",
                   resources (f), "terminationMessagePolicy", "FallbackToLogsOnError",
                   "securityContext", "allowPrivilegeEscalation", 0, "readOnlyRootFilesystem", 1,
                   "runAsNonRoot", 1, "capabilities", "drop", "ALL");
    json_t *env = json_pack ("[{s:s, s:s}]", "name", "HOME", "value", HOME);
    if (f->request->roost_url)
        json_array_append_new (env, json_pack ("{s:s, s:s}", "name", "MURMUR_ROOST_URL", "value",
                                               f->request->roost_url));
    if (f->request->roost_url)
        json_array_append_new (env,
                               json_pack ("{s:s, s:{s:{s:s}}}", "name", DEPLOY_POD_IP, "valueFrom",
                                          "fieldRef", "fieldPath", "status.podIP"));
    json_object_set_new (c, "env", env);
    json_object_set_new (
        c, "envFrom",
        json_pack ("[{s:{s:s, s:b}}]", "configMapRef", "name", "murmur-env", "optional", 1));
    json_t *mounts = json_pack (
        "[{s:s, s:s}, {s:s, s:s}, {s:s, s:s, s:s, s:b}, {s:s, s:s}, {s:s, s:s}]", "name", "home",
        "mountPath", HOME, "name", "state", "mountPath", HOME "/.murmur", "name", "config",
        "mountPath", HOME "/.murmur/config.yaml", "subPath", "config.yaml", "readOnly", 1, "name",
        "work", "mountPath", work_dir (f), "name", "tmp", "mountPath", "/tmp");
    if (f->keys.len)
        json_array_append_new (mounts, json_pack ("{s:s, s:s, s:b}", "name", "keys", "mountPath",
                                                  DEPLOY_KEYS, "readOnly", 1));
    if (f->request->roost_url)
        json_array_append_new (mounts, json_pack ("{s:s, s:s, s:b}", "name", "token", "mountPath",
                                                  DEPLOY_TOKEN, "readOnly", 1));
    json_object_set_new (c, "volumeMounts", mounts);
    authorities_of_container (f->request->ca, env, mounts);
    if (volume_image (f))
        mount_capsule (f, mounts);
    if (deploy_is_in_one_pod (f->request))
        mount_roster (mounts);
    if (! f->port)
        return c;
    json_object_set_new (c, "ports",
                         json_pack ("[{s:s, s:i}]", "name", "door", "containerPort", (int)f->port));
    if (f->request->roost_url || (f->stays && f->request->door != DEPLOY_DOOR_NONE))
        json_object_set_new (c, "readinessProbe",
                             json_pack ("{s:{s:s, s:s}, s:i}", "httpGet", "path", DEPLOY_CARD_PATH,
                                        "port", "door", "periodSeconds", 5));
    return c;
}

/* Of a login that ends there is a token, too: asked of the same Secret, which need not have it. */
static json_t *
keys_with_token (const struct deploy_facts *f, json_t *items)
{
    static const char token[] = "AWS_SESSION_TOKEN";
    return json_pack ("{s:s, s:{s:i, s:[{s:{s:s, s:o}}, {s:{s:s, s:[{s:s, s:s}], s:b}}]}}", "name",
                      "keys", "projected", "defaultMode", 0440, "sources", "secret", "name",
                      f->name, "items", items, "secret", "name", f->name, "items", "key", token,
                      "path", token, "optional", 1);
}

/* Each key by its name, and no other of the Secret. */
static json_t *
key_volume (const struct deploy_facts *f)
{
    json_t *items = json_array ();
    for (size_t i = 0; i < f->keys.len; i++)
        json_array_append_new (
            items, json_pack ("{s:s, s:s}", "key", f->keys.items[i], "path", f->keys.items[i]));
    if (f->has_login)
        return keys_with_token (f, items);
    return json_pack ("{s:s, s:{s:s, s:i, s:o}}", "name", "keys", "secret", "secretName", f->name,
                      "defaultMode", 0440, "items", items);
}

/* Says to the referee which pod it is in, and to nobody else anything. */
static json_t *
token_volume (void)
{
    return json_pack ("{s:s, s:{s:i, s:[{s:{s:s, s:i, s:s}}]}}", "name", "token", "projected",
                      "defaultMode", 0440, "sources", "serviceAccountToken", "audience",
                      DEPLOY_AUDIENCE, "expirationSeconds", 600, "path", "token");
}

/* The runtime's own, or one that lets murmur make its walls. */
static json_t *
seccomp_of (const struct deploy_facts *f)
{
    const char *own = f->request->seccomp;
    return own ? json_pack ("{s:s, s:s}", "type", "Localhost", "localhostProfile", own)
               : json_pack ("{s:s}", "type", "RuntimeDefault");
}

static json_t *
pod_of (const struct deploy_facts *f)
{
    /* Its own below the home: what a volume is mounted on elsewhere belongs to root. */
    json_t *volumes = json_pack (
        "[{s:s, s:{s:s}}, {s:s, s:{s:s}}, {s:s, s:{s:s}}, {s:s, s:{s:s}}, {s:s, s:{s:s}}]", "name",
        "home", "emptyDir", "sizeLimit", "1Gi", "name", "state", "emptyDir", "sizeLimit", "2Gi",
        "name", "work", "emptyDir", "sizeLimit", "4Gi", "name", "tmp", "emptyDir", "sizeLimit",
        "1Gi", "name", "config", "configMap", "name", f->name);
    if (volume_image (f))
        json_array_append_new (volumes, json_pack ("{s:s, s:{s:s, s:s}}", "name", "capsule",
                                                   "image", "reference", volume_image (f),
                                                   "pullPolicy", "IfNotPresent"));
    if (f->keys.len)
        json_array_append_new (volumes, key_volume (f));
    if (f->request->roost_url)
        json_array_append_new (volumes, token_volume ());
    authorities_of_pod (f->request->ca, volumes);
    json_t *spec = json_pack (
        "{s:b, s:b, s:s, s:i, s:{s:b, s:i, s:i, s:i, s:o}, s:[o], s:o}",
        "automountServiceAccountToken", 0, "enableServiceLinks", 0, "serviceAccountName", f->name,
        "terminationGracePeriodSeconds", DEPLOY_GRACE_SECS, "securityContext", "runAsNonRoot", 1,
        "runAsUser", DEPLOY_USER, "runAsGroup", DEPLOY_USER, "fsGroup", DEPLOY_USER,
        "seccompProfile", seccomp_of (f), "containers", container (f), "volumes", volumes);
    return json_pack ("{s:{s:{s:s, s:s, s:s}, s:{s:s, s:s}}, s:o}", "metadata", "labels",
                      "murmur.dev/capsule", f->name + 4, "murmur.dev/root", f->name,
                      "murmur.dev/fleet", "session", "annotations", "murmur.dev/name",
                      f->request->manifest->name, "murmur.dev/version",
                      f->request->manifest->version, "spec", spec);
}

static json_t *
object (const char *version, const char *kind, json_t *metadata)
{
    return json_pack ("{s:s, s:s, s:o}", "apiVersion", version, "kind", kind, "metadata", metadata);
}

/* What it was made of, since a Job is never changed afterwards. */
static void
sign_job (json_t *o)
{
    char digest[SHA256_HEX_LEN + 1];
    _cleanup_free_ char *text = json_text (o, JSON_TEXT_SORTED);
    sha256_hex (text, strlen (text), digest);
    json_object_set_new (json_object_get (json_object_get (o, "metadata"), "annotations"),
                         DEPLOY_RENDERED, json_string (digest));
}

/* Which roster it is and which bytes each member: a Job of others is another Job. */
static void
note_members (const struct deploy_facts *f, json_t *annotations)
{
    const struct deploy_formation *g = f->request->formation;
    char digest[SHA256_HEX_LEN + 1];
    sha256_hex (g->roster_text, strlen (g->roster_text), digest);
    json_object_set_new (annotations, "murmur.dev/roster-sha256", json_string (digest));
    if (g->is_spread) {
        /* What its launcher reads. */
        const struct roster_member *entry = &g->roster->members[g->roster->entry];
        json_object_set_new (annotations, "murmur.dev/roster", json_string (g->roster_text));
        json_object_set_new (annotations, "murmur.dev/name", json_string (entry->capsule));
        json_object_set_new (annotations, "murmur.dev/member", json_string (entry->name));
        if (f->request->deadline)
            json_object_set_new (annotations, "murmur.dev/deadline",
                                 json_string (f->request->deadline));
    }
    for (size_t i = 0; i < g->roster->len; i++) {
        const struct roster_member *m = &g->roster->members[i];
        _cleanup_free_ char *key = x_asprintf ("member.murmur.dev/%s", m->name);
        _cleanup_free_ char *value =
            x_asprintf ("%s@%s sha256:%s", m->capsule, m->version, g->sha256[i]);
        json_object_set_new (annotations, key, json_string (value));
    }
}

/* One start, one end: nothing of it runs twice. */
static json_t *
job (const struct deploy_facts *f)
{
    bool is_queued = f->request->target == DEPLOY_KUEUE;
    json_t *o = object ("batch/v1", "Job", metadata_of (f, f->name)), *pod = pod_of (f);
    json_t *meta = json_object_get (o, "metadata"), *labels = json_object_get (meta, "labels");
    json_object_set_new (labels, "murmur.dev/root", json_string (f->name));
    if (is_queued)
        json_object_set_new (labels, "kueue.x-k8s.io/queue-name", json_string (f->request->queue));
    json_object_set_new (meta, "annotations",
                         json_pack ("{s:s, s:s}", "murmur.dev/name", f->request->manifest->name,
                                    "murmur.dev/version", f->request->manifest->version));
    if (f->request->formation)
        note_members (f, json_object_get (meta, "annotations"));
    json_object_set_new (json_object_get (pod, "spec"), "restartPolicy", json_string ("Never"));
    json_object_set_new (
        o, "spec",
        json_pack ("{s:i, s:i, s:i, s:s, s:i, s:i, s:{s:[{s:s, s:{s:s, s:s, s:[i]}}]}, s:o}",
                   "backoffLimit", 0, "completions", 1, "parallelism", 1, "podReplacementPolicy",
                   "Failed", "activeDeadlineSeconds", 86400, "ttlSecondsAfterFinished", 600,
                   "podFailurePolicy", "rules", "action", "FailJob", "onExitCodes", "containerName",
                   "mur", "operator", "NotIn", "values", 0, "template", pod));
    if (is_queued)
        json_object_set_new (json_object_get (o, "spec"), "suspend", json_true ());
    if (f->request->deadline)
        json_object_set_new (json_object_get (o, "spec"), "activeDeadlineSeconds",
                             json_integer (atoll (f->request->deadline) + DEADLINE_MARGIN_S));
    if (f->stays) /* as long as its door is wanted */
        json_object_del (json_object_get (o, "spec"), "activeDeadlineSeconds");
    sign_job (o);
    return o;
}

/* Tasks live in one process, so there is never a second one beside it. */
static json_t *
deployment (const struct deploy_facts *f)
{
    json_t *o = object ("apps/v1", "Deployment", metadata_of (f, f->name));
    json_object_set_new (json_object_get (o, "metadata"), "annotations",
                         json_pack ("{s:s, s:s}", "murmur.dev/name", f->request->manifest->name,
                                    "murmur.dev/version", f->request->manifest->version));
    json_object_set_new (o, "spec",
                         json_pack ("{s:i, s:{s:s}, s:{s:{s:s}}, s:o}", "replicas", 1, "strategy",
                                    "type", "Recreate", "selector", "matchLabels",
                                    "murmur.dev/capsule", f->name + 4, "template", pod_of (f)));
    return o;
}

static json_t *
service (const struct deploy_facts *f)
{
    json_t *o = object ("v1", "Service", metadata_of (f, f->name));
    json_object_set_new (o, "spec",
                         json_pack ("{s:{s:s}, s:[{s:s, s:i, s:s, s:s}]}", "selector",
                                    "murmur.dev/capsule", f->name + 4, "ports", "name", "door",
                                    "port", (int)f->port, "targetPort", "door", "appProtocol",
                                    "kgateway.dev/a2a"));
    return o;
}

/* No time bound: an answer is a stream that may last. */
static json_t *
route (const struct deploy_facts *f)
{
    _cleanup_url_ struct url url = { 0 };
    (void)url_parse (f->request->public_url, &url);
    json_t *o = object ("gateway.networking.k8s.io/v1", "HTTPRoute", metadata_of (f, f->name));
    json_object_set_new (o, "spec",
                         json_pack ("{s:[{s:s}], s:[s], s:[{s:{s:s}, s:[{s:s, s:i}]}]}",
                                    "parentRefs", "name", "murmur", "hostnames", url.authority.host,
                                    "rules", "timeouts", "request", "0s", "backendRefs", "name",
                                    f->name, "port", (int)f->port));
    return o;
}

/* A port of the records store that is not among the usual ones; 0: none is. */
static int
store_port (const char *store)
{
    _cleanup_url_ struct url url = { 0 };
    const char *endpoint = store ? strstr (store, "endpoint=") : NULL;
    _cleanup_free_ char *address = endpoint ? x_strdup (endpoint + strlen ("endpoint="))
                                   : store  ? x_strdup (store)
                                            : NULL;
    if (! address)
        return 0;
    address[strcspn (address, "&")] = '\0';
    if (url_parse (address, &url) || url.authority.port == URL_NO_PORT)
        return 0;
    return url.authority.port == 80 || url.authority.port == 443 ? 0 : url.authority.port;
}

/* In: the fleet and the gateway's namespace. Out: names, and what capsules of this one may reach;
 * which hosts is held by mur itself. */
static json_t *
network_policy (const struct deploy_facts *f)
{
    json_t *o = object ("networking.k8s.io/v1", "NetworkPolicy", metadata_of (f, f->name));
    json_t *ingress = json_array ();
    if (f->port)
        json_array_append_new (
            ingress, json_pack ("{s:[{s:{s:[{s:s, s:s}]}}, {s:{s:{s:s}}}], s:[{s:i}]}", "from",
                                "podSelector", "matchExpressions", "key", "murmur.dev/fleet",
                                "operator", "Exists", "namespaceSelector", "matchLabels",
                                "murmur.dev/gateway", "true", "ports", "port", (int)f->port));
    json_t *egress = json_pack (
        "[{s:[{s:s, s:i}, {s:s, s:i}]}, {s:[{s:s, s:i}, {s:s, s:i}]}, {s:[{s:{s:{s:s}}}]}]",
        "ports", "protocol", "UDP", "port", 53, "protocol", "TCP", "port", 53, "ports", "protocol",
        "TCP", "port", 443, "protocol", "TCP", "port", 80, "to", "podSelector", "matchLabels",
        "murmur.dev/fleet", "referee");
    int port = store_port (f->request->records_store);
    if (port)
        json_array_append_new (
            egress, json_pack ("{s:[{s:s, s:i}]}", "ports", "protocol", "TCP", "port", port));
    if (f->request->roost_url) /* the doors of its children */
        json_array_append_new (egress, json_pack ("{s:[{s:{s:{s:s}}}]}", "to", "podSelector",
                                                  "matchLabels", "murmur.dev/fleet", "session"));
    json_object_set_new (o, "spec",
                         json_pack ("{s:{s:{s:s}}, s:[s, s], s:o, s:o}", "podSelector",
                                    "matchLabels", "murmur.dev/capsule", f->name + 4, "policyTypes",
                                    "Ingress", "Egress", "ingress", ingress, "egress", egress));
    return o;
}

/* A pod has no control group of its own to give to commands: its limits are the wall. */
static json_t *
config_map (const struct deploy_facts *f)
{
    json_t *o = object ("v1", "ConfigMap", metadata_of (f, f->name));
    json_object_set_new (o, "data",
                         json_pack ("{s:s}", "config.yaml", "resources: {cgroup: optional}\n"));
    const struct deploy_formation *g = f->request->formation;
    if (deploy_is_in_one_pod (f->request))
        json_object_update_new (
            json_object_get (o, "data"),
            json_pack ("{s:s, s:s}", "roster.yaml", g->roster_text, "murmur.lock", g->lock_text));
    return o;
}

static json_t *
service_account (const struct deploy_facts *f)
{
    return deploy_as_account (object ("v1", "ServiceAccount", metadata_of (f, f->name)),
                              f->request->records_role);
}

void
deploy_kubernetes (const struct deploy_facts *f, struct deploy_files *out)
{
    deploy_file_object (out, service_account (f));
    deploy_file_object (out, config_map (f));
    deploy_file_object (out, network_policy (f));
    /* A session of a fleet is registered once, so that nothing starts it again. */
    deploy_file_object (out, f->stays && ! f->request->roost_url ? deployment (f) : job (f));
    if (f->request->door != DEPLOY_DOOR_NONE)
        deploy_file_object (out, service (f));
    if (f->request->door == DEPLOY_DOOR_ROUTE)
        deploy_file_object (out, route (f));
}

void
deploy_sandbox (const struct deploy_facts *f, struct deploy_files *out)
{
    json_t *o = object ("agents.x-k8s.io/v1beta1", "Sandbox", metadata_of (f, f->name));
    json_object_set_new (o, "spec",
                         json_pack ("{s:b, s:o}", "service", f->request->door != DEPLOY_DOOR_NONE,
                                    "podTemplate", pod_of (f)));
    deploy_file_object (out, service_account (f));
    deploy_file_object (out, config_map (f));
    deploy_file_object (out, network_policy (f));
    deploy_file_object (out, o);
}

void
deploy_kagent (const struct deploy_facts *f, struct deploy_files *out)
{
    json_t *o = object ("kagent.dev/v1alpha2", "Agent", metadata_of (f, f->name));
    json_object_set_new (o, "spec",
                         json_pack ("{s:s, s:s, s:{s:{s:s, s:s, s:o, s:i}}}", "type", "BYO",
                                    "description", f->request->manifest->name, "byo", "deployment",
                                    "image", f->request->image, "cmd", "mur", "args",
                                    deploy_arguments (f, "/capsule", "/work", DEPLOY_KEYS),
                                    "replicas", 1));
    deploy_file_object (out, o);
}

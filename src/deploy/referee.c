/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/referee.h"

#include "base/alloc.h"
#include "deploy/authorities.h"
#include "deploy/deploy_internal.h"
#include "deploy/store.h"
#include "net/url.h"

#include <string.h>

#define KEYS      "/var/run/secrets/murmur.dev/roost"
#define TLS       "/var/run/secrets/murmur.dev/tls"
#define TLS_PORT  7743
#define PORT_TEXT "7700"

static json_t *
object (const struct referee_deployment *d, const char *version, const char *kind, const char *name)
{
    return json_pack ("{s:s, s:s, s:{s:s, s:s, s:{s:s}}}", "apiVersion", version, "kind", kind,
                      "metadata", "name", name, "namespace", d->space, "labels",
                      "app.kubernetes.io/managed-by", "murmur");
}

/* --- rights --- */

/* Sessions have an account, and it may nothing. */
static json_t *
account (const struct referee_deployment *d, const char *name, const char *role)
{
    return deploy_as_account (object (d, "v1", "ServiceAccount", name), role);
}

static json_t *
role (const struct referee_deployment *d)
{
    json_t *o = object (d, "rbac.authorization.k8s.io/v1", "Role", REFEREE_NAME);
    json_object_set_new (
        o, "rules",
        json_pack ("[{s:[s], s:[s], s:[s,s,s,s,s,s]}, {s:[s], s:[s], s:[s,s,s,s]}]", "apiGroups",
                   "batch", "resources", "jobs", "verbs", "create", "delete", "get", "list",
                   "watch", "patch", "apiGroups", "", "resources", "pods", "verbs", "get", "list",
                   "watch", "delete"));
    return o;
}

static json_t *
binding (const struct referee_deployment *d, const char *kind, const char *name,
         const char *to_kind, const char *to)
{
    json_t *o = object (d, "rbac.authorization.k8s.io/v1", kind, name);
    if (str_eq (kind, "ClusterRoleBinding"))
        json_object_del (json_object_get (o, "metadata"), "namespace");
    json_object_set_new (o, "roleRef",
                         json_pack ("{s:s, s:s, s:s}", "apiGroup", "rbac.authorization.k8s.io",
                                    "kind", to_kind, "name", to));
    json_object_set_new (o, "subjects",
                         json_pack ("[{s:s, s:s, s:s}]", "kind", "ServiceAccount", "name",
                                    REFEREE_NAME, "namespace", d->space));
    return o;
}

/* --- the daemon --- */

static json_t *
arguments_of (const struct referee_deployment *d)
{
    const char *const pairs[][2] = { { "--backend", "kubernetes" },
                                     { "--placement", d->placement },
                                     { "--namespace", d->space },
                                     { "--image", d->image },
                                     { "--roost-url", d->roost_url },
                                     { "--port", PORT_TEXT },
                                     { "--tls", TLS },
                                     { "--key-file", KEYS "/key" },
                                     { "--registry-path", "/artifacts" },
                                     { "--ca", d->ca },
                                     { "--queue", d->queue },
                                     { "--seccomp-profile", d->seccomp },
                                     { "--records-store", d->records_store } };
    json_t *args = json_array ();
    for (size_t i = 0; i < ARRAY_LEN (pairs); i++)
        for (size_t n = 0; pairs[i][1] && n < 2; n++)
            json_array_append_new (args, json_string (pairs[i][n]));
    for (size_t i = 0; i < ARRAY_LEN (d->limits); i++)
        for (size_t n = 0; d->limits[i][1] && n < 2; n++)
            json_array_append_new (args, json_string (d->limits[i][n]));
    for (size_t i = 0; i < d->spawn_allow->len; i++) {
        json_array_append_new (args, json_string ("--spawn-allow"));
        json_array_append_new (args, json_string (d->spawn_allow->items[i]));
    }
    return args;
}

static json_t *
container_of (const struct referee_deployment *d)
{
    json_t *env = json_pack ("[{s:s, s:s}]", "name", "HOME", "value", "/home/murmur");
    json_t *mounts = json_pack ("[{s:s, s:s}, {s:s, s:s, s:b}, {s:s, s:s, s:b}]", "name", "home",
                                "mountPath", "/home/murmur", "name", "key", "mountPath", KEYS,
                                "readOnly", 1, "name", "tls", "mountPath", TLS, "readOnly", 1);
    authorities_of_container (d->ca, env, mounts);
    json_t *c =
        json_pack ("{s:s, s:s, s:[s], s:o, s:o, s:o, s:[{s:s, s:i}], s:s}", "name", "mur-roost",
                   "image", d->image, "command", "mur-roost", "args", arguments_of (d), "env", env,
                   "volumeMounts", mounts, "ports", "name", "roost", "containerPort", TLS_PORT,
                   "terminationMessagePolicy", "FallbackToLogsOnError");
    json_object_set_new (c, "readinessProbe",
                         json_pack ("{s:{s:s, s:s, s:s}, s:i}", "httpGet", "path", "/health",
                                    "port", "roost", "scheme", "HTTPS", "periodSeconds", 5));
    json_object_set_new (c, "securityContext",
                         json_pack ("{s:b, s:b, s:b, s:{s:[s]}}", "allowPrivilegeEscalation", 0,
                                    "readOnlyRootFilesystem", 1, "runAsNonRoot", 1, "capabilities",
                                    "drop", "ALL"));
    json_object_set_new (c, "resources",
                         json_pack ("{s:{s:s, s:s}, s:{s:s}}", "requests", "cpu", "100m", "memory",
                                    "128Mi", "limits", "memory", "128Mi"));
    return c;
}

/* Alone of all here it has its account's token: it is who asks the API server. */
static json_t *
pod_of (const struct referee_deployment *d)
{
    json_t *volumes = json_pack (
        "[{s:s, s:{s:s}}, {s:s, s:{s:s, s:i, s:[{s:s, s:s}]}}, {s:s, s:{s:s, s:i}}]", "name",
        "home", "emptyDir", "sizeLimit", "64Mi", "name", "key", "secret", "secretName",
        REFEREE_KEY_SECRET, "defaultMode", 0440, "items", "key", "key", "path", "key", "name",
        "tls", "secret", "secretName", REFEREE_TLS_SECRET, "defaultMode", 0440);
    authorities_of_pod (d->ca, volumes);
    json_t *spec =
        json_pack ("{s:b, s:b, s:s, s:i, s:{s:b, s:i, s:i, s:i, s:{s:s}}, s:[o], s:o}",
                   "automountServiceAccountToken", 1, "enableServiceLinks", 0, "serviceAccountName",
                   REFEREE_NAME, "terminationGracePeriodSeconds", DEPLOY_GRACE_SECS,
                   "securityContext", "runAsNonRoot", 1, "runAsUser", DEPLOY_USER, "runAsGroup",
                   DEPLOY_USER, "fsGroup", DEPLOY_USER, "seccompProfile", "type", "RuntimeDefault",
                   "containers", container_of (d), "volumes", volumes);
    return json_pack ("{s:{s:{s:s}}, s:o}", "metadata", "labels", "murmur.dev/fleet", "referee",
                      "spec", spec);
}

/* Two would both believe what they alone have started. */
static json_t *
deployment (const struct referee_deployment *d)
{
    json_t *o = object (d, "apps/v1", "Deployment", REFEREE_NAME);
    json_object_set_new (o, "spec",
                         json_pack ("{s:i, s:{s:s}, s:{s:{s:s}}, s:o}", "replicas", 1, "strategy",
                                    "type", "Recreate", "selector", "matchLabels",
                                    "murmur.dev/fleet", "referee", "template", pod_of (d)));
    return o;
}

/* --- its address --- */

static json_t *
service (const struct referee_deployment *d)
{
    json_t *o = object (d, "v1", "Service", REFEREE_NAME);
    json_object_set_new (o, "spec",
                         json_pack ("{s:{s:s}, s:[{s:s, s:i, s:s}]}", "selector",
                                    "murmur.dev/fleet", "referee", "ports", "name", "roost", "port",
                                    443, "targetPort", "roost"));
    return o;
}

/* In: sessions, and the gateway people come by. Out: names, and the API server wherever it is. */
static json_t *
network_policy (const struct referee_deployment *d)
{
    json_t *o = object (d, "networking.k8s.io/v1", "NetworkPolicy", REFEREE_NAME);
    json_object_set_new (
        o, "spec",
        json_pack ("{s:{s:{s:s}}, s:[s, s], s:[{s:[{s:{s:{s:s}}}, {s:{s:{s:s}}}], s:[{s:s}]}], "
                   "s:[{s:[{s:s, s:i}, {s:s, s:i}]}, {s:[{s:s, s:i}, {s:s, s:i}]}]}",
                   "podSelector", "matchLabels", "murmur.dev/fleet", "referee", "policyTypes",
                   "Ingress", "Egress", "ingress", "from", "podSelector", "matchLabels",
                   "murmur.dev/fleet", "session", "namespaceSelector", "matchLabels",
                   "murmur.dev/gateway", "true", "ports", "port", "roost", "egress", "ports",
                   "protocol", "UDP", "port", 53, "protocol", "TCP", "port", 53, "ports",
                   "protocol", "TCP", "port", 443, "protocol", "TCP", "port", 6443));
    return o;
}

/* --- the whole --- */

static bool
check (const struct referee_deployment *d, struct mur_error **err)
{
    _cleanup_url_ struct url url = { 0 };
    if (! d->image) {
        mur_fail (err, E_DEP_002,
                  "a referee needs --image: what holds mur, mur-roost and the capsules");
        return mur_hint (err, "name it by digest: registry.example.com/agents/x@sha256:...");
    }
    const char *fault = url_parse (d->roost_url, &url);
    if (! fault && ! str_eq (url.scheme, "https"))
        fault = "is not https, and credentials would go to it in the open";
    if (fault)
        return mur_fail (err, E_DEP_005, "--roost-url: \"%s\" %s", d->roost_url, fault);
    if (! d->spawn_allow->len)
        return mur_fail (err, E_DEP_005,
                         "name at least one capsule whose sessions may start others");
    if (d->records_role && ! (d->records_store && str_starts (d->records_store, "s3:")))
        return mur_fail (err, E_DEP_005, "--records-role is of a --records-store at s3://");
    return ! d->records_store || deploy_store_check (d->records_store, err);
}

bool
deploy_referee (const struct referee_deployment *d, struct deploy_files *out,
                struct mur_error **err)
{
    *out = (struct deploy_files){ 0 };
    if (! check (d, err))
        return false;
    _cleanup_free_ char *reviewer = x_asprintf (REFEREE_NAME "-%s", d->space);
    json_t *const objects[] = {
        account (d, "murmur-session", d->records_role),
        account (d, REFEREE_NAME, NULL),
        role (d),
        binding (d, "RoleBinding", REFEREE_NAME, "Role", REFEREE_NAME),
        binding (d, "ClusterRoleBinding", reviewer, "ClusterRole", "system:auth-delegator"),
        network_policy (d),
        service (d),
        deployment (d),
    };
    for (size_t i = 0; i < ARRAY_LEN (objects); i++)
        deploy_file_object (out, objects[i]);
    out->name = x_strdup (REFEREE_NAME);
    return true;
}

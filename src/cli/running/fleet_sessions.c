/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/running/fleet_sessions.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/json.h"
#include "net/kube/kube.h"

#include <string.h>

#define PREFIX "murmur.dev/"

/* --- the Jobs --- */

static const char *
metadata (const json_t *job, const char *map, const char *name)
{
    const json_t *of = json_object_get (job, "metadata");
    return json_get_string (map ? json_object_get (of, map) : of, name);
}

static const char *
or_dash (const char *text)
{
    return text ? text : "-";
}

/* The word of its Job's end, else whether a session has registered. Owned. */
static char *
state_of (const json_t *job)
{
    size_t i;
    json_t *c;
    const char *outcome = metadata (job, "annotations", PREFIX "outcome");
    _cleanup_json_ json_t *o = outcome ? json_loads (outcome, 0, NULL) : NULL;
    if (json_get_string (o, "status"))
        return x_strdup (json_get_string (o, "status"));
    json_array_foreach (json_object_get (json_object_get (job, "status"), "conditions"), i,
                        c) if (str_eq (json_get_string (c, "status"), "True"))
    {
        const char *type = json_get_string (c, "type");
        if (str_eq (type, "Complete"))
            return x_strdup ("ok");
        if (str_eq (type, "Failed"))
            return x_strdup ("failed");
    }
    return x_strdup (metadata (job, "annotations", PREFIX "session") ? "running" : "queued");
}

static json_t *
describe (const json_t *job)
{
    _cleanup_free_ char *state = state_of (job);
    json_t *o = json_object ();
    json_set_string (o, "session_id", metadata (job, "annotations", PREFIX "session"));
    json_set_string (o, "status", state);
    json_set_string (o, "capsule_name", metadata (job, "annotations", PREFIX "name"));
    json_set_string (o, "capsule_version", metadata (job, "annotations", PREFIX "version"));
    json_set_string (o, "job", metadata (job, NULL, "name"));
    json_set_string (o, "root", metadata (job, "labels", PREFIX "root"));
    json_set_string (o, "parent", metadata (job, "labels", PREFIX "parent"));
    json_set_string (o, "spawned_by", metadata (job, "annotations", PREFIX "parent-session"));
    json_set_string (o, "delegation_id", metadata (job, "annotations", PREFIX "delegation"));
    json_set_string (o, "started_at", metadata (job, NULL, "creationTimestamp"));
    return o;
}

/* --- asking --- */

struct asked {
    struct kube *kube;
    char *jobs; /* path of the list */
};

static void
asked_clear (struct asked *a)
{
    kube_free (a->kube);
    free (a->jobs);
}

static bool
connect (const struct cli_args *args, struct asked *a, struct mur_error **err)
{
    const char *namespace = cli_value (args, "--namespace");
    *a = (struct asked){ .kube = kube_new (cli_value (args, "--kubeconfig"), err) };
    if (! a->kube)
        return false;
    _cleanup_free_ char *escaped = kube_escape (namespace ? namespace : kube_namespace (a->kube));
    a->jobs = x_asprintf ("/apis/batch/v1/namespaces/%s/jobs", escaped);
    return true;
}

/* The whole list, owned; NULL: E-KUB-002. */
static json_t *
read_jobs (const struct asked *a, struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("%s?labelSelector=murmur.dev%%2Froot", a->jobs);
    const struct kube_call call = { .method = "GET", .path = path };
    _cleanup_kube_answer_ struct kube_answer answer = { 0 };
    if (! kube_call (a->kube, &call, &answer, err))
        return NULL;
    if (! kube_answer_is_ok (&answer)) {
        mur_fail (err, E_KUB_002, "the cluster does not list its Jobs: %s", answer.message);
        return NULL;
    }
    return json_incref (json_object_get (answer.body, "items"));
}

/* --- ps --- */

static void
print_row (const json_t *job)
{
    _cleanup_free_ char *state = state_of (job);
    _cleanup_free_ char *capsule =
        x_asprintf ("%s@%s", or_dash (metadata (job, "annotations", PREFIX "name")),
                    or_dash (metadata (job, "annotations", PREFIX "version")));
    out_printf ("%-36s  %-24s  %-12s  %-24s  %-24s  %s\n",
                or_dash (metadata (job, "annotations", PREFIX "session")), capsule, state,
                or_dash (metadata (job, "labels", PREFIX "root")),
                or_dash (metadata (job, NULL, "name")),
                or_dash (metadata (job, NULL, "creationTimestamp")));
}

int
fleet_sessions_list (const struct cli_args *args, struct mur_error **err)
{
    size_t i;
    json_t *job;
    _cleanup_ (asked_clear) struct asked a = { 0 };
    _cleanup_json_ json_t *jobs = connect (args, &a, err) ? read_jobs (&a, err) : NULL;
    if (! jobs)
        return CLI_FAILED;
    if (! cli_has (args, "--json")) {
        out_printf ("%-36s  %-24s  %-12s  %-24s  %-24s  %s\n", "SESSION", "CAPSULE", "STATUS",
                    "ROOT", "JOB", "STARTED");
        json_array_foreach (jobs, i, job) print_row (job);
        return CLI_OK;
    }
    _cleanup_json_ json_t *answer = json_object ();
    json_t *sessions = json_array ();
    json_array_foreach (jobs, i, job) json_array_append_new (sessions, describe (job));
    json_object_set_new (answer, "sessions", sessions);
    _cleanup_free_ char *text = json_pretty (answer, JSON_TEXT_ORDERED);
    out_printf ("%s\n", text);
    return CLI_OK;
}

/* --- stop --- */

/* The one Job that is meant. Borrowed; NULL: E-RUN-014. */
static const json_t *
find (const json_t *jobs, const char *meant, struct mur_error **err)
{
    size_t i;
    json_t *job;
    const json_t *found = NULL;
    json_array_foreach (jobs, i, job)
    {
        const char *session = metadata (job, "annotations", PREFIX "session");
        if (str_eq (metadata (job, NULL, "name"), meant))
            return job;
        if (! session || ! str_ends (session, meant))
            continue;
        if (found)
            return mur_fail (err, E_RUN_022, "several sessions of the fleet end in %s", meant),
                   NULL;
        found = job;
    }
    if (! found)
        mur_fail (err, E_RUN_022, "no session and no Job of the fleet is %s", meant);
    return found;
}

int
fleet_sessions_stop (const struct cli_args *args, const char *session, struct mur_error **err)
{
    _cleanup_ (asked_clear) struct asked a = { 0 };
    _cleanup_json_ json_t *jobs = connect (args, &a, err) ? read_jobs (&a, err) : NULL;
    const json_t *job = jobs ? find (jobs, session, err) : NULL;
    if (! job)
        return CLI_FAILED;
    const char *name = metadata (job, NULL, "name");
    _cleanup_free_ char *path = x_asprintf ("%s/%s", a.jobs, name);
    _cleanup_json_ json_t *how = json_pack ("{s:s,s:{s:s}}", "propagationPolicy", "Background",
                                            "preconditions", "uid", metadata (job, NULL, "uid"));
    const struct kube_call call = { .method = "DELETE", .path = path, .body = how };
    _cleanup_kube_answer_ struct kube_answer answer = { 0 };
    if (! kube_call (a.kube, &call, &answer, err))
        return CLI_FAILED;
    if (! kube_answer_is_ok (&answer) && answer.status != 404) {
        mur_fail (err, E_KUB_002, "the cluster does not delete Job %s: %s", name, answer.message);
        return CLI_FAILED;
    }
    out_printf ("stopped: %s (Job %s)\n", or_dash (metadata (job, "annotations", PREFIX "session")),
                name);
    return CLI_OK;
}

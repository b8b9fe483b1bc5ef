/* SPDX-License-Identifier: Apache-2.0 */
#include "client/fleet.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "net/http_fetch.h"
#include "net/kube/kube.h"
#include "net/kube/kube_object.h"
#include "spawn/child/roost_client.h"

#include <string.h>

#define SECRET_BYTES 32
#define PART_LIMIT   ((size_t)2 << 20)
#define TIMEOUT_MS   30000

/* --- all of them --- */

void
fleet_view_clear (struct fleet_view *v)
{
    kube_free (v->kube);
    free (v->space);
    json_decref (v->items);
    *v = (struct fleet_view){ 0 };
}

static bool
hint_login (const struct fleet_view *v, int status, struct mur_error **err)
{
    if (status == 401)
        return mur_hint (err, "its token is wrong or has expired: log in again, or name another "
                              "kubeconfig by --kubeconfig");
    if (status == 403)
        return mur_hint (err,
                         "this login needs list of jobs and pods in namespace %s: kubectl auth "
                         "can-i --list --namespace %s; or name another namespace by --namespace",
                         v->space, v->space);
    return false;
}

static bool
list (struct fleet_view *v, enum fleet_kind kind, struct mur_error **err)
{
    size_t i;
    json_t *one;
    _cleanup_free_ char *path = fleet_kind_list (kind, v->space);
    const struct kube_call call = { .method = "GET", .path = path };
    _cleanup_kube_answer_ struct kube_answer answer = { 0 };
    if (! kube_call (v->kube, &call, &answer, err))
        return false;
    if (! kube_answer_is_ok (&answer)) {
        mur_fail (err, E_KUB_002, "the cluster does not list its %ss: %s", fleet_kind_name (kind),
                  answer.message);
        return hint_login (v, answer.status, err);
    }
    json_array_foreach (json_object_get (answer.body, "items"), i, one)
    {
        json_set_string (one, "kind", fleet_kind_name (kind)); /* which a list leaves out */
        json_array_append (v->items, one);
    }
    return true;
}

bool
fleet_view_again (struct fleet_view *v, struct mur_error **err)
{
    json_decref (v->items);
    v->items = json_array ();
    /* Who may see Jobs alone sees those. */
    return list (v, FLEET_JOB, err) && (list (v, FLEET_DEPLOYMENT, NULL) || true);
}

bool
fleet_view_open (const char *kubeconfig, const char *namespace, struct fleet_view *v,
                 struct mur_error **err)
{
    *v = (struct fleet_view){ .kube = kube_new (kubeconfig, err) };
    if (! v->kube)
        return false;
    v->space = kube_escape (namespace ? namespace : kube_namespace (v->kube));
    return fleet_view_again (v, err);
}

bool
fleet_view_has_space (const struct fleet_view *v)
{
    _cleanup_free_ char *path = x_asprintf ("/api/v1/namespaces/%s", v->space);
    const struct kube_call call = { .method = "GET", .path = path };
    _cleanup_kube_answer_ struct kube_answer answer = { 0 };
    return ! kube_call (v->kube, &call, &answer, NULL) || answer.status != 404;
}

static bool
is_running (const json_t *job)
{
    _cleanup_free_ char *state = fleet_job_state (job);
    return str_eq (state, "running") && kube_own_annotation (job, "session");
}

/* Session ids begin with when they were made. */
static const json_t *
newest (const struct fleet_view *v, struct mur_error **err)
{
    size_t i;
    json_t *job;
    const json_t *found = NULL;
    json_array_foreach (v->items, i,
                        job) if (is_running (job) &&
                                 (! found || strcmp (kube_own_annotation (job, "session"),
                                                     kube_own_annotation (found, "session")) > 0))
        found = job;
    if (! found)
        mur_fail (err, E_RUN_022, "no session of the fleet is running");
    return found;
}

/* "frm_..." is its entry, "frm_.../coder" a member. */
static bool
is_of_formation (const json_t *job, const char *meant)
{
    const char *id = kube_own_annotation (job, "formation"), *member = strchr (meant, '/');
    size_t len = id ? strlen (id) : 0;
    if (! len || strncmp (meant, id, len) != 0)
        return false;
    if (! member)
        return ! meant[len] && kube_own_annotation (job, "roster");
    return member == meant + len && str_eq (kube_own_annotation (job, "member"), member + 1);
}

const json_t *
fleet_view_find (const struct fleet_view *v, const char *meant, struct mur_error **err)
{
    size_t i;
    json_t *job;
    const json_t *found = NULL;
    if (! meant || str_eq (meant, "@1"))
        return newest (v, err);
    json_array_foreach (v->items, i, job)
    {
        const char *session = kube_own_annotation (job, "session");
        if (str_eq (fleet_job_meta (job, "name"), meant) || is_of_formation (job, meant))
            return job;
        if (! session || ! str_ends (session, meant))
            continue;
        if (found)
            return mur_fail (err, E_RUN_022, "several sessions of the fleet end in %s", meant),
                   NULL;
        found = job;
    }
    if (! found) {
        mur_fail (err, E_RUN_022, "no session, Job or Deployment of the fleet is %s", meant);
        mur_hint (err, "`mur ps --fleet` lists them");
    }
    return found;
}

bool
fleet_view_delete (const struct fleet_view *v, const json_t *job, struct mur_error **err)
{
    const char *name = fleet_job_meta (job, "name");
    _cleanup_free_ char *path = fleet_job_path (job, v->space);
    _cleanup_json_ json_t *how = json_pack ("{s:s,s:{s:s}}", "propagationPolicy", "Background",
                                            "preconditions", "uid", fleet_job_meta (job, "uid"));
    const struct kube_call call = { .method = "DELETE", .path = path, .body = how };
    _cleanup_kube_answer_ struct kube_answer answer = { 0 };
    if (! kube_call (v->kube, &call, &answer, err))
        return false;
    return kube_answer_is_ok (&answer) || answer.status == 404 ||
           mur_fail (err, E_KUB_002, "the cluster does not delete %s %s: %s",
                     json_get_string (job, "kind"), name, answer.message);
}

/* --- its door --- */

void
fleet_door_clear (struct fleet_door *d)
{
    free (d->url);
    secret_free (d->token);
    *d = (struct fleet_door){ 0 };
}

/* <digest> NULL takes it away again. */
static bool
write_digest (const struct fleet_view *v, const json_t *job, const char *name, const char *digest,
              struct mur_error **err)
{
    _cleanup_free_ char *path = fleet_job_path (job, v->space);
    _cleanup_json_ json_t *patch =
        json_pack ("{s:{s:{s:s?}}}", "metadata", "annotations", name, digest);
    const struct kube_call call = {
        .method = "PATCH", .path = path, .body = patch, .content_type = KUBE_MERGE_PATCH
    };
    _cleanup_kube_answer_ struct kube_answer answer = { 0 };
    if (! kube_call (v->kube, &call, &answer, err))
        return false;
    if (kube_answer_is_ok (&answer))
        return true;
    mur_fail (err, E_KUB_002, "the cluster lets you not write Job %s: %s",
              fleet_job_meta (job, "name"), answer.message);
    return mur_hint (err, "whoever may patch a session's Job is given its door");
}

/* What the session itself asks. Borrowed; NULL: none. */
static const char *
roost_url_of (const json_t *job)
{
    static const char *const way[] = { "spec", "template", "spec", "containers" };
    const char *mine = getenv ("MURMUR_ROOST_URL");
    size_t i;
    json_t *one;
    if (mine && *mine)
        return mine;
    for (i = 0; i < ARRAY_LEN (way); i++)
        job = json_object_get (job, way[i]);
    json_array_foreach (json_object_get (json_array_get (job, 0), "env"), i,
                        one) if (str_eq (json_get_string (one, "name"),
                                         "MURMUR_ROOST_URL")) return json_get_string (one, "value");
    return NULL;
}

static bool
ask_roost (const json_t *job, const struct secret *secret, struct http_client *http,
           struct fleet_door *out, struct mur_error **err)
{
    const char *url = roost_url_of (job);
    if (! url) {
        mur_fail (err, E_RUN_023, "MURMUR_ROOST_URL is not set, and Job %s names no mur-roost",
                  fleet_job_meta (job, "name"));
        return mur_hint (err, "set it to where the fleet's mur-roost is reached from here");
    }
    _cleanup_json_ json_t *body = json_pack ("{s:s}", "job", fleet_job_meta (job, "name"));
    const struct roost_request request = { .url = url,
                                           .path = "/doors",
                                           .header = "x-murmur-operator",
                                           .token = secret,
                                           .body = body,
                                           .total_timeout_ms = TIMEOUT_MS };
    struct roost_refusal refusal = { 0 };
    _cleanup_json_ json_t *answer = roost_ask (http, &request, &refusal);
    _cleanup_free_ char *reason = refusal.text;
    const char *at = json_get_string (answer, "url"), *token = json_get_string (answer, "token");
    if (at && token) {
        *out = (struct fleet_door){ x_strdup (at), secret_new (token, strlen (token)) };
        return true;
    }
    mur_fail (err, E_RUN_023, "mur-roost at %s gives no door: %s", url,
              reason ? reason : "its answer has no token");
    return refusal.is_unheard
               ? mur_hint (err, "set MURMUR_ROOST_URL to where it is reached from here")
               : false;
}

bool
fleet_door_open (const struct fleet_view *v, const json_t *job, struct http_client *http,
                 struct fleet_door *out, struct mur_error **err)
{
    _cleanup_free_ char *state = fleet_job_state (job);
    if (fleet_job_kind (job) == FLEET_DEPLOYMENT) {
        mur_fail (err, E_RUN_022, "%s is a Deployment, and no referee has its door",
                  fleet_job_meta (job, "name"));
        return mur_hint (err,
                         "reach it yourself: kubectl port-forward --namespace %s deployment/%s "
                         "8080:door, then the same command with --url 127.0.0.1:8080",
                         v->space, fleet_job_meta (job, "name"));
    }
    if (! str_eq (state, "running"))
        return mur_fail (err, E_RUN_022, "the session of Job %s is not running: %s",
                         fleet_job_meta (job, "name"), state);
    unsigned char raw[SECRET_BYTES];
    char text[2 * SECRET_BYTES + 1], digest[SHA256_HEX_LEN + 1];
    random_bytes (raw, sizeof raw);
    hex_encode (raw, sizeof raw, text);
    sha256_hex (text, strlen (text), digest);
    _cleanup_secret_ struct secret *secret = secret_new (text, strlen (text));
    secret_wipe (raw, sizeof raw);
    secret_wipe (text, sizeof text);
    _cleanup_free_ char *name = x_asprintf (KUBE_OWN_PREFIX "operator-%.16s", digest);
    if (! write_digest (v, job, name, digest, err))
        return false;
    bool is_open = ask_roost (job, secret, http, out, err);
    write_digest (v, job, name, NULL, NULL);
    return is_open;
}

/* --- its trace --- */

bool
fleet_trace_read (struct http_client *http, const struct fleet_door *door, uint64_t *at,
                  struct buf *out, struct mur_error **err)
{
    _cleanup_free_ char *url =
        x_asprintf ("http://%s/trace?from=%llu", door->url, (unsigned long long)*at);
    _cleanup_free_ char *bearer = x_asprintf ("Bearer %s", secret_reveal (door->token));
    const struct http_header header = { "authorization", bearer, strlen (bearer) };
    const struct http_fetch fetch = {
        .request = { .method = "GET",
                     .url = url,
                     .headers = &header,
                     .header_count = 1,
                     .connect_timeout_ms = TIMEOUT_MS,
                     .first_byte_timeout_ms = TIMEOUT_MS,
                     .between_bytes_timeout_ms = TIMEOUT_MS },
        .limit_bytes = PART_LIMIT,
        .total_timeout_ms = TIMEOUT_MS,
    };
    _cleanup_http_response_ struct http_response r = { 0 };
    bool is_heard = http_fetch (http, &fetch, &r, NULL, err);
    secret_wipe (bearer, strlen (bearer));
    if (! is_heard)
        return false;
    if (r.status != 200)
        return mur_fail (err, E_IO_003, "the door at %s does not give its trace: HTTP %d",
                         door->url, r.status);
    buf_append (out, r.body.data, r.body.len);
    *at += r.body.len;
    return true;
}

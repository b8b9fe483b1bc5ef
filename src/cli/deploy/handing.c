/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/deploy/handing.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/json.h"
#include "cli/deploy/kubectl_meaning.h"
#include "net/kube/kube_object.h"

#include <string.h>

static bool
has_file (const struct handing *h, const char *name)
{
    for (size_t i = 0; i < h->files->len; i++)
        if (str_eq (h->files->items[i].name, name))
            return true;
    return false;
}

/* --- what is there --- */

/* The Job of the same name; NULL without *err: there is none, or none that may be seen. Owned. */
static json_t *
job_there (const struct handing *h, struct mur_error **err)
{
    const char *const args[] = { "get",  "job", h->files->name, "--ignore-not-found", "-o",
                                 "json", NULL };
    _cleanup_kubectl_said_ struct kubectl_said said = { 0 };
    if (! kubectl_ask (&h->kubectl, args, NULL, true, &said, err))
        return NULL;
    if (said.status == 0)
        return said.out.len ? json_loadb (said.out.data, said.out.len, 0, NULL) : NULL;
    if (! said.complaint.data || ! strstr (said.complaint.data, "(Forbidden)"))
        kubectl_explain (&h->kubectl, &said, err);
    return NULL;
}

/* Made of the very same. */
static bool
is_same (const struct handing *h, const json_t *job)
{
    const char *made_of = json_get_string (
        json_object_get (json_object_get (job, "metadata"), "annotations"), DEPLOY_RENDERED);
    return made_of && strstr (h->objects->data, made_of);
}

/* *is_running: the same Job is there and has not ended. */
static bool
judge_job (const struct handing *h, bool *is_running, struct mur_error **err)
{
    struct mur_error *caught = NULL;
    _cleanup_json_ json_t *job = job_there (h, &caught);
    if (caught)
        return mur_propagate (err, caught);
    *is_running = job && ! kube_job_end (job) && is_same (h, job);
    if (! job || *is_running || h->replaces)
        return true;
    if (kube_job_end (job))
        mur_fail (err, E_DEP_007,
                  "Job %s of namespace %s has ended, and would not run again by being applied",
                  h->files->name, h->kubectl.space);
    else
        mur_fail (err, E_DEP_007,
                  "Job %s of namespace %s has not ended, and is made of something else; a Job is "
                  "never changed",
                  h->files->name, h->kubectl.space);
    return mur_hint (err,
                     "`mur deploy apply --replace` ends it and starts anew; `mur stop --fleet` "
                     "only ends it");
}

/* --- handing over --- */

/* All it complains of is the Job that will be taken away. */
static bool
is_only_the_job (const struct kubectl_said *said)
{
    const char *at = said->complaint.data;
    while (at && *at) {
        size_t len = strcspn (at, "\n");
        const char *found = strstr (at, "field is immutable");
        if (! found || found > at + len)
            return false;
        at += len + (at[len] == '\n');
    }
    return said->complaint.len > 0;
}

static bool
apply (const struct handing *h, bool is_dry, struct mur_error **err)
{
    const char *const args[] = { "apply",
                                 "--server-side",
                                 "--field-manager=murmur",
                                 "-f",
                                 "-",
                                 is_dry ? "--dry-run=server" : NULL,
                                 NULL };
    bool is_quiet = is_dry && h->replaces;
    _cleanup_kubectl_said_ struct kubectl_said said = { 0 };
    if (! kubectl_ask (&h->kubectl, args, h->objects, is_quiet, &said, err))
        return false;
    if (said.status != 0 && ! (is_quiet && is_only_the_job (&said)))
        return kubectl_explain (&h->kubectl, &said, err);
    if (is_dry == h->is_dry && said.out.len)
        out_write (said.out.data, said.out.len);
    return true;
}

/* Its pods are gone before another is started, and what they started with them. */
static bool
take_away (const struct handing *h, struct mur_error **err)
{
    const char *const args[] = { "delete",
                                 "job",
                                 h->files->name,
                                 "--ignore-not-found",
                                 "--cascade=foreground",
                                 "--wait=true",
                                 "--timeout=90s",
                                 NULL };
    _cleanup_kubectl_said_ struct kubectl_said said = { 0 };
    if (! kubectl_ask (&h->kubectl, args, NULL, false, &said, err))
        return false;
    return said.status == 0 || kubectl_explain (&h->kubectl, &said, err);
}

/* --- what it still needs --- */

/* Only names of entries are asked for. False: it may not be seen, or is whole. */
static bool
lacks_keys (const struct handing *h, struct buf *missing)
{
    const char *const args[] = {
        "get",
        "secret",
        h->files->name,
        "--ignore-not-found",
        "-o",
        "go-template={{range $name, $value := .data}}{{$name}}{{\"\\n\"}}{{end}}",
        NULL
    };
    _cleanup_kubectl_said_ struct kubectl_said said = { 0 };
    if (! kubectl_ask (&h->kubectl, args, NULL, true, &said, NULL) || said.status != 0)
        return false;
    _cleanup_free_ char *there = x_asprintf ("\n%s", said.out.data ? said.out.data : "");
    for (size_t i = 0; i < h->files->keys.len; i++) {
        _cleanup_free_ char *line = x_asprintf ("\n%s\n", h->files->keys.items[i]);
        if (! strstr (there, line))
            buf_printf (missing, " --from-file=%s=FILE", h->files->keys.items[i]);
    }
    return missing->len > 0;
}

static void
note_keys (const struct handing *h)
{
    _cleanup_buf_ struct buf missing = { 0 };
    if (h->files->keys.len && lacks_keys (h, &missing))
        diag_note ("its pod waits for keys: kubectl create secret generic %s --namespace %s%s",
                   h->files->name, h->kubectl.space, missing.data);
}

static void
say_where (const struct handing *h)
{
    if (has_file (h, "job.yaml") || has_file (h, "deployment.yaml"))
        out_printf ("%s in namespace %s: mur ps --fleet --namespace %s\n", h->files->name,
                    h->kubectl.space, h->kubectl.space);
    else
        out_printf ("%s in namespace %s: kubectl get pods --namespace %s\n", h->files->name,
                    h->kubectl.space, h->kubectl.space);
}

bool
handing_carry_out (const struct handing *h, struct mur_error **err)
{
    bool is_running = false;
    if (has_file (h, "job.yaml") && ! judge_job (h, &is_running, err))
        return false;
    if (is_running && ! h->replaces) {
        out_printf ("Job %s of namespace %s is there already and has not ended; nothing was "
                    "changed\n",
                    h->files->name, h->kubectl.space);
        note_keys (h);
        return true;
    }
    if (! apply (h, true, err) || (h->replaces && ! take_away (h, err)) ||
        (! h->is_dry && ! apply (h, false, err)))
        return false;
    note_keys (h);
    if (! h->is_dry)
        say_where (h);
    return true;
}

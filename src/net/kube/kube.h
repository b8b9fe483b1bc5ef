/* SPDX-License-Identifier: Apache-2.0
 *
 * A client of a cluster's API server: one call and its answer.
 *
 * Whatever the server answers is a value; an error is only that it was not heard. A call that was
 * told 429 waits as long as it was told and is sent again, ten seconds in all: it was not carried
 * out. Nothing else is repeated. Thread-safe.
 */
#pragma once

#include "base/cancel.h"
#include "base/error.h"
#include "base/json.h"

struct kube;

/* <kubeconfig> as kube_access_read takes it. E-KUB-001. */
struct kube *kube_new (const char *kubeconfig, struct mur_error **err);
void kube_free (struct kube *k);
DEFINE_CLEANUP (struct kube, kube_free)
/* Of the access. Borrowed. */
const char *kube_namespace (const struct kube *k);

struct kube_answer {
    int status;
    json_t *body;            /* the object, or a Status; NULL: no JSON. Owned */
    const char *reason;      /* of a Status: "AlreadyExists", "Forbidden"...; "" else. Borrowed */
    const char *message;     /* of a Status; "" else. Borrowed */
    uint64_t retry_after_ms; /* as the server said; 0: it did not */
};
static inline bool
kube_answer_is_ok (const struct kube_answer *a)
{
    return a->status / 100 == 2;
}
void kube_answer_clear (struct kube_answer *a);
#define _cleanup_kube_answer_ _cleanup_ (kube_answer_clear)

struct kube_call {
    const char *method;
    const char *path;         /* "/apis/batch/v1/namespaces/x/jobs?...", escaped */
    const json_t *body;       /* NULL: none */
    const char *content_type; /* NULL: application/json */
    uint64_t timeout_ms;      /* 0: 30 s */
    struct cancel *cancel;    /* may be NULL */
};
#define KUBE_MERGE_PATCH "application/merge-patch+json"

/* False with E-KUB-002 when it was not heard, or answered something other than JSON. */
bool kube_call (struct kube *k, const struct kube_call *call, struct kube_answer *out,
                struct mur_error **err);

/* Text as a part of a path or a query. Owned. */
char *kube_escape (const char *text);

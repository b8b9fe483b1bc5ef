/* SPDX-License-Identifier: Apache-2.0
 *
 * Watching a list of a cluster: what is in it, and what changes in it, for ever.
 */
#pragma once

#include "net/kube/kube.h"

/* What a watcher is told, one thing at a time, on the thread that watches or the client's own, so
 * that no call may be made and nothing waited for: begin, each object, end; then changes, until
 * the server has forgotten how far we were and all begins anew. What was there before a `begin` and
 * is not named until its `end` is gone. */
struct kube_watcher {
    const char *path;  /* of the list, without a query */
    const char *query; /* "labelSelector=..." escaped; NULL: none */
    void (*begin) (void *ctx);
    void (*object) (void *ctx, const json_t *object);
    void (*end) (void *ctx);
    void (*gone) (void *ctx, const json_t *object);
    void (*trouble) (void *ctx, const char *why); /* not heard; it tries again. May be NULL */
    void *ctx;
};
/* Watches until <cancel> is raised. */
void kube_watch (struct kube *k, const struct kube_watcher *w, struct cancel *cancel);

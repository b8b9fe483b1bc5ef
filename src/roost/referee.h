/* SPDX-License-Identifier: Apache-2.0
 *
 * The referee's memory and its decisions: sessions, approvals, counting (spec/spawn.md B3, B4).
 *
 * It answers "may you" and nothing else; it creates no folder, session or process. All state is
 * memory: a restart revokes every credential. Thread-safe: each decision is taken whole under one
 * lock, registry reads happen outside it and the bounds are looked at again before a reservation is
 * recorded.
 */
#pragma once

#include "roost/verdict.h"

#include <stdint.h>

struct referee_options {
    const char *registry_path; /* the store artifacts are resolved in; borrowed */
    char *const *spawn_allow;  /* NULL-terminated; may be NULL. Borrowed */
    uint32_t max_depth;
    uint32_t max_concurrent;
    uint32_t max_live;
};

struct census;
struct referee;

/* <census> is taken over. */
struct referee *referee_new (const struct referee_options *options, struct census *census);
void referee_free (struct referee *r);
DEFINE_CLEANUP (struct referee, referee_free)

/* Whether its children are Jobs of a cluster (roost/fleet.h). */
bool referee_has_fleet (const struct referee *r);
/* The daemon is to end: no request waits any longer. */
void referee_stop (struct referee *r);

/* POST /deregister. */
struct verdict
referee_deregister (struct referee *r, const char *credential, const char *body, size_t body_len);
/* GET /status/<session id>. */
struct verdict referee_status (struct referee *r, const char *session_id);

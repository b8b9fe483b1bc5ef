/* SPDX-License-Identifier: Apache-2.0
 *
 * The referee as its requests share it: what it remembers, who has room, what a body says.
 *
 * Always true: what stands below its lock is touched with the lock held; resolving a capsule reads
 * files and is done without it.
 */
#pragma once

#include "artifact/package/package.h"
#include "base/digest.h"
#include "base/keys/token.h"
#include "manifest/capsule/capsule.h"
#include "roost/census.h"
#include "roost/jobs.h"
#include "roost/referee.h"

#include <pthread.h>

/* An approval not yet redeemed. */
struct reservation {
    char jti[33];
    char *parent;
    uint64_t expires_ms; /* Unix */
};

struct spent {
    char jti[33];
    uint64_t expires_ms;
};

struct fleet;

struct referee {
    struct referee_options options;
    struct fleet
        *fleet; /* NULL: children are processes of this machine. Never changes once it serves */
    unsigned char key[TOKEN_KEY_LEN];
    pthread_mutex_t lock; /* guards everything below */
    struct census *census;
    struct job_table jobs;
    struct reservation *reservations;
    size_t reservation_len, reservation_cap;
    struct spent *spent;
    size_t spent_len, spent_cap;
    uint64_t looked_ms; /* monotonic: when killed sessions were last looked for */
};

/* The capsule as the registry resolves it now. */
struct resolved_capsule {
    struct capsule_manifest *manifest;
    char sha256[SHA256_HEX_LEN + 1];
};

/* --- who has room; with the lock held --- */

/* Takes reservation <i> away; the last one takes its place. */
void referee_drop_reservation (struct referee *r, size_t i);
/* Reservations and spent approvals that are past their time. */
void referee_forget_expired (struct referee *r, uint64_t now);
uint64_t referee_machine_live (struct referee *r);
uint64_t referee_live_children (const struct referee *r, const char *session_id);
/* Sessions that nobody approved are no delegations, which the ceiling is for; what one daemon
 * remembers is bounded all the same. */
bool referee_has_room_for_root (struct referee *r, struct verdict *refusal);
/* Machine ceiling, then the parent's own. True when both leave room. */
bool referee_has_room (struct referee *r, const struct job *parent, struct verdict *refusal);
/* The session is over: its manifest and what it reserved go. */
void referee_finish (struct referee *r, struct job *j, enum job_state state);

/* --- what a request says --- */

/* A JSON object body (owned), or NULL and a 400. */
json_t *request_body (const char *body, size_t len, struct verdict *refusal);
/* Borrowed; NULL and a 400. */
const char *request_text (const json_t *o, const char *key, struct verdict *refusal);
/* The running session a credential names; with the lock held. NULL: the fault of identity. */
struct job *referee_holder (struct referee *r, const char *credential);
/* The capsule as the registry resolves it now. */
bool referee_resolve (const struct referee *r, const char *name, const char *version,
                      struct resolved_capsule *out, struct mur_error **err);

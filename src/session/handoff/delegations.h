/* SPDX-License-Identifier: Apache-2.0
 *
 * The children a running task has handed work to: which are out, which have reported, how each is
 * closed (docs/spec/spawn.md A16-A18).
 *
 * Threads: the task loop owns every delegation that waits for a completion, a plan's thread its
 * own blocking one; the door's thread only looks, under the lock. Always true: a delegation leaves
 * exactly one `delegation` line; when the task ends none of its children is left.
 */
#pragma once

#include "session/handoff/delegate.h"
#include "session/state/running_task.h"
#include "spawn/report/watch.h"

struct delegation {
    struct id id;
    char *capsule; /* full name */
    char *version;
    const char *task_id; /* of the running task; borrowed from the registry */
    char *child_task_id; /* NULL until it holds its task */
    bool is_blocking;    /* its caller waits for it: no completion is expected */
    uint64_t started_ms; /* monotonic: when it was asked for */
    uint64_t ready_ms;   /* monotonic: when its child was ready */

    char *url;              /* of the door completions go to */
    struct watched watched; /* once its child is ready */
    struct watch *watch;    /* NULL: blocking, or there was no thread for it */
    /* Guarded by the set's lock. */
    struct mur_child *child;
    bool has_arrived;  /* its completion was taken */
    bool is_abandoned; /* ended with its task: a completion is no outcome any more */
};

/* The name without its scope. Borrowed. */
const char *delegation_bare (const struct delegation *d);

struct delegations;

struct delegations *delegations_new (struct session *s);
void delegations_free (struct delegations *set);
/* MURMUR_DELEGATION_TIMEOUT_SECS when it is a positive whole number, else what the manifest says.
 */
uint64_t delegation_bound_secs (const struct session *s);
/* Seconds a delegation may take, from its child's readiness. */
uint64_t delegations_bound_secs (const struct delegations *set);

/* One that was asked for and has no child yet; owned by the caller until it is added. */
struct delegation *delegation_new (const char *capsule, const char *version,
                                   const struct delegate_ask *ask, bool is_blocking);
/* Frees one that is in no set. Its child is ended. */
void delegation_free (struct delegation *d);
/* Takes it over: from here on its completion is awaited. */
void delegations_add (struct delegations *set, struct delegation *d);
/* Hands it back, out of the set. */
void delegations_remove (struct delegations *set, struct delegation *d);
/* Something changed: whoever waits looks again. */
void delegations_poke (void *set);

/* Ends one child whose handing over failed or was given up, and waits for its record. Out of the
 * set afterwards, freed; traces nothing. */
void delegations_drop (struct delegations *set, struct delegation *d);
/* One `delegation` line. <d> may have no child; <reason> may be NULL. */
void delegation_trace (struct session *s, const struct delegation *d, bool has_id,
                       const char *outcome, const char *reason);

/* --- the running task --- */

/* By its id; NULL: not in the set. Of the task loop. */
struct delegation *delegations_find (struct delegations *set, const char *id);
/* Marks one as arrived, as its completion would. False: it is none that is waited for. */
bool delegations_take (struct delegations *set, struct delegation *d);
/* Ids of what is out for a task, appended in order. <set> may be NULL. */
void delegations_list (struct delegations *set, const char *task_id, struct strv *ids);

/* --- the door --- */

/* True when the completion of this delegation is awaited, or was taken before. <set> may be NULL.
 */
bool delegations_take_completion (void *set, const char *delegation_id);
/* Appends a residue item (door.md 7.5) for each that is out of a task, or of all (NULL). */
void delegations_append_residue (struct delegations *set, const char *task_id, json_t *items);

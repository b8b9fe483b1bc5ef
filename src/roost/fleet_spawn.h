/* SPDX-License-Identifier: Apache-2.0
 *
 * POST /spawn where children are Jobs: what the local referee decides, and then one Job.
 */
#pragma once

#include "roost/referee_internal.h"

/* What the body says beyond the capsule, for a child elsewhere. */
struct fleet_ask {
    const char *delegation, *context_id; /* borrowed of the body */
    uint64_t run_s, inherited_deadline_ms;
};

/* True when this session's children become Jobs. Under the lock. */
bool fleet_places (const struct referee *r, const struct job *parent);
/* Reads the body. False with a 400. */
bool fleet_read_ask (const json_t *body, struct fleet_ask *ask, struct verdict *refusal);
/* The answer to an ask that was answered before, or nothing (status 0). Under the lock. */
struct verdict
fleet_repeat (struct referee *r, const struct job *parent, const struct fleet_ask *ask);
/* Creates a Job that bears a grant, once: status 0, or what the server's answer means to whoever
 * asked for it. Without the lock. */
struct verdict fleet_create (const struct fleet *f, const json_t *object);
/* Everything was decided: reserves the room, creates the Job. Called under the lock, which it lets
 * go of meanwhile. <name> and <version> of the child. */
struct verdict
fleet_place (struct referee *r, const struct job *parent, const struct resolved_capsule *child,
             const char *name, const char *version, const struct fleet_ask *ask);

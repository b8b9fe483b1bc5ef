/* SPDX-License-Identifier: Apache-2.0
 *
 * The last steps of a registration, whoever vouched for the session; under the lock.
 */
#pragma once

#include "roost/callers.h"
#include "roost/referee_internal.h"

/* True when a session of that name may register unapproved; else a 403. */
bool referee_is_root_allowed (const struct referee *r, const char *name, struct verdict *refusal);
/* Remembers the session as running (its manifest is taken) and answers with its credential. */
struct verdict
referee_admit (struct referee *r, const char *session_id, const char *parent, const char *name,
               uint32_t depth, struct resolved_capsule *capsule, const struct caller *caller);
/* A credential for a session that is known. */
struct verdict referee_credential_of (struct referee *r, const char *session_id);

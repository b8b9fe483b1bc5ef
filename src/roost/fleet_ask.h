/* SPDX-License-Identifier: Apache-2.0
 *
 * What a parent asks of a child elsewhere, and what a session says of its end.
 */
#pragma once

#include "roost/referee.h"
#include "roost/verdict.h"

/* GET /children/<delegation>?wait=<s>&seen=<n>: state and, once there is one, door and outcome.
 * Answers when there is news beyond <n>, or the time is up. */
struct verdict fleet_children (struct referee *r, const char *ticket, const char *path);
/* POST /children/<delegation>/end: the parent wants it no more. */
struct verdict fleet_children_end (struct referee *r, const char *ticket, const char *path);
/* Beside POST /deregister: the session's outcome is kept, on its Job too. <body> as it came. */
void
fleet_deregister (struct referee *r, const char *session_id, const char *body, size_t body_len);
/* POST /doors {"job"}: the door of a running session, and a token of its operator for it, to who
 * has shown by annotation `murmur.dev/operator-<16 hex>` that the Job is theirs to write
 * (docs/fleet.md).
 */
struct verdict
fleet_door (struct referee *r, const char *secret, const char *body, size_t body_len);

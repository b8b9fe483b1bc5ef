/* SPDX-License-Identifier: Apache-2.0
 *
 * The lifeline of a session whose parent is on another machine: no pipe reaches it, and its node
 * may hear of its pod's deletion late or never. So it asks the referee itself, now and then.
 *
 * Always true: only the referee's plain word that the session is over ends it; one that is away, or
 * knows no such session, ends nothing.
 */
#pragma once

#include "base/error.h"
#include "base/ids.h"

struct fleet_lifeline;

/* Asks <roost_url> of the session from now on; its word is the end of LIFELINE_SPAWNER. E-IO-003.
 */
struct fleet_lifeline *
fleet_lifeline_new (const char *roost_url, const char *session_id, struct mur_error **err);
/* NULL is no fault. */
void fleet_lifeline_free (struct fleet_lifeline *l);

/* SPDX-License-Identifier: Apache-2.0
 *
 * What keeps a session of the fleet from beginning, in the cluster's own words: no image, no room
 * on a node, a queue.
 */
#pragma once

#include "client/fleet.h"

/* What there is of all sessions, as far as it may be seen: their pods, and where one has not begun
 * what was said against objects of the namespace. Owned. */
json_t *fleet_news (const struct fleet_view *v);
/* Why the session of <job> has not begun. Owned; NULL: it has, or nothing says why. */
char *fleet_job_wait (const json_t *job, const json_t *news);

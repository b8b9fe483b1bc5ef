/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launch and a replay of one share.
 */
#pragma once

#include "session/launch.h"
#include "session/loop/loop.h"

/* Diagnostics a closed stream refuses go to logs/bootstrap.log. */
void launch_open_log (struct session *s);
/* The registry, with the session's own rules. */
void launch_make_registry (struct session *s);
/* Refuses what is queued still. */
void launch_refuse_queued (struct session *s);
/* The line session_end; a session whose records are not whole did not end well. */
void launch_write_end (struct session *s, struct launch_outcome *outcome);

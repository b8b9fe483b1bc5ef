/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions that are Jobs of a cluster, as the cluster has them: what `mur ps --fleet` lists and
 * `mur stop --fleet` ends (docs/fleet.md). Asked with the rights of whoever types; no referee and
 * no door is asked.
 */
#pragma once

#include "cli/line/args.h"

/* One object of session, capsule, root and state for each Job, oldest first; or a table. The exit
 * status. */
int fleet_sessions_list (const struct cli_args *args, struct mur_error **err);
/* Deletes the Job of the session (its id, its last characters, or its Job's name); the pod gets its
 * grace, what it started goes with it. */
int fleet_sessions_stop (const struct cli_args *args, const char *session, struct mur_error **err);

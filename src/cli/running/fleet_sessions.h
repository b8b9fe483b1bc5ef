/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions that are Jobs of a cluster, for the commands that take --fleet (docs/fleet.md). Listing
 * and stopping ask the cluster alone, with the rights of whoever types; a door is had of mur-roost.
 */
#pragma once

#include "cli/line/args.h"
#include "home/running.h"
#include "net/http_client.h"

/* One object of session, capsule, root and state for each Job, oldest first; or a table. The exit
 * status. */
int fleet_sessions_list (const struct cli_args *args, struct mur_error **err);
/* Deletes the Job of the session (its id, its last characters, or its Job's name); the pod gets its
 * grace, what it started goes with it. */
int fleet_sessions_stop (const struct cli_args *args, const char *session, struct mur_error **err);

/* What a command acts on: with --fleet the session of a Job, filled in as the one entry of <scan>
 * (pid 0, no records here); without it running_session. Errors of both. */
const struct running_entry *
fleet_sessions_session (const struct cli_args *args, const char *address,
                        struct http_client *client, struct running_scan *scan,
                        struct mur_error **err);

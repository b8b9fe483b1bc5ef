/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces of sessions that are Jobs of a cluster, read through their doors (docs/fleet.md).
 */
#pragma once

#include "cli/line/args.h"
#include "trace/read/reader.h"

/* The trace, as far as it is written, of the session that is meant (fleet_view_find). NULL: errors
 * of fleet_view_open, fleet_view_find, fleet_door_open and fleet_trace_read, E-TRC-001. */
struct trace *
fleet_trace (const struct cli_args *args, const char *address, struct mur_error **err);
/* Prints a report of it and of each session it started, parents first. One whose trace cannot be
 * had is named with the reason. The same errors, of the first alone. */
bool fleet_trace_tree (const struct cli_args *args, const char *address, struct mur_error **err);

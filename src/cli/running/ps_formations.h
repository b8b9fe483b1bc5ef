/* SPDX-License-Identifier: Apache-2.0
 *
 * What `mur ps` says of each formation a running record names (spec/cli.md 3).
 *
 * Always true: it tells what was found, never that this is all there is.
 */
#pragma once

#include "base/json.h"
#include "home/running.h"

/* One object a formation, newest first. Owned. */
json_t *ps_formations_json (const struct running_scan *scan);
/* One summary line a formation. <scan> was pruned. */
void ps_formations_print (const struct running_scan *scan);

/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of the work folder that a run of the harness changed: its own tools are told in its
 * own words, this is what the folder says.
 */
#pragma once

#include "session/harness/harness_run.h"

/* The run is over: writes the line harness_changes when there are any since run->before. */
void harness_changes_end (const struct harness_run *run);

/* SPDX-License-Identifier: Apache-2.0
 *
 * A run that is served: its lines and calls as they came, with no program there.
 */
#pragma once

#include "session/harness/harness_run.h"

void harness_play (struct harness_run *run);

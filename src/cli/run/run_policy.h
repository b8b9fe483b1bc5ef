/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launch may do: the policy of its manifest, configuration and flags, and what the host must
 * keep of it.
 */
#pragma once

#include "cli/run/run_state.h"

/* Reads the configuration and forms the policy, warning of what is said for nothing. E-CFG-*,
 * E-CAP-*, E-MAN-*, E-IO-003. */
bool run_lower_policy (struct run *r, struct mur_error **err);
/* Always true: the probe of the host runs beside us from here, where something would read it. */
bool run_prepare_decision (struct run *r, struct mur_error **err);

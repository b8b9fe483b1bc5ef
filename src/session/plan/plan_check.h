/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a plan may run in this session: judged as a whole before anything of it runs.
 */
#pragma once

#include "session/plan/plan.h"

struct session;

/* Judges the whole plan against what this session may do. False: *bad is the step at fault, *reason
 * (owned) says why. */
bool plan_check (struct session *s, const struct plan *plan, const char **bad, char **reason);

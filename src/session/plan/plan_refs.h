/* SPDX-License-Identifier: Apache-2.0
 *
 * References between steps, and the conditions made of them (docs/spec/session.md 12.2).
 */
#pragma once

#include "session/plan/plan.h"

/* Calls <fn> with the id of every step that is referred to in <step>'s input and condition; stops
 * and returns false when it returns false. */
typedef bool plan_reference_fn (void *ctx, const char *step_id);
bool plan_each_reference (const struct plan_step *step, plan_reference_fn *fn, void *ctx);
/* The input with every string that is a reference as a whole replaced. Owned. */
json_t *plan_substitute (const struct plan *plan, const json_t *input);
/* False: the text is no condition, *reason (owned) says why. */
bool plan_condition_check (const char *text, char **reason);
/* Whether a condition that was checked holds now. */
bool plan_condition_holds (const struct plan *plan, const char *text);

/* SPDX-License-Identifier: Apache-2.0
 *
 * A capsule step: work handed to another capsule, in a thread of its own.
 */
#pragma once

#include "session/handoff/delegate.h"
#include "session/plan/plan_step.h"

/* What a capsule step asks for, as input of delegate-task. Without a version in its name the newest
 * in the stores is meant. Owned. */
json_t *step_delegation (struct session *s, const struct plan_step *step, const json_t *input);
/* Hands the work over in a thread of its own. */
void step_capsule_start (struct step_run *run);
/* Waits for it; *out is the caller's to clear. */
void step_capsule_finish (struct step_run *run, struct delegate_result *out);

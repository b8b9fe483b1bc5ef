/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls whose outcome comes out of a record (docs/spec/records.md 14).
 */
#pragma once

#include "session/state/call.h"
#include "session/state/outcome.h"
#include "session/state/running_task.h"

/* Compares the call with the record and fills its outcome from there. False: there is no record, or
 * the call is to be run. <may_run>: no gate stood in the way; else it is only compared. */
bool played_call (struct session *s, struct running_task *t, const struct call *c, bool may_run,
                  struct call_outcome *o);
/* The call is over; what was run again is compared, and the model goes on with what it was given
 * then. */
void played_call_over (struct session *s, struct running_task *t, const struct call *c,
                       struct call_outcome *o);

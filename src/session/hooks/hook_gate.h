/* SPDX-License-Identifier: Apache-2.0
 *
 * Deny hooks: whether a call the manifest allows may run (docs/spec/session.md 9.5).
 *
 * Always true: a call runs only on a clean `none` of every hook that was asked; whatever else
 * happens is a refusal, and no setting relaxes that.
 */
#pragma once

#include "session/state/call.h"
#include "session/state/outcome.h"

struct running_task;
struct session;

/* Asks the deny hooks about a call the manifest allows. False: refused; *o holds what the model
 * reads and the refusal is traced (t->fatal when it could not be). */
bool hooks_allow (struct session *s, struct running_task *t, const struct call *call,
                  struct call_outcome *o);

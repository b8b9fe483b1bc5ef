/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking a person before a call is made (docs/spec/session.md 5.9).
 *
 * Always true: one question is open at a time, and no other call begins meanwhile; what was not
 * answered, could not be recorded or could not be asked is refused.
 */
#pragma once

#include "session/state/call.h"
#include "session/state/outcome.h"

struct running_task;
struct session;

void approvals_new (struct session *s);
void approvals_free (struct session *s);
/* True when no rule of approvals covers the call, or somebody approved it; else *out is the
 * refusal, marked is_refused. Hosts that were approved stay open until approvals_end. */
bool approvals_allow (struct session *s, struct running_task *t, const struct call *call,
                      struct call_outcome *out);
/* The refusal of an answer ("no", "never", "timeout", "canceled"), or of nobody being asked. */
void approvals_refuse (struct call_outcome *out, const struct call *call, const char *rules,
                       const char *answer);
/* The call is over: what it was approved for alone is closed again. */
void approvals_end (struct session *s, struct call_outcome *out);

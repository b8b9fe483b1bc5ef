/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands between a call the model asked for and its dispatch: required fields, protected
 * paths and deny hooks (docs/spec/session.md 5.8, 9.5).
 *
 * Always true: no gate grants anything; a refusal that cannot be traced ends the session
 * (task->fatal).
 */
#pragma once

#include "session/state/call.h"
#include "session/state/outcome.h"

struct running_task;
struct session;

/* True when the driver could read what the model wrote as the call's input; else *out is what the
 * model is told, so that it writes the call again. */
bool gate_has_input (const struct call *c, struct call_outcome *out);
/* True when every field the tool's schema requires is there; else *out names all that are missing
 * and tool_input_refused is traced. */
bool gate_has_required (struct session *s, const struct call *c, struct call_outcome *out);
/* True when no protected path and no deny hook forbids the call; else *out is the refusal, marked
 * is_refused, and the only thing recorded. */
bool gate_may_run (struct session *s, struct running_task *t, const struct call *c,
                   struct call_outcome *out);

/* SPDX-License-Identifier: Apache-2.0
 *
 * The tool calls of one turn: one at a time, in order, each checked, run, recorded
 * (docs/spec/session.md 5.8).
 */
#pragma once

#include "session/state/call.h"
#include "session/state/outcome.h"
#include "session/state/running_task.h"

/* Runs every tool_call block of <content>; the tool messages are added to <results>. False when the
 * attempt has ended. */
bool tool_calls_run (struct session *s, struct running_task *t, const json_t *content,
                     uint64_t turn, struct message_list *results);
/* One call: gates, dispatch, what is recorded of it and what watchers see. */
void tool_call_run (struct session *s, struct running_task *t, const struct call *c,
                    struct call_outcome *o);

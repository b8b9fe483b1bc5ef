/* SPDX-License-Identifier: Apache-2.0
 *
 * The tool calls of one turn: one at a time, in order, each checked, run, recorded
 * (spec/session.md 5.8).
 */
#pragma once

#include "session/calls/dispatch.h"
#include "session/state/running_task.h"

/* Runs every tool_call block of <content>; the tool messages are added to <results>. False when the
 * attempt has ended. */
bool tool_calls_run (struct session *s, struct running_task *t, const json_t *content,
                     uint64_t turn, struct message_list *results);
/* The line of a command that finished or went to the background. */
void tool_call_trace_shell (struct session *s, struct running_task *t, uint64_t turn,
                            const struct shell_facts *f);

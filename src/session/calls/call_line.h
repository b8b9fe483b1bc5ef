/* SPDX-License-Identifier: Apache-2.0
 *
 * The record of a call: its line in the trace, its place in the counts, what a watcher sees of it.
 * One way for the calls of a turn, of a harness's own tools and of its bridge.
 */
#pragma once

#include "session/state/call.h"
#include "session/state/outcome.h"

struct running_task;
struct session;

/* The line of a tool's or a skill's call; a tool's counts. */
void call_line_write (struct session *s, struct running_task *t, const struct call *c,
                      const struct call_outcome *o, uint64_t duration_ms);
/* The line of a command that finished or went to the background; it counts once either way. */
void call_line_shell (struct session *s, struct running_task *t, uint64_t turn,
                      const struct shell_facts *f);
/* What a watcher sees: exactly what the model reads. */
void call_line_show (struct session *s, const struct running_task *t, const struct call *c,
                     const struct call_outcome *o, uint64_t duration_ms);

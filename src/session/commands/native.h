/* SPDX-License-Identifier: Apache-2.0
 *
 * Native tools: programs from packages, run as subprocesses with JSON in and out
 * (docs/spec/session.md 8.1).
 */
#pragma once

#include "sandbox/run/commands.h"
#include "session/state/call.h"
#include "session/state/outcome.h"
#include "session/state/session.h"

struct running_task;

/* Classifies every native payload for this platform, then writes each to tools/<n>/<n>, mode
 * exactly 0755. E-RUN-021 before the first is written. */
bool stage_native_tools (struct session *s, struct mur_error **err);

/* The same for one pulled artifact; nothing to do for a component or a skill. */
bool stage_native_tool (struct session *s, struct staged_artifact *a, struct mur_error **err);

/* Runs one: {"data","log_path"} on its stdin, its result from its stdout. */
void native_call (struct session *s, struct running_task *task, const struct staged_artifact *tool,
                  const struct call *call, struct call_outcome *out);

/* Everything a finished command wrote to a stream, or what was kept of more than 16 MiB. Owned. */
char *native_stream_text (const struct command_stream *stream, size_t *len);

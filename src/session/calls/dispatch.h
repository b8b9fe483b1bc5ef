/* SPDX-License-Identifier: Apache-2.0
 *
 * Running one tool call, by name, first match wins (docs/spec/session.md 8.1).
 *
 * Knows no tool: what the runtime provides is asked of the session's own rows.
 */
#pragma once

#include "engine/guest.h"
#include "host/tool.h"
#include "session/state/call.h"
#include "session/state/outcome.h"
#include "session/state/session.h"

struct running_task;

/* Runs the call and fences what came back. */
void dispatch_call (struct session *s, struct running_task *task, const struct call *call,
                    struct call_outcome *out);

/* One run of a component, for a call or a script. */
struct component_call {
    const struct staged_artifact *tool;
    const char *data;
    size_t len;
    const char *log_path; /* NULL: none */
    struct cancel *cancel;
    struct running_task *task; /* NULL: no person to ask, no stream */
};

/* The result lives in <arena>. For a guest that could not be run *err names the tool. */
enum guest_ending
call_component (struct session *s, const struct component_call *c, struct arena *arena,
                struct tool_result *result, struct mur_error **err);

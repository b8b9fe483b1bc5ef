/* SPDX-License-Identifier: Apache-2.0
 *
 * One call that came through the bridge: gates, dispatch and what is recorded of it
 * (docs/spec/session.md 6.1).
 *
 * What the harness reports of its own calls is the harness's to say: its events record
 * that.
 */
#pragma once

#include "base/buf.h"
#include "base/cancel.h"
#include "base/json.h"
#include "session/state/outcome.h"
#include "session/state/session.h"

struct running_task;

struct bridge_answer {
    struct buf text;
    bool is_error;
};

/* <abandon> ends a command's wait early: it goes to the background; <stop> stops a tool. */
void
bridge_call_run (struct session *s, struct running_task *t, const char *name, const json_t *input,
                 struct cancel *abandon, struct cancel *stop, struct bridge_answer *out);
struct rec_harness_item;

/* A call that is served was answered so; kept again. */
void bridge_call_played (struct session *s, const struct rec_harness_item *item,
                         const struct call_outcome *gates, bool is_free);
/* The tools as MCP names them: [{description?, inputSchema, name}]. Owned. */
json_t *bridge_tool_list (const struct session *s);

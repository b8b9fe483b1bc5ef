/* SPDX-License-Identifier: Apache-2.0
 *
 * What hooks are told of turns and calls (docs/spec/session.md 9.3).
 */
#pragma once

#include "session/model/driver_call.h"
#include "session/state/call.h"
#include "session/state/outcome.h"
#include "trace/lines/writer.h"

struct request;
struct running_task;
struct session;

/* Before the inference line; the artifacts hooks answered are kept for the turn's end. */
void hooks_tell_inference (struct session *s, struct running_task *t, const struct request *request,
                           const struct driver_answer *a, uint64_t estimate);
/* The same of a turn a harness closed: without prompt and tools. <text> may be NULL. */
void hooks_tell_harness_turn (struct session *s, struct running_task *t,
                              const struct trace_inference *turn, const char *text);
/* The part of a command that hooks are shown. Owned. */
char *hook_shown_command (const char *command);
/* Shows the artifacts of this turn's on-inference. */
void hooks_show_artifacts (struct session *s, struct running_task *t);
void hooks_tell_call (struct session *s, struct running_task *t, const struct call *call,
                      const struct call_outcome *o, uint64_t duration_ms);
void hooks_tell_shell (struct session *s, struct running_task *t, uint64_t turn,
                       const struct shell_facts *f);

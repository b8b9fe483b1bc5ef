/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that went to the background, and the tool that asks after them (spec/session.md 8.6).
 *
 * Callers: shell.c puts one here; builtin.c answers background-command; loop.c turns finished ones
 * into tasks; launch.c settles the rest at the end. One thread, the task loop's, uses all of it.
 */
#pragma once

#include "session/confine.h"
#include "session/dispatch.h"

/* Detaches a running command (a reference is taken) and says so to the model. When its log cannot
 * be made the command is killed, and the call is an error. */
void
background_take (struct session *s, struct running_task *task, const char *name, const char *line,
                 struct command *c, uint64_t grace_ms, struct call_outcome *out);

extern const char background_parameters[];
bool background_is_offered (const struct session *s);
void background_call (struct session *s, struct running_task *task, const json_t *input,
                      struct call_outcome *out);

/* Records finished commands and, under queue+sleep, enqueues the task that reports each. Before
 * every choice of a task. */
void background_report (struct session *s);
/* Work ids still running for a task, appended. */
void background_list (const struct session *s, const char *task_id, struct strv *ids);
/* At session end, in two halves around the kill: what is outstanding is noted, then recorded. */
void background_abandon_begin (struct session *s);
void background_abandon_end (struct session *s);

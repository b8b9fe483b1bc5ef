/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that went to the background, and the tool that asks after them (docs/spec/session.md
 * 8.6).
 *
 * One thread, the task loop's, uses all of it but background_append_residue, which the door's
 * thread asks.
 */
#pragma once

#include "session/commands/confine.h"
#include "session/state/outcome.h"

struct background;
struct command;
struct running_task;

/* Tells what runs in the foreground from now on: a cancel would leave it running in the background.
 * The command is referenced; binary and command are taken from out->shell. Ends with one of the two
 * below. */
struct background *
background_begin (struct session *s, const struct running_task *task, const char *name,
                  const char *line, struct command *c, const struct call_outcome *out);
/* Detaches it and says so to the model. When its log cannot be made the command
 * is killed, and the call is an error. */
void background_take (struct session *s, struct background *b, const char *name, uint64_t grace_ms,
                      struct call_outcome *out);
/* It has ended. */
void background_done (struct session *s, struct background *b);

/* Records finished commands and, under queue+sleep, enqueues the task that reports each. Before
 * every choice of a task. */
void background_report (struct session *s);
/* What is left running of a task, or of all (NULL), as residue items (door.md 7.5): a registry's
 * residue source. The foreground command of a cancelled task is among them: it goes on in the
 * background under the id told here. */
void background_append_residue (void *session, const char *task_id, json_t *items);
/* The runningCommands of a task's metadata (door.md 6.2); NULL when none runs. */
json_t *background_running_json (const struct session *s, const char *task_id);
/* Work ids still running for a task, appended. */
void background_list (const struct session *s, const char *task_id, struct strv *ids);
/* At session end, in two halves around the kill: what is outstanding is noted, then recorded. */
void background_abandon_begin (struct session *s);
void background_abandon_end (struct session *s);

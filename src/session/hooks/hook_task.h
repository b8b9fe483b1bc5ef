/* SPDX-License-Identifier: Apache-2.0
 *
 * The task's texts as hooks may read them (docs/spec/session.md 9.4): as it was given, as it first
 * was, and what came of it.
 *
 * Told by the task loop, read by hooks on whatever thread they run.
 */
#pragma once

#include "host/task_io.h"

struct session;
struct task;

void hooks_task_begin (struct session *s, const struct task *task);
/* The text this attempt is given; its output is not there yet. */
void hooks_attempt_begin (struct session *s, const char *text, size_t len);
void hooks_output (struct session *s, const char *text);
void hooks_task_end (struct session *s);

/* What a hook's task-io answers; the text lives in the arena. */
enum task_io_error hook_task_text (struct session *s, enum task_io_text which, struct arena *arena,
                                   const char **text, size_t *len);
/* The context of the running task, or <otherwise>; in the arena. */
const char *hook_task_context (struct session *s, struct arena *arena, const char *otherwise);

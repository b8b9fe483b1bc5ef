/* SPDX-License-Identifier: Apache-2.0
 *
 * An attempt that begins anew because there is no conversation to go on with: task.md is written
 * again, the task's text and, section by section, all that was said since (docs/spec/session.md
 * 4.5).
 *
 * Always true: the task's original text is never compounded.
 */
#pragma once

#include "session/state/running_task.h"

/* Adds to a section and makes the next attempt begin with the whole. False: task.md could not be
 * read or written, nothing changes. */
bool restart_with (struct session *s, struct running_task *t, enum restart_section section,
                   const char *text);
/* Appends the text of task.md as the model reads it. Of an untrusted task its own text and the
 * feedback of hooks are fenced under <source>; what came fenced already is not fenced again. */
void restart_append_task (const struct session *s, const struct running_task *t, const char *source,
                          const char *text, size_t len, struct buf *out);

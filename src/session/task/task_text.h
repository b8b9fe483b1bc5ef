/* SPDX-License-Identifier: Apache-2.0
 *
 * task.md of the runtime directory: where the text of a task comes from and how an attempt reads
 * it (docs/spec/session.md 4.3).
 *
 * Always true: the work folder's file is read once, through no link, and never written.
 */
#pragma once

#include "session/state/session.h"

/* Copies task.md, else input.txt, of the work folder when the runtime directory has none. Returns
 * whether there is a task afterwards. A link in the way is latched and imports nothing. */
bool task_text_import (struct session *s);
bool task_text_write (struct session *s, const char *text, size_t len, struct mur_error **err);
/* The text of the task to run. E-RUN-007 when it is blank, E-RUN-050, E-IO-003. */
bool task_text_read (struct session *s, struct buf *out, struct mur_error **err);

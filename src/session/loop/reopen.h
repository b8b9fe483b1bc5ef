/* SPDX-License-Identifier: Apache-2.0
 *
 * Another attempt because a hook asked for it at the end of one (docs/spec/session.md 4.5 step 8).
 *
 * Always true: the task's original text is never compounded; a cancel, a refused path and the
 * deadline are final.
 */
#pragma once

#include "session/state/running_task.h"

/* Tells on-task-end. True: another attempt follows, begun or continued. False: the task ends as it
 * stands, or because no reopening is left. */
bool reopen (struct session *s, struct running_task *t);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks that come out of a record, and what came to them from outside while they ran
 * (docs/spec/records.md 14). Every function is for a session that runs a record again.
 */
#pragma once

#include "door/tasks/intake.h"
#include "session/state/running_task.h"

/* The next task of the record, queued and taken. REGISTRY_NOTHING: there is none left. */
enum registry_next played_next_task (struct session *s, const struct task **task);
/* Adds the messages the conversation held before this attempt. */
bool played_load_prior (struct session *s, struct running_task *t, struct mur_error **err);
/* Settings a controller changed before this turn. */
void played_controls (struct session *s, const struct running_task *t);
/* A turn begins: it may be the first that is no replay any more. */
void played_turn (struct session *s, const struct running_task *t);
/* The task ended. */
void played_task_over (struct session *s, const struct running_task *t);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeds: messages a hook puts before a task's conversation (docs/spec/session.md 11.6).
 *
 * Always true: a seed never fails a task, and never takes more than its share of the input budget.
 */
#pragma once

#include "session/state/running_task.h"

/* Tells on-task-start and judges what the first hook proposed; what is kept waits in t->seed. */
void seed_ask (struct session *s, struct running_task *t, uint64_t input_bytes);
/* Puts the seed at the front of the list, once the task's message is in it and in the record. */
void seed_place (struct running_task *t);

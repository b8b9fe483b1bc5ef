/* SPDX-License-Identifier: Apache-2.0
 *
 * What is sent to a door: a message of one text, or the answer to what a task asks
 * (docs/spec/door.md 7, 10).
 */
#pragma once

#include "base/json.h"

/* The params of a message of one text. <context_id> and <task_id> may be NULL. Owned. */
json_t *door_message (const char *text, size_t len, const char *context_id, const char *task_id);
/* The structured question of a status; NULL: none. Borrowed. */
const json_t *door_message_question (const json_t *status);
/* The same as door_message, answering a structured question. Owned. */
json_t *door_message_answer (const char *task_id, const json_t *question, const char *answer);

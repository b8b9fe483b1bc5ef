/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launcher asks at the door of its child: to take the task, and what became of it
 * (spec/spawn.md A14, A19).
 *
 * Always true: no origin is claimed, so a child that refuses peers takes its parent's task too; no
 * message holds the door's token.
 */
#pragma once

#include "base/cancel.h"
#include "base/json.h"
#include "murmur/child.h"
#include "net/http_client.h"

/* Sends the task; tries for up to 30 s while there is no HTTP answer to go by. <traceparent> may be
 * NULL. *task_id (owned) is the child's own. E-RUN-007. */
bool child_door_send (struct http_client *http, struct mur_child *child, const char *delegation_id,
                      const char *task, const char *traceparent, struct cancel *cancel,
                      char **task_id, struct mur_error **err);

/* The task object as GetTask answers; NULL: the door did not answer so. Owned. */
json_t *child_door_task (struct http_client *http, struct mur_child *child, const char *task_id,
                         struct cancel *cancel);

/* Sends the params of a SendMessage, an answer to what its task asks. False: it was not taken. */
bool child_door_answer (struct http_client *http, struct mur_child *child, json_t *params,
                        struct cancel *cancel);

/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of ListTasks, checked in the order of spec/door.md 7.4.
 */
#pragma once

#include "door/tasks/registry.h"

/* Strings are borrowed from params; <cursor_id> is owned and what query->cursor_task_id points to.
 * False with *fault (owned) naming the parameter. */
bool
list_query_read (const json_t *params, struct list_query *query, char **cursor_id, char **fault);

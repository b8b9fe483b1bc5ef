/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of a request's parameters (spec/door.md 7): what has a wrong type or range is refused
 * by name, also where its value would change nothing here.
 */
#pragma once

#include "base/json.h"
#include "door/card/card.h"

/* NULL, or what an answer says of the first parameter with a wrong shape. Owned. A null reads as
 * absent. What a message itself must hold is judged by its reader (tasks/message.h). */
char *params_fault (enum door_method method, const json_t *params);

/* SPDX-License-Identifier: Apache-2.0
 *
 * The methods of a capsule's door that need a scope, in the order of its card (spec/door.md 7): one
 * table for who may be granted what, what is served, and what an exposed door tells.
 *
 * Users: judge_door.c, policy/warn.c, door/card/card.c (whose enum follows this order).
 */
#pragma once

#include <stdbool.h>

#define DOOR_METHOD_COUNT 8
#define DOOR_SCOPE_FILES  "resources/files"

/* The scopes beside them; ends with NULL. */
extern const char *const door_plane_scopes[];
#define DOOR_PLANE_SCOPE_COUNT 3

struct door_method_row {
    const char *name;
    bool needs_tasks; /* not served when lifecycle.task_acceptance is none */
    bool starts_tasks;
};

extern const struct door_method_row door_methods[DOOR_METHOD_COUNT];

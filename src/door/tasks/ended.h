/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks that ended so long ago that the registry no longer holds them: their records are on disk,
 * and a task costs 25 bytes of memory, so a door may run for months (DESIGN: ended tasks are
 * bounded).
 *
 * Always true: what was put is answered as it would have been before; records are in the order of
 * revisions. The files have no name: they end with the session, however it ends. Not thread-safe:
 * the registry's lock covers it.
 */
#pragma once

#include "door/tasks/task_json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ended_tasks;

/* <dir_fd> is a directory of the session's, borrowed; nothing is made in it before the first put.
 */
struct ended_tasks *ended_tasks_new (int dir_fd);
void ended_tasks_free (struct ended_tasks *x);

/* A task as it ended, owned by whoever asked for it. */
struct ended_task {
    struct task_view view; /* its id and context are owned here */
    char *owner;           /* NULL: none */
    uint64_t revision;
};
void ended_task_clear (struct ended_task *t);

/* Puts one whose revision is above all that were put. False when it cannot be written: it was not
 * put. */
bool ended_tasks_put (struct ended_tasks *x, const struct task_view *view, const char *owner,
                      uint64_t revision);
/* False when there is none of that id, or it cannot be read. */
bool ended_tasks_find (const struct ended_tasks *x, const char *id, struct ended_task *out);

struct ended_filter {
    const char *context_id; /* NULL: all */
    const char *owner;      /* whose, where <is_owned>; NULL then matches none */
    bool is_owned, has_state, has_after;
    enum task_state state;
    uint64_t after_ms; /* ended then or later */
};

uint64_t ended_tasks_count (const struct ended_tasks *x, const struct ended_filter *f);
/* From the newest below a revision (UINT64_MAX: all) to older ones: <*at> begins as
 * ended_tasks_below, and is moved to the next that matches. False: there is none any more. */
size_t ended_tasks_below (const struct ended_tasks *x, uint64_t revision);
bool ended_tasks_next (const struct ended_tasks *x, const struct ended_filter *f, size_t *at,
                       struct ended_task *out);

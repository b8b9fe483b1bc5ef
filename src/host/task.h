/* SPDX-License-Identifier: Apache-2.0
 *
 * Host side of murmur:task/task@0.1.0: a tool asks the person behind the task
 * (spec/artifacts.md 15.8).
 */
#pragma once

#include "engine/engine.h"

struct task_host {
    void *ctx;
    /* Waits for the message that continues this task and returns its text in <arena> (*text_len its
     * bytes). NULL with *err set traps the guest (no task, timed out, cancelled). Must watch
     * guest_current_cancel (). */
    const char *(*request_input) (void *ctx, const char *prompt, size_t len, struct arena *arena,
                                  size_t *text_len, struct mur_error **err);
};

/* Bind with a struct task_host * as its context; a NULL context traps: there is no task to ask. */
extern const struct host_interface host_task;

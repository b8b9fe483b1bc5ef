/* SPDX-License-Identifier: Apache-2.0
 *
 * Host side of murmur:task-io/read@0.1.0: a hook reads the running task's text and output in pieces
 * (spec/artifacts.md 15.12).
 */
#pragma once

#include "engine/engine.h"

enum task_io_error {
    TASK_IO_OK,
    TASK_IO_NOT_GRANTED,
    TASK_IO_NO_TASK,
    TASK_IO_NO_OUTPUT,
    TASK_IO_OUT_OF_RANGE, /* answered here */
};

enum task_io_text {
    TASK_IO_AS_GIVEN, /* what the present attempt was given */
    TASK_IO_ORIGINAL,
    TASK_IO_OUTPUT,
};

struct task_io_host {
    void *ctx;
    /* The text as it is now, copied into <arena>. */
    enum task_io_error (*text) (void *ctx, enum task_io_text which, struct arena *arena,
                                const char **text, size_t *len);
};

/* Bind with a struct task_io_host * as its context; a NULL context answers not-granted. */
extern const struct host_interface host_task_io;

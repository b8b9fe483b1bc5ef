/* SPDX-License-Identifier: Apache-2.0
 *
 * What a driver call shows on the task's stream while it runs (docs/spec/session.md 5.1, 5.9).
 *
 * Always true: of a call the model is still writing only its id, name and size are shown, never
 * its input; sizes of one call are shown at most every 250 ms.
 */
#pragma once

#include "door/tasks/streams.h"
#include "host/stream.h"
#include "session/state/running_task.h"

struct frame_call {
    char *id;
    uint64_t bytes, shown_bytes;
    uint64_t shown_ms; /* monotonic */
    bool is_settled;
};

struct frames {
    struct streams *streams;
    const struct task *task;
    bool has_text;
    struct frame_call *calls;
    size_t len, cap;
    struct stream_host host; /* bind this one */
};

/* <is_driver>: started calls and their sizes count. */
void frames_begin (struct frames *f, struct session *s, const struct task *task, bool is_driver);
/* The call returned: held sizes are shown, started calls are settled, the text's cursor is closed.
 */
void frames_settle (struct frames *f);
void frames_clear (struct frames *f);

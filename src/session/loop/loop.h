/* SPDX-License-Identifier: Apache-2.0
 *
 * The task loop: which task runs next, when the session is over, how its runs fold into one ending
 * (docs/spec/session.md 4.4).
 */
#pragma once

#include "session/state/session.h"

struct task;

/* What the launch came to. */
struct launch_outcome {
    bool is_decided; /* some run did not complete */
    enum session_ending ending;
    struct mur_error *error; /* what the exit reports when decided */
};

/* Runs tasks until the lifecycle says the session is over. <has_own>: the launch's own task is
 * queued. */
void loop_run (struct session *s, bool has_own, struct launch_outcome *out);

/* Whether the capsule goes on after its tasks until it is told to end. */
bool loop_sleeps (const struct session *s);

/* The whole record of a task that was cancelled while it was queued. */
void loop_record_canceled (struct session *s, const struct task *task);

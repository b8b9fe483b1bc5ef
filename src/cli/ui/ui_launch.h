/* SPDX-License-Identifier: Apache-2.0
 *
 * A capsule launched from the page.
 *
 * Always true: it is a session of its own that no one's end takes along: not the page's, nor the
 * terminal's that the page was started from; the task and what a browser wrote are in no argument
 * that could be read as an option or a file.
 */
#pragma once

#include "cli/ui/ui_capsules.h"

#include <stdint.h>

struct ui_launch {
    const struct ui_capsule *capsule;
    const char *task;
    const char *model;           /* NULL: the manifest's */
    uint64_t max_session_tokens; /* 0: the manifest's */
    uint64_t deadline_secs;      /* 0: none */
    bool goes_on;                /* takes further tasks afterwards, in one conversation */
};

/* Starts it and waits until it is reachable: its id, owned. NULL with what it said of the cause;
 * also when <stop_fd> became readable or it took too long, which ends nothing: E-IO-003. */
char *ui_launch (const struct ui_launch *l, int stop_fd, struct mur_error **err);

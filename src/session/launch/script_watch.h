/* SPDX-License-Identifier: Apache-2.0
 *
 * What ends a script capsule from outside: its spawner's lifeline, and, once it is registered with
 * mur-roost, a signal (docs/spec/spawn.md A10, A13).
 *
 * A script has nothing to wind down: the process goes at once. Always true: what it registered is
 * given back first; a signal's death is still a death by that signal.
 */
#pragma once

#include "session/state/session.h"

#include <signal.h>

struct script_watch {
    struct session *session;
    int stop_fd, signal_fd; /* -1: not watched */
    pthread_t thread;
    bool is_on;
    sigset_t before;
};

/* Before the session registers: from here a signal waits until somebody looks for it. */
void script_watch_hold (struct script_watch *w, struct session *s);
/* Starts looking; lets signals through when there is nothing to give back. E-IO-003. */
bool script_watch_start (struct script_watch *w, struct mur_error **err);
/* Before the session deregisters by itself. Safe when never started. */
void script_watch_stop (struct script_watch *w);
/* Last: lets signals through again. */
void script_watch_release (struct script_watch *w);

/* SPDX-License-Identifier: Apache-2.0
 *
 * A child's process: its handle's inside (spec/spawn.md A15).
 *
 * What moves a child, each under its lock:
 *
 *     (none)          -> REAPED   child_new: nothing was started yet
 *     REAPED          -> RUNNING  child_start; REAPED again when it could not be started
 *     RUNNING         -> ENDING   begin: our SIGTERM was sent (mur_child_end)
 *     RUNNING, ENDING -> REAPED   reap: its exit status is known
 *
 * Always true: the signal and every reap happen under one lock, so that a pid is never signalled
 * once it may belong to another process; the lock is not held across a wait.
 */
#pragma once

#include "murmur/child.h"

#include "base/buf.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/secret.h"
#include "spawn/child/output.h"

#include <pthread.h>

enum child_state {
    CHILD_RUNNING,
    CHILD_ENDING, /* SIGTERM sent by us, not reaped */
    CHILD_REAPED, /* exit status known; the pid means nothing any more */
};

struct mur_child {
    pthread_mutex_t lock; /* guards what is marked live */
    pid_t pid;            /* 0: never started */
    int pidfd;
    enum child_state state;   /* live */
    int status;               /* live: of waitpid, once reaped; -1 unknown */
    uint64_t ending_since_ms; /* live: monotonic, of our SIGTERM */
    bool has_ender;           /* live: a thread is in mur_child_end */
    int lifeline_fd;          /* live: our write end, -1 once closed */

    struct output *output;
    struct strv argv, environment;
    char *workdir;
    int workdir_fd;
    char *records_dir;
    int records_fd;
    char *session_id, *url, *formation_id;
    char *snapshot_report; /* NULL: no copy was made */
    struct secret *door_token;
};

/* An empty handle: no process yet. */
struct mur_child *child_new (void);
DEFINE_CLEANUP (struct mur_child, mur_child_free)

/* What a launch passes to the program. */
struct child_stdio {
    int in, out, err, lifeline; /* the child's ends; borrowed */
};
/* Forks and executes argv with environment in the work folder. The one place a lifeline's read end
 * loses close-on-exec. E-IO-003. */
bool child_start (struct mur_child *c, const struct child_stdio *stdio, struct mur_error **err);
/* Whether our SIGTERM came before its exit: then its end was ours. */
bool child_was_ended (struct mur_child *c);
/* "exit status 1", "signal 9 (Killed)". Owned. */
char *child_status_text (int status);

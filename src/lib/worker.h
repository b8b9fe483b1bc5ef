/* SPDX-License-Identifier: Apache-2.0
 *
 * The process that carries a request out: a `mur run` whose streams are pipes of ours.
 *
 * Always true: it is in a process group of its own, holds nothing of ours but what is named here,
 * and learns of our death by a pipe whose only write end is ours.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "murmur/request.h"

struct worker {
    int pidfd; /* -1: it was over before it could be watched */
    bool is_reaped;
    int lifeline_fd;        /* our write end */
    int out_fd, errors_fd;  /* what it writes */
    int credentials_fd;     /* its questions for keys; -1: it asks nobody */
    struct buf out, errors; /* read and not looked at yet */
    struct strv told;       /* its last lines on stderr */
};

/* One that was not started: nothing of it is to be let go. */
#define WORKER_NONE                                                                                \
    (struct worker)                                                                                \
    {                                                                                              \
        .pidfd = -1, .lifeline_fd = -1, .out_fd = -1, .errors_fd = -1, .credentials_fd = -1        \
    }

/* Starts it with <words> (NULL-terminated) before those of the request. False: nothing was. */
bool worker_start (struct worker *w, const struct mur_request *r, const char *const *words,
                   struct mur_error **err);
/* Reads all it writes until it has ended. Its output, owned, when its status is 0; else NULL with
 * the error it told. */
char *worker_output (struct worker *w, struct mur_error **err);
/* Takes what waits on one of its streams into <into>. False at its end. */
bool worker_read (int fd, struct buf *into);
/* The next whole line of <from>, owned; NULL: there is none yet. */
char *worker_line (struct buf *from);
/* Remembers a line of stderr. */
void worker_note (struct worker *w, const char *line);
/* The error its lines tell; E-IO-003 with them and its status where they tell none. Always
 * false. */
bool worker_fail (const struct worker *w, int status, bool was_ready, struct mur_error **err);
/* Waits for its end. Its status, 128 and the signal's number when one killed it, -1 when somebody
 * else has learnt it. */
int worker_reap (struct worker *w);
void worker_signal (const struct worker *w, int number);
/* Lets go of our ends. */
void worker_close (struct worker *w);
/* Kills it when it still runs. Frees everything. */
void worker_clear (struct worker *w);

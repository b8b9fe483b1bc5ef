/* SPDX-License-Identifier: Apache-2.0
 *
 * The session a conversation is held with: joined, or launched and ended with the conversation.
 *
 * Always true: a launched session holds the read end of a pipe whose only write end is here, so it
 * winds down however this process ends; it reads no terminal and gets none of its signals.
 */
#pragma once

#include "base/buf.h"
#include "home/running.h"
#include "net/http_client.h"

struct chat_session {
    struct http_client *client;
    const struct running_record *record; /* of <scan> */
    struct running_scan scan;
    char *manifest; /* as it was launched; NULL when joined */
    const char *workdir;
    pid_t pid;           /* ours; 0: joined, or ended */
    int lifeline_fd;     /* our write end */
    int errors_fd;       /* what it writes to its stderr */
    size_t errors_shown; /* bytes of it */
};

struct chat_launch {
    const char *manifest;
    const char *workdir; /* NULL: mur run's choice */
    bool has_no_env_file;
    int signals_fd; /* readable: the launch is given up */
};

/* Joins a running session by its address. E-RUN-022, E-RUN-023, E-RUN-028. */
bool chat_session_join (struct chat_session *s, const char *address, struct mur_error **err);
/* Starts `mur run` and waits until it is reachable. When false, what it said of the cause is on
 * stderr already, or *err is set. */
bool
chat_session_launch (struct chat_session *s, const struct chat_launch *l, struct mur_error **err);
/* Hands on to stderr what the launched session wrote to its own since the last time. */
void chat_session_tell (struct chat_session *s);
/* Whether its process is still there. */
bool chat_session_lives (struct chat_session *s);
/* Ends what was launched and waits for it; leaves what was joined. Frees everything. */
void chat_session_clear (struct chat_session *s);

/* SPDX-License-Identifier: Apache-2.0
 *
 * MCP at the door as the files that serve it share it.
 */
#pragma once

#include "door/planes/mcp_plane.h"
#include "door/planes/mcp_sessions.h"
#include "mcp/outgoing.h"
#include "mcp/progress.h"

#include <pthread.h>

/* One request that is not answered at once: shared by its thread and its stream. */
struct work {
    struct mcp_plane *plane;
    struct work *next, **link; /* of the plane's list while open */
    unsigned refs;
    struct mcp_request request;
    struct mcp_peer peer;              /* a copy: what the request borrows of it */
    char session[MCP_SESSION_LEN + 1]; /* "": of no legacy session */
    struct mcp_watched watched;        /* of a subscription */
    char *principal;
    struct cancel *cancel;
    struct http_exchange *x;    /* to be answered with JSON; NULL: a stream */
    bool is_plain, is_late;     /* x stays one; it may become a stream yet */
    struct http_stream *stream; /* NULL once closed */
    struct buf out;             /* of the stream */
    size_t sent;
    bool is_over, is_listening;
    uint64_t told_ms;
    struct mcp_progress progress;
};

struct mcp_plane {
    struct mcp_plane_spec spec;
    const struct door_auth *auth;
    json_t *info;
    struct mcp_sessions sessions; /* the server's thread alone, but for what they watch */
    struct mcp_outgoing outgoing; /* what legacy clients are asked */

    pthread_mutex_t lock; /* what follows, and each work's stream */
    pthread_cond_t is_idle;
    struct work *open;
    unsigned running, listening;
    bool is_stopping;
};

/* --- mcp_work.c --- */

/* Answers with a message, taken over; <session> (may be NULL) is told. */
void mcp_work_reply (struct http_exchange *x, int status, char *text, const char *session);
/* Answers with an error that is of no request. */
void mcp_work_refuse (struct http_exchange *x, int status, const char *why);
/* Takes the request over. */
struct work *mcp_work_new (struct mcp_plane *p, struct mcp_request *r, const char *credential);
void mcp_work_unref (struct work *w);
/* False: 503 was answered. */
bool mcp_work_open_stream (struct work *w, struct http_exchange *x);
/* All under the lock. */
void mcp_work_link (struct work *w);
void mcp_work_unlink (struct work *w);
/* Puts a message on its stream, if it has one; <text> is taken over. */
void mcp_work_put (struct work *w, char *text);
/* Nothing follows on its stream. */
void mcp_work_end (struct work *w);
/* From here on its status is told. */
void mcp_work_open_late (struct work *w);

/* --- mcp_listen.c --- */

/* A subscription of a modern client; takes the request over. */
void mcp_listen_begin (struct mcp_plane *p, struct http_exchange *x, struct mcp_request *r,
                       const char *credential);
/* A legacy session's own stream: it takes the place of the one it had. */
void mcp_listen_session (struct mcp_plane *p, struct http_exchange *x, struct mcp_session *known);
/* The session is over, and so is its stream. */
void mcp_listen_forget (struct mcp_plane *p, const char *session);
/* Under the lock: what a legacy session was not told yet, for want of a stream. */
void mcp_listen_tell_news (struct work *w, struct mcp_session *known);
/* Under the lock: a subscription ends in good order. */
void mcp_listen_over (struct work *w);

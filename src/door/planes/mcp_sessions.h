/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of older clients of MCP: what `initialize` agreed on, kept between their requests.
 *
 * Always true: there are so many and no more, the one unused for longest gives way; one thread
 * finds and makes them, and what they look after changes under the lock alone.
 */
#pragma once

#include "mcp/watched.h"

#define MCP_SESSIONS_MAX 64
#define MCP_SESSION_LEN  32

struct mcp_session {
    char id[MCP_SESSION_LEN + 1]; /* "": free */
    struct mcp_peer peer;
    struct mcp_watched watched;
    char *principal;              /* whose it is; NULL: a public door's */
    struct strv news;             /* addresses it was not told of; under the lock, like the rest */
    bool has_new[MCP_LIST_COUNT]; /* it was not told that this list changed */
    uint64_t used_ms;
};

struct mcp_sessions {
    struct mcp_session all[MCP_SESSIONS_MAX];
};
void mcp_sessions_clear (struct mcp_sessions *s, pthread_mutex_t *lock,
                         const struct mcp_service *service);

/* NULL: there is none of that principal (NULL on a public door). */
struct mcp_session *
mcp_session_find (struct mcp_sessions *s, const char *id, const char *principal);
/* The one that gives way for a new one; with an id it is in use. */
struct mcp_session *mcp_session_oldest (struct mcp_sessions *s);
void
mcp_session_end (struct mcp_session *one, pthread_mutex_t *lock, const struct mcp_service *service);
/* Begins anew in its place, which was ended. */
void mcp_session_begin (struct mcp_session *one, pthread_mutex_t *lock, const char *principal);

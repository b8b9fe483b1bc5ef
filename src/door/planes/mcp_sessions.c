/* SPDX-License-Identifier: Apache-2.0 */
#include "door/planes/mcp_sessions.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/digest.h"

#include <string.h>

void
mcp_session_end (struct mcp_session *one, pthread_mutex_t *lock, const struct mcp_service *service)
{
    mcp_peer_clear (&one->peer);
    free (steal_ptr (&one->principal));
    one->used_ms = 0;
    pthread_mutex_lock (lock);
    mcp_watched_clear (&one->watched, service);
    strv_free (&one->news);
    memset (one->has_new, 0, sizeof one->has_new);
    one->id[0] = '\0';
    pthread_mutex_unlock (lock);
}

void
mcp_sessions_clear (struct mcp_sessions *s, pthread_mutex_t *lock,
                    const struct mcp_service *service)
{
    for (size_t i = 0; i < MCP_SESSIONS_MAX; i++)
        mcp_session_end (&s->all[i], lock, service);
}

struct mcp_session *
mcp_session_find (struct mcp_sessions *s, const char *id, const char *principal)
{
    for (size_t i = 0; i < MCP_SESSIONS_MAX; i++) {
        struct mcp_session *one = &s->all[i];
        bool is_own = one->principal ? str_eq (one->principal, principal) : ! principal;
        if (! one->id[0] || ! is_own || ! str_eq (one->id, id))
            continue;
        one->used_ms = clock_monotonic_ms ();
        return one;
    }
    return NULL;
}

struct mcp_session *
mcp_session_oldest (struct mcp_sessions *s)
{
    struct mcp_session *oldest = &s->all[0];
    for (size_t i = 1; i < MCP_SESSIONS_MAX; i++)
        if (s->all[i].used_ms < oldest->used_ms)
            oldest = &s->all[i];
    return oldest;
}

void
mcp_session_begin (struct mcp_session *one, pthread_mutex_t *lock, const char *principal)
{
    unsigned char random[MCP_SESSION_LEN / 2];
    random_bytes (random, sizeof random);
    one->principal = principal ? x_strdup (principal) : NULL;
    one->used_ms = clock_monotonic_ms ();
    pthread_mutex_lock (lock);
    hex_encode (random, sizeof random, one->id);
    pthread_mutex_unlock (lock);
}

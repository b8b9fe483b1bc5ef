/* SPDX-License-Identifier: Apache-2.0 */
#include "door/planes/mcp_sessions.h"

#include "base/clock.h"
#include "base/digest.h"

static void
clear (struct mcp_session *one, pthread_mutex_t *lock, const struct mcp_service *service)
{
    mcp_peer_clear (&one->peer);
    pthread_mutex_lock (lock);
    mcp_watched_clear (&one->watched, service);
    strv_free (&one->news);
    pthread_mutex_unlock (lock);
}

void
mcp_sessions_clear (struct mcp_sessions *s, pthread_mutex_t *lock,
                    const struct mcp_service *service)
{
    for (size_t i = 0; i < MCP_SESSIONS_MAX; i++)
        clear (&s->all[i], lock, service);
}

struct mcp_session *
mcp_session_find (struct mcp_sessions *s, const char *id)
{
    for (size_t i = 0; i < MCP_SESSIONS_MAX; i++)
        if (s->all[i].id[0] && str_eq (s->all[i].id, id)) {
            s->all[i].used_ms = clock_monotonic_ms ();
            return &s->all[i];
        }
    return NULL;
}

struct mcp_session *
mcp_session_new (struct mcp_sessions *s, pthread_mutex_t *lock, const struct mcp_service *service)
{
    struct mcp_session *oldest = &s->all[0];
    unsigned char random[MCP_SESSION_LEN / 2];
    for (size_t i = 1; i < MCP_SESSIONS_MAX; i++)
        if (s->all[i].used_ms < oldest->used_ms)
            oldest = &s->all[i];
    clear (oldest, lock, service);
    random_bytes (random, sizeof random);
    hex_encode (random, sizeof random, oldest->id);
    oldest->used_ms = clock_monotonic_ms ();
    return oldest;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The resources one client looks after: an older one by subscribing to each, a modern one by a
 * subscription that names them.
 *
 * Always true: what is on a list is looked after by the service, once for each list; one thread
 * changes a list, under the lock of who else reads it.
 */
#pragma once

#include "base/buf.h"
#include "mcp/server.h"

#include <pthread.h>

#define MCP_WATCHED_MAX 64 /* of one client */

struct mcp_watched {
    struct strv uris;
};
/* Under the lock. */
void mcp_watched_clear (struct mcp_watched *w, const struct mcp_service *s);

/* Serves resources/subscribe and resources/unsubscribe, without the lock. */
void mcp_watched_serve (struct mcp_watched *w, pthread_mutex_t *lock, const struct mcp_service *s,
                        const struct mcp_request *r, struct mcp_answer *answer);
/* Takes what a subscription names, as far as there is such a thing; without the lock. */
void mcp_watched_listen (struct mcp_watched *w, pthread_mutex_t *lock, const struct mcp_service *s,
                         const struct mcp_request *r);
/* The notification that it changed: to a subscription, or (NULL) to a legacy peer. Owned. */
char *mcp_resource_updated_text (const struct mcp_request *subscription, const char *uri);

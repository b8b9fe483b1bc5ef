/* SPDX-License-Identifier: Apache-2.0 */
#include "session/guests/played_http.h"

#include "replay/play/player.h"

static void *
start (void *ctx, const struct guest_http_request *request, struct guest_http_reply *reply,
       enum guest_http_error *refused)
{
    (void)request;
    (void)reply;
    player_note_network (ctx);
    *refused = GUEST_HTTP_DENIED;
    return NULL;
}

const struct guest_http_handler played_http_handler = { .start = start };

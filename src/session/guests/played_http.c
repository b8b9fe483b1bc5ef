/* SPDX-License-Identifier: Apache-2.0 */
#include "session/guests/played_http.h"

#include "base/alloc.h"
#include "base/json.h"
#include "replay/play/play_guest.h"
#include "session/guests/http_tape.h"

#include <string.h>

struct played_http {
    struct player *player;
    const struct rec_guest *then;
    size_t count;
};

struct exchange {
    struct player *player;
    const struct rec_http *then;
    struct guest_http_reply *reply;
    struct buf sent, got;
    size_t chunk, at;
    bool has_ended;
};

struct played_http *
played_http_new (struct player *p, const struct rec_guest *then)
{
    struct played_http *h = x_new0 (struct played_http);
    *h = (struct played_http){ p, then, 0 };
    return h;
}

void
played_http_free (struct played_http *h)
{
    free (h);
}

static char *
line_of (const char *method, const char *url)
{
    return x_asprintf ("%s %s", method, url);
}

static void *
start (void *ctx, const struct guest_http_request *request, struct guest_http_reply *reply,
       enum guest_http_error *refused)
{
    struct played_http *h = ctx;
    size_t n = h->count++;
    const struct rec_http *then =
        h->then && n < h->then->http_count && h->then->http[n].method ? &h->then->http[n] : NULL;
    _cleanup_free_ char *url =
        x_asprintf ("%s://%s%s", request->scheme ? request->scheme : "",
                    request->authority ? request->authority : "", request->path_with_query);
    _cleanup_free_ char *now = line_of (request->method, url);
    _cleanup_free_ char *recorded = then ? line_of (then->method, then->url) : NULL;
    *refused = GUEST_HTTP_DENIED;
    if (! then)
        player_note_network (h->player);
    if (! h->then && ! player_record (h->player)->tape)
        return NULL; /* nothing of any guest is on record */
    bool is_same =
        player_http (h->player, recorded, recorded ? strlen (recorded) : 0, now, strlen (now));
    if (! is_same || then->is_refused)
        return NULL;
    struct exchange *x = x_new0 (struct exchange);
    *x = (struct exchange){ .player = h->player, .then = then, .reply = reply };
    return x;
}

static bool
body (void *exchange, const void *data, size_t len)
{
    struct exchange *x = exchange;
    buf_append (&x->sent, data, len);
    return true;
}

static void
give_head (struct exchange *x)
{
    size_t i, count = json_array_size (x->then->headers);
    const json_t *pair;
    _cleanup_free_ struct guest_http_header *headers =
        x_new_array (struct guest_http_header, count + 1);
    json_array_foreach (x->then->headers, i, pair)
    {
        const json_t *value = json_array_get (pair, 1);
        const char *name = json_string_value (json_array_get (pair, 0));
        headers[i] = (struct guest_http_header){
            name ? name : "",
            json_string_value (value) ? json_string_value (value) : "",
            json_string_length (value),
        };
    }
    guest_http_reply_head (x->reply, x->then->status, headers, count);
}

/* Goes on where the guest's buffer was full. */
static void
give_pieces (struct exchange *x)
{
    while (x->chunk < x->then->chunk_count) {
        size_t len = x->then->chunks[x->chunk], left = x->got.len - x->at;
        len = len < left ? len : left;
        if (! guest_http_reply_body (x->reply, x->got.data + x->at, len))
            return;
        x->at += len;
        x->chunk++;
    }
    if (! x->has_ended)
        guest_http_reply_end (x->reply, http_tape_error (x->then->error));
    x->has_ended = true;
}

/* A body that is on record by its digest alone holds what must not lie there. */
static bool
is_same_body (struct exchange *x)
{
    _cleanup_buf_ struct buf then = { 0 };
    if (! rec_body_is_set (&x->then->sent))
        return true;
    if (! record_fetch (player_record (x->player), &x->then->sent, &then, NULL))
        return false;
    return player_http (x->player, then.data ? then.data : "", then.len,
                        x->sent.data ? x->sent.data : "", x->sent.len);
}

static void
body_end (void *exchange, bool is_complete)
{
    struct exchange *x = exchange;
    if (! is_complete || ! is_same_body (x) ||
        ! record_fetch (player_record (x->player), &x->then->got, &x->got, NULL)) {
        x->has_ended = true;
        guest_http_reply_end (x->reply, GUEST_HTTP_INTERNAL_ERROR);
        return;
    }
    if (x->then->headers)
        give_head (x);
    give_pieces (x);
}

static void
resume (void *exchange)
{
    give_pieces (exchange);
}

static void
cancel (void *exchange)
{
    struct exchange *x = exchange;
    buf_free (&x->sent);
    buf_free (&x->got);
    free (x);
}

const struct guest_http_handler played_http_handler = {
    .start = start, .body = body, .body_end = body_end, .resume = resume, .cancel = cancel
};

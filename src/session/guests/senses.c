/* SPDX-License-Identifier: Apache-2.0 */
#include "session/guests/senses.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "replay/play/play_guest.h"
#include "replay/tape/clock.h"
#include "session/guests/guest_store.h"
#include "session/guests/http_tape.h"
#include "session/guests/played_http.h"
#include "session/guests/recording.h"
#include "session/state/session.h"

#include <string.h>
#include <time.h>

#define MOST_READINGS ((size_t)4 << 20) /* bytes on record between two calls of a guest */

struct senses {
    struct session *session;
    struct guest_senses host;
    char *place;
    unsigned char key[32], block[32];
    uint64_t blocks;
    size_t block_left;
    struct clock_state kept_state, played_state;
    struct buf kept;              /* not on record yet */
    const struct rec_guest *then; /* NULL: nothing is played */
    size_t then_at;
    struct http_tape *http;     /* NULL: not kept */
    struct played_http *played; /* NULL: the network is asked */
};

/* --- clocks --- */

static uint64_t
host_ns (enum clock_kind kind)
{
    struct timespec now;
    clock_gettime (kind == CLOCK_WALL ? CLOCK_REALTIME : CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* As it was read then; past the last reading time goes on by itself. */
static uint64_t
read_clock (struct senses *x, enum clock_kind kind)
{
    uint64_t ns;
    if (! x->then || ! clock_reading_take (&x->played_state, kind, x->then->clock.data,
                                           x->then->clock.len, &x->then_at, &ns))
        ns = x->then && x->played_state.last[kind] ? x->played_state.last[kind] += 1000
                                                   : host_ns (kind);
    if (recording_tape (x->session) && x->kept.len < MOST_READINGS)
        clock_reading_append (&x->kept_state, kind, ns, &x->kept);
    return ns;
}

static uint64_t
wall_ns (void *ctx)
{
    return read_clock (ctx, CLOCK_WALL);
}

static uint64_t
monotonic_ns (void *ctx)
{
    return read_clock (ctx, CLOCK_MONOTONIC);
}

/* --- random numbers --- */

/* A stream of the guest's own: block n is the digest of n under its key. */
static void
fill_random (void *ctx, void *out, size_t len)
{
    struct senses *x = ctx;
    for (unsigned char *to = out; len; to++, len--) {
        if (! x->block_left) {
            hmac_sha256 (x->key, sizeof x->key, &x->blocks, sizeof x->blocks, x->block);
            x->blocks++;
            x->block_left = sizeof x->block;
        }
        *to = x->block[sizeof x->block - x->block_left--];
    }
}

/* --- one guest --- */

static bool
is_played (const struct session *s, const struct staged_artifact *a)
{
    return s->asked->player &&
           player_guest_is_played (s->asked->player, a->role == ROLE_DRIVER, a->role == ROLE_HOOK);
}

struct senses *
senses_new (struct session *s, const struct guest_setup *setup)
{
    const struct staged_artifact *a = setup->artifact;
    char *place = a ? recording_place (s, a) : NULL;
    bool plays = a && is_played (s, a);
    if (! place && ! plays)
        return NULL;
    struct senses *x = x_new0 (struct senses);
    x->session = s;
    x->place = place;
    if (plays && place)
        x->then = record_guest (player_record (s->asked->player), place);
    if (plays)
        x->played = played_http_new (s->asked->player, x->then);
    if (place) {
        recording_key (s, place, x->key);
        x->host = (struct guest_senses){ x, wall_ns, monotonic_ns, fill_random, plays };
    }
    if (recording_tape (s))
        x->http = http_tape_new (recording_tape (s), place, s->redactor, a->role == ROLE_DRIVER);
    return x;
}

void
senses_fill (struct senses *x, struct guest_spec *spec)
{
    if (x->place && x->host.ctx)
        spec->senses = &x->host;
    if (x->played) {
        spec->http = &played_http_handler;
        spec->http_ctx = x->played;
    }
}

const struct guest_http_watch *
senses_watch (const struct senses *x)
{
    return x->http ? &http_tape_watch : NULL;
}

struct http_tape *
senses_http (const struct senses *x)
{
    return x->http;
}

void
senses_keep (struct senses *x)
{
    if (! x || ! x->kept.len)
        return;
    json_t *line = json_object ();
    _cleanup_free_ char *hex = x_malloc (2 * x->kept.len + 1);
    hex_encode (x->kept.data, x->kept.len, hex);
    json_set_string (line, "place", x->place);
    json_set_string (line, "clock", hex);
    tape_write (recording_tape (x->session), "guest", line);
    buf_truncate (&x->kept, 0);
}

void
senses_free (struct senses *x)
{
    if (! x)
        return;
    senses_keep (x);
    http_tape_free (x->http);
    played_http_free (x->played);
    buf_free (&x->kept);
    free (x->place);
    free (x);
}

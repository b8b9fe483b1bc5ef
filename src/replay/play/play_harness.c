/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/play/play_harness.h"

#include "base/alloc.h"
#include "replay/play/player_internal.h"

#include <string.h>

static bool
note_missing (struct player *p, uint64_t turn, const char *what, struct mur_error **err)
{
    const struct difference d = {
        .turn = turn, .part = "harness_line", .now = "more", .now_len = strlen ("more")
    };
    pthread_mutex_lock (&p->lock);
    play_note_missing (p, &d, what, err);
    pthread_mutex_unlock (&p->lock);
    return false;
}

const struct rec_harness *
player_harness_run (struct player *p, size_t n, struct mur_error **err)
{
    const struct rec_tape *t = p->record->tape;
    if (t && p->task && n < t->harness_count && t->harness[n].task == p->task->ordinal)
        return &t->harness[n];
    note_missing (p, 0, "no such run of the harness", err);
    return NULL;
}

bool
player_harness_missing (struct player *p, uint64_t turn, const char *what, struct mur_error **err)
{
    return note_missing (p, turn, what, err);
}

bool
player_harness_same (struct player *p, const struct play_harness *now, struct mur_error **err)
{
    _cleanup_buf_ struct buf then = { 0 };
    const char *text = now->now ? now->now : "";
    if (now->then && ! record_fetch (p->record, now->then, &then, err))
        return false;
    if (now->then && now->now && then.len == now->now_len &&
        (! then.len || memcmp (then.data, text, then.len) == 0))
        return true;
    const struct difference d = { .turn = now->turn,
                                  .has_call = now->has_call,
                                  .call = now->call,
                                  .message = now->line,
                                  .part = now->part,
                                  .recorded = ! now->then ? NULL
                                              : then.data ? then.data
                                                          : "",
                                  .recorded_len = then.len,
                                  .now = now->now,
                                  .now_len = now->now_len,
                                  .is_json = now->is_json };
    pthread_mutex_lock (&p->lock);
    bool goes_on = play_note (p, &d, err);
    pthread_mutex_unlock (&p->lock);
    return goes_on;
}

void
player_harness_turn (struct player *p, uint64_t turn, const char *decision)
{
    pthread_mutex_lock (&p->lock);
    struct play_turn *t = play_turn (p, turn);
    free (t->decision);
    t->decision = x_strdup (decision);
    p->counts.answers++;
    pthread_mutex_unlock (&p->lock);
}

void
player_harness_call (struct player *p, uint64_t turn, const char *call)
{
    pthread_mutex_lock (&p->lock);
    strv_push (&play_turn (p, turn)->calls, call);
    p->counts.calls++;
    pthread_mutex_unlock (&p->lock);
}

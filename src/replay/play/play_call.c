/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/play/play_call.h"

#include "base/alloc.h"
#include "base/json.h"
#include "replay/play/player_internal.h"

#include <string.h>

static size_t
number_of (struct player *p, uint64_t turn)
{
    if (p->call_turn != turn) {
        p->call_turn = turn;
        p->call_number = 0;
    }
    return p->call_number;
}

static bool
is_live (const struct player *p, uint64_t turn)
{
    return p->modes.has_from && p->task && p->task->ordinal == p->modes.from_task &&
           turn >= p->modes.from_turn;
}

/* Name first: another tool's input says nothing. */
static bool
compare (struct player *p, const struct play_call *now, const struct rec_call *c,
         struct mur_error **err)
{
    bool is_other = ! str_eq (c->name, now->name);
    if (! is_other && (c->is_skill || str_eq (c->input, now->input)))
        return true;
    const char *recorded = is_other ? c->name : c->input, *text = is_other ? now->name : now->input;
    const struct difference d = { .turn = now->turn,
                                  .has_call = true,
                                  .call = c->number,
                                  .part = is_other ? "call" : "tool_input",
                                  .recorded = recorded,
                                  .recorded_len = strlen (recorded),
                                  .now = text,
                                  .now_len = strlen (text),
                                  .is_json = ! is_other };
    return play_note (p, &d, err);
}

static enum play_answer
call_missing (struct player *p, const struct play_call *now, struct mur_error **err)
{
    const struct rec_task *t = p->task;
    if (t && t->end.canceled_phase &&
        (! t->end.has_canceled_turn || t->end.canceled_turn >= now->turn))
        return PLAY_CANCELED;
    const struct difference d = { .turn = now->turn,
                                  .has_call = true,
                                  .call = p->call_number,
                                  .part = "call",
                                  .now = now->name,
                                  .now_len = strlen (now->name) };
    play_note_missing (p, &d, "no such call here", err);
    return PLAY_STOP;
}

enum play_answer
player_call (struct player *p, const struct play_call *now, const struct rec_call **call,
             struct mur_error **err)
{
    enum play_answer answer = PLAY_ANSWER;
    pthread_mutex_lock (&p->lock);
    size_t number = number_of (p, now->turn);
    *call = p->task ? record_call (p->task, now->turn, number) : NULL;
    if (is_live (p, now->turn) || p->modes.tools == PLAY_LIVE) {
        *call = NULL;
        p->counts.live_calls++;
        answer = PLAY_ASK;
    } else if (! *call) {
        answer = call_missing (p, now, err);
    } else if (! compare (p, now, *call, err)) {
        answer = PLAY_STOP;
    } else if (p->modes.tools == PLAY_RERUN) {
        answer = PLAY_ASK;
    }
    strv_push (&play_turn (p, now->turn)->calls, now->name);
    pthread_mutex_unlock (&p->lock);
    return answer;
}

void
player_output (struct player *p, const struct rec_call *call, struct buf *out)
{
    pthread_mutex_lock (&p->lock);
    p->counts.calls++;
    pthread_mutex_unlock (&p->lock);
    buf_append (out, call->output ? call->output : "", call->output_len);
}

/* What was run again came to something else. */
static bool
compare_result (struct player *p, const struct rec_call *c, const char *text, size_t len,
                struct mur_error **err)
{
    const char *recorded = c->output ? c->output : "";
    if (c->output_len == len && (! len || memcmp (recorded, text, len) == 0))
        return true;
    const struct difference d = { .turn = c->turn,
                                  .has_call = true,
                                  .call = c->number,
                                  .part = "tool_result",
                                  .recorded = recorded,
                                  .recorded_len = c->output_len,
                                  .now = text,
                                  .now_len = len };
    return play_note (p, &d, err);
}

bool
player_call_over (struct player *p, uint64_t turn, const char *text, size_t len,
                  struct mur_error **err)
{
    bool goes_on = true;
    pthread_mutex_lock (&p->lock);
    size_t number = number_of (p, turn);
    const struct rec_call *c = p->task ? record_call (p->task, turn, number) : NULL;
    if (c && ! c->is_skill && ! is_live (p, turn) && p->modes.tools == PLAY_RERUN)
        goes_on = compare_result (p, c, text, len, err);
    p->call_number++;
    pthread_mutex_unlock (&p->lock);
    return goes_on;
}

const struct rec_check *
player_check (const struct player *p, uint64_t runs)
{
    return p->task && runs < p->task->checks.count ? &p->task->checks.items[runs] : NULL;
}

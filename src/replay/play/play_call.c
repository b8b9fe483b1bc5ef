/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/play/play_call.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/json_write.h"
#include "replay/play/differ.h"
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

/* Run again, and what comes of it is compared. */
static bool
runs_again (const struct player *p)
{
    return p->modes.tools == PLAY_RERUN || p->modes.tools == PLAY_LIVE;
}

/* Name first: another tool's input says nothing, and that of a refused one is not on record. */
static bool
compare (struct player *p, const struct play_call *now, const struct rec_call *c,
         struct mur_error **err)
{
    bool is_other = ! str_eq (c->name, now->name);
    if (! is_other && (c->is_skill || c->is_refused || str_eq (c->input, now->input)))
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
    p->turn = now->turn;
    size_t number = number_of (p, now->turn);
    *call = p->task && ! p->has_forked ? record_call (p->task, now->turn, number) : NULL;
    if (p->has_forked) {
        p->counts.live_calls++;
        answer = PLAY_ASK;
    } else if (! *call) {
        answer = call_missing (p, now, err);
    } else if (! compare (p, now, *call, err)) {
        answer = PLAY_STOP;
    } else if ((*call)->is_refused) {
        p->call_number++; /* it is over before it began */
        answer = PLAY_REFUSED;
    } else if (runs_again (p)) {
        p->counts.live_calls += p->modes.tools == PLAY_LIVE;
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

/* What the tool itself said then: a deadline's notice came after it. */
static size_t
length_without_notice (const struct rec_call *c, size_t now_len)
{
    static const char notice[] = "\n[This session ends at ";
    bool has_notice = c->output_len > now_len && now_len &&
                      strncmp (c->output + now_len, notice, strlen (notice)) == 0;
    return has_notice ? now_len : c->output_len;
}

/* What was run again came to something else. */
static bool
compare_result (struct player *p, const struct rec_call *c, const char *text, size_t len,
                struct mur_error **err)
{
    const char *recorded = c->output ? c->output : "";
    size_t recorded_len = length_without_notice (c, len);
    if (recorded_len == len && (! len || memcmp (recorded, text, len) == 0))
        return true;
    const struct difference d = { .turn = c->turn,
                                  .has_call = true,
                                  .call = c->number,
                                  .part = "tool_result",
                                  .recorded = recorded,
                                  .recorded_len = recorded_len,
                                  .now = text,
                                  .now_len = len };
    return play_note (p, &d, err);
}

/* Commands see a world that no record holds: what differs is told, and is no verdict. */
static bool
compare_command (struct player *p, const struct rec_call *c, const char *text, size_t len)
{
    const char *recorded = c->output ? c->output : "";
    if (c->output_len == len && (! len || memcmp (recorded, text, len) == 0))
        return true;
    size_t at = differ_offset (recorded, c->output_len, text, len);
    _cleanup_free_ char *before = differ_excerpt (recorded, c->output_len, at);
    _cleanup_free_ char *after = differ_excerpt (text, len, at);
    _cleanup_buf_ struct buf line = { 0 };
    buf_printf (&line, "task %zu, turn %llu, call %zu (%s): ", p->task->ordinal,
                (unsigned long long)c->turn, c->number, c->name);
    json_append_string (&line, before, strlen (before));
    buf_puts (&line, " -> ");
    json_append_string (&line, after, strlen (after));
    strv_push (&p->unpromised, line.data);
    return true;
}

bool
player_call_over (struct player *p, uint64_t turn, const struct play_result *now,
                  const struct rec_call **then, struct mur_error **err)
{
    bool goes_on = true;
    pthread_mutex_lock (&p->lock);
    size_t number = number_of (p, turn);
    const struct rec_call *c =
        p->task && ! p->has_forked ? record_call (p->task, turn, number) : NULL;
    bool is_compared = c && now->has_run && ! c->is_skill && runs_again (p);
    if (is_compared)
        goes_on = now->is_command ? compare_command (p, c, now->text, now->len)
                                  : compare_result (p, c, now->text, now->len, err);
    *then = is_compared ? c : NULL;
    p->call_number++;
    pthread_mutex_unlock (&p->lock);
    return goes_on;
}

const struct rec_check *
player_check (const struct player *p, uint64_t runs)
{
    return p->task && runs < p->task->checks.count ? &p->task->checks.items[runs] : NULL;
}

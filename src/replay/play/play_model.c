/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/play/play_model.h"

#include "base/alloc.h"
#include "base/json.h"
#include "replay/play/player_internal.h"

#include <string.h>

static struct asked *
asked_of (struct player *p, const char *origin, uint64_t turn)
{
    for (size_t i = 0; i < p->asked_len; i++)
        if (p->asked[i].turn == turn && str_eq (p->asked[i].origin, origin))
            return &p->asked[i];
    x_grow (p->asked, p->asked_len, p->asked_cap);
    p->asked[p->asked_len] =
        (struct asked){ .origin = origin ? x_strdup (origin) : NULL, .turn = turn };
    return &p->asked[p->asked_len++];
}

static void
forget_asked (struct player *p)
{
    for (size_t i = 0; i < p->asked_len; i++)
        free (p->asked[i].origin);
    p->asked_len = 0;
}

static const struct rec_refusal *
refusal_at (const struct rec_task *t, const char *origin, uint64_t turn)
{
    for (size_t i = 0; i < t->refusals.count; i++)
        if (t->refusals.items[i].turn == turn && str_eq (t->refusals.items[i].origin, origin))
            return &t->refusals.items[i];
    return NULL;
}

/* True where a fork or a bounded replay leaves the record. */
static bool
is_past (const struct player *p, bool has_bound, uint64_t bound, uint64_t turn)
{
    return has_bound && p->task && p->task->ordinal == p->modes.from_task && turn >= bound;
}

static enum play_answer
stop_at_bound (struct player *p, struct mur_error **err)
{
    p->is_stopped = true;
    mur_fail (err, E_RPL_003, "the replay ends before turn %llu, as --until says",
              (unsigned long long)p->modes.until_turn);
    return PLAY_STOP;
}

/* There is no line at this place: how did the task end there? */
static enum play_answer
ask_ending (struct player *p, const struct play_request *now, const struct rec_refusal **refusal,
            struct mur_error **err)
{
    const struct rec_task *t = p->task;
    *refusal = t ? refusal_at (t, now->origin, now->turn) : NULL;
    if (*refusal)
        return PLAY_REFUSED;
    if (t && t->end.canceled_phase &&
        (! t->end.has_canceled_turn || t->end.canceled_turn == now->turn))
        return PLAY_CANCELED;
    const struct difference d = {
        .turn = now->turn, .part = "request", .now = "a request", .now_len = 9
    };
    play_note_missing (p, &d, "no answer of the model here", err);
    return PLAY_STOP;
}

/* What a hook asks is answered as it was: only the agent's own decisions are looked at. */
static enum play_answer
ask_once_more (struct player *p, const struct play_request *now, struct play_turn *turn)
{
    if (now->origin) {
        p->counts.answers++;
        return PLAY_ANSWER;
    }
    turn->source = PLAY_LIVE;
    p->counts.live_calls++;
    return PLAY_COMPARE;
}

static enum play_answer
ask (struct player *p, const struct play_request *now, const struct rec_model **model,
     const struct rec_refusal **refusal, struct mur_error **err)
{
    struct asked *asked = asked_of (p, now->origin, now->turn);
    p->turn = now->turn;
    if (is_past (p, p->modes.has_until, p->modes.until_turn, now->turn))
        return stop_at_bound (p, err);
    if (p->modes.model == PLAY_LIVE || p->has_forked) {
        struct play_turn *turn = play_turn (p, now->turn);
        turn->source = PLAY_LIVE;
        p->counts.live_calls++;
        return PLAY_ASK;
    }
    const struct rec_model *m =
        p->task ? record_model (p->task, now->origin, now->turn, asked->count) : NULL;
    if (! m)
        return ask_ending (p, now, refusal, err);
    asked->count++;
    struct play_turn *turn = play_turn (p, now->turn);
    if (! now->origin && ! turn->decision)
        turn->decision = x_strdup (m->decision ? m->decision : "");
    *model = m;
    if (p->modes.each_turn && ! m->error_code)
        return ask_once_more (p, now, turn);
    if (p->modes.model == PLAY_RECORDED && ! p->modes.has_from && ! play_compare (p, now, m, err))
        return PLAY_STOP;
    p->counts.answers++;
    return PLAY_ANSWER;
}

/* "tool_call files {...}; ...", or how it ended without one: what was decided, whatever was said.
 * Owned. */
static char *
decision_of (const char *text, size_t len)
{
    _cleanup_json_ json_t *body = json_loadb (text, len, 0, NULL);
    const json_t *block;
    size_t i;
    struct buf out = { 0 };
    json_array_foreach (json_object_get (body, "content"), i, block)
    {
        if (! str_eq (json_get_string (block, "type"), "tool_call"))
            continue;
        const char *name = json_get_string (block, "name");
        const json_t *input = json_object_get (block, "input");
        _cleanup_free_ char *arguments = json_text (input ? input : json_null (), JSON_TEXT_SORTED);
        buf_printf (&out, "%s%s %s", out.len ? "; " : "", name ? name : "", arguments);
    }
    const char *stop = json_get_string (body, "stop_reason");
    if (! out.len)
        buf_puts (&out, stop ? stop : "no answer");
    return buf_steal (&out);
}

void
player_decided (struct player *p, const struct rec_model *m, const char *text, size_t len)
{
    _cleanup_buf_ struct buf body = { 0 };
    if (! record_body (p->record, m->response_sha, &body, NULL))
        return;
    pthread_mutex_lock (&p->lock);
    struct play_turn *turn = play_turn (p, m->turn);
    char *then = decision_of (body.data ? body.data : "", body.len);
    free (turn->decision);
    free (turn->now);
    turn->decision = then;
    turn->now = decision_of (text ? text : "", len);
    turn->is_same = strcmp (turn->now, then) == 0;
    pthread_mutex_unlock (&p->lock);
}

bool
player_forks (struct player *p, uint64_t turn)
{
    pthread_mutex_lock (&p->lock);
    bool forks = ! p->has_forked && is_past (p, p->modes.has_from, p->modes.from_turn, turn);
    p->has_forked = p->has_forked || forks;
    pthread_mutex_unlock (&p->lock);
    return forks;
}

enum play_answer
player_ask (struct player *p, const struct play_request *now, const struct rec_model **model,
            const struct rec_refusal **refusal, struct mur_error **err)
{
    pthread_mutex_lock (&p->lock);
    if (p->asked_len && p->task && now->turn == 0 && ! now->origin)
        forget_asked (p); /* another task, or its next attempt: turns count on */
    enum play_answer answer = ask (p, now, model, refusal, err);
    pthread_mutex_unlock (&p->lock);
    return answer;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/harness_play.h"

#include "base/json.h"
#include "replay/play/play_harness.h"
#include "replay/play/play_task.h"
#include "session/calls/gate.h"
#include "session/harness/bridge_call.h"
#include "session/harness/harness_events.h"
#include "session/harness/harness_lines.h"
#include "session/harness/harness_tape.h"
#include "session/state/session.h"

#include <string.h>

static struct player *
player_of (const struct harness_run *run)
{
    return run->session->asked->player;
}

/* --- calls --- */

/* Gates stand before it again; what came of it behind them is served. */
static bool
play_call (struct harness_run *run, const struct rec_harness_item *item, size_t number,
           struct mur_error **err)
{
    struct session *s = run->session;
    struct running_task *t = run->task;
    _cleanup_buf_ struct buf text = { 0 };
    if (! record_fetch (player_record (player_of (run)), &item->text, &text, err))
        return false;
    _cleanup_json_ json_t *input = json_loadb (text.data ? text.data : "", text.len, 0, NULL);
    const struct call call = { .turn = t->counts.turns,
                               .id = "",
                               .name = item->name,
                               .input = input,
                               .input_text = text.data ? text.data : "" };
    _cleanup_outcome_ struct call_outcome o = { 0 };
    bool is_free = gate_has_required (s, &call, &o) && gate_may_run (s, t, &call, &o);
    mur_error_freep (&t->fatal);
    t->fatal = NULL;
    player_harness_call (player_of (run), call.turn, item->name);
    bridge_call_played (s, item, &o, is_free);
    if (is_free && ! item->is_refused)
        return true;
    const struct play_harness now = { .turn = call.turn,
                                      .part = "tool_result",
                                      .line = run->log.lines,
                                      .has_call = true,
                                      .call = number,
                                      .then = &item->made,
                                      .now = is_free       ? NULL
                                             : o.text.data ? o.text.data
                                                           : "",
                                      .now_len = o.text.len };
    return player_harness_same (player_of (run), &now, err);
}

static bool
play_line (struct harness_run *run, const struct rec_harness_item *item, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    if (! record_fetch (player_record (player_of (run)), &item->text, &text, err))
        return false;
    const char *line = text.data ? text.data : "";
    harness_lines_take (run, &line, &text.len, 1);
    return true;
}

static void
play_items (struct harness_run *run)
{
    const struct rec_harness *then = run->log.then;
    struct mur_error *err = NULL;
    size_t calls = 0;
    for (size_t i = 0; i < then->count && run->end.cause == HARNESS_RUNS; i++) {
        const struct rec_harness_item *item = &then->items[i];
        bool goes_on = true;
        if (item->what == REC_HARNESS_LINE)
            goes_on = play_line (run, item, &err);
        else if (item->what == REC_HARNESS_CALL)
            goes_on = play_call (run, item, calls++, &err);
        if (! goes_on)
            harness_tape_stop (run, err);
    }
}

/* --- the end --- */

/* As waitpid tells it. */
static void
set_status (struct harness_run *run)
{
    const struct rec_harness *then = run->log.then;
    struct buf errors = { 0 };
    run->child.status = then->end.has_code ? (then->end.code & 0xff) << 8 : then->end.signal & 0x7f;
    run->child.was_killed = then->end.was_killed;
    if (record_fetch (player_record (player_of (run)), &then->end.errors, &errors, NULL) &&
        errors.len)
        buf_append (&run->child.errors, errors.data, errors.len);
    buf_free (&errors);
}

static void
end_inactive (struct harness_run *run)
{
    harness_fail_inactive (run, harness_inactivity_ms ());
}

static void
end_canceled (struct harness_run *run)
{
    run->end.cause = HARNESS_CANCELED;
}

/* Its provider's count is not at hand: the ceiling is the one that was reached then. */
static void
end_spent (struct harness_run *run)
{
    const struct rec_task *t = player_task (player_of (run));
    const struct rec_refusal *r = t && t->refusals.count ? &t->refusals.items[0] : NULL;
    run->end.cause = HARNESS_SPEND_CEILING;
    if (r)
        run->end.refusal = (struct spend_refusal){ .ceiling = r->ceiling, .used = r->used };
    harness_spend_line (run);
}

static void
end_output (struct harness_run *run)
{
    run->end.cause = HARNESS_EOF;
}

/* Ends that came from outside, where they came. */
static void
play_end (struct harness_run *run)
{
    static const struct {
        const char *cause;
        void (*end) (struct harness_run *run);
    } causes[] = { { "inactivity", end_inactive },
                   { "canceled", end_canceled },
                   { "spend_ceiling", end_spent },
                   { "key_refused", harness_fail_key },
                   { "driver_error", harness_fail_line } };
    for (size_t i = 0; i < ARRAY_LEN (causes); i++)
        if (str_eq (causes[i].cause, run->log.then->end.cause)) {
            causes[i].end (run);
            return;
        }
    end_output (run);
}

void
harness_play (struct harness_run *run)
{
    struct mur_error *err = NULL;
    play_items (run);
    set_status (run);
    bool has_canceled = run->log.then->end.is_set && str_eq (run->log.then->end.cause, "canceled");
    if (run->end.cause == HARNESS_RUNS && ! run->log.then->end.is_set) {
        player_harness_missing (player_of (run), run->task->counts.turns,
                                "no further line of the harness", &err);
        harness_tape_stop (run, err);
    } else if (run->end.cause == HARNESS_RUNS ||
               (has_canceled && run->end.cause == HARNESS_TERMINAL)) {
        play_end (run);
    }
}

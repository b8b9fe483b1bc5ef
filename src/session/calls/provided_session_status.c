/* SPDX-License-Identifier: Apache-2.0
 *
 * session-status: where the session stands, in numbers that agree with the trace written so far
 * (docs/spec/session.md 8.3).
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "door/tasks/tasks.h"
#include "session/calls/dispatch.h"
#include "session/state/deadline.h"
#include "session/state/provided.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>

/* A number, or the word for "there is no limit" or "not known". */
static void
append_number (struct buf *b, const char *key, bool is_set, uint64_t value, const char *word)
{
    if (is_set)
        buf_printf (b, "\"%s\":%llu", key, (unsigned long long)value);
    else
        buf_printf (b, "\"%s\":\"%s\"", key, word);
}

static void
append_time (const struct session *s, const struct running_task *t, struct buf *b)
{
    uint64_t now_ms = clock_monotonic_ms ();
    buf_printf (b, "\"time\":{\"elapsed_secs\":%llu,\"task_elapsed_secs\":%llu,\"deadline\":",
                (unsigned long long)((now_ms - s->tally.launched_ms) / 1000),
                (unsigned long long)((now_ms - t->started_ms) / 1000));
    if (s->deadline->is_set)
        buf_printf (b, "{\"at\":\"%s\",\"left_secs\":%llu}}", s->deadline->at_text,
                    (unsigned long long)(deadline_left_ms (s->deadline) / 1000));
    else
        buf_puts (b, "\"none\"}");
}

static void
append_keep_working (const struct session *s, const struct running_task *t, struct buf *b)
{
    const struct keep_working *k = s->policy->lifecycle.keep_working;
    if (k)
        buf_printf (b, ",\"keep_working\":{\"used\":%llu,\"left\":%llu}",
                    (unsigned long long)t->counts.kept_working,
                    (unsigned long long)(k->limit.value - t->counts.kept_working));
    else
        buf_puts (b, ",\"keep_working\":\"none\"");
    const struct done_check *d = s->policy->lifecycle.done_check;
    if (d)
        buf_printf (b, ",\"done_check\":{\"used\":%llu,\"left\":%llu}",
                    (unsigned long long)t->onward.done_check.reopens,
                    (unsigned long long)(d->limit.value - t->onward.done_check.reopens));
    else
        buf_puts (b, ",\"done_check\":\"none\"");
}

static void
append_context (const struct session *s, const struct running_task *t, struct buf *b)
{
    if (s->rooms.harness) { /* what its context holds is the harness's own matter */
        buf_puts (b, ",\"context\":\"unknown\"");
        return;
    }
    const struct call_choice *c = &t->choice;
    buf_puts (b, ",\"context\":{");
    append_number (b, "used_tokens", t->occupancy.is_known, t->occupancy.tokens, "unknown");
    buf_putc (b, ',');
    append_number (b, "window_tokens", c->driver->window != 0, c->driver->window, "none");
    buf_putc (b, ',');
    append_number (b, "budget_tokens", c->input_budget != 0, c->input_budget, "none");
    buf_printf (b, ",\"budget_basis\":\"%s\",\"measured_by\":\"%s\"}", c->budget_basis,
                t->occupancy.is_known && t->occupancy.is_actual ? "actual" : "estimate");
}

static void
append_spend (const struct session *s, struct buf *b)
{
    struct spend_totals spend;
    spend_totals (s->spend, &spend);
    const struct usage_totals *u = &s->tally.usage;
    buf_puts (b, ",\"tokens\":{");
    append_number (b, "input", u->input.is_known, u->input.value, "unknown");
    buf_putc (b, ',');
    append_number (b, "output", u->output.is_known, u->output.value, "unknown");
    buf_putc (b, ',');
    append_number (b, "cached", u->cached.is_known, u->cached.value, "unknown");
    buf_putc (b, ',');
    append_number (b, "cache_write", u->cache_write.is_known, u->cache_write.value, "unknown");
    buf_printf (b, ",\"unreported_calls\":%llu}", (unsigned long long)u->unreported_calls);
    buf_printf (b, ",\"spend\":{\"tokens\":%llu,", (unsigned long long)spend.used);
    append_number (b, "ceiling", spend.ceiling != 0, spend.ceiling, "none");
    if (spend.machine_ceiling)
        buf_printf (b, ",\"machine\":{\"tokens_today\":%llu,\"ceiling\":%llu}}",
                    (unsigned long long)spend.machine_used,
                    (unsigned long long)spend.machine_ceiling);
    else
        buf_puts (b, ",\"machine\":\"none\"}");
}

static void
session_status_call (struct session *s, struct running_task *t, const json_t *input,
                     struct call_outcome *out)
{
    (void)input;
    const struct opt_u64 *cap = &s->manifest->inference->max_turns;
    _cleanup_buf_ struct buf b = { 0 };
    buf_putc (&b, '{');
    append_time (s, t, &b);
    buf_printf (&b, ",\"turns\":{\"used\":%llu,", (unsigned long long)t->counts.turns);
    append_number (&b, "cap", cap->is_set, cap->value, "none");
    buf_putc (&b, '}');
    append_keep_working (s, t, &b);
    append_context (s, t, &b);
    append_spend (s, &b);
    buf_putc (&b, '}');
    TRACE (s->trace, NULL, session_status, .task_id = t->task->id, .status = b.data);
    outcome_set_result (out, "session-status", TOOL_PASSED, b.data, b.len);
}

static bool
session_status_exists (const struct session *s)
{
    return s->manifest->inference != NULL;
}

const struct provided_tool provided_session_status = {
    .name = "session-status",
    .description =
        "Tells where this session stands: time used and left, turns, tokens, spend, and how full the "
        "context is. Takes no input.",
    .parameters = "{\"properties\":{},\"type\":\"object\"}",
    .missing = "inference",
    .exists = session_status_exists,
    .call = session_status_call,
};

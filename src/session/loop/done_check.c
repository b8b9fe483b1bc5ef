/* SPDX-License-Identifier: Apache-2.0 */
#include "session/loop/done_check.h"

#include "base/alloc.h"
#include "door/tasks/streams.h"
#include "door/tasks/tasks.h"
#include "replay/play/play_call.h"
#include "replay/play/play_task.h"
#include "sandbox/run/command.h"
#include "sandbox/run/command_log.h"
#include "sandbox/run/commands.h"
#include "session/commands/shell.h"
#include "session/conversation/fence.h"
#include "session/loop/attempt.h"
#include "session/state/session.h"
#include "session/task/attempt_end.h"
#include "session/task/restart.h"

#include <string.h>

enum outcome {
    CHECK_PASSED,
    CHECK_FAILED,
    CHECK_TIMED_OUT,
    CHECK_STOPPED, /* by a cancel or the deadline */
    CHECK_NOT_STARTED,
};

static const char *const outcome_names[] = { "passed", "failed", "timed_out", "stopped",
                                             "not_started" };

struct check {
    const struct done_check *declared;
    enum outcome outcome;
    struct command *command;
    struct command_result result;
    struct mur_error *error; /* why it was not started */
    bool is_cut;
    struct buf told; /* by the record a replay runs: what the model was told of it */
};

static void
check_clear (struct check *c)
{
    command_unref (c->command);
    mur_error_freep (&c->error);
    buf_free (&c->told);
}

/* --- running --- */

static void
run (struct session *s, struct running_task *t, struct check *c)
{
    c->command = shell_start_line (s, c->declared->command, &c->error);
    if (! c->command) {
        c->outcome = CHECK_NOT_STARTED;
        return;
    }
    int64_t timeout_ms = c->declared->timeout_secs.value < INT64_MAX / 1000
                             ? (int64_t)c->declared->timeout_secs.value * 1000
                             : -1;
    bool was_mine = loop_lock_pause (&s->loop_lock);
    bool has_ended = command_wait (c->command, timeout_ms, t->cancel);
    if (! has_ended) {
        c->outcome = cancel_is_raised (t->cancel) ? CHECK_STOPPED : CHECK_TIMED_OUT;
        command_kill (c->command);
        command_wait (c->command, -1, NULL);
    }
    loop_lock_resume (&s->loop_lock, was_mine);
    c->result = command_look (c->command);
    if (has_ended)
        c->outcome = c->result.exit_code == 0 ? CHECK_PASSED : CHECK_FAILED;
    c->is_cut = c->result.out.total_bytes > COMMAND_KEPT_BYTES ||
                c->result.err.total_bytes > COMMAND_KEPT_BYTES;
}

/* What the check came to when the session that runs again ran first. False: it is to be run. */
static bool
play (struct session *s, const struct running_task *t, struct check *c)
{
    struct player *p = s->asked->player;
    if (! p)
        return false;
    const struct rec_check *then = player_check (p, t->onward.done_check.runs);
    c->outcome = CHECK_STOPPED;
    for (size_t i = 0; then && i < ARRAY_LEN (outcome_names); i++)
        if (str_eq (outcome_names[i], then->outcome))
            c->outcome = (enum outcome)i;
    c->result.exit_code = then ? then->exit_code : 0;
    player_next_user_text (p, t->counts.turns, t->list.len, &c->told);
    return true;
}

/* --- what the model reads --- */

static void
append_report (const struct check *c, struct buf *b)
{
    buf_printf (b, "$ %s\n", c->declared->command);
    if (c->outcome == CHECK_NOT_STARTED) {
        buf_printf (b, "Did not start: %s", c->error->message);
        return;
    }
    if (c->outcome == CHECK_TIMED_OUT)
        buf_puts (b, "Exit code: none");
    else
        buf_printf (b, "Exit code: %d", c->result.exit_code);
    command_append_stream (b, "Stdout", &c->result.out);
    command_append_stream (b, "Stderr", &c->result.err);
    _cleanup_free_ char *log = c->is_cut ? command_write_log (c->command, NULL) : NULL;
    if (log)
        buf_printf (b, "\nThe output was cut; all of it is in $MURMUR_RECORDS_DIR/%s", log);
}

static char *
feedback (const struct check *c, const struct fence_word *word)
{
    _cleanup_buf_ struct buf report = { 0 };
    struct buf text = { 0 };
    append_report (c, &report);
    buf_puts (&text, "Done check\n");
    fence_append (&text, word, "done-check", report.data, report.len);
    if (c->result.resource_limit)
        buf_printf (&text, "\nResource limit: capabilities.resources.%s", c->result.resource_limit);
    if (c->outcome == CHECK_TIMED_OUT)
        buf_printf (&text,
                    "\nThe check was stopped after lifecycle.done_check.timeout_secs (%llu s).",
                    (unsigned long long)c->declared->timeout_secs.value);
    return buf_steal (&text);
}

/* --- deciding --- */

static bool
may_reopen (const struct session *s, struct running_task *t, const struct check *c)
{
    struct done_check_state *d = &t->onward.done_check;
    d->is_met = c->outcome == CHECK_PASSED;
    d->stopped_by = NULL;
    if (d->is_met || c->outcome == CHECK_STOPPED)
        return false;
    if (d->reopens >= c->declared->limit.value)
        d->stopped_by = "limit";
    else if (! attempt_turns_left (s, t))
        d->stopped_by = "max_turns";
    return ! d->stopped_by;
}

static uint64_t
kept_bytes (const struct command_stream *stream)
{
    return stream->total_bytes < COMMAND_KEPT_BYTES ? stream->total_bytes : COMMAND_KEPT_BYTES;
}

static void
record (struct session *s, struct running_task *t, const struct check *c, bool reopens)
{
    const struct command_result *r = &c->result;
    bool has_exited = c->outcome == CHECK_PASSED || c->outcome == CHECK_FAILED;
    uint64_t left = attempt_turns_left (s, t);
    TRACE (s->trace, NULL, done_check, .task_id = t->task->id, .number = t->onward.done_check.runs,
           .command = c->declared->command, .outcome = outcome_names[c->outcome],
           .exit_code = { has_exited, r->exit_code }, .duration_ms = r->duration_ms,
           .stdout_bytes = kept_bytes (&r->out), .stderr_bytes = kept_bytes (&r->err),
           .truncated = c->is_cut, .resource_limit = r->resource_limit, .reopened = reopens,
           .reopens_left = c->declared->limit.value - t->onward.done_check.reopens,
           .turns_remaining = { left != UINT64_MAX, (int64_t)left });
}

bool
done_check_reopens (struct session *s, struct running_task *t)
{
    _cleanup_ (check_clear) struct check c = { .declared = s->policy->lifecycle.done_check };
    if (! c.declared || t->end.ending != ATTEMPT_OK || ! attempt_let_answer_stand (s, t))
        return false;
    if (! play (s, t, &c))
        run (s, t, &c);
    t->onward.done_check.runs++;
    bool reopens = may_reopen (s, t, &c);
    if (reopens) {
        t->onward.done_check.reopens++;
        t->onward.continued_stopped_by = &t->onward.done_check.stopped_by;
    }
    record (s, t, &c, reopens);
    if (c.outcome == CHECK_STOPPED) {
        t->onward.continued_stopped_by = &t->onward.done_check.stopped_by;
        attempt_cancel (s, t, "done_check", TRACE_NO_NUM);
    } else if (c.error && c.error->code == E_RUN_014) {
        attempt_error (s, t, steal_ptr (&c.error));
        return false;
    }
    if (! reopens)
        return false;
    _cleanup_free_ char *text =
        c.told.data ? x_strdup (c.told.data) : feedback (&c, &s->fence_word);
    streams_working (registry_streams (s->registry), t->task, "reopened by the done check", 0);
    if (! attempt_can_continue (s, t))
        return restart_with (s, t, RESTART_CHECK, text);
    attempt_continue_with (s, t, text, NULL);
    return true;
}

char *
done_check_json (const struct session *s, const struct running_task *t)
{
    const struct done_check *declared = s->policy->lifecycle.done_check;
    const struct done_check_state *d = &t->onward.done_check;
    if (! declared)
        return NULL;
    const char *met = ! d->runs ? "null" : d->is_met ? "true" : "false";
    const char *stop = d->stopped_by;
    return x_asprintf ("{\"runs\":%llu,\"reopens\":%llu,\"limit\":%llu,\"met\":%s,"
                       "\"stopped_by\":%s%s%s}",
                       (unsigned long long)d->runs, (unsigned long long)d->reopens,
                       (unsigned long long)declared->limit.value, met, stop ? "\"" : "",
                       stop ? stop : "null", stop ? "\"" : "");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/launch_parts.h"

#include "base/clock.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "door/tasks/intake.h"
#include "door/tasks/tasks.h"
#include "session/stage/staged.h"
#include "session/state/session.h"
#include "trace/lines/writer.h"

void
launch_open_log (struct session *s)
{
    if (! fs_make_dirs (s->places.records, "logs", 0777, false, NULL))
        return;
    s->places.bootstrap_fd = fs_open_append (s->places.records, "logs/bootstrap.log", 0666, NULL);
    if (s->places.bootstrap_fd >= 0)
        diag_set_fallback (s->places.bootstrap_fd);
}

/* Before the sender hears of it: a task that was accepted is on record, whatever comes. */
static bool
record_received (void *ctx, const struct task *task)
{
    struct session *s = ctx;
    return TRACE (s->trace, NULL, a2a_task_received, .task_id = task->id,
                  .context_id = task->context_id, .message_id = task->message_id,
                  .traceparent_from_caller = task->traceparent,
                  .caller_member = task->caller_member, .principal = task->owner);
}

static void
record_reply (void *ctx, const char *task_id, const char *message_id, const char *traceparent)
{
    struct session *s = ctx;
    TRACE (s->trace, NULL, task_resumed, .task_id = task_id, .message_id = message_id,
           .traceparent_from_caller = traceparent);
}

void
launch_make_registry (struct session *s)
{
    struct registry_spec spec = {
        .acceptance = (enum task_acceptance)s->policy->lifecycle.task_acceptance.value,
        .queue_depth = (unsigned)s->policy->lifecycle.queue_depth.value,
        .is_public = ! s->rooms.staged->auth,
        .is_threaded = s->policy->lifecycle.conversation.value == CONVERSATION_THREADED,
        .record = record_received,
        .record_reply = record_reply,
        .record_ctx = s,
        .has_records = true,
        .records_fd = fs_root_fd (s->places.records),
    };
    s->registry = registry_new (&spec);
}

void
launch_refuse_queued (struct session *s)
{
    bool was_stopped = termination_cause (s) != NOT_TERMINATED;
    const struct task **tasks = NULL;
    size_t count = registry_close (s->registry, was_stopped, &tasks);
    for (size_t i = 0; i < count; i++)
        TRACE (s->trace, NULL, task_rejected, .task_id = tasks[i]->id,
               .context_id = tasks[i]->context_id, .source = tasks[i]->source,
               .cause = was_stopped ? "session_stopped" : "session_ended",
               .reason = was_stopped ? "the session was stopped before this task started"
                                     : "the session ended before this task started");
    free (tasks);
    /* What was cancelled while it was queued is recorded once nothing runs any more. */
    const struct task *task;
    while (registry_next (s->registry, 0, &task) == REGISTRY_CANCELED_QUEUED)
        loop_record_canceled (s, task);
}

static void
end_line (struct session *s, enum session_ending ending)
{
    const struct session_totals *t = &s->tally.totals;
    TRACE (s->trace, NULL, session_end, .total_turns = t->turns,
           .total_input_tokens = t->input_tokens, .total_output_tokens = t->output_tokens,
           .total_tool_calls = t->tool_calls, .total_shell_calls = t->shell_calls,
           .duration_ms = clock_monotonic_ms () - s->tally.launched_ms,
           .exit_status = session_ending_name (ending));
}

/* A session whose records are not whole did not end well, whatever it did. */
static void
take_losses (struct launch_outcome *outcome)
{
    const char *first;
    if (outcome->error || ! diag_lost_count (&first))
        return;
    outcome->ending = ENDING_FAILED;
    mur_fail (&outcome->error, E_IO_003, "not all this session did is on record: %s", first);
    mur_hint (&outcome->error, "make room or writable what the warning names, then run it again");
}

void
launch_write_end (struct session *s, struct launch_outcome *outcome)
{
    take_losses (outcome);
    if (s->trace)
        end_line (s, outcome->ending);
    take_losses (outcome);
}

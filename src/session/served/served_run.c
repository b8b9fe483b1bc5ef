/* SPDX-License-Identifier: Apache-2.0
 *
 * A served call on its way through the gates: as a model's, in one task all of them belong to.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "session/loop/tool_calls.h"
#include "session/served/served_internal.h"
#include "session/state/running_task.h"

/* The task all served calls belong to begins with the first of them. */
static void
begin (struct served *v)
{
    static char *const none[] = { NULL };
    if (v->has_begun)
        return;
    v->has_begun = true;
    v->started_ms = clock_monotonic_ms ();
    TRACE (v->s->trace, NULL, task_start, .task_id = v->task.id, .context_id = v->task.context_id,
           .source = "mcp", .origin = task_origin_name (v->task.origin), .trust = "untrusted",
           .lane = "peer", .part_kinds = none, .reference_task_ids = none);
}

static void
raise_call (void *ctx)
{
    cancel_raise (ctx);
}

const char *
served_traceparent (const struct mcp_call *call)
{
    return json_get_string (json_object_get (call->request->message.params, "_meta"),
                            "traceparent");
}

void
served_call_run (struct served *v, const struct served_call *c, struct call_outcome *o)
{
    struct session *s = v->s;
    _cleanup_free_ char *input_text = json_text (c->arguments, JSON_TEXT_SORTED);
    _cleanup_free_ char *id = json_text (c->id, JSON_TEXT_SORTED);
    struct running_task t = { .task = &v->task,
                              .cancel = c->cancel,
                              .client = c->client,
                              .started_ms = clock_monotonic_ms () };
    uint64_t stop = cancel_add (v->task.cancel, raise_call, c->cancel);
    loop_lock_take (&s->loop_lock);
    begin (v);
    t.counts.turns = ++v->calls;
    const struct call call = { .turn = t.counts.turns,
                               .id = id,
                               .name = c->name,
                               .input = c->arguments,
                               .input_text = input_text,
                               .is_served = true,
                               .by = "client",
                               .traceparent = c->traceparent,
                               .listener = c->listener };
    tool_call_run (s, &t, &call, o);
    loop_lock_release (&s->loop_lock);
    cancel_remove (v->task.cancel, stop);
    /* A served call cannot end the session: what could not be recorded did not run. */
    mur_error_freep (&t.fatal);
}

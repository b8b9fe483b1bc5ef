/* SPDX-License-Identifier: Apache-2.0
 *
 * delegate-task as the model calls it (docs/spec/spawn.md A2).
 *
 * Always true: what the model is told of the tool depends on spawn.allow alone, so it is the same
 * bytes on every launch.
 */
#include "base/alloc.h"
#include "session/handoff/delegate.h"
#include "session/state/loop_lock.h"
#include "session/state/outcome.h"
#include "session/state/provided.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>

#define NAME "delegate-task"

static const char delegate_description[] =
    "Hands a task to another capsule, which works on it beside you. Returns as soon as that "
    "capsule "
    "holds its task and never returns its answer: the result is a JSON object with capsule, "
    "child_workdir, delegation_id, session_id, status (\"started\") and version; when it could not "
    "be started, status is \"failed\" and output says why. No tool reports on a running capsule. "
    "Delegate all you mean to, then end your turn: your task waits for every outcome and goes on "
    "with them in one message. An outcome has status ok, error, crashed or terminated and the "
    "capsule's answer; an answer above 64 KiB (65536 bytes) is cut there and the whole of it lies "
    "in delegations/<delegation_id>.txt of the runtime directory. A capsule that is not done by "
    "the "
    "delegation deadline is ended, and its status is terminated. When your own task ends, the "
    "capsules it started end with it.";

static bool
delegate_is_offered (const struct session *s)
{
    return s->manifest->inference && s->policy->spawn_allow.len > 0;
}

static const char *
delegate_parameters (const struct session *s)
{
    _cleanup_json_ json_t *names = json_array (), *o = NULL;
    for (size_t i = 0; i < s->policy->spawn_allow.len; i++) {
        const char *name = s->policy->spawn_allow.items[i], *slash = strrchr (name, '/');
        json_t *bare = json_string (slash ? slash + 1 : name);
        bool is_there = false;
        for (size_t j = 0; j < json_array_size (names); j++)
            is_there |= json_equal (json_array_get (names, j), bare);
        if (is_there)
            json_decref (bare);
        else
            json_array_append_new (names, bare);
    }
    o = json_pack ("{s:s, s:{s:{s:s, s:s, s:O}, s:{s:s, s:s}, s:{s:s, s:s}}, s:[s,s,s]}", "type",
                   "object", "properties", "capsule", "type", "string", "description",
                   "The capsule to delegate to.", "enum", names, "version", "type", "string",
                   "description", "Its exact version, such as 0.1.0; there is no \"latest\".",
                   "task", "type", "string", "description",
                   "What it is to do, complete in itself: it sees nothing of this conversation.",
                   "required", "capsule", "version", "task");
    _cleanup_free_ char *text = json_text (o, JSON_TEXT_SORTED);
    return arena_strdup (s->arena, text);
}

static void
delegate_call (struct session *s, struct running_task *task, const json_t *input,
               struct call_outcome *out)
{
    struct delegate_ask ask = { 0 };
    if (! (ask.capsule = outcome_need_text (NAME, input, "capsule", out)) ||
        ! (ask.version = outcome_need_text (NAME, input, "version", out)) ||
        ! (ask.task = outcome_need_text (NAME, input, "task", out)))
        return;
    if (! task) {
        outcome_set_error (out, NAME " was called while no task is running");
        return;
    }
    ask.running = task->task;
    ask.cancel = task->cancel;
    _cleanup_delegate_result_ struct delegate_result r;
    loop_lock_release (&s->loop_lock);
    delegate_start (s, &ask, &r);
    loop_lock_take (&s->loop_lock);
    if (r.status == DELEGATE_REFUSED || r.status == DELEGATE_CANCELED) {
        out->is_canceled = r.status == DELEGATE_CANCELED;
        if (out->is_canceled)
            task->end.wait_phase = "delegation";
        outcome_set_error (out, "%s", r.output);
        return;
    }
    _cleanup_free_ char *text = delegate_result_json (&r);
    outcome_set_result (out, NAME, r.status == DELEGATE_STARTED ? TOOL_PASSED : TOOL_FAILED, text,
                        strlen (text));
}

const struct provided_tool provided_delegate_task = {
    .name = "delegate-task",
    .description = delegate_description,
    .parameters_of = delegate_parameters,
    .missing = "capabilities.spawn.allow",
    .exists = delegate_is_offered,
    .call = delegate_call,
};

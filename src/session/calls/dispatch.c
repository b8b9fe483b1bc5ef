/* SPDX-License-Identifier: Apache-2.0 */
#include "session/calls/dispatch.h"
#include "engine/guest.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "door/tasks/intake.h"
#include "host/task.h"
#include "manifest/capsule/capsule_entry.h"
#include "net/gateway.h"
#include "replay/play/play_guest.h"
#include "session/commands/native.h"
#include "session/commands/shell.h"
#include "session/guests/guest_store.h"
#include "session/guests/recording.h"
#include "session/model/stream_frames.h"
#include "session/servers/call_server.h"
#include "session/state/loop_lock.h"
#include "session/state/person.h"
#include "session/state/provided.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DATA_FILE_MAX 10485760 /* of a plan step's result */

/* --- asking the person behind the task --- */

struct input_wait {
    struct session *session;
    struct running_task *task;
};

/* At a terminal a replay asks who sits there; what they say is not what was said then. */
static char *
ask_terminal (const char *prompt)
{
    char *line = NULL;
    size_t cap = 0;
    if (! isatty (STDIN_FILENO) || ! isatty (STDERR_FILENO))
        return NULL;
    diag_note ("the record holds no reply to: %s", prompt);
    ssize_t len = getline (&line, &cap, stdin);
    if (len > 0 && line[len - 1] == '\n')
        line[len - 1] = '\0';
    if (len > 0)
        return line;
    free (line);
    return NULL;
}

/* In a replay: what was said then. */
static bool
played_reply (struct input_wait *wait, const char *question, struct question_reply *reply,
              struct mur_error **err)
{
    struct session *s = wait->session;
    struct recording_reply then;
    if (recording_next_reply (s, &then, err)) {
        reply->text = then.text;
        reply->has_timed_out = then.has_timed_out;
        return reply->text != NULL;
    }
    if (*err == NULL && (reply->text = ask_terminal (question)))
        return true;
    if (! *err)
        player_no_reply (s->asked->player, question, &wait->task->fatal);
    return false;
}

/* Waits for the message that continues this task; NULL traps the tool. */
static const char *
request_input (void *ctx, const char *prompt, size_t len, struct arena *arena, size_t *text_len,
               struct mur_error **err)
{
    struct input_wait *wait = ctx;
    const struct opt_u64 *timeout = &wait->session->policy->lifecycle.input_timeout_secs;
    _cleanup_free_ char *question = x_strndup (prompt, len);
    const struct question asked = { .text = question };
    _cleanup_ (question_reply_clear) struct question_reply reply = { 0 };
    bool is_answered =
        wait->session->asked->player
            ? played_reply (wait, question, &reply, err)
            : person_ask (wait->session, wait->task, &asked,
                          timeout->is_set ? timeout->value * 1000 : UINT64_MAX, &reply);
    recording_keep_reply (
        wait->session, question,
        &(struct recording_reply){ (char *)(uintptr_t)reply.text, reply.has_timed_out });
    if (! is_answered && *err)
        return NULL;
    if (! is_answered) {
        if (reply.has_timed_out)
            wait->task->end.input_timed_out = true;
        else
            wait->task->end.wait_phase = "input";
        mur_fail (err, E_RUN_001,
                  reply.has_timed_out ? "no reply came within lifecycle.input_timeout_secs"
                                      : "the wait for a reply was ended");
        return NULL;
    }
    *text_len = strlen (reply.text);
    return arena_strdup (arena, reply.text);
}

/* --- WASM tools --- */

enum guest_ending
call_component (struct session *s, const struct component_call *c, struct arena *arena,
                struct tool_result *result, struct mur_error **err)
{
    const struct staged_artifact *tool = c->tool;
    struct running_task *task = c->task;
    struct input_wait wait = { s, task };
    struct task_host host = { &wait, request_input };
    struct frames frames = { 0 };
    if (task)
        frames_begin (&frames, s, task->task, false);
    struct linkage_context contexts[] = { { &host_task, &host }, { &host_stream, &frames.host } };
    struct guest_setup setup = {
        .component = tool->component,
        .artifact = tool,
        .kind = GUEST_TOOL,
        .env = tool->guest.env.items,
        /* The metered inference gateway is the agent loop's alone. */
        .gateway = tool->guest.gateway && ! gateway_is_metered (tool->guest.gateway)
                       ? tool->guest.gateway
                       : NULL,
        .contexts = contexts,
        .context_count = task ? ARRAY_LEN (contexts) : 0,
        .cancel = c->cancel,
    };
    struct guest_store store = { 0 };
    enum guest_ending how = GUEST_OK;
    loop_lock_release (&s->loop_lock);
    if (guest_store_open (s, &setup, &store, &how, err))
        how = host_tool_run (store.guest, c->data, c->len, c->log_path, arena, result, c->cancel,
                             err);
    guest_store_close (&store);
    loop_lock_take (&s->loop_lock);
    if (task)
        frames_settle (&frames);
    frames_clear (&frames);
    if (how != GUEST_OK)
        mur_context (err, "tool %s", tool->tool_name);
    return how;
}

static char *
copy_metadata (const struct tool_result *r, const char *key)
{
    const char *value = tool_metadata_get (r, key);
    return value && value[0] ? x_strdup (value) : NULL;
}

static void
call_wasm (struct session *s, struct running_task *task, const struct call *call,
           const struct staged_artifact *tool, struct call_outcome *out)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    _cleanup_error_ struct mur_error *err = NULL;
    struct tool_result result = { 0 };
    const struct component_call run = { .tool = tool,
                                        .data = call->input_text,
                                        .len = strlen (call->input_text),
                                        .cancel = call->stop ? call->stop : task->cancel,
                                        .task = task };
    enum guest_ending how = call_component (s, &run, arena, &result, &err);
    if (how != GUEST_OK) {
        out->is_canceled = how == GUEST_CANCELLED;
        outcome_set_error (out, "%s", err->message);
        if (result.summary && result.summary[0])
            outcome_add_words (out, tool->tool_name, result.summary);
        return;
    }
    _cleanup_buf_ struct buf file = { 0 };
    if ((call->is_plan_step || call->is_served) && ! result.data && result.data_path) {
        if (! fs_read (s->places.work, result.data_path, DATA_FILE_MAX, &file, &err)) {
            outcome_set_error (out, "tool %s left its result at a path that cannot be read: %s",
                               tool->tool_name, err->message);
            return;
        }
        result.data = file.data ? file.data : "";
        result.data_len = file.len;
    }
    /* data, else summary: the choice is made at the fence so that no unfenced copy is left. */
    const char *text = result.data      ? result.data
                       : result.summary ? result.summary
                                        : "(the tool returned no data)";
    size_t len = result.data      ? result.data_len
                 : result.summary ? result.summary_len
                                  : strlen (text);
    outcome_set_result (out, tool->tool_name, result.status, text, len);
    out->is_truncated = result.is_truncated;
    out->state_effect = copy_metadata (&result, "state_effect");
    out->resource_id = copy_metadata (&result, "resource_id");
}

/* --- the order of 8.1 --- */

static void
call_provided (struct session *s, struct running_task *task, const struct provided_tool *tool,
               const json_t *input, struct call_outcome *out)
{
    if (! tool->exists (s))
        outcome_set_error (out, "%s%s is not available: this capsule does not declare %s",
                           tool->token ? tool->token : "", tool->name, tool->missing);
    else if (! json_is_object (input))
        outcome_set_error (out, "%s: the input must be a JSON object", tool->name);
    else
        tool->call (s, task, input, out);
}

static void
call_skill (const struct staged_artifact *skill, struct call_outcome *out)
{
    out->is_skill = true;
    out->skill_origin = skill->origin;
    out->is_dispatched = true;
    out->status = TOOL_PASSED;
    const char *text = skill->skill_text.data ? skill->skill_text.data : "";
    if (! utf8_is_valid (text, skill->skill_text.len)) {
        outcome_set_error (out, "skill %s: its skill.md is not UTF-8 text", skill->tool_name);
        return;
    }
    if (skill->origin == LOCK_RUNTIME)
        outcome_set_text (out, "skill", skill->tool_name, text, skill->skill_text.len);
    else
        buf_append (&out->text, text, skill->skill_text.len);
}

void
dispatch_call (struct session *s, struct running_task *task, const struct call *call,
               struct call_outcome *out)
{
    const char *name = call->name;
    const struct provided_tool *provided = provided_find (s, name);
    out->is_unfenced = call->is_plan_step || call->is_served;
    out->fence_word = s->fence_word;
    if (provided) {
        call_provided (s, task, provided, call->input, out);
        return;
    }
    const struct tool_entry *tool = session_tool (s, name);
    const struct staged_artifact *a = session_artifact (s, name);
    if (tool && tool->artifact && tool->artifact->server)
        servers_call (s, task, tool, call, out);
    else if (a && a->role == ROLE_TOOL && a->native_path)
        native_call (s, task, a, call, out);
    else if (shell_is_offered (s, name))
        shell_call (s, task, call, out);
    else if (a && a->role == ROLE_SKILL)
        call_skill (a, out);
    else if (a && a->role == ROLE_TOOL && a->component)
        call_wasm (s, task, call, a, out);
    else if (a)
        outcome_set_error (out, "%s is a %s and cannot be called", name,
                           artifact_role_name (a->role));
    else if (session_has_removed (s, name))
        outcome_set_error (out, "%s was removed from this session", name);
    else
        outcome_set_error (out, "there is no tool named %s in this session", name);
}

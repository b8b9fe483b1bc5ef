/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/chat/chat_turn.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "cli/running/door_task.h"
#include "client/door_client.h"
#include "client/door_message.h"
#include "door/tasks/question.h"

#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define CANCEL_MS  5000
#define CALLS_KEPT 50
#define LOOK_MS    20
#define DYING_MS   5000

struct turn {
    struct chat_talk *talk;
    struct door_task task;
    bool is_cancelled;
};

/* --- cancelling --- */

static void
cancel_task (const struct chat_talk *t, const char *id)
{
    _cleanup_json_ json_t *params = json_object ();
    json_set_string (params, "id", id);
    const struct running_record *r = t->session->record;
    struct door_call call = { r->url, r->door_token, "CancelTask", params, CANCEL_MS };
    int code;
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_json_ json_t *answer = door_call (t->session->client, &call, &code, &err);
    /* A refusal with a code says that the task has ended meanwhile. */
    if (! answer && ! code)
        diag_error (err);
}

void
chat_drop_question (struct chat_talk *t)
{
    if (t->question)
        cancel_task (t, t->question);
    free (t->question);
    json_decref (t->asked);
    t->question = NULL;
    t->asked = NULL;
}

bool
chat_signal_leaves (int signals_fd)
{
    struct signalfd_siginfo info;
    return read (signals_fd, &info, sizeof info) == sizeof info && info.ssi_signo != SIGINT;
}

/* The first Ctrl-C cancels; the second, or one before the task has begun, leaves. */
static bool
on_signal (void *ctx)
{
    struct turn *turn = ctx;
    struct chat_talk *t = turn->talk;
    t->is_over = chat_signal_leaves (t->signals_fd) || turn->is_cancelled || ! turn->task.task_id;
    if (! t->is_over && t->is_terminal)
        out_puts ("\n  cancelling; Ctrl-C again leaves\n");
    if (! t->is_over)
        cancel_task (t, turn->task.task_id);
    turn->is_cancelled = true;
    return ! t->is_over;
}

/* --- what came of it --- */

static void
tell_failure (struct chat_talk *t, const struct door_task *task)
{
    t->has_failed = true;
    if (task->view)
        return;
    _cleanup_error_ struct mur_error *err = NULL;
    mur_fail (&err, E_RUN_040, "%s", task->said ? task->said : "the task did not complete");
    diag_error (err);
}

static void
tell_outcome (struct chat_talk *t, const struct door_task *task)
{
    if (door_task_asks (task)) {
        t->question = x_strdup (task->task_id);
        t->asked = json_incref (task->question);
        if (! task->view)
            diag_note ("the task asks: %s", task->said ? task->said : "");
    } else if (! str_eq (task->state, "TASK_STATE_COMPLETED")) {
        tell_failure (t, task);
    } else if (! task->view && task->answer) {
        out_puts (task->answer);
        out_puts (str_ends (task->answer, "\n") ? "" : "\n");
    }
}

/* Kept to be opened later. */
static void
on_called (void *ctx, const json_t *frame)
{
    struct turn *turn = ctx;
    struct chat_talk *t = turn->talk;
    if (! t->calls)
        t->calls = json_array ();
    if (json_array_size (t->calls) == CALLS_KEPT)
        json_array_remove (t->calls, 0);
    json_array_append_new (t->calls, json_deep_copy (frame));
}

/* What was spent, and how full the context is. */
static void
tell_status (struct chat_talk *t)
{
    token_tally_read (&t->tally);
    if (! t->is_terminal || ! t->tally.context)
        return;
    _cleanup_free_ char *words = token_tally_status (&t->tally);
    bool has_colour = diag_wants_colour (STDOUT_FILENO);
    _cleanup_free_ char *line =
        x_asprintf ("%s  %s%s\n", has_colour ? "\x1b[2m" : "", words, has_colour ? "\x1b[0m" : "");
    out_raw (line, strlen (line));
}

static void
tell_lost (struct chat_talk *t, struct mur_error *err)
{
    t->has_failed = true;
    diag_error (err);
    /* Its door closes before the rest of a process that dies is gone. */
    bool may_be_dying = err && err->code == E_IO_003;
    for (unsigned waited = 0; chat_session_lives (t->session); waited += LOOK_MS) {
        struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };
        if (! may_be_dying || waited >= DYING_MS)
            return;
        (void)nanosleep (&pause, NULL);
    }
    diag_note ("the session has ended; `mur trace show %s` says what it did",
               t->session->record->session_id);
    t->is_over = true;
}

/* What is sent: an answer to the open question, or a message. NULL: it is no answer, which was
 * said, and the question stays open. Owned. */
static json_t *
message_of (struct chat_talk *t, const char *text, size_t len)
{
    if (! t->asked)
        return door_message (text, len, t->question ? NULL : t->context_id, t->question);
    _cleanup_free_ char *why = NULL, *said = x_strndup (text, len);
    const char *answer = question_answer (t->asked, said, NULL, &why);
    if (answer)
        return door_message_answer (t->question, t->asked, answer);
    diag_note ("%s", why);
    return NULL;
}

void
chat_turn (struct chat_talk *t, const char *text, size_t len)
{
    const struct running_record *r = t->session->record;
    _cleanup_json_ json_t *params = message_of (t, text, len);
    if (! params)
        return;
    _cleanup_free_ char *question = steal_ptr (&t->question);
    json_decref (t->asked);
    t->asked = NULL;
    _cleanup_ (watch_view_freep) struct watch_view *view =
        t->is_terminal ? door_task_view () : NULL;
    struct turn turn = { .talk = t,
                         .task = { .client = t->session->client,
                                   .url = r->url,
                                   .token = r->door_token,
                                   .view = view,
                                   .woken = t->signals_fd >= 0 ? on_signal : NULL,
                                   .woken_fd = t->signals_fd,
                                   .called = on_called,
                                   .ctx = &turn } };
    _cleanup_error_ struct mur_error *err = NULL;
    if (question)
        turn.task.task_id = x_strdup (question);
    bool is_ok = door_task_follow (&turn.task, params, &err);
    chat_session_tell (t->session);
    if (! is_ok)
        tell_lost (t, err);
    else if (turn.task.is_over)
        tell_outcome (t, &turn.task);
    else
        t->is_over = true; /* nobody reads on */
    tell_status (t);
    door_task_clear (&turn.task);
}

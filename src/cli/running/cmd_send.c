/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur send` and `mur answer`: a task for a running session, and what its task waits for, from the
 * command line.
 *
 * Both follow the task to its end: a live view at a terminal, the answer alone in a pipe.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "base/text.h"
#include "cli/line/args.h"
#include "cli/running/commands.h"
#include "cli/running/door_task.h"
#include "cli/running/fleet_sessions.h"
#include "cli/running/running_session.h"
#include "client/door_client.h"
#include "client/door_message.h"
#include "door/tasks/question.h"

#include <string.h>
#include <unistd.h>

#define TEXT_LIMIT ((size_t)16 << 20)

/* A door, by session or by address. */
struct target {
    struct http_client *client;
    struct running_scan scan;
    struct secret *own_token; /* of --url */
    const char *url;
    const struct secret *token;
    const char *name; /* how hints name it */
};

/* --- the line --- */

/* One positional is the text; the session is then the newest, or --url's. */
static const char *
text_of (const struct cli_args *args)
{
    const char *second = cli_positional (args, "TEXT");
    return second ? second : cli_positional (args, "SESSION");
}

static const char *
session_of (const struct cli_args *args)
{
    return cli_positional (args, "TEXT") ? cli_positional (args, "SESSION") : NULL;
}

/* --- the door --- */

static bool
find_target (const struct cli_args *args, struct target *t, struct mur_error **err)
{
    t->client = http_client_new ();
    if (cli_has (args, "--url")) {
        t->url = t->name = cli_value (args, "--url");
        t->token = t->own_token = door_token_of_environment ();
        return true;
    }
    const char *session = session_of (args);
    const struct running_entry *e =
        fleet_sessions_session (args, session, t->client, &t->scan, err);
    if (! e && session && session[0] != '@' && ! str_starts (session, "ses_"))
        return mur_hint (err, "a text of several words is quoted: mur %s \"%s ...\"",
                         cli_command_of (args)->name, session);
    if (! e)
        return false;
    const struct running_record *r = &e->record;
    if (! door_answers (t->client, r))
        return running_session_deaf (r, err);
    t->url = r->url;
    t->token = r->door_token;
    t->name = r->session_id;
    return true;
}

static void
target_clear (struct target *t)
{
    http_client_free (t->client);
    running_scan_free (&t->scan);
    secret_freep (&t->own_token);
}

/* --- the message --- */

static bool
take_text (const char *value, struct buf *text, struct mur_error **err)
{
    if (strcmp (value, "-") != 0) {
        buf_puts (text, value);
    } else if (! fd_read_all (STDIN_FILENO, TEXT_LIMIT, text)) {
        return mur_fail_errno (err, E_IO_003, "cannot read standard input");
    }
    text_form_normalise (text);
    if (! text->len || strspn (text->data, " \t\r\n") == text->len)
        return mur_fail (err, E_RUN_007, "there is nothing to send: the text is blank");
    return true;
}

/* --- the outcome --- */

static bool
tell_question (const struct target *t, const struct door_task *s, struct mur_error **err)
{
    mur_fail (err, E_RUN_040, "the task asks: %s", s->said ? s->said : "");
    return mur_hint (err, "answer with: mur answer %s %s", t->name,
                     s->question ? "once, session, no or never" : "\"...\"");
}

static bool
tell_outcome (const struct target *t, const struct door_task *s, struct mur_error **err)
{
    if (door_task_asks (s))
        return tell_question (t, s, err);
    if (! str_eq (s->state, "TASK_STATE_COMPLETED"))
        return mur_fail (err, E_RUN_040, "%s", s->said ? s->said : "the task did not complete");
    if (s->view || ! s->answer)
        return true;
    out_puts (s->answer);
    if (! str_ends (s->answer, "\n"))
        out_puts ("\n");
    return true;
}

static bool
send_and_follow (const struct target *t, const json_t *params, struct mur_error **err)
{
    _cleanup_ (watch_view_freep) struct watch_view *view = door_task_view ();
    struct door_task s = { .client = t->client, .url = t->url, .token = t->token, .view = view };
    bool is_ok = door_task_follow (&s, params, err);
    /* A reader that left has had enough; the task goes on. */
    if (is_ok && s.is_over)
        is_ok = tell_outcome (t, &s, err);
    door_task_clear (&s);
    return is_ok;
}

/* Only sends, and names the task. */
static bool
send_only (const struct target *t, json_t *params, struct mur_error **err)
{
    json_t *configuration = json_object ();
    json_set_bool (configuration, "returnImmediately", true);
    json_object_set_new (params, "configuration", configuration);
    struct door_call call = { t->url, t->token, "SendMessage", params, 30000 };
    int code;
    _cleanup_json_ json_t *result = door_call (t->client, &call, &code, err);
    const json_t *task = json_object_get (result, "task");
    if (! result)
        return false;
    const json_t *status = json_object_get (task, "status");
    if (str_eq (json_get_string (status, "state"), "TASK_STATE_REJECTED")) {
        const json_t *parts = json_object_get (json_object_get (status, "message"), "parts");
        const char *why = json_get_string (json_array_get (parts, 0), "text");
        return mur_fail (err, E_RUN_040, "%s", why ? why : "the task was rejected");
    }
    const char *id = json_get_string (task, "id");
    out_printf ("%s\n", id ? id : "");
    return true;
}

static bool
send_text (const struct cli_args *args, const struct target *t, const char *task_id,
           struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    if (! take_text (text_of (args), &text, err))
        return false;
    const char *context_id = task_id ? NULL : cli_value (args, "--context");
    _cleanup_json_ json_t *params = door_message (text.data, text.len, context_id, task_id);
    return cli_has (args, "--detach") ? send_only (t, params, err)
                                      : send_and_follow (t, params, err);
}

int
cmd_send (const struct cli_args *args, struct mur_error **err)
{
    struct target t = { 0 };
    bool is_ok = find_target (args, &t, err) && send_text (args, &t, NULL, err);
    target_clear (&t);
    return is_ok ? CLI_OK : CLI_FAILED;
}

/* --- answering --- */

/* The tasks that wait for an answer. Owned; NULL with E-IO-003. */
static json_t *
waiting_tasks (const struct target *t, struct mur_error **err)
{
    _cleanup_json_ json_t *params = json_object ();
    json_set_string (params, "status", "TASK_STATE_INPUT_REQUIRED");
    struct door_call call = { t->url, t->token, "ListTasks", params, 30000 };
    int code;
    _cleanup_json_ json_t *result = door_call (t->client, &call, &code, err);
    return json_incref (json_object_get (result, "tasks"));
}

/* The one that is meant: by its id, or alone. Borrowed; NULL with E-IO-003. */
static const json_t *
meant_task (const struct target *t, const json_t *tasks, const char *id, struct mur_error **err)
{
    size_t i;
    const json_t *task;
    if (id)
        json_array_foreach (tasks, i,
                            task) if (str_eq (json_get_string (task, "id"), id)) return task;
    if (! id && json_array_size (tasks) == 1)
        return json_array_get (tasks, 0);
    if (id) {
        mur_fail (err, E_IO_003, "task %s of %s waits for no answer", id, t->name);
        return NULL;
    }
    if (! json_array_size (tasks)) {
        mur_fail (err, E_IO_003, "no task of %s waits for an answer", t->name);
        mur_hint (err, "a new task is sent with: mur send %s \"...\"", t->name);
        return NULL;
    }
    _cleanup_strv_ struct strv ids = { 0 };
    json_array_foreach (tasks, i, task) strv_push (&ids, json_get_string (task, "id"));
    _cleanup_free_ char *names = strv_join (&ids, ", ");
    mur_fail (err, E_IO_003, "%zu tasks of %s wait for an answer: %s", ids.len, t->name, names);
    mur_hint (err, "name the one that is meant with --task");
    return NULL;
}

/* A structured question is answered by name, so that an answer meant for it reaches no other. */
static bool
answer_task (const struct cli_args *args, const struct target *t, const json_t *task,
             struct mur_error **err)
{
    const char *id = json_get_string (task, "id");
    const json_t *question = door_message_question (json_object_get (task, "status"));
    if (! question)
        return send_text (args, t, id, err);
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_free_ char *why = NULL;
    if (! take_text (text_of (args), &text, err))
        return false;
    const char *answer = question_answer (question, text.data, NULL, &why);
    if (! answer)
        return mur_fail (err, E_IO_003, "%s", why);
    _cleanup_json_ json_t *params = door_message_answer (id, question, answer);
    return cli_has (args, "--detach") ? send_only (t, params, err)
                                      : send_and_follow (t, params, err);
}

int
cmd_answer (const struct cli_args *args, struct mur_error **err)
{
    struct target t = { 0 };
    bool is_ok = find_target (args, &t, err);
    _cleanup_json_ json_t *tasks = is_ok ? waiting_tasks (&t, err) : NULL;
    const json_t *task = tasks ? meant_task (&t, tasks, cli_value (args, "--task"), err) : NULL;
    is_ok = task && answer_task (args, &t, task, err);
    target_clear (&t);
    return is_ok ? CLI_OK : CLI_FAILED;
}

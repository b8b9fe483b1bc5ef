/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur send` and `mur answer`: a task for a running session, and what its task waits for, from the
 * command line.
 *
 * Both follow the task to its end: a live view at a terminal, the answer alone in a pipe. A
 * connection that breaks is taken up again as a subscription of the same task, so nothing is sent
 * twice.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "base/text_form.h"
#include "cli/line/args.h"
#include "cli/running/commands.h"
#include "cli/running/door_client.h"
#include "cli/running/door_stream.h"
#include "cli/running/running_session.h"
#include "cli/running/watch_view.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TEXT_LIMIT   ((size_t)16 << 20)
#define MOST_RESUMES 3

/* A door, by session or by address. */
struct target {
    struct http_client *client;
    struct running_scan scan;
    struct secret *own_token; /* of --url */
    const char *url;
    const struct secret *token;
    const char *name; /* how hints name it */
};

/* What is seen of the task that was sent. */
struct sent {
    struct watch_view *view; /* NULL: a pipe */
    char *task_id;
    char *state; /* TASK_STATE_*; NULL: not heard of yet */
    char *said;  /* the last status message */
    char *answer;
    bool is_over; /* ended, or it asks */
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
    const struct running_entry *e = running_session (session_of (args), &t->scan, err);
    if (! e)
        return false;
    const struct running_record *r = &e->record;
    if (! door_answers (t->client, r))
        return mur_fail (err, E_RUN_023,
                         "%s is running (pid %ld), but its door at %s does not answer",
                         r->session_id, (long)r->pid, r->url);
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

static json_t *
message_params (const struct buf *text, const char *context_id, const char *task_id)
{
    json_t *part = json_object ();
    json_set_string_n (part, "text", text->data, text->len);
    json_t *parts = json_array ();
    json_array_append_new (parts, part);
    json_t *message = json_object ();
    json_set_string (message, "messageId", id_new ("msg_").text);
    json_set_string (message, "role", "ROLE_USER");
    if (context_id)
        json_set_string (message, "contextId", context_id);
    if (task_id)
        json_set_string (message, "taskId", task_id);
    json_object_set_new (message, "parts", parts);
    json_t *params = json_object ();
    json_object_set_new (params, "message", message);
    return params;
}

/* --- following --- */

static void
keep (char **slot, const char *text)
{
    if (! text)
        return;
    free (*slot);
    *slot = x_strdup (text);
}

static const char *
first_text (const json_t *holder)
{
    return json_get_string (json_array_get (json_object_get (holder, "parts"), 0), "text");
}

static bool
is_resting (const char *state)
{
    static const char *const resting[] = { "COMPLETED", "FAILED", "CANCELED", "REJECTED",
                                           "INPUT_REQUIRED" };
    for (size_t i = 0; i < ARRAY_LEN (resting); i++)
        if (state && str_starts (state, "TASK_STATE_") &&
            strcmp (state + strlen ("TASK_STATE_"), resting[i]) == 0)
            return true;
    return false;
}

static void
take_status (struct sent *s, const json_t *status)
{
    keep (&s->state, json_get_string (status, "state"));
    keep (&s->said, first_text (json_object_get (status, "message")));
    s->is_over = is_resting (s->state);
}

static void
take_artifact (struct sent *s, const json_t *artifact)
{
    if (str_eq (json_get_string (artifact, "name"), "response"))
        keep (&s->answer, first_text (artifact));
}

static bool
on_event (void *ctx, const json_t *response)
{
    struct sent *s = ctx;
    const json_t *task = json_object_get (response, "task");
    const json_t *status = json_object_get (response, "statusUpdate");
    const json_t *artifact = json_object_get (response, "artifactUpdate");
    size_t i;
    const json_t *item;
    if (task) {
        keep (&s->task_id, json_get_string (task, "id"));
        json_array_foreach (json_object_get (task, "artifacts"), i, item) take_artifact (s, item);
        take_status (s, json_object_get (task, "status"));
        s->is_over = s->is_over && ! str_eq (s->state, "TASK_STATE_INPUT_REQUIRED");
    }
    if (artifact)
        take_artifact (s, json_object_get (artifact, "artifact"));
    if (status)
        take_status (s, json_object_get (status, "status"));
    if (s->view && ! task) {
        _cleanup_buf_ struct buf out = { 0 }, notes = { 0 };
        watch_view_event (s->view, response, &out, &notes);
        if (out.len)
            out_raw (out.data, out.len);
    }
    return ! s->is_over;
}

/* Follows to the end, or to a question. */
static bool
follow (const struct target *t, const json_t *params, struct sent *s, struct mur_error **err)
{
    struct door_stream stream = { .url = t->url,
                                  .token = t->token,
                                  .method = "SendStreamingMessage",
                                  .params = params,
                                  .is_extended = s->view != NULL,
                                  .event = on_event,
                                  .ctx = s };
    _cleanup_json_ json_t *again = NULL;
    bool is_ok = false;
    for (unsigned tries = 0;; tries++) {
        _cleanup_free_ char *why = NULL;
        enum door_stream_end end = door_stream_follow (&stream, t->client, &why, err);
        is_ok = end == DOOR_STREAM_DONE;
        if (is_ok || end == DOOR_STREAM_REFUSED)
            break;
        if (! s->task_id || end == DOOR_STREAM_UNREACHABLE || tries >= MOST_RESUMES) {
            mur_fail (err, E_IO_003, "the connection to %s was lost: %s", t->url, why);
            break;
        }
        if (! again) {
            again = json_object ();
            json_set_string (again, "id", s->task_id);
            stream.method = "SubscribeToTask";
            stream.params = again;
        }
    }
    door_stream_clear (&stream);
    return is_ok;
}

/* --- the outcome --- */

static bool
tell_question (const struct target *t, const struct sent *s, struct mur_error **err)
{
    mur_fail (err, E_RUN_040, "the task asks: %s", s->said ? s->said : "");
    return mur_hint (err, "answer with: mur answer %s \"...\"", t->name);
}

static bool
tell_outcome (const struct target *t, const struct sent *s, struct mur_error **err)
{
    if (str_eq (s->state, "TASK_STATE_INPUT_REQUIRED"))
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

static struct watch_view *
view_of_terminal (void)
{
    if (! isatty (STDOUT_FILENO) || str_eq (getenv ("TERM"), "dumb"))
        return NULL;
    struct winsize size = { 0 };
    struct watch_style style = { .is_terminal = true,
                                 .has_colour = diag_wants_colour (STDOUT_FILENO),
                                 .is_own = true };
    if (ioctl (STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        style.width = size.ws_col;
    return watch_view_new (&style);
}

static bool
send_and_follow (const struct target *t, const json_t *params, struct mur_error **err)
{
    struct sent s = { .view = view_of_terminal () };
    bool is_ok = follow (t, params, &s, err);
    if (s.view) {
        _cleanup_buf_ struct buf out = { 0 };
        watch_view_end (s.view, &out);
        if (out.len)
            out_raw (out.data, out.len);
    }
    /* A reader that left has had enough; the task goes on. */
    if (is_ok && s.is_over)
        is_ok = tell_outcome (t, &s, err);
    watch_view_free (s.view);
    free (s.task_id);
    free (s.state);
    free (s.said);
    free (s.answer);
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
        const char *why = first_text (json_object_get (status, "message"));
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
    _cleanup_json_ json_t *params = message_params (&text, context_id, task_id);
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

/* The one task that waits for an answer. Owned; NULL with E-IO-003. */
static char *
waiting_task (const struct target *t, struct mur_error **err)
{
    _cleanup_json_ json_t *params = json_object ();
    json_set_string (params, "status", "TASK_STATE_INPUT_REQUIRED");
    struct door_call call = { t->url, t->token, "ListTasks", params, 30000 };
    int code;
    _cleanup_json_ json_t *result = door_call (t->client, &call, &code, err);
    if (! result)
        return NULL;
    const json_t *tasks = json_object_get (result, "tasks");
    if (json_array_size (tasks) == 1)
        return x_strdup (json_get_string (json_array_get (tasks, 0), "id"));
    if (! json_array_size (tasks)) {
        mur_fail (err, E_IO_003, "no task of %s waits for an answer", t->name);
        mur_hint (err, "a new task is sent with: mur send %s \"...\"", t->name);
        return NULL;
    }
    _cleanup_strv_ struct strv ids = { 0 };
    size_t i;
    const json_t *task;
    json_array_foreach (tasks, i, task) strv_push (&ids, json_get_string (task, "id"));
    _cleanup_free_ char *names = strv_join (&ids, ", ");
    mur_fail (err, E_IO_003, "%zu tasks of %s wait for an answer: %s", ids.len, t->name, names);
    mur_hint (err, "name the one that is meant with --task");
    return NULL;
}

int
cmd_answer (const struct cli_args *args, struct mur_error **err)
{
    struct target t = { 0 };
    bool is_ok = find_target (args, &t, err);
    _cleanup_free_ char *id = NULL;
    if (is_ok)
        id = cli_has (args, "--task") ? x_strdup (cli_value (args, "--task"))
                                      : waiting_task (&t, err);
    is_ok = id && send_text (args, &t, id, err);
    target_clear (&t);
    return is_ok ? CLI_OK : CLI_FAILED;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/running/door_task.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/ids.h"
#include "cli/line/terminal_width.h"
#include "cli/running/door_stream.h"
#include "client/door_client.h"
#include "client/door_message.h"
#include "door/card/card.h"
#include "door/tasks/question.h"

#include <string.h>
#include <unistd.h>

#define MOST_RESUMES 3
#define LIST_MS      2000

struct watch_view *
door_task_view (void)
{
    if (! isatty (STDOUT_FILENO) || str_eq (getenv ("TERM"), "dumb"))
        return NULL;
    struct watch_style style = { .is_terminal = true,
                                 .has_colour = diag_wants_colour (STDOUT_FILENO),
                                 .is_own = true,
                                 .width = terminal_width };
    return watch_view_new (&style);
}

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
take_status (struct door_task *s, const json_t *status)
{
    json_decref (s->question);
    s->question = json_deep_copy (door_message_question (status));
    keep (&s->state, json_get_string (status, "state"));
    keep (&s->said, first_text (json_object_get (status, "message")));
    s->is_over = is_resting (s->state);
}

static void
take_artifact (struct door_task *s, const json_t *artifact)
{
    if (str_eq (json_get_string (artifact, "name"), "response"))
        keep (&s->answer, first_text (artifact));
}

static void
show (const struct buf *out)
{
    if (out->len)
        out_raw (out->data, out->len);
}

static bool
on_event (void *ctx, const json_t *response)
{
    struct door_task *s = ctx;
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
    const json_t *frame =
        json_object_get (json_object_get (status ? status : artifact, "metadata"), CARD_STREAM_URI);
    if (s->called && json_object_get (frame, "content"))
        s->called (s->ctx, frame);
    if (s->view && ! task) {
        _cleanup_buf_ struct buf out = { 0 }, notes = { 0 };
        watch_view_event (s->view, response, &out, &notes);
        show (&out);
    }
    return ! s->is_over;
}

static bool
on_woken (void *ctx)
{
    const struct door_task *t = ctx;
    return t->woken (t->ctx);
}

static bool
follow (struct door_task *t, struct door_stream *stream, struct mur_error **err)
{
    _cleanup_json_ json_t *again = NULL;
    for (unsigned tries = 0;; tries++) {
        _cleanup_free_ char *why = NULL;
        enum door_stream_end end = door_stream_follow (stream, t->client, &why, err);
        if (end == DOOR_STREAM_DONE || end == DOOR_STREAM_REFUSED)
            return end == DOOR_STREAM_DONE;
        if (! t->task_id || end == DOOR_STREAM_UNREACHABLE || tries >= MOST_RESUMES)
            return mur_fail (err, E_IO_003,
                             t->task_id ? "the connection to %s was lost: %s"
                                        : "nothing answers at %s: %s",
                             t->url, why);
        if (! again) {
            again = json_object ();
            json_set_string (again, "id", t->task_id);
            stream->method = "SubscribeToTask";
            stream->params = again;
        }
    }
}

bool
door_task_follow (struct door_task *t, const json_t *params, struct mur_error **err)
{
    struct door_stream stream = { .url = t->url,
                                  .token = t->token,
                                  .method = "SendStreamingMessage",
                                  .params = params,
                                  .is_extended = t->view != NULL,
                                  .event = on_event,
                                  .ctx = t,
                                  .woken = t->woken ? on_woken : NULL,
                                  .woken_fd = t->woken_fd };
    bool is_ok = follow (t, &stream, err);
    door_stream_clear (&stream);
    if (t->view) {
        _cleanup_buf_ struct buf out = { 0 };
        watch_view_end (t->view, &out);
        show (&out);
    }
    return is_ok;
}

bool
door_task_asks (const struct door_task *t)
{
    return t->is_over && str_eq (t->state, "TASK_STATE_INPUT_REQUIRED");
}

void
door_task_clear (struct door_task *t)
{
    free (t->task_id);
    free (t->state);
    free (t->said);
    free (t->answer);
    json_decref (t->question);
}

/* --- all of them --- */

json_t *
door_tasks (struct http_client *client, const char *url, const struct secret *token)
{
    _cleanup_json_ json_t *params = json_object ();
    json_set_u64 (params, "pageSize", 20);
    json_set_bool (params, "includeArtifacts", true);
    struct door_call call = { url, token, "ListTasks", params, LIST_MS };
    int code;
    struct mur_error *err = NULL;
    _cleanup_json_ json_t *result = door_call (client, &call, &code, &err);
    mur_error_free (err);
    return json_incref (json_object_get (result, "tasks"));
}

char *
door_task_words (const json_t *task)
{
    const json_t *message = json_object_get (json_object_get (task, "status"), "message");
    const json_t *artifact = json_array_get (json_object_get (task, "artifacts"), 0);
    const json_t *parts = json_object_get (message ? message : artifact, "parts");
    const char *text = json_get_string (json_array_get (parts, 0), "text");
    return x_strdup (text ? text : "");
}

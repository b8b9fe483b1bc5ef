/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/event.h"

#include "base/alloc.h"
#include "door/card/card.h"

#include <string.h>

struct mur_event {
    enum mur_event_kind kind;
    char *task_id, *context_id, *text, *state, *json;
};

struct mur_event *
event_new (enum mur_event_kind kind, const char *text)
{
    struct mur_event *e = x_new0 (struct mur_event);
    e->kind = kind;
    e->text = text ? x_strdup (text) : NULL;
    return e;
}

/* --- reading --- */

static char *
copy (const json_t *object, const char *key)
{
    const char *text = json_get_string (object, key);
    return text ? x_strdup (text) : NULL;
}

static char *
first_text (const json_t *holder)
{
    return copy (json_array_get (json_object_get (holder, "parts"), 0), "text");
}

static const struct {
    const char *frame, *text_key;
    enum mur_event_kind kind;
} frames[] = {
    { "text", "text", MUR_EVENT_TEXT },
    { "thinking", "text", MUR_EVENT_THINKING },
    { "tool-call-started", "toolName", MUR_EVENT_TOOL_CALL },
    { "artifact", "content", MUR_EVENT_TOOL_RESULT },
};

/* Frames that end something that was streamed carry no text: they tell nobody anything. */
static struct mur_event *
event_of_frame (const json_t *frame)
{
    const char *name = json_get_string (frame, "frame");
    for (size_t i = 0; i < ARRAY_LEN (frames); i++) {
        if (! str_eq (name, frames[i].frame))
            continue;
        const char *text = json_get_string (frame, frames[i].text_key);
        bool is_piece = frames[i].kind == MUR_EVENT_TEXT || frames[i].kind == MUR_EVENT_THINKING;
        return is_piece && (! text || ! *text) ? NULL : event_new (frames[i].kind, text);
    }
    return event_new (MUR_EVENT_OTHER, NULL);
}

static struct mur_event *
event_of_status (const json_t *update)
{
    static const char *const ends[] = { "TASK_STATE_COMPLETED", "TASK_STATE_FAILED",
                                        "TASK_STATE_CANCELED", "TASK_STATE_REJECTED" };
    const json_t *frame = json_object_get (json_object_get (update, "metadata"), CARD_STREAM_URI);
    if (json_get_string (frame, "frame"))
        return event_of_frame (frame);
    const json_t *status = json_object_get (update, "status");
    const char *state = json_get_string (status, "state");
    struct mur_event *e = event_new (MUR_EVENT_STATUS, NULL);
    e->text = first_text (json_object_get (status, "message"));
    if (str_eq (state, "TASK_STATE_INPUT_REQUIRED"))
        e->kind = MUR_EVENT_QUESTION;
    for (size_t i = 0; i < ARRAY_LEN (ends); i++)
        if (str_eq (state, ends[i])) {
            e->kind = MUR_EVENT_TASK_ENDED;
            e->state = x_strdup (state);
        }
    return e;
}

static struct mur_event *
event_of_artifact (const json_t *update)
{
    const json_t *artifact = json_object_get (update, "artifact");
    if (! str_eq (json_get_string (artifact, "name"), "response"))
        return event_new (MUR_EVENT_OTHER, NULL);
    struct mur_event *e = event_new (MUR_EVENT_ANSWER, NULL);
    e->text = first_text (artifact);
    return e;
}

/* A gap names no count: then the text is NULL. */
static struct mur_event *
event_of_message (const json_t *message)
{
    const json_t *frame = json_object_get (json_object_get (message, "metadata"), CARD_STREAM_URI);
    const char *name = json_get_string (frame, "frame");
    if (str_eq (name, "connection-ack") || str_eq (name, "capsule-closed"))
        return NULL;
    if (str_eq (name, "gap"))
        return event_new (MUR_EVENT_LOST, NULL);
    if (! str_eq (name, "lagged"))
        return event_new (MUR_EVENT_OTHER, NULL);
    struct mur_event *e = event_new (MUR_EVENT_LOST, NULL);
    e->text =
        x_asprintf ("%lld", (long long)json_integer_value (json_object_get (frame, "missed")));
    return e;
}

struct mur_event *
event_of_response (const json_t *response, const char *json, size_t len)
{
    static const struct {
        const char *member;
        struct mur_event *(*read) (const json_t *value);
    } forms[] = {
        { "statusUpdate", event_of_status },
        { "artifactUpdate", event_of_artifact },
        { "message", event_of_message },
    };
    for (size_t i = 0; i < ARRAY_LEN (forms); i++) {
        const json_t *value = json_object_get (response, forms[i].member);
        if (! value)
            continue;
        struct mur_event *e = forms[i].read (value);
        if (! e)
            return NULL;
        e->task_id = copy (value, "taskId");
        e->context_id = copy (value, "contextId");
        e->json = x_strndup (json, len);
        return e;
    }
    return NULL;
}

/* --- what is handed out --- */

enum mur_event_kind
mur_event_kind (const struct mur_event *e)
{
    return e ? e->kind : MUR_EVENT_OTHER;
}

const char *
mur_event_task (const struct mur_event *e)
{
    return e ? e->task_id : NULL;
}

const char *
mur_event_context (const struct mur_event *e)
{
    return e ? e->context_id : NULL;
}

const char *
mur_event_text (const struct mur_event *e)
{
    return e ? e->text : NULL;
}

const char *
mur_event_state (const struct mur_event *e)
{
    return e ? e->state : NULL;
}

const char *
mur_event_json (const struct mur_event *e)
{
    return e ? e->json : NULL;
}

void
mur_event_free (struct mur_event *e)
{
    if (! e)
        return;
    free (e->task_id);
    free (e->context_id);
    free (e->text);
    free (e->state);
    free (e->json);
    free (e);
}

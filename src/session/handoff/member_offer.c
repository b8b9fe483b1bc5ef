/* SPDX-License-Identifier: Apache-2.0 */
#include "session/handoff/member_offer.h"

#include "base/alloc.h"
#include "session/state/session.h"
#include "spawn/child/door_ask.h"
#include "spawn/formation/membership.h"
#include "trace/export/otel.h"

#include <string.h>

#define OFFER_MS  30000
#define POLL_MS   5000
#define CANCEL_MS 5000
#define BELOW_MAX 8

void
member_said_clear (struct member_said *s)
{
    free (s->task_id);
    free (s->text);
    json_decref (s->below);
    *s = (struct member_said){ 0 };
}

/* Takes a text over and hands out what may be shown of it. */
static char *
shown (const struct member_line *l, char *text)
{
    char *clean = membership_redact (l->session->asked->launcher.membership, text);
    free (text);
    return clean;
}

static json_t *
ask (const struct member_line *l, const char *id, const char *method, json_t *params,
     uint64_t timeout_ms, struct cancel *cancel, struct mur_error **err)
{
    struct membership *m = l->session->asked->launcher.membership;
    char traceparent[TRACEPARENT_LEN + 1];
    bool is_traced = otel_traceparent (l->session->otel, traceparent);
    const struct door_question q = {
        .http = l->session->http,
        .url = l->url,
        .token = secret_reveal (membership_token (m, l->member)),
        .id = id,
        .method = method,
        .params = params,
        .traceparent = is_traced ? traceparent : NULL,
        .peer_trust = l->trust,
        .timeout_ms = timeout_ms,
        .cancel = cancel,
    };
    return door_ask (&q, err);
}

/* The sentence of a JSON-RPC error. Owned. */
static char *
rpc_fault (const json_t *answer)
{
    const char *said = json_get_string (json_object_get (answer, "error"), "message");
    return x_asprintf ("its door refused the task: %s", said ? said : "no reason");
}

static char *
status_text (const json_t *task)
{
    return door_parts_text (json_object_get (json_object_get (task, "status"), "message"));
}

/* --- offering --- */

static void
read_offer (const struct member_line *l, const json_t *answer, struct member_said *out)
{
    const json_t *task = json_object_get (json_object_get (answer, "result"), "task");
    const char *id = json_get_string (task, "id");
    const char *state = json_get_string (json_object_get (task, "status"), "state");
    out->status = MEMBER_CALL_FAILED;
    if (json_object_get (answer, "error"))
        out->text = shown (l, rpc_fault (answer));
    else if (! id || ! *id)
        out->text = x_strdup ("its door answered without a task");
    else if (str_eq (state, "TASK_STATE_REJECTED")) {
        char *said = status_text (task);
        out->status = str_eq (said, MEMBER_BUSY_TEXT) ? MEMBER_CALL_BUSY : MEMBER_CALL_REJECTED;
        out->text = shown (l, said);
    } else {
        out->status = MEMBER_CALL_STARTED;
        out->task_id = x_strdup (id);
    }
}

void
member_offer (const struct member_line *l, unsigned n, const char *task, struct cancel *cancel,
              struct member_said *out)
{
    *out = (struct member_said){ 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_json_ json_t *params = door_message_params (l->call_id, task);
    _cleanup_free_ char *id = n > 1 ? x_asprintf ("%s-%u", l->call_id, n) : x_strdup (l->call_id);
    _cleanup_json_ json_t *answer = ask (l, id, "SendMessage", params, OFFER_MS, cancel, &err);
    if (answer) {
        read_offer (l, answer, out);
        return;
    }
    out->status = MEMBER_CALL_FAILED;
    out->is_transport_failure = true;
    out->text = shown (l, x_strdup (err->message));
}

/* --- asking --- */

/* Entries that name a member and a status; the rest of what a callee writes there is dropped. */
static json_t *
read_below (const json_t *murmur)
{
    json_t *below = json_array ();
    size_t i;
    const json_t *entry;
    json_array_foreach (json_object_get (murmur, "noAnswerBelow"), i, entry)
    {
        const char *member = json_get_string (entry, "member");
        const char *status = json_get_string (entry, "status");
        if (! member || ! status || ! *member || ! *status || json_array_size (below) == BELOW_MAX)
            continue;
        json_t *one = json_object ();
        json_set_string (one, "member", member);
        json_set_string (one, "status", status);
        json_array_append_new (below, one);
    }
    if (json_array_size (below))
        return below;
    json_decref (below);
    return NULL;
}

static void
read_task (const struct member_line *l, const json_t *task, struct member_said *out)
{
    const json_t *murmur = json_object_get (json_object_get (task, "metadata"), "murmur");
    const char *state = json_get_string (json_object_get (task, "status"), "state");
    bool is_completed = str_eq (state, "TASK_STATE_COMPLETED");
    bool is_failed = str_eq (state, "TASK_STATE_FAILED");
    bool is_canceled = str_eq (state, "TASK_STATE_CANCELED");
    out->is_open =
        ! is_completed && ! is_failed && ! is_canceled && ! str_eq (state, "TASK_STATE_REJECTED");
    if (out->is_open)
        return;
    bool has_declined = is_failed && json_is_true (json_object_get (murmur, "noAnswer"));
    out->status = is_completed   ? MEMBER_CALL_COMPLETED
                  : has_declined ? MEMBER_CALL_NO_ANSWER
                  : is_failed    ? MEMBER_CALL_FAILED
                  : is_canceled  ? MEMBER_CALL_CANCELED
                                 : MEMBER_CALL_REJECTED;
    char *said = is_completed ? door_response_text (task) : status_text (task);
    out->text = shown (l, said ? said : x_strdup (""));
    out->below = read_below (murmur);
}

void
member_ask (const struct member_line *l, const char *task_id, struct cancel *cancel,
            struct member_said *out)
{
    *out = (struct member_said){ .is_open = true };
    _cleanup_json_ json_t *params = json_object ();
    json_set_string (params, "id", task_id);
    _cleanup_json_ json_t *answer = ask (l, task_id, "GetTask", params, POLL_MS, cancel, NULL);
    const json_t *task = json_object_get (answer, "result");
    out->is_transport_failure = ! json_is_object (task);
    if (task)
        read_task (l, task, out);
}

void
member_cancel (const struct member_line *l, const char *task_id)
{
    _cleanup_json_ json_t *params = json_object ();
    json_set_string (params, "id", task_id);
    json_decref (ask (l, task_id, "CancelTask", params, CANCEL_MS, NULL, NULL));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "session/handoff/child_question.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "door/tasks/intake.h"
#include "session/handoff/handoff.h"
#include "session/state/session.h"
#include "spawn/child/child_door.h"
#include "spawn/child/door_ask.h"

#include <string.h>

/* The first part of that kind in a status message. */
static const json_t *
part_of (const json_t *task, const char *kind)
{
    const json_t *message = json_object_get (json_object_get (task, "status"), "message");
    size_t i;
    const json_t *part;
    json_array_foreach (json_object_get (message, "parts"), i,
                        part) if (json_object_get (part, kind)) return json_object_get (part, kind);
    return NULL;
}

/* What it asks, when no status message says it: the `prompt` artifact. Owned. */
static char *
words_of (const json_t *task)
{
    const json_t *said = part_of (task, "text");
    if (said)
        return x_strdup (json_string_value (said));
    return door_parts_text (json_array_get (json_object_get (task, "artifacts"), 0));
}

struct passing {
    struct session *s;
    const struct task *running;
    struct delegation *d;
    char *words;
    json_t *data; /* NULL: a tool's own question, which takes any text */
    struct question_reply reply;
};

static bool
record_question (const struct passing *p)
{
    struct mur_error *err = NULL;
    const char *tool = json_get_string (p->data, "tool"), *what = json_get_string (p->data, "what");
    bool is_ok = TRACE (
        p->s->trace, &err, approval_requested, .turn = p->s->tally.totals.turns,
        .task_id = p->running->id, .question_id = question_id (p->data), .target = tool ? tool : "",
        .rules = p->d->capsule, .what = what ? what : "",
        .timeout_secs = (uint64_t)json_integer_value (json_object_get (p->data, "timeout_secs")),
        .delegation_id = p->d->id.text);
    mur_error_free (err);
    return is_ok;
}

static void
record_answer (const struct passing *p, uint64_t waited_ms)
{
    const char *tool = json_get_string (p->data, "tool"), *answer = p->reply.text;
    TRACE (p->s->trace, NULL, approval_answered, .turn = p->s->tally.totals.turns,
           .task_id = p->running->id, .question_id = question_id (p->data),
           .target = tool ? tool : "",
           .answer = answer                   ? answer
                     : p->reply.has_timed_out ? "timeout"
                                              : "canceled",
           .is_allowed = str_eq (answer, "once") || str_eq (answer, "session"), .by = p->reply.by,
           .waited_ms = waited_ms, .delegation_id = p->d->id.text);
}

static void
hand_down (const struct passing *p, struct cancel *cancel)
{
    _cleanup_json_ json_t *params =
        door_message_params (id_new ("ans_").text, p->data ? "" : p->reply.text);
    json_t *message = json_object_get (params, "message");
    json_set_string (message, "taskId", p->d->child_task_id);
    if (p->data) {
        json_t *part = json_array_get (json_object_get (message, "parts"), 0);
        json_object_clear (part);
        json_object_set_new (part, "data",
                             json_pack ("{s:s, s:s}", "question_id", question_id (p->data),
                                        "answer", p->reply.text));
    }
    child_door_answer (p->s->http, p->d->child, params, cancel);
}

static void
ask (struct passing *p, struct cancel *cancel)
{
    const json_t *secs = json_object_get (p->data, "timeout_secs");
    uint64_t timeout_ms = secs ? (uint64_t)json_integer_value (secs) * 1000 : UINT64_MAX;
    _cleanup_free_ char *text = x_asprintf ("%s asks: %s", delegation_bare (p->d), p->words);
    const struct question question = { text, p->data };
    uint64_t from_ms = clock_monotonic_ms ();
    if (p->data && ! record_question (p))
        return; /* what cannot be recorded is not asked; the child's own time limit answers it */
    bool is_answered = registry_ask (p->s->registry, p->running, &question, timeout_ms, &p->reply);
    if (p->data)
        record_answer (p, clock_monotonic_ms () - from_ms);
    if (is_answered)
        hand_down (p, cancel);
}

void
child_question_pass (struct session *s, const struct task *running, struct delegation *d,
                     const json_t *task, struct cancel *cancel)
{
    _cleanup_json_ json_t *looked_at =
        task ? NULL : child_door_task (s->http, d->child, d->child_task_id, cancel);
    const json_t *now = task ? task : looked_at;
    const char *state = json_get_string (json_object_get (now, "status"), "state");
    if (! str_eq (state, "TASK_STATE_INPUT_REQUIRED") || ! registry_can_ask (s->registry, running))
        return;
    const json_t *data = part_of (now, "data");
    struct passing p = { .s = s, .running = running, .d = d, .words = words_of (now) };
    /* What a child sends is no question of ours unless it has the two members that make it one. */
    if (question_id (data) && json_is_array (json_object_get (data, "answers")))
        p.data = json_deep_copy (data);
    ask (&p, cancel);
    free (p.words);
    json_decref (p.data);
    question_reply_clear (&p.reply);
}

void
child_questions_pass (struct session *s, struct running_task *t, struct delegations *set)
{
    _cleanup_strv_ struct strv ids = { 0 };
    delegations_list (set, t->task->id, &ids);
    for (size_t i = 0; i < ids.len && ! cancel_is_raised (t->cancel); i++) {
        struct delegation *d = delegations_find (set, ids.items[i]);
        if (d && d->child && d->child_task_id && ! d->is_blocking)
            child_question_pass (s, t->task, d, NULL, t->cancel);
    }
}

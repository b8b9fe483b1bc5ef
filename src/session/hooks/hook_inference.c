/* SPDX-License-Identifier: Apache-2.0
 *
 * run-inference: one completion a hook asks of the session's own driver (docs/spec/session.md
 * 9.4).
 *
 * Always true: it spends, is refused, retried and redacted like a turn, shows nothing on the
 * task's stream, and is recorded with the hook as its origin.
 */
#include "door/tasks/tasks.h"
#include "session/hooks/hook_messages.h"
#include "session/hooks/hooks_internal.h"

#include "base/alloc.h"
#include "base/tokens.h"
#include "session/model/inference_line.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>

/* The output cap for this model. */
static uint64_t
cap_of (const struct session *s, const struct hook *h, const char *model)
{
    const struct compaction *c = s->manifest->inference->compaction;
    if (h->serving.kind == HOOK_ON_COMPACTION && c && c->max_tokens.is_set)
        return c->max_tokens.value;
    for (size_t i = 0; i < s->choices.primary.model_cap_count; i++)
        if (str_eq (s->choices.primary.model_caps[i].model, model))
            return s->choices.primary.model_caps[i].cap;
    return s->choices.primary.output_cap;
}

/* A message that came from the task's list keeps who made it: another model's thinking is not sent
 * on. */
static void
keep_producer (const struct running_task *t, struct message *m)
{
    long at = t ? message_list_find (&t->list, m->id) : -1;
    if (at >= 0 && t->list.items[at]->produced_by_driver)
        message_set_producer (m, t->list.items[at]->produced_by_driver,
                              t->list.items[at]->produced_by_model);
}

static bool
take_messages (const struct hook_messages *given, const struct running_task *t,
               struct message_list *list, const char **refusal)
{
    for (size_t i = 0; i < given->len; i++) {
        struct message *m = hook_message_take (&given->items[i]);
        if (! m) {
            *refusal = "a tool message lost its envelope: it cannot be sent";
            return false;
        }
        keep_producer (t, m);
        message_list_add (list, m);
    }
    return true;
}

/* Text blocks of the answer, one a line. */
static void
take_text (const json_t *content, struct arena *arena, struct inference_response *out)
{
    _cleanup_buf_ struct buf text = { 0 };
    for (size_t i = 0; i < json_array_size (content); i++) {
        const json_t *block = json_array_get (content, i);
        const json_t *value = json_object_get (block, "text");
        if (! str_eq (json_get_string (block, "type"), "text") || ! json_is_string (value))
            continue;
        if (text.len)
            buf_putc (&text, '\n');
        buf_append (&text, json_string_value (value), json_string_length (value));
    }
    out->text = arena_strndup (arena, text.data ? text.data : "", text.len);
    out->text_len = text.len;
}

static const char *
why_not (struct session *s, struct running_task *t, const struct driver_answer *a,
         const char *origin, struct arena *arena)
{
    switch (a->outcome) {
    case DRIVER_SPEND_REFUSED:
        TRACE (s->trace, NULL, spend_ceiling_reached, .turn = t ? t->counts.turns : 0,
               .task_id = t ? t->task->id : NULL, .limit = spend_limit_name (a->refusal.limit),
               .ceiling = a->refusal.ceiling, .used = a->refusal.used,
               .requested = a->refusal.requested, .origin = origin);
        return arena_printf (arena, "the %s spend ceiling was reached",
                             spend_limit_name (a->refusal.limit));
    case DRIVER_CANCELED:
        return "the call was cancelled";
    case DRIVER_FAILED:
        return arena_strdup (arena, a->reason);
    case DRIVER_MALFORMED:
    case DRIVER_NOT_RUN:
        return arena_strdup (arena, a->error->message);
    case DRIVER_RESPONSE:
        break;
    }
    return "the driver refused";
}

static bool
may_call (const struct hook *h, const struct running_task *t, const char **refusal)
{
    const struct session *s = h->session;
    const struct opt_u64 *cap = &s->manifest->inference->max_turns;
    bool has_driver = s->choices.primary.artifact && ! s->rooms.harness;
    if (has_driver && (! t || ! cap->is_set || cap->value > t->counts.turns + t->counts.hook_calls))
        return true;
    *refusal = has_driver ? "inference.max_turns was reached" : "there is no driver to ask";
    return false;
}

static bool
call (struct hook *h, struct running_task *t, struct request *r, struct message_list *list,
      struct arena *arena, struct inference_response *response, const char **refusal)
{
    struct session *s = h->session;
    uint64_t cap = cap_of (s, h, r->model);
    request_build (r, list, 0, cap, NULL);
    uint64_t estimate = request_tokens (r, list);
    _cleanup_free_ char *origin = x_asprintf ("hook:%s", h->name);
    const struct driver_caller caller = {
        .driver = &s->choices.primary,
        .origin = origin,
        .task_id = h->serving.task_id[0] ? h->serving.task_id : NULL,
        .turn = h->serving.turn,
        .output_cap = cap,
        .env = h->serving.kind == HOOK_ON_COMPACTION && s->choices.compaction_env.len
                   ? s->choices.compaction_env.items
                   : s->choices.primary.env.items,
        .cancel = t                   ? t->cancel
                  : h->serving.cancel ? h->serving.cancel
                                      : s->rooms.hooks->idle,
        .request = r,
        .list = list,
    };
    _cleanup_answer_ struct driver_answer a = { 0 };
    driver_call_as (s, &caller, estimate, &a);
    if (t)
        t->counts.hook_calls++;
    if (a.outcome == DRIVER_SPEND_REFUSED && t) {
        t->refusal.is_refused = true;
        t->refusal.why = a.refusal;
    }
    if (a.outcome != DRIVER_RESPONSE) {
        if (a.outcome != DRIVER_SPEND_REFUSED && a.outcome != DRIVER_CANCELED)
            inference_line_hook (s, &caller, r, list, &a, estimate);
        *refusal = why_not (s, t, &a, origin, arena);
        return false;
    }
    inference_line_hook (s, &caller, r, list, &a, estimate);
    if (t) {
        t->counts.input_tokens += estimate;
        t->counts.output_tokens += a.tokens;
        s->tally.totals.input_tokens += estimate;
        s->tally.totals.output_tokens += a.tokens;
    }
    take_text (json_object_get (a.body, "content"), arena, response);
    response->model_used = arena_strdup (arena, r->model);
    response->input_tokens = estimate;
    response->output_tokens = a.tokens;
    return true;
}

bool
hook_run_inference (void *ctx, const struct inference_request *request, struct arena *arena,
                    struct inference_response *response, const char **refusal)
{
    struct hook *h = ctx;
    struct session *s = h->session;
    struct running_task *t = h->serving.task;
    if (! s->trace) {
        *refusal = "there is no driver to ask before the session has started";
        return false;
    }
    if (! may_call (h, t, refusal))
        return false;
    _cleanup_messages_ struct message_list list = { 0 };
    if (! take_messages (&request->messages, t, &list, refusal))
        return false;
    struct request r;
    request_init (&r,
                  request->model && request->model[0] ? request->model : s->choices.primary.model,
                  x_strdup ("[]"), x_strdup (request->system_prompt ? request->system_prompt : ""),
                  s->manifest->name, s->manifest->version,
                  h->serving.task_id[0] ? h->serving.task_id : s->id.text);
    r.reader = request_reader_of (s, &s->choices.primary, r.model);
    bool is_done = call (h, t, &r, &list, arena, response, refusal);
    request_free (&r);
    return is_done;
}

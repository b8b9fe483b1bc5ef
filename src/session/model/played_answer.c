/* SPDX-License-Identifier: Apache-2.0 */
#include "session/model/played_answer.h"

#include "base/alloc.h"
#include "replay/play/play_model.h"
#include "session/conversation/redact_json.h"
#include "session/state/session.h"

#include <string.h>

/* The messages the request holds, as the driver is sent them. */
static void
fill_messages (const struct driver_caller *c, struct arena *arena, struct play_request *out)
{
    const struct request *r = c->request;
    out->messages = arena_new_array (arena, const char *, r->count + 1);
    out->message_shas = arena_new_array (arena, const char *, r->count + 1);
    out->message_lens = arena_new_array (arena, size_t, r->count + 1);
    for (size_t i = r->first; i < r->first + r->count; i++) {
        struct message *m = request_view (r, c->list->items[i]);
        if (! m)
            continue;
        out->messages[out->message_count] = m->wire;
        out->message_lens[out->message_count] = m->wire_len;
        out->message_shas[out->message_count++] = message_sha (m);
    }
}

static enum play_answer
ask (struct session *s, const struct driver_caller *c, const struct rec_model **model,
     const struct rec_refusal **refusal, struct mur_error **err)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    const char *written = s->choices.primary.config;
    _cleanup_free_ char *config =
        written ? redact_json_text (s->redactor, written) : x_strdup ("null");
    struct play_request now = {
        .origin = c->origin,
        .turn = c->turn,
        .model = c->request->model,
        .max_tokens = c->output_cap,
        .driver_config = config,
        .system = c->request->system,
        .system_sha = c->request->system_sha,
        .tools = c->request->tools,
        .tools_sha = c->request->tools_sha,
    };
    fill_messages (c, arena, &now);
    return player_ask (s->asked->player, &now, model, refusal, err);
}

/* A call that failed for good then fails the same way now. */
static void
fail (const struct rec_model *m, struct driver_answer *out)
{
    static const struct {
        const char *code;
        enum driver_outcome outcome;
    } kinds[] = { { "malformed_response", DRIVER_MALFORMED }, { "driver_failed", DRIVER_NOT_RUN } };
    static const char *const stops[] = { "max_retries", "retry_after", "deadline" };
    const char *reason = m->error ? m->error : "";
    out->outcome = DRIVER_FAILED;
    out->provider_status = m->provider_status;
    for (size_t i = 0; i < ARRAY_LEN (kinds); i++)
        if (str_eq (kinds[i].code, m->error_code))
            out->outcome = kinds[i].outcome;
    for (size_t i = 0; i < ARRAY_LEN (stops); i++)
        if (str_eq (stops[i], m->retry_stopped))
            out->retry_stopped = stops[i];
    if (out->outcome != DRIVER_FAILED) {
        mur_fail (&out->error, out->outcome == DRIVER_MALFORMED ? E_RUN_007 : E_RUN_001, "%s",
                  reason);
        return;
    }
    out->cause =
        str_eq (m->error_code, "credential_rejected") ? "credential_rejected" : "driver_error";
    out->reason = x_strdup (reason);
}

static void
serve (struct session *s, const struct driver_caller *c, const struct rec_model *m,
       uint64_t estimate, struct driver_answer *out)
{
    if (! spend_admit (s->spend, estimate, c->output_cap, &out->refusal)) {
        out->outcome = DRIVER_SPEND_REFUSED;
        return;
    }
    out->attempts = m->attempts ? m->attempts : 1;
    if (m->charged_tokens) {
        spend_settle (s->spend, m->charged_tokens, 0);
        spend_admit (s->spend, estimate, c->output_cap, &out->refusal);
    }
    if (m->error_code) {
        spend_release (s->spend);
        fail (m, out);
        return;
    }
    struct buf text = { 0 };
    if (! record_body (player_record (s->asked->player), m->response_sha, &text, &out->error)) {
        spend_release (s->spend);
        buf_free (&text);
        out->outcome = DRIVER_NOT_RUN;
        return;
    }
    size_t len = text.len;
    driver_answer_take (s, buf_steal (&text), len, NULL, estimate, out);
    if (m->continuation_id)
        out->continuation_id = x_strdup (m->continuation_id);
}

void
played_compare (struct session *s, const struct driver_caller *c, const struct rec_model *then,
                uint64_t estimate, struct driver_answer *out)
{
    player_decided (s->asked->player, then, out->text, out->text_len);
    driver_answer_clear (out);
    *out = (struct driver_answer){ 0 };
    serve (s, c, then, estimate, out);
}

bool
played_answer (struct session *s, const struct driver_caller *c, uint64_t estimate,
               struct driver_answer *out, const struct rec_model **then)
{
    const struct rec_model *model = NULL;
    const struct rec_refusal *refusal = NULL;
    *then = NULL;
    if (! s->asked->player)
        return false;
    switch (ask (s, c, &model, &refusal, &out->error)) {
    case PLAY_COMPARE:
        *then = model;
        return false;
    case PLAY_ASK:
        return false;
    case PLAY_ANSWER:
        serve (s, c, model, estimate, out);
        return true;
    case PLAY_CANCELED:
        out->outcome = DRIVER_CANCELED;
        return true;
    case PLAY_REFUSED:
        out->outcome = DRIVER_SPEND_REFUSED;
        out->refusal = (struct spend_refusal){
            .limit = str_eq (refusal->limit, "machine") ? SPEND_MACHINE : SPEND_SESSION,
            .ceiling = refusal->ceiling,
            .used = refusal->used,
            .requested = refusal->requested,
        };
        return true;
    case PLAY_STOP:
        break;
    }
    out->outcome = DRIVER_NOT_RUN;
    return true;
}

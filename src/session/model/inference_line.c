/* SPDX-License-Identifier: Apache-2.0 */
#include "session/model/inference_line.h"
#include "trace/lines/blobs.h"

#include "base/alloc.h"
#include "door/tasks/tasks.h"
#include "policy/input_budget.h"
#include "session/conversation/redact_json.h"
#include "session/state/session.h"
#include "trace/lines/sent_lists.h"

#include <string.h>

static const char *
tool_name_of (const json_t *content)
{
    for (size_t i = 0; i < json_array_size (content); i++) {
        const json_t *block = json_array_get (content, i);
        if (str_eq (json_get_string (block, "type"), "tool_call"))
            return json_get_string (block, "name");
    }
    return NULL;
}

/* What both kinds of lines say of the call. <strings> own what the line borrows. */
struct line_texts {
    struct sent_message *sent; /* all messages; the line lists those after base.kept */
    size_t sent_count;
    struct sent_base base;
    struct buf ids, shas;
    char *driver_config;
    char budget[24];
};

static void
line_texts_clear (struct line_texts *x)
{
    free (x->sent);
    buf_free (&x->ids);
    buf_free (&x->shas);
    free (x->driver_config);
}

static void
fill_messages (struct session *s, struct message_list *list, struct request *request,
               bool with_shas, struct line_texts *x)
{
    x->sent = x_new_array (struct sent_message, request->count + 1);
    for (size_t i = request->first; i < request->first + request->count; i++) {
        struct message *m = request_view (request, list->items[i]);
        if (m)
            x->sent[x->sent_count++] =
                (struct sent_message){ m->id, with_shas ? message_sha (m) : "" };
    }
    x->base = sent_lists_find (s->choices.sent, x->sent, x->sent_count);
    buf_putc (&x->ids, '[');
    buf_putc (&x->shas, '[');
    for (size_t i = x->base.kept; i < x->sent_count; i++) {
        const char *comma = i > x->base.kept ? "," : "";
        buf_printf (&x->ids, "%s\"%s\"", comma, x->sent[i].id);
        buf_printf (&x->shas, "%s\"%s\"", comma, x->sent[i].sha);
    }
    buf_putc (&x->ids, ']');
    buf_putc (&x->shas, ']');
}

static void
fill_sent (struct session *s, struct message_list *list, struct request *request,
           uint64_t input_budget, bool with_shas, struct line_texts *x)
{
    fill_messages (s, list, request, with_shas, x);
    x->driver_config = s->choices.primary.config
                           ? redact_json_text (s->redactor, s->choices.primary.config)
                           : x_strdup ("null");
    if (input_budget)
        snprintf (x->budget, sizeof (x->budget), "%llu", (unsigned long long)input_budget);
    else
        snprintf (x->budget, sizeof (x->budget), "null");
}

/* <choice> and <output_cap> are the call's; the choice is named only where there are several. */
static struct trace_inference
common_line (const struct session *s, const struct choice *choice, uint64_t output_cap,
             const struct driver_answer *a, const struct line_texts *x)
{
    bool has_choices = s->choices.count > 1;
    return (struct trace_inference){
        .driver_choice = has_choices ? choice->name : NULL,
        .model = has_choices ? choice->model : NULL,
        .input_tokens_actual = a->usage.input,
        .output_tokens_actual = a->usage.output,
        .cached_tokens = a->usage.cached,
        .cache_write_tokens = a->usage.cache_write,
        .thinking_tokens = a->usage.thinking,
        .max_output_tokens = TRACE_NUM (output_cap),
        .input_budget = x->budget,
        .driver_config = x->driver_config,
        .messages_after = x->base.kept ? x->base.after : NULL,
        .message_count = { x->base.kept > 0, (int64_t)x->sent_count },
        .message_ids = x->ids.data,
        .attempts = { a->attempts > 1, a->attempts },
    };
}

/* Under capture: content, every hashed body is kept beside the trace. */
static bool
store_bodies (struct session *s, struct message_list *list, struct request *r,
              const struct driver_answer *a, const char *response_sha, struct mur_error **err)
{
    if (! trace_blob_store (s->places.records, r->system_sha, r->system, strlen (r->system), err) ||
        ! trace_blob_store (s->places.records, r->tools_sha, r->tools, strlen (r->tools), err) ||
        ! trace_blob_store (s->places.records, response_sha, a->text, a->text_len, err))
        return false;
    for (size_t i = r->first; i < r->first + r->count; i++) {
        struct message *m = request_view (r, list->items[i]);
        if (! m || m->is_stored)
            continue;
        if (! trace_blob_store (s->places.records, message_sha (m), m->wire, m->wire_len, err))
            return false;
        m->is_stored = true;
    }
    return true;
}

static struct trace_inference
turn_line (const struct session *s, const struct running_task *t, const struct driver_answer *a,
           const struct line_texts *x)
{
    struct trace_inference line = common_line (s, t->choice.driver, t->choice.output_cap, a, x);
    line.turn = t->counts.turns;
    line.task_id = t->task->id;
    return line;
}

/* Writes a line that says what was sent; later lines may go on from it. */
static bool
write_line (struct session *s, const struct trace_inference *line, const struct line_texts *x,
            struct mur_error **err)
{
    struct id id = { 0 };
    if (! trace_write (s->trace, TRACE_EVENT_inference, line, &id, err))
        return false;
    if (! line->error_code)
        sent_lists_add (s->choices.sent, id.text, &x->base, x->sent, x->sent_count);
    return true;
}

bool
inference_line_answered (struct session *s, struct running_task *t, struct request *request,
                         const struct driver_answer *a, uint64_t input_tokens,
                         struct mur_error **err)
{
    enum trace_capture capture = session_capture (s);
    char response_sha[SHA256_HEX_LEN + 1] = "";
    __attribute__ ((cleanup (line_texts_clear))) struct line_texts x = { 0 };
    fill_sent (s, &t->list, request, t->choice.input_budget, capture != CAPTURE_NONE, &x);
    struct trace_inference line = turn_line (s, t, a, &x);
    const char *stop = json_get_string (a->body, "stop_reason");
    const json_t *content = json_object_get (a->body, "content");
    line.input_tokens = TRACE_NUM (input_tokens);
    line.output_tokens = TRACE_NUM (a->tokens);
    const char *provider_stop = json_get_string (a->body, "provider_stop_reason");
    line.stop_reason = provider_stop && provider_stop[0] ? provider_stop : stop ? stop : "";
    line.decision = str_eq (stop, "tool_call")  ? "tool_call"
                    : str_eq (stop, "end_turn") ? "end_turn"
                                                : "text";
    line.tool_name = str_eq (stop, "tool_call") ? tool_name_of (content) : NULL;
    if (capture >= CAPTURE_CONTENT)
        line.continuation_id = a->continuation_id;
    if (capture != CAPTURE_NONE) {
        sha256_hex (a->text, a->text_len, response_sha);
        line.system_sha = request->system_sha;
        line.tools_sha = request->tools_sha;
        line.response_sha = response_sha;
        line.message_shas = x.shas.data;
    }
    if (capture >= CAPTURE_CONTENT && ! store_bodies (s, &t->list, request, a, response_sha, err))
        return false;
    return write_line (s, &line, &x, err);
}

static void
fill_failure (struct trace_inference *line, const struct driver_answer *a)
{
    static const char *const codes[] = { [DRIVER_FAILED] = "driver_error",
                                         [DRIVER_MALFORMED] = "malformed_response",
                                         [DRIVER_NOT_RUN] = "driver_failed" };
    line->decision = line->stop_reason = "error";
    line->error_code = a->cause ? a->cause : codes[a->outcome];
    line->error = a->reason ? a->reason : a->error ? a->error->message : "";
    line->provider_status = (struct trace_num){ a->provider_status > 0, a->provider_status };
    line->retry_stopped = a->retry_stopped;
}

void
inference_line_failed (struct session *s, struct running_task *t, struct request *request,
                       const struct driver_answer *a)
{
    __attribute__ ((cleanup (line_texts_clear))) struct line_texts x = { 0 };
    fill_sent (s, &t->list, request, t->choice.input_budget, false, &x);
    struct trace_inference line = turn_line (s, t, a, &x);
    fill_failure (&line, a);
    trace_write (s->trace, TRACE_EVENT_inference, &line, NULL, NULL);
}

void
inference_line_hook (struct session *s, const struct driver_caller *caller, struct request *request,
                     struct message_list *list, const struct driver_answer *a,
                     uint64_t input_tokens)
{
    enum trace_capture capture = a->outcome == DRIVER_RESPONSE ? session_capture (s) : CAPTURE_NONE;
    char response_sha[SHA256_HEX_LEN + 1] = "";
    __attribute__ ((cleanup (line_texts_clear))) struct line_texts x = { 0 };
    const char *basis;
    fill_sent (s, list, request,
               policy_input_budget (caller->driver->window, caller->driver->input_ceiling,
                                    caller->output_cap, &basis),
               capture != CAPTURE_NONE, &x);
    struct trace_inference line = common_line (s, caller->driver, caller->output_cap, a, &x);
    line.turn = caller->turn;
    line.task_id = caller->task_id;
    line.origin = caller->origin;
    line.model = request->model;
    if (a->outcome == DRIVER_RESPONSE) {
        line.input_tokens = TRACE_NUM (input_tokens);
        line.output_tokens = TRACE_NUM (a->tokens);
        line.decision = "text";
    } else {
        fill_failure (&line, a);
    }
    if (capture != CAPTURE_NONE) {
        sha256_hex (a->text, a->text_len, response_sha);
        line.system_sha = request->system_sha;
        line.tools_sha = request->tools_sha;
        line.response_sha = response_sha;
        line.message_shas = x.shas.data;
    }
    if (capture >= CAPTURE_CONTENT && ! store_bodies (s, list, request, a, response_sha, NULL))
        return;
    write_line (s, &line, &x, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/running/watch_view.h"

#include "base/alloc.h"
#include "cli/running/task_words.h"
#include "cli/running/watch_flow.h"
#include "cli/running/watch_text.h"
#include "door/card/card.h"

#include <inttypes.h>
#include <string.h>

#define CONTEXT_SHOWN 12

/* --- what was seen --- */

static struct watched_task *
task_of (struct watch_view *v, const char *id, const char *context_id)
{
    for (struct watched_task *t = v->tasks; t; t = t->next)
        if (str_eq (t->id, id))
            return t;
    struct watched_context *c = v->contexts;
    while (c && ! str_eq (c->id, context_id))
        c = c->next;
    if (! c) {
        c = x_new0 (struct watched_context);
        c->id = x_strdup (context_id);
        c->next = v->contexts;
        v->contexts = c;
    }
    struct watched_task *t = x_new0 (struct watched_task);
    t->id = x_strdup (id);
    t->number = ++c->tasks;
    t->next = v->tasks;
    v->tasks = t;
    return t;
}

static void
task_free (struct watched_task *t)
{
    free (t->id);
    free (t->answer);
    free (t);
}

static void
task_forget (struct watch_view *v, struct watched_task *task)
{
    for (struct watched_task **link = &v->tasks; *link; link = &(*link)->next)
        if (*link == task) {
            *link = task->next;
            task_free (task);
            return;
        }
}

static void
calls_clear (struct watch_view *v)
{
    for (struct call_line *c = v->calls, *next; c; c = next) {
        next = c->next;
        free (c->id);
        free (c->name);
        free (c);
    }
    v->calls = NULL;
}

static const char *
call_name (const struct watch_view *v, const char *id)
{
    for (const struct call_line *c = v->calls; c; c = c->next)
        if (str_eq (c->id, id))
            return c->name;
    return "a tool";
}

/* --- lines --- */

/* "ctx_01234567... / turn 2" */
static char *
turn_words (const char *context_id, const struct watched_task *task)
{
    return x_asprintf ("%.*s... / turn %" PRIu64, CONTEXT_SHOWN, context_id, task->number);
}

/* The heading of a task, once each time the view turns to it. */
static void
head_task (struct watch_view *v, const struct watched_task *task, const char *context_id)
{
    if (! v->style.is_terminal || v->style.is_own || str_eq (v->shown_task, task->id))
        return;
    view_break_flow (v);
    free (v->shown_task);
    v->shown_task = x_strdup (task->id);
    _cleanup_buf_ struct buf title = { 0 };
    buf_puts (&title, "● ");
    text_put_safe (&title, task->id, "");
    view_put_inked (v, INK_BOLD, title.data);
    if (v->is_threaded) {
        _cleanup_free_ char *turn = turn_words (context_id, task);
        _cleanup_buf_ struct buf safe = { 0 };
        buf_puts (&safe, "  ");
        text_put_safe (&safe, turn, "");
        view_put_inked (v, INK_DIM, safe.data);
    }
    buf_putc (v->out, '\n');
}

static char *
spent (struct watch_view *v)
{
    return v->style.spent ? v->style.spent (v->style.spent_ctx) : NULL;
}

/* --- statuses --- */

/* The first text part of a message, or "". Borrowed. */
static const char *
message_text (const json_t *message)
{
    const char *text =
        json_get_string (json_array_get (json_object_get (message, "parts"), 0), "text");
    return text ? text : "";
}

static bool
is_ending (const char *state)
{
    static const char *const endings[] = { "completed", "failed", "canceled", "rejected" };
    for (size_t i = 0; i < ARRAY_LEN (endings); i++)
        if (str_eq (state, endings[i]))
            return true;
    return false;
}

/* Said after the state of an ending: why it failed. The other endings' words only repeat it. */
static const char *
ending_reason (const char *state, const char *text)
{
    return str_eq (state, "failed") || str_eq (state, "rejected") ? text : "";
}

static void
plain_status (struct watch_view *v, const struct watched_task *task, const char *context_id,
              const char *state, const char *text)
{
    view_break_flow (v);
    bool is_over = is_ending (state);
    const char *shown = is_over ? ending_reason (state, text) : text;
    _cleanup_free_ char *turn = v->is_threaded ? turn_words (context_id, task) : NULL;
    buf_printf (v->out, "[%s%s%s]%s%s\n", turn ? turn : "", turn ? " / " : "", state,
                *shown ? "  " : "", shown);
    if (! is_over)
        return;
    if (str_eq (state, "completed") && task->answer)
        text_put_wrapped (v->out, task->answer);
    buf_putc (v->out, '\n');
}

static void
live_ending (struct watch_view *v, const struct watched_task *task, const char *state,
             const char *text)
{
    if (task->answer && ! task->has_text && str_eq (state, "completed")) {
        view_flow_begin (v);
        view_flow_text (v, task->answer);
        view_flow_word (v);
        buf_putc (v->out, '\n');
    }
    bool is_good = str_eq (state, "completed");
    bool is_bad = str_eq (state, "failed") || str_eq (state, "rejected");
    enum ink colour = is_good ? INK_GOOD : is_bad ? INK_BAD : INK_ASKING;
    _cleanup_free_ char *line = x_asprintf ("  %s %s", is_good ? "✓" : is_bad ? "✗" : "■", state);
    view_put_inked (v, colour, line);
    const char *reason = ending_reason (state, text);
    if (*reason) {
        buf_puts (v->out, "  ");
        text_put_safe (v->out, reason, "    ");
    }
    _cleanup_buf_ struct buf counts = { 0 };
    buf_printf (&counts, "  %" PRIu64 " turn%s", task->turns, task->turns == 1 ? "" : "s");
    if (task->calls)
        buf_printf (&counts, ", %" PRIu64 " call%s", task->calls, task->calls == 1 ? "" : "s");
    _cleanup_free_ char *money = spent (v);
    if (money)
        buf_printf (&counts, "  (session: %s)", money);
    view_put_inked (v, INK_DIM, counts.data);
    buf_puts (v->out, "\n\n");
}

static void
live_status (struct watch_view *v, struct watched_task *task, const char *state, const char *text)
{
    view_break_flow (v);
    if (is_ending (state)) {
        live_ending (v, task, state, text);
        free (v->shown_task);
        v->shown_task = NULL;
        return;
    }
    bool is_asking = str_eq (state, "input-required") || str_eq (state, "auth-required");
    _cleanup_buf_ struct buf line = { 0 };
    if (str_starts (text, "inference turn ")) {
        buf_puts (&line, "  ");
        text_put_safe (&line, text + strlen ("inference "), "  ");
    } else {
        buf_printf (&line, "  %s ", is_asking ? "?" : "·");
        text_put_safe (&line, *text ? text : state, "    ");
    }
    view_put_inked (v, is_asking ? INK_ASKING : INK_DIM, line.data);
    buf_putc (v->out, '\n');
}

static void
on_status (struct watch_view *v, struct watched_task *task, const json_t *update)
{
    const json_t *status = json_object_get (update, "status");
    _cleanup_free_ char *state = printed_state (json_get_string (status, "state"));
    const char *context_id = json_get_string (update, "contextId");
    const char *text = message_text (json_object_get (status, "message"));
    if (str_starts (text, "inference turn ")) {
        task->turns++;
        task->has_text = false;
        calls_clear (v);
    }
    head_task (v, task, context_id ? context_id : "");
    if (v->style.is_terminal)
        live_status (v, task, state, text);
    else
        plain_status (v, task, context_id ? context_id : "", state, text);
    if (is_ending (state))
        task_forget (v, task);
}

/* --- frames --- */

static void
on_text (struct watch_view *v, struct watched_task *task, const json_t *frame)
{
    const char *text = json_get_string (frame, "text");
    if (text && *text) {
        if (v->flow != FLOW_TEXT) {
            view_break_flow (v);
            if (v->style.is_terminal)
                view_flow_begin (v);
        }
        if (v->style.is_terminal)
            view_flow_text (v, text);
        else
            buf_puts (v->out, text);
        task->has_text = true;
        v->flow = ! v->style.is_terminal && str_ends (text, "\n") ? FLOW_NONE : FLOW_TEXT;
    }
    if (json_is_true (json_object_get (frame, "final")))
        view_break_flow (v);
}

/* Thinking is for people at a terminal: dimmed, apart from what the agent says. */
static void
on_thinking (struct watch_view *v, struct watched_task *task, const json_t *frame)
{
    (void)task;
    const char *text = json_get_string (frame, "text");
    if (! v->style.is_terminal || ! text || ! *text)
        return;
    if (v->flow != FLOW_THINKING) {
        view_break_flow (v);
        view_flow_begin (v);
    }
    view_ink (v, INK_DIM);
    view_flow_text (v, text);
    view_ink_end (v, INK_DIM);
    v->flow = FLOW_THINKING;
}

/* The live line of a call the model is still writing; the result's line takes its place. */
static void
call_line (struct watch_view *v, const char *name, uint64_t bytes)
{
    view_break_flow (v);
    _cleanup_buf_ struct buf line = { 0 };
    buf_puts (&line, "  … ");
    text_put_safe (&line, name, "");
    if (bytes)
        buf_printf (&line, "  %" PRIu64 " bytes", bytes);
    view_put_inked (v, INK_CALL, line.data);
    v->flow = FLOW_CALL;
}

static void
on_call_started (struct watch_view *v, struct watched_task *task, const json_t *frame)
{
    (void)task;
    const char *id = json_get_string (frame, "toolCallId");
    const char *name = json_get_string (frame, "toolName");
    if (! v->style.is_terminal || ! id || ! name)
        return;
    struct call_line *c = x_new0 (struct call_line);
    c->id = x_strdup (id);
    c->name = x_strdup (name);
    c->next = v->calls;
    v->calls = c;
    call_line (v, name, 0);
}

static void
on_call_progress (struct watch_view *v, struct watched_task *task, const json_t *frame)
{
    (void)task;
    uint64_t bytes;
    if (v->style.is_terminal && json_get_u64 (frame, "inputBytes", &bytes))
        call_line (v, call_name (v, json_get_string (frame, "toolCallId")), bytes);
}

/* "ok, exit 0, 12ms, truncated" */
static char *
result_words (const json_t *frame)
{
    struct buf words = { 0 };
    buf_puts (&words, json_is_true (json_object_get (frame, "isError")) ? "error" : "ok");
    const json_t *exit_code = json_object_get (frame, "exitCode");
    const json_t *duration = json_object_get (frame, "durationMs");
    if (json_is_integer (exit_code))
        buf_printf (&words, ", exit %lld", (long long)json_integer_value (exit_code));
    if (json_is_integer (duration))
        buf_printf (&words, ", %lldms", (long long)json_integer_value (duration));
    if (json_is_true (json_object_get (frame, "truncated")))
        buf_puts (&words, ", truncated");
    return buf_steal (&words);
}

static const char fence_end[] = "</untrusted-content>";

static void
plain_artifact (struct watch_view *v, const char *name, const char *content, const char *words)
{
    buf_printf (v->out, "[artifact] tool: %s [%s] | ", name, words);
    for (const char *line = content; *line;) {
        size_t len = strcspn (line, "\n");
        /* The word at a fence's end is between runtime and model. */
        size_t shown = str_starts (line, fence_end) ? sizeof fence_end - 1 : len;
        buf_printf (v->out, "%s%.*s\n", line == content ? "" : "  ", (int)shown, line);
        line += len + (line[len] == '\n');
    }
    if (! *content)
        buf_putc (v->out, '\n');
}

static void
on_artifact (struct watch_view *v, struct watched_task *task, const json_t *frame)
{
    const char *name = json_get_string (frame, "toolName");
    const char *content = json_get_string (frame, "content");
    name = name ? name : "";
    content = content ? content : "";
    _cleanup_free_ char *words = result_words (frame);
    view_break_flow (v);
    task->calls++;
    if (! v->style.is_terminal) {
        plain_artifact (v, name, content, words);
        return;
    }
    bool is_error = json_is_true (json_object_get (frame, "isError"));
    buf_puts (v->out, "  ");
    view_put_inked (v, is_error ? INK_BAD : INK_GOOD, is_error ? "✗" : "✓");
    buf_putc (v->out, ' ');
    _cleanup_buf_ struct buf safe = { 0 };
    text_put_safe (&safe, name, "");
    view_put_inked (v, INK_CALL, safe.data ? safe.data : "");
    size_t width = view_width (v);
    size_t used = text_columns (name, strlen (name)) + strlen (words) + 12;
    _cleanup_free_ char *first = text_first_words (content, used + 8 < width ? width - used : 8);
    _cleanup_free_ char *rest = x_asprintf ("  [%s]  %s", words, first);
    view_put_inked (v, INK_DIM, rest);
    buf_putc (v->out, '\n');
}

static const struct {
    const char *name;
    void (*show) (struct watch_view *v, struct watched_task *task, const json_t *frame);
} task_frames[] = {
    { "text", on_text },
    { "thinking", on_thinking },
    { "tool-call-started", on_call_started },
    { "tool-call-progress", on_call_progress },
    { "artifact", on_artifact },
};

static const json_t *
frame_of (const json_t *carrier)
{
    return json_object_get (json_object_get (carrier, "metadata"), CARD_STREAM_URI);
}

/* Frames of the session as a whole. */
static bool
on_session_frame (struct watch_view *v, const json_t *frame)
{
    const char *name = json_get_string (frame, "frame");
    uint64_t number;
    if (str_eq (name, "capsule-closed"))
        return false;
    if (str_eq (name, "connection-ack"))
        v->is_threaded = str_eq (json_get_string (frame, "conversationMode"), "threaded");
    else if (str_eq (name, "gap") && json_get_u64 (frame, "firstAvailableId", &number))
        buf_printf (v->notes,
                    "warning: earlier events are no longer held by the capsule; the first one left "
                    "is %" PRIu64 "\n",
                    number);
    else if (str_eq (name, "lagged") && json_get_u64 (frame, "missed", &number))
        buf_printf (v->notes, "warning: %" PRIu64 " event%s missed: this watch was too slow\n",
                    number, number == 1 ? " was" : "s were");
    return true;
}

static void
on_answer (struct watched_task *task, const json_t *update)
{
    const json_t *artifact = json_object_get (update, "artifact");
    if (! str_eq (json_get_string (artifact, "name"), "response"))
        return;
    struct buf text = { 0 };
    size_t i;
    const json_t *part;
    json_array_foreach (json_object_get (artifact, "parts"), i, part)
    {
        const char *piece = json_get_string (part, "text");
        buf_puts (&text, piece ? piece : "");
    }
    free (task->answer);
    task->answer = buf_steal (&text);
}

static void
on_task_update (struct watch_view *v, const json_t *update, bool is_artifact)
{
    const char *id = json_get_string (update, "taskId");
    const char *context_id = json_get_string (update, "contextId");
    if (! id)
        return;
    struct watched_task *task = task_of (v, id, context_id ? context_id : "");
    const json_t *frame = frame_of (update);
    const char *name = json_get_string (frame, "frame");
    if (is_artifact) {
        on_answer (task, update);
    } else if (name) {
        for (size_t i = 0; i < ARRAY_LEN (task_frames); i++)
            if (str_eq (task_frames[i].name, name)) {
                head_task (v, task, context_id ? context_id : "");
                task_frames[i].show (v, task, frame);
            }
    } else {
        on_status (v, task, update);
    }
}

bool
watch_view_event (struct watch_view *v, const json_t *event, struct buf *out, struct buf *notes)
{
    v->out = out;
    v->notes = notes;
    const json_t *status = json_object_get (event, "statusUpdate");
    const json_t *artifact = json_object_get (event, "artifactUpdate");
    const json_t *message = json_object_get (event, "message");
    if (message)
        return on_session_frame (v, frame_of (message));
    if (status || artifact)
        on_task_update (v, status ? status : artifact, ! status);
    return true;
}

void
watch_view_end (struct watch_view *v, struct buf *out)
{
    v->out = out;
    view_break_flow (v);
}

struct watch_view *
watch_view_new (const struct watch_style *style)
{
    struct watch_view *v = x_new0 (struct watch_view);
    v->style = *style;
    return v;
}

void
watch_view_free (struct watch_view *v)
{
    if (! v)
        return;
    while (v->tasks)
        task_forget (v, v->tasks);
    for (struct watched_context *c = v->contexts, *next; c; c = next) {
        next = c->next;
        free (c->id);
        free (c);
    }
    calls_clear (v);
    buf_free (&v->word);
    free (v->shown_task);
    free (v);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The view of a watched session. See watch_view.h.
 */
#include "cli/running/watch_view.h"

#include "base/alloc.h"
#include "cli/running/task_words.h"
#include "door/card/card.h"

#include <inttypes.h>
#include <string.h>

#define ANSWER_COLUMNS  78
#define CONTEXT_SHOWN   12
#define COLUMNS_UNKNOWN 80

/* Which kind of text the cursor stands behind. */
enum flow {
    FLOW_NONE,     /* at the start of a line */
    FLOW_TEXT,     /* inside streamed text */
    FLOW_THINKING, /* inside streamed thinking */
    FLOW_CALL,     /* behind the live line of a call being written (terminal only) */
};

struct watched_task {
    char *id;
    uint64_t number; /* of its context, from 1 */
    char *answer;    /* of the `response` artifact; NULL until it came */
    uint64_t turns, calls;
    bool has_text; /* text was shown in this turn */
    struct watched_task *next;
};

struct watched_context {
    char *id;
    uint64_t tasks;
    struct watched_context *next;
};

struct call_line {
    char *id, *name;
    struct call_line *next;
};

struct watch_view {
    struct watch_style style;
    bool is_threaded;
    enum flow flow;
    struct watched_task *tasks;
    struct watched_context *contexts;
    struct call_line *calls; /* being written by the model */
    char *shown_task;        /* whose heading was printed last (terminal) */
    struct buf word;         /* of flowing text: not written yet, it may belong on the next line */
    size_t column, blanks;   /* where the text stands; blanks before the word */
    struct buf *out, *notes; /* of the event at hand */
};

/* --- colours --- */

enum ink { INK_PLAIN, INK_BOLD, INK_DIM, INK_GOOD, INK_BAD, INK_ASKING, INK_CALL };

static const char *const inks[] = {
    [INK_PLAIN] = "",        [INK_BOLD] = "\033[1m", [INK_DIM] = "\033[2m",
    [INK_GOOD] = "\033[32m", [INK_BAD] = "\033[31m", [INK_ASKING] = "\033[33m",
    [INK_CALL] = "\033[36m",
};

static void
ink (struct watch_view *v, enum ink which)
{
    if (v->style.has_colour && *inks[which])
        buf_puts (v->out, inks[which]);
}

static void
ink_end (struct watch_view *v, enum ink which)
{
    if (v->style.has_colour && *inks[which])
        buf_puts (v->out, "\033[0m");
}

static void
put_inked (struct watch_view *v, enum ink which, const char *text)
{
    ink (v, which);
    buf_puts (v->out, text);
    ink_end (v, which);
}

/* --- text --- */

/* The length of one character of text; broken bytes count one each. */
static size_t
char_len (const char *c)
{
    unsigned char lead = (unsigned char)*c;
    size_t len = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < len; i++)
        if (((unsigned char)c[i] & 0xc0) != 0x80)
            return i;
    return len;
}

/* A control character, C1 included: what a terminal would obey. */
static bool
is_control (const char *c)
{
    unsigned char a = (unsigned char)c[0];
    return a < 0x20 || a == 0x7f || (a == 0xc2 && (unsigned char)c[1] < 0xa0);
}

/* Appends text for a terminal: line ends are followed by <indent>, tabs kept, other controls "·".
 */
static void
put_safe (struct buf *out, const char *text, const char *indent)
{
    for (const char *c = text; *c; c += char_len (c)) {
        if (*c == '\n')
            buf_printf (out, "\n%s", indent);
        else if (*c == '\t')
            buf_putc (out, '\t');
        else if (is_control (c))
            buf_puts (out, "·");
        else
            buf_append (out, c, char_len (c));
    }
}

/* The first line that is not blank nor a fence, cut to <columns>. Owned. */
static char *
first_words (const char *text, size_t columns)
{
    struct buf line = { 0 };
    for (const char *start = text; *start;) {
        size_t len = strcspn (start, "\n");
        bool is_fence = len && (str_starts (start, "<untrusted-content") ||
                                str_starts (start, "</untrusted-content"));
        if (! is_fence && strspn (start, " \t\r") < len) {
            size_t shown = 0;
            for (const char *c = start; c < start + len && shown < columns; c += char_len (c)) {
                if (is_control (c))
                    buf_putc (&line, ' ');
                else
                    buf_append (&line, c, char_len (c));
                shown++;
            }
            if (shown == columns)
                buf_puts (&line, "…");
            break;
        }
        start += len + (start[len] == '\n');
    }
    return buf_steal (&line);
}

static size_t
columns_of (const char *word, size_t len)
{
    size_t columns = 0;
    for (size_t i = 0; i < len; i++)
        columns += ((unsigned char)word[i] & 0xc0) != 0x80;
    return columns;
}

/* One line of an answer, wrapped between words, each piece indented by two. */
static void
put_wrapped_line (struct buf *out, const char *line, size_t len)
{
    size_t column = 0, at = 0;
    while (at < len) {
        at += strspn (line + at, " \t\r");
        size_t word = 0;
        while (at + word < len && ! strchr (" \t\r", line[at + word]))
            word++;
        if (! word || at >= len)
            break;
        size_t columns = columns_of (line + at, word);
        if (column && column + 1 + columns > ANSWER_COLUMNS) {
            buf_putc (out, '\n');
            column = 0;
        }
        buf_puts (out, column ? " " : "  ");
        buf_append (out, line + at, word);
        column += columns + (column ? 1 : 0);
        at += word;
    }
    buf_putc (out, '\n');
}

static void
put_wrapped (struct buf *out, const char *text)
{
    size_t len = strlen (text);
    while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    for (size_t at = 0; at < len;) {
        size_t line = strcspn (text + at, "\n");
        if (at + line > len)
            line = len - at;
        put_wrapped_line (out, text + at, line);
        at += line + 1;
    }
}

/* --- flowing text: wrapped between words as it comes --- */

#define FLOW_INDENT "  "

static void
flow_begin (struct watch_view *v)
{
    buf_puts (v->out, FLOW_INDENT);
    v->column = strlen (FLOW_INDENT);
    v->blanks = 0;
}

static void
flow_word (struct watch_view *v)
{
    if (! v->word.len)
        return;
    size_t width = v->style.width ? v->style.width : COLUMNS_UNKNOWN;
    size_t columns = columns_of (v->word.data, v->word.len);
    if (v->column > strlen (FLOW_INDENT) && v->column + v->blanks + columns >= width) {
        buf_putc (v->out, '\n');
        flow_begin (v);
    }
    for (size_t i = 0; i < v->blanks; i++)
        buf_putc (v->out, ' ');
    buf_append (v->out, v->word.data, v->word.len);
    v->column += v->blanks + columns;
    v->blanks = 0;
    buf_truncate (&v->word, 0);
}

/* Controls are shown as "·"; a word is written once it is known to have ended. */
static void
flow_text (struct watch_view *v, const char *text)
{
    for (const char *c = text; *c; c += char_len (c)) {
        if (*c == '\n') {
            flow_word (v);
            buf_putc (v->out, '\n');
            flow_begin (v);
        } else if (*c == ' ' || *c == '\t') {
            flow_word (v);
            v->blanks += *c == ' ' ? 1 : 4;
        } else if (is_control (c))
            buf_puts (&v->word, "·");
        else
            buf_append (&v->word, c, char_len (c));
    }
}

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

/* Leaves streamed text or a live line: what follows starts a line. */
static void
break_flow (struct watch_view *v)
{
    if (v->flow == FLOW_CALL)
        buf_puts (v->out, "\r\033[K");
    else if (v->flow != FLOW_NONE) {
        enum ink last = v->flow == FLOW_THINKING && v->word.len ? INK_DIM : INK_PLAIN;
        ink (v, last);
        flow_word (v);
        ink_end (v, last);
        buf_putc (v->out, '\n');
    }
    v->flow = FLOW_NONE;
}

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
    if (! v->style.is_terminal || str_eq (v->shown_task, task->id))
        return;
    break_flow (v);
    free (v->shown_task);
    v->shown_task = x_strdup (task->id);
    _cleanup_buf_ struct buf title = { 0 };
    buf_puts (&title, "● ");
    put_safe (&title, task->id, "");
    put_inked (v, INK_BOLD, title.data);
    if (v->is_threaded) {
        _cleanup_free_ char *turn = turn_words (context_id, task);
        _cleanup_buf_ struct buf safe = { 0 };
        buf_puts (&safe, "  ");
        put_safe (&safe, turn, "");
        put_inked (v, INK_DIM, safe.data);
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
    break_flow (v);
    bool is_over = is_ending (state);
    const char *shown = is_over ? ending_reason (state, text) : text;
    _cleanup_free_ char *turn = v->is_threaded ? turn_words (context_id, task) : NULL;
    buf_printf (v->out, "[%s%s%s]%s%s\n", turn ? turn : "", turn ? " / " : "", state,
                *shown ? "  " : "", shown);
    if (! is_over)
        return;
    if (str_eq (state, "completed") && task->answer)
        put_wrapped (v->out, task->answer);
    buf_putc (v->out, '\n');
}

static void
live_ending (struct watch_view *v, const struct watched_task *task, const char *state,
             const char *text)
{
    if (task->answer && ! task->has_text && str_eq (state, "completed")) {
        flow_begin (v);
        flow_text (v, task->answer);
        flow_word (v);
        buf_putc (v->out, '\n');
    }
    bool is_good = str_eq (state, "completed");
    bool is_bad = str_eq (state, "failed") || str_eq (state, "rejected");
    enum ink colour = is_good ? INK_GOOD : is_bad ? INK_BAD : INK_ASKING;
    _cleanup_free_ char *line = x_asprintf ("  %s %s", is_good ? "✓" : is_bad ? "✗" : "■", state);
    put_inked (v, colour, line);
    const char *reason = ending_reason (state, text);
    if (*reason) {
        buf_puts (v->out, "  ");
        put_safe (v->out, reason, "    ");
    }
    _cleanup_buf_ struct buf counts = { 0 };
    buf_printf (&counts, "  %" PRIu64 " turn%s", task->turns, task->turns == 1 ? "" : "s");
    if (task->calls)
        buf_printf (&counts, ", %" PRIu64 " call%s", task->calls, task->calls == 1 ? "" : "s");
    _cleanup_free_ char *money = spent (v);
    if (money)
        buf_printf (&counts, "  (session: %s)", money);
    put_inked (v, INK_DIM, counts.data);
    buf_puts (v->out, "\n\n");
}

static void
live_status (struct watch_view *v, struct watched_task *task, const char *state, const char *text)
{
    break_flow (v);
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
        put_safe (&line, text + strlen ("inference "), "  ");
    } else {
        buf_printf (&line, "  %s ", is_asking ? "?" : "·");
        put_safe (&line, *text ? text : state, "    ");
    }
    put_inked (v, is_asking ? INK_ASKING : INK_DIM, line.data);
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
            break_flow (v);
            if (v->style.is_terminal)
                flow_begin (v);
        }
        if (v->style.is_terminal)
            flow_text (v, text);
        else
            buf_puts (v->out, text);
        task->has_text = true;
        v->flow = ! v->style.is_terminal && str_ends (text, "\n") ? FLOW_NONE : FLOW_TEXT;
    }
    if (json_is_true (json_object_get (frame, "final")))
        break_flow (v);
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
        break_flow (v);
        flow_begin (v);
    }
    ink (v, INK_DIM);
    flow_text (v, text);
    ink_end (v, INK_DIM);
    v->flow = FLOW_THINKING;
}

/* The live line of a call the model is still writing; the result's line takes its place. */
static void
call_line (struct watch_view *v, const char *name, uint64_t bytes)
{
    break_flow (v);
    _cleanup_buf_ struct buf line = { 0 };
    buf_puts (&line, "  … ");
    put_safe (&line, name, "");
    if (bytes)
        buf_printf (&line, "  %" PRIu64 " bytes", bytes);
    put_inked (v, INK_CALL, line.data);
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

static void
plain_artifact (struct watch_view *v, const char *name, const char *content, const char *words)
{
    buf_printf (v->out, "[artifact] tool: %s [%s] | ", name, words);
    for (const char *line = content; *line;) {
        size_t len = strcspn (line, "\n");
        buf_printf (v->out, "%s%.*s\n", line == content ? "" : "  ", (int)len, line);
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
    break_flow (v);
    task->calls++;
    if (! v->style.is_terminal) {
        plain_artifact (v, name, content, words);
        return;
    }
    bool is_error = json_is_true (json_object_get (frame, "isError"));
    buf_puts (v->out, "  ");
    put_inked (v, is_error ? INK_BAD : INK_GOOD, is_error ? "✗" : "✓");
    buf_putc (v->out, ' ');
    _cleanup_buf_ struct buf safe = { 0 };
    put_safe (&safe, name, "");
    put_inked (v, INK_CALL, safe.data ? safe.data : "");
    unsigned width = v->style.width ? v->style.width : COLUMNS_UNKNOWN;
    size_t used = columns_of (name, strlen (name)) + strlen (words) + 12;
    _cleanup_free_ char *first = first_words (content, used + 8 < width ? width - used : 8);
    _cleanup_free_ char *rest = x_asprintf ("  [%s]  %s", words, first);
    put_inked (v, INK_DIM, rest);
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
    break_flow (v);
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

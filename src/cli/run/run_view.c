/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_view.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/json_write.h"
#include "cli/line/line_reader.h"
#include "cli/line/terminal_width.h"
#include "cli/running/watch_view.h"
#include "door/tasks/question.h"
#include "door/tasks/streams.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ANOTHER_MS 5000

struct run_view {
    struct run_view_style style;
    struct watch_view *watch; /* NULL unless live */
    struct watcher *watcher;
    struct streams *streams;
    uint64_t before_live; /* the last event that does not come live */
    int wake_fd;
    atomic_bool is_ending;
    pthread_t thread;
    char *first_task; /* the id of the task seen first */
    char *answer;     /* of the task at hand, until it is printed; at the end of the first */

    /* What is asked at the terminal. */
    struct session *session;
    bool can_ask;
    struct line_reader reader;
    char *asking;  /* the task; NULL: nothing is asked */
    json_t *asked; /* the structured question; NULL: any text is an answer */
};

static void
on_wake (void *ctx)
{
    const struct run_view *v = ctx;
    uint64_t one = 1;
    (void)! write (v->wake_fd, &one, sizeof (one));
}

/* --- one event --- */

static void
show_live (struct run_view *v, const json_t *event)
{
    _cleanup_buf_ struct buf out = { 0 }, notes = { 0 };
    watch_view_event (v->watch, event, &out, &notes);
    if (out.len)
        out_raw (out.data, out.len);
}

static char *
parts_text (const json_t *parts)
{
    struct buf text = { 0 };
    size_t i;
    const json_t *part;
    json_array_foreach (parts, i, part)
    {
        const char *piece = json_get_string (part, "text");
        buf_puts (&text, piece ? piece : "");
    }
    return buf_steal (&text);
}

static void
print_answer (const char *text)
{
    /* A file or a pipe gets the bytes; a terminal, what is safe of them. */
    (isatty (STDOUT_FILENO) ? out_write : out_raw) (text, strlen (text));
    if (! str_ends (text, "\n"))
        out_puts ("\n");
}

static void
take_answer (struct run_view *v, const json_t *update)
{
    const json_t *artifact = json_object_get (update, "artifact");
    const char *task = json_get_string (update, "taskId");
    bool is_own = str_eq (task, v->first_task);
    if (! str_eq (json_get_string (artifact, "name"), "response") ||
        (v->style.has_task && ! is_own))
        return;
    _cleanup_free_ char *text = parts_text (json_object_get (artifact, "parts"));
    if (! v->style.is_json)
        print_answer (text);
    if (is_own && ! v->answer)
        v->answer = steal_ptr (&text);
}

static bool
is_state (const json_t *update, const char *state)
{
    return str_eq (json_get_string (json_object_get (update, "status"), "state"), state);
}

static const json_t *
message_parts (const json_t *update)
{
    return json_object_get (json_object_get (json_object_get (update, "status"), "message"),
                            "parts");
}

/* What is said while nothing else moves: every status but that a turn begins, and that somebody is
 * asked. */
static void
show_notice (const json_t *update)
{
    const char *text = json_get_string (json_array_get (message_parts (update), 0), "text");
    if (text && ! str_starts (text, "inference turn ") && is_state (update, "TASK_STATE_WORKING"))
        diag_progress ("%s", text);
}

/* The structured question of a status; NULL: any text is an answer. Borrowed. */
static const json_t *
structured_question (const json_t *update)
{
    size_t i;
    const json_t *part;
    json_array_foreach (message_parts (update), i, part)
    {
        const json_t *data = json_object_get (part, "data");
        if (question_id (data))
            return data;
    }
    return NULL;
}

/* One line for whoever is not asked at the terminal: what is asked, and how to answer. */
static void
show_question (const struct run_view *v, const json_t *update)
{
    const char *text = json_get_string (json_array_get (message_parts (update), 0), "text");
    if (! text || ! is_state (update, "TASK_STATE_INPUT_REQUIRED"))
        return;
    _cleanup_free_ char *line = x_strdup (text);
    for (char *c = line; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    diag_note ("the task asks: %s (answer with: mur answer %s %s)", line,
               session_id_text (v->session),
               structured_question (update) ? "once|session|no|never" : "\"...\"");
}

/* --- what a task asks --- */

static void
prompt (const struct run_view *v)
{
    out_puts (v->asked ? "once, session, no, never> " : "answer> ");
}

static void
stop_asking (struct run_view *v)
{
    free (v->asking);
    json_decref (v->asked);
    v->asking = NULL;
    v->asked = NULL;
}

static void
take_status (struct run_view *v, const json_t *update)
{
    bool asks = is_state (update, "TASK_STATE_INPUT_REQUIRED");
    const char *task = json_get_string (update, "taskId");
    if (v->asking && ! asks && str_eq (task, v->asking)) {
        out_puts ("\n"); /* answered elsewhere, or too late */
        stop_asking (v);
    }
    if (! asks || ! v->can_ask)
        return;
    stop_asking (v);
    v->asking = x_strdup (task);
    const json_t *question = structured_question (update);
    v->asked = question ? json_deep_copy (question) : NULL;
    prompt (v);
}

/* One line of the person. */
static void
take_line (struct run_view *v)
{
    _cleanup_buf_ struct buf line = { 0 };
    if (line_reader_next (&v->reader, &line) != LINE_READ) {
        v->can_ask = false; /* the others can still answer */
        stop_asking (v);
        return;
    }
    if (! v->asking || ! line.len)
        return;
    _cleanup_free_ char *why = NULL;
    _cleanup_free_ char *task = steal_ptr (&v->asking);
    _cleanup_json_ json_t *asked = steal_ptr (&v->asked);
    if (session_answer (v->session, task, question_id (asked), line.data, &why))
        return;
    if (why)
        diag_note ("%s", why);
    v->asking = steal_ptr (&task);
    v->asked = steal_ptr (&asked);
    prompt (v);
}

static void
take_event (struct run_view *v, const struct event *event)
{
    if (! v->first_task)
        v->first_task = x_strdup (event_task_id (event));
    bool is_live = v->style.mode == RUN_VIEW_LIVE;
    const char *text = event_text (event, is_live);
    _cleanup_json_ json_t *response = text ? json_loads (text, 0, NULL) : NULL;
    const json_t *artifact = json_object_get (response, "artifactUpdate");
    const json_t *status = json_object_get (response, "statusUpdate");
    if (is_live && response)
        show_live (v, response);
    if (is_live && status)
        take_status (v, status);
    if (is_live)
        return;
    if (artifact && v->style.mode != RUN_VIEW_ASKS)
        take_answer (v, artifact);
    if (status && v->style.mode == RUN_VIEW_PRINT)
        show_notice (status);
    if (status)
        show_question (v, status);
}

/* --- the thread --- */

static void
take_replay (struct run_view *v)
{
    struct replay replay;
    streams_replay (v->streams, 0, NULL, &replay);
    for (size_t i = 0; i < replay.len; i++)
        if (event_id (replay.events[i]) <= v->before_live)
            take_event (v, replay.events[i]);
    replay_free (&replay);
}

/* Takes all there is; false once there will be no more. */
static bool
take_waiting (struct run_view *v)
{
    for (;;) {
        struct event *event = NULL;
        uint64_t lost_through;
        switch (watcher_take (v->watcher, &event, &lost_through)) {
        case WATCHER_EVENT:
            take_event (v, event);
            event_unref (event);
            break;
        case WATCHER_LAGGED:
            diag_progress ("events up to %" PRIu64 " came too fast to be shown", lost_through);
            break;
        case WATCHER_EMPTY:
            return true;
        case WATCHER_CLOSED:
            return false;
        }
    }
}

static void *
follow (void *ctx)
{
    struct run_view *v = ctx;
    take_replay (v);
    for (bool is_ending = false; ! is_ending;) {
        struct pollfd fds[] = { { .fd = v->wake_fd, .events = POLLIN },
                                { .fd = STDIN_FILENO, .events = POLLIN } };
        while (poll (fds, v->asking ? 2 : 1, -1) < 0 && errno == EINTR)
            ;
        if (v->asking && fds[1].revents && ! fds[0].revents)
            take_line (v);
        if (! fds[0].revents)
            continue;
        uint64_t count;
        (void)! read (v->wake_fd, &count, sizeof (count));
        is_ending = atomic_load (&v->is_ending);
        if (! take_waiting (v))
            break;
    }
    return NULL;
}

/* --- the outside --- */

struct run_view *
run_view_start (const struct run_view_style *style, struct session *s)
{
    struct streams *streams = session_streams (s);
    if (style->awaits_another && streams)
        streams_await_watcher (streams, ANOTHER_MS);
    if (style->mode == RUN_VIEW_NONE || ! streams)
        return NULL;
    struct run_view *v = x_new0 (struct run_view);
    v->style = *style;
    v->streams = streams;
    v->session = s;
    v->can_ask = style->mode == RUN_VIEW_LIVE && isatty (STDIN_FILENO);
    v->reader = (struct line_reader){ .fd = STDIN_FILENO, .signals_fd = -1 };
    v->wake_fd = eventfd (0, EFD_CLOEXEC);
    struct watch_style watch = { .is_terminal = true,
                                 .has_colour = diag_wants_colour (STDOUT_FILENO),
                                 .is_own = true,
                                 .width = terminal_width };
    if (style->mode == RUN_VIEW_LIVE)
        v->watch = watch_view_new (&watch);
    v->watcher = watcher_new (streams, on_wake, v, &v->before_live);
    if (v->wake_fd >= 0 && pthread_create (&v->thread, NULL, follow, v) == 0)
        return v;
    run_view_free (v);
    return NULL;
}

void
run_view_stop (struct run_view *v)
{
    if (! v || ! v->watcher)
        return;
    atomic_store (&v->is_ending, true);
    on_wake (v);
    pthread_join (v->thread, NULL);
    if (v->watch) {
        _cleanup_buf_ struct buf out = { 0 };
        watch_view_end (v->watch, &out);
        if (out.len)
            out_raw (out.data, out.len);
    }
    watcher_free (v->watcher);
    v->watcher = NULL;
}

void
run_view_print_result (const struct run_view *v, const struct launch_counts *counts,
                       const char *session_id, enum session_ending ending)
{
    _cleanup_json_ json_t *result = json_object ();
    json_set_string (result, "answer", v ? v->answer : NULL);
    json_set_u64 (result, "duration_ms", counts->duration_ms);
    json_set_u64 (result, "input_tokens", counts->input_tokens);
    json_set_u64 (result, "output_tokens", counts->output_tokens);
    json_set_string (result, "session_id", session_id);
    json_set_string (result, "status", session_ending_name (ending));
    json_set_u64 (result, "turns", counts->turns);
    _cleanup_free_ char *text = json_text (result, JSON_TEXT_ORDERED);
    out_printf ("%s\n", text);
}

void
run_view_free (struct run_view *v)
{
    if (! v)
        return;
    if (v->watcher)
        watcher_free (v->watcher);
    watch_view_free (v->watch);
    stop_asking (v);
    line_reader_clear (&v->reader);
    if (v->wake_fd >= 0)
        close (v->wake_fd);
    free (v->first_task);
    free (v->answer);
    free (v);
}

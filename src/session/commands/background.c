/* SPDX-License-Identifier: Apache-2.0 */
#include "session/commands/background.h"
#include "session/commands/limit_told.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/ids.h"
#include "door/tasks/intake.h"
#include "sandbox/run/command.h"
#include "sandbox/run/command_log.h"
#include "session/commands/processes_internal.h"
#include "session/commands/refusals_told.h"
#include "session/state/loop_lock.h"
#include "session/state/provided.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>

#define WAIT_MAX_SECS       600
#define SHOWN_COMMAND_CHARS 200

struct background {
    struct background *next;
    struct command *command;
    char work_id[37]; /* "" in the foreground, until somebody asks */
    char *name;       /* as capsule and model know it */
    char *binary;
    char *args; /* as the trace names the command */
    char *line; /* as the model wrote it */
    char *task_id;
    char *context_id;
    bool is_trusted;
    uint64_t started_at_ms; /* Unix */
    bool is_recorded;       /* its end is in the trace */
    bool was_read;          /* the model saw the finished state: no task reports it */
    bool is_outstanding;    /* ran when the session's end began */
    uint64_t running_ms;    /* then */
    bool is_judged;         /* refused is filled */
    struct buf refused;     /* what the walls refused it, as the model reads it */
};

static const char background_parameters[] =
    "{\"properties\":{\"operation\":{\"description\":\"status: where it stands. wait: until it "
    "ends "
    "or wait_secs pass. stop: end "
    "it.\",\"enum\":[\"status\",\"wait\",\"stop\"],\"type\":\"string\"},"
    "\"wait_secs\":{\"description\":\"At most this long, up to "
    "600.\",\"maximum\":600,\"minimum\":0,"
    "\"type\":\"integer\"},\"work_id\":{\"description\":\"The id the command got when it moved to "
    "the "
    "background.\",\"pattern\":\"^wrk_[0-9a-f]+$\",\"type\":\"string\"}},"
    "\"required\":[\"operation\",\"work_id\"],\"type\":\"object\"}";

static bool
background_is_offered (const struct session *s)
{
    return s->manifest->inference && s->policy->commands.allow.len > 0;
}

static bool
reports_as_task (const struct session *s)
{
    return s->policy->lifecycle.task_acceptance.value == ACCEPT_QUEUE &&
           s->policy->lifecycle.after_task.value == AFTER_SLEEP;
}

/* --- taking one --- */

static void
wake_loop (void *ctx)
{
    registry_poke (ctx);
}

struct background *
background_begin (struct session *s, const struct running_task *task, const char *name,
                  const char *line, struct command *c, const struct call_outcome *out)
{
    struct background *b = x_new0 (struct background);
    *b = (struct background){ .command = command_ref (c),
                              .name = x_strdup (name),
                              .binary = x_strdup (out->shell.binary),
                              .args = x_strdup (out->shell.command),
                              .line = x_strdup (line),
                              .task_id = x_strdup (task->task->id),
                              .context_id = x_strdup (task->task->context_id),
                              .is_trusted = task->task->is_trusted,
                              .started_at_ms = clock_unix_ms () - command_look (c).duration_ms };
    pthread_mutex_lock (&s->rooms.processes->lock);
    b->next = s->rooms.processes->foreground;
    s->rooms.processes->foreground = b;
    pthread_mutex_unlock (&s->rooms.processes->lock);
    return b;
}

/* Under the lock of the processes. */
static void
leave_foreground (struct session *s, struct background *b)
{
    struct background **link = &s->rooms.processes->foreground;
    while (*link != b)
        link = &(*link)->next;
    *link = b->next;
    b->next = NULL;
}

static void
background_free (struct background *b)
{
    command_unref (b->command);
    free (b->name);
    free (b->binary);
    free (b->args);
    free (b->line);
    free (b->task_id);
    free (b->context_id);
    buf_free (&b->refused);
    free (b);
}

void
background_done (struct session *s, struct background *b)
{
    pthread_mutex_lock (&s->rooms.processes->lock);
    leave_foreground (s, b);
    pthread_mutex_unlock (&s->rooms.processes->lock);
    background_free (b);
}

/* Under the lock of the processes: whoever asks first, the loop or a cancel at the door, mints the
 * id. */
static const char *
work_id_of (struct background *b)
{
    if (! b->work_id[0])
        memcpy (b->work_id, id_new ("wrk_").text, sizeof b->work_id);
    return b->work_id;
}

void
background_take (struct session *s, struct background *b, const char *name, uint64_t grace_ms,
                 struct call_outcome *out)
{
    struct mur_error *err = NULL;
    pthread_mutex_lock (&s->rooms.processes->lock);
    const char *work_id = work_id_of (b);
    pthread_mutex_unlock (&s->rooms.processes->lock);
    if (! command_detach (b->command, work_id, &err)) {
        command_kill (b->command);
        outcome_set_error (
            out,
            "%s ran longer than %llu ms and could not be moved to the background: %s; "
            "it was killed",
            name, (unsigned long long)grace_ms, err->message);
        mur_error_free (err);
        background_done (s, b);
        return;
    }
    pthread_mutex_lock (&s->rooms.processes->lock);
    leave_foreground (s, b);
    b->next = s->rooms.processes->background;
    s->rooms.processes->background = b;
    pthread_mutex_unlock (&s->rooms.processes->lock);
    command_on_exit (b->command, wake_loop, s->registry);
    out->has_shell = true;
    out->shell.is_detached = true;
    out->shell.grace_ms = grace_ms;
    memcpy (out->shell.work_id, work_id, sizeof b->work_id);
    _cleanup_free_ char *text =
        x_asprintf ("The command still runs after %llu s and goes on in the background as %s.\n"
                    "Ask for it with background-command (operation status, wait or stop). %s",
                    (unsigned long long)(grace_ms / 1000), work_id,
                    reports_as_task (s) ? "When it ends, a later task carries its result."
                                        : "It ends with this session.");
    outcome_set_result (out, name, TOOL_PASSED, text, strlen (text));
}

/* --- recording an end --- */

static void
record_end (struct session *s, struct background *b, const char *completion_task_id)
{
    struct command_result r = command_look (b->command);
    _cleanup_free_ char *path =
        x_asprintf ("%s/logs/%s.log", s->places.dirs.records_path, b->work_id);
    b->is_recorded = true;
    free (limit_told (b->binary, &r));
    TRACE (s->trace, NULL, shell_completed, .work_id = b->work_id, .binary = b->binary,
           .command = b->args, .exit_code = TRACE_NUM (r.exit_code), .duration_ms = r.duration_ms,
           .output_path = path, .output_bytes = command_log_bytes (b->command),
           .resource_limit = r.resource_limit, .status = r.exit_code == 0 ? "ok" : "error",
           .completion_task_id = completion_task_id);
}

/* Of a command that has ended; found once, as it is noted for the trace. */
static const char *
refused_text (struct session *s, struct background *b)
{
    struct command_result r = command_look (b->command);
    if (! b->is_judged) {
        uint64_t bytes;
        _cleanup_free_ char *tail = command_tail (b->command, &bytes);
        _cleanup_strv_ struct strv lines = { 0 };
        const struct refused_command told = { b->name, b->args, "", tail, &r };
        refusals_tell (s, &told, &b->refused, &lines);
        b->is_judged = true;
    }
    return b->refused.len ? b->refused.data : "";
}

static const struct task *
enqueue_report (struct session *s, struct background *b)
{
    struct command_result r = command_look (b->command);
    _cleanup_free_ char *text = x_asprintf (
        "The background command %s has ended.\n"
        "work_id: %s\ncommand: %s\nexit_code: %d\nduration_ms: %llu\n"
        "output: $MURMUR_RECORDS_DIR/logs/%s.log\noutput_bytes: %llu%s",
        b->work_id, b->work_id, b->line, r.exit_code, (unsigned long long)r.duration_ms, b->work_id,
        (unsigned long long)command_log_bytes (b->command), refused_text (s, b));
    struct task_intake intake = { .context_id = b->context_id,
                                  .text = text,
                                  .source = "detached_shell",
                                  .origin = ORIGIN_COMPLETION,
                                  .is_trusted = b->is_trusted };
    return registry_enqueue (s->registry, &intake);
}

static bool
has_ended (const struct background *b)
{
    return command_look (b->command).state == COMMAND_EXITED;
}

void
background_report (struct session *s)
{
    for (struct background *b = s->rooms.processes->background; b; b = b->next) {
        if (b->is_recorded || ! has_ended (b))
            continue;
        const struct task *task =
            reports_as_task (s) && ! b->was_read ? enqueue_report (s, b) : NULL;
        record_end (s, b, task ? task->id : NULL);
    }
}

/* --- what is left running --- */

static bool
is_of_task (const struct background *b, const char *task_id)
{
    return (! task_id || str_eq (b->task_id, task_id)) && ! has_ended (b);
}

static int
by_work_id (const void *a, const void *b)
{
    const struct background *const *x = a, *const *y = b;
    return strcmp ((*x)->work_id, (*y)->work_id);
}

void
background_append_residue (void *session, const char *task_id, json_t *items)
{
    struct session *s = session;
    pthread_mutex_lock (&s->rooms.processes->lock);
    size_t len = 0, cap = 0;
    struct background **found = NULL;
    for (struct background *b = s->rooms.processes->background; b; b = b->next)
        if (is_of_task (b, task_id)) {
            x_grow (found, len, cap);
            found[len++] = b;
        }
    for (struct background *b = s->rooms.processes->foreground; b; b = b->next)
        if (is_of_task (b, task_id)) {
            (void)work_id_of (b);
            x_grow (found, len, cap);
            found[len++] = b;
        }
    if (len)
        qsort (found, len, sizeof *found, by_work_id);
    for (size_t i = 0; i < len; i++) {
        json_t *item = json_object ();
        json_set_string (item, "kind", "detached_shell");
        json_set_string (item, "work_id", found[i]->work_id);
        json_set_string (item, "binary", found[i]->name);
        json_set_string (item, "command", found[i]->line);
        json_set_u64 (item, "started_at_ms", found[i]->started_at_ms);
        json_array_append_new (items, item);
    }
    pthread_mutex_unlock (&s->rooms.processes->lock);
    free (found);
}

/* The first characters of a command, and a mark when that is not all of it. */
static char *
shown_command (const char *command)
{
    size_t at = 0;
    for (size_t chars = 0; command[at] && chars < SHOWN_COMMAND_CHARS; chars++)
        do
            at++;
        while (((unsigned char)command[at] & 0xc0) == 0x80);
    return x_asprintf ("%.*s%s", (int)at, command, command[at] ? "…" : "");
}

json_t *
background_running_json (const struct session *s, const char *task_id)
{
    json_t *list = NULL;
    for (const struct background *b = s->rooms.processes->background; b; b = b->next) {
        if (! is_of_task (b, task_id))
            continue;
        _cleanup_free_ char *command = shown_command (b->line);
        json_t *item = json_object ();
        json_set_string (item, "workId", b->work_id);
        json_set_string (item, "binary", b->binary);
        json_set_string (item, "command", command);
        json_set_u64 (item, "runningMs", command_look (b->command).duration_ms);
        list = list ? list : json_array ();
        json_array_append_new (list, item);
    }
    return list;
}

void
background_list (const struct session *s, const char *task_id, struct strv *ids)
{
    for (const struct background *b = s->rooms.processes->background; b; b = b->next)
        if (str_eq (b->task_id, task_id) && ! has_ended (b))
            strv_push (ids, b->work_id);
    strv_sort (ids);
}

/* --- the tool --- */

static struct background *
find (const struct session *s, const char *work_id)
{
    for (struct background *b = s->rooms.processes->background; b; b = b->next)
        if (str_eq (b->work_id, work_id))
            return b;
    return NULL;
}

enum operation {
    OP_STATUS,
    OP_WAIT,
    OP_STOP,
    OP_COUNT,
};

static const char *const operation_names[OP_COUNT] = {
    [OP_STATUS] = "status",
    [OP_WAIT] = "wait",
    [OP_STOP] = "stop",
};

struct asked {
    enum operation operation;
    uint64_t wait_secs;
    struct background *b;
    const char *error; /* why it was not waited for, or not stopped; NULL: it was */
};

/* Reads the input; the reason it cannot be answered goes to the model, and nothing is recorded. */
static bool
read_input (const struct session *s, const json_t *input, struct asked *a, struct call_outcome *out)
{
    const char *operation = json_get_string (input, "operation");
    const char *work_id = json_get_string (input, "work_id");
    const json_t *wait = json_object_get (input, "wait_secs");
    size_t op = 0;
    while (op < OP_COUNT && ! str_eq (operation_names[op], operation))
        op++;
    if (op == OP_COUNT)
        outcome_set_error (out, "background-command: operation must be status, wait or stop");
    else if (! work_id || ! str_starts (work_id, "wrk_") || strlen (work_id) < 5 ||
             strspn (work_id + 4, "0123456789abcdef") != strlen (work_id + 4))
        outcome_set_error (out, "background-command: work_id must be wrk_ and hex digits");
    else if (! (a->b = find (s, work_id)))
        outcome_set_error (out, "background-command: no command of this session has the id %s",
                           work_id);
    else if (wait && (! json_is_integer (wait) || json_integer_value (wait) < 0))
        outcome_set_error (out, "background-command: wait_secs must be a whole number of seconds");
    else {
        uint64_t secs = wait ? (uint64_t)json_integer_value (wait) : WAIT_MAX_SECS;
        a->operation = (enum operation)op;
        a->wait_secs = secs > WAIT_MAX_SECS ? WAIT_MAX_SECS : secs;
        return true;
    }
    return false;
}

static const char *
state_name (const struct command_result *r)
{
    return r->state != COMMAND_EXITED ? "running" : r->was_stopped ? "stopped" : "exited";
}

static void
answer (struct session *s, const struct running_task *task, const struct asked *a,
        uint64_t waited_ms, struct call_outcome *out)
{
    struct background *b = a->b;
    struct command_result r = command_look (b->command);
    bool is_over = r.state == COMMAND_EXITED;
    uint64_t bytes;
    _cleanup_free_ char *tail = command_tail (b->command, &bytes);
    _cleanup_buf_ struct buf text = { 0 };
    buf_printf (&text, "work_id: %s\ncommand: %s\nstate: %s\nelapsed_secs: %llu\n", b->work_id,
                b->line, state_name (&r), (unsigned long long)(r.duration_ms / 1000));
    if (a->operation == OP_WAIT)
        buf_printf (&text, "waited_secs: %llu\n", (unsigned long long)(waited_ms / 1000));
    if (a->error && ! is_over)
        buf_printf (&text, "wait_error: %s\n", a->error);
    if (is_over)
        buf_printf (&text, "exit_code: %d\nstatus: %s\n", r.exit_code,
                    r.exit_code == 0 ? "ok" : "error");
    buf_printf (&text,
                "output: $MURMUR_RECORDS_DIR/logs/%s.log\noutput_bytes: %llu\noutput_shown: "
                "%zu\n\n%s",
                b->work_id, (unsigned long long)bytes, strlen (tail), tail);
    outcome_set_result (out, "background-command", TOOL_PASSED, text.data, text.len);
    if (is_over)
        buf_puts (&out->text, refused_text (s, b));
    out->is_truncated = bytes > strlen (tail);
    TRACE (s->trace, NULL, background_command, .task_id = task->task->id, .work_id = b->work_id,
           .operation = operation_names[a->operation], .state = state_name (&r),
           .exit_code = is_over ? TRACE_NUM (r.exit_code) : TRACE_NO_NUM,
           .waited_ms = a->operation == OP_WAIT ? TRACE_NUM (waited_ms) : TRACE_NO_NUM,
           .output_bytes = bytes);
    b->was_read |= is_over;
}

static void
background_call (struct session *s, struct running_task *task, const json_t *input,
                 struct call_outcome *out)
{
    struct asked a = { 0 };
    if (! read_input (s, input, &a, out))
        return;
    uint64_t began_ms = clock_monotonic_ms ();
    loop_lock_release (&s->loop_lock);
    if (a.operation == OP_WAIT &&
        ! command_wait (a.b->command, (int64_t)(a.wait_secs * 1000), task->cancel) &&
        cancel_is_raised (task->cancel))
        a.error = "the task was cancelled while it waited";
    if (a.operation == OP_STOP && ! command_stop (a.b->command))
        a.error = "it has not ended 3 s after SIGKILL";
    loop_lock_take (&s->loop_lock);
    answer (s, task, &a, clock_monotonic_ms () - began_ms, out);
    out->is_canceled = cancel_is_raised (task->cancel);
}

/* --- the end --- */

void
background_abandon_begin (struct session *s)
{
    background_report (s);
    for (struct background *b = s->rooms.processes->background; b; b = b->next)
        if (! b->is_recorded) {
            b->is_outstanding = true;
            b->running_ms = command_look (b->command).duration_ms;
        }
}

static void
record_abandoned (struct session *s, struct background *b)
{
    struct command_result r = command_look (b->command);
    bool is_over = r.state == COMMAND_EXITED;
    _cleanup_free_ char *path =
        x_asprintf ("%s/logs/%s.log", s->places.dirs.records_path, b->work_id);
    TRACE (s->trace, NULL, shell_abandoned, .work_id = b->work_id, .binary = b->binary,
           .command = b->args, .running_ms = b->running_ms,
           .exit_code = is_over ? TRACE_NUM (r.exit_code) : TRACE_NO_NUM,
           .output_path = is_over ? path : NULL,
           .output_bytes = is_over ? TRACE_NUM (command_log_bytes (b->command)) : TRACE_NO_NUM);
}

void
background_abandon_end (struct session *s)
{
    size_t count = 0;
    _cleanup_buf_ struct buf report = { 0 };
    pthread_mutex_lock (&s->rooms.processes->lock);
    struct background *next = s->rooms.processes->background;
    s->rooms.processes->background = NULL; /* the door sees none of them any more */
    pthread_mutex_unlock (&s->rooms.processes->lock);
    while (next) {
        struct background *b = next;
        next = b->next;
        if (b->is_outstanding) {
            command_wait (b->command, 2000, NULL);
            record_abandoned (s, b);
            buf_printf (&report, "%s%s (%s)", count++ ? ", " : "", b->work_id, b->line);
        }
        background_free (b);
    }
    if (! count)
        return;
    _cleanup_free_ char *line =
        x_asprintf ("[capsule-runtime] %zu background command%s ended with the session: %s", count,
                    count == 1 ? "" : "s", report.data);
    diag_stderr_line ("%s", line);
    session_log_line (s, line);
}

const struct provided_tool provided_background_command = {
    .name = "background-command",
    .description =
        "Asks after a command that moved to the background: its state and the end of its output, or "
        "waits for it, or stops it.",
    .parameters = background_parameters,
    .missing = "capabilities.shell.allow",
    .exists = background_is_offered,
    .call = background_call,
};

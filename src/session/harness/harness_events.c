/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/harness_events.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "door/tasks/tasks.h"
#include "replay/play/play_harness.h"
#include "session/calls/call_line.h"
#include "session/harness/harness_ask.h"
#include "session/harness/harness_gateway.h"
#include "session/harness/harness_tape.h"
#include "session/hooks/hook_events.h"
#include "session/state/session.h"
#include "session/task/attempt_end.h"

#include <string.h>

/* --- turns --- */

/* What its provider told the gateway in this run; nothing where a stream told none. */
static struct process_usage
provider_told (const struct harness_run *run)
{
    struct process_usage told = { 0 };
    struct gateway_door *door = run->session->rooms.harness->door;
    const struct gateway_usage *began = &run->provider_began,
                               now = door ? gateway_door_usage (door) : *began;
    if (now.answers == began->answers || now.estimates > began->estimates)
        return told;
    told.value[USAGE_INPUT] = now.input - began->input;
    told.value[USAGE_OUTPUT] = now.output - began->output;
    told.value[USAGE_CACHE_READ] = now.cache_read - began->cache_read;
    told.value[USAGE_CACHE_CREATION] = now.cache_creation - began->cache_creation;
    for (int m = USAGE_INPUT; m <= USAGE_CACHE_CREATION; m++)
        told.is_set[m] = true;
    return told;
}

static bool
is_told (const struct process_usage *u)
{
    for (int m = 0; m < USAGE_MEMBERS; m++)
        if (u->is_set[m])
            return true;
    return false;
}

/* What the turn used, by growth; a member that was never reported stays absent. */
struct turn_usage {
    struct trace_num of[USAGE_MEMBERS];
};

/* One that counts its whole session, and tells less than it had, counts anew. */
static void
take_usage (struct harness_run *run, const struct process_usage *told)
{
    bool is_anew = ! is_told (&run->seen) && told->is_set[USAGE_INPUT] &&
                   told->value[USAGE_INPUT] < run->attributed.value[USAGE_INPUT];
    if (is_anew)
        memset (&run->attributed, 0, sizeof run->attributed);
    for (int m = 0; m < USAGE_MEMBERS; m++)
        if (told->is_set[m]) {
            run->seen.is_set[m] = true;
            run->seen.value[m] = told->value[m];
        }
}

/* As the harness reports it; of one that reports nothing, as its provider does. */
static struct turn_usage
attribute (struct harness_run *run)
{
    struct turn_usage u = { 0 };
    const struct process_usage seen =
        is_told (&run->seen) || run->session->rooms.harness->is.reports_usage ? run->seen
                                                                              : provider_told (run);
    for (int m = 0; m < USAGE_MEMBERS; m++) {
        if (! seen.is_set[m])
            continue;
        uint64_t before = run->attributed.value[m];
        if (seen.value[m] > before)
            run->attributed.value[m] = seen.value[m];
        u.of[m] = TRACE_NUM (seen.value[m] > before ? seen.value[m] - before : 0);
    }
    return u;
}

static uint64_t
count (const struct trace_num *n)
{
    return n->is_set ? (uint64_t)n->value : 0;
}

static void
add_to_totals (struct harness_run *run, const struct turn_usage *u)
{
    struct session *s = run->session;
    struct running_task *t = run->task;
    uint64_t input = count (&u->of[USAGE_INPUT]), output = count (&u->of[USAGE_OUTPUT]);
    t->counts.turns++;
    t->counts.input_tokens += input;
    t->counts.output_tokens += output;
    s->tally.totals.turns++;
    s->tally.totals.input_tokens += input;
    s->tally.totals.output_tokens += output;
    usage_count_add (&s->tally.usage.input, u->of[USAGE_INPUT].is_set, input);
    usage_count_add (&s->tally.usage.output, u->of[USAGE_OUTPUT].is_set, output);
    usage_count_add (&s->tally.usage.cached, u->of[USAGE_CACHE_READ].is_set,
                     count (&u->of[USAGE_CACHE_READ]));
    usage_count_add (&s->tally.usage.cache_write, u->of[USAGE_CACHE_CREATION].is_set,
                     count (&u->of[USAGE_CACHE_CREATION]));
    if (! u->of[USAGE_INPUT].is_set || ! u->of[USAGE_OUTPUT].is_set)
        s->tally.usage.unreported_calls++;
}

static struct trace_inference
usage_line (const struct harness_run *run, const struct turn_usage *u)
{
    return (struct trace_inference){
        .turn = run->task->counts.turns,
        .task_id = run->task->task->id,
        .input_tokens = u->of[USAGE_INPUT],
        .output_tokens = u->of[USAGE_OUTPUT],
        .cached_tokens = u->of[USAGE_CACHE_READ],
        .cache_write_tokens = u->of[USAGE_CACHE_CREATION],
        .thinking_tokens = u->of[USAGE_THINKING],
    };
}

void
harness_spend_line (struct harness_run *run)
{
    const struct running_task *t = run->task;
    const struct spend_refusal *r = &run->end.refusal;
    TRACE (run->session->trace, NULL, spend_ceiling_reached,
           .turn = t->counts.turns ? t->counts.turns - 1 : 0, .task_id = t->task->id,
           .limit = spend_limit_name (r->limit), .ceiling = r->ceiling, .used = r->used,
           .requested = r->requested);
}

/* Charged once it is closed; a ceiling that is reached ends the run. */
static void
charge (struct harness_run *run, const struct turn_usage *u)
{
    if (run->log.then && run->session->rooms.harness->driver->entry->gateway)
        return; /* its provider counted, who is not there */
    bool is_open = run->session->rooms.harness->door
                       ? harness_gateway_charge (run->session, &run->end.refusal)
                       : spend_charge (run->session->spend, count (&u->of[USAGE_INPUT]),
                                       count (&u->of[USAGE_OUTPUT]), &run->end.refusal);
    if (is_open)
        return;
    run->end.cause = HARNESS_SPEND_CEILING;
    harness_spend_line (run);
}

static void
turn_reset (struct harness_run *run)
{
    run->turn.is_open = run->turn.is_told = false;
    run->turn.has_deltas = run->turn.has_thinking_deltas = false;
    free (run->turn.tool);
    run->turn.tool = NULL;
    buf_free (&run->turn.text);
}

/* <is_last>: the harness has ended its turn with this. */
static void
turn_close (struct harness_run *run, bool is_last)
{
    if (! run->turn.is_open)
        return;
    struct session *s = run->session;
    struct turn_usage u = attribute (run);
    struct trace_inference line = usage_line (run, &u);
    line.decision = run->turn.tool ? "tool_call" : is_last ? "end_turn" : "text";
    line.tool_name = run->turn.tool;
    frames_settle (&run->frames);
    run->frames.has_text = false;
    hooks_tell_harness_turn (s, run->task, &line, run->turn.text.data);
    trace_write (s->trace, TRACE_EVENT_inference, &line, NULL, NULL);
    if (run->log.then)
        player_harness_turn (s->asked->player, line.turn, line.decision);
    hooks_show_artifacts (s, run->task);
    add_to_totals (run, &u);
    turn_reset (run);
    charge (run, &u);
}

static void
tell_turn (struct harness_run *run)
{
    char status[48];
    if (run->turn.is_told)
        return;
    snprintf (status, sizeof status, "inference turn %llu",
              (unsigned long long)run->task->counts.turns + 1);
    streams_working (registry_streams (run->session->registry), run->task->task, status, 0);
    run->turn.is_told = true;
}

/* False: the turn would be one too many, and the run is over. */
static bool
turn_open (struct harness_run *run)
{
    if (run->turn.is_open)
        return true;
    if (! attempt_turns_left (run->session, run->task)) {
        _cleanup_free_ char *text =
            x_asprintf ("inference.max_turns (%llu) was reached",
                        (unsigned long long)run->session->manifest->inference->max_turns.value);
        harness_run_fail (run, HARNESS_MAX_TURNS, FAILURE_MAX_TURNS, text);
        return false;
    }
    tell_turn (run);
    run->turn.is_open = true;
    return true;
}

/* --- failures --- */

void
harness_run_fail (struct harness_run *run, enum harness_cause cause, enum failure_kind kind,
                  const char *text)
{
    run->end.cause = cause;
    run->end.has_failed = true;
    run->end.failed_in_runtime = true;
    run->end.failure = kind;
    free (run->end.failure_text);
    run->end.failure_text = x_strdup (text);
    TRACE (run->session->trace, NULL, harness_failed, .task_id = run->task->task->id,
           .kind = failure_kind_name (kind), .message = text, .source = "runtime");
}

/* A turn that was open has been one, whatever came of it; without one nothing is attributed. */
void
harness_failed_turn_line (struct harness_run *run, const char *code, const char *text)
{
    bool was_open = run->turn.is_open;
    struct turn_usage u = was_open ? attribute (run) : (struct turn_usage){ 0 };
    struct trace_inference line = usage_line (run, &u);
    line.decision = line.stop_reason = "error";
    line.error_code = code;
    line.error = text;
    trace_write (run->session->trace, TRACE_EVENT_inference, &line, NULL, NULL);
    if (run->log.then)
        player_harness_turn (run->session->asked->player, line.turn, line.decision);
    turn_reset (run);
    if (! was_open)
        return;
    add_to_totals (run, &u);
    struct spend_refusal ignored;
    if (run->session->rooms.harness->door)
        (void)harness_gateway_charge (run->session, &ignored);
    else
        (void)spend_charge (run->session->spend, count (&u.of[USAGE_INPUT]),
                            count (&u.of[USAGE_OUTPUT]), &ignored);
}

static void
take_failure (struct harness_run *run, const struct process_event *e)
{
    static const char *const codes[] = { [FAILURE_AUTH] = "harness_auth",
                                         [FAILURE_QUOTA] = "harness_quota",
                                         [FAILURE_HARNESS_ERROR] = "harness_error",
                                         [FAILURE_OTHER] = "harness_other" };
    struct session *s = run->session;
    const char *code = e->failure < ARRAY_LEN (codes) ? codes[e->failure] : NULL;
    _cleanup_free_ char *text = redactor_apply (s->redactor, e->text);
    if (code)
        harness_failed_turn_line (run, code, text);
    else
        turn_close (run, true);
    frames_settle (&run->frames);
    run->end.has_failed = true;
    run->end.failure = e->failure;
    free (run->end.failure_text);
    run->end.failure_text = x_strdup (text);
    TRACE (s->trace, NULL, harness_failed, .task_id = run->task->task->id,
           .kind = failure_kind_name (e->failure), .message = text, .source = "harness");
    if (run->end.cause == HARNESS_RUNS)
        run->end.cause = HARNESS_TERMINAL;
}

static void
take_end (struct harness_run *run, const struct process_event *e)
{
    free (run->end.answer);
    run->end.answer = x_strndup (e->text, e->text_len);
    run->did_work = true;
    turn_close (run, true);
    if (run->end.cause == HARNESS_RUNS)
        run->end.cause = HARNESS_TERMINAL;
}

/* --- text --- */

static void
show_text (struct harness_run *run, const struct process_event *e, bool is_delta)
{
    tell_turn (run);
    if (is_delta || ! run->turn.has_deltas)
        run->frames.host.chunk (&run->frames, e->text, e->text_len);
    run->turn.has_deltas = is_delta;
    run->turn.has_shown_text |= e->text_len > 0;
}

static void
show_thinking (struct harness_run *run, const struct process_event *e, bool is_delta)
{
    tell_turn (run);
    if (is_delta || ! run->turn.has_thinking_deltas)
        run->frames.host.thinking_chunk (&run->frames, e->text, e->text_len);
    run->turn.has_thinking_deltas = is_delta;
}

static void
take_text (struct harness_run *run, const struct process_event *e)
{
    if (! turn_open (run))
        return;
    show_text (run, e, false);
    if (run->turn.text.len)
        buf_putc (&run->turn.text, '\n');
    buf_append (&run->turn.text, e->text, e->text_len);
}

/* --- calls --- */

static void
pending_clear (struct pending_call *c)
{
    free (c->id);
    free (c->name);
    free (c->input);
}

static void
take_call (struct harness_run *run, const struct process_event *e)
{
    if (! turn_open (run))
        return;
    if (! run->turn.tool)
        run->turn.tool = x_strdup (e->name);
    x_grow (run->calls, run->call_count, run->call_cap);
    run->calls[run->call_count++] = (struct pending_call){ .id = x_strdup (e->id),
                                                           .name = x_strdup (e->name),
                                                           .input = x_strdup (e->input),
                                                           .started_us = clock_monotonic_us () };
}

static bool
take_pending (struct harness_run *run, const char *id, struct pending_call *out)
{
    for (size_t i = 0; i < run->call_count; i++)
        if (strcmp (run->calls[i].id, id) == 0) {
            *out = run->calls[i];
            memmove (&run->calls[i], &run->calls[i + 1],
                     (run->call_count - i - 1) * sizeof *run->calls);
            run->call_count--;
            return true;
        }
    return false;
}

/* A call of the capsule's own tools came through the bridge; drivers name it as MCP clients do. */
static const char *
whose (const char *name)
{
    static const char prefix[] = "mcp__" BRIDGE_NAME "__";
    return str_starts (name, prefix) ? "bridge" : "harness";
}

/* The command a call of its own ran, as it says it: a list of words, or one line. */
static void
add_argv (const char *input, struct strv *argv)
{
    static const char *const members[] = { "command", "cmd" };
    _cleanup_json_ json_t *value = json_loads (input, 0, NULL);
    const json_t *said = NULL, *word;
    size_t i;
    for (size_t m = 0; m < ARRAY_LEN (members) && ! said; m++)
        said = json_object_get (value, members[m]);
    if (json_is_string (said))
        strv_push (argv, json_string_value (said));
    json_array_foreach (said, i, word)
    {
        if (json_is_string (word))
            strv_push (argv, json_string_value (word));
    }
}

/* A driver that speaks with its harness answers it by notes that are marked (murmur_process.h). */
static void
take_note (struct harness_run *run, const struct process_event *e)
{
    char mark = e->text_len && run->plan.keeps_stdin_open ? e->text[0] : '\0';
    if (mark == '\4')
        harness_ask (run, e->text + 1, e->text_len - 1);
    else if (mark == '\2')
        harness_tape_write (run, e->text + 1, e->text_len - 1);
    else if (mark == '\3')
        run->plan.interrupt_bytes =
            (struct process_bytes){ .is_some = true,
                                    .data =
                                        arena_strndup (run->arena, e->text + 1, e->text_len - 1),
                                    .len = e->text_len - 1 };
    else
        harness_note (run, e->text);
}

/* The input as compact JSON; NULL when it is none. Owned. */
static char *
input_json (const char *input)
{
    _cleanup_json_ json_t *value = json_loads (input, JSON_DECODE_ANY, NULL);
    return value ? json_text (value, JSON_TEXT_SORTED) : NULL;
}

static void
call_record (struct harness_run *run, const struct pending_call *c, const struct process_event *e)
{
    struct session *s = run->session;
    struct running_task *t = run->task;
    uint64_t duration_ms = (clock_monotonic_us () - c->started_us) / 1000;
    _cleanup_free_ char *input = input_json (c->input);
    _cleanup_outcome_ struct call_outcome o = { .status = e->is_error ? TOOL_ERROR : TOOL_PASSED };
    _cleanup_strv_ struct strv argv = { 0 };
    add_argv (c->input, &argv);
    struct call call = { .turn = t->counts.turns ? t->counts.turns - 1 : 0,
                         .id = c->id,
                         .name = c->name,
                         .by = whose (c->name),
                         .argv = argv.items,
                         .input_text = input ? input : c->input,
                         .input_bytes = strlen (c->input) };
    buf_append (&o.text, e->text, e->text_len);
    if (run->log.then && strcmp (call.by, "harness") == 0)
        player_harness_call (s->asked->player, call.turn, call.name);
    hooks_tell_call (s, t, &call, &o, duration_ms);
    call.input_text = input ? input : "null";
    call_line_write (s, t, &call, &o, duration_ms);
    call_line_show (s, t, &call, &o, duration_ms);
}

static void
take_result (struct harness_run *run, const struct process_event *e)
{
    struct pending_call c;
    harness_ask_end (run, e->id);
    turn_close (run, false);
    if (! take_pending (run, e->id, &c)) {
        _cleanup_free_ char *text = x_asprintf (
            "the harness reported a result for tool call id %s, which is no call of it", e->id);
        harness_note (run, text);
        return;
    }
    call_record (run, &c, e);
    pending_clear (&c);
}

/* --- the session --- */

static void
warn_billing (struct harness_run *run, const char *auth)
{
    struct harness *h = run->session->rooms.harness;
    _cleanup_free_ char *text =
        x_asprintf ("%s is billed by %s, not by a subscription", h->is.harness, auth);
    TRACE (run->session->trace, NULL, harness_warning, .task_id = run->task->task->id,
           .code = diag_code_name (W_SEC_031), .message = text);
    if (! h->warned.billing)
        diag_warn (DIAG_RUNTIME, W_SEC_031, "%s", text);
    h->warned.billing = true;
}

static void
take_session (struct harness_run *run, const struct process_event *e)
{
    free (run->reported_id);
    run->reported_id = x_strdup (e->id);
    TRACE (run->session->trace, NULL, harness_session, .task_id = run->task->task->id,
           .harness_session_id = e->id, .auth = e->name, .model = e->model);
    /* Who gave it a gateway pays by its key, and knows. */
    bool has_gateway = run->session->rooms.harness->driver->entry->gateway;
    if (strcmp (e->name, "subscription") != 0 && ! has_gateway)
        warn_billing (run, e->name);
}

void
harness_event_take (struct harness_run *run, const struct process_event *e)
{
    switch (e->kind) {
    case PROCESS_SESSION_STARTED:
        take_session (run, e);
        break;
    case PROCESS_TEXT_DELTA:
        run->did_work = true;
        show_text (run, e, true);
        break;
    case PROCESS_TEXT:
        run->did_work = true;
        take_text (run, e);
        break;
    case PROCESS_THINKING_DELTA:
        run->did_work = true;
        show_thinking (run, e, true);
        break;
    case PROCESS_THINKING:
        run->did_work = true;
        show_thinking (run, e, false);
        break;
    case PROCESS_TOOL_CALL:
        run->did_work = true;
        take_call (run, e);
        break;
    case PROCESS_TOOL_RESULT:
        take_result (run, e);
        break;
    case PROCESS_RETRY: {
        _cleanup_free_ char *reason = redactor_apply (run->session->redactor, e->text);
        TRACE (run->session->trace, NULL, harness_retry, .task_id = run->task->task->id,
               .attempt = e->attempt, .reason = reason);
        break;
    }
    case PROCESS_USAGE:
        take_usage (run, &e->usage);
        break;
    case PROCESS_TURN_END:
        take_end (run, e);
        break;
    case PROCESS_TURN_FAILED:
        take_failure (run, e);
        break;
    case PROCESS_NOTE:
        take_note (run, e);
        break;
    case PROCESS_TOOL_CALL_STARTED:
        run->frames.host.tool_call_started (&run->frames, e->id, e->name);
        break;
    case PROCESS_TOOL_CALL_PROGRESS:
        run->frames.host.tool_call_input_bytes (&run->frames, e->id, e->input_bytes);
        break;
    case PROCESS_EVENT_KINDS:
        break;
    }
}

void
harness_events_clear (struct harness_run *run)
{
    turn_reset (run);
    for (size_t i = 0; i < run->call_count; i++)
        pending_clear (&run->calls[i]);
    free (run->calls);
    harness_ask_end (run, NULL);
    free (run->asked.items);
    free (run->reported_id);
    free (run->end.answer);
    free (run->end.failure_text);
    mur_error_freep (&run->end.error);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * States of a task here: none -> running (task_start, gen_ai_work_begins) -> none (task_end,
 * gen_ai_work_ends, and gen_ai_end where the lines stop). Its invoke_agent span is open meanwhile
 * and collects what is no span of its own: refusals, reopenings, messages sent.
 */
#include "trace/export/gen_ai_internal.h"

#include "base/alloc.h"
#include "trace/export/gen_ai_content.h"
#include "trace/export/gen_ai_provider.h"

#include <stdio.h>
#include <string.h>

#define CALLERS_MAX  1024
#define OWN_PROVIDER "murmur"

static struct attributes *
agent_event (struct gen_ai *g, const char *name, const json_t *line)
{
    uint64_t ms = 0;
    json_get_u64 (line, "timestamp", &ms);
    return g->task.agent ? span_event_add (g->task.agent, name, ms * NS_PER_MS) : NULL;
}

/* --- events of the agent's span --- */

static void
on_refusal (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    (void)id;
    (void)ms;
    struct attributes *a = agent_event (g, "murmur.refused", line);
    if (! a)
        return;
    static const char *const members[] = { "tool_name", "hook_name", "rule",
                                           "operation", "binary",    "host" };
    attributes_string (a, "murmur.refused.kind", json_get_string (line, "event_type"));
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        char key[64];
        snprintf (key, sizeof key, "murmur.refused.%s", members[i]);
        attributes_string_named (a, key, json_get_string (line, members[i]));
    }
}

static void
on_resumed (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    (void)id;
    (void)ms;
    struct attributes *a = agent_event (g, "murmur.event", line);
    if (a)
        attributes_string (a, "murmur.event.kind", "task_resumed");
    gen_ai_link_caller (g->task.agent, line);
}

static void
on_event (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    (void)id;
    (void)ms;
    struct attributes *a = agent_event (g, "murmur.event", line);
    if (a)
        attributes_string (a, "murmur.event.kind", json_get_string (line, "event_type"));
}

/* --- tasks --- */

/* Who is asked: the first gateway is the driver's. A driver without one answers by itself. */
static void
take_provider (struct gen_ai *g, const json_t *line)
{
    const json_t *gateway = json_array_get (json_object_get (line, "gateways"), 0);
    const char *artifact = json_get_string (gateway, "artifact"),
               *host = json_get_string (gateway, "host");
    free (steal_ptr (&g->about.provider));
    free (steal_ptr (&g->about.server_host));
    g->about.provider = x_strdup (OWN_PROVIDER);
    if (! host)
        return;
    const char *colon = strrchr (host, ':');
    bool has_port = colon && colon[1] && colon[1 + strspn (colon + 1, "0123456789")] == '\0';
    g->about.server_host = has_port ? x_strndup (host, (size_t)(colon - host)) : x_strdup (host);
    g->about.server_port = has_port ? strtol (colon + 1, NULL, 10) : 443;
    const char *name = gen_ai_provider_name (artifact, g->about.server_host);
    free (g->about.provider);
    g->about.provider = x_strdup (name ? name : OWN_PROVIDER);
}

static void
on_session_start (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    (void)id;
    const char *model = json_get_string (line, "model");
    free (g->about.model);
    g->about.model = x_strdup (model ? model : "");
    g->session_began_ms = ms;
    take_provider (g, line);
}

static void
on_received (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    (void)id;
    (void)ms;
    const char *task = json_get_string (line, "task_id");
    struct trace_context context;
    if (! task || g->caller_count == CALLERS_MAX ||
        ! trace_context_parse (json_get_string (line, "traceparent_from_caller"), &context))
        return;
    x_grow (g->callers, g->caller_count, g->caller_cap);
    g->callers[g->caller_count++] = (struct caller){ x_strdup (task), context };
}

/* The caller of a task that starts; it is forgotten. */
static struct trace_context
take_caller (struct gen_ai *g, const char *task_id)
{
    struct trace_context context = { .is_sampled = true };
    for (size_t i = 0; i < g->caller_count; i++) {
        if (! str_eq (g->callers[i].task_id, task_id))
            continue;
        context = g->callers[i].context;
        free (g->callers[i].task_id);
        g->callers[i] = g->callers[--g->caller_count];
        break;
    }
    return context;
}

/* The share of traces that is kept, by the trace's own id: all capsules of a tree decide alike. */
static bool
is_sampled (const struct gen_ai *g, const struct trace_context *context)
{
    char head[9] = { 0 };
    memcpy (head, context->trace_id, 8);
    return context->is_sampled && (double)strtoul (head, NULL, 16) < g->spec.sample * 4294967296.0;
}

static struct telemetry_span *
agent_span (struct gen_ai *g, uint64_t ms)
{
    _cleanup_free_ char *name = x_asprintf ("invoke_agent %s", g->about.agent_name);
    struct telemetry_span *s = gen_ai_span (g, name, SPAN_INTERNAL, "invoke_agent", "", ms, ms);
    memcpy (s->id, g->task.context.span_id, sizeof s->id);
    struct attributes *a = &s->attributes;
    attributes_string (a, "gen_ai.agent.name", g->about.agent_name);
    attributes_string (a, "gen_ai.agent.version", g->about.agent_version);
    attributes_string (a, "gen_ai.provider.name", g->about.provider);
    attributes_string (a, "gen_ai.request.model", g->about.model);
    attributes_string (a, "murmur.session.id", g->about.session_id);
    return s;
}

static void
start_task (struct gen_ai *g, const char *event_id, const struct trace_context *caller, uint64_t ms)
{
    span_free (steal_ptr (&g->task.agent));
    trace_context_of_task (event_id, caller, &g->task.context);
    g->task.context.is_sampled = is_sampled (g, &g->task.context);
    g->task.agent = agent_span (g, ms);
    memcpy (g->task.agent->parent, caller->span_id, sizeof g->task.agent->parent);
    g->work_ended_ms = ms;
    g->task.inference_calls = g->task.tool_calls = 0;
    g->has_had_task = true;
}

static void
send_pending (struct gen_ai *g, uint64_t ms)
{
    if (! g->spec.sends_pending)
        return;
    struct telemetry_span *s = agent_span (g, ms);
    memcpy (s->parent, g->task.agent->parent, sizeof s->parent);
    attributes_bool (&s->attributes, "murmur.pending", true);
    gen_ai_emit (g, s);
}

static void
on_task_start (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    const char *task = json_get_string (line, "task_id"),
               *conversation = json_get_string (line, "context_id");
    free (g->task.conversation_id);
    g->task.conversation_id = conversation ? x_strdup (conversation) : NULL;
    struct trace_context caller = take_caller (g, task);
    start_task (g, id, &caller, ms);
    struct attributes *a = &g->task.agent->attributes;
    attributes_string (a, "murmur.task.id", task);
    attributes_string (a, "murmur.task.source", json_get_string (line, "source"));
    attributes_string (a, "murmur.task.origin", json_get_string (line, "origin"));
    attributes_string (a, "murmur.task.trust", json_get_string (line, "trust"));
    send_pending (g, ms);
}

static void
add_task_text (struct gen_ai *g, struct attributes *a, const char *key, const char *messages)
{
    _cleanup_json_ json_t *list = messages ? json_loads (messages, 0, NULL) : NULL;
    _cleanup_free_ char *text =
        gen_ai_plain_text (json_array_get (list, json_array_size (list) - 1));
    gen_ai_add_text (g, a, key, text);
}

static void
end_task (struct gen_ai *g, const char *exit_status, uint64_t ms)
{
    struct telemetry_span *s = steal_ptr (&g->task.agent);
    struct attributes *a = &s->attributes;
    s->end_ns = ms * NS_PER_MS;
    gen_ai_give_length (s, s->start_ns);
    attributes_string (a, "murmur.exit_status", exit_status);
    attributes_int (a, "murmur.inference_calls", (int64_t)g->task.inference_calls);
    attributes_int (a, "murmur.tool_calls", (int64_t)g->task.tool_calls);
    add_task_text (g, a, "input.value", g->task.input);
    add_task_text (g, a, "output.value", g->task.output);
    if (! str_eq (exit_status, "ok"))
        gen_ai_set_failed (g, s, exit_status, NULL);
    gen_ai_metrics_add (&g->metrics, GEN_AI_AGENT_DURATION, a,
                        (double)(s->end_ns - s->start_ns) / 1e9);
    gen_ai_metrics_add (&g->metrics, GEN_AI_AGENT_INFERENCE_CALLS, a,
                        (double)g->task.inference_calls);
    gen_ai_metrics_add (&g->metrics, GEN_AI_AGENT_TOOL_CALLS, a, (double)g->task.tool_calls);
    free (steal_ptr (&g->task.input));
    free (steal_ptr (&g->task.output));
    span_free (steal_ptr (&g->asking));
    gen_ai_emit (g, s);
}

static void
on_task_end (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    (void)id;
    const char *status = json_get_string (line, "exit_status");
    end_task (g, status ? status : "_OTHER", ms);
}

static void
on_task_failed (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    (void)id;
    (void)ms;
    const char *cause = json_get_string (line, "cause");
    gen_ai_set_failed (g, g->task.agent, cause ? cause : "failed",
                       json_get_string (line, "reason"));
}

static void
on_task_canceled (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    (void)line;
    (void)id;
    (void)ms;
    gen_ai_set_failed (g, g->task.agent, "canceled", NULL);
}

static void
on_deadline (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    on_event (g, line, id, ms);
    gen_ai_set_failed (g, g->task.agent, "deadline", NULL);
}

static void
on_session_end (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    const char *status = json_get_string (line, "exit_status");
    if (g->task.agent)
        end_task (g, status ? status : "_OTHER", ms);
    if (g->has_had_task) {
        gen_ai_evaluations (g, id, ms);
        return;
    }
    const struct trace_context nobody = { .is_sampled = true };
    start_task (g, id, &nobody, g->session_began_ms ? g->session_began_ms : ms);
    end_task (g, status ? status : "_OTHER", ms);
}

/* --- the table --- */

enum when {
    ALWAYS,
    IN_TASK, /* passed over while no task runs */
    IS_WORK, /* likewise; and what follows begins where it ends */
};

static const struct {
    const char *event;
    enum when when;
    void (*take) (struct gen_ai *, const json_t *, const char *, uint64_t);
} events[] = {
    { "session_start", ALWAYS, on_session_start },
    { "a2a_task_received", ALWAYS, on_received },
    { "task_start", ALWAYS, on_task_start },
    { "session_end", ALWAYS, on_session_end },
    { "task_end", IN_TASK, on_task_end },
    { "task_failed", IN_TASK, on_task_failed },
    { "task_canceled", IN_TASK, on_task_canceled },
    { "deadline_reached", IN_TASK, on_deadline },
    { "inference", IS_WORK, gen_ai_inference },
    { "inference_retry", IN_TASK, gen_ai_retry },
    { "tool_call", IS_WORK, gen_ai_tool_call },
    { "skill_call", IS_WORK, gen_ai_skill_call },
    { "shell", IS_WORK, gen_ai_shell },
    { "delegation", IN_TASK, gen_ai_delegation },
    { "member_call", IN_TASK, gen_ai_member_call },
    { "plan_start", IN_TASK, gen_ai_plan_start },
    { "plan_step", IN_TASK, gen_ai_plan_step },
    { "plan_end", IS_WORK, gen_ai_plan_end },
    { "compaction", IS_WORK, gen_ai_compaction },
    { "done_check", IS_WORK, gen_ai_done_check },
    { "call_denied", IN_TASK, on_refusal },
    { "tool_input_refused", IN_TASK, on_refusal },
    { "protected_path_denied", IN_TASK, on_refusal },
    { "workdir_path_refused", IN_TASK, on_refusal },
    { "network_refused", IN_TASK, on_refusal },
    { "command_refused", IN_TASK, on_refusal },
    { "spend_ceiling_reached", IN_TASK, on_refusal },
    { "task_resumed", IN_TASK, on_resumed },
    { "approval_requested", IN_TASK, on_event },
    { "approval_answered", IN_TASK, on_event },
    { "approval_applied", IN_TASK, on_event },
    { "task_reopened", IN_TASK, on_event },
    { "task_continued", IN_TASK, on_event },
    { "keep_working", IN_TASK, on_event },
    { "context_seed", IN_TASK, on_event },
    { "hook_dispatch_error", IN_TASK, on_event },
    { "a2a_send", IN_TASK, on_event },
    { "shell_detached", IN_TASK, on_event },
    { "shell_completed", IN_TASK, on_event },
    { "delegation_start", IN_TASK, on_event },
    { "member_call_start", IN_TASK, on_event },
};

void
gen_ai_line (struct gen_ai *g, const json_t *line)
{
    const char *event = json_get_string (line, "event_type"),
               *id = json_get_string (line, "event_id");
    uint64_t ms = 0;
    if (! event || ! id || ! json_get_u64 (line, "timestamp", &ms))
        return;
    g->last_ms = ms;
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        if (! str_eq (events[i].event, event))
            continue;
        if (events[i].when != ALWAYS && ! g->task.agent)
            return;
        events[i].take (g, line, id, ms);
        if (events[i].when == IS_WORK) {
            g->work_ended_ms = ms;
            g->tool.is_last = events[i].take == gen_ai_tool_call;
        }
        return;
    }
}

void
gen_ai_chat_begins (struct gen_ai *g, uint64_t time_ms)
{
    if (! g->chat_began_ms)
        g->chat_began_ms = time_ms;
}

void
gen_ai_work_begins (struct gen_ai *g, const char *event_id, uint64_t time_ms)
{
    const struct trace_context nobody = { .is_sampled = true };
    start_task (g, event_id, &nobody, time_ms);
}

void
gen_ai_work_ends (struct gen_ai *g, const char *exit_status, uint64_t time_ms)
{
    if (g->task.agent)
        end_task (g, exit_status, time_ms);
}

void
gen_ai_end (struct gen_ai *g)
{
    if (! g->task.agent)
        return;
    gen_ai_set_failed (g, g->task.agent, "killed", NULL);
    end_task (g, "killed", g->last_ms);
}

const struct gen_ai_metrics *
gen_ai_metrics_of (const struct gen_ai *g)
{
    return &g->metrics;
}

static char *
copy (const char *text)
{
    return text ? x_strdup (text) : NULL;
}

struct gen_ai *
gen_ai_new (const struct gen_ai_spec *spec)
{
    struct gen_ai *g = x_new0 (struct gen_ai);
    g->spec = *spec;
    g->about.agent_name = copy (spec->agent_name);
    g->about.agent_version = copy (spec->agent_version);
    g->about.session_id = copy (spec->session_id);
    g->about.model = x_strdup ("");
    g->task.context.is_sampled = true;
    gen_ai_metrics_init (&g->metrics);
    g->sent = sent_lists_new ();
    return g;
}

void
gen_ai_free (struct gen_ai *g)
{
    if (! g)
        return;
    for (size_t i = 0; i < g->caller_count; i++)
        free (g->callers[i].task_id);
    free (g->callers);
    span_free (g->task.agent);
    span_free (g->asking);
    gen_ai_metrics_free (&g->metrics);
    sent_lists_free (g->sent);
    char *texts[] = { g->about.agent_name,     g->about.agent_version, g->about.session_id,
                      g->about.provider,       g->about.server_host,   g->about.model,
                      g->task.conversation_id, g->task.input,          g->task.output };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free (texts[i]);
    free (g);
}

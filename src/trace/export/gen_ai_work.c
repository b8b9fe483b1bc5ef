/* SPDX-License-Identifier: Apache-2.0
 *
 * Other capsules, plans, compaction and checks as spans.
 */
#include "trace/export/gen_ai_internal.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

/* --- other capsules, plans, compaction, checks --- */

static void
on_other_agent (struct gen_ai *g, const char *who, const json_t *line, const char *id, uint64_t ms,
                const char *outcome, const char *good)
{
    _cleanup_free_ char *name = x_asprintf ("invoke_agent %s", who ? who : "?");
    struct telemetry_span *s =
        gen_ai_span (g, name, SPAN_CLIENT, "invoke_agent", g->task.context.span_id,
                     ms - gen_ai_duration (line), ms);
    span_id_of (id, "other", s->id);
    gen_ai_add_text (g, &s->attributes, "gen_ai.agent.name", who);
    attributes_string (&s->attributes, "gen_ai.agent.version", json_get_string (line, "version"));
    attributes_string (&s->attributes, "murmur.child.session.id",
                       json_get_string (line, "child_session_id"));
    attributes_string (&s->attributes, "murmur.delegation.id",
                       json_get_string (line, "delegation_id"));
    attributes_string (&s->attributes, "murmur.outcome", outcome);
    if (! str_eq (outcome, good))
        gen_ai_set_failed (g, s, outcome ? outcome : "_OTHER", json_get_string (line, "reason"));
    gen_ai_emit (g, s);
}

void
gen_ai_delegation (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    on_other_agent (g, json_get_string (line, "capsule"), line, id, ms,
                    json_get_string (line, "outcome"), "ok");
}

void
gen_ai_member_call (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    on_other_agent (g, json_get_string (line, "member"), line, id, ms,
                    json_get_string (line, "status"), "completed");
}

void
gen_ai_plan_start (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    (void)line;
    span_id_of (id, "plan", g->plan_span);
    g->plan_began_ms = ms;
}

void
gen_ai_plan_step (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    const char *step = json_get_string (line, "step_id"),
               *status = json_get_string (line, "status");
    _cleanup_free_ char *name = x_asprintf ("plan_step %s", step ? step : "?");
    struct telemetry_span *s = gen_ai_span (g, name, SPAN_INTERNAL, "plan_step", g->plan_span,
                                            ms - gen_ai_duration (line), ms);
    span_id_of (id, "step", s->id);
    if (s->start_ns < g->plan_began_ms * NS_PER_MS)
        s->start_ns = g->plan_began_ms * NS_PER_MS;
    gen_ai_give_length (s, g->plan_began_ms * NS_PER_MS);
    attributes_string (&s->attributes, "murmur.plan.step.kind", json_get_string (line, "kind"));
    attributes_string (&s->attributes, "murmur.outcome", status);
    gen_ai_add_int (&s->attributes, "murmur.attempts", line, "attempts");
    if (str_eq (status, "failed"))
        gen_ai_set_failed (g, s, "step_failed", json_get_string (line, "error"));
    gen_ai_emit (g, s);
}

void
gen_ai_plan_end (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    (void)id;
    _cleanup_free_ char *name = x_asprintf ("plan %s", g->about.agent_name);
    const char *outcome = json_get_string (line, "outcome");
    struct telemetry_span *s =
        gen_ai_span (g, name, SPAN_INTERNAL, "plan", g->task.context.span_id, g->plan_began_ms, ms);
    memcpy (s->id, g->plan_span, sizeof s->id);
    attributes_string (&s->attributes, "gen_ai.agent.name", g->about.agent_name);
    gen_ai_add_int (&s->attributes, "murmur.plan.steps", line, "steps_total");
    gen_ai_add_int (&s->attributes, "murmur.plan.steps_failed", line, "steps_failed");
    attributes_string (&s->attributes, "murmur.outcome", outcome);
    if (! str_eq (outcome, "completed"))
        gen_ai_set_failed (g, s, outcome ? outcome : "_OTHER", json_get_string (line, "reason"));
    gen_ai_emit (g, s);
}

void
gen_ai_compaction (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    struct telemetry_span *s = gen_ai_span (g, "compaction", SPAN_INTERNAL, "compaction",
                                            g->task.context.span_id, g->work_ended_ms, ms);
    span_id_of (id, "compaction", s->id);
    attributes_bool (&s->attributes, "gen_ai.conversation.compacted", true);
    gen_ai_add_int (&s->attributes, "murmur.tokens_before", line, "tokens_before");
    gen_ai_add_int (&s->attributes, "murmur.tokens_after", line, "tokens_after");
    gen_ai_emit (g, s);
}

void
gen_ai_done_check (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    struct telemetry_span *s =
        gen_ai_span (g, "done_check", SPAN_INTERNAL, "done_check", g->task.context.span_id,
                     ms - gen_ai_duration (line), ms);
    const char *outcome = json_get_string (line, "outcome");
    span_id_of (id, "check", s->id);
    gen_ai_add_int (&s->attributes, "process.exit.code", line, "exit_code");
    attributes_string (&s->attributes, "murmur.outcome", outcome);
    if (! str_eq (outcome, "passed"))
        gen_ai_set_failed (g, s, outcome ? outcome : "_OTHER", NULL);
    gen_ai_emit (g, s);
}

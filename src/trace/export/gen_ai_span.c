/* SPDX-License-Identifier: Apache-2.0
 *
 * What every span of the mapping is made with: its place in the running task's trace, its failure,
 * texts freed of secrets.
 */
#include "trace/export/gen_ai_internal.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

/* --- reading a line --- */

int64_t
gen_ai_int (const json_t *line, const char *key)
{
    const json_t *value = json_object_get (line, key);
    return json_is_integer (value) ? json_integer_value (value) : -1;
}

uint64_t
gen_ai_duration (const json_t *line)
{
    int64_t ms = gen_ai_int (line, "duration_ms");
    return ms > 0 ? (uint64_t)ms : 0;
}

void
gen_ai_add_int (struct attributes *a, const char *key, const json_t *line, const char *member)
{
    int64_t value = gen_ai_int (line, member);
    if (value >= 0)
        attributes_int (a, key, value);
}

/* Text of somebody's: known secrets are replaced. */
void
gen_ai_add_text (struct gen_ai *g, struct attributes *a, const char *key, const char *value)
{
    if (! value)
        return;
    _cleanup_free_ char *clean = g->spec.redactor ? redactor_apply (g->spec.redactor, value) : NULL;
    attributes_string (a, key, clean ? clean : value);
}

/* --- spans --- */

void
gen_ai_emit (struct gen_ai *g, struct telemetry_span *s)
{
    if (g->task.context.is_sampled)
        g->spec.emit (g->spec.ctx, s);
    else
        span_free (s);
}

/* Receivers take a span without length for a fault, and lines have milliseconds. */
void
gen_ai_give_length (struct telemetry_span *s, uint64_t from_ns)
{
    if (s->end_ns > s->start_ns)
        return;
    s->end_ns = s->start_ns;
    if (s->start_ns > from_ns)
        s->start_ns--;
    else
        s->end_ns++;
}

/* Below <parent>; no part of it lies before the task. */
struct telemetry_span *
gen_ai_span (struct gen_ai *g, const char *name, enum span_kind kind, const char *operation,
             const char *parent, uint64_t start_ms, uint64_t end_ms)
{
    struct telemetry_span *s = span_new (name, kind);
    memcpy (s->trace_id, g->task.context.trace_id, sizeof s->trace_id);
    snprintf (s->parent, sizeof s->parent, "%s", parent);
    s->start_ns = start_ms * NS_PER_MS;
    s->end_ns = end_ms * NS_PER_MS;
    if (g->task.agent && s->start_ns < g->task.agent->start_ns)
        s->start_ns = g->task.agent->start_ns;
    gen_ai_give_length (s, g->task.agent ? g->task.agent->start_ns : s->start_ns);
    attributes_string (&s->attributes, "gen_ai.operation.name", operation);
    attributes_string (&s->attributes, "gen_ai.conversation.id", g->task.conversation_id);
    return s;
}

void
gen_ai_set_failed (struct gen_ai *g, struct telemetry_span *s, const char *type,
                   const char *message)
{
    s->has_failed = true;
    attributes_string (&s->attributes, "error.type", type);
    if (message && g->spec.content != GEN_AI_CONTENT_NONE && ! s->failure)
        s->failure =
            g->spec.redactor ? redactor_apply (g->spec.redactor, message) : x_strdup (message);
}

void
gen_ai_link_caller (struct telemetry_span *s, const json_t *line)
{
    struct trace_context caller;
    if (trace_context_parse (json_get_string (line, "traceparent_from_caller"), &caller))
        span_link_add (s, caller.trace_id, caller.span_id);
}

void
gen_ai_add_provider (struct gen_ai *g, struct attributes *a)
{
    attributes_string (a, "gen_ai.provider.name", g->about.provider);
    attributes_string (a, "gen_ai.system", g->about.provider); /* the older name */
    attributes_string (a, "server.address", g->about.server_host);
    if (g->about.server_host)
        attributes_int (a, "server.port", g->about.server_port);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tool calls as execute_tool spans, skills likewise, and the command a call ran below it.
 */
#include "trace/export/gen_ai_internal.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

#define COMMAND_SHOWN 200

/* --- tools --- */

static void
set_tool_failed (struct gen_ai *g, struct telemetry_span *s, const json_t *line)
{
    const char *status = json_get_string (line, "status");
    if (status && ! str_eq (status, "ok"))
        gen_ai_set_failed (g, s, str_eq (status, "error") ? "tool_error" : status,
                           json_get_string (line, "error"));
}

static struct telemetry_span *
tool_span (struct gen_ai *g, const char *tool, const char *type, const json_t *line, const char *id,
           uint64_t ms)
{
    _cleanup_free_ char *name = x_asprintf ("execute_tool %s", tool ? tool : "?");
    struct telemetry_span *s =
        gen_ai_span (g, name, SPAN_INTERNAL, "execute_tool", g->task.context.span_id,
                     ms - gen_ai_duration (line), ms);
    span_id_of (id, "tool", s->id);
    gen_ai_add_text (g, &s->attributes, "gen_ai.tool.name", tool);
    attributes_string (&s->attributes, "gen_ai.tool.type", type);
    gen_ai_add_int (&s->attributes, "murmur.turn", line, "turn");
    gen_ai_add_int (&s->attributes, "murmur.output_bytes", line, "output_bytes");
    set_tool_failed (g, s, line);
    gen_ai_metrics_add (&g->metrics, GEN_AI_TOOL_DURATION, &s->attributes,
                        (double)gen_ai_duration (line) / 1e3);
    return s;
}

/* A call that came over MCP is told by that convention, too, on the one span it has. */
static void
add_mcp (struct telemetry_span *s, const json_t *line)
{
    static const struct {
        const char *by, *transport;
    } ways[] = { { "bridge", "tcp" }, { "client", "pipe" } };
    const char *by = json_get_string (line, "by");
    attributes_string (&s->attributes, "murmur.tool.by", by);
    for (size_t i = 0; by && i < sizeof ways / sizeof *ways; i++) {
        if (! str_eq (by, ways[i].by))
            continue;
        s->kind = SPAN_SERVER;
        attributes_string (&s->attributes, "mcp.method.name", "tools/call");
        attributes_string (&s->attributes, "network.transport", ways[i].transport);
        gen_ai_link_caller (s, line);
    }
}

void
gen_ai_tool_call (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    const char *tool = json_get_string (line, "tool_name");
    struct telemetry_span *s = tool_span (g, tool, "function", line, id, ms);
    struct attributes *a = &s->attributes;
    attributes_string (a, "gen_ai.tool.call.id", json_get_string (line, "tool_call_id"));
    add_mcp (s, line);
    gen_ai_add_int (a, "murmur.input_bytes", line, "input_bytes");
    attributes_string (a, "murmur.state_effect", json_get_string (line, "state_effect"));
    if (g->spec.content == GEN_AI_CONTENT_FULL) {
        const json_t *input = json_object_get (line, "input");
        _cleanup_free_ char *arguments = input ? json_text (input, JSON_TEXT_ORDERED) : NULL;
        gen_ai_add_text (g, a, "gen_ai.tool.call.arguments", arguments);
        gen_ai_add_text (g, a, "gen_ai.tool.call.result", json_get_string (line, "output"));
    }
    memcpy (g->tool.span, s->id, sizeof g->tool.span);
    g->tool.start_ns = s->start_ns;
    g->tool.end_ns = s->end_ns;
    g->tool.is_last = true;
    g->task.tool_calls++;
    gen_ai_emit (g, s);
}

void
gen_ai_skill_call (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    const char *skill = json_get_string (line, "skill_name");
    struct telemetry_span *s = tool_span (g, skill, "extension", line, id, ms);
    attributes_string (&s->attributes, "gen_ai.skill.name", skill);
    gen_ai_emit (g, s);
}

/* Lines have milliseconds: a rounded duration may lie over its parent's edge. */
static void
keep_within (struct telemetry_span *s, uint64_t start_ns, uint64_t end_ns)
{
    if (s->end_ns > end_ns)
        s->end_ns = end_ns;
    if (s->start_ns < start_ns || s->start_ns > s->end_ns)
        s->start_ns = start_ns;
    gen_ai_give_length (s, start_ns);
}

/* The command of a tool call hangs below it: its line follows the call's. One that began when the
 * call was over is another's (a harness's, whose call is told later). */
static bool
is_of_last_call (const struct gen_ai *g, uint64_t began_ms)
{
    return g->tool.is_last && began_ms * NS_PER_MS <= g->tool.end_ns;
}

void
gen_ai_shell (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    const char *binary = json_get_string (line, "binary"),
               *command = json_get_string (line, "command");
    const char *slash = binary ? strrchr (binary, '/') : NULL,
               *program = slash ? slash + 1 : binary;
    _cleanup_free_ char *name = x_asprintf ("command %s", program ? program : "?");
    uint64_t began_ms = ms - gen_ai_duration (line);
    bool is_below = is_of_last_call (g, began_ms);
    struct telemetry_span *s =
        gen_ai_span (g, name, SPAN_INTERNAL, "execute_command",
                     is_below ? g->tool.span : g->task.context.span_id, began_ms, ms);
    span_id_of (id, "command", s->id);
    if (is_below)
        keep_within (s, g->tool.start_ns, g->tool.end_ns);
    struct attributes *a = &s->attributes;
    gen_ai_add_text (g, a, "process.executable.name", program);
    gen_ai_add_text (g, a, "process.executable.path", binary);
    gen_ai_add_int (a, "process.exit.code", line, "exit_code");
    if (g->spec.content != GEN_AI_CONTENT_NONE && command) {
        size_t len = 0;
        for (size_t n = 0; command[len] && n < COMMAND_SHOWN; n++)
            do
                len++;
            while (((unsigned char)command[len] & 0xc0) == 0x80);
        _cleanup_free_ char *shown = x_strndup (command, len);
        gen_ai_add_text (g, a, "process.command_line", shown);
    }
    const char *limit = json_get_string (line, "resource_limit");
    attributes_string (a, "murmur.resource_limit", limit);
    if (limit)
        gen_ai_set_failed (g, s, limit, NULL);
    else if (gen_ai_int (line, "exit_code") != 0)
        gen_ai_set_failed (g, s, "exit", NULL);
    gen_ai_emit (g, s);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Served tools: the list, and a call. See served.h.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "mcp/input.h"
#include "mcp/logging.h"
#include "mcp/result.h"
#include "session/served/served_internal.h"

/* --- the list --- */

static json_t *
schema_of (const struct tool_entry *t)
{
    json_t *schema = json_loads (t->parameters, 0, NULL);
    if (! json_is_object (schema)) {
        json_decref (schema);
        schema = json_object ();
    }
    if (! str_eq (json_get_string (schema, "type"), "object"))
        json_set_string (schema, "type", "object");
    return schema;
}

static json_t *
tool_json (const struct tool_entry *t)
{
    json_t *tool = json_object ();
    json_set_string (tool, "name", t->name);
    if (t->description)
        json_set_string (tool, "description", t->description);
    json_object_set_new (tool, "inputSchema", schema_of (t));
    if (t->output_schema)
        json_object_set_new (tool, "outputSchema", json_loads (t->output_schema, 0, NULL));
    return tool;
}

void
served_tools_list (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    struct served *v = ctx;
    (void)call;
    answer->result = json_array ();
    loop_lock_take (&v->s->loop_lock);
    for (size_t i = 0; i < v->s->kit.tool_count; i++)
        if (str_list_has (&v->exported->tools, v->s->kit.tools[i].name))
            json_array_append_new (answer->result, tool_json (&v->s->kit.tools[i]));
    loop_lock_release (&v->s->loop_lock);
    if (v->exported->agent)
        json_array_append_new (answer->result, served_ask_tool (v));
}

/* --- a call --- */

/* What the trace says of the call, for a client that wants messages. */
static void
tell_outcome (const struct mcp_call *call, const struct call_outcome *o, uint64_t began_ms)
{
    bool is_good = o->status == TOOL_PASSED && ! o->runtime_error;
    const char *level = is_good                               ? "info"
                        : o->runtime_error && ! o->is_refused ? "error"
                                                              : "warning";
    if (! call->sink || ! mcp_level_is_heard (call->request->log_level, level))
        return;
    _cleanup_json_ json_t *data = json_object ();
    json_set_string (data, "tool", call->name);
    json_set_string (data, "status", o->is_refused ? "refused" : is_good ? "ok" : "failed");
    json_set_u64 (data, "duration_ms", clock_monotonic_ms () - began_ms);
    if (o->runtime_error)
        json_set_string (data, "error", o->runtime_error);
    call->sink->send (call->sink->ctx, mcp_log_text (level, "murmur", data));
}

void
served_tools_call (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    struct served *v = ctx;
    if (v->exported->agent && str_eq (call->name, v->exported->agent->name)) {
        served_ask (v, call, answer);
        return;
    }
    if (! str_list_has (&v->exported->tools, call->name)) {
        mcp_refuse (answer, MCP_INVALID_PARAMS, "there is no tool named %s", call->name);
        return;
    }
    /* What goes to a client is not fenced: its own program decides what its model reads. */
    _cleanup_outcome_ struct call_outcome o = { 0 };
    uint64_t began_ms = clock_monotonic_ms ();
    if (! held_run (v, call, &o, answer))
        return;
    tell_outcome (call, &o, began_ms);
    served_answer (v, call->name, call->request->revision, &o, answer);
    served_tell_changes (v);
}

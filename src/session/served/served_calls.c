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

/* A tool with an output schema answers structure; text that is none is its failure. */
static void
set_structure (const char *schema, const struct call_outcome *o, struct mcp_answer *answer)
{
    if (! schema || o->status != TOOL_PASSED ||
        json_object_get (answer->result, "structuredContent"))
        return;
    json_t *value =
        json_loadb (o->text.data ? o->text.data : "", o->text.len, JSON_DECODE_ANY, NULL);
    if (value) {
        json_object_set_new (answer->result, "structuredContent", value);
        return;
    }
    static const char text[] = "the tool did not return what its output schema says: not JSON";
    json_decref (answer->result);
    answer->result = mcp_text_result (text, sizeof text - 1, true);
}

/* What a server of tools answered goes on as it came, images and all, where the client knows its
 * kinds; a text that was cut or made by us is what there is. */
static void
set_result (const struct mcp_request *request, const struct call_outcome *o,
            struct mcp_answer *answer)
{
    answer->result = o->mcp_result && ! o->is_truncated
                         ? mcp_result_passed (o->mcp_result, request->revision)
                         : NULL;
    if (! answer->result)
        answer->result = mcp_text_result (o->text.data ? o->text.data : "", o->text.len,
                                          o->status != TOOL_PASSED);
}

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

/* A modern client learns what it has to declare; an older one reads it in the tool's failure. */
static bool
refuse_lacking (const struct mcp_call *call, const struct call_outcome *o,
                struct mcp_answer *answer)
{
    if (! o->lacking || call->request->revision->era != MCP_MODERN)
        return false;
    mcp_refuse (answer, MCP_CAPABILITY_MISSING, "%s asks for what this client did not declare",
                call->name);
    answer->data =
        json_pack ("{s:o}", "requiredCapabilities", mcp_inputs_capabilities (o->lacking));
    return true;
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
    if (! held_run (v, call, &o, answer) || refuse_lacking (call, &o, answer))
        return;
    tell_outcome (call, &o, began_ms);
    set_result (call->request, &o, answer);
    loop_lock_take (&v->s->loop_lock);
    const struct tool_entry *t = session_tool (v->s, call->name);
    _cleanup_free_ char *schema = t && t->output_schema ? x_strdup (t->output_schema) : NULL;
    loop_lock_release (&v->s->loop_lock);
    set_structure (schema, &o, answer);
    served_tell_changes (v);
}

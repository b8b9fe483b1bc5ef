/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client is answered of a call that is over.
 */
#include "base/alloc.h"
#include "mcp/input.h"
#include "mcp/result.h"
#include "session/served/served_internal.h"

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
set_result (const struct mcp_revision *revision, const struct call_outcome *o,
            struct mcp_answer *answer)
{
    answer->result =
        o->mcp_result && ! o->is_truncated ? mcp_result_passed (o->mcp_result, revision) : NULL;
    if (! answer->result)
        answer->result = mcp_text_result (o->text.data ? o->text.data : "", o->text.len,
                                          o->status != TOOL_PASSED);
}

/* A modern client learns what it has to declare; an older one reads it in the tool's failure. */
static bool
refuse_lacking (const char *tool, const struct mcp_revision *revision, const struct call_outcome *o,
                struct mcp_answer *answer)
{
    if (! o->lacking || revision->era != MCP_MODERN)
        return false;
    mcp_refuse (answer, MCP_CAPABILITY_MISSING, "%s asks for what this client did not declare",
                tool);
    answer->data =
        json_pack ("{s:o}", "requiredCapabilities", mcp_inputs_capabilities (o->lacking));
    return true;
}

void
served_answer (struct served *v, const char *tool, const struct mcp_revision *revision,
               const struct call_outcome *o, struct mcp_answer *answer)
{
    if (refuse_lacking (tool, revision, o, answer))
        return;
    set_result (revision, o, answer);
    loop_lock_take (&v->s->loop_lock);
    const struct tool_entry *t = session_tool (v->s, tool);
    _cleanup_free_ char *schema = t && t->output_schema ? x_strdup (t->output_schema) : NULL;
    loop_lock_release (&v->s->loop_lock);
    set_structure (schema, o, answer);
}

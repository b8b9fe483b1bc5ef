/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of the agent's own tools. Its updates bring a call in pieces; what it says of the input may
 * come later than the call, so a call is told when it runs, and its result when it is over.
 */
#include "acp.h"

#include <stdlib.h>
#include <string.h>

#define CALLS_MAX 4096

struct call {
    char *id, *name, *input, *output;
    bool is_told, is_over;
};

static struct call *calls;
static size_t call_count;

static const struct call *
known (const char *id)
{
    for (size_t i = 0; id != NULL && i < call_count; i++)
        if (strcmp (calls[i].id, id) == 0)
            return &calls[i];
    return NULL;
}

const char *
acp_call_kind (const char *id)
{
    const struct call *c = known (id);
    return c != NULL ? c->name : NULL;
}

const char *
acp_call_input (const char *id)
{
    const struct call *c = known (id);
    return c != NULL ? c->input : NULL;
}

static struct call *
call_of (const char *id)
{
    for (size_t i = 0; i < call_count; i++)
        if (strcmp (calls[i].id, id) == 0)
            return &calls[i];
    struct call *more =
        call_count < CALLS_MAX ? realloc (calls, (call_count + 1) * sizeof *calls) : NULL;
    if (more == NULL)
        return NULL;
    calls = more;
    calls[call_count] = (struct call){ .id = mur_format ("%s", id) };
    return &calls[call_count++];
}

static const struct mur_bridge *bridge;

void
acp_calls_begin (const struct mur_bridge *served)
{
    bridge = served;
}

char *
acp_capsule_tool (const char *title)
{
    static const char *const forms[] = { "mcp__%s__%s", "mcp_%s_%s", "%s__%s", "%s_%s",
                                         "%2$s (%1$s MCP Server)" };
    for (size_t i = 0; bridge != NULL && title != NULL && bridge->tool_names[i] != NULL; i++) {
        bool is_it = false;
        for (size_t k = 0; k < sizeof forms / sizeof *forms && ! is_it; k++) {
            struct mur_text name = { 0 };
            mur_text_printf (&name, forms[k], bridge->server_name, bridge->tool_names[i]);
            is_it = strcmp (title, name.data) == 0;
            mur_text_free (&name);
        }
        if (is_it)
            return mur_format ("mcp__%s__%s", bridge->server_name, bridge->tool_names[i]);
    }
    return NULL;
}

/* A tool of the capsule keeps its name; one of the agent's own is told by its kind. */
static char *
name_of (const struct mur_json *line, mur_node update)
{
    char *title = mur_json_text (line, mur_json_get (line, update, "title")),
         *kind = mur_json_text (line, mur_json_get (line, update, "kind")),
         *of_capsule = acp_capsule_tool (title);
    if (of_capsule != NULL)
        return of_capsule;
    if (title != NULL && strncmp (title, "mcp__", 5) == 0)
        return title;
    return kind != NULL ? kind : title;
}

static char *
input_of (const struct mur_json *line, mur_node update, const char *before)
{
    size_t len = 0;
    mur_node raw = mur_json_get (line, update, "rawInput");
    const char *text = mur_json_raw (line, raw, &len);
    if (mur_json_kind (line, raw) == MUR_JSON_OBJECT && mur_json_count (line, raw) > 0 &&
        mur_json_check (text, len, NULL))
        return mur_format ("%.*s", (int)len, text);
    if (before != NULL)
        return mur_format ("%s", before);
    struct mur_text shown = { 0 };
    mur_text_puts (&shown, "{");
    mur_text_string (&shown, "title", mur_json_text (line, mur_json_get (line, update, "title")));
    mur_text_puts (&shown, "}");
    return shown.data;
}

/* Parts of text, and of changes the paths. */
static char *
output_of (const struct mur_json *line, mur_node update, const char *before)
{
    struct mur_text text = { 0 };
    mur_node content = mur_json_get (line, update, "content");
    for (mur_node n = mur_json_first (line, content); n >= 0; n = mur_json_next (line, n)) {
        char *part = mur_json_text (line,
                                    mur_json_get (line, mur_json_get (line, n, "content"), "text")),
             *path = mur_json_text (line, mur_json_get (line, n, "path"));
        if (part == NULL && path == NULL)
            continue;
        if (text.len > 0)
            mur_text_puts (&text, "\n");
        mur_text_puts (&text, part != NULL ? part : path);
    }
    if (text.len > 0)
        return text.data;
    return mur_format ("%s", before != NULL ? before : "");
}

static void
tell (struct call *c)
{
    if (! c->is_told)
        mur_event_call (c->id, c->name != NULL ? c->name : "tool",
                        c->input != NULL ? c->input : "{}");
    c->is_told = true;
}

void
acp_call_update (const struct mur_json *line, mur_node update)
{
    char *id = mur_json_text (line, mur_json_get (line, update, "toolCallId"));
    struct call *c = id != NULL ? call_of (id) : NULL;
    if (c == NULL || c->is_over)
        return;
    mur_node status = mur_json_get (line, update, "status");
    bool is_good = mur_json_is (line, status, "completed"),
         is_bad = mur_json_is (line, status, "failed");
    char *name = name_of (line, update);
    if (c->name == NULL && name != NULL) {
        c->name = name;
        mur_event_call_started (c->id, name);
    }
    c->input = input_of (line, update, c->input);
    c->output = output_of (line, update, c->output);
    if (mur_json_is (line, status, "in_progress") && strncmp (c->input, "{\"title\"", 8) != 0)
        tell (c);
    if (! is_good && ! is_bad)
        return;
    tell (c);
    mur_event_result (c->id, c->output, is_bad);
    c->is_over = true;
}

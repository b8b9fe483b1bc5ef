/* SPDX-License-Identifier: Apache-2.0
 *
 * Prompts: what a person picks in a client and fills in. Those of the manifest, with arguments and
 * exported files that go along; and each skill by its name, for clients that know no skills.
 */
#include "base/alloc.h"
#include "session/served/served_internal.h"

#include <string.h>

#define MISSING_KEY  "arguments" /* under which a person is asked for those */
#define PROPOSED_MAX 100         /* values of one completion, as the protocol bounds it */

static const struct exported_prompt *
find_prompt (const struct exported_mcp *m, const char *name)
{
    for (size_t i = 0; i < m->prompts.len; i++)
        if (str_eq (m->prompts.items[i].name, name))
            return &m->prompts.items[i];
    return NULL;
}

static const struct staged_artifact *
find_skill (const struct served *v, const char *name)
{
    for (size_t i = 0; v->exported->skills.value && i < v->s->kit.tool_count; i++) {
        const struct staged_artifact *a = served_skill_at (v, i);
        if (a && str_eq (a->tool_name, name))
            return a;
    }
    return NULL;
}

bool
served_check_prompts (const struct session *s, const struct exported_mcp *m, struct mur_error **err)
{
    for (size_t i = 0; m->skills.value && i < s->kit.tool_count; i++)
        if (s->kit.tools[i].is_skill && find_prompt (m, s->kit.tools[i].name))
            return mur_fail (err, E_MCP_010, "exports.mcp.prompts: %s is the name of a skill",
                             s->kit.tools[i].name);
    return true;
}

/* --- the list --- */

static json_t *
named (const char *name, const char *description)
{
    json_t *o = json_object ();
    json_set_string (o, "name", name);
    if (description)
        json_set_string (o, "description", description);
    return o;
}

static json_t *
prompt_json (const struct exported_prompt *p)
{
    json_t *o = named (p->name, p->description), *arguments = json_array ();
    for (size_t i = 0; i < p->arguments.len; i++) {
        const struct exported_argument *a = &p->arguments.items[i];
        json_t *one = named (a->name, a->description);
        json_set_bool (one, "required", a->required.value);
        json_array_append_new (arguments, one);
    }
    json_object_set_new (o, "arguments", arguments);
    return o;
}

void
served_prompts_list (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    struct served *v = ctx;
    (void)call;
    answer->result = json_array ();
    for (size_t i = 0; i < v->exported->prompts.len; i++)
        json_array_append_new (answer->result, prompt_json (&v->exported->prompts.items[i]));
    loop_lock_take (&v->s->loop_lock);
    for (size_t i = 0; v->exported->skills.value && i < v->s->kit.tool_count; i++) {
        const struct staged_artifact *a = served_skill_at (v, i);
        if (a)
            json_array_append_new (answer->result, named (a->tool_name, a->shown.description));
    }
    loop_lock_release (&v->s->loop_lock);
}

/* --- one --- */

/* The text with its places filled; what was not given is left empty. Owned. */
static char *
filled (const char *text, const json_t *arguments)
{
    struct buf out = { 0 };
    for (const char *at; (at = strstr (text, "{{"));) {
        const char *end = strstr (at, "}}");
        _cleanup_free_ char *name = x_strndup (at + 2, (size_t)(end - at) - 2);
        const char *value = json_get_string (arguments, name);
        buf_append (&out, text, (size_t)(at - text));
        buf_puts (&out, value ? value : "");
        text = end + 2;
    }
    buf_puts (&out, text);
    return buf_steal (&out);
}

/* What the call says, and what its person said when asked for the rest. A new object. */
static json_t *
given_arguments (const struct exported_prompt *p, const struct mcp_call *call)
{
    json_t *given = json_copy ((json_t *)(uintptr_t)call->arguments);
    const json_t *responses = json_object_get (call->params, "inputResponses");
    const json_t *content = json_object_get (json_object_get (responses, MISSING_KEY), "content");
    if (! given)
        given = json_object ();
    for (size_t i = 0; i < p->arguments.len; i++) {
        json_t *said = json_object_get (content, p->arguments.items[i].name);
        if (said && ! json_object_get (given, p->arguments.items[i].name))
            json_object_set (given, p->arguments.items[i].name, said);
    }
    return given;
}

/* A modern client's person is asked for arguments that are missing. True: *answer asks. */
static bool
wants_arguments (const struct exported_prompt *p, const struct mcp_call *call,
                 const json_t *arguments, struct mcp_answer *answer)
{
    _cleanup_json_ json_t *properties = json_object (), *required = json_array ();
    if (call->request->revision->era != MCP_MODERN ||
        ! mcp_client_can (call->request, "elicitation"))
        return false;
    for (size_t i = 0; i < p->arguments.len; i++) {
        const struct exported_argument *a = &p->arguments.items[i];
        if (! a->required.value || json_object_get (arguments, a->name))
            continue;
        json_t *property = json_pack ("{s:s}", "type", "string");
        if (a->description)
            json_set_string (property, "description", a->description);
        json_object_set_new (properties, a->name, property);
        json_array_append_new (required, json_string (a->name));
    }
    if (! json_array_size (required))
        return false;
    _cleanup_free_ char *message = x_asprintf ("The prompt %s needs this:", p->name);
    answer->result =
        json_pack ("{s:s, s:{s:{s:s, s:{s:s, s:s, s:{s:s, s:O, s:O}}}}}", "resultType",
                   "input_required", "inputRequests", MISSING_KEY, "method", "elicitation/create",
                   "params", "mode", "form", "message", message, "requestedSchema", "type",
                   "object", "properties", properties, "required", required);
    return true;
}

static bool
has_arguments (const struct exported_prompt *p, const json_t *arguments, struct mcp_answer *no)
{
    for (size_t i = 0; i < p->arguments.len; i++) {
        const struct exported_argument *a = &p->arguments.items[i];
        const json_t *value = json_object_get (arguments, a->name);
        if (! value && a->required.value)
            return mcp_refuse (no, MCP_INVALID_PARAMS, "prompt %s needs the argument %s", p->name,
                               a->name);
        if (value && ! json_is_string (value))
            return mcp_refuse (no, MCP_INVALID_PARAMS, "prompt %s: %s must be a string", p->name,
                               a->name);
    }
    return true;
}

static json_t *
message_of (json_t *content)
{
    return json_pack ("{s:s, s:o}", "role", "user", "content", content);
}

static json_t *
text_message (const char *text, size_t len)
{
    json_t *content = json_object ();
    json_set_string (content, "type", "text");
    json_set_string_n (content, "text", text ? text : "", len);
    return message_of (content);
}

/* A picture as one; anything else as a resource. */
static json_t *
file_message (json_t *file)
{
    const char *type = json_get_string (file, "mimeType"), *blob = json_get_string (file, "blob");
    json_t *content =
        blob && str_starts (type, "image/")
            ? json_pack ("{s:s, s:s, s:s}", "type", "image", "data", blob, "mimeType", type)
            : json_pack ("{s:s, s:O}", "type", "resource", "resource", file);
    json_decref (file);
    return message_of (content);
}

static void
get_prompt (struct served *v, const struct exported_prompt *p, const struct mcp_call *call,
            struct mcp_answer *answer)
{
    _cleanup_json_ json_t *messages = json_array (), *arguments = given_arguments (p, call);
    if (wants_arguments (p, call, arguments, answer) || ! has_arguments (p, arguments, answer))
        return;
    for (size_t i = 0; i < p->attach.len; i++) {
        _cleanup_free_ char *path = filled (p->attach.items[i], arguments);
        json_t *file;
        if (! served_read_file (v, path, &file, answer))
            return;
        json_array_append_new (messages, file_message (file));
    }
    _cleanup_free_ char *text = filled (p->text, arguments);
    json_array_append_new (messages, text_message (text, strlen (text)));
    answer->result = json_pack ("{s:O}", "messages", messages);
    if (p->description)
        json_set_string (answer->result, "description", p->description);
}

void
served_prompts_get (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    struct served *v = ctx;
    const struct exported_prompt *p = find_prompt (v->exported, call->name);
    if (p) {
        get_prompt (v, p, call, answer);
        return;
    }
    loop_lock_take (&v->s->loop_lock);
    const struct staged_artifact *a = find_skill (v, call->name);
    if (a) {
        json_t *message = text_message (a->skill_text.data, a->skill_text.len);
        answer->result = json_pack ("{s:[o]}", "messages", message);
        if (a->shown.description)
            json_set_string (answer->result, "description", a->shown.description);
    } else {
        mcp_refuse (answer, MCP_INVALID_PARAMS, "there is no prompt named %s", call->name);
    }
    loop_lock_release (&v->s->loop_lock);
}

/* --- completion --- */

struct proposal {
    const char *begins;
    json_t *values;
    size_t total;
};

static void
propose (struct proposal *p, const char *value)
{
    if (! value || ! str_starts (value, p->begins))
        return;
    if (p->total++ < PROPOSED_MAX)
        json_array_append_new (p->values, json_string (value));
}

static void
propose_values (const struct exported_prompt *prompt, const char *argument, struct proposal *p)
{
    for (size_t i = 0; i < prompt->arguments.len; i++) {
        const struct exported_argument *a = &prompt->arguments.items[i];
        for (size_t k = 0; str_eq (a->name, argument) && k < a->values.len; k++)
            propose (p, a->values.items[k]);
    }
}

static void
propose_files (struct served *v, const struct mcp_call *call, struct proposal *p)
{
    _cleanup_json_ json_t *entries = served_files_listed (v, call->cancel);
    size_t i;
    json_t *entry;
    json_array_foreach (entries, i, entry) propose (p, json_get_string (entry, "path"));
}

void
served_complete (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    struct served *v = ctx;
    const json_t *ref = json_object_get (call->params, "ref");
    const json_t *argument = json_object_get (call->params, "argument");
    const char *type = json_get_string (ref, "type"), *name = json_get_string (argument, "name");
    const char *value = json_get_string (argument, "value");
    const struct exported_prompt *prompt = find_prompt (v->exported, json_get_string (ref, "name"));
    struct proposal p = { .begins = value, .values = NULL };
    if (! type || ! name || ! value) {
        mcp_refuse (
            answer, MCP_INVALID_PARAMS,
            "completion/complete needs ref.type, argument.name and argument.value, strings");
        return;
    }
    p.values = json_array ();
    if (str_eq (type, "ref/prompt") && prompt)
        propose_values (prompt, name, &p);
    else if (str_eq (type, "ref/resource") && str_eq (name, "path") && v->exported->files.value)
        propose_files (v, call, &p);
    answer->result = json_pack ("{s:{s:o, s:I, s:b}}", "completion", "values", p.values, "total",
                                (json_int_t)p.total, "hasMore", p.total > PROPOSED_MAX);
}

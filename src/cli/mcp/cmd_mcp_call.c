/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur mcp call`: one call of a server that was added, from outside of any capsule.
 *
 * Always true: what the manifest of this folder wants a person to be asked about is not called
 * without an answer.
 */
#include "artifact/store/store.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/mcp/commands.h"
#include "cli/mcp/server_find.h"
#include "cli/mcp/server_pack.h"
#include "manifest/capsule/capsule_entry.h"
#include "manifest/text/suggest.h"
#include "mcp/definitions.h"
#include "policy/approvals.h"

#include <string.h>

#define CALL_MS 120000

/* Nothing is called but what was reviewed. */
static bool
has_tool (const struct found_server *f, const char *tool, struct mur_error **err)
{
    if (tool && mcp_definition_find (f->pinned.tools, tool))
        return true;
    _cleanup_strv_ struct strv names = { 0 };
    struct suggestion near = { NULL, 0 };
    size_t i;
    json_t *one;
    json_array_foreach (f->pinned.tools, i, one) strv_push (&names, json_get_string (one, "name"));
    for (i = 0; tool && i < names.len; i++)
        suggestion_offer (&near, tool, names.items[i]);
    _cleanup_free_ char *all = strv_join (&names, ", ");
    _cleanup_free_ char *rest = x_asprintf ("its tools are: %s", all);
    if (tool)
        mur_fail (err, E_MCP_004, "server %s has no tool %s that was reviewed", f->short_name,
                  tool);
    else
        mur_fail (err, E_MCP_004, "which tool of server %s is to be called is not said",
                  f->short_name);
    return suggestion_hint (&near, rest, err);
}

/* --- its arguments --- */

/* The JSON as it was given, in either place. NULL with *err: in both. */
static const char *
input_of (const struct cli_args *args, struct mur_error **err)
{
    const char *input = cli_positional (args, "INPUT");
    if (! input || ! cli_has (args, "--input"))
        return input ? input : cli_value (args, "--input");
    mur_fail (err, E_IO_003, "the arguments are there twice: as INPUT and as --input");
    return NULL;
}

/* A server may judge them in its own way, so what its schema misses is only said. */
static void
note_missing (const struct found_server *f, const char *tool, const json_t *arguments)
{
    const json_t *definition = mcp_definition_find (f->pinned.tools, tool);
    const json_t *schema = json_object_get (definition, "inputSchema");
    _cleanup_strv_ struct strv missing = { 0 };
    size_t i;
    json_t *name;
    json_array_foreach (json_object_get (schema, "required"), i, name)
    {
        const char *one = json_string_value (name);
        if (one && ! json_object_get (arguments, one))
            strv_push (&missing, one);
    }
    _cleanup_free_ char *all = strv_join (&missing, ", ");
    if (missing.len)
        diag_note ("%s of %s requires %s, which is not given", tool, f->short_name, all);
}

static json_t *
read_arguments (const char *input, struct mur_error **err)
{
    json_t *arguments = json_parse (input, strlen (input), "the arguments", E_IO_003, err);
    if (json_is_object (arguments))
        return arguments;
    if (arguments)
        mur_fail (err, E_IO_003, "the arguments: a JSON object is wanted");
    json_decref (arguments);
    mur_hint (err, "between quotes of the shell: '{\"name\": \"value\"}'");
    return NULL;
}

/* --- who is asked --- */

/* What the rules may call it: the entry's names, and those a model would see. */
static void
names_of (const struct capsule_manifest *m, const struct found_server *f, const char *tool,
          struct strv *out)
{
    strv_push (out, "*");
    strv_push (out, f->name);
    strv_push (out, strrchr (f->name, '/') + 1);
    for (size_t i = 0; i < m->artifacts.len; i++) {
        const struct artifact_entry *e = &m->artifacts.items[i];
        if (e->mcp && str_eq (e->name, f->name))
            strv_take (out, mcp_offered_name (e->mcp, f->short_name, tool));
    }
    strv_take (out, mcp_offered_name (NULL, f->short_name, tool));
}

/* The rule that covers the call; NULL: none does. A host or a path it may mean counts where the
 * arguments hold it. */
static const char *
rule_over (const struct capsule_manifest *m, const struct found_server *f, const char *tool,
           const char *input)
{
    const struct approvals *a = m->approvals;
    const struct str_list *meant[] = { &a->hosts, &a->paths };
    _cleanup_strv_ struct strv names = { 0 };
    names_of (m, f, tool, &names);
    for (size_t i = 0; i < a->tools.len; i++)
        if (strv_contains (&names, a->tools.items[i]))
            return a->tools.items[i];
    for (size_t k = 0; k < ARRAY_LEN (meant); k++)
        for (size_t i = 0; i < meant[k]->len; i++)
            if (strcasestr (input, meant[k]->items[i]))
                return meant[k]->items[i];
    return NULL;
}

/* False with *err, or without when the person said no. */
static bool
is_approved (const struct cli_args *args, const struct found_server *f, const char *tool,
             const char *input, struct mur_error **err)
{
    _cleanup_free_ char *project = project_root_find (".");
    _cleanup_free_ char *path = project ? x_asprintf ("%s/murmur.yaml", project) : NULL;
    _cleanup_ (capsule_manifest_freep) struct capsule_manifest *m =
        path ? capsule_manifest_read (path, MANIFEST_SECRETLESS, err) : NULL;
    if (! m)
        return ! path;
    const char *rule = m->approvals ? rule_over (m, f, tool, input) : NULL;
    if (! rule || cli_has (args, "--yes"))
        return true;
    _cleanup_free_ char *shown = mcp_text_shown (input);
    _cleanup_free_ char *question =
        x_asprintf ("Call %s of %s with %.*s? (approvals: %s)", tool, f->name,
                    (int)utf8_cut (shown, strlen (shown), 500), shown, rule);
    if (server_is_agreed (question))
        return true;
    mur_fail (err, E_MCP_004,
              "%s of %s was not called: approvals of %s name %s, and nobody said yes", tool,
              f->name, path, rule);
    return mur_hint (err, "answer y at a terminal, or give --yes where you are the person");
}

/* --- the call --- */

int
cmd_mcp_call (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_found_ struct found_server f = { 0 };
    _cleanup_start_ struct server_start start = { 0 };
    const char *input = input_of (args, err), *tool = cli_positional (args, "TOOL");
    _cleanup_json_ json_t *arguments = input ? read_arguments (input, err) : NULL;
    if (! arguments)
        return CLI_FAILED;
    if (! server_find (cli_positional (args, "SERVER"), &f, err) || ! has_tool (&f, tool, err) ||
        ! is_approved (args, &f, tool, input, err) || ! server_start_read (&start, args, err))
        return CLI_FAILED;
    note_missing (&f, tool, arguments);
    server_start_as_pinned (&start, f.short_name, &f.pinned, f.tree);
    _cleanup_ (review_closep) struct review *r = review_open (&start.request, err);
    _cleanup_json_ json_t *result = r ? review_call (r, tool, arguments, CALL_MS, err) : NULL;
    if (! result)
        return CLI_FAILED;
    _cleanup_free_ char *text = json_pretty (result, JSON_TEXT_ORDERED);
    out_printf ("%s\n", text);
    return json_is_true (json_object_get (result, "isError")) ? CLI_FAILED : CLI_OK;
}

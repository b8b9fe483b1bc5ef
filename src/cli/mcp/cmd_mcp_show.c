/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur mcp show` and `mur mcp diff`: a server that was added, as it was reviewed and as it is.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "cli/mcp/commands.h"
#include "cli/mcp/server_find.h"
#include "cli/mcp/server_pack.h"
#include "mcp/definitions.h"
#include "net/oauth/oauth_store.h"

#include <string.h>

/* Where it is, and whether somebody is logged in there. */
static void
print_place (const char *url)
{
    _cleanup_error_ struct mur_error *why = NULL;
    _cleanup_ (oauth_grant_freep) struct oauth_grant *g = oauth_store_read (url, &why);
    out_printf ("  far away, at %s\n", url);
    if (why)
        out_printf ("  its login: %s\n", why->message);
    if (! g)
        return;
    char until[25] = "";
    if (g->expires_ms)
        clock_rfc3339 (g->expires_ms, until);
    out_printf ("  logged in by %s%s%s%s%s%s\n", g->issuer, g->scope ? " for " : "",
                g->scope ? g->scope : "", *until ? ", until " : "", until,
                *until && g->refresh_token ? " and then made fresh" : "");
}

/* Indented, so that no line of the server's reads as one of ours. */
static void
print_instructions (const char *text)
{
    out_puts ("instructions (not shown to a model unless mcp.instructions is set):\n");
    for (size_t len; *text; text += len + (text[len] == '\n')) {
        len = strcspn (text, "\n");
        out_printf ("    %.*s\n", (int)len, text);
    }
}

int
cmd_mcp_show (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_found_ struct found_server f = { 0 };
    if (! server_find (cli_positional (args, "SERVER"), &f, err))
        return CLI_FAILED;
    const struct mcp_pinned *p = &f.pinned;
    if (cli_has (args, "--json")) {
        _cleanup_json_ json_t *o = json_copy (p->whole);
        json_set_string (o, "name", f.name);
        json_set_string (o, "version", f.version);
        json_set_string (o, "sha256", f.package->sha256);
        json_object_set_new (o, "hashes", mcp_pinned_hashes (p));
        _cleanup_free_ char *text = json_pretty (o, JSON_TEXT_ORDERED);
        out_printf ("%s\n", text);
        return CLI_OK;
    }
    _cleanup_free_ char *words = p->url ? NULL : json_text (p->args, JSON_TEXT_ORDERED);
    out_printf ("%s@%s\n  from %s\n", f.name, f.version, p->source);
    if (p->url)
        print_place (p->url);
    else
        out_printf ("  run by %s %s, with %s\n", p->interpreter, p->entry, words);
    out_printf ("  speaks %s (%s)\n  package %s\n", p->revision,
                p->era == MCP_MODERN ? "modern" : "legacy", f.package->sha256);
    server_print_tools (p->tools);
    if (p->instructions)
        print_instructions (p->instructions);
    return CLI_OK;
}

int
cmd_mcp_diff (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_found_ struct found_server f = { 0 };
    _cleanup_start_ struct server_start start = { 0 };
    if (! server_find (cli_positional (args, "SERVER"), &f, err) ||
        ! server_start_read (&start, args, err))
        return CLI_FAILED;
    server_start_as_pinned (&start, f.short_name, &f.pinned, f.tree);
    _cleanup_ (review_closep) struct review *r = review_open (&start.request, err);
    _cleanup_json_ json_t *now = r ? review_tools (r, err) : NULL;
    if (! now)
        return CLI_FAILED;
    size_t count = server_print_difference (f.pinned.tools, now);
    if (count)
        out_printf (count == 1 ? "%zu tool differs\n" : "%zu tools differ\n", count);
    else
        out_puts ("its tools are as they were reviewed\n");
    return count ? CLI_FAILED : CLI_OK;
}

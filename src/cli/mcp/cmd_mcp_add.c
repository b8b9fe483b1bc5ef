/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur mcp add` and `mur mcp update`: a server fetched, looked at and packed.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "cli/mcp/commands.h"
#include "cli/mcp/server_find.h"
#include "cli/mcp/server_pack.h"
#include "manifest/text/grammar.h"
#include "net/gateway.h"

#include <stdlib.h>
#include <string.h>

struct adding {
    struct strv also, scripted;
    struct server_source source;
    struct server_start start;
};

static void
adding_clear (struct adding *a)
{
    strv_free (&a->also);
    strv_free (&a->scripted);
    server_source_clear (&a->source);
    server_start_clear (&a->start);
}

static bool
fetch (struct adding *a, const struct cli_args *args, const char *source, bool has_version,
       struct mur_error **err)
{
    split_list (cli_value (args, "--with"), &a->also);
    split_list (cli_value (args, "--allow-scripts"), &a->scripted);
    const struct source_request q = { .source = source,
                                      .bin = cli_value (args, "--bin"),
                                      .also = (const char *const *)a->also.items,
                                      .also_count = a->also.len,
                                      .scripted = (const char *const *)a->scripted.items,
                                      .scripted_count = a->scripted.len,
                                      .has_version = has_version };
    diag_progress ("fetching %s", source);
    return server_start_read (&a->start, args, err) && server_source_fetch (&q, &a->source, err);
}

static bool
read_env (struct adding *a, const struct cli_args *args, struct mur_error **err)
{
    split_list (cli_value (args, "--env"), &a->start.env);
    for (size_t i = 0; i < a->start.env.len; i++) {
        const char *item = a->start.env.items[i];
        if (! strchr (item, '=') || item[0] == '=')
            return mur_fail (err, E_IO_003, "--env: '%s' is no NAME=VALUE", item);
    }
    return true;
}

static bool
check_key_header (const char *name, const char *source, struct mur_error **err)
{
    const char *fault = name ? gateway_auth_fault (name, "{key}") : NULL;
    if (fault)
        return mur_fail (err, E_IO_003, "--key-header: '%s' %s", name, fault);
    return ! name || strstr (source, "://") ||
           mur_fail (err, E_IO_003, "--key-header is for a server far away");
}

static void
print_words (const char *key, const struct strv *words)
{
    if (! words->len)
        return;
    out_printf ("      %s: [", key);
    for (size_t i = 0; i < words->len; i++) {
        _cleanup_json_ json_t *text = json_string_lossy (words->items[i], strlen (words->items[i]));
        _cleanup_free_ char *quoted = json_dumps (text, JSON_ENCODE_ANY | JSON_COMPACT);
        out_printf ("%s%s", i ? ", " : "", quoted);
    }
    out_printf ("]\n");
}

/* Of one far away: its address, and its key when it has one. */
static void
print_place (const struct adding *a)
{
    out_printf ("    mcp: {url: \"%s\"}\n", a->source.url);
    if (a->start.key_name)
        out_printf ("    gateway: {api_key: \"${%s}\"}\n", a->start.key_name);
}

/* Variables that are keys: what is packed is a placeholder. */
static void
key_names (const struct strv *env, struct strv *out)
{
    for (size_t i = 0; i < env->len; i++) {
        const char *item = env->items[i];
        _cleanup_free_ char *name = x_strndup (item, strcspn (item, "="));
        if (env_name_is_credential_shaped (name))
            strv_push (out, name);
    }
}

/* What goes into the manifest. */
static void
print_block (const struct adding *a, const char *name, const char *version)
{
    out_printf ("\nIt is in your store. Put this into murmur.yaml:\n\n"
                "artifacts:\n"
                "  - name: %s\n"
                "    version: \"%s\"\n"
                "    runtime: mcp\n",
                name, version);
    if (a->source.url)
        print_place (a);
    _cleanup_strv_ struct strv keys = { 0 };
    key_names (&a->start.env, &keys);
    if (a->start.args.len || keys.len)
        out_printf ("    mcp:\n");
    print_words ("args", &a->start.args);
    print_words ("secret_env", &keys);
    if (a->start.work || a->start.hosts.len || a->start.programs.len)
        out_printf ("    capabilities:\n");
    if (a->start.programs.len) {
        _cleanup_free_ char *programs = strv_join (&a->start.programs, ", ");
        out_printf ("      shell: {allow: [%s]}\n", programs);
    }
    if (a->start.work)
        out_printf ("      filesystem: {scope: .}\n");
    if (a->start.hosts.len) {
        _cleanup_free_ char *hosts = strv_join (&a->start.hosts, "\", \"");
        out_printf ("      network: {allow: [\"%s\"]}\n", hosts);
    }
    if (! a->source.url && ! a->start.work)
        out_printf ("\nIt sees an empty folder%s. capabilities: {filesystem: {scope: .}} beside "
                    "runtime shows it the work folder%s.\n",
                    a->start.hosts.len ? "" : " and no network",
                    a->start.hosts.len ? "" : ", network: {allow: [HOST]} opens hosts");
}

int
cmd_mcp_add (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_ (adding_clear) struct adding a = { 0 };
    _cleanup_free_ char *name = NULL, *version = NULL;
    size_t count;
    const char *const *words = cli_positionals (args, "ARGS", &count);
    const char *source = cli_positional (args, "SOURCE"),
               *header = cli_value (args, "--key-header");
    if (! check_key_header (header, source, err) ||
        ! fetch (&a, args, source, cli_has (args, "--version"), err) || ! read_env (&a, args, err))
        return CLI_FAILED;
    a.start.key_header = header ? x_strdup (header) : NULL;
    for (size_t i = 0; i < count; i++)
        strv_push (&a.start.args, words[i]);
    if (a.source.url && (a.start.args.len || a.start.env.len || a.start.work || a.start.hosts.len ||
                         a.start.programs.len)) {
        mur_fail (err, E_IO_003,
                  "arguments, --env, --scope, --network and --program are for a server that is "
                  "started here; %s is far away",
                  a.source.url);
        return CLI_FAILED;
    }
    const struct pack_request q = { .source = &a.source,
                                    .name = cli_value (args, "--name"),
                                    .version = cli_value (args, "--version"),
                                    .start = &a.start,
                                    .is_accepted = cli_has (args, "--accept") };
    if (! server_pack (&q, &name, &version, err))
        return CLI_FAILED;
    print_block (&a, name, version);
    return CLI_OK;
}

/* --- update --- */

/* The source it came from, in another version. */
static char *
source_in_version (const char *source, const char *version)
{
    const char *at = strrchr (source, '@');
    if (! version || ! at || strchr (at, '/') || at == source || strstr (source, "://"))
        return x_strdup (source);
    return x_asprintf ("%.*s@%s", (int)(at - source), source, version);
}

/* What is far away has no versions of its own: they are counted. Owned; NULL: not for us to say. */
static char *
next_version (const struct found_server *before)
{
    char *end;
    unsigned long long number = strtoull (before->version, &end, 10);
    return before->pinned.url && ! *end ? x_asprintf ("%llu", number + 1) : NULL;
}

int
cmd_mcp_update (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_ (adding_clear) struct adding a = { 0 };
    _cleanup_found_ struct found_server before = { 0 };
    _cleanup_free_ char *name = NULL, *stored = NULL;
    const char *typed = cli_positional (args, "SERVER"), *at = strrchr (typed, '@');
    _cleanup_free_ char *called =
        at && at != typed ? x_strndup (typed, (size_t)(at - typed)) : x_strdup (typed);
    const char *given = cli_value (args, "--source"), *version = at && at != typed ? at + 1 : NULL;
    if (! server_find (called, &before, err))
        return CLI_FAILED;
    _cleanup_free_ char *next = version ? NULL : next_version (&before);
    if (next)
        version = next;
    if (str_starts (before.pinned.source, "path:") && ! given) {
        mur_fail (err, E_IO_003, "%s was added from a folder", before.name);
        mur_hint (err, "say which: --source path:FOLDER");
        return CLI_FAILED;
    }
    _cleanup_free_ char *source =
        given ? x_strdup (given) : source_in_version (before.pinned.source, version);
    if (! fetch (&a, args, source, version, err))
        return CLI_FAILED;
    server_start_as_pinned (&a.start, before.short_name, &before.pinned, a.source.tree);
    const struct pack_request q = { .source = &a.source,
                                    .name = before.short_name,
                                    .version = version,
                                    .start = &a.start,
                                    .is_accepted = cli_has (args, "--accept"),
                                    .before = before.pinned.tools };
    if (! server_pack (&q, &name, &stored, err))
        return CLI_FAILED;
    out_printf ("\n%s@%s is in your store: set that version in murmur.yaml and run mur install\n",
                name, stored);
    return CLI_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur mcp login` and `mur mcp logout`: a person's agreement that murmur may use a server far away,
 * kept below ~/.murmur, and given back.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "cli/line/args.h"
#include "cli/mcp/commands.h"
#include "cli/mcp/login_listener.h"
#include "cli/mcp/server_find.h"
#include "manifest/settings/config.h"
#include "net/oauth/oauth_login.h"

#include <string.h>

/* The address behind what was typed. Owned. */
static char *
address_of (const char *typed, struct mur_error **err)
{
    _cleanup_found_ struct found_server f = { 0 };
    if (strstr (typed, "://"))
        return x_strdup (typed);
    if (! server_find (typed, &f, err))
        return NULL;
    if (f.pinned.url)
        return x_strdup (f.pinned.url);
    mur_fail (err, E_MCP_009, "%s is started here: there is nothing to log in to", f.name);
    return NULL;
}

/* --- login --- */

static bool
read_secret (const struct cli_args *args, struct secret **out, struct mur_error **err)
{
    const char *name = cli_value (args, "--client-secret-env");
    _cleanup_config_ struct config *config = name ? config_load (err) : NULL;
    if (! name)
        return true;
    if (! config)
        return false;
    const char *variable = getenv (name);
    *out = config_credential_copy (config, name);
    if (! *out && variable && *variable)
        *out = secret_new (variable, strlen (variable));
    return *out || mur_fail (err, E_MCP_009,
                             "--client-secret-env %s: neither credentials.%s nor a variable %s is "
                             "set",
                             name, name, name);
}

static bool
is_ours (void *ctx, const char *query)
{
    return oauth_login_is_ours (ctx, query);
}

static void
show_address (const struct cli_args *args, const struct oauth_login *login)
{
    const char *url = oauth_login_address (login);
    bool is_open = ! cli_has (args, "--no-browser") && login_open_browser (url);
    diag_note ("%s asks you to agree%s:\n%s", oauth_login_issuer (login),
               is_open ? " in your browser" : "; open this", url);
    if (isatty (STDIN_FILENO))
        diag_note ("a browser on another machine ends at an address that it cannot reach: paste "
                   "that address here");
}

static bool
log_in (const struct cli_args *args, const struct oauth_login_request *q,
        struct login_listener *listener, struct mur_error **err)
{
    _cleanup_ (oauth_login_freep) struct oauth_login *login = oauth_login_begin (q, err);
    if (! login)
        return false;
    show_address (args, login);
    _cleanup_free_ char *query =
        login_listener_wait (listener, cli_number (args, "--timeout") * 1000, is_ours, login, err);
    if (! query || ! oauth_login_finish (login, query, err))
        return false;
    out_printf ("logged in to %s by %s\n", q->asker.server, oauth_login_issuer (login));
    return true;
}

int
cmd_mcp_login (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_free_ char *url = address_of (cli_positional (args, "SERVER"), err);
    _cleanup_secret_ struct secret *secret = NULL;
    const char *fault = url ? oauth_url_fault (url, url) : NULL;
    if (fault)
        mur_fail (err, E_MCP_009, "'%s' %s", url, fault);
    if (! url || fault || ! read_secret (args, &secret, err))
        return CLI_FAILED;
    _cleanup_ (login_listener_freep) struct login_listener *listener =
        login_listener_new ((unsigned)cli_number (args, "--port"), err);
    _cleanup_ (http_client_freep) struct http_client *http = http_client_new ();
    if (! listener)
        return CLI_FAILED;
    const struct oauth_login_request q = {
        .asker = { .server = url, .named = cli_value (args, "--issuer"), .http = http },
        .client_id = cli_value (args, "--client-id"),
        .client_secret = secret,
        .scope = cli_value (args, "--scope"),
        .redirect_uri = login_listener_uri (listener),
    };
    return log_in (args, &q, listener, err) ? CLI_OK : CLI_FAILED;
}

/* --- logout --- */

int
cmd_mcp_logout (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_free_ char *url = address_of (cli_positional (args, "SERVER"), err);
    if (! url)
        return CLI_FAILED;
    _cleanup_ (http_client_freep) struct http_client *http = http_client_new ();
    _cleanup_close_ int lock = oauth_store_lock (url, err);
    if (lock < 0)
        return CLI_FAILED;
    /* A file that cannot be read goes all the same. */
    _cleanup_ (oauth_grant_freep) struct oauth_grant *g = oauth_store_read (url, NULL);
    const struct oauth_asker asker = { .server = url,
                                       .named = g && g->is_named ? g->issuer : NULL,
                                       .http = http };
    if (g)
        oauth_ask_revoke (&asker, g);
    if (oauth_store_remove (url))
        out_printf ("logged out of %s\n", url);
    else
        out_printf ("nobody was logged in to %s\n", url);
    return CLI_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur doctor`: a declared server of tools - what was reviewed of it, the program it is run by and
 * what its entry asks of it and of this environment. Nothing of it is started.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "base/tokens.h"
#include "cli/health/doctor_internal.h"
#include "mcp/definitions.h"
#include "mcp/pinned.h"
#include "net/oauth/oauth_store.h"
#include "sandbox/programs/exec_allowlist.h"

#include <string.h>
#include <unistd.h>

/* One row below the server's own. */
static void
row (size_t *tally, const char *sign, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    if (tally)
        (*tally)++;
    out_printf ("     %s  %s\n", sign, text);
}

static bool
is_offered (const struct mcp_block *m, const char *name)
{
    return ! m || ! m->tools.is_set || str_list_has (&m->tools, name);
}

static void
tell_tools (struct doctor *d, const struct mcp_block *m, const struct mcp_pinned *p)
{
    size_t offered = 0, i;
    uint64_t tokens = 0;
    json_t *tool;
    json_array_foreach (p->tools, i, tool)
    {
        _cleanup_free_ char *text = json_text (tool, JSON_TEXT_SORTED);
        bool is_wanted = is_offered (m, json_get_string (tool, "name"));
        offered += is_wanted;
        tokens += is_wanted ? tokens_count (text, strlen (text)) : 0;
    }
    row (NULL, "·", "%s, revision %s: %zu of %zu tools offered, %llu tokens of each request",
         p->source, p->revision, offered, json_array_size (p->tools), (unsigned long long)tokens);
    for (i = 0; m && i < m->tools.len; i++)
        if (! mcp_definition_find (p->tools, m->tools.items[i]))
            row (&d->errors, "✗", "mcp.tools: it has no tool %s; mur mcp show lists them",
                 m->tools.items[i]);
}

/* What it is run by, as a launch finds it: through links and the shims of version managers. */
static void
tell_interpreter (struct doctor *d, const struct mcp_pinned *p)
{
    _cleanup_free_ char *path = exec_find_candidate (p->interpreter, getenv ("PATH"));
    _cleanup_free_ char *version =
        path && access (path, X_OK) == 0 ? doctor_version_of (p->interpreter) : NULL;
    if (! path || access (path, X_OK) < 0)
        row (&d->errors, "✗", "run by %s, which is not on PATH: install it", p->interpreter);
    else
        row (version ? &d->passed : &d->warnings, version ? "✓" : "⚠", "run by %s   %s", path,
             version ? version : "says no version");
}

static void
tell_keys (struct doctor *d, const struct mcp_block *m)
{
    for (size_t i = 0; m && i < m->secret_env.len; i++) {
        const char *value = getenv (m->secret_env.items[i]);
        if (! value || ! *value)
            row (&d->errors, "✗", "mcp.secret_env: %s is not set", m->secret_env.items[i]);
        else
            row (&d->warnings, "⚠", "%s is handed to it plainly; a gateway would keep it",
                 m->secret_env.items[i]);
    }
}

/* Who is logged in there, and for how long. A login that lies open is refused when it is read. */
static void
tell_login (struct doctor *d, const char *url)
{
    _cleanup_error_ struct mur_error *why = NULL;
    _cleanup_ (oauth_grant_freep) struct oauth_grant *g = oauth_store_read (url, &why);
    if (! g) {
        row (why ? &d->errors : NULL, why ? "✗" : "·", "%s; mur mcp login %s",
             why ? why->message : "nobody is logged in there, which matters where it wants that",
             url);
        return;
    }
    char until[25] = "";
    bool is_over = g->expires_ms && g->expires_ms <= clock_unix_ms ();
    _cleanup_free_ char *place = oauth_store_place (url);
    if (g->expires_ms)
        clock_rfc3339 (g->expires_ms, until);
    if (is_over && ! g->refresh_token) {
        row (&d->warnings, "⚠",
             "the login by %s ended %s and cannot be made fresh; mur mcp login %s", g->issuer,
             until, url);
        return;
    }
    row (&d->passed, "✓", "logged in by %s%s%s, %s; kept in %s for you alone", g->issuer,
         *until ? ", until " : "", until,
         g->refresh_token ? "made fresh by itself" : "not to be made fresh", place);
}

void
doctor_server (struct doctor *d, const struct artifact_entry *e, const struct package *package)
{
    _cleanup_mcp_pinned_ struct mcp_pinned p = { 0 };
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    if (! package_read_entry (package, MCP_PINNED_FILE, &text, &err) ||
        ! mcp_pinned_read (&p, text.data ? text.data : "", text.len, MCP_PINNED_FILE, &err)) {
        row (&d->errors, "✗", "no server of tools: %s; mur mcp add makes one", err->message);
        return;
    }
    tell_tools (d, e->mcp, &p);
    if (p.url)
        row (NULL, "·", "far away, at %s", p.url);
    else
        tell_interpreter (d, &p);
    if (p.url && ! e->gateway)
        tell_login (d, p.url);
    tell_keys (d, e->mcp);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "net/oauth/oauth_token.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <string.h>

#define EARLY_MS 60000 /* before its end, and never more than half of its life */

static bool
is_fresh (const struct oauth_grant *g, const struct secret *refused)
{
    uint64_t early = g->lifetime_ms / 2 < EARLY_MS ? g->lifetime_ms / 2 : EARLY_MS;
    if (refused && secret_equal (g->access_token, refused))
        return false;
    return ! g->expires_ms || clock_unix_ms () + early < g->expires_ms;
}

static struct secret *
copy_of (const struct oauth_grant *g)
{
    return secret_copy (g->access_token);
}

static bool
refresh (const struct oauth_asker *a, struct oauth_grant *g, bool *is_refused,
         struct mur_error **err)
{
    _cleanup_buf_ struct buf form = { 0 };
    struct oauth_asker own = *a;
    own.named = g->is_named ? g->issuer : NULL;
    oauth_form_add (&form, "grant_type", "refresh_token");
    oauth_form_add (&form, "refresh_token", secret_reveal (g->refresh_token));
    oauth_form_add (&form, "resource", g->resource);
    return oauth_ask_token (&own, g, &form, is_refused, err) && oauth_store_write (g, err);
}

/* A refresh token that is refused is kept no longer. */
static void
end_login (const struct oauth_asker *a, const struct oauth_grant *g, const struct mur_error *why,
           struct mur_error **err)
{
    bool is_removed = ! g->refresh_token && oauth_store_write (g, NULL);
    mur_fail (err, E_MCP_009, "the login to it is over: %s%s", why->message,
              is_removed ? "; its refresh token was removed" : "");
    mur_hint (err, "mur mcp login %s", a->server);
}

/* Under the lock of the store, so that one does it. */
static struct secret *
make_fresh (const struct oauth_asker *a, const struct secret *refused, struct mur_error **err)
{
    _cleanup_close_ int lock = oauth_store_lock (a->server, err);
    _cleanup_ (oauth_grant_freep) struct oauth_grant *g =
        lock < 0 ? NULL : oauth_store_read (a->server, err);
    _cleanup_error_ struct mur_error *why = NULL;
    bool is_refused = false;
    if (! g)
        return NULL;
    if (is_fresh (g, refused))
        return copy_of (g);
    bool is_over = g->expires_ms && clock_unix_ms () >= g->expires_ms;
    if (g->refresh_token && refresh (a, g, &is_refused, &why))
        return copy_of (g);
    if (! is_over && ! (refused && secret_equal (g->access_token, refused)))
        return copy_of (g); /* it is good for a little while */
    if (why && ! is_refused)
        return mur_propagate (err, steal_ptr (&why)), NULL;
    if (why)
        end_login (a, g, why, err);
    return NULL;
}

struct secret *
oauth_token_get (const struct oauth_asker *a, const struct secret *refused, struct mur_error **err)
{
    _cleanup_ (oauth_grant_freep) struct oauth_grant *g = oauth_store_read (a->server, err);
    if (! g)
        return NULL;
    return is_fresh (g, refused) ? copy_of (g) : make_fresh (a, refused, err);
}

void
oauth_token_wants (const char *server, const char *scope)
{
    _cleanup_close_ int lock = oauth_store_lock (server, NULL);
    _cleanup_ (oauth_grant_freep) struct oauth_grant *g =
        lock < 0 ? NULL : oauth_store_read (server, NULL);
    if (! g)
        return;
    char *both = oauth_scopes_joined (g->wanted_scope, scope);
    free (g->wanted_scope);
    g->wanted_scope = both;
    (void)oauth_store_write (g, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "net/oauth/oauth_login.h"

#include "base/alloc.h"
#include "base/digest.h"

#include <string.h>

#define OFFLINE "offline_access"

struct oauth_login {
    struct oauth_asker asker;
    struct oauth_resource resource;
    struct oauth_issuer issuer;
    struct oauth_grant *grant; /* filled in as things are known */
    char *scope, *redirect_uri, *state, *verifier, *address;
};

void
oauth_login_free (struct oauth_login *l)
{
    if (! l)
        return;
    oauth_resource_clear (&l->resource);
    oauth_issuer_clear (&l->issuer);
    oauth_grant_free (l->grant);
    char *texts[] = { l->scope, l->redirect_uri, l->state, l->verifier, l->address };
    for (size_t i = 0; i < ARRAY_LEN (texts); i++)
        free (texts[i]);
    free (l);
}

const char *
oauth_login_address (const struct oauth_login *l)
{
    return l->address;
}

const char *
oauth_login_issuer (const struct oauth_login *l)
{
    return l->issuer.issuer;
}

static char *
random_text (void)
{
    unsigned char bytes[32];
    random_bytes (bytes, sizeof bytes);
    return base64url_encode (bytes, sizeof bytes);
}

/* --- who gives tokens --- */

/* The first of these addresses where something lies; NULL without *err: none. */
static json_t *
first_of (const struct oauth_asker *a, const struct strv *urls, struct mur_error **err)
{
    for (size_t i = 0; i < urls->len; i++) {
        _cleanup_error_ struct mur_error *why = NULL;
        json_t *found = oauth_ask_metadata (a, urls->items[i], &why);
        if (found)
            return found;
        if (why)
            return mur_propagate (err, steal_ptr (&why)), NULL;
    }
    return NULL;
}

static bool
find_resource (struct oauth_login *l, const struct oauth_challenge *challenge,
               struct mur_error **err)
{
    _cleanup_strv_ struct strv urls = { 0 };
    _cleanup_error_ struct mur_error *why = NULL;
    const char *server = l->asker.server;
    if (challenge->resource_metadata)
        strv_push (&urls, challenge->resource_metadata);
    else
        oauth_well_known (OAUTH_OF_RESOURCE, server, &urls);
    _cleanup_json_ json_t *metadata = first_of (&l->asker, &urls, &why);
    if (why)
        return mur_propagate (err, steal_ptr (&why));
    if (metadata)
        return oauth_resource_read (metadata, server, &l->resource, err);
    /* Servers from before that document are their own issuers. */
    const char *host = strstr (server, "://") + 3;
    l->resource.resource = x_strdup (server);
    strv_printf (&l->resource.issuers, "%.*s",
                 (int)((size_t)(host - server) + strcspn (host, "/?#")), server);
    return true;
}

static bool
find_issuer (struct oauth_login *l, struct mur_error **err)
{
    const char *named = l->asker.named;
    const struct strv *issuers = &l->resource.issuers;
    const char *issuer = named ? named : issuers->len ? issuers->items[0] : NULL;
    _cleanup_strv_ struct strv urls = { 0 };
    _cleanup_error_ struct mur_error *why = NULL;
    if (! issuer)
        return oauth_fail (err, "%s does not say who gives tokens for it", l->asker.server);
    const char *trusted = named ? named : l->asker.server;
    const char *fault = oauth_url_fault (issuer, trusted);
    if (fault)
        return oauth_fail (err, "the issuer %.200s that %s names %s", issuer, l->asker.server,
                           fault);
    oauth_well_known (OAUTH_OF_ISSUER, issuer, &urls);
    _cleanup_json_ json_t *metadata = first_of (&l->asker, &urls, &why);
    if (why)
        return mur_propagate (err, steal_ptr (&why));
    if (! metadata)
        return oauth_fail (err, "%s wants a key or a login, and no metadata of an issuer lie at %s",
                           l->asker.server, issuer);
    return oauth_issuer_read (metadata, issuer, trusted, &l->issuer, err);
}

/* --- who asks --- */

static json_t *
registration (const struct oauth_login *l)
{
    const struct oauth_issuer *i = &l->issuer;
    json_t *o = json_pack ("{s:s, s:[s], s:[s, s], s:[s], s:s, s:s}", "client_name", "murmur",
                           "redirect_uris", l->redirect_uri, "grant_types", "authorization_code",
                           "refresh_token", "response_types", "code", "application_type", "native",
                           "token_endpoint_auth_method",
                           i->takes_public ? "none"
                           : i->takes_post ? "client_secret_post"
                                           : "client_secret_basic");
    if (*l->scope)
        json_set_string (o, "scope", l->scope);
    return o;
}

static bool
register_client (struct oauth_login *l, struct mur_error **err)
{
    struct oauth_grant *g = l->grant;
    _cleanup_json_ json_t *wanted = registration (l);
    if (! l->issuer.registration_endpoint) {
        oauth_fail (err, "%s does not let a client register itself", l->issuer.issuer);
        return mur_hint (err,
                         "register murmur there, with the redirect %s, and name it: --client-id, "
                         "and --port to keep the redirect",
                         l->redirect_uri);
    }
    _cleanup_json_ json_t *got =
        oauth_ask_json (&l->asker, l->issuer.registration_endpoint, wanted, err);
    const char *id = json_get_string (got, "client_id");
    const char *secret = json_get_string (got, "client_secret");
    const char *method = json_get_string (got, "token_endpoint_auth_method");
    if (got && ! id)
        oauth_fail (err, "%s registered a client without an id", l->issuer.issuer);
    if (! id)
        return false;
    g->client_id = x_strdup (id);
    if (secret && *secret && ! str_eq (method, "none"))
        g->client_secret = secret_new (secret, strlen (secret));
    g->is_basic = str_eq (method, "client_secret_basic");
    return true;
}

static bool
settle_client (struct oauth_login *l, const struct oauth_login_request *q, struct mur_error **err)
{
    struct oauth_grant *g = l->grant;
    if (! q->client_id)
        return register_client (l, err);
    if (str_starts (q->client_id, "https://") && ! l->issuer.takes_documents)
        return oauth_fail (err, "%s takes no address as a client's id", l->issuer.issuer);
    g->client_id = x_strdup (q->client_id);
    g->client_secret = q->client_secret ? secret_copy (q->client_secret) : NULL;
    g->is_basic = ! l->issuer.takes_post;
    return true;
}

/* --- what for --- */

/* What the server asks for now comes first; what was granted, or asked for, before stays. */
static void
settle_scope (struct oauth_login *l, const struct oauth_login_request *q,
              const struct oauth_challenge *challenge)
{
    _cleanup_ (oauth_grant_freep) struct oauth_grant *before =
        oauth_store_read (l->asker.server, NULL);
    bool is_same = before && str_eq (before->issuer, l->issuer.issuer);
    const char *asked = q->scope           ? q->scope
                        : challenge->scope ? challenge->scope
                                           : l->resource.scopes;
    _cleanup_free_ char *first = oauth_scopes_joined (asked, is_same ? before->wanted_scope : NULL);
    bool is_step = is_same && before->wanted_scope;
    _cleanup_free_ char *both = oauth_scopes_joined (first, is_step ? before->scope : NULL);
    l->scope = oauth_scopes_joined (both, l->issuer.gives_offline && *both ? OFFLINE : NULL);
}

static void
make_address (struct oauth_login *l)
{
    _cleanup_free_ char *challenge = NULL;
    _cleanup_buf_ struct buf query = { 0 };
    const char *endpoint = l->issuer.authorization_endpoint;
    l->state = random_text ();
    l->verifier = random_text ();
    challenge = oauth_pkce_challenge (l->verifier);
    oauth_form_add (&query, "response_type", "code");
    oauth_form_add (&query, "client_id", l->grant->client_id);
    oauth_form_add (&query, "redirect_uri", l->redirect_uri);
    oauth_form_add (&query, "state", l->state);
    oauth_form_add (&query, "code_challenge", challenge);
    oauth_form_add (&query, "code_challenge_method", "S256");
    oauth_form_add (&query, "resource", l->resource.resource);
    oauth_form_add (&query, "scope", *l->scope ? l->scope : NULL);
    l->address = x_asprintf ("%s%c%s", endpoint, strchr (endpoint, '?') ? '&' : '?', query.data);
}

static void
settle_grant (struct oauth_login *l)
{
    struct oauth_grant *g = l->grant;
    g->server = x_strdup (l->asker.server);
    g->is_named = l->asker.named != NULL;
    g->resource = x_strdup (l->resource.resource);
    g->issuer = x_strdup (l->issuer.issuer);
    g->token_endpoint = x_strdup (l->issuer.token_endpoint);
    if (l->issuer.revocation_endpoint)
        g->revocation_endpoint = x_strdup (l->issuer.revocation_endpoint);
    if (*l->scope)
        g->scope = x_strdup (l->scope);
}

struct oauth_login *
oauth_login_begin (const struct oauth_login_request *q, struct mur_error **err)
{
    _cleanup_ (oauth_login_freep) struct oauth_login *l = x_new0 (struct oauth_login);
    _cleanup_challenge_ struct oauth_challenge challenge = { 0 };
    int status = 0;
    l->asker = q->asker;
    l->grant = x_new0 (struct oauth_grant);
    l->redirect_uri = x_strdup (q->redirect_uri);
    if (! oauth_ask_challenge (&l->asker, &challenge, &status, err) ||
        ! find_resource (l, &challenge, err) || ! find_issuer (l, err))
        return NULL;
    settle_scope (l, q, &challenge);
    settle_grant (l);
    if (! settle_client (l, q, err))
        return NULL;
    make_address (l);
    return steal_ptr (&l);
}

/* --- what comes back --- */

bool
oauth_login_is_ours (const struct oauth_login *l, const char *query)
{
    _cleanup_free_ char *state = oauth_form_get (query, "state");
    return state && strlen (state) == strlen (l->state) &&
           bytes_equal_ct (state, l->state, strlen (state));
}

/* A code of another issuer, passed off as this one's, goes nowhere. */
static bool
check_issuer (const struct oauth_login *l, const char *query, struct mur_error **err)
{
    _cleanup_free_ char *iss = oauth_form_get (query, "iss");
    if (! iss && ! l->issuer.says_iss)
        return true;
    return str_eq (iss, l->issuer.issuer) ||
           oauth_fail (err, "the answer is of the issuer %.200s and not of %s",
                       iss ? iss : "(none)", l->issuer.issuer);
}

bool
oauth_login_finish (struct oauth_login *l, const char *query, struct mur_error **err)
{
    _cleanup_free_ char *code = oauth_form_get (query, "code");
    _cleanup_free_ char *error = oauth_form_get (query, "error");
    _cleanup_free_ char *more = oauth_form_get (query, "error_description");
    _cleanup_buf_ struct buf form = { 0 };
    bool is_refused;
    if (! oauth_login_is_ours (l, query))
        return oauth_fail (err, "the answer belongs to another login");
    if (! check_issuer (l, query, err))
        return false;
    if (error || ! code)
        return oauth_fail (err, "%s did not agree: %.80s%s%.300s", l->issuer.issuer,
                           error ? error : "no code came back", more ? ": " : "", more ? more : "");
    oauth_form_add (&form, "grant_type", "authorization_code");
    oauth_form_add (&form, "code", code);
    oauth_form_add (&form, "redirect_uri", l->redirect_uri);
    oauth_form_add (&form, "code_verifier", l->verifier);
    oauth_form_add (&form, "resource", l->resource.resource);
    if (! oauth_ask_token (&l->asker, l->grant, &form, &is_refused, err))
        return false;
    _cleanup_close_ int lock = oauth_store_lock (l->asker.server, err);
    return lock >= 0 && oauth_store_write (l->grant, err);
}

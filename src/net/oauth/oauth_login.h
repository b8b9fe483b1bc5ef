/* SPDX-License-Identifier: Apache-2.0
 *
 * A login to a server far away: who gives tokens for it is found out, murmur is made known there, a
 * person agrees in a browser, and the code that comes back is changed into a grant, which is kept.
 *
 * Always true: a verifier, a state and a redirect of this login alone; an answer of another state
 * or another issuer is refused before its code goes anywhere; the code goes to the issuer that was
 * asked, and to nobody else.
 */
#pragma once

#include "net/oauth/oauth_ask.h"

struct oauth_login_request {
    struct oauth_asker asker;           /* borrowed for the login's life */
    const char *client_id;              /* registered there before; NULL: as the issuer lets us */
    const struct secret *client_secret; /* of it; NULL: none */
    const char *scope;                  /* NULL: what the server asks for */
    const char *redirect_uri;
};

struct oauth_login;

/* E-MCP-009. */
struct oauth_login *oauth_login_begin (const struct oauth_login_request *q, struct mur_error **err);
/* Where a person agrees. Borrowed. */
const char *oauth_login_address (const struct oauth_login *l);
const char *oauth_login_issuer (const struct oauth_login *l);
/* True for the query of an answer to this login. */
bool oauth_login_is_ours (const struct oauth_login *l, const char *query);
/* Takes that answer and keeps the grant. E-MCP-009. */
bool oauth_login_finish (struct oauth_login *l, const char *query, struct mur_error **err);
void oauth_login_free (struct oauth_login *l);
DEFINE_CLEANUP (struct oauth_login, oauth_login_free)

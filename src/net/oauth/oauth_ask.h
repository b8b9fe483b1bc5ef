/* SPDX-License-Identifier: Apache-2.0
 *
 * The requests of a login: metadata, a registration, a token, its end. Each is one fetch without
 * redirects, bounded in size and time.
 *
 * Always true: an address is judged before it is asked; one on another host than the server's is
 * reached at public addresses alone, unless the operator named it; what fails says which address,
 * never what was sent to it.
 */
#pragma once

#include "base/cancel.h"
#include "net/http_client.h"
#include "net/oauth/oauth_store.h"
#include "net/oauth/oauth_text.h"

struct oauth_asker {
    const char *server; /* whose login it is */
    const char *named;  /* an issuer the operator named; NULL: none */
    struct http_client *http;
    struct cancel *cancel; /* may be NULL */
};

/* A JSON object that lies there. NULL without *err: there is none (404 and its kin). */
json_t *oauth_ask_metadata (const struct oauth_asker *a, const char *url, struct mur_error **err);
/* Posts a JSON body and takes an object. E-MCP-009. */
json_t *oauth_ask_json (const struct oauth_asker *a, const char *url, const json_t *body,
                        struct mur_error **err);
/* What the server itself says to somebody who shows nothing: its challenge, *status. */
bool oauth_ask_challenge (const struct oauth_asker *a, struct oauth_challenge *out, int *status,
                          struct mur_error **err);
/* Asks <g>'s token endpoint with <form>, to which the client is added, and puts what came into <g>.
 * *is_refused: the endpoint said no, and will again; a refresh token it calls invalid is gone from
 * <g> then. E-MCP-009. */
bool oauth_ask_token (const struct oauth_asker *a, struct oauth_grant *g, struct buf *form,
                      bool *is_refused, struct mur_error **err);
/* Tells the issuer that the grant is given back, as far as it listens. */
void oauth_ask_revoke (const struct oauth_asker *a, const struct oauth_grant *g);

/* SPDX-License-Identifier: Apache-2.0
 *
 * The texts of a login with OAuth, as data: the challenge of a server, where metadata lie, what
 * they must say, addresses and forms. No request is made here.
 *
 * Always true: what was read is bounded and judged; an address that may be asked is https, or http
 * where the server itself is on loopback; an issuer is who it says it is.
 */
#pragma once

#include "base/json.h"

/* E-MCP-009 with words of strangers in it: what a terminal would obey is shown in hex. Returns
 * false. */
bool oauth_fail (struct mur_error **err, const char *fmt, ...) _printf_ (2, 3);

/* What a `WWW-Authenticate` header says under the scheme Bearer. Owned; NULL: not there. */
struct oauth_challenge {
    char *resource_metadata, *scope, *error;
};
void oauth_challenge_read (const char *header, struct oauth_challenge *out); /* NULL: nothing */
void oauth_challenge_clear (struct oauth_challenge *c);
#define _cleanup_challenge_ _cleanup_ (oauth_challenge_clear)

enum oauth_metadata {
    OAUTH_OF_RESOURCE, /* RFC 9728 */
    OAUTH_OF_ISSUER,   /* RFC 8414, then OpenID Connect Discovery */
};
/* Where metadata of <url> may lie, in the order they are looked for. */
void oauth_well_known (enum oauth_metadata kind, const char *url, struct strv *out);

/* Why <url> may not be asked for a login to the server at <server>: its scheme, its user, or a host
 * that is a private address and not the server's own. Static; NULL: it may. */
const char *oauth_url_fault (const char *url, const char *server);

struct oauth_resource {
    char *resource;      /* what a token is asked for */
    struct strv issuers; /* who gives one */
    char *scopes;        /* NULL: not said */
};
/* Of the server at <server>. E-MCP-009. */
bool oauth_resource_read (const json_t *metadata, const char *server, struct oauth_resource *out,
                          struct mur_error **err);
void oauth_resource_clear (struct oauth_resource *r);
#define _cleanup_resource_ _cleanup_ (oauth_resource_clear)

struct oauth_issuer {
    char *issuer, *authorization_endpoint, *token_endpoint;
    char *registration_endpoint, *revocation_endpoint; /* NULL: none */
    bool says_iss;                                     /* in each answer, RFC 9207 */
    bool takes_documents;                              /* a client's id may be an address */
    bool takes_public, takes_post, takes_basic;        /* how a client shows who it is */
    bool gives_offline;                                /* knows the scope offline_access */
};
/* Of the issuer called <issuer>. E-MCP-009. */
bool oauth_issuer_read (const json_t *metadata, const char *issuer, const char *server,
                        struct oauth_issuer *out, struct mur_error **err);
void oauth_issuer_clear (struct oauth_issuer *i);
#define _cleanup_issuer_ _cleanup_ (oauth_issuer_clear)

/* The scopes of both, each once, in the order they come. Owned; either may be NULL. */
char *oauth_scopes_joined (const char *a, const char *b);
/* Appends name=value, with & before all but the first; a NULL value is left out. */
void oauth_form_add (struct buf *form, const char *name, const char *value);
/* A value of a query or form, decoded. Owned; NULL: it is not there, or malformed. */
char *oauth_form_get (const char *form, const char *name);
/* The S256 challenge of a verifier. Owned. */
char *oauth_pkce_challenge (const char *verifier);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Logins kept for servers far away: a file each below ~/.murmur/oauth, named by a hash of the
 * server's address.
 *
 * Always true: a file is 0600 in a folder that is 0700 and is replaced as a whole; what it holds of
 * a client belongs to the issuer it names and goes to that issuer's endpoints alone; a file that
 * is a link, or that others can read or write, is not read.
 */
#pragma once

#include "base/error.h"
#include "base/secret.h"

#include <stdint.h>

struct oauth_grant {
    char *server;                                        /* the address that was logged in to */
    char *resource;                                      /* what its tokens are for */
    char *issuer, *token_endpoint, *revocation_endpoint; /* the last may be NULL */
    char *client_id;
    struct secret *client_secret; /* NULL: a public client */
    bool is_named;                /* the issuer is the operator's word */
    bool is_basic;                /* the secret goes into a header, else into the form */
    char *scope;                  /* that was granted; NULL: not said */
    char *wanted_scope;           /* that the server asked for since; NULL: none */
    struct secret *access_token, *refresh_token; /* the last may be NULL */
    uint64_t expires_ms, lifetime_ms;            /* Unix; 0: not said */
};
void oauth_grant_free (struct oauth_grant *g);
DEFINE_CLEANUP (struct oauth_grant, oauth_grant_free)

/* Where the login to <server> is kept, as a person writes it. Owned. */
char *oauth_store_place (const char *server);
/* NULL without *err: there is none. E-IO-003, E-MCP-009 for a file that is not ours to trust. */
struct oauth_grant *oauth_store_read (const char *server, struct mur_error **err);
bool oauth_store_write (const struct oauth_grant *g, struct mur_error **err);
/* True when there was one. */
bool oauth_store_remove (const char *server);
/* Holds every other process back from this server's grant until it is closed. Owned, or -1. */
int oauth_store_lock (const char *server, struct mur_error **err);

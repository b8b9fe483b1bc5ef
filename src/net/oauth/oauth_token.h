/* SPDX-License-Identifier: Apache-2.0
 *
 * The token of a login that is kept: read when it is needed, made fresh before it ends.
 *
 * Always true: of all processes one makes it fresh and the others take what it got; a refresh token
 * goes to the endpoint it came from and to no other.
 */
#pragma once

#include "net/oauth/oauth_ask.h"

/* What is shown to <a>'s server now. <refused>: what it answered with 401 (NULL: nothing), which is
 * not given again. NULL without *err: nobody is logged in there, or the login ran out and cannot be
 * made fresh; else E-MCP-009 (also for one the issuer does not renew: its refused refresh token is
 * removed), E-IO-003. */
struct secret *
oauth_token_get (const struct oauth_asker *a, const struct secret *refused, struct mur_error **err);
/* The server wants more than was granted: the next login asks for it. */
void oauth_token_wants (const char *server, const char *scope);

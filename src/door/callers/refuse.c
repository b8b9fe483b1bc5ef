/* SPDX-License-Identifier: Apache-2.0 */
#include "door/callers/refuse.h"

#include "base/alloc.h"
#include "net/server/http_exchange.h"

#include <string.h>

void
door_refuse (struct http_exchange *x, const struct door_auth *auth, enum auth_refusal refusal,
             const char *credential, const char *scope)
{
    _cleanup_free_ char *challenge = NULL, *body = NULL;
    int status = auth_refusal_answer (auth, refusal, credential, scope, &challenge, &body);
    const struct http_header headers[] = { { "content-type", "application/json", 16 },
                                           { "WWW-Authenticate", challenge, strlen (challenge) } };
    http_refuse (x, status, headers, 2, body, strlen (body));
}

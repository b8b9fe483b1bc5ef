/* SPDX-License-Identifier: Apache-2.0
 *
 * How the door refuses a caller: the status, the challenge and the body of spec/door.md 10.3.
 */
#pragma once

#include "door/callers/auth.h"
#include "net/server/http_server.h"

/* Answers a refusal as plain HTTP. */
void door_refuse (struct http_exchange *x, const struct door_auth *auth, enum auth_refusal refusal,
                  const char *credential, const char *scope);

/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON-RPC at the door: envelope, version, method table, methods (spec/door.md 4 and 7).
 */
#pragma once

#include "door/callers/auth.h"
#include "door/card/card.h"
#include "door/tasks/tasks.h"
#include "net/server/http_server.h"

struct rpc;

/* Facts are copied as far as they are needed; the registry is borrowed. */
struct rpc *
rpc_new (const struct card_facts *facts, struct registry *registry, const struct door_auth *auth);
void rpc_free (struct rpc *r);
/* Answers one POST / with a body. <credential>: who it is from on an authenticated door, NULL on a
 * public one. */
void rpc_answer (struct rpc *r, struct http_exchange *x, const char *credential);
/* Answers every held send with its task as it stands. NULL is fine. */
void rpc_settle_all (struct rpc *r);

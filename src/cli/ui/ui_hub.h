/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens, told to every page that is open: numbered events of which the last are kept, and
 * the streams that carry them.
 *
 * Always true: who reads slower than events come is told so (`gap`) and costs the others nothing; a
 * page that comes back with the number it saw last goes on there; numbers of an earlier process are
 * known as such.
 */
#pragma once

#include "base/json.h"
#include "net/server/http_exchange.h"

struct ui_hub;

struct ui_hub *ui_hub_new (void);
/* After the server was closed. */
void ui_hub_free (struct ui_hub *h);
/* Tells all. The event gets its `kind`; taken over. Any thread. */
void ui_hub_publish (struct ui_hub *h, const char *kind, json_t *event);
/* Answers with a stream of events. */
void ui_hub_stream (struct ui_hub *h, struct http_exchange *x);
/* Whether anybody listens. */
bool ui_hub_has_readers (struct ui_hub *h);

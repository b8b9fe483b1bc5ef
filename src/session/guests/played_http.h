/* SPDX-License-Identifier: Apache-2.0
 *
 * The network of guests that run again: what they were given then, in the same pieces; what is not
 * on record is refused.
 */
#pragma once

#include "engine/engine.h"
#include "replay/play/player.h"
#include "replay/record/tape_read.h"

struct played_http;

/* <then> NULL: nothing is on record of this guest. */
struct played_http *played_http_new (struct player *p, const struct rec_guest *then);
void played_http_free (struct played_http *h);
extern const struct guest_http_handler played_http_handler; /* its ctx: the played_http */

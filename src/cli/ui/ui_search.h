/* SPDX-License-Identifier: Apache-2.0
 *
 * One text looked for in the lines and bodies of every session, told as it is found.
 *
 * The answer is a line of JSON a hit: {session, n | sha, text}, between them {done, total}, at last
 * {end, hits}. Letters of ASCII match whatever their case. It stops when who asked has left.
 */
#pragma once

#include "cli/ui/ui_world.h"

#include <pthread.h>

/* Those under way. */
struct ui_searches {
    pthread_mutex_t lock;
    pthread_cond_t none;
    unsigned count;
};

/* Answers with the stream. On the server's thread. */
void ui_search_stream (struct ui_searches *all, struct ui_world *w, struct http_exchange *x,
                       const char *text);
/* Once nobody is answered any more: returns when none looks any more either. */
void ui_searches_wait (struct ui_searches *all);

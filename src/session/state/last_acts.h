/* SPDX-License-Identifier: Apache-2.0
 *
 * What must not outlive the process when it is ended by force: no destructor runs then, so each
 * part that leaves something outside of the process says how to take it away.
 *
 * Added before anything can end the session by force; run on the thread that does, once.
 */
#pragma once

#include <stddef.h>

struct session;

typedef void last_act_fn (struct session *s);

#define LAST_ACTS_MAX 8

struct last_acts {
    last_act_fn *items[LAST_ACTS_MAX];
    size_t len;
};

/* An act that was added is not added again. */
void last_acts_add (struct session *s, last_act_fn *fn);
/* In the order in which they were added. */
void last_acts_run (struct session *s);

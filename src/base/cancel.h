/* SPDX-License-Identifier: Apache-2.0
 *
 * A cancel: one thing a blocked piece of work can be told, from any thread, once.
 *
 * Work that can wait registers a listener that wakes it; a listener added after the cancel was
 * raised is called at once, on the adding thread. Listeners run under the cancel's lock and must
 * not block or touch the same cancel.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cancel;

typedef void cancel_listener_fn (void *ctx);

struct cancel *cancel_new (void);
struct cancel *cancel_ref (struct cancel *c);
void cancel_unref (struct cancel *c);

/* Raises it (idempotent) and calls every listener. */
void cancel_raise (struct cancel *c);
/* Lowers it again for the next piece of work. Only its owner, with nobody listening. */
bool cancel_is_raised (const struct cancel *c);

/* Registers a listener; the returned id is handed to cancel_remove. c may be NULL (never raised, id
 * 0). */
uint64_t cancel_add (struct cancel *c, cancel_listener_fn *fn, void *ctx);
/* After this returns the listener is not running and never will. */
void cancel_remove (struct cancel *c, uint64_t id);

/* Sleeps <ms> or until raised. Returns true when it slept the whole time. */
bool cancel_sleep (struct cancel *c, uint64_t ms);

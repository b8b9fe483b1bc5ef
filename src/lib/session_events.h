/* SPDX-License-Identifier: Apache-2.0
 *
 * A session's events: from its door into the queue, and out of it by descriptor or by callback.
 */
#pragma once

#include "base/error.h"
#include "lib/session_state.h"

/* Once it is ready: follows its door, and calls back when the request asked for that. */
bool session_events_begin (struct mur_session *s, struct mur_error **err);
/* Once it has ended: returns after the last callback. */
void session_events_end (struct mur_session *s);
/* The caller is a callback: what waits for it would wait for itself. */
bool session_events_is_calling (struct mur_session *s);

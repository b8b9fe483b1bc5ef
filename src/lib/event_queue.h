/* SPDX-License-Identifier: Apache-2.0
 *
 * Events between the threads of a session and whoever takes them, with a descriptor to poll.
 *
 * Always true: the descriptor is readable exactly while an event waits or the queue is closed.
 */
#pragma once

#include "base/error.h"
#include "murmur/event.h"

struct event_queue;

struct event_queue *event_queue_new (struct mur_error **err);
/* Frees what was not taken. */
void event_queue_free (struct event_queue *q);
int event_queue_fd (const struct event_queue *q);
/* Takes the event over. Once closed, nothing more is taken: it is freed. */
void event_queue_push (struct event_queue *q, struct mur_event *e);
/* Pushes the last event. */
void event_queue_close (struct event_queue *q, struct mur_event *e);
/* More wait than a reader that keeps up ever leaves. */
bool event_queue_is_full (struct event_queue *q);
/* The next event, owned; NULL: none within the time (for ever when negative), or the last was
 * taken. */
struct mur_event *event_queue_next (struct event_queue *q, int64_t timeout_ms);

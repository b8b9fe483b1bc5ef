/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads that answer plane requests: reading and hashing files must hold neither the door's
 * thread nor the task loop.
 *
 * Threads are started when there is work and wait then; nothing runs in a session nobody asks for
 * files.
 */
#pragma once

#include "base/cancel.h"
#include "net/server/http_server.h"

struct plane_worker;

/* Answers the exchange it is given, on one of the threads. <cancel>: the door is closing. */
typedef void plane_job_fn (void *ctx, struct http_exchange *x, struct cancel *cancel);

struct plane_worker *plane_worker_new (void);
/* Lets the jobs under way end; what still waits is never begun, what comes is answered 503. */
void plane_worker_stop (struct plane_worker *w);
/* After the server closed. NULL is fine. */
void plane_worker_free (struct plane_worker *w);

/* Holds the exchange and queues the job. <is_long>: it may take long, and others need not wait for
 * it. On the server's thread, with the request complete. */
void plane_worker_hand (struct plane_worker *w, struct http_exchange *x, plane_job_fn *job,
                        void *ctx, bool is_long);

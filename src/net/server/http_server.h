/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP in: one listener, one thread, libmicrohttpd driven from our own epoll loop.
 *
 * Handlers run on the server's thread and must not block; an answer may come later, from any
 * thread. Always true: the limits of spec/door.md 19.3 hold before any handler sees a request; a
 * held answer or an idle stream is never timed out; no header or body byte of a client appears in
 * an error page.
 */
#pragma once

#include "base/error.h"
#include "net/http_client.h"

#include <sys/socket.h>

struct http_server;
struct http_exchange; /* one request and its answer */

struct http_server_limits {
    size_t head_bytes;        /* request line and headers */
    unsigned head_lines;      /* header lines */
    size_t body_bytes;        /* the largest body; a handler may ask for less */
    uint64_t head_timeout_ms; /* from the first wait for a head to its end */
    uint64_t body_timeout_ms; /* from the end of the head to the body's */
    uint64_t idle_timeout_ms; /* a body that stops coming, a write that does not move */
    unsigned connections;
    unsigned
        reserved; /* of them kept for short requests: no stream and no held answer may take these */
    size_t answer_bytes; /* of large answers that wait to be read, all connections together */
    size_t bodies_bytes; /* of bodies above 64 KiB that are read or held, all together: else 503 */
};
extern const struct http_server_limits http_server_default_limits; /* door.md 19.3 */

struct http_server_handler {
    /* The head is complete, nothing of a body was read. Answer at once (http_reply), or return how
     * many body bytes to take (more is 413). 0 = a body is not wanted: it is answered without one.
     */
    size_t (*head) (void *ctx, struct http_exchange *x);
    /* The request is complete. Answer now, or keep x and answer later (http_hold first). */
    void (*request) (void *ctx, struct http_exchange *x);
    /* The connection ended inside a body that was wanted. What this returns (owned, may be NULL) is
     * written as it is. May be NULL. */
    char *(*truncated) (void *ctx, struct http_exchange *x);
};

/* Binds <address>:<port> (port 0: the system picks) and listens; answers nobody yet. Fails with
 * E-RUN-010 (taken, naming the port) or E-IO-003. */
struct http_server *
http_server_bind (const char *address, unsigned port, const struct http_server_limits *limits,
                  struct mur_error **err);
unsigned http_server_port (const struct http_server *s);
/* Starts answering, on a thread of its own. Fails with E-IO-003. */
bool http_server_serve (struct http_server *s, const struct http_server_handler *handler, void *ctx,
                        struct mur_error **err);
/* Closes the listener, gives answers under way and streams <drain_ms> to end, then drops what is
 * left. Returns when the thread is gone; no handler and no stream callback runs after. Also for a
 * server that never served. */
void http_server_close (struct http_server *s, uint64_t drain_ms);

/* --- inside an exchange --- */

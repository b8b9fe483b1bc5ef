/* SPDX-License-Identifier: Apache-2.0
 *
 * A scripted server on loopback: each connection gets a thread that runs the test's script on the
 * bare socket.
 */
#pragma once

#include "base/buf.h"

#include <stdatomic.h>
#include <stdbool.h>

struct loop_server;

/* Runs for one connection; <number> counts from 0. The socket is closed when it returns. */
typedef void loop_script (void *ctx, int fd, int number);

struct loop_server *loop_server_new (loop_script *script, void *ctx);
/* Stops accepting and joins every connection's thread. */
void loop_server_free (struct loop_server *s);
int loop_server_port (const struct loop_server *s);
int loop_server_connections (const struct loop_server *s);

/* Reads one request: head into <head>, body (by content-length, or chunked) into <body>. False at
 * the end of the stream. */
bool loop_read_request (int fd, struct buf *head, struct buf *body);
void loop_send (int fd, const char *text);
/* "HTTP/1.1 <status>" with a content-length and this body. */
void loop_answer (int fd, const char *status, const char *body);
/* Makes close() send a reset. */
void loop_reset_on_close (int fd);

int open_descriptors (void);

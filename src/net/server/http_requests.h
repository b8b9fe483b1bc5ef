/* SPDX-License-Identifier: Apache-2.0
 *
 * What libmicrohttpd tells the HTTP server: connections, heads, bodies, and the answers it takes.
 *
 * Always true: the limits of spec/door.md 19.3 hold before a handler sees a request; no header or
 * body byte of a client appears in an error page. The server's thread alone calls this.
 */
#pragma once

#include "net/server/http_server_impl.h"

/* Starts libmicrohttpd, which runs only when the loop runs it. False: it does not start. */
bool http_server_start_daemon (struct http_server *s);
/* The stream's next tick, counted from <now>. */
void http_stream_plan_tick (struct http_stream *stream, uint64_t now);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections of the HTTP server that are not served: those that wait for a head or a body, those
 * whose client has hung up, and those that are refused and drained.
 *
 * Always true: when there are too many, the one that has waited longest without a complete head
 * goes first, else the one longest without a complete body. A refused connection is half-closed and
 * drained on a duplicate of its descriptor after libmicrohttpd let go of it. The server's thread
 * alone calls this.
 */
#pragma once

#include "net/server/http_server_impl.h"

/* Leaves the line it stands in, if any; stands at the end of <line> from now. */
void http_line_leave (struct connection *c);
void http_line_enter (struct connection *c, struct line *line);
/* Ends one of those that wait; libmicrohttpd sees the end of file and lets go. False: none waits.
 */
bool http_shed_one (struct http_server *s);

/* Ends those that have stood in a line for that long, however much they sent. When the next one's
 * time is up; 0: it is empty. */
uint64_t http_line_keep_time (struct line *line, uint64_t timeout_ms, uint64_t now);

/* libmicrohttpd, whose epoll is edge-triggered, overlooks an end of file that came together with
 * the last bytes. We watch for it beside, and once those bytes were taken shut down reading, which
 * makes another edge. */
void http_watch_hang_up (struct connection *c);
void http_note_hang_up (struct connection *c);
void http_tell_hang_ups (struct http_server *s);
void http_connection_forget (struct connection *c);

/* Takes <fd> over; -1 is fine. */
void http_drain_begin (struct http_server *s, int fd);
void http_drain_some (struct drain *d);
/* Closes what is done or has taken too long. */
void http_drains_reap (struct http_server *s, uint64_t now);

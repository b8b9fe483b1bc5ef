/* SPDX-License-Identifier: Apache-2.0
 *
 * The session's trace, read through its door (spec/door.md 12.6): for whoever holds the operator
 * credential of a session whose records are on another machine.
 *
 * Always true: whole lines alone, from the byte that was asked for; nothing else of the records.
 */
#pragma once

#include "fs/root.h"
#include "net/server/http_server.h"

/* Where the next part begins. */
#define TRACE_PLANE_NEXT "x-murmur-next"

/* GET /trace?from=<byte>: at most 1 MiB of lines, none when nothing is new. <records>: the
 * session's folder. */
void trace_plane_serve (struct fs_root *records, struct http_exchange *x);

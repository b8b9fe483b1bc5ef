/* SPDX-License-Identifier: Apache-2.0
 *
 * One direction of a relay: bytes that were read from one socket and not yet written to the other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PIPE_BUFFER_BYTES 16512 /* a head of a proxy's request, and what it grows by */

struct pipe_buffer {
    char bytes[PIPE_BUFFER_BYTES];
    size_t start, end;
    bool is_finished; /* the reading side saw end of file */
    bool is_shut;     /* and the writing side was told */
};

/* Reads once and writes once. False: the relay must end; *has_moved is set when a byte or the end
 * moved. */
bool pump_once (int from_fd, int to_fd, struct pipe_buffer *b, bool *has_moved);
/* Puts other bytes in the place of the first <old_len>; together they must fit. */
void pipe_buffer_replace (struct pipe_buffer *b, size_t old_len, const char *bytes, size_t len);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole reads and writes on descriptors, surviving EINTR and short counts. errno is set on failure.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

bool fd_write_all (int fd, const void *data, size_t len);
/* Appends everything left to read, at most <limit> bytes; false with EFBIG when there is more. */
bool fd_read_all (int fd, size_t limit, struct buf *out);
/* Reads exactly <len> bytes; false with errno 0 at an early end of file. */
bool fd_read_exact (int fd, void *out, size_t len);
/* Monotonic-deadline poll for <events>; 1 ready, 0 timed out, -1 error. timeout_ms < 0 waits for
 * ever. */
int fd_wait (int fd, short events, int64_t timeout_ms);
/* Sends all of it on a stream socket, without SIGPIPE; each piece may take <timeout_s>. False when
 * the other side is gone or too slow. */
bool fd_send_all (int fd, const void *data, size_t len, unsigned timeout_s);
/* Ends an answer on a stream socket: the write side is shut, and what the client still sends is
 * read and dropped (64 KiB at most, each piece waited for <wait_ms>), since bytes left unread would
 * turn the answer into a reset. The descriptor stays open. */
void fd_end_answer (int fd, int64_t wait_ms);
/* The same file under a number of at least <lowest>, closed when a program is executed; <fd> is
 * closed. -1 of -1, and when there is none. */
int fd_lift (int fd, int lowest);
bool fd_set_cloexec (int fd, bool on);

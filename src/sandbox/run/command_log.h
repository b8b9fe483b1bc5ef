/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands in the records: the log of one that has ended, and one that goes on in the background
 * with its output in a log.
 */
#pragma once

#include "base/error.h"
#include "sandbox/run/command.h"

/* Writes "Command:, Exit code:, Stdout:, Stderr:" in full below logs/ of the records; the name is
 * "shell-<ms>.log". Returns its path relative to the records directory (owned), or NULL. Only in
 * COMMAND_EXITED. */
char *command_write_log (struct command *c, struct mur_error **err);

/* Moves a running command to the background: from now on its output goes to logs/<work_id>.log
 * ("Command: ..." first, what it wrote so far, then everything, at last "Exit code: n"). False when
 * the log cannot be made. */
bool command_detach (struct command *c, const char *work_id, struct mur_error **err);
/* Bytes in the log of a detached command, its header included. */
uint64_t command_log_bytes (struct command *c);
/* The last COMMAND_KEPT_BYTES of a detached command's output, cut to a character boundary. Owned.
 */
char *command_tail (struct command *c, uint64_t *output_bytes);
/* "\n<title>:\n" and what was kept of a stream, for a reader: not cut inside a character. */
void
command_append_stream (struct buf *out, const char *title, const struct command_stream *stream);

/* SPDX-License-Identifier: Apache-2.0
 *
 * What goes through a command's pipes: the input it is given, and the output that is kept, spilled
 * or logged.
 *
 * Always true: output never blocks a command and never grows the runtime beyond what is kept. Under
 * the commands' lock.
 */
#pragma once

#include "sandbox/run/command_internal.h"

/* The end of what a background command wrote: at least the last COMMAND_KEPT_BYTES. */
void command_keep_tail (struct buf *tail, const char *data, size_t len);
void command_close_stream (struct command *c, struct stream *s);
/* Takes what is in the pipe; closes it at its end. */
void command_read_stream (struct command *c, struct stream *s);
void command_close_input (struct command *c);
/* Writes what the pipe has room for; closes it after the last byte. */
void command_write_input (struct command *c);

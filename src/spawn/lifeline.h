/* SPDX-License-Identifier: Apache-2.0
 *
 * Lifeline, the child's side: how a session learns that whoever started it is gone, however that
 * went (spec/spawn.md A10).
 *
 * The launcher holds the only write end of a pipe and never writes; the end of the stream means
 * "wind down". Callers: cli/run_inputs.c takes it before anything of a session exists,
 * session/termination.c and session/script.c watch it.
 */
#pragma once

#include "base/error.h"

/* Reads MURMUR_SPAWNER_LIFELINE, once in a process: unset or blank is none, anything but the open
 * read end of a pipe is E-RUN-020 telling which it is. What this process starts never inherits it.
 */
bool lifeline_take (struct mur_error **err);
/* The descriptor that was taken, or -1. Borrowed; open for the process's life. */
int lifeline_fd (void);
/* Reads what made it readable. True at the end of the stream; bytes are nobody's business. A fault
 * is said on stderr and counts as the end. */
bool lifeline_has_ended (int fd);

/* The line on stderr that names the cause. */
#define LIFELINE_ENDED_LINE                                                                        \
    "[capsule-runtime] the spawner lifeline closed, so the launcher is gone: winding down"

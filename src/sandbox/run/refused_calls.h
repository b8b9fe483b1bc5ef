/* SPDX-License-Identifier: Apache-2.0
 *
 * Hearing of the system calls a command is refused: whatever the program makes of the answer, the
 * runtime knows of the attempt. Only calls that are refused anyway come here, so the others cost
 * nothing.
 *
 * Each under the commands' lock, from the supervisor's thread but the first. A listener lives as
 * long as any process of its command; after REFUSED_CALLS_MAX answers it is closed, and the kernel
 * answers ENOSYS by itself: a loop of refused calls is no work of the runtime's.
 */
#pragma once

#include "sandbox/run/command_internal.h"

#define REFUSED_CALLS_MAX 4096

/* Takes the descriptor over; -1: nothing to hear. */
void refused_calls_watch (struct commands *all, struct command *c, int listener_fd);
/* An event of a descriptor. False: it is no listener. */
bool refused_calls_handle (struct commands *all, int fd);
/* Lets go of all. */
void refused_calls_end (struct commands *all);

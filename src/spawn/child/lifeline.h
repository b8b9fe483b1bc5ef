/* SPDX-License-Identifier: Apache-2.0
 *
 * Lifelines, the child's side: how a session learns that whoever started it is gone, however that
 * went (spec/spawn.md A10, C7).
 *
 * The launcher holds the only write end of a pipe and never writes; the end of the stream means
 * "wind down".
 */
#pragma once

#include "base/error.h"

enum lifeline {
    LIFELINE_SPAWNER,   /* MURMUR_SPAWNER_LIFELINE; its faults are E-RUN-020 */
    LIFELINE_FORMATION, /* MURMUR_FORMATION_LIFELINE; E-RUN-046 */
};

/* Reads its variable, once in a process: unset or blank is none, anything but the open read end of
 * a pipe is refused telling which it is. What this process starts never inherits it. */
bool lifeline_take (enum lifeline which, struct mur_error **err);
/* One this process makes itself, of a launcher no pipe reaches. Taken over; before there is a
 * second thread that asks for it. */
void lifeline_give (enum lifeline which, int fd);
/* The descriptor that was taken, or -1. Borrowed; open for the process's life. */
int lifeline_fd (enum lifeline which);
/* Reads what made it readable. True at the end of the stream; bytes are nobody's business. A fault
 * is said on stderr and counts as the end. */
bool lifeline_has_ended (enum lifeline which);

/* The line on stderr that names the cause. */
#define LIFELINE_ENDED_LINE                                                                        \
    "[capsule-runtime] the spawner lifeline closed, so the launcher is gone: winding down"
#define FORMATION_ENDED_LINE                                                                       \
    "[capsule-runtime] the formation lifeline closed, so the formation has ended: winding down"

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the walls refused one command that has ended, from all that was observed of it: its words,
 * its own line, the network it asked, the system calls it tried. Told to the model and kept for the
 * trace.
 */
#pragma once

#include "base/buf.h"
#include "sandbox/run/command.h"

struct session;

struct refused_command {
    const char *name;         /* the program as it was called */
    const char *command;      /* a shell's script, or a program's arguments; NULL: unknown */
    const char *out, *errors; /* what was kept of its streams; not NULL */
    const struct command_result *result;
};

/* Appends to <text> a line for each, at most REFUSALS_MAX, and the same to <lines>. What came
 * through all the same is told once a session. */
void refusals_tell (struct session *s, const struct refused_command *c, struct buf *text,
                    struct strv *lines);

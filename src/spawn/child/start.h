/* SPDX-License-Identifier: Apache-2.0
 *
 * What starting a process of our own program takes, for children and members of a formation alike:
 * pipes that nobody else inherits, and the program's path.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

struct pipe {
    int read_end, write_end;
};

#define NO_PIPE                                                                                    \
    {                                                                                              \
        -1, -1                                                                                     \
    }

/* Close-on-exec from birth, both ends above the standard streams. E-IO-003 naming <what>. */
bool pipe_open (struct pipe *p, const char *what, struct mur_error **err);
void pipe_close (struct pipe *p);
#define _cleanup_pipe_ _cleanup_ (pipe_close)

/* Appends the program that is started: MURMUR_MUR_BINARY, when set and not empty, else this
 * process's own image. E-IO-003. */
bool program_push (struct strv *argv, struct mur_error **err);

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session holds of its native processes, for the files of this room alone.
 */
#pragma once

#include "net/allow.h"
#include "sandbox/run/commands.h"
#include "session/commands/processes.h"

#include <pthread.h>

struct confined {
    struct confinement_spec spec;
    struct spawn_limits limits;
    struct allow_list network;
    struct confinement *confinement;
    struct commands *commands;
    struct strv env;                                               /* of every command */
    const char *const *refusal_programs, *const *refusal_readable; /* made once, in the arena */
    uint64_t workdir_max_bytes;
    uint64_t measure_at_ms; /* monotonic; when the folders are looked at next */
    uint64_t observed_bytes;
    bool is_over; /* the ceiling was passed: nothing more is started */
};

struct confine_program;

struct processes {
    struct confined *confined;             /* NULL: nothing here starts a native process */
    const struct confine_program *program; /* NULL: none but those of shell.allow */
    bool is_told;                          /* what confines commands was said once */
    pthread_mutex_t lock; /* base/locks.h: session. Guards what follows; the task loop writes,
                             the door reads */
    struct background *background; /* the newest first */
    struct background *foreground; /* what runs now */
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * One running command: its state, its result, waiting for it and ending it (spec/session.md 8.5,
 * 8.6, spec/containment.md 14.5).
 *
 * What moves a command, each under the commands' lock:
 *
 *     (none)   -> RUNNING   command_start
 *     RUNNING  -> DRAINING  the supervisor sees that the leader is gone (advance)
 *     DRAINING -> EXITED    its pipes are closed: it is reaped (finish)
 *     DRAINING -> KILLING   they are still held after a second: the group is killed (advance)
 *     KILLING  -> EXITED    the pipes are closed, or two more seconds are over (finish)
 *
 * Always true: a process group is signalled only while its leader is unreaped; output never blocks
 * a command and never grows the runtime beyond what is kept.
 */
#pragma once

#include "base/buf.h"
#include "base/cancel.h"

#include <stdbool.h>
#include <stdint.h>

#define COMMAND_KEPT_BYTES 16384 /* of each stream, and of a background command's tail */

enum command_state {
    COMMAND_RUNNING,
    COMMAND_DRAINING, /* leader gone, pipes still held by somebody */
    COMMAND_KILLING,  /* holders were sent SIGKILL */
    COMMAND_EXITED,   /* reaped; the result is final */
};

enum command_leftover {
    LEFTOVER_NONE,
    LEFTOVER_KILLED,  /* processes of the group held the pipes and were killed */
    LEFTOVER_ESCAPED, /* somebody outside the group still holds them */
};

struct command_stream {
    struct buf kept; /* the first COMMAND_KEPT_BYTES */
    uint64_t total_bytes;
    int spill_fd; /* everything, once it is more than that; -1 */
};

struct command_result {
    enum command_state state;
    int exit_code;     /* 128 + signal for a signalled leader */
    int signal_number; /* 0 for a normal exit */
    struct command_stream out, err;
    uint64_t duration_ms;
    const char *resource_limit; /* key of capabilities.resources, or NULL */
    enum command_leftover leftover;
    bool was_stopped;       /* by command_stop */
    uint64_t refused_calls; /* a bit for each name of syscall_filter_told */
};

struct command;

struct command *command_ref (struct command *c);
void command_unref (struct command *c);
DEFINE_CLEANUP (struct command, command_unref)

/* Waits for the end. grace_ms < 0: without bound. False: the grace is over, or <cancel> was raised;
 * it runs on. */
bool command_wait (struct command *c, int64_t grace_ms, struct cancel *cancel);
/* A snapshot; the streams are borrowed and final only in COMMAND_EXITED. */
struct command_result command_look (struct command *c);
/* Kills the group at once. */
void command_kill (struct command *c);
/* SIGTERM to the group, SIGKILL after two seconds, waits three more. True when it ended. */
bool command_stop (struct command *c);
/* Calls <fn> once the command has ended, at once when it has. From the supervisor's thread, under
 * its lock: it must not block or call back into commands. */
typedef void command_exit_fn (void *ctx);
void command_on_exit (struct command *c, command_exit_fn *fn, void *ctx);

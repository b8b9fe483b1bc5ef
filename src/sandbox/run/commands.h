/* SPDX-License-Identifier: Apache-2.0
 *
 * Running commands: one supervisor thread owns every child of a session, its pipes and its timers
 * (spec/session.md 8.5, 8.6, spec/containment.md 14.5).
 *
 * Callers: session/commands/shell.c, session/native_tool.c, session/loop/done_check.c. Always true:
 * a process group is signalled only while its leader is unreaped; output never blocks a command and
 * never grows the runtime beyond what is kept; a leader's exit is seen before it is reaped.
 */
#pragma once

#include "base/cancel.h"
#include "fs/root.h"
#include "sandbox/run/confinement.h"

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
    bool was_stopped; /* by command_stop */
};

struct commands;
struct command;

/* <confinement> and <records> (the session's records root, for logs) are borrowed. Starts no thread
 * yet. */
struct commands *commands_new (struct confinement *confinement, struct fs_root *records);
/* Kills what runs, joins the thread. Commands still referenced stay readable. */
void commands_free (struct commands *all);
DEFINE_CLEANUP (struct commands, commands_free)
/* Kills everything that runs in the session, whoever started it; the commands become COMMAND_EXITED
 * soon after. */
void commands_kill_all (struct commands *all);

struct command_start {
    const char *path;
    char *const *argv;
    char *const *env;
    const struct strv *closure;     /* as confined_program */
    const struct cgroup_nest *nest; /* as confined_program */
    const char *line;               /* what was asked for, for logs */
    const char *input;              /* bytes for stdin, NULL: /dev/null. Copied */
    size_t input_len;
};

/* Starts one. Returns a reference, or NULL with the errors of confinement_spawn. */
struct command *
command_start (struct commands *all, const struct command_start *start, struct mur_error **err);
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

/* Writes "Command:, Exit code:, Stdout:, Stderr:" in full below logs/ of the records; the name is
 * "shell-<ms>.log". Returns its path relative to the records directory (owned), or NULL. Only in
 * COMMAND_EXITED. */
char *command_write_log (struct command *c, struct mur_error **err);

/* Moves a running command to the background: from now on its output goes to logs/<work_id>.log
 * ("Command: ..." first, what it wrote so far, then everything, at last "Exit code: n"). False when
 * the log cannot be made. */
bool command_detach (struct command *c, const char *work_id, struct mur_error **err);
/* Calls <fn> once the command has ended, at once when it has. From the supervisor's thread, under
 * its lock: it must not block or call back into commands. */
typedef void command_exit_fn (void *ctx);
void command_on_exit (struct command *c, command_exit_fn *fn, void *ctx);
/* Bytes in the log of a detached command, its header included. */
uint64_t command_log_bytes (struct command *c);
/* The last COMMAND_KEPT_BYTES of a detached command's output, cut to a character boundary. Owned.
 */
char *command_tail (struct command *c, uint64_t *output_bytes);

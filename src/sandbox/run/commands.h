/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands of a session: one supervisor thread owns every child, its pipes and its timers
 * (spec/session.md 8.5, 8.6, spec/containment.md 14.5).
 */
#pragma once

#include "fs/root.h"
#include "sandbox/run/command.h"
#include "sandbox/run/confinement.h"

struct commands;

/* <confinement> and <records> (the session's records root, for logs) are borrowed. Starts no thread
 * yet. */
struct commands *commands_new (struct confinement *confinement, struct fs_root *records);
/* Commands are killed while less than <bytes> are free on the disk of <path> (borrowed). Before the
 * first command. */
void commands_set_disk_floor (struct commands *all, const char *path, uint64_t bytes);
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

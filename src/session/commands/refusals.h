/* SPDX-License-Identifier: Apache-2.0
 *
 * What a command was refused because of the walls, told with the key that would grant it. Found in
 * the words a failed command leaves on its streams, and only told where the walls confirm it: a
 * path that is there and not granted, a program that may not run, a host no rule names.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

#define REFUSALS_MAX 5 /* of one command */

/* What a session's walls are, as far as a refusal is judged by them. Everything is borrowed. */
struct refusal_walls {
    const char *work_dir, *home_dir, *temp_dir;
    const char *const *programs;  /* executable files and folders; NULL-terminated */
    const char *const *readable;  /* files and folders that may be read; NULL-terminated */
    const char *const *read_only; /* protected paths of the work folder; NULL-terminated */
    const char *path;             /* PATH of the commands */
    bool may_run_work;            /* filesystem.workdir_exec */
    bool allows_unix_sockets;
    bool is_sealed;
    uint64_t memory_bytes; /* what bounds the addresses of a process; 0: nothing */
    bool (*reaches) (void *ctx, const char *host); /* some rule names it */
    void *ctx;
};

/* Takes the line over; it is dropped when it stands there already or enough does. */
void refusals_say (struct strv *out, char *line);
/* What <line>, a shell's script or a program with its arguments, names that cannot work inside; and
 * where the command failed without a word on its error stream (<complaint>), the programs and paths
 * in it that the walls refuse. */
void refusals_of_line (const struct refusal_walls *w, const char *line, const char *complaint,
                       bool has_failed, struct strv *out);
/* Appends one line for each refusal of a command that ended with <exit_code>, at most REFUSALS_MAX.
 */
void refusals_find (const struct refusal_walls *w, int exit_code, const char *text, size_t len,
                    struct strv *out);

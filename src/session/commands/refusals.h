/* SPDX-License-Identifier: Apache-2.0
 *
 * What a command was refused because of the walls, told with the key that would grant it. Found in
 * the words a failed command leaves on its streams, and only told where the walls confirm it: a
 * path that is there and not granted, a program that may not run, a host no rule names.
 */
#pragma once

#include "base/buf.h"

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
    bool (*reaches) (void *ctx, const char *host); /* some rule names it */
    void *ctx;
};

/* Appends one line for each refusal of a command that ended with <exit_code>, at most REFUSALS_MAX.
 */
void refusals_find (const struct refusal_walls *w, int exit_code, const char *text, size_t len,
                    struct strv *out);

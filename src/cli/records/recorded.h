/* SPDX-License-Identifier: Apache-2.0
 *
 * Recorded sessions as commands meet them: the group of --workdir, and the trace an address names.
 */
#pragma once

#include "cli/line/args.h"
#include "trace/read/address.h"
#include "trace/read/reader.h"

struct recorded_group {
    char *work_root;   /* canonical */
    char *path;        /* ~/.murmur/records/<work root> */
    int fd;            /* -1 when the group does not exist */
    struct strv names; /* sessions, newest first */
};

#define RECORDED_GROUP_EMPTY ((struct recorded_group){ .fd = -1 })

/* Opens the group of <workdir> (NULL: ./workdir) without creating anything; a missing one is empty.
 */
bool recorded_group_open (const char *workdir, struct recorded_group *g, struct mur_error **err);
void recorded_group_free (struct recorded_group *g);

/* Reads the trace <address> names (NULL: @1) in the group of the command's --workdir; with --fleet,
 * of a session of the cluster that runs. */
struct trace *recorded_trace (const struct cli_args *args, const char *address,
                              enum trace_mode mode, struct mur_error **err);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose files the planes of a door serve (spec/door.md 12, 13).
 */
#pragma once

#include "door/tasks/tasks.h"
#include "fs/root.h"
#include "trace/lines/writer.h"

struct plane_facts {
    const struct exports *exports; /* the manifest's; NULL: nothing is exported */
    struct fs_root *work;
    const char *containment;   /* the achieved class, as the trace names it */
    bool follows_links;        /* not under class scoped */
    struct registry *registry; /* the generation */
    struct trace_writer *trace;
    struct fs_root *records; /* of the session; NULL: its trace is not served */
};

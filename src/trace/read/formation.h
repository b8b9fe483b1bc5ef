/* SPDX-License-Identifier: Apache-2.0
 *
 * The traces of one formation, read together: its members and the calls between them
 * (spec/records.md 8.2).
 *
 * Always true: reads only; a trace is a member's because its first line says so; what is torn or
 * malformed in it is left out line by line.
 */
#pragma once

#include "base/error.h"
#include "trace/read/text.h"

struct formation_traces;

/* Reads the records group of <work_root> (canonical; NULL: none), of the folder the formation was
 * launched from, and of each folder of its members. NULL: E-IO-003 (the first cannot be listed). */
struct formation_traces *
formation_traces_read (const char *formation_id, const char *work_root, struct mur_error **err);
void formation_traces_free (struct formation_traces *f);
DEFINE_CLEANUP (struct formation_traces, formation_traces_free)
#define _cleanup_formation_ _cleanup_ (formation_traces_freep)

size_t formation_member_count (const struct formation_traces *f);
/* One of them, in the order of their ids. Borrowed. */
struct formation_member_view {
    const char *session_id;
    const char *group;       /* the records group it lies in */
    const char *name;        /* of the member; NULL: a child of one */
    const char *exit_status; /* NULL: no session_end */
};
struct formation_member_view formation_member_at (const struct formation_traces *f, size_t i);
/* The records groups that were looked through, and the work roots of those that could not be.
 * Borrowed. */
const struct strv *formation_searched (const struct formation_traces *f);
const struct strv *formation_unreadable (const struct formation_traces *f);
/* The section "Formation". */
void formation_report (const struct formation_traces *f, struct report *r);

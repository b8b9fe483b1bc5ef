/* SPDX-License-Identifier: Apache-2.0
 *
 * What formation.c reads and formation_calls.c joins. For those two alone.
 */
#pragma once

#include "trace/read/formation.h"
#include "trace/read/formation_member.h"

struct formation_traces {
    char *id;
    struct strv searched;         /* groups */
    struct strv notes;            /* what could not be listed */
    struct strv unreadable;       /* work roots of those */
    struct member_trace *members; /* by session id */
    size_t len, cap;
};

/* "calls:  N" and one row a call, each exactly once. */
void formation_calls_report (const struct formation_traces *f, struct report *r);

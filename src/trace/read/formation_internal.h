/* SPDX-License-Identifier: Apache-2.0
 *
 * What formation.c reads and formation_calls.c joins. For those two alone.
 */
#pragma once

#include "base/json.h"
#include "trace/read/formation.h"

struct member_trace {
    char *session_id;
    json_t *start; /* session_start */
    json_t *end;   /* session_end; NULL: none */
    json_t *lines; /* the other lines that matter, in file order */
};

struct formation_traces {
    char *id;
    struct strv searched;         /* groups */
    struct strv notes;            /* what could not be listed */
    struct strv unreadable;       /* work roots of those */
    struct member_trace *members; /* by session id */
    size_t len, cap;
};

/* Who a member is called: formation_member, else its session. Borrowed. */
const char *member_name (const struct member_trace *m);
/* "calls:  N" and one row a call, each exactly once. */
void formation_calls_report (const struct formation_traces *f, struct report *r);

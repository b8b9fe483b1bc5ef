/* SPDX-License-Identifier: Apache-2.0
 *
 * One member of a formation as its trace tells of it, and what it is called.
 */
#pragma once

#include "base/json.h"

struct member_trace {
    char *session_id;
    const char *group; /* the records group it lies in; of the searched ones */
    json_t *start;     /* session_start */
    json_t *end;       /* session_end; NULL: none */
    json_t *lines;     /* the other lines that matter, in file order */
};

/* Who a member is called: formation_member, else its session. Borrowed. */
const char *formation_member_name (const struct member_trace *m);

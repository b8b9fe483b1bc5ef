/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/read/formation_member.h"

const char *
formation_member_name (const struct member_trace *m)
{
    const char *name = json_get_string (m->start, "formation_member");
    return name ? name : m->session_id;
}

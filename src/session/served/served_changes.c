/* SPDX-License-Identifier: Apache-2.0
 *
 * What a served session's clients see of it, and how they learn that it changed.
 */
#include "door/door.h"
#include "session/served/served_internal.h"

const struct mcp_service *
served_service (const struct served *v)
{
    return &v->service;
}

uint64_t
served_generation (struct served *v)
{
    loop_lock_take (&v->s->loop_lock);
    uint64_t generation = v->s->kit.tools_generation;
    loop_lock_release (&v->s->loop_lock);
    return generation;
}

void
served_tell_changes (struct served *v)
{
    uint64_t generation = served_generation (v);
    if (atomic_exchange (&v->told, generation) != generation)
        door_tell_mcp_list (v->s->door, MCP_LIST_TOOLS);
}

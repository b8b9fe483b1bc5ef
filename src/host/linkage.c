/* SPDX-License-Identifier: Apache-2.0 */
#include "host/linkage.h"

#include "host/artifact_manager.h"
#include "host/conversation.h"
#include "host/inference.h"
#include "host/message.h"
#include "host/stream.h"
#include "host/task.h"
#include "host/task_io.h"
#include "host/tokens.h"
#include "host/tool_registry.h"

#define SCRIPT (1U << GUEST_SCRIPT)
#define TOOL   (1U << GUEST_TOOL)
#define HOOK   (1U << GUEST_HOOK)

/* Several versions of one interface may stand side by side, each with its own adapter. */
static const struct {
    const struct host_interface *interface;
    unsigned kinds;
} table[] = {
    { &host_tool_registry, SCRIPT },
    { &host_artifact_manager, SCRIPT },
    { &host_message, SCRIPT },
    { &host_stream, TOOL },
    { &host_task, TOOL },
    { &host_inference, HOOK },
    { &host_tokens, HOOK },
    { &host_task_io, HOOK },
    { &host_conversation, HOOK },
};

_Static_assert(ARRAY_LEN (table) <= LINKAGE_MAX, "LINKAGE_MAX is too small");

size_t
linkage_interfaces (enum guest_kind kind, const struct host_interface *interfaces[LINKAGE_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN (table); i++)
        if (table[i].kinds & (1U << kind))
            interfaces[count++] = table[i].interface;
    return count;
}

size_t
linkage_bind (enum guest_kind kind, const struct linkage_context *contexts, size_t context_count,
              struct host_binding bindings[LINKAGE_MAX])
{
    const struct host_interface *interfaces[LINKAGE_MAX];
    size_t count = linkage_interfaces (kind, interfaces);
    for (size_t i = 0; i < count; i++) {
        bindings[i] = (struct host_binding){ interfaces[i], NULL };
        for (size_t c = 0; c < context_count; c++)
            if (contexts[c].interface == interfaces[i])
                bindings[i].ctx = contexts[c].ctx;
    }
    return count;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/capsule/door_methods.h"

#include <stddef.h>

const struct door_method_row door_methods[DOOR_METHOD_COUNT] = {
    { "SendMessage", true, true },           { "SendStreamingMessage", true, true },
    { "murmur.WatchSession", false, false }, { "GetTask", false, false },
    { "ListTasks", false, false },           { "CancelTask", false, false },
    { "SubscribeToTask", true, false },      { "murmur.StopSession", false, false },
};

const char *const door_plane_scopes[DOOR_PLANE_SCOPE_COUNT + 1] = { DOOR_SCOPE_FILES, "mcp/tools",
                                                                    "mcp/ask", NULL };

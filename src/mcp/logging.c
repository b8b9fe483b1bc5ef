/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/logging.h"

#include "base/buf.h"
#include "mcp/message.h"

/* From the least. */
static const char *const levels[] = { "debug", "info",     "notice", "warning",
                                      "error", "critical", "alert",  "emergency" };

static size_t
rank_of (const char *name)
{
    size_t i = 0;
    while (i < ARRAY_LEN (levels) && ! str_eq (levels[i], name))
        i++;
    return i;
}

const char *
mcp_level_find (const char *name)
{
    size_t rank = rank_of (name);
    return rank < ARRAY_LEN (levels) ? levels[rank] : NULL;
}

char *
mcp_levels_words (void)
{
    struct buf out = { 0 };
    for (size_t i = 0; i < ARRAY_LEN (levels); i++)
        buf_printf (&out, "%s%s", i ? ", " : "", levels[i]);
    return buf_steal (&out);
}

bool
mcp_level_is_heard (const char *least, const char *level)
{
    size_t rank = rank_of (level);
    return least && rank < ARRAY_LEN (levels) && rank >= rank_of (least);
}

char *
mcp_log_text (const char *level, const char *logger, const json_t *data)
{
    _cleanup_json_ json_t *params = json_object ();
    json_set_string (params, "level", level);
    if (logger)
        json_set_string (params, "logger", logger);
    json_object_set (params, "data", (json_t *)(uintptr_t)data);
    return mcp_request_text (NULL, "notifications/message", params);
}

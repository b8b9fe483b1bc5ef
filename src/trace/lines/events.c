/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/lines/events.h"

#include <string.h>

/* clang-format off */
static const struct trace_field fields_opening[] = {
    { 0 },
#define TRACE_EVENT(name, parent)                                                                  \
    }                                                                                              \
    ;                                                                                              \
    static const struct trace_field fields_##name[] = {
#define TRACE_FIELD(event, kind, key, presence)                                                    \
    { #key, TRACE_KIND_##kind, TRACE_##presence, offsetof (struct trace_##event, key) },
#include "trace/lines/events.def"
#undef TRACE_EVENT
#undef TRACE_FIELD
};
/* clang-format on */

static const struct trace_event_info events[] = {
#define TRACE_EVENT(name, parent)                                                                  \
    [TRACE_EVENT_##                                                                                \
        name] = { #name, TRACE_PARENT_##parent, fields_##name, ARRAY_LEN (fields_##name) },
#define TRACE_FIELD(event, kind, key, presence)
#include "trace/lines/events.def"
#undef TRACE_EVENT
#undef TRACE_FIELD
};

const struct trace_event_info *
trace_event_info (enum trace_event_type event)
{
    (void)fields_opening;
    return &events[event];
}

const struct trace_event_info *
trace_event_find (const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN (events); i++)
        if (strcmp (events[i].name, name) == 0)
            return &events[i];
    return NULL;
}

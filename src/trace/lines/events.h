/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace events as C: one payload struct an event (struct trace_tool_call, ...) and the table of
 * their fields, both made from events.def. The writer prints payloads by this table; the reader
 * takes the required keys from it.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

/* A number that may be missing. */
struct trace_num {
    bool is_set;
    int64_t value;
};

#define TRACE_NUM(v) ((struct trace_num){ true, (int64_t)(v) })
#define TRACE_NO_NUM ((struct trace_num){ false, 0 })

struct trace_flag {
    bool is_set;
    bool value;
};

#define TRACE_FLAG(v) ((struct trace_flag){ true, (v) })

enum trace_kind {
    TRACE_KIND_STR,   /* const char * */
    TRACE_KIND_TEXT,  /* const char *, redacted and cut to 2000 bytes */
    TRACE_KIND_U64,   /* uint64_t */
    TRACE_KIND_INT,   /* struct trace_num */
    TRACE_KIND_BOOL,  /* bool */
    TRACE_KIND_MBOOL, /* struct trace_flag */
    TRACE_KIND_STRS,  /* char *const *, NULL-terminated; NULL when ALWAYS means [] */
    TRACE_KIND_JSON,  /* const char *, compact JSON text */
};

enum trace_presence {
    TRACE_ALWAYS,
    TRACE_NULLABLE, /* the key is there, the value may be null */
    TRACE_OPTIONAL, /* the key is left out when unset */
};

/* Which node a line hangs from. */
enum trace_parent {
    TRACE_PARENT_ROOT, /* null: session_start itself */
    TRACE_PARENT_SESSION,
    TRACE_PARENT_TASK, /* the running task, else the session */
    TRACE_PARENT_TURN, /* the running turn, else the task, else the session */
    TRACE_PARENT_PLAN, /* given by the plan */
};

enum trace_event_type {
#define TRACE_EVENT(name, parent) TRACE_EVENT_##name,
#define TRACE_FIELD(event, kind, key, presence)
#include "trace/lines/events.def"
#undef TRACE_EVENT
#undef TRACE_FIELD
    TRACE_EVENT_COUNT
};

struct trace_field {
    const char *key;
    enum trace_kind kind;
    enum trace_presence presence;
    size_t offset;
};

struct trace_event_info {
    const char *name;
    enum trace_parent parent;
    const struct trace_field *fields;
    size_t field_count;
};

const struct trace_event_info *trace_event_info (enum trace_event_type event);
/* NULL for a name this release does not know. */
const struct trace_event_info *trace_event_find (const char *name);

#define TRACE_C_STR   const char *
#define TRACE_C_TEXT  const char *
#define TRACE_C_U64   uint64_t
#define TRACE_C_INT   struct trace_num
#define TRACE_C_BOOL  bool
#define TRACE_C_MBOOL struct trace_flag
#define TRACE_C_STRS  char *const *
#define TRACE_C_JSON  const char *

/* Each TRACE_EVENT row closes the struct before it and opens its own. */
struct trace_opening_ {
    char unused;
#define TRACE_EVENT(name, parent)                                                                  \
    }                                                                                              \
    ;                                                                                              \
    struct trace_##name {
#define TRACE_FIELD(event, kind, key, presence) TRACE_C_##kind key;
#include "trace/lines/events.def"
#undef TRACE_EVENT
#undef TRACE_FIELD
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/tell/metrics.h"

#include "base/alloc.h"
#include "trace/read/text_index.h"

#include <string.h>
#include <strings.h>

#define NOT_READ UINT32_MAX

static uint64_t
number (const struct trace_event *e, const char *key)
{
    uint64_t value = 0;
    (void)json_get_u64 (e->object, key, &value);
    return value;
}

static bool
is_ok (const struct trace_event *e)
{
    return str_eq (json_get_string (e->object, "status"), "ok");
}

/* An inference of the agent loop (no origin), counted as a turn: not a failed http call. */
static bool
trace_is_turn (const struct trace_event *e)
{
    if (! str_eq (e->type, "inference") || json_object_get (e->object, "origin"))
        return false;
    /* A failed http call has a cap recorded and spent no turn; a failed harness turn counts when it
     * spent tokens. */
    bool has_failed = str_eq (json_get_string (e->object, "decision"), "error");
    return ! has_failed || (! json_object_get (e->object, "max_output_tokens") &&
                            json_object_get (e->object, "input_tokens"));
}

/* --- redundancy --- */

const char *
trace_call_identity (const json_t *call)
{
    static const char *const keys[] = { "path", "file", "file_path", "filepath", "filename" };
    const char *id = json_get_string (call, "resource_id");
    if (id && *id)
        return id;
    json_t *input = json_object_get (call, "input");
    for (size_t i = 0; i < ARRAY_LEN (keys); i++) {
        const char *key;
        json_t *value;
        json_object_foreach (input, key,
                             value) if (strcasecmp (key, keys[i]) == 0 &&
                                        json_is_string (value)) return json_string_value (value);
    }
    return NULL;
}

/* <reads> has the last read of each identity, NOT_READ once something may have changed it. */
static void
note_call (struct trace_metrics *m, struct text_index *reads, const struct trace_event *e)
{
    const char *identity = trace_call_identity (e->object);
    uint32_t earlier = NOT_READ;
    if (! identity)
        return;
    (void)text_index_get (reads, identity, &earlier);
    if (! str_eq (json_get_string (e->object, "state_effect"), "read")) {
        text_index_put (reads, identity, NOT_READ);
    } else if (earlier == NOT_READ) {
        text_index_put (reads, identity, (uint32_t)e->index);
    } else {
        x_grow (m->redundant, m->redundant_count, m->redundant_cap);
        m->redundant[m->redundant_count++] =
            (struct trace_redundant){ (uint32_t)e->index, earlier };
    }
}

/* --- sums --- */

static void
note_shell_exit (struct trace_metrics *m, const struct trace_event *e)
{
    m->shell_ended++;
    m->shell_ms += number (e, "duration_ms");
    m->shell_ok += number (e, "exit_code") == 0;
}

static void
note_event (struct trace_metrics *m, const struct trace_event *e)
{
    if (str_eq (e->type, "inference")) {
        m->turns += trace_is_turn (e);
        bool has_failed = str_eq (json_get_string (e->object, "decision"), "error");
        if (! has_failed || ! json_object_get (e->object, "max_output_tokens")) {
            m->input_tokens += number (e, "input_tokens");
            m->output_tokens += number (e, "output_tokens");
        }
    } else if (str_eq (e->type, "tool_call")) {
        m->tool_calls++;
        m->tool_ok += is_ok (e);
        m->tool_ms += number (e, "duration_ms");
    } else if (str_eq (e->type, "skill_call")) {
        m->skill_calls++;
        m->skill_ok += is_ok (e);
        m->skill_ms += number (e, "duration_ms");
    } else if (str_eq (e->type, "shell")) {
        m->shell_calls++;
        note_shell_exit (m, e);
    } else if (str_eq (e->type, "shell_detached")) {
        m->shell_calls++;
    } else if (str_eq (e->type, "shell_completed")) {
        note_shell_exit (m, e);
    } else if (str_eq (e->type, "compaction") && ! m->is_compacted) {
        m->is_compacted = true;
        m->compacted_turn = number (e, "turn");
    } else if (str_eq (e->type, "task_end")) {
        m->tasks++;
    }
}

void
trace_metrics_read (const struct trace *t, struct trace_metrics *m)
{
    *m = (struct trace_metrics){ 0 };
    _cleanup_text_index_ struct text_index reads = { 0 };
    for (size_t i = 0; i < t->count; i++) {
        const struct trace_event *e = trace_at (t, i);
        note_event (m, e);
        if (str_eq (e->type, "tool_call") || str_eq (e->type, "plan_step"))
            note_call (m, &reads, e);
    }
    m->duration_ms = t->last_ms - t->first_ms;
    const struct trace_event *end = trace_find (t, "session_end", 0);
    if (! end)
        return;
    m->turns = number (end, "total_turns");
    m->input_tokens = number (end, "total_input_tokens");
    m->output_tokens = number (end, "total_output_tokens");
    m->shell_calls = number (end, "total_shell_calls");
    m->duration_ms = number (end, "duration_ms");
    const char *status = json_get_string (end->object, "exit_status");
    m->exit_status = status ? x_strdup (status) : NULL;
}

void
trace_metrics_free (struct trace_metrics *m)
{
    free (m->redundant);
    free (m->exit_status);
    *m = (struct trace_metrics){ 0 };
}

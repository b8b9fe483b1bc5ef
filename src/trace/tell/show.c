/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/tell/show.h"

#include "base/alloc.h"
#include "trace/read/formation.h"
#include "trace/tell/show_sections_internal.h"

#include <string.h>

/* Of a session that is a member: the others, and who called whom. */
static void
show_formation (struct show *s)
{
    const struct trace_event *start = trace_find (s->trace, "session_start", 0);
    const char *id = start ? json_get_string (start->object, "formation_id") : NULL;
    if (! id || ! member_has (start->object, "formation_member"))
        return;
    _cleanup_formation_ struct formation_traces *f = formation_traces_read (id, s->work_root, NULL);
    if (f && formation_member_count (f))
        formation_report (f, s->report);
}

/* records.md 8.1, in its order. */
static show_section_fn *const sections[] = {
    show_session,       show_harness, show_hook_failures, show_retention,  show_context,
    show_turns,         show_tokens,  show_wire,          show_tool_calls, show_redundant,
    show_skills,        show_pulled,  show_shell,         show_background, show_compaction,
    show_call_settings, show_endings, show_status,        show_cancelled,  show_rejected,
    show_failed,        show_reopens, show_denied,        show_approvals,  show_protected,
    show_resources,     show_choices, show_control,       show_peer_files, show_delegations,
    show_member_calls,  show_plans,   show_a2a,           show_tasks,      show_formation,
};

void
trace_show (const struct trace *t, const char *work_root, struct report *report)
{
    struct show s = { .trace = t, .work_root = work_root, .report = report };
    trace_metrics_read (t, &s.metrics);
    for (size_t i = 0; i < ARRAY_LEN (sections); i++)
        sections[i](&s);
    trace_metrics_free (&s.metrics);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace show`: what the session was, its harness, hooks, retention and seeds. See
 * show_parts.h.
 */
#include "trace/tell/show_sections_internal.h"

#include "base/alloc.h"

#include <string.h>

static void
status_lines (struct show *s)
{
    const struct trace *t = s->trace;
    struct report *r = s->report;
    if (s->metrics.exit_status) {
        report_line (r, "status", "%s", s->metrics.exit_status);
        report_line (r, "duration", "%s", duration_text (s->metrics.duration_ms).text);
        return;
    }
    report_label (r, "status");
    report_text (r, "ended without a session_end (last event: %s at %s", t->last_type,
                 time_text (t->last_ms).text);
    if (t->torn_line)
        report_text (r, "; line %zu, the last, is not valid JSON and was skipped", t->torn_line);
    report_text (r, ")\n");
    report_line (r, "duration", "%s  (first to last event)",
                 duration_text (s->metrics.duration_ms).text);
    report_line (r, "totals", "counted from the lines of this trace");
}

static void
list_line (struct report *r, const char *label, const json_t *object, const char *key)
{
    _cleanup_free_ char *list = member_list (object, key);
    if (*list)
        report_line (r, label, "%s", list);
}

static void
runtime_pins (struct report *r, const json_t *start)
{
    size_t i;
    const json_t *pin;
    json_array_foreach (json_object_get (start, "runtime_artifacts"), i, pin)
        report_line (r, "runtime pins", "%s@%s (pulled by %s)", member_text (pin, "name"),
                     member_text (pin, "version"), member_text (pin, "session"));
}

static void
prompt_line (struct report *r, const json_t *start)
{
    const char *source = member_text (start, "system_prompt_source");
    if (str_eq (source, "none"))
        report_line (r, "prompt", "none");
    else
        report_line (r, "prompt", "%s  %s", source,
                     short_text (json_get_string (start, "system_prompt_sha256")).text);
}

static void
deadline_line (struct report *r, const json_t *start)
{
    const json_t *deadline = json_object_get (start, "deadline");
    if (json_is_object (deadline))
        report_line (r, "deadline", "%s  (%lus after mur run started; notice %lus before)",
                     member_text (deadline, "at"), (unsigned long)member_number (deadline, "secs"),
                     (unsigned long)member_number (deadline, "notice_secs"));
}

void
show_session (struct show *s)
{
    struct report *r = s->report;
    const struct trace_event *e = trace_find (s->trace, "session_start", 0);
    const json_t *start = e ? e->object : NULL;
    report_heading (r, "Session");
    report_line (r, "session", "%s", trace_session_id (s->trace));
    if (member_has (start, "spawned_by"))
        report_text (r, "Spawned by %s (delegation %s)\n", member_text (start, "spawned_by"),
                     member_text (start, "delegation_id"));
    if (member_has (start, "formation_id"))
        report_line (r, "formation", "%s", member_text (start, "formation_id"));
    if (start) {
        report_line (r, "capsule", "%s v%s", member_text (start, "capsule_name"),
                     member_text (start, "capsule_version"));
        report_line (r, "model", "%s", member_text (start, "model"));
    }
    status_lines (s);
    if (! start)
        return;
    list_line (r, "capabilities", start, "capabilities");
    list_line (r, "tools", start, "tools_declared");
    runtime_pins (r, start);
    report_line (r, "containment", "%s → %s", member_text (start, "containment_declared"),
                 member_text (start, "containment_achieved"));
    report_line (r, "workdir exec", "%s",
                 json_is_true (json_object_get (start, "workdir_exec")) ? "yes" : "no");
    if (member_has (start, "userns_grant"))
        report_line (r, "userns", "%s", member_text (start, "userns_grant"));
    prompt_line (r, start);
    deadline_line (r, start);
}

void
show_harness (struct show *s)
{
    struct report *r = s->report;
    bool is_headed = false;
    for (size_t i = 0; i < s->trace->count; i++) {
        const char *type = trace_type (s->trace, i);
        bool is_warning = str_eq (type, "harness_warning");
        bool is_failure = str_eq (type, "harness_failed");
        if (! is_warning && ! is_failure && ! str_eq (type, "harness_interrupt"))
            continue;
        const json_t *o = trace_at (s->trace, i)->object;
        if (! is_headed)
            report_heading (r, "Harness");
        is_headed = true;
        if (is_warning)
            report_text (r, "warning %s: %s\n", member_text (o, "code"),
                         member_text (o, "message"));
        else if (is_failure)
            report_text (r, "harness failed (%s): %s\n", member_text (o, "kind"),
                         member_text (o, "message"));
        else
            report_text (r, "interrupt %s: %s, %lums grace\n", member_text (o, "method"),
                         json_is_true (json_object_get (o, "delivered")) ? "sent" : "not delivered",
                         (unsigned long)member_number (o, "grace_ms"));
    }
}

void
show_hook_failures (struct show *s)
{
    if (! show_count (s, "hook_dispatch_error"))
        return;
    report_heading (s->report, "Hook failures");
    for (const struct trace_event *e = NULL; (e = show_next (s, "hook_dispatch_error", e));) {
        report_mark (s->report, false);
        report_text (s->report, " %s  %s  %s\n", member_text (e->object, "hook_name"),
                     member_text (e->object, "event"), member_text (e->object, "arm"));
    }
}

void
show_retention (struct show *s)
{
    if (! show_count (s, "retention"))
        return;
    report_heading (s->report, "Retention");
    for (const struct trace_event *e = NULL; (e = show_next (s, "retention", e));) {
        report_text (s->report, "%s  %s  removed %lu", member_text (e->object, "store"),
                     member_text (e->object, "reason"),
                     (unsigned long)member_number (e->object, "removed"));
        if (member_has (e->object, "messages_dropped"))
            report_text (s->report, ", %lu messages dropped",
                         (unsigned long)member_number (e->object, "messages_dropped"));
        _cleanup_free_ char *targets = member_list (e->object, "targets");
        report_text (s->report, "\n  %s\n", targets);
    }
}

void
show_context (struct show *s)
{
    if (! show_count (s, "context_seed"))
        return;
    report_heading (s->report, "Context");
    for (const struct trace_event *e = NULL; (e = show_next (s, "context_seed", e));) {
        const json_t *o = e->object;
        report_text (s->report, "seed  %s  %s tokens (proposed %s, budget %s)\n",
                     member_text (o, "outcome"), count_text (member_number (o, "tokens")).text,
                     count_text (member_number (o, "proposed_tokens")).text,
                     count_text (member_number (o, "budget_tokens")).text);
        _cleanup_free_ char *messages = member_list (o, "message_ids");
        if (*messages)
            report_text (s->report, "  messages: %s\n", messages);
        if (member_has (o, "reason"))
            report_text (s->report, "  reason:   %s\n", member_text (o, "reason"));
    }
}

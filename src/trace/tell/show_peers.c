/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace show`: delegations, member calls, plans, messages and the list of tasks. See
 * show_parts.h.
 */
#include "trace/tell/show_sections_internal.h"

#include "base/alloc.h"

#include <string.h>

static unsigned long
number (const json_t *o, const char *key)
{
    return (unsigned long)member_number (o, key);
}

/* --- Delegations --- */

static void
delegation_line (struct show *s, const json_t *o, const char *outcome,
                 const struct text_index *starts)
{
    const char *id = json_get_string (o, "delegation_id");
    const char *child = json_get_string (o, "child_session_id");
    uint32_t start;
    report_text (s->report, "%s  %s@%s  %s  %s\n", id ? id : "(none)", member_text (o, "capsule"),
                 member_text (o, "version"), child ? child : "(no child)", outcome);
    const char *records =
        id && text_index_get (starts, id, &start)
            ? json_get_string (trace_at (s->trace, start)->object, "child_records_dir")
            : NULL;
    if (records)
        report_text (s->report, "  child trace: %s/trace.jsonl\n", records);
    if (member_has (o, "reason"))
        report_text (s->report, "  %s\n", member_text (o, "reason"));
}

void
show_delegations (struct show *s)
{
    if (! show_count (s, "delegation") && ! show_count (s, "delegation_start"))
        return;
    report_heading (s->report, "Delegations");
    _cleanup_text_index_ struct text_index starts, ends;
    uint32_t unused;
    show_index (s, "delegation_start", "delegation_id", &starts);
    show_index (s, "delegation", "delegation_id", &ends);
    for (const struct trace_event *e = NULL; (e = show_next (s, "delegation", e));)
        delegation_line (s, e->object, member_text (e->object, "outcome"), &starts);
    for (const struct trace_event *e = NULL; (e = show_next (s, "delegation_start", e));)
        if (! text_index_get (&ends, member_text (e->object, "delegation_id"), &unused))
            delegation_line (s, e->object, "no ending recorded", &starts);
}

/* --- Member calls --- */

/* How often a member was busy, by the call's id. */
static void
count_busy_offers (struct show *s, struct text_index *counts)
{
    text_index_init (counts, show_count (s, "member_call_busy"));
    for (const struct trace_event *e = NULL; (e = show_next (s, "member_call_busy", e));) {
        uint32_t count = 0;
        (void)text_index_get (counts, member_text (e->object, "call_id"), &count);
        text_index_put (counts, member_text (e->object, "call_id"), count + 1);
    }
}

void
show_member_calls (struct show *s)
{
    if (! show_count (s, "member_call"))
        return;
    report_heading (s->report, "Member calls");
    _cleanup_text_index_ struct text_index offers;
    count_busy_offers (s, &offers);
    for (const struct trace_event *e = NULL; (e = show_next (s, "member_call", e));) {
        const json_t *o = e->object;
        report_text (s->report, "%s  %s  %s  %s in %s", member_text (o, "call_id"),
                     member_text (o, "member"), member_text (o, "member_task_id"),
                     member_text (o, "status"),
                     duration_text (member_number (o, "duration_ms")).text);
        uint32_t busy;
        if (text_index_get (&offers, member_text (o, "call_id"), &busy))
            report_text (s->report, "  busy ×%u", busy);
        report_text (s->report, "\n");
    }
}

/* --- Plans --- */

static const json_t *
declared_step (const json_t *plan, const char *step_id)
{
    size_t i;
    const json_t *step;
    json_array_foreach (json_object_get (plan, "steps"), i,
                        step) if (str_eq (json_get_string (step, "step_id"), step_id)) return step;
    return NULL;
}

static void
plan_step_line (struct show *s, const json_t *plan, const json_t *o)
{
    struct report *r = s->report;
    report_text (r, "  %s  %s  %s  %s", member_text (o, "step_id"), member_text (o, "kind"),
                 member_text (o, "status"), duration_text (member_number (o, "duration_ms")).text);
    if (number (o, "attempts") > 1)
        report_text (r, "  %lu attempts", number (o, "attempts"));
    const json_t *declared = declared_step (plan, json_get_string (o, "step_id"));
    _cleanup_free_ char *after = member_list (declared, "depends_on");
    if (*after)
        report_text (r, "  after %s", after);
    if (json_is_true (json_object_get (declared, "has_condition")))
        report_text (r, "  conditional");
    report_text (r, "\n");
    if (member_has (o, "error"))
        report_text (r, "    %s\n", member_text (o, "error"));
}

/* The lines of a plan's steps, which stand between its first event and its last. */
static void
plan_steps (struct show *s, const json_t *plan, const char *id, size_t first, size_t end)
{
    for (const struct trace_event *e = trace_find (s->trace, "plan_step", first);
         e && e->index < end; e = show_next (s, "plan_step", e))
        if (str_eq (json_get_string (e->object, "plan_id"), id))
            plan_step_line (s, plan, e->object);
}

static void
one_plan (struct show *s, const json_t *plan, const json_t *end, size_t first, size_t last)
{
    struct report *r = s->report;
    const char *id = json_get_string (plan ? plan : end, "plan_id");
    unsigned long steps = plan ? number (plan, "step_count") : number (end, "steps_total");
    report_text (r, "%s  %s  %lu step%s  %s\n", id,
                 end ? member_text (end, "outcome") : "not ended", steps, steps == 1 ? "" : "s",
                 duration_text (member_number (end, "duration_ms")).text);
    if (end)
        report_line (r, "steps", "%lu succeeded, %lu failed, %lu skipped",
                     number (end, "steps_succeeded"), number (end, "steps_failed"),
                     number (end, "steps_skipped"));
    if (member_has (end, "failed_step"))
        report_line (r, "failed at", "%s", member_text (end, "failed_step"));
    if (member_has (end, "reason"))
        report_text (r, "  %s\n", member_text (end, "reason"));
    plan_steps (s, plan, id, first, last);
}

/* The plan that starts at <at>, with its end if it has one. */
static void
started_plan (struct show *s, size_t at, const struct text_index *ends)
{
    _cleanup_json_ json_t *plan = json_incref (trace_at (s->trace, at)->object), *end = NULL;
    uint32_t last;
    bool has_end = text_index_get (ends, json_get_string (plan, "plan_id"), &last);
    if (has_end)
        end = json_incref (trace_at (s->trace, last)->object);
    one_plan (s, plan, end, at, has_end ? last : s->trace->count);
}

void
show_plans (struct show *s)
{
    if (! show_count (s, "plan_start") && ! show_count (s, "plan_end"))
        return;
    report_heading (s->report, "Plan");
    _cleanup_text_index_ struct text_index starts, ends;
    uint32_t unused;
    show_index (s, "plan_start", "plan_id", &starts);
    show_index (s, "plan_end", "plan_id", &ends);
    for (size_t i = 0; i < s->trace->count; i++)
        if (str_eq (trace_type (s->trace, i), "plan_start"))
            started_plan (s, i, &ends);
    for (size_t i = 0; i < s->trace->count; i++) {
        if (! str_eq (trace_type (s->trace, i), "plan_end"))
            continue;
        _cleanup_json_ json_t *end = json_incref (trace_at (s->trace, i)->object);
        if (! text_index_get (&starts, member_text (end, "plan_id"), &unused))
            one_plan (s, NULL, end, 0, i);
    }
}

/* --- messages and tasks --- */

void
show_a2a (struct show *s)
{
    size_t received = show_count (s, "a2a_task_received");
    size_t sent = show_count (s, "a2a_send");
    if (! received && ! sent)
        return;
    report_heading (s->report, "A2A");
    report_line (s->report, "received", "%zu task%s", received, received == 1 ? "" : "s");
    report_line (s->report, "sent", "%zu message%s", sent, sent == 1 ? "" : "s");
    for (const struct trace_event *e = NULL; (e = show_next (s, "a2a_send", e));)
        report_text (s->report, "  → %s\n", member_text (e->object, "peer_url"));
}

void
show_tasks (struct show *s)
{
    if (show_count (s, "task_start") < 2)
        return;
    report_rule (s->report, "Tasks", 48);
    size_t n = 0;
    for (const struct trace_event *e = NULL; (e = show_next (s, "task_end", e));) {
        const json_t *o = e->object;
        report_text (s->report, "task %zu  %.12s  turns: %lu  in: %s  out: %s  %s  %s", ++n,
                     member_text (o, "task_id"), number (o, "turns"),
                     count_text (member_number (o, "input_tokens")).text,
                     count_text (member_number (o, "output_tokens")).text,
                     member_text (o, "exit_status"),
                     duration_text (member_number (o, "duration_ms")).text);
        if (number (o, "reopen_count"))
            report_text (s->report, "  reopens: %lu", number (o, "reopen_count"));
        report_text (s->report, "\n");
    }
}

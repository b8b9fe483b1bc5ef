/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace show`: endings, refusals, control and planes. See show_parts.h.
 */
#include "trace/tell/show_sections_internal.h"

#include "base/alloc.h"

#include <string.h>

static unsigned long
number (const json_t *o, const char *key)
{
    return (unsigned long)member_number (o, key);
}

void
show_endings (struct show *s)
{
    struct report *r = s->report;
    if (show_count (s, "formation_ended")) {
        report_heading (r, "Formation ended");
        for (const struct trace_event *e = NULL; (e = show_next (s, "formation_ended", e));)
            report_text (r, "formation_ended  %s  its launcher is gone\n",
                         member_text (e->object, "formation_id"));
    }
    if (show_count (s, "spawner_ended")) {
        report_heading (r, "Spawner ended");
        for (const struct trace_event *e = NULL; (e = show_next (s, "spawner_ended", e));)
            report_text (r, "spawner_ended  %s  %s  the session that started this one is gone\n",
                         member_text (e->object, "spawned_by"),
                         member_text (e->object, "delegation_id"));
    }
}

/* --- Session status and deadline --- */

/* A count, or the word that stands for none ("none", "unknown"). */
static void
count_or_word (struct report *r, const json_t *object, const char *key, bool uses_commas)
{
    const json_t *value = json_object_get (object, key);
    if (json_is_string (value))
        report_text (r, "%s", json_string_value (value));
    else if (json_is_integer (value) && uses_commas)
        report_text (r, "%s", count_text ((uint64_t)json_integer_value (value)).text);
    else if (json_is_integer (value))
        report_text (r, "%" JSON_INTEGER_FORMAT, json_integer_value (value));
    else
        report_text (r, "—");
}

/* Only what was ever allowed is worth a word. */
static void
used_left (struct report *r, const char *name, const json_t *value)
{
    if (json_is_object (value))
        report_text (r, "  %s %lu used %lu left", name, number (value, "used"),
                     number (value, "left"));
}

static void
status_line (struct report *r, const json_t *status)
{
    const json_t *time = json_object_get (status, "time");
    const json_t *deadline = json_object_get (time, "deadline");
    const json_t *turns = json_object_get (status, "turns");
    const json_t *context = json_object_get (status, "context");
    const json_t *tokens = json_object_get (status, "tokens");
    const json_t *spend = json_object_get (status, "spend");
    report_text (r, "session_status  elapsed %lus  left ", number (time, "elapsed_secs"));
    if (json_is_object (deadline))
        report_text (r, "%lus", number (deadline, "left_secs"));
    else
        report_text (r, "none");
    report_text (r, "  turns ");
    count_or_word (r, turns, "used", false);
    report_text (r, "/");
    count_or_word (r, turns, "cap", false);
    if (json_is_object (context)) {
        report_text (r, "  context ");
        count_or_word (r, context, "used_tokens", true);
        report_text (r, "/");
        count_or_word (r, context, "window_tokens", true);
        report_text (r, " (%s)", member_text (context, "measured_by"));
    }
    report_text (r, "  tokens in ");
    count_or_word (r, tokens, "input", true);
    report_text (r, " out ");
    count_or_word (r, tokens, "output", true);
    report_text (r, "  spend ");
    count_or_word (r, spend, "tokens", true);
    report_text (r, "/");
    count_or_word (r, spend, "ceiling", true);
    used_left (r, "keep_working", json_object_get (status, "keep_working"));
    used_left (r, "done_check", json_object_get (status, "done_check"));
    report_text (r, "\n");
}

void
show_status (struct show *s)
{
    struct report *r = s->report;
    bool is_headed = false;
    for (size_t i = 0; i < s->trace->count; i++) {
        const char *type = trace_type (s->trace, i);
        bool is_status = str_eq (type, "session_status");
        bool is_notice = str_eq (type, "deadline_notice");
        if (! is_status && ! is_notice && ! str_eq (type, "deadline_reached"))
            continue;
        const struct trace_event *e = trace_at (s->trace, i);
        if (! is_headed)
            report_heading (r, "Session status and deadline");
        is_headed = true;
        if (is_status)
            status_line (r, json_object_get (e->object, "status"));
        else if (is_notice)
            report_text (r, "deadline_notice  %s  %lus left; deadline %s\n",
                         member_text (e->object, "tool_name"), number (e->object, "left_secs"),
                         member_text (e->object, "deadline_at"));
        else
            report_text (r, "deadline_reached  %s  after %lus (%s)\n",
                         member_text (e->object, "deadline_at"),
                         number (e->object, "deadline_secs"), member_text (e->object, "source"));
    }
}

/* --- tasks that did not complete --- */

void
show_cancelled (struct show *s)
{
    if (! show_count (s, "task_canceled"))
        return;
    report_heading (s->report, "Cancelled");
    for (const struct trace_event *e = NULL; (e = show_next (s, "task_canceled", e));) {
        _cleanup_free_ char *commands = member_list (e->object, "detached_work_ids");
        _cleanup_free_ char *children = member_list (e->object, "delegation_ids");
        report_text (s->report, "task_canceled  at %s  ", member_text (e->object, "phase"));
        if (*commands || *children)
            report_text (s->report, "still running: %s%s%s\n", commands,
                         *commands && *children ? ", " : "", children);
        else
            report_text (s->report, "nothing left running\n");
    }
}

void
show_rejected (struct show *s)
{
    if (! show_count (s, "task_rejected"))
        return;
    report_heading (s->report, "Rejected");
    for (const struct trace_event *e = NULL; (e = show_next (s, "task_rejected", e));)
        report_text (s->report, "task_rejected  %s  %s  source %s\n",
                     member_text (e->object, "task_id"), member_text (e->object, "cause"),
                     member_text (e->object, "source"));
}

void
show_failed (struct show *s)
{
    if (! show_count (s, "task_failed"))
        return;
    report_heading (s->report, "Failed");
    for (const struct trace_event *e = NULL; (e = show_next (s, "task_failed", e));)
        report_text (s->report, "task_failed  %s  %s%s\n  reason: %s\n",
                     member_text (e->object, "cause"), member_text (e->object, "task_id"),
                     show_turn_suffix (e->object).text, member_text (e->object, "reason"));
}

void
show_reopens (struct show *s)
{
    if (! show_count (s, "task_reopened"))
        return;
    report_heading (s->report, "Reopens");
    for (const struct trace_event *e = NULL; (e = show_next (s, "task_reopened", e));) {
        const json_t *o = e->object;
        report_text (s->report, "reopen %lu  by %s  %s", number (o, "reopen_number"),
                     member_text (o, "hook_name"), member_text (o, "attempt_context"));
        if (member_has (o, "turns_remaining"))
            report_text (s->report, ", %lu turns left", number (o, "turns_remaining"));
        report_text (s->report, "  “%s”\n", member_text (o, "reason"));
    }
}

/* --- refusals --- */

void
show_denied (struct show *s)
{
    if (! show_count (s, "call_denied"))
        return;
    report_heading (s->report, "Denied calls");
    for (const struct trace_event *e = NULL; (e = show_next (s, "call_denied", e));)
        report_text (s->report, "turn %lu  %s  %s  by %s  “%s”\n", number (e->object, "turn"),
                     member_text (e->object, "event"), member_text (e->object, "target"),
                     member_text (e->object, "hook_name"), member_text (e->object, "reason"));
}

/* Every question with what became of it. */
void
show_approvals (struct show *s)
{
    if (! show_count (s, "approval_requested"))
        return;
    report_heading (s->report, "Approvals");
    for (const struct trace_event *e = NULL; (e = show_next (s, "approval_requested", e));) {
        const json_t *o = e->object;
        const char *id = member_text (o, "question_id");
        const struct trace_event *a = NULL;
        while ((a = show_next (s, "approval_answered", a)) &&
               ! str_eq (member_text (a->object, "question_id"), id))
            ;
        report_text (s->report, "turn %lu  %s  %s  %s%s%s\n", number (o, "turn"),
                     member_text (o, "target"), member_text (o, "what"),
                     a ? member_text (a->object, "answer") : "was open when the session ended",
                     a && json_get_string (a->object, "by") ? ", by " : "",
                     a && json_get_string (a->object, "by") ? member_text (a->object, "by") : "");
    }
}

void
show_protected (struct show *s)
{
    size_t count = show_count (s, "protected_path_denied");
    if (! count)
        return;
    report_heading (s->report, "Protected paths");
    report_text (s->report, "protected-path refusals: %zu\n", count);
    for (const struct trace_event *e = NULL; (e = show_next (s, "protected_path_denied", e));) {
        const json_t *o = e->object;
        report_text (s->report, "turn %lu  %s  %s  path %s  rule %s  (%s)\n", number (o, "turn"),
                     member_text (o, "call"), member_text (o, "target"), member_text (o, "path"),
                     member_text (o, "rule"), member_text (o, "signal"));
    }
}

static void
outcome_line (struct show *s, const char *label, const char *type)
{
    _cleanup_free_ char *outcomes = show_outcomes (s, type);
    if (*outcomes)
        report_line (s->report, label, "%s", outcomes);
}

void
show_resources (struct show *s)
{
    if (! show_count (s, "resource_list") && ! show_count (s, "resource_read"))
        return;
    report_heading (s->report, "Resource plane");
    outcome_line (s, "list", "resource_list");
    outcome_line (s, "read", "resource_read");
}

void
show_peer_files (struct show *s)
{
    if (! show_count (s, "peer_handle_mint") && ! show_count (s, "peer_handle_redeem") &&
        ! show_count (s, "peer_file_fetch"))
        return;
    report_heading (s->report, "Peer files");
    outcome_line (s, "minted", "peer_handle_mint");
    outcome_line (s, "redeemed", "peer_handle_redeem");
    outcome_line (s, "fetched", "peer_file_fetch");
}

void
show_choices (struct show *s)
{
    bool is_headed = false;
    for (const struct trace_event *e = NULL; (e = show_next (s, "inference", e));) {
        if (! member_has (e->object, "driver_choice"))
            continue;
        if (! is_headed)
            report_heading (s->report, "Driver choices");
        is_headed = true;
        report_text (s->report, "turn %lu  on %s (%s)\n", number (e->object, "turn"),
                     member_text (e->object, "driver_choice"), member_text (e->object, "model"));
    }
}

/* --- Control --- */

/* The first turn whose inference used a change, as text. */
static void
applied (struct show *s, const char *change_id, const struct text_index *changes)
{
    uint32_t at;
    if (text_index_get (changes, change_id, &at))
        report_text (s->report, "  applied from turn %lu",
                     number (trace_at (s->trace, at)->object, "turn"));
    else
        report_text (s->report, "  not yet used by an inference call");
}

/* A text as it is, anything else as JSON. */
static char *
setting_value (const json_t *o, const char *key)
{
    const char *text = json_get_string (o, key);
    return text ? cut_text (text, 80) : member_json (o, key, 80);
}

static void
control_line (struct show *s, const struct trace_event *e, const struct text_index *changes)
{
    const json_t *o = e->object;
    struct report *r = s->report;
    bool is_forgotten = str_eq (member_text (o, "action"), "forget");
    if (str_eq (member_text (o, "kind"), "secret")) {
        report_text (r, "secret %s  %s%s\n", member_text (o, "name"),
                     is_forgotten ? "forgotten" : "set",
                     is_forgotten                                     ? ""
                     : json_is_true (json_object_get (o, "replaced")) ? " (replaced)"
                                                                      : " (new)");
        return;
    }
    _cleanup_free_ char *before = setting_value (o, "previous");
    _cleanup_free_ char *after = setting_value (o, "value");
    report_text (r, "setting %s  %s → %s", member_text (o, "name"), before, after);
    applied (s, e->id, changes);
    report_text (r, "  by %s\n", member_text (o, "principal"));
}

/* "1 HTTP 403, 2 HTTP 409". */
static void
refused_line (struct show *s)
{
    struct word_counts counts = { 0 };
    for (const struct trace_event *e = NULL; (e = show_next (s, "control_refused", e));) {
        _cleanup_free_ char *status = x_asprintf ("HTTP %lu", number (e->object, "status"));
        word_count_add (&counts, status);
    }
    _cleanup_free_ char *all = word_counts_take (&counts);
    report_label (s->report, "refused");
    report_text (s->report, "%s", all);
    report_text (s->report, "\n");
}

void
show_control (struct show *s)
{
    bool has_refusals = show_count (s, "control_refused") > 0;
    if (! has_refusals && ! show_count (s, "control_change"))
        return;
    report_heading (s->report, "Control");
    _cleanup_text_index_ struct text_index changes;
    show_index (s, "control_applied", "change_id", &changes);
    for (const struct trace_event *e = NULL; (e = show_next (s, "control_change", e));)
        control_line (s, e, &changes);
    if (has_refusals)
        refused_line (s);
}

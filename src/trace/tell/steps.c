/* SPDX-License-Identifier: Apache-2.0
 *
 * How an event's row reads is a template in a table: {key} is a member's text, a dotted key goes
 * into objects, and a suffix says how: %d duration, %c count with commas, %i short id, %m ✓ or ✗,
 * %+ one more than the number, %? nothing at all. [...] is left out when a key in it is missing,
 * empty or false; [a|b] then reads b.
 */
#include "trace/tell/steps.h"

#include "base/alloc.h"
#include "trace/read/text.h"
#include "trace/read/text_index.h"
#include "trace/tell/metrics.h"

#include <string.h>

#define NAME_COLUMNS    11
#define VERBOSE_COLUMNS 60
#define DEEPEST         32 /* levels a row is indented at most */
#define NOWHERE         UINT32_MAX

static const struct {
    const char *event;
    const char *row;
} rows[] = {
    { "tool_call", "{tool_name}  {duration_ms%d}  {status%m}" },
    { "skill_call", "{skill_name}  {duration_ms%d}  {status%m}" },
    { "shell", "{binary}  exit {exit_code}  {duration_ms%d}" },
    { "shell_detached", "{binary}  {work_id%i}  detached after {grace_ms%d}" },
    { "shell_completed",
      "{binary}  {work_id%i}  exit {exit_code} {status%m}  {duration_ms%d}  {output_path}" },
    { "shell_abandoned", "{binary}  {work_id%i}  left after {running_ms%d}[  exit {exit_code}]" },
    { "shell_lost", "{binary}  {work_id%i}  detached at {detached_at_ms}  no result, reported by "
                    "{reconciled_by_session%i}" },
    { "shell_detach_unrecorded", "{binary}  {work_id%i}  {reason}" },
    { "background_command",
      "{operation}  {work_id%i}  {state}[  exit {exit_code}][  waited {waited_ms%d}]" },
    { "compaction", "{tokens_before%c} → {tokens_after%c} tokens" },
    { "compaction_declined", "{tokens%c} tokens  {reason}" },
    { "call_denied", "{event}  {target}  denied by {hook_name}" },
    { "network_refused", "{target}  {host}[:{port}]  {count} times  {rule}" },
    { "command_refused", "{binary}  {what}  {count} times  {rule}" },
    { "approval_requested", "{target}  {what}  asked for {rules}" },
    { "approval_answered", "{target}  {answer}  by {by}" },
    { "approval_applied", "{target}  {answer}  {rule}" },
    { "tool_input_refused", "{tool_name}  missing {missing}" },
    { "protected_path_denied", "{call}  {target}  {path}  rule {rule}" },
    { "spend_ceiling_reached", "{limit}  used {used} of {ceiling}  needs {requested}" },
    { "inference_retry",
      " attempt {attempt} of {max_retries%+}[  HTTP {provider_status}|  {reason}]"
      "  wait {delay_ms}ms" },
    { "task_failed", "{cause}  {reason}" },
    { "task_canceled", "{phase}  [still running: {detached_work_ids}|nothing left running]" },
    { "task_rejected", "{task_id%i}  {cause}  source {source}" },
    { "task_reopened", "{hook_name}  reopen {reopen_number}  {attempt_context}" },
    { "task_resumed", "message {message_id}" },
    { "task_continued", "{continuation_number}  waited {waited_ms%d}" },
    { "keep_working",
      "{number} of {limit}[  turns remaining {turns_remaining}]  message {message_bytes} bytes" },
    { "done_check",
      "{number}: {outcome}[ exit {exit_code}]  {duration_ms} ms[  reopened{reopened%?}]" },
    { "context_seed", "{hook_name}  {outcome}  {tokens%c} tokens" },
    { "member_call", "{member}  {call_id}  {status}  {duration_ms%d}" },
    { "member_call_busy", "{member}  {call_id%i}  offer {offer}  waited {waited_ms%d}" },
    { "member_call_start", "{member}  {call_id%i}  {member_task_id%i}" },
    { "harness_changes", "{count} files" },
    { "plan_start", "{plan_id%i}  {step_count} steps" },
    { "plan_step", "{step_id}  {kind}  {status}  {duration_ms%d}" },
    { "plan_end", "{outcome}[  failed at {failed_step}]" },
    { "artifact_pulled", "{name}@{version} ({origin}/{trust})" },
    { "tools_refreshed", "{trigger}[  +{added}][  -{removed}]  turn {turn}" },
    { "control_change",
      "{kind} {name}  [{previous} → {value}  by {principal}|{action}][ (replaced{replaced%?})]" },
    { "control_applied", "{name}" },
    { "control_refused", "{status} {reason}[  {name}]  by {principal}" },
    { "session_status", "turns {status.turns.used}/{status.turns.cap}" },
    { "deadline_notice", "{tool_name}  {left_secs}s left" },
    { "deadline_reached", "{deadline_at}" },
    { "formation_ended", "{formation_id%i}" },
    { "spawner_ended", "[{spawned_by%i}]" },
};

/* --- templates --- */

/* A member by dotted key. Borrowed, NULL when absent. */
static const json_t *
look_up (const json_t *object, const char *key, size_t len)
{
    _cleanup_free_ char *text = x_strndup (key, len);
    char *rest = text;
    for (char *part; object && (part = strsep (&rest, "."));)
        object = json_object_get (object, part);
    return object;
}

static bool
is_missing (const json_t *value)
{
    return ! value || json_is_null (value) || json_is_false (value) ||
           (json_is_array (value) && ! json_array_size (value)) ||
           (json_is_string (value) && ! *json_string_value (value));
}

static void
put_number (struct report *r, json_int_t value, char how)
{
    if (how == 'd')
        report_text (r, "%s", duration_text ((uint64_t)value).text);
    else if (how == 'c')
        report_text (r, "%s", count_text ((uint64_t)value).text);
    else
        report_text (r, "%" JSON_INTEGER_FORMAT, how == '+' ? value + 1 : value);
}

static void
put_value (struct report *r, const json_t *value, char how)
{
    if (how == '?')
        return;
    if (json_is_integer (value)) {
        put_number (r, json_integer_value (value), how);
    } else if (json_is_string (value)) {
        const char *text = json_string_value (value);
        if (how == 'm')
            report_mark (r, str_eq (text, "ok"));
        else
            report_text (r, "%s", how == 'i' ? short_text (text).text : text);
    } else if (json_is_array (value)) {
        size_t i;
        const json_t *item;
        json_array_foreach (value, i, item)
            report_text (r, "%s%s", i ? ", " : "", json_string_value (item));
    } else if (value && ! json_is_null (value)) {
        _cleanup_free_ char *text = json_text (value, JSON_TEXT_ORDERED);
        report_text (r, "%s", text);
    } else {
        report_text (r, "—");
    }
}

/* One "{key%how}" at <at>. Returns where it ends and the value it names. */
static const char *
read_slot (const char *at, const json_t *object, const json_t **value, char *how)
{
    const char *end = strchr (at, '}');
    const char *percent = memchr (at, '%', (size_t)(end - at));
    *how = percent ? percent[1] : 's';
    *value = look_up (object, at + 1, (size_t)((percent ? percent : end) - at - 1));
    return end + 1;
}

/* Whether every key between <at> and <end> is there. */
static bool
has_all (const char *at, const char *end, const json_t *object)
{
    while ((at = memchr (at, '{', (size_t)(end - at)))) {
        const json_t *value;
        char how;
        at = read_slot (at, object, &value, &how);
        if (is_missing (value))
            return false;
    }
    return true;
}

static void
put_template (struct report *r, const char *at, const char *end, const json_t *object)
{
    while (at < end) {
        if (*at == '{') {
            const json_t *value;
            char how;
            at = read_slot (at, object, &value, &how);
            put_value (r, value, how);
        } else if (*at == '[') {
            const char *close = strchr (at, ']');
            const char *bar = memchr (at, '|', (size_t)(close - at));
            const char *first_end = bar ? bar : close;
            if (has_all (at + 1, first_end, object))
                put_template (r, at + 1, first_end, object);
            else if (bar)
                put_template (r, bar + 1, close, object);
            at = close + 1;
        } else {
            report_text (r, "%c", *at++);
        }
    }
}

static const char *
template_of (const char *event)
{
    for (size_t i = 0; i < ARRAY_LEN (rows); i++)
        if (str_eq (rows[i].event, event))
            return rows[i].row;
    return NULL;
}

/* --- rows --- */

struct tree {
    const struct trace *trace;
    struct report *report;
    bool is_verbose;
    bool has_ids;
    uint32_t *parents; /* index of each event's parent, always an earlier one; NOWHERE for none */
    uint32_t *first_child, *next_sibling;
};

static void
turn_row (struct report *r, const json_t *o)
{
    report_text (r, "turn %lu  %s", (unsigned long)member_number (o, "turn"),
                 member_text (o, "decision"));
    if (member_has (o, "error_code")) {
        report_text (r, "  %s", member_text (o, "error_code"));
        if (member_has (o, "provider_status"))
            report_text (r, "  HTTP %lu", (unsigned long)member_number (o, "provider_status"));
        if (member_has (o, "attempts"))
            report_text (r, "  attempts %lu", (unsigned long)member_number (o, "attempts"));
        if (member_has (o, "retry_stopped"))
            report_text (r, "  retry stopped: %s", member_text (o, "retry_stopped"));
        return;
    }
    if (member_has (o, "tool_name"))
        report_text (r, "  %s", member_text (o, "tool_name"));
    if (member_has (o, "driver_choice"))
        report_text (r, "  on %s (%s)", member_text (o, "driver_choice"), member_text (o, "model"));
    const char *stop = json_get_string (o, "stop_reason");
    if (str_eq (member_text (o, "decision"), "text") &&
        (str_eq (stop, "max_tokens") || str_eq (stop, "length")))
        report_text (r, "  [truncated at inference.max_tokens]");
}

static void
task_row (struct report *r, const json_t *o)
{
    report_text (r, "task %s  %s  (%s, %s/%s, lane %s)",
                 short_text (member_text (o, "task_id")).text,
                 short_text (member_text (o, "context_id")).text, member_text (o, "source"),
                 member_text (o, "origin"), member_text (o, "trust"), member_text (o, "lane"));
}

/* The first string anywhere in a value, or NULL. */
static const char *
first_string (const json_t *value)
{
    if (json_is_string (value))
        return json_string_value (value);
    const char *key;
    json_t *member;
    json_object_foreach ((json_t *)value, key, member)
    {
        const char *found = first_string (member);
        if (found)
            return found;
    }
    size_t i;
    json_array_foreach (value, i, member)
    {
        const char *found = first_string (member);
        if (found)
            return found;
    }
    return NULL;
}

static bool
has_row (const char *type)
{
    return str_eq (type, "task_start") || str_eq (type, "inference") || template_of (type);
}

static void
one_row (struct tree *t, const struct trace_event *e, size_t depth)
{
    struct report *r = t->report;
    if (str_eq (e->type, "task_start"))
        report_text (r, "\n");
    report_text (r, "%*s", (int)(2 * depth), "");
    if (str_eq (e->type, "task_start"))
        task_row (r, e->object);
    else if (str_eq (e->type, "inference") && ! member_has (e->object, "origin"))
        turn_row (r, e->object);
    else if (str_eq (e->type, "inference"))
        report_text (r, "%-*s%s  %s", NAME_COLUMNS, "inference", member_text (e->object, "origin"),
                     member_text (e->object, "decision"));
    else {
        const char *row = template_of (e->type);
        size_t len = strlen (e->type);
        report_text (r, "%s%*s", e->type, len < NAME_COLUMNS ? (int)(NAME_COLUMNS - len) : 1, "");
        put_template (r, row, row + strlen (row), e->object);
        const char *text =
            t->is_verbose ? first_string (json_object_get (e->object, "input")) : NULL;
        _cleanup_free_ char *cut = text ? cut_text (text, VERBOSE_COLUMNS) : NULL;
        if (cut)
            report_text (r, "  \"%s\"", cut);
    }
    report_text (r, "\n");
}

/* --- the tree --- */

/* Finds each event's parent: the line parent_id names, else the row of its task. */
static void
find_parents (struct tree *t)
{
    const struct trace *trace = t->trace;
    _cleanup_text_index_ struct text_index places; /* event id or task id -> index */
    text_index_init (&places, trace->count + trace_count (trace, "task_start"));
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_event *e = trace_at (trace, i);
        const char *task = json_get_string (e->object, "task_id");
        bool is_task = str_eq (e->type, "task_start");
        t->parents[i] = NOWHERE;
        if (! (e->parent && text_index_get (&places, e->parent, &t->parents[i])) && task &&
            ! is_task)
            (void)text_index_get (&places, task, &t->parents[i]);
        if (*e->id)
            text_index_put (&places, e->id, (uint32_t)i);
        if (is_task && task)
            text_index_put (&places, task, (uint32_t)i);
        t->has_ids |= *e->id != '\0';
    }
}

static void
link_children (struct tree *t)
{
    for (size_t i = 0; i < t->trace->count; i++)
        t->first_child[i] = NOWHERE;
    for (size_t i = t->trace->count; i-- > 0;) {
        t->next_sibling[i] = NOWHERE;
        uint32_t parent = t->parents[i];
        if (parent == NOWHERE)
            continue;
        t->next_sibling[i] = t->first_child[parent];
        t->first_child[parent] = (uint32_t)i;
    }
}

/* Prints an event and what hangs below it; an event without a row passes its place on to its
 * children. No recursion: a hostile trace may be as deep as it is long. */
static void
subtree (struct tree *t, size_t top)
{
    size_t depth = 0;
    for (size_t at = top;;) {
        bool is_shown = has_row (trace_type (t->trace, at));
        if (is_shown)
            one_row (t, trace_at (t->trace, at), depth < DEEPEST ? depth : DEEPEST);
        if (t->first_child[at] != NOWHERE) {
            depth += is_shown;
            at = t->first_child[at];
            continue;
        }
        while (at != top && t->next_sibling[at] == NOWHERE) {
            at = t->parents[at];
            depth -= has_row (trace_type (t->trace, at));
        }
        if (at == top)
            return;
        at = t->next_sibling[at];
    }
}

static void
heading (struct tree *t)
{
    struct trace_metrics m;
    trace_metrics_read (t->trace, &m);
    size_t tasks = trace_count (t->trace, "task_start");
    report_text (t->report, "Session %s  (", trace_session_id (t->trace));
    if (tasks)
        report_text (t->report, "%zu task%s, ", tasks, tasks == 1 ? "" : "s");
    report_text (t->report, "%lu turn%s)\n", (unsigned long)m.turns, m.turns == 1 ? "" : "s");
    trace_metrics_free (&m);
}

/* A trace of a time before events had ids: calls in file order. */
static void
flat (struct tree *t)
{
    report_text (t->report, "\n");
    for (size_t i = 0; i < t->trace->count; i++) {
        const struct trace_event *e = trace_at (t->trace, i);
        if (! member_has (e->object, "turn"))
            continue;
        const char *name = json_get_string (e->object, "tool_name");
        report_text (t->report, "%3lu  %-12s %-11s",
                     (unsigned long)member_number (e->object, "turn"), e->type, name ? name : "");
        if (member_has (e->object, "duration_ms"))
            report_text (t->report, " %s",
                         duration_text (member_number (e->object, "duration_ms")).text);
        report_text (t->report, "\n");
    }
}

void
trace_steps (const struct trace *trace, bool is_verbose, struct report *report)
{
    struct tree t = {
        .trace = trace,
        .report = report,
        .is_verbose = is_verbose,
        .parents = x_new_array (uint32_t, trace->count + 1),
        .first_child = x_new_array (uint32_t, trace->count + 1),
        .next_sibling = x_new_array (uint32_t, trace->count + 1),
    };
    heading (&t);
    find_parents (&t);
    link_children (&t);
    for (size_t i = 0; t.has_ids && i < trace->count; i++)
        if (t.parents[i] == NOWHERE)
            subtree (&t, i);
    if (! t.has_ids)
        flat (&t);
    report_text (report, "\n");
    free (t.parents);
    free (t.first_child);
    free (t.next_sibling);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace show`: turns, tokens and what was called in them. See show_parts.h.
 */
#include "trace/tell/show_sections_internal.h"

#include "base/alloc.h"
#include "trace/read/sent_messages.h"

#include <string.h>

#define INPUT_COLUMNS 120

static unsigned long
number (const json_t *o, const char *key)
{
    return (unsigned long)member_number (o, key);
}

/* "  turns remaining 17", or nothing when there is no cap. */
static void
remaining (struct report *r, const json_t *o)
{
    if (member_has (o, "turns_remaining"))
        report_text (r, "  turns remaining %lu", number (o, "turns_remaining"));
}

/* --- Turns --- */

static void
continued_line (struct report *r, const json_t *o)
{
    report_label (r, "continued");
    report_text (r, "%lu  after %zu member calls, %zu delegations  waited %lums",
                 number (o, "continuation_number"),
                 json_array_size (json_object_get (o, "member_calls")),
                 json_array_size (json_object_get (o, "delegations")), number (o, "waited_ms"));
    remaining (r, o);
    report_text (r, "\n");
}

static void
keep_working_line (struct report *r, const json_t *o)
{
    report_label (r, "keep working");
    report_text (r, "%lu of %lu", number (o, "number"), number (o, "limit"));
    remaining (r, o);
    report_text (r, "  message %lu bytes\n", number (o, "message_bytes"));
}

static void
done_check_line (struct report *r, const json_t *o)
{
    report_text (r, "done check %lu: %s", number (o, "number"), member_text (o, "outcome"));
    if (member_has (o, "exit_code"))
        report_text (r, " exit %lu", number (o, "exit_code"));
    report_text (r, "  %lu ms%s\n", number (o, "duration_ms"),
                 json_is_true (json_object_get (o, "reopened")) ? "  reopened" : "");
}

static void
stopped_by (struct report *r, const json_t *o)
{
    if (member_has (o, "stopped_by"))
        report_text (r, " (stopped by %s)", member_text (o, "stopped_by"));
    report_text (r, "\n");
}

static void
kept_working_line (struct report *r, const json_t *task_end)
{
    const json_t *kept = json_object_get (task_end, "keep_working");
    if (! json_is_object (kept))
        return;
    report_text (r, "kept working: %lu of %lu", number (kept, "used"), number (kept, "limit"));
    stopped_by (r, kept);
}

static void
done_check_result_line (struct report *r, const json_t *task_end)
{
    const json_t *check = json_object_get (task_end, "done_check");
    if (! json_is_object (check))
        return;
    const json_t *met = json_object_get (check, "met");
    report_text (r, "done check: %s  reopens %lu of %lu",
                 json_is_true (met)   ? "met"
                 : json_is_null (met) ? "never run"
                                      : "not met",
                 number (check, "reopens"), number (check, "limit"));
    stopped_by (r, check);
}

static void
http_status (struct report *r, const json_t *o, const char *otherwise)
{
    if (member_has (o, "provider_status"))
        report_text (r, "  HTTP %lu", number (o, "provider_status"));
    else if (otherwise)
        report_text (r, "  %s", otherwise);
}

static void
retry_line (struct report *r, const json_t *o)
{
    report_label (r, "retry");
    report_text (r, "turn %lu  inference_retry  attempt %lu of %lu", number (o, "turn"),
                 number (o, "attempt"), number (o, "max_retries") + 1);
    http_status (r, o, member_text (o, "reason"));
    report_text (r, "  wait %lums\n", number (o, "delay_ms"));
}

static void
failed_line (struct report *r, const json_t *o)
{
    if (! member_has (o, "error_code"))
        return;
    report_label (r, "failed");
    report_text (r, "turn %lu  %s", number (o, "turn"), member_text (o, "error_code"));
    http_status (r, o, NULL);
    if (member_has (o, "attempts"))
        report_text (r, "  attempts %lu", number (o, "attempts"));
    if (member_has (o, "retry_stopped"))
        report_text (r, "  retry stopped: %s", member_text (o, "retry_stopped"));
    report_text (r, "\n%12s%s\n", "", member_text (o, "error"));
}

void
show_turns (struct show *s)
{
    static const struct {
        const char *event;
        void (*line) (struct report *r, const json_t *o);
    } kinds[] = {
        { "task_continued", continued_line },   { "keep_working", keep_working_line },
        { "task_end", kept_working_line },      { "done_check", done_check_line },
        { "task_end", done_check_result_line }, { "inference_retry", retry_line },
        { "inference", failed_line },
    };
    struct report *r = s->report;
    const struct trace_event *start = trace_find (s->trace, "session_start", 0);
    report_heading (r, "Turns");
    report_label (r, "count");
    report_text (r, "%lu  (max: ", (unsigned long)s->metrics.turns);
    if (start && member_has (start->object, "max_turns"))
        report_text (r, "%lu)\n", number (start->object, "max_turns"));
    else
        report_text (r, "no cap)\n");
    for (size_t i = 0; i < ARRAY_LEN (kinds); i++)
        for (const struct trace_event *e = NULL; (e = show_next (s, kinds[i].event, e));)
            kinds[i].line (r, e->object);
}

/* --- Tokens --- */

static void
token_line (struct show *s, const char *label, uint64_t tokens)
{
    report_label (s->report, label);
    report_text (s->report, "%s", count_text (tokens).text);
    uint64_t turns = s->metrics.turns;
    if (turns)
        report_text (s->report, "  (avg %s/turn)", count_text ((tokens + turns / 2) / turns).text);
    report_text (s->report, "\n");
}

static void
provider_line (struct show *s)
{
    static const struct {
        const char *key;
        const char *label;
    } kinds[] = {
        { "input_tokens_actual", "in" },   { "output_tokens_actual", "out" },
        { "cached_tokens", "cached" },     { "cache_write_tokens", "cache write" },
        { "thinking_tokens", "thinking" },
    };
    bool is_reported[ARRAY_LEN (kinds)] = { false }, is_labelled = false;
    uint64_t sums[ARRAY_LEN (kinds)] = { 0 };
    for (const struct trace_event *e = NULL; (e = show_next (s, "inference", e));)
        for (size_t i = 0; i < ARRAY_LEN (kinds); i++) {
            is_reported[i] |= member_has (e->object, kinds[i].key);
            sums[i] += member_number (e->object, kinds[i].key);
        }
    for (size_t i = 0; i < ARRAY_LEN (kinds); i++) {
        if (! is_reported[i])
            continue;
        if (! is_labelled)
            report_label (s->report, "provider");
        report_text (s->report, "%s%s %s", is_labelled ? ", " : "", kinds[i].label,
                     count_text (sums[i]).text);
        is_labelled = true;
    }
    if (is_labelled)
        report_text (s->report, "\n");
}

void
show_tokens (struct show *s)
{
    report_heading (s->report, "Tokens");
    token_line (s, "input", s->metrics.input_tokens);
    token_line (s, "output", s->metrics.output_tokens);
    report_line (s->report, "total", "%s",
                 count_text (s->metrics.input_tokens + s->metrics.output_tokens).text);
    provider_line (s);
}

/* --- Wire --- */

static void
refreshed_lines (struct show *s)
{
    for (const struct trace_event *e = NULL; (e = show_next (s, "tools_refreshed", e));) {
        report_label (s->report, "refreshed");
        report_text (s->report, "turn %lu  %s", number (e->object, "turn"),
                     member_text (e->object, "trigger"));
        static const char *const keys[] = { "added", "removed" };
        for (size_t k = 0; k < ARRAY_LEN (keys); k++) {
            size_t i;
            const json_t *name;
            json_array_foreach (json_object_get (e->object, keys[k]), i, name)
                report_text (s->report, "  %c%s", k ? '-' : '+', json_string_value (name));
        }
        report_text (s->report, "\n");
    }
}

void
show_wire (struct show *s)
{
    bool is_headed = false;
    unsigned long first = 0;
    for (const struct trace_event *e = NULL; (e = show_next (s, "inference", e));) {
        const json_t *o = e->object;
        if (! member_has (o, "system_sha"))
            continue;
        if (! is_headed) {
            report_heading (s->report, "Wire");
            first = number (o, "turn");
        }
        is_headed = true;
        size_t messages = sent_count (o);
        report_text (s->report, "turn %lu  system %s  tools %s  response %s  %zu message%s\n",
                     number (o, "turn"), short_text (json_get_string (o, "system_sha")).text,
                     short_text (json_get_string (o, "tools_sha")).text,
                     short_text (json_get_string (o, "response_sha")).text, messages,
                     messages == 1 ? "" : "s");
    }
    if (! is_headed && show_count (s, "tools_refreshed"))
        report_heading (s->report, "Wire");
    refreshed_lines (s);
    if (is_headed)
        report_line (s->report, "bodies", "mur trace show --body system --turn %lu", first);
}

/* --- Calls --- */

static void
calls_head (struct report *r, uint64_t count, uint64_t ok, uint64_t total_ms)
{
    report_label (r, "count");
    report_text (r, "%s", count_text (count).text);
    if (count)
        report_text (r, "  (%s ok, %s error)  success %.1f%%", count_text (ok).text,
                     count_text (count - ok).text, 100.0 * (double)ok / (double)count);
    report_text (r, "\n");
    if (count)
        report_line (r, "latency", "avg %s", duration_text (total_ms / count).text);
}

static void
one_tool_call (struct report *r, const json_t *o)
{
    _cleanup_free_ char *input = member_json (o, "input", INPUT_COLUMNS);
    report_text (r, "  %s %s ", member_text (o, "tool_name"),
                 duration_text (member_number (o, "duration_ms")).text);
    report_mark (r, str_eq (member_text (o, "status"), "ok"));
    report_text (r, "  %s", input);
}

/* What happened in a turn of some number, of whatever task. */
struct of_turn {
    uint64_t turn;
    uint32_t index;
    bool is_call; /* else a decision of the agent */
};

/* By turns; calls before decisions; in file order. */
static int
by_turn (const void *a, const void *b)
{
    const struct of_turn *left = a, *right = b;
    if (left->turn != right->turn)
        return left->turn < right->turn ? -1 : 1;
    if (left->is_call != right->is_call)
        return left->is_call ? -1 : 1;
    return left->index < right->index ? -1 : left->index > right->index;
}

/* All calls of a type and, where <decisions> names one, decisions, side by side. The caller frees
 * them. */
static struct of_turn *
turns_of (struct show *s, const char *calls, const char *decisions, size_t *count)
{
    struct of_turn *all = NULL;
    size_t cap = 0;
    *count = 0;
    for (size_t i = 0; i < s->trace->count; i++) {
        bool is_call = str_eq (trace_type (s->trace, i), calls);
        if (! is_call && ! str_eq (trace_type (s->trace, i), decisions))
            continue;
        const json_t *o = trace_at (s->trace, i)->object;
        if (! is_call && member_has (o, "origin"))
            continue;
        x_grow (all, *count, cap);
        all[(*count)++] = (struct of_turn){ member_number (o, "turn"), (uint32_t)i, is_call };
    }
    if (all)
        qsort (all, *count, sizeof (*all), by_turn);
    return all;
}

/* One line a turn number: its calls, or what the agent decided instead. */
static void
turn_lines (struct show *s, const char *calls, const char *decisions,
            void (*print) (struct report *r, const json_t *o))
{
    size_t count;
    _cleanup_free_ struct of_turn *all = turns_of (s, calls, decisions, &count);
    for (size_t i = 0; i < count;) {
        size_t first = i;
        report_text (s->report, "  turn %lu", (unsigned long)all[i].turn);
        for (; i < count && all[i].turn == all[first].turn; i++) {
            const json_t *o = trace_at (s->trace, all[i].index)->object;
            if (all[i].is_call)
                print (s->report, o);
            else if (i == first)
                report_text (s->report, "  %s", member_text (o, "decision"));
        }
        report_text (s->report, "\n");
    }
}

void
show_tool_calls (struct show *s)
{
    report_heading (s->report, "Tool calls");
    calls_head (s->report, s->metrics.tool_calls, s->metrics.tool_ok, s->metrics.tool_ms);
    if (s->metrics.tool_calls)
        turn_lines (s, "tool_call", "inference", one_tool_call);
}

void
show_redundant (struct show *s)
{
    report_heading (s->report, "Redundant calls");
    report_line (s->report, "count", "%zu", s->metrics.redundant_count);
    for (size_t i = 0; i < s->metrics.redundant_count; i++) {
        const struct trace_redundant *d = &s->metrics.redundant[i];
        const json_t *o = trace_at (s->trace, d->index)->object;
        const char *identity = trace_call_identity (o);
        if (member_has (o, "plan_id"))
            report_text (s->report, "  plan %s/%s  %s", member_text (o, "plan_id"),
                         member_text (o, "step_id"), identity);
        else
            report_text (s->report, "  turn %lu  %s  %s", number (o, "turn"),
                         member_text (o, "tool_name"), identity);
        const json_t *before = trace_at (s->trace, d->earlier)->object;
        if (member_has (before, "plan_id"))
            report_text (s->report, "  (re-reads plan %s/%s)\n", member_text (before, "plan_id"),
                         member_text (before, "step_id"));
        else
            report_text (s->report, "  (re-reads turn %lu)\n", number (before, "turn"));
    }
}

static void
one_skill_call (struct report *r, const json_t *o)
{
    report_text (r, "  %s %s ", member_text (o, "skill_name"),
                 duration_text (member_number (o, "duration_ms")).text);
    report_mark (r, str_eq (member_text (o, "status"), "ok"));
}

void
show_skills (struct show *s)
{
    report_heading (s->report, "Skill calls");
    calls_head (s->report, s->metrics.skill_calls, s->metrics.skill_ok, s->metrics.skill_ms);
    turn_lines (s, "skill_call", NULL, one_skill_call);
}

void
show_pulled (struct show *s)
{
    if (! show_count (s, "artifact_pulled"))
        return;
    report_heading (s->report, "Pulled at runtime");
    for (const struct trace_event *e = NULL; (e = show_next (s, "artifact_pulled", e));) {
        const json_t *o = e->object;
        report_text (s->report, "  %s@%s  %s  %s/%s  from %s\n", member_text (o, "name"),
                     member_text (o, "version"), member_text (o, "runtime"),
                     member_text (o, "origin"), member_text (o, "trust"),
                     member_text (o, "fetched_from"));
    }
}

/* "2 ok, 1 failed (exit 2)", the exit codes of failures each once, in order of appearance. */
static void
exit_codes (struct show *s)
{
    _cleanup_strv_ struct strv codes = { 0 };
    for (size_t i = 0; i < s->trace->count; i++) {
        const char *type = trace_type (s->trace, i);
        if (! str_eq (type, "shell") && ! str_eq (type, "shell_completed"))
            continue;
        const json_t *code = json_object_get (trace_at (s->trace, i)->object, "exit_code");
        _cleanup_free_ char *text =
            x_asprintf ("exit %" JSON_INTEGER_FORMAT, json_integer_value (code));
        if (json_integer_value (code) != 0 && ! strv_contains (&codes, text))
            strv_push (&codes, text);
    }
    uint64_t ok = s->metrics.shell_ok, failed = s->metrics.shell_ended - ok;
    report_label (s->report, "exit codes");
    if (ok || ! failed)
        report_text (s->report, "%lu ok%s", (unsigned long)ok, failed ? ", " : "");
    if (failed) {
        _cleanup_free_ char *list = strv_join (&codes, ", ");
        report_text (s->report, "%lu failed (%s)", (unsigned long)failed, list);
    }
    report_text (s->report, "\n");
}

void
show_shell (struct show *s)
{
    report_heading (s->report, "Shell calls");
    report_line (s->report, "count", "%s", count_text (s->metrics.shell_calls).text);
    if (! s->metrics.shell_ended)
        return;
    exit_codes (s);
    report_line (s->report, "latency", "avg %s",
                 duration_text (s->metrics.shell_ms / s->metrics.shell_ended).text);
}

void
show_background (struct show *s)
{
    if (! show_count (s, "background_command"))
        return;
    report_heading (s->report, "Background commands");
    for (const struct trace_event *e = NULL; (e = show_next (s, "background_command", e));) {
        const json_t *o = e->object;
        report_text (s->report, "background_command %s  %s  %s", member_text (o, "operation"),
                     short_text (json_get_string (o, "work_id")).text, member_text (o, "state"));
        if (member_has (o, "exit_code"))
            report_text (s->report, "  exit %lu", number (o, "exit_code"));
        if (member_has (o, "waited_ms"))
            report_text (s->report, "  waited %s",
                         duration_text (member_number (o, "waited_ms")).text);
        report_text (s->report, "\n");
    }
}

void
show_compaction (struct show *s)
{
    report_heading (s->report, "Compaction");
    if (! s->metrics.is_compacted)
        report_line (s->report, "fired", "no");
    for (const struct trace_event *e = NULL; (e = show_next (s, "compaction", e));)
        report_line (s->report, "fired", "yes  at turn %lu  (%s → %s tokens)",
                     number (e->object, "turn"),
                     count_text (member_number (e->object, "tokens_before")).text,
                     count_text (member_number (e->object, "tokens_after")).text);
    for (const struct trace_event *e = NULL; (e = show_next (s, "compaction_declined", e));)
        report_line (s->report, "declined", "at turn %lu  (%s tokens)  %s",
                     number (e->object, "turn"),
                     count_text (member_number (e->object, "tokens")).text,
                     member_text (e->object, "reason"));
}

/* --- Call settings --- */

struct settings {
    char *key; /* caller, cap and config as printed */
    uint64_t calls;
    size_t turn_count; /* each once */
    struct buf turns;
    struct text_index seen;
};

static void
add_turn (struct settings *s, const json_t *o)
{
    char turn[24];
    uint32_t unused;
    snprintf (turn, sizeof (turn), "%lu", number (o, "turn"));
    s->calls++;
    if (text_index_get (&s->seen, turn, &unused))
        return;
    text_index_put (&s->seen, turn, 0);
    buf_printf (&s->turns, "%s%s", s->turn_count++ ? ", " : "", turn);
}

static char *
settings_key (const json_t *o)
{
    const json_t *config = json_object_get (o, "driver_config");
    _cleanup_free_ char *text = config && ! json_is_null (config)
                                    ? json_text (config, JSON_TEXT_ORDERED)
                                    : x_strdup ("none");
    const char *origin = json_get_string (o, "origin");
    return x_asprintf ("%s  max_tokens %lu  driver_config %s", origin ? origin : "agent",
                       number (o, "max_output_tokens"), text);
}

void
show_call_settings (struct show *s)
{
    struct settings *all = NULL;
    size_t len = 0, cap = 0;
    for (const struct trace_event *e = NULL; (e = show_next (s, "inference", e));) {
        if (! member_has (e->object, "max_output_tokens"))
            continue;
        char *key = settings_key (e->object);
        size_t i = 0;
        while (i < len && ! str_eq (all[i].key, key))
            i++;
        if (i == len) {
            x_grow (all, len, cap);
            all[len++] = (struct settings){ .key = key };
        } else {
            free (key);
        }
        add_turn (&all[i], e->object);
    }
    if (len)
        report_heading (s->report, "Call settings");
    for (size_t i = 0; i < len; i++) {
        report_text (s->report, "%s  %lu call%s  turn%s %s\n", all[i].key,
                     (unsigned long)all[i].calls, all[i].calls == 1 ? "" : "s",
                     all[i].turn_count == 1 ? "" : "s", all[i].turns.data);
        free (all[i].key);
        buf_free (&all[i].turns);
        text_index_free (&all[i].seen);
    }
    free (all);
}

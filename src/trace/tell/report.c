/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/tell/report.h"

#include "base/alloc.h"
#include "trace/read/text.h"
#include "trace/tell/metrics.h"

#include <math.h>
#include <string.h>

/* --- one session's paragraph --- */

static void
failed_exit_codes (struct report *r, const struct trace *t, const struct trace_metrics *m)
{
    _cleanup_strv_ struct strv codes = { 0 };
    for (size_t i = 0; i < t->count; i++) {
        const char *type = trace_type (t, i);
        if (! str_eq (type, "shell") && ! str_eq (type, "shell_completed"))
            continue;
        const struct trace_event *e = trace_at (t, i);
        if (member_number (e->object, "exit_code") == 0)
            continue;
        char text[32];
        snprintf (text, sizeof (text), "exit %lu",
                  (unsigned long)member_number (e->object, "exit_code"));
        if (! strv_contains (&codes, text))
            strv_push (&codes, text);
    }
    uint64_t failed = m->shell_ended - m->shell_ok;
    if (m->shell_ok)
        report_text (r, "%lu ok%s", (unsigned long)m->shell_ok, failed ? ", " : "");
    if (failed) {
        _cleanup_free_ char *list = codes.len ? strv_join (&codes, ", ") : x_strdup ("");
        report_text (r, "%lu failed (%s)", (unsigned long)failed, list);
    }
}

static void
session_lines (struct report *r, const struct trace *t, const struct trace_metrics *m)
{
    report_text (r, "Session %.12s...  %s  %lu turns\n\n", trace_session_id (t),
                 duration_text (m->duration_ms).text, (unsigned long)m->turns);
    report_text (r, "  Tool calls:    %lu", (unsigned long)m->tool_calls);
    if (m->tool_calls)
        report_text (r, "  (%lu ok, %lu error)", (unsigned long)m->tool_ok,
                     (unsigned long)(m->tool_calls - m->tool_ok));
    report_text (r, "\n");
    if (m->shell_calls) {
        report_text (r, "  Shell calls:   %lu", (unsigned long)m->shell_calls);
        if (m->shell_ended) {
            report_text (r, "  exit codes: ");
            failed_exit_codes (r, t, m);
        }
        report_text (r, "\n");
    }
    if (m->redundant_count)
        report_text (r, "  Redundant calls: %zu\n", m->redundant_count);
    if (m->tool_calls || m->shell_ended) {
        report_text (r, "  Avg latency: ");
        if (m->tool_calls)
            report_text (r, "  tool %s", duration_text (m->tool_ms / m->tool_calls).text);
        if (m->shell_ended)
            report_text (r, "  shell %s", duration_text (m->shell_ms / m->shell_ended).text);
        report_text (r, "\n");
    }
    report_text (r, "\n");
}

/* --- the table --- */

/* Samples of one row. */
struct samples {
    double *values;
    size_t len, cap;
};

static void
add_sample (struct samples *s, double value)
{
    x_grow (s->values, s->len, s->cap);
    s->values[s->len++] = value;
}

static void
table_head (struct report *r)
{
    report_text (r, "%-22s %-14s %-14s %-14s %s\n", "Metric", "Mean", "StdDev", "Min", "Max");
    for (size_t i = 0; i < 22 + 4 * 14 + 4; i++) {
        bool is_gap = i >= 22 && (i - 22) % 15 == 0;
        report_text (r, is_gap ? " " : "─");
    }
    report_text (r, "\n");
}

static struct small_text
figure (double value, bool has_decimal)
{
    struct small_text t;
    if (! has_decimal)
        return count_text ((uint64_t)value);
    snprintf (t.text, sizeof (t.text), "%.1f", value);
    return t;
}

static void
sample_row (struct report *r, const char *name, const struct samples *s, bool has_decimal)
{
    double sum = 0, squares = 0, least = INFINITY, most = 0;
    for (size_t i = 0; i < s->len; i++) {
        sum += s->values[i];
        least = fmin (least, s->values[i]);
        most = fmax (most, s->values[i]);
    }
    double mean = sum / (double)s->len;
    for (size_t i = 0; i < s->len; i++)
        squares += (s->values[i] - mean) * (s->values[i] - mean);
    double deviation = sqrt (squares / (double)s->len);
    report_text (r, "%-22s %-14s %-14s %-14s %s\n", name, figure (mean, has_decimal).text,
                 figure (deviation, has_decimal).text, figure (least, has_decimal).text,
                 figure (most, has_decimal).text);
}

typedef double session_metric_fn (const struct trace_metrics *m);

#define METRIC(name, expression)                                                                   \
    static double name (const struct trace_metrics *m)                                             \
    {                                                                                              \
        return (double)(expression);                                                               \
    }
METRIC (turns, m->turns)
METRIC (duration, m->duration_ms)
METRIC (input_tokens, m->input_tokens)
METRIC (output_tokens, m->output_tokens)
METRIC (tool_calls, m->tool_calls)
METRIC (tool_success, 100.0 * (double)m->tool_ok / (double)m->tool_calls)
METRIC (shell_calls, m->shell_calls)
METRIC (redundant_calls, m->redundant_count)

static const struct {
    const char *name;
    session_metric_fn *read;
    bool has_decimal;
    bool needs_tool_calls;
} session_rows[] = {
    { "turns", turns, true, false },
    { "duration (ms)", duration, false, false },
    { "input tokens", input_tokens, false, false },
    { "output tokens", output_tokens, false, false },
    { "tool calls", tool_calls, true, false },
    { "tool success (%)", tool_success, true, true },
    { "shell calls", shell_calls, true, false },
    { "redundant calls", redundant_calls, true, false },
};

static void
session_table (struct report *r, const struct trace_metrics *all, size_t count)
{
    table_head (r);
    for (size_t i = 0; i < ARRAY_LEN (session_rows); i++) {
        struct samples s = { 0 };
        for (size_t n = 0; n < count; n++)
            if (! session_rows[i].needs_tool_calls || all[n].tool_calls)
                add_sample (&s, session_rows[i].read (&all[n]));
        if (s.len)
            sample_row (r, session_rows[i].name, &s, session_rows[i].has_decimal);
        free (s.values);
    }
}

static void
exit_statuses (struct report *r, const struct trace_metrics *all, size_t count)
{
    _cleanup_strv_ struct strv words = { 0 };
    for (size_t i = 0; i < count; i++)
        strv_push (&words, all[i].exit_status ? all[i].exit_status : "—");
    strv_sort (&words);
    report_text (r, "\nExit status:\n");
    for (size_t i = 0; i < words.len;) {
        size_t same = 1;
        while (i + same < words.len && str_eq (words.items[i], words.items[i + same]))
            same++;
        report_text (r, "  %-24s %zu  (%.1f%%)\n", words.items[i], same,
                     100.0 * (double)same / (double)words.len);
        i += same;
    }
}

/* --- tasks of sessions that had several --- */

static const struct {
    const char *name;
    const char *key;
    bool has_decimal;
} task_rows[] = {
    { "task turns", "turns", true },
    { "task input tokens", "input_tokens", false },
    { "task output tokens", "output_tokens", false },
    { "task duration (ms)", "duration_ms", false },
};

struct trace_summary {
    struct report *report;
    struct trace_metrics *all;
    size_t count, cap;
    struct samples tasks[ARRAY_LEN (task_rows)]; /* of sessions with several tasks */
    size_t task_count;
};

static void
task_table (struct trace_summary *s)
{
    if (! s->task_count)
        return;
    const char *title = "── Per-task averages (multi-task sessions only) ";
    report_text (s->report, "\n%s", title);
    for (size_t i = 0; i < 14; i++)
        report_text (s->report, "─");
    report_text (s->report, "\n");
    table_head (s->report);
    for (size_t row = 0; row < ARRAY_LEN (task_rows); row++)
        sample_row (s->report, task_rows[row].name, &s->tasks[row], task_rows[row].has_decimal);
    report_text (s->report, "Tasks: %zu\n", s->task_count);
}

struct trace_summary *
trace_summary_new (struct report *report)
{
    struct trace_summary *s = x_new0 (struct trace_summary);
    s->report = report;
    return s;
}

void
trace_summary_add (struct trace_summary *s, const struct trace *t)
{
    x_grow (s->all, s->count, s->cap);
    struct trace_metrics *m = &s->all[s->count++];
    trace_metrics_read (t, m);
    session_lines (s->report, t, m);
    if (m->tasks <= 1)
        return;
    s->task_count += (size_t)m->tasks;
    for (const struct trace_event *e = NULL; (e = trace_next (t, "task_end", e));)
        for (size_t row = 0; row < ARRAY_LEN (task_rows); row++)
            add_sample (&s->tasks[row], (double)member_number (e->object, task_rows[row].key));
}

void
trace_summary_end (struct trace_summary *s, const char *workdir)
{
    report_text (s->report, "Sessions: %zu  (%s)\n\n", s->count, workdir);
    session_table (s->report, s->all, s->count);
    exit_statuses (s->report, s->all, s->count);
    task_table (s);
}

size_t
trace_summary_count (const struct trace_summary *s)
{
    return s->count;
}

void
trace_summary_free (struct trace_summary *s)
{
    if (! s)
        return;
    for (size_t i = 0; i < s->count; i++)
        trace_metrics_free (&s->all[i]);
    for (size_t row = 0; row < ARRAY_LEN (task_rows); row++)
        free (s->tasks[row].values);
    free (s->all);
    free (s);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/tell/diff.h"

#include "base/alloc.h"
#include "trace/read/sent_messages.h"
#include "trace/read/text.h"
#include "trace/tell/metrics.h"

#include <math.h>
#include <string.h>

/* --- the table of numbers --- */

enum figure {
    FIGURE_COUNT,    /* 1,234 */
    FIGURE_DURATION, /* 12ms, 3.4s */
    FIGURE_AVERAGE,  /* 279, its differences 0.3 */
    FIGURE_PERCENT,  /* 33.3% */
};

struct cell {
    bool is_known;
    double value;
};

static struct cell
known (double value)
{
    return (struct cell){ true, value };
}

static struct cell
ratio (uint64_t part, uint64_t whole, double scale)
{
    return whole ? known (scale * (double)part / (double)whole) : (struct cell){ 0 };
}

/* One row's value in one run. */
typedef struct cell metric_fn (const struct trace_metrics *m);

#define METRIC(name, expression)                                                                   \
    static struct cell name (const struct trace_metrics *m)                                        \
    {                                                                                              \
        return expression;                                                                         \
    }
METRIC (turns, known ((double)m->turns))
METRIC (duration, known ((double)m->duration_ms))
METRIC (input_tokens, known ((double)m->input_tokens))
METRIC (output_tokens, known ((double)m->output_tokens))
METRIC (input_average, ratio (m->input_tokens, m->turns, 1))
METRIC (output_average, ratio (m->output_tokens, m->turns, 1))
METRIC (tool_calls, known ((double)m->tool_calls))
METRIC (tool_success, ratio (m->tool_ok, m->tool_calls, 100))
METRIC (tool_latency, ratio (m->tool_ms, m->tool_calls, 1))
METRIC (skill_calls, known ((double)m->skill_calls))
METRIC (shell_calls, known ((double)m->shell_calls))
METRIC (shell_latency, ratio (m->shell_ms, m->shell_ended, 1))

static const struct {
    const char *name;
    metric_fn *read;
    enum figure figure;
    bool more_is_better;
} metrics[] = {
    { "turns", turns, FIGURE_COUNT, false },
    { "duration", duration, FIGURE_DURATION, false },
    { "input tokens", input_tokens, FIGURE_COUNT, false },
    { "output tokens", output_tokens, FIGURE_COUNT, false },
    { "input/turn (avg)", input_average, FIGURE_AVERAGE, false },
    { "output/turn (avg)", output_average, FIGURE_AVERAGE, false },
    { "tool calls", tool_calls, FIGURE_COUNT, false },
    { "tool success rate", tool_success, FIGURE_PERCENT, true },
    { "avg tool latency", tool_latency, FIGURE_DURATION, false },
    { "skill calls", skill_calls, FIGURE_COUNT, false },
    { "shell calls", shell_calls, FIGURE_COUNT, false },
    { "avg shell latency", shell_latency, FIGURE_DURATION, false },
};

static struct small_text
cell_text (struct cell c, enum figure figure)
{
    struct small_text t;
    if (! c.is_known)
        return (struct small_text){ "—" };
    switch (figure) {
    case FIGURE_COUNT:
    case FIGURE_AVERAGE:
        return count_text ((uint64_t)c.value);
    case FIGURE_DURATION:
        return duration_text ((uint64_t)c.value);
    case FIGURE_PERCENT:
        snprintf (t.text, sizeof (t.text), "%.1f%%", c.value);
        return t;
    }
    return (struct small_text){ "" };
}

/* The size of a difference, without commas. */
static struct small_text
size_text (double value, enum figure figure)
{
    struct small_text t;
    if (figure == FIGURE_COUNT)
        snprintf (t.text, sizeof (t.text), "%lu", (unsigned long)value);
    else if (figure == FIGURE_AVERAGE)
        snprintf (t.text, sizeof (t.text), "%.1f", value);
    else
        return cell_text (known (value), figure);
    return t;
}

static char *
delta_text (struct cell a, struct cell b, enum figure figure, bool more_is_better)
{
    if (! a.is_known || ! b.is_known)
        return x_strdup ("—");
    double delta = b.value - a.value;
    bool is_same = str_eq (cell_text (a, figure).text, cell_text (b, figure).text);
    if (is_same && (figure != FIGURE_AVERAGE || fabs (delta) < 0.05))
        return x_strdup ("=");
    bool b_is_better = more_is_better ? delta > 0 : delta < 0;
    return x_asprintf ("%c%s (%s better)", delta < 0 ? '-' : '+',
                       size_text (fabs (delta), figure).text, b_is_better ? "B" : "A");
}

/* Pads to a number of columns, counting characters. */
static void
padded (struct report *r, const char *text, size_t columns)
{
    size_t width = 0;
    for (const char *c = text; *c; c++)
        width += ((unsigned char)*c & 0xc0) != 0x80;
    report_text (r, "%s%*s", text, width < columns ? (int)(columns - width) : 0, "");
}

static void
row (struct report *r, const char *name, const char *a, const char *b, const char *delta)
{
    padded (r, name, 22);
    report_text (r, " ");
    padded (r, a, 16);
    report_text (r, " ");
    padded (r, b, 16);
    report_text (r, " %s\n", delta);
}

static void
rule (struct report *r)
{
    static const size_t widths[] = { 22, 16, 16, 26 };
    for (size_t i = 0; i < ARRAY_LEN (widths); i++) {
        report_text (r, "%s", i ? " " : "");
        for (size_t n = 0; n < widths[i]; n++)
            report_text (r, "─");
    }
    report_text (r, "\n");
}

static struct small_text
compaction_text (const struct trace_metrics *m)
{
    struct small_text t = { "none" };
    if (m->is_compacted)
        snprintf (t.text, sizeof (t.text), "turn %lu", (unsigned long)m->compacted_turn);
    return t;
}

static void
table (struct report *r, const struct trace_metrics *a, const struct trace_metrics *b)
{
    row (r, "Metric", "Run A", "Run B", "Delta");
    rule (r);
    for (size_t i = 0; i < ARRAY_LEN (metrics); i++) {
        struct cell left = metrics[i].read (a), right = metrics[i].read (b);
        _cleanup_free_ char *delta =
            delta_text (left, right, metrics[i].figure, metrics[i].more_is_better);
        row (r, metrics[i].name, cell_text (left, metrics[i].figure).text,
             cell_text (right, metrics[i].figure).text, delta);
    }
    row (r, "compaction", compaction_text (a).text, compaction_text (b).text, "—");
    row (r, "exit status", a->exit_status ? a->exit_status : "—",
         b->exit_status ? b->exit_status : "—", "—");
}

/* --- where the requests part --- */

/* The hashed turns of a trace, in order. */
struct turns {
    const struct trace *trace;
    uint32_t *items; /* places in it */
    size_t len, cap;
};

/* The line of a turn, the caller's; NULL beyond the last. */
static json_t *
turn_at (const struct turns *t, size_t i)
{
    return i < t->len ? json_incref (trace_at (t->trace, t->items[i])->object) : NULL;
}

static void
read_turns (const struct trace *t, struct turns *out)
{
    out->trace = t;
    for (const struct trace_event *e = NULL; (e = trace_next (t, "inference", e));) {
        if (member_has (e->object, "origin") || ! member_has (e->object, "system_sha"))
            continue;
        x_grow (out->items, out->len, out->cap);
        out->items[out->len++] = (uint32_t)e->index;
    }
}

static void
digest_line (struct report *r, const char *label, const char *a, const char *b)
{
    report_text (r, "%-15s", label);
    if (str_eq (a, b))
        report_text (r, "identical  %s\n", short_text (a).text);
    else
        report_text (r, "differs    A %s  B %s\n", short_text (a).text, short_text (b).text);
}

/* A run that changes its own system prompt or tools on the way is worth a line: from there on its
 * prefix is another. */
static void
change_notes (struct report *r, const struct turns *t, const char *run, const char *key,
              const char *what)
{
    for (size_t i = 1; i < t->len; i++) {
        _cleanup_json_ json_t *before = turn_at (t, i - 1), *line = turn_at (t, i);
        const char *now = json_get_string (line, key);
        if (str_eq (json_get_string (before, key), now))
            continue;
        report_text (r, "%-15srun %s changes its %s at turn %lu (%s)\n", "note:", run, what,
                     (unsigned long)member_number (line, "turn"), short_text (now).text);
    }
}

static void
turn_line (struct report *r, const json_t *a, const json_t *b, struct sent_lists *const sent[2])
{
    _cleanup_json_ json_t *left = sent_shas (sent[0], a), *right = sent_shas (sent[1], b);
    size_t la = json_array_size (left), lb = json_array_size (right), same = 0;
    report_text (r, "turn %lu:  ", (unsigned long)member_number (a ? a : b, "turn"));
    if (! a || ! b) {
        report_text (r, "only in run %s\n", a ? "A" : "B");
        return;
    }
    while (same < la && same < lb &&
           json_equal (json_array_get (left, same), json_array_get (right, same)))
        same++;
    if (same == la && same == lb)
        report_text (r, "identical  (%zu message%s)\n", la, la == 1 ? "" : "s");
    else
        report_text (r, "diverges at message %zu  (A has %zu messages, B has %zu)\n", same, la, lb);
}

static void
divergence (struct report *r, const struct turns *a, const struct turns *b)
{
    const struct turns *runs[] = { a, b };
    bool has_none = false;
    for (size_t i = 0; i < ARRAY_LEN (runs); i++)
        if (runs[i]->len == 0) {
            report_text (r,
                         "run %s recorded no content hashes — it ran under trace.capture: none\n",
                         i ? "B" : "A");
            has_none = true;
        }
    if (has_none)
        return;
    _cleanup_json_ json_t *first_a = turn_at (a, 0), *first_b = turn_at (b, 0);
    digest_line (r, "system prompt:", json_get_string (first_a, "system_sha"),
                 json_get_string (first_b, "system_sha"));
    digest_line (r, "tool schemas:", json_get_string (first_a, "tools_sha"),
                 json_get_string (first_b, "tools_sha"));
    for (size_t i = 0; i < ARRAY_LEN (runs); i++) {
        change_notes (r, runs[i], i ? "B" : "A", "system_sha", "system prompt");
        change_notes (r, runs[i], i ? "B" : "A", "tools_sha", "tool schemas");
    }
    _cleanup_ (sent_lists_freep) struct sent_lists *left = sent_lists_new (),
                                                   *right = sent_lists_new ();
    for (size_t i = 0; i < a->len || i < b->len; i++) {
        _cleanup_json_ json_t *line_a = turn_at (a, i), *line_b = turn_at (b, i);
        turn_line (r, line_a, line_b, (struct sent_lists *const[]){ left, right });
    }
}

void
trace_diff (const struct trace *a, const struct trace *b, struct report *report)
{
    struct trace_metrics left, right;
    struct turns turns_a = { 0 }, turns_b = { 0 };
    trace_metrics_read (a, &left);
    trace_metrics_read (b, &right);
    table (report, &left, &right);
    report_text (report, "\n");
    report_rule (report, "Prefix divergence", 49);
    read_turns (a, &turns_a);
    read_turns (b, &turns_b);
    divergence (report, &turns_a, &turns_b);
    free (turns_a.items);
    free (turns_b.items);
    trace_metrics_free (&left);
    trace_metrics_free (&right);
}

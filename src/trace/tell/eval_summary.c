/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/tell/eval_summary.h"

#include "base/alloc.h"
#include "base/json_write.h"
#include "trace/read/text.h"
#include "trace/tell/eval_run.h"

#include <math.h>
#include <string.h>

#define NAME_COLUMNS  21
#define VALUE_COLUMNS 25
/* Columns of a heading besides its title: the frame of it, and the rule after it. */
#define RUN_RULE   (4 + 29)
#define BLOCK_RULE (4 + 24)

enum measure {
    TURNS,
    INPUT_TOKENS,
    CACHED_TOKENS,
    CACHE_WRITE_TOKENS,
    OUTPUT_TOKENS,
    AGENT_MS,
    MEASURES,
};

static const struct {
    const char *key, *row;
} measures[MEASURES] = {
    [TURNS] = { "turns", "turns" },
    [INPUT_TOKENS] = { "input_tokens", "input tokens" },
    [CACHED_TOKENS] = { "cached_tokens", "cached tokens" },
    [CACHE_WRITE_TOKENS] = { "cache_write_tokens", "cache write tokens" },
    [OUTPUT_TOKENS] = { "output_tokens", "output tokens" },
    [AGENT_MS] = { "agent_ms", "time" },
};

/* One measure over several runs. */
struct figure {
    size_t count; /* runs that have it */
    double min, median, max, sum;
};

struct summary {
    uint64_t runs, check_runs, check_pass, check_not_run, scores_runs, scores_pass;
    struct figure figures[MEASURES];
};

/* --- adding up --- */

static int
by_value (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static struct figure
figure_of (double *values, size_t count)
{
    struct figure f = { .count = count };
    if (! count)
        return f;
    qsort (values, count, sizeof (*values), by_value);
    f.min = values[0];
    f.max = values[count - 1];
    f.median = count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
    for (size_t i = 0; i < count; i++)
        f.sum += values[i];
    return f;
}

static void
count_words (struct summary *s, const json_t *run)
{
    const char *check = json_get_string (run, "check_result");
    const char *scores = json_get_string (run, "scores_overall");
    bool was_run = check && strcmp (check, "not_run") != 0;
    bool is_scored = scores && strcmp (scores, "no_scores") != 0;
    s->runs++;
    s->check_runs += was_run;
    s->check_not_run += check && ! was_run;
    s->check_pass += str_eq (check, "pass");
    s->scores_runs += is_scored;
    s->scores_pass += str_eq (scores, "pass");
}

/* The runs of one arm in one case, or in every case (NULL). */
static struct summary
summarise (const json_t *record, const json_t *only, const char *arm)
{
    struct summary s = { 0 };
    const json_t *cases = json_object_get (record, "cases"), *c, *run;
    size_t i, n, most = 0, counts[MEASURES] = { 0 };
    json_array_foreach (cases, i, c) most += json_array_size (json_object_get (c, "runs"));
    _cleanup_free_ double *values = x_new_array (double, (most + 1) * MEASURES);
    json_array_foreach (cases, i, c)
    {
        if (only && c != only)
            continue;
        json_array_foreach (json_object_get (c, "runs"), n, run)
        {
            if (! str_eq (json_get_string (run, "arm"), arm))
                continue;
            count_words (&s, run);
            for (size_t m = 0; m < MEASURES; m++) {
                const json_t *v = json_object_get (run, measures[m].key);
                if (json_is_number (v))
                    values[m * (most + 1) + counts[m]++] = json_number_value (v);
            }
        }
    }
    for (size_t m = 0; m < MEASURES; m++)
        s.figures[m] = figure_of (values + m * (most + 1), counts[m]);
    return s;
}

/* --- JSON --- */

static json_t *
number_json (double value)
{
    return floor (value) < value ? json_real (value) : json_integer ((json_int_t)value);
}

static json_t *
figure_json (const struct figure *f, bool is_total)
{
    if (! f->count)
        return json_null ();
    if (is_total)
        return number_json (f->sum);
    json_t *o = json_object ();
    json_object_set_new (o, "max", number_json (f->max));
    json_object_set_new (o, "median", number_json (f->median));
    json_object_set_new (o, "min", number_json (f->min));
    return o;
}

static json_t *
summary_json (const struct summary *s, bool is_total)
{
    json_t *o = json_object ();
    json_set_u64 (o, "runs", s->runs);
    json_set_u64 (o, "check_runs", s->check_runs);
    json_set_u64 (o, "check_pass", s->check_pass);
    json_set_u64 (o, "check_not_run", s->check_not_run);
    json_set_u64 (o, "scores_runs", s->scores_runs);
    json_set_u64 (o, "scores_pass", s->scores_pass);
    for (size_t m = 0; m < MEASURES; m++)
        json_object_set_new (o, measures[m].key, figure_json (&s->figures[m], is_total));
    return o;
}

static json_t *
arms_json (const json_t *record, const json_t *only)
{
    json_t *o = json_object ();
    const json_t *arm;
    size_t i;
    json_array_foreach (json_object_get (record, "arms"), i, arm)
    {
        const char *name = json_get_string (arm, "name");
        struct summary s = summarise (record, only, name);
        json_object_set_new (o, name, summary_json (&s, only == NULL));
    }
    return o;
}

static const json_t *
find_run (const json_t *runs, const char *arm, json_int_t repeat)
{
    const json_t *run;
    size_t i;
    json_array_foreach (runs, i, run)
    {
        if (str_eq (json_get_string (run, "arm"), arm) &&
            json_integer_value (json_object_get (run, "repeat")) == repeat &&
            json_get_string (run, "records_dir"))
            return run;
    }
    return NULL;
}

/* Traces worth comparing: the same repeat of a case in both arms. */
static json_t *
pairs_json (const json_t *record, const json_t *c)
{
    json_t *pairs = json_array ();
    const json_t *runs = json_object_get (c, "runs"), *a;
    size_t i;
    (void)record;
    json_array_foreach (runs, i, a)
    {
        json_int_t repeat = json_integer_value (json_object_get (a, "repeat"));
        if (find_run (runs, "baseline", repeat) != a)
            continue;
        const json_t *b = find_run (runs, "variant", repeat);
        if (! b)
            continue;
        json_t *pair = json_array ();
        const json_t *const sides[] = { a, b };
        for (size_t n = 0; n < ARRAY_LEN (sides); n++) {
            _cleanup_free_ char *path =
                x_asprintf ("%s/trace.jsonl", json_get_string (sides[n], "records_dir"));
            json_array_append_new (pair, json_string_lossy (path, strlen (path)));
        }
        json_array_append_new (pairs, pair);
    }
    return pairs;
}

static uint64_t
runs_recorded (const json_t *record)
{
    uint64_t count = 0;
    const json_t *c;
    size_t i;
    json_array_foreach (json_object_get (record, "cases"), i, c) count +=
        json_array_size (json_object_get (c, "runs"));
    return count;
}

static uint64_t
runs_expected (const json_t *record)
{
    return json_array_size (json_object_get (record, "cases")) *
           json_array_size (json_object_get (record, "arms")) * member_number (record, "repeat");
}

json_t *
eval_run_json (const json_t *record)
{
    json_t *report = json_object (), *list = json_array ();
    const json_t *c;
    size_t i;
    json_set_string (report, "run_id", json_get_string (record, "run_id"));
    json_object_set (report, "complete", json_object_get (record, "complete"));
    json_set_u64 (report, "repeat", member_number (record, "repeat"));
    json_set_u64 (report, "runs_recorded", runs_recorded (record));
    json_set_u64 (report, "runs_expected", runs_expected (record));
    json_object_set (report, "arms", json_object_get (record, "arms"));
    json_array_foreach (json_object_get (record, "cases"), i, c)
    {
        json_t *o = json_object ();
        json_set_string (o, "case_id", json_get_string (c, "case_id"));
        json_object_set_new (o, "arms", arms_json (record, c));
        json_object_set_new (o, "trace_diffs", pairs_json (record, c));
        json_array_append_new (list, o);
    }
    json_object_set_new (report, "cases", list);
    json_object_set_new (report, "total", arms_json (record, NULL));
    return report;
}

/* --- the table --- */

static struct small_text
value_text (enum measure m, double value)
{
    if (m == AGENT_MS)
        return duration_text ((uint64_t)llround (value));
    struct small_text t;
    snprintf (t.text, sizeof (t.text), "%.*f", floor (value) >= value ? 0 : 1, value);
    return t;
}

/* "12 (10–14)", a single run's "12", the sum in a total. */
static char *
figure_text (enum measure m, const struct figure *f, bool is_total)
{
    if (! f->count)
        return x_strdup ("—");
    struct small_text low = value_text (m, f->min), high = value_text (m, f->max);
    struct small_text middle = value_text (m, is_total ? f->sum : f->median);
    if (is_total || f->count == 1)
        return x_strdup (middle.text);
    return x_asprintf ("%s (%s–%s)", middle.text, low.text, high.text);
}

static char *
delta_text (enum measure m, const struct figure *a, const struct figure *b, bool is_total)
{
    if (! a->count || ! b->count)
        return NULL;
    double delta = is_total ? b->sum - a->sum : b->median - a->median;
    if (! (fabs (delta) > 0))
        return x_strdup ("+0");
    struct small_text size = value_text (m, fabs (delta));
    return x_asprintf ("%c%s", delta < 0 ? '-' : '+', size.text);
}

/* Text padded to columns, counting characters. */
static void
put_cell (struct report *r, const char *text, size_t columns, bool is_last)
{
    size_t used = 0;
    for (const char *c = text; *c; c++)
        used += ((unsigned char)*c & 0xc0) != 0x80;
    report_text (r, "%s", text);
    if (! is_last)
        report_text (r, "%*s", used < columns ? (int)(columns - used) : 1, "");
}

static void
put_row (struct report *r, const char *name, char *const cells[3], size_t count)
{
    put_cell (r, name, NAME_COLUMNS + 2, false);
    for (size_t i = 0; i < count; i++)
        put_cell (r, cells[i], VALUE_COLUMNS, i + 1 == count);
    report_text (r, "\n");
}

static char *
word_text (uint64_t pass, uint64_t runs)
{
    return runs ? x_asprintf ("%llu/%llu pass", (unsigned long long)pass, (unsigned long long)runs)
                : x_strdup ("—");
}

static void
put_words (struct report *r, const char *name, const struct summary *s, size_t arms, bool is_check)
{
    char *cells[3] = { 0 };
    uint64_t pass[2] = { 0 }, runs = 0;
    for (size_t i = 0; i < arms; i++) {
        uint64_t of = is_check ? s[i].check_runs : s[i].scores_runs;
        pass[i] = is_check ? s[i].check_pass : s[i].scores_pass;
        cells[i] = word_text (pass[i], of);
        runs += of;
    }
    if (arms == 2 && runs)
        cells[2] = x_asprintf ("%+lld", (long long)pass[1] - (long long)pass[0]);
    put_row (r, name, cells, cells[2] ? 3 : arms);
    for (size_t i = 0; i < ARRAY_LEN (cells); i++)
        free (cells[i]);
}

static void
put_measure (struct report *r, enum measure m, const struct summary *s, size_t arms, bool is_total)
{
    char *cells[3] = { 0 };
    _cleanup_free_ char *name = x_asprintf ("  %s", measures[m].row);
    for (size_t i = 0; i < arms; i++)
        cells[i] = figure_text (m, &s[i].figures[m], is_total);
    if (arms == 2)
        cells[2] = delta_text (m, &s[0].figures[m], &s[1].figures[m], is_total);
    put_row (r, name, cells, cells[2] ? 3 : arms);
    for (size_t i = 0; i < ARRAY_LEN (cells); i++)
        free (cells[i]);
}

/* How each pair of runs is compared in detail. */
static void
put_pairs (struct report *r, const json_t *record, const json_t *c)
{
    _cleanup_json_ json_t *pairs = pairs_json (record, c);
    const json_t *pair;
    size_t i;
    json_array_foreach (pairs, i, pair)
        report_text (r, "  mur trace diff %s %s\n", json_string_value (json_array_get (pair, 0)),
                     json_string_value (json_array_get (pair, 1)));
}

static void
put_block (struct report *r, const json_t *record, const json_t *c)
{
    static char baseline[] = "baseline", variant[] = "variant",
                delta[] = "delta (variant − baseline)";
    char *const titles[3] = { baseline, variant, delta };
    const json_t *arms = json_object_get (record, "arms");
    size_t count = json_array_size (arms) > 1 ? 2 : 1;
    struct summary s[2];
    for (size_t i = 0; i < count; i++)
        s[i] = summarise (record, c, json_get_string (json_array_get (arms, i), "name"));
    _cleanup_free_ char *title =
        c ? x_asprintf ("case: %s", json_get_string (c, "case_id")) : x_strdup ("total");
    report_text (r, "\n");
    report_rule (r, title, strlen (title) + BLOCK_RULE);
    put_row (r, "", titles, count == 2 ? 3 : 1);
    put_words (r, "  check", s, count, true);
    for (size_t m = 0; m < MEASURES; m++)
        put_measure (r, (enum measure)m, s, count, c == NULL);
    put_words (r, "  scorers", s, count, false);
    if (c)
        put_pairs (r, record, c);
}

static void
put_blocks (struct report *r, const json_t *record)
{
    const json_t *c;
    size_t i;
    json_array_foreach (json_object_get (record, "cases"), i, c) put_block (r, record, c);
    put_block (r, record, NULL);
}

static void
put_fact (struct report *r, const char *label, const char *text)
{
    if (text)
        report_text (r, "  %-10s%s\n", label, text);
}

void
eval_run_text (const json_t *record, struct buf *out)
{
    struct report r = { 0 };
    const json_t *arms = json_object_get (record, "arms");
    const json_t *first = json_array_get (arms, 0), *second = json_array_get (arms, 1);
    const char *model = json_get_string (first, "model");
    _cleanup_free_ char *title = x_asprintf ("Eval run: %s", json_get_string (record, "run_id"));
    report_rule (&r, title, strlen (title) + RUN_RULE);
    put_fact (&r, "dataset:", json_get_string (record, "dataset"));
    report_text (&r, "  %-10s%llu\n",
                 "repeat:", (unsigned long long)member_number (record, "repeat"));
    if (json_is_true (json_object_get (record, "complete")))
        put_fact (&r, "status:", "complete");
    else
        report_text (&r, "  %-10sincomplete (%llu of %llu runs)\n",
                     "status:", (unsigned long long)runs_recorded (record),
                     (unsigned long long)runs_expected (record));
    put_fact (&r, "baseline:", json_get_string (first, "manifest"));
    put_fact (&r, "variant:", json_get_string (second, "manifest"));
    put_fact (&r, "model:", model ? model : "none");
    put_blocks (&r, record);
    report_finish (&r, false, out);
}

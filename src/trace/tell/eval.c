/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/tell/eval.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "base/printable.h"
#include "trace/read/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define FILE_LIMIT   (64 * 1024 * 1024)
#define WORST_EVENTS 10
/* Of the first heading, whatever the path's length: what frames the title, and the rule after it.
 */
#define PATH_HEADING_COLUMNS (4 + 37)

/* --- reading --- */

static struct eval_scorer *
scorer_of (struct eval_scores *s, const char *name)
{
    size_t at = 0;
    while (at < s->scorer_count && strcmp (s->scorers[at].name, name) < 0)
        at++;
    if (at < s->scorer_count && strcmp (s->scorers[at].name, name) == 0)
        return &s->scorers[at];
    x_grow (s->scorers, s->scorer_count, s->scorer_cap);
    memmove (&s->scorers[at + 1], &s->scorers[at],
             (s->scorer_count++ - at) * sizeof (struct eval_scorer));
    s->scorers[at] = (struct eval_scorer){ .name = x_strdup (name) };
    return &s->scorers[at];
}

static bool
refuse (const struct eval_scores *s, size_t line, struct mur_error **err, const char *why)
{
    return mur_fail (err, E_EVAL_001, "%s:%zu: %s", s->path, line, why);
}

static bool
take_event (struct eval_scores *s, const json_t *object, size_t line, struct mur_error **err)
{
    const char *event_type = json_get_string (object, "event_type");
    const char *scorer = json_get_string (object, "scorer");
    const char *result = json_get_string (object, "result");
    const json_t *score = json_object_get (object, "score");
    struct eval_event e = { .line = line };
    if (! json_is_number (json_object_get (object, "ts")) ||
        ! json_get_u64 (object, "turn", &e.turn) || ! event_type || ! scorer)
        return refuse (s, line, err, "an event_score needs ts, turn, event_type and scorer");
    e.is_pass = str_eq (result, "pass");
    if (! e.is_pass && ! str_eq (result, "fail"))
        return refuse (s, line, err, "the result of an event_score is pass or fail");
    if (score && ! json_is_null (score) && ! json_is_number (score))
        return refuse (s, line, err, "a score is a number");
    e.has_score = json_is_number (score);
    e.score = json_number_value (score);
    struct eval_scorer *of = scorer_of (s, scorer);
    of->total++;
    of->pass += e.is_pass;
    e.event_type = x_strdup (event_type);
    e.scorer = x_strdup (scorer);
    x_grow (s->events, s->event_count, s->event_cap);
    s->events[s->event_count++] = e;
    return true;
}

static bool
take_run (struct eval_scores *s, json_t *object, size_t line, struct mur_error **err)
{
    const char *overall = json_get_string (object, "overall");
    json_t *scores = json_object_get (object, "scores");
    if (! json_is_number (json_object_get (object, "ts")) || ! json_is_object (scores))
        return refuse (s, line, err, "a dataset_run needs ts and scores");
    if (! str_eq (overall, "pass") && ! str_eq (overall, "fail") && ! str_eq (overall, "no_scores"))
        return refuse (s, line, err, "overall of a dataset_run is pass, fail or no_scores");
    const char *name;
    json_t *score;
    json_object_foreach (scores, name, score)
    {
        if (! json_is_number (score))
            return refuse (s, line, err, "a score is a number");
    }
    json_decref (s->dataset_run);
    s->dataset_run = json_incref (object);
    return true;
}

static bool
take_line (struct eval_scores *s, const char *text, size_t len, size_t line, struct mur_error **err)
{
    _cleanup_json_ json_t *object = json_loadb (text, len, JSON_REJECT_DUPLICATES, NULL);
    const char *type = json_get_string (object, "record_type");
    if (! type)
        return refuse (s, line, err, "no JSON object with a record_type");
    if (strcmp (type, "event_score") == 0)
        return take_event (s, object, line, err);
    return strcmp (type, "dataset_run") != 0 || take_run (s, object, line, err);
}

static struct eval_scores *
eval_parse (const char *path, const char *text, size_t len, struct mur_error **err)
{
    struct eval_scores *s = x_new0 (struct eval_scores);
    s->path = x_strdup (path);
    size_t line = 0;
    for (size_t at = 0; at < len;) {
        const char *stop = memchr (text + at, '\n', len - at);
        size_t piece = stop ? (size_t)(stop - text) - at : len - at;
        line++;
        if (piece && ! take_line (s, text + at, piece, line, err)) {
            eval_free (s);
            return NULL;
        }
        at += piece + 1;
    }
    return s;
}

struct eval_scores *
eval_read (const char *path, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) {
        mur_fail (err, E_IO_001, "there are no scores: %s does not exist", path);
        mur_hint (err, "a hook with capabilities.filesystem.records: true writes them");
        return NULL;
    }
    if (fd < 0 || ! fd_read_all (fd, FILE_LIMIT, &text)) {
        mur_fail_errno (err, E_IO_003, "cannot read %s", path);
        return NULL;
    }
    return eval_parse (path, text.data ? text.data : "", text.len, err);
}

void
eval_free (struct eval_scores *s)
{
    for (size_t i = 0; i < s->scorer_count; i++)
        free (s->scorers[i].name);
    for (size_t i = 0; i < s->event_count; i++) {
        free (s->events[i].event_type);
        free (s->events[i].scorer);
    }
    free (s->scorers);
    free (s->events);
    json_decref (s->dataset_run);
    free (s->path);
    free (s);
}

/* --- what it adds up to --- */

const char *
eval_overall (const struct eval_scores *s)
{
    if (s->dataset_run)
        return json_get_string (s->dataset_run, "overall");
    for (size_t i = 0; i < s->scorer_count; i++)
        if (s->scorers[i].pass < s->scorers[i].total)
            return "fail";
    return s->scorer_count ? "pass" : "no_scores";
}

static double
pass_rate (const struct eval_scorer *s)
{
    return (double)s->pass / (double)s->total;
}

/* Text on one line: what a terminal would obey is a blank. */
static void
put_name (struct buf *out, const char *name, int width)
{
    size_t columns = 0;
    size_t start = out->len;
    buf_append_printable (out, name, strlen (name), PRINTABLE_BLANK);
    for (size_t i = start; i < out->len; i++)
        columns += ((unsigned char)out->data[i] & 0xc0) != 0x80;
    for (; columns < (size_t)width; columns++)
        buf_putc (out, ' ');
}

/* A heading after a blank line. */
static void
heading (struct buf *out, const char *title)
{
    struct report r = { .is_started = true };
    report_heading (&r, title);
    report_finish (&r, false, out);
}

static int
worse_first (const void *a, const void *b)
{
    const struct eval_event *x = *(const struct eval_event *const *)a;
    const struct eval_event *y = *(const struct eval_event *const *)b;
    double left = x->has_score ? x->score : 0, right = y->has_score ? y->score : 0;
    if (left < right || left > right)
        return left < right ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static void
put_worst (const struct eval_scores *s, struct buf *out)
{
    _cleanup_free_ const struct eval_event **failed =
        x_calloc (s->event_count + 1, sizeof (*failed));
    size_t count = 0;
    for (size_t i = 0; i < s->event_count; i++)
        if (! s->events[i].is_pass)
            failed[count++] = &s->events[i];
    if (! count)
        return;
    qsort (failed, count, sizeof (*failed), worse_first);
    heading (out, "Worst events");
    for (size_t i = 0; i < count && i < WORST_EVENTS; i++) {
        buf_printf (out, "  turn %3" PRIu64 "  ", failed[i]->turn);
        put_name (out, failed[i]->event_type, 12);
        buf_puts (out, "  ");
        put_name (out, failed[i]->scorer, 24);
        buf_puts (out, " fail");
        if (failed[i]->has_score)
            buf_printf (out, "  score=%.2f", failed[i]->score);
        buf_putc (out, '\n');
    }
}

static void
put_run_word (struct buf *out, const json_t *run, const char *label, const char *key)
{
    const char *word = json_get_string (run, key);
    if (! word)
        return;
    buf_puts (out, label);
    put_name (out, word, 0);
    buf_putc (out, '\n');
}

void
eval_show (const struct eval_scores *s, struct buf *out)
{
    struct report r = { 0 };
    _cleanup_free_ char *title = x_asprintf ("Eval: %s", s->path);
    report_rule (&r, title, strlen (title) + PATH_HEADING_COLUMNS);
    report_finish (&r, false, out);
    if (! s->event_count)
        buf_puts (out, "  (no scored events)\n");
    if (! s->event_count && ! s->dataset_run)
        return;
    if (s->event_count)
        heading (out, "Scorers");
    for (size_t i = 0; i < s->scorer_count; i++) {
        const struct eval_scorer *of = &s->scorers[i];
        buf_puts (out, "  ");
        put_name (out, of->name, 24);
        buf_printf (out, " %" PRIu64 "/%" PRIu64 " pass  (%.1f%%)\n", of->pass, of->total,
                    100 * pass_rate (of));
    }
    heading (out, "Overall");
    buf_printf (out, "  result:  %s\n", eval_overall (s));
    put_run_word (out, s->dataset_run, "  case:    ", "case_id");
    put_run_word (out, s->dataset_run, "  dataset: ", "dataset_id");
    json_t *scores = json_object_get (s->dataset_run, "scores"), *score;
    const char *name;
    if (json_object_size (scores))
        heading (out, "Score summary");
    json_object_foreach (scores, name, score)
    {
        buf_puts (out, "  ");
        put_name (out, name, 24);
        buf_printf (out, " %.4f\n", json_number_value (score));
    }
    put_worst (s, out);
}

json_t *
eval_json (const struct eval_scores *s)
{
    json_t *scorers = json_object ();
    for (size_t i = 0; i < s->scorer_count; i++) {
        const struct eval_scorer *of = &s->scorers[i];
        json_t *row = json_object ();
        json_set_u64 (row, "fail", of->total - of->pass);
        json_set_u64 (row, "pass", of->pass);
        json_object_set_new (row, "pass_rate", json_real (pass_rate (of)));
        json_set_u64 (row, "total", of->total);
        json_object_set_new (scorers, of->name, row);
    }
    json_t *report = json_object ();
    json_object_set_new (report, "dataset_run",
                         s->dataset_run ? json_incref (s->dataset_run) : json_null ());
    json_set_string (report, "overall", eval_overall (s));
    json_object_set_new (report, "scorers", scorers);
    return report;
}

/* --- two of them --- */

static void
put_row (struct buf *out, const char *name, const char *a, const char *b, const char *delta)
{
    put_name (out, name, 24);
    buf_putc (out, ' ');
    put_name (out, a, 14);
    buf_putc (out, ' ');
    put_name (out, b, *delta ? 14 : 0);
    buf_printf (out, "%s%s\n", *delta ? " " : "", delta);
}

static void
compare_scorer (struct buf *out, const struct eval_scorer *a, const struct eval_scorer *b)
{
    char left[16] = "—", right[16] = "—", delta[40];
    if (a)
        snprintf (left, sizeof (left), "%.1f%%", 100 * pass_rate (a));
    if (b)
        snprintf (right, sizeof (right), "%.1f%%", 100 * pass_rate (b));
    if (a && b) {
        double points = 100 * (pass_rate (b) - pass_rate (a));
        snprintf (delta, sizeof (delta), "%+.1fpp%s", points,
                  points > 0   ? " (B better)"
                  : points < 0 ? " (A better)"
                               : "");
    } else {
        snprintf (delta, sizeof (delta), "%s", a ? "(A only)" : "(B only)");
    }
    put_row (out, a ? a->name : b->name, left, right, delta);
}

void
eval_compare (const struct eval_scores *a, const struct eval_scores *b, struct buf *out)
{
    static const size_t columns[] = { 24, 14, 14, 26 };
    put_row (out, "Scorer", "Run A", "Run B", "Delta");
    for (size_t i = 0; i < ARRAY_LEN (columns); i++)
        for (size_t n = 0; n < columns[i]; n++)
            buf_puts (out, n ? "─" : i ? " ─" : "─");
    buf_putc (out, '\n');
    for (size_t i = 0, j = 0; i < a->scorer_count || j < b->scorer_count;) {
        const struct eval_scorer *left = i < a->scorer_count ? &a->scorers[i] : NULL;
        const struct eval_scorer *right = j < b->scorer_count ? &b->scorers[j] : NULL;
        int order = ! left ? 1 : ! right ? -1 : strcmp (left->name, right->name);
        compare_scorer (out, order <= 0 ? left : NULL, order >= 0 ? right : NULL);
        i += order <= 0;
        j += order >= 0;
    }
    buf_putc (out, '\n');
    put_row (out, "overall", eval_overall (a), eval_overall (b), "");
}

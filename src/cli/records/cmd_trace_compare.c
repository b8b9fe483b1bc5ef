/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace steps`, `diff` and `report`: choosing the traces (spec/records.md 8.3-8.5). What they
 * print is made in trace/.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/ids.h"
#include "cli/records/recorded.h"
#include "home/paths.h"
#include "trace/tell/diff.h"
#include "trace/tell/diff_steps.h"
#include "trace/tell/report.h"
#include "trace/tell/steps.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

int
cmd_trace_steps (const struct cli_args *args, struct mur_error **err)
{
    const char *address = cli_positional (args, "SESSION");
    if (address && ! cli_has (args, "--fleet") && str_starts (address, "frm_")) {
        mur_fail (err, E_TRC_001, "a formation has no steps of its own");
        mur_hint (err, "`mur trace show %s` lists its members", address);
        return CLI_FAILED;
    }
    _cleanup_trace_ struct trace *t = recorded_trace (args, address, TRACE_STRICT, err);
    if (! t)
        return CLI_FAILED;
    struct report report = { .put = out_raw, .use_colour = diag_wants_colour (STDOUT_FILENO) };
    trace_steps (t, cli_has (args, "--verbose"), &report);
    report_end (&report);
    return CLI_OK;
}

/* --- diff --- */

/* Both sides at once, so that two mistakes are told together. */
static bool
resolve_both (const char *const addresses[2], const char *work_root,
              struct recorded_session sessions[2], struct mur_error **err)
{
    _cleanup_error_ struct mur_error *before = NULL;
    _cleanup_error_ struct mur_error *after = NULL;
    bool has_before = recorded_session_resolve (addresses[0], work_root, "before", E_TRC_002,
                                                &sessions[0], &before);
    bool has_after = recorded_session_resolve (addresses[1], work_root, "after", E_TRC_002,
                                               &sessions[1], &after);
    if (! has_before && ! has_after)
        return mur_fail (err, before->code, "%s\n%s", before->message, after->message);
    if (! has_before)
        return mur_propagate (err, steal_ptr (&before));
    return has_after || mur_propagate (err, steal_ptr (&after));
}

static void
show_steps (const struct trace *a, const struct trace *b, bool is_json)
{
    _cleanup_json_ json_t *answer = trace_diff_steps (a, b);
    struct report report = { .put = out_write };
    _cleanup_free_ char *text = is_json ? json_text (answer, JSON_TEXT_ORDERED) : NULL;
    if (is_json) {
        out_puts (text);
        out_puts ("\n");
        return;
    }
    trace_diff_steps_report (answer, &report);
    report_end (&report);
}

/* Steps are there before a session has ended; sums are not. */
static bool
diff_sessions (const struct cli_args *args, const struct recorded_session sessions[2],
               struct mur_error **err)
{
    bool by_steps = cli_has (args, "--steps");
    enum trace_mode mode = by_steps ? TRACE_TOLERANT : TRACE_STRICT;
    _cleanup_trace_ struct trace *a = trace_read (sessions[0].trace_path, mode, err);
    if (! a)
        return mur_context (err, "before");
    _cleanup_trace_ struct trace *b = trace_read (sessions[1].trace_path, mode, err);
    if (! b)
        return mur_context (err, "after");
    if (by_steps) {
        show_steps (a, b, cli_has (args, "--json"));
        return true;
    }
    struct report report = { .put = out_write };
    trace_diff (a, b, &report);
    report_end (&report);
    return true;
}

int
cmd_trace_diff (const struct cli_args *args, struct mur_error **err)
{
    const char *addresses[] = { cli_positional (args, "BEFORE"), cli_positional (args, "AFTER") };
    if (addresses[0] && ! addresses[1]) {
        mur_fail (err, E_TRC_002, "one session cannot be compared with nothing");
        mur_hint (err, "mur trace diff BEFORE AFTER, or neither for @2 and @1");
        return CLI_FAILED;
    }
    if (! addresses[0]) {
        addresses[0] = "@2";
        addresses[1] = "@1";
    }
    _cleanup_free_ char *work_root = home_work_root (cli_value (args, "--workdir"), ".", err);
    struct recorded_session sessions[2] = { 0 };
    bool is_ok = work_root && resolve_both (addresses, work_root, sessions, err) &&
                 diff_sessions (args, sessions, err);
    recorded_session_free (&sessions[0]);
    recorded_session_free (&sessions[1]);
    return is_ok ? CLI_OK : CLI_FAILED;
}

/* --- report --- */

/* "30m", "2h", "1d" in ms. */
static bool
parse_since (const char *text, uint64_t *ms)
{
    if (! isdigit ((unsigned char)*text))
        return false;
    char *end;
    errno = 0;
    uint64_t n = strtoull (text, &end, 10);
    uint64_t unit = str_eq (end, "m")   ? 60000
                    : str_eq (end, "h") ? 3600000
                    : str_eq (end, "d") ? 86400000
                                        : 0;
    *ms = n * unit;
    return ! errno && unit && n <= UINT64_MAX / unit;
}

/* The trace files to sum up. */
static bool
choose_all (const struct cli_args *args, const struct recorded_group *g, struct strv *paths,
            struct mur_error **err)
{
    uint64_t limit = cli_has (args, "--last") ? cli_number (args, "--last") : UINT64_MAX;
    uint64_t window_ms = 0;
    const char *since = cli_value (args, "--since");
    if (limit == 0)
        return mur_fail (err, E_TRC_002, "--last 0 leaves nothing to report on");
    if (since && ! parse_since (since, &window_ms))
        return mur_fail (err, E_TRC_002, "--since %s is not a number followed by m, h or d", since);
    uint64_t now = clock_unix_ms ();
    for (size_t i = 0; i < g->names.len && paths->len < limit; i++) {
        uint64_t started =
            id_is_valid (g->names.items[i], "ses_") ? id_time_ms (g->names.items[i]) : 0;
        if (since && started + window_ms < now)
            continue;
        strv_printf (paths, "%s/%s/trace.jsonl", g->path, g->names.items[i]);
    }
    if (since && paths->len == 0)
        return mur_fail (err, E_TRC_002, "no session recorded for %s started within %s",
                         g->work_root, since);
    if (paths->len == 0)
        return mur_fail (err, E_TRC_002, "no sessions are recorded for %s (records in %s)",
                         g->work_root, g->path);
    return true;
}

static bool
choose_named (const char *const *addresses, size_t count, const struct recorded_group *g,
              struct strv *paths, struct mur_error **err)
{
    for (size_t i = 0; i < count; i++) {
        struct recorded_session session;
        if (! recorded_session_resolve (addresses[i], g->work_root, NULL, E_TRC_002, &session, err))
            return false;
        strv_push (paths, session.trace_path);
        recorded_session_free (&session);
    }
    return true;
}

/* Reads what can be read; an incomplete or malformed trace is skipped and counted, a named file
 * that is missing refuses. */
static bool
read_traces (const struct strv *paths, bool is_named, struct trace_summary *all,
             struct mur_error **err)
{
    size_t skipped = 0;
    for (size_t i = 0; i < paths->len; i++) {
        _cleanup_error_ struct mur_error *caught = NULL;
        _cleanup_trace_ struct trace *t = trace_read (paths->items[i], TRACE_STRICT, &caught);
        if (t)
            trace_summary_add (all, t);
        else if (is_named && caught->code != E_TRC_001)
            return mur_propagate (err, steal_ptr (&caught));
        else
            skipped++;
    }
    if (trace_summary_count (all) == 0)
        return mur_fail (err, E_TRC_001, "none of %zu sessions has a complete trace", paths->len);
    if (skipped)
        diag_note ("skipped %zu incomplete session(s)", skipped);
    return true;
}

static bool
check_workdir (const struct recorded_group *g, struct mur_error **err)
{
    struct stat st;
    return stat (g->work_root, &st) == 0 ||
           mur_fail_errno (err, E_IO_001, "no work folder at %s", g->work_root);
}

int
cmd_trace_report (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_ (recorded_group_free) struct recorded_group g = RECORDED_GROUP_EMPTY;
    _cleanup_strv_ struct strv paths = { 0 };
    size_t named;
    const char *const *addresses = cli_positionals (args, "SESSIONS", &named);
    if (named && (cli_has (args, "--last") || cli_has (args, "--since"))) {
        mur_fail (err, E_TRC_002,
                  "--last and --since choose sessions, and sessions are named already");
        return CLI_FAILED;
    }
    if (! recorded_group_open (cli_value (args, "--workdir"), &g, err) ||
        (! named && ! check_workdir (&g, err)))
        return CLI_FAILED;
    if (! (named ? choose_named (addresses, named, &g, &paths, err)
                 : choose_all (args, &g, &paths, err)))
        return CLI_FAILED;
    struct report report = { 0 };
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_ (trace_summary_freep) struct trace_summary *all = trace_summary_new (&report);
    bool is_ok = read_traces (&paths, named > 0, all, err);
    if (is_ok)
        trace_summary_end (all, g.work_root);
    report_finish (&report, false, &text);
    if (is_ok)
        out_write (text.data, text.len);
    return is_ok ? CLI_OK : CLI_FAILED;
}

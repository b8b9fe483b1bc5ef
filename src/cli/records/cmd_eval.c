/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur eval show` and `diff`: the scores hooks left in sessions' records, and the arms of one eval
 * run side by side (spec/records.md 9).
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/line/args.h"
#include "cli/records/commands.h"
#include "home/paths.h"
#include "trace/read/address.h"
#include "trace/tell/eval.h"
#include "trace/tell/eval_run.h"
#include "trace/tell/eval_summary.h"

/* The scores an address names. NULL with E-EVAL-002, E-IO-001, E-IO-003 or E-EVAL-001. */
static struct eval_scores *
scores_of (const char *address, const char *work_root, const char *label, struct mur_error **err)
{
    struct recorded_session session = { 0 };
    struct eval_scores *scores = NULL;
    if (recorded_session_resolve (address, work_root, label, E_EVAL_002, &session, err)) {
        _cleanup_free_ char *path = session.dir_path
                                        ? x_asprintf ("%s/hooks/eval.jsonl", session.dir_path)
                                        : x_strdup (session.trace_path);
        scores = eval_read (path, err);
    }
    recorded_session_free (&session);
    return scores;
}

int
cmd_eval_show (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_free_ char *work_root = home_work_root (cli_value (args, "--workdir"), ".", err);
    if (! work_root)
        return CLI_FAILED;
    _cleanup_eval_ struct eval_scores *scores =
        scores_of (cli_positional (args, "SESSION"), work_root, NULL, err);
    if (! scores)
        return CLI_FAILED;
    if (cli_has (args, "--json")) {
        _cleanup_json_ json_t *report = eval_json (scores);
        _cleanup_free_ char *text = json_pretty (report, JSON_TEXT_SORTED);
        out_printf ("%s\n", text);
        return CLI_OK;
    }
    _cleanup_buf_ struct buf text = { 0 };
    eval_show (scores, &text);
    out_write (text.data, text.len);
    return CLI_OK;
}

static int
diff_run (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_free_ char *work_root = home_work_root (cli_value (args, "--workdir"), ".", err);
    _cleanup_free_ char *path =
        work_root ? eval_run_resolve (cli_value (args, "--run"), work_root, err) : NULL;
    _cleanup_json_ json_t *run = path ? eval_run_read (path, err) : NULL;
    if (! run)
        return CLI_FAILED;
    if (cli_has (args, "--json")) {
        _cleanup_json_ json_t *report = eval_run_json (run);
        _cleanup_free_ char *text = json_pretty (report, JSON_TEXT_SORTED);
        out_printf ("%s\n", text);
        return CLI_OK;
    }
    _cleanup_buf_ struct buf text = { 0 };
    eval_run_text (run, &text);
    out_write (text.data, text.len);
    return CLI_OK;
}

int
cmd_eval_diff (const struct cli_args *args, struct mur_error **err)
{
    if (cli_has (args, "--run"))
        return diff_run (args, err);
    const char *a = cli_positional (args, "A"), *b = cli_positional (args, "B");
    if (a && ! b) {
        mur_fail (err, E_EVAL_002, "one session cannot be compared with nothing");
        mur_hint (err, "mur eval diff A B, or neither for @2 and @1");
        return CLI_FAILED;
    }
    _cleanup_free_ char *work_root = home_work_root (cli_value (args, "--workdir"), ".", err);
    if (! work_root)
        return CLI_FAILED;
    _cleanup_eval_ struct eval_scores *left = scores_of (a ? a : "@2", work_root, "A", err);
    _cleanup_eval_ struct eval_scores *right =
        left ? scores_of (b ? b : "@1", work_root, "B", err) : NULL;
    if (! right)
        return CLI_FAILED;
    _cleanup_buf_ struct buf text = { 0 };
    eval_compare (left, right, &text);
    out_write (text.data, text.len);
    return CLI_OK;
}

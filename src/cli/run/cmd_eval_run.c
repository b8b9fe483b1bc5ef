/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur eval run`: every case of a data set, once or several times, in one capsule or in two
 * (spec/records.md 9).
 *
 * A session is a process of its own: each run is a forked child that stages, launches, checks and
 * tells what came of it through a pipe; this process starts no thread and only keeps the record.
 * Always true: the record is whole after every run; a child does not outlive this process.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "base/words.h"
#include "cli/line/parse.h"
#include "cli/run/cmd_run.h"
#include "cli/run/commands.h"
#include "cli/run/eval_cases.h"
#include "cli/run/eval_verdict.h"
#include "cli/run/replay_launch.h"
#include "cli/run/unpacked.h"
#include "fs/paths.h"
#include "fs/replace.h"
#include "home/paths.h"
#include "manifest/capsule/capsule.h"
#include "replay/record/record_read.h"
#include "session/eval.h"
#include "trace/read/reader.h"
#include "trace/read/text.h"
#include "trace/tell/eval.h"
#include "trace/tell/eval_run.h"
#include "trace/tell/eval_summary.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define MANIFEST_LIMIT ((size_t)64 * 1024 * 1024)
#define REPORT_LIMIT   ((size_t)1 * 1024 * 1024)

struct arm {
    const char *name;
    char *manifest_path; /* absolute */
    char manifest_sha256[SHA256_HEX_LEN + 1];
    struct capsule_manifest *manifest;
};

struct eval {
    const struct cli_table *table;
    struct arm arms[2];
    size_t arm_count;
    struct eval_cases cases;
    const char *dataset;
    uint64_t repeat;
    bool is_recorded; /* answers come from records */
    struct id id;
    char *group;
    int group_fd;
    json_t *record;
};

static void
eval_clear (struct eval *e)
{
    for (size_t i = 0; i < e->arm_count; i++) {
        free (e->arms[i].manifest_path);
        capsule_manifest_freep (&e->arms[i].manifest);
    }
    eval_cases_clear (&e->cases);
    free (e->group);
    if (e->group_fd >= 0)
        close (e->group_fd);
    json_decref (e->record);
}

/* --- before anything is staged --- */

static const char *
model_of (const struct arm *arm)
{
    const struct inference *inference = arm->manifest->inference;
    return inference ? inference->model : NULL;
}

static bool
read_arm (struct eval *e, const char *name, const char *where, struct mur_error **err)
{
    struct arm *arm = &e->arms[e->arm_count++];
    struct stat st;
    arm->name = name;
    if (stat (where, &st) < 0)
        return mur_fail_errno (err, errno == ENOENT ? E_IO_001 : E_IO_003, "no capsule at %s",
                               where);
    _cleanup_free_ char *path =
        S_ISDIR (st.st_mode) ? x_asprintf ("%s/murmur.yaml", where) : x_strdup (where);
    arm->manifest_path = fs_canonical_path (path, err);
    if (! arm->manifest_path)
        return false;
    _cleanup_buf_ struct buf text = { 0 };
    if (! fs_read_path (arm->manifest_path, MANIFEST_LIMIT, &text, err))
        return mur_context (err, "the manifest of the %s", name),
               mur_hint (err, "run it in the folder of a capsule; `mur new agent hello` creates "
                              "one");
    sha256_hex (text.data ? text.data : "", text.len, arm->manifest_sha256);
    arm->manifest = capsule_manifest_parse (text.data ? text.data : "", text.len,
                                            arm->manifest_path, MANIFEST_SECRETLESS, err);
    return arm->manifest != NULL;
}

static bool
may_run (const struct arm *arm, const char *binary)
{
    const struct capabilities *c = arm->manifest->capabilities;
    const struct cap_shell *shell = c ? c->shell : NULL;
    for (size_t i = 0; shell && i < shell->allow.len; i++)
        if (str_eq (shell->allow.items[i], binary))
            return true;
    return false;
}

static bool
check_checks (const struct eval *e, struct mur_error **err)
{
    for (size_t c = 0; c < e->cases.len; c++)
        for (size_t a = 0; a < e->arm_count && e->cases.items[c].check; a++) {
            _cleanup_strv_ struct strv words = { 0 };
            if (words_split (e->cases.items[c].check, &words) &&
                may_run (&e->arms[a], words.items[0]))
                continue;
            mur_fail (err, E_EVAL_004,
                      "case %s: its check runs %s, which capabilities.shell.allow of the %s (%s) "
                      "does not list",
                      e->cases.items[c].case_id, words.items[0], e->arms[a].name,
                      e->arms[a].manifest_path);
            return mur_hint (err, "a check runs under the capsule's own confinement; list %s there",
                             words.items[0]);
        }
    return true;
}

static bool
check_models (const struct eval *e, struct mur_error **err)
{
    const char *a = model_of (&e->arms[0]);
    const char *b = e->arm_count > 1 ? model_of (&e->arms[1]) : a;
    return str_eq (a, b) ||
           mur_fail (err, E_EVAL_004,
                     "the arms are not comparable: inference.model is %s in the baseline and %s in "
                     "the variant",
                     a ? a : "none", b ? b : "none");
}

static bool
open_group (struct eval *e, struct mur_error **err)
{
    _cleanup_free_ char *copy = x_strdup (e->arms[0].manifest_path);
    _cleanup_free_ char *root = home_work_root (NULL, dirname (copy), err);
    if (! root || ! home_check_for_launch (err))
        return false;
    e->group = home_records_group (root, err);
    e->group_fd = e->group ? home_open_records_group (root, err) : -1;
    return e->group_fd >= 0;
}

static bool
prepare (struct eval *e, const struct cli_args *args, struct mur_error **err)
{
    const char *capsule = cli_positional (args, "CAPSULE");
    const char *variant = cli_value (args, "--variant");
    e->table = cli_table_of (args);
    e->dataset = cli_value (args, "--dataset");
    e->repeat = cli_number (args, "--repeat");
    e->is_recorded = str_eq (cli_value (args, "--model"), "recorded");
    return read_arm (e, "baseline", capsule ? capsule : ".", err) &&
           (! variant || read_arm (e, "variant", variant, err)) &&
           eval_cases_read (e->dataset, &e->cases, err) && check_checks (e, err) &&
           check_models (e, err) &&
           (! e->is_recorded || eval_cases_check_records (&e->cases, err)) && open_group (e, err);
}

/* --- the record --- */

/* A path as the record keeps it: it is read again from elsewhere. */
static void
set_path (json_t *o, const char *key, const char *path)
{
    _cleanup_free_ char *canonical = path ? fs_canonical_path (path, NULL) : NULL;
    json_set_string (o, key, canonical ? canonical : path);
}

static json_t *
case_record (const struct eval_case *c)
{
    json_t *o = json_object ();
    json_set_string (o, "case_id", c->case_id);
    json_set_string (o, "task_path", c->task_path);
    set_path (o, "start", c->start);
    json_set_string (o, "start_sha256", c->start ? c->start_sha256 : NULL);
    if (c->check) {
        json_t *check = json_object ();
        json_set_string (check, "command", c->check);
        set_path (check, "files", c->check_files);
        json_set_u64 (check, "timeout_secs", c->timeout_secs);
        json_object_set_new (o, "check", check);
    } else {
        json_object_set_new (o, "check", json_null ());
    }
    json_object_set_new (o, "runs", json_array ());
    return o;
}

static json_t *
record_new (const struct eval *e)
{
    json_t *r = json_object (), *arms = json_array (), *cases = json_array ();
    json_set_u64 (r, "record_version", 1);
    json_set_string (r, "run_id", e->id.text);
    json_set_u64 (r, "started_at_ms", clock_unix_ms ());
    json_object_set_new (r, "ended_at_ms", json_null ());
    json_set_bool (r, "complete", false);
    set_path (r, "dataset", e->dataset);
    json_set_u64 (r, "repeat", e->repeat);
    for (size_t i = 0; i < e->arm_count; i++) {
        json_t *arm = json_object ();
        json_set_string (arm, "name", e->arms[i].name);
        json_set_string (arm, "manifest", e->arms[i].manifest_path);
        json_set_string (arm, "manifest_sha256", e->arms[i].manifest_sha256);
        json_set_string (arm, "model", model_of (&e->arms[i]));
        json_array_append_new (arms, arm);
    }
    for (size_t i = 0; i < e->cases.len; i++)
        json_array_append_new (cases, case_record (&e->cases.items[i]));
    json_object_set_new (r, "arms", arms);
    json_object_set_new (r, "cases", cases);
    return r;
}

static bool
record_write (const struct eval *e, struct mur_error **err)
{
    _cleanup_free_ char *text = json_pretty (e->record, JSON_TEXT_ORDERED);
    _cleanup_free_ char *name = x_asprintf ("%s.json", e->id.text);
    return fs_replace_at (e->group_fd, name, text, strlen (text), 0600, true, err) ||
           mur_context (err, "the record of the eval run in %s", e->group);
}

/* --- the child of one run --- */

struct one_run {
    const struct cli_table *table; /* what its own line is read against */
    const struct arm *arm;
    const struct eval_case *one;
    int report_fd;
    bool is_recorded;
    bool has_mismatch;
};

/* One line: members of the run's record. Takes <o> over. */
static void
tell (const struct one_run *run, json_t *o)
{
    _cleanup_free_ char *text = json_text (o, JSON_TEXT_ORDERED);
    _cleanup_free_ char *line = x_asprintf ("%s\n", text);
    (void)fd_write_all (run->report_fd, line, strlen (line));
    json_decref (o);
}

static bool
on_staged (void *ctx, struct session *s, struct mur_error **err)
{
    struct one_run *run = ctx;
    char digest[SHA256_HEX_LEN + 1] = "";
    bool is_filled = ! run->one->start || session_fill_work (s, run->one->start_root, digest, err);
    run->has_mismatch = ! is_filled || strcmp (digest, run->one->start_sha256) != 0;
    json_t *o = json_object ();
    json_set_string (o, "session_id", session_id (s));
    json_set_string (o, "records_dir", session_records_dir (s));
    json_set_string (o, "workdir", session_workdir (s));
    json_set_string (o, "start_sha256", digest[0] ? digest : NULL);
    if (run->has_mismatch)
        json_set_string (o, "outcome", "start_mismatch");
    tell (run, o);
    return ! run->has_mismatch ||
           mur_fail (err, E_EVAL_003, "case %s: the work folder does not hold what %s holds",
                     run->one->case_id, run->one->start);
}

static void
on_ended (void *ctx, struct session *s)
{
    const struct one_run *run = ctx;
    if (! run->one->check || ! session_was_launched (s))
        return;
    const struct check_request request = { run->one->check, run->one->files_root,
                                           run->one->timeout_secs };
    json_t *o = json_object (), *check = session_check (s, &request);
    json_set_string (o, "check_result", json_get_string (check, "result"));
    json_object_set_new (o, "check", check);
    tell (run, o);
}

/* The file of the task, absolute; NULL after a warning when there is none. Owned. */
static char *
task_file (const struct eval_case *c)
{
    struct stat st;
    if (stat (c->task_path, &st) == 0 && S_ISREG (st.st_mode))
        return fs_canonical_path (c->task_path, NULL);
    diag_plain_warning ("case %s: there is no task file at %s; its sessions wait for a message",
                        c->case_id, c->task_path);
    return NULL;
}

static void
launch (struct one_run *run)
{
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_free_ char *task = task_file (run->one);
    char *argv[] = { (char *)"mur",
                     (char *)"run",
                     (char *)"--manifest",
                     run->arm->manifest_path,
                     (char *)"--task",
                     task,
                     NULL };
    int argc = task ? 6 : 4;
    argv[argc] = NULL;
    _cleanup_ (cli_args_freep) struct cli_args *args = NULL;
    enum session_ending ending = ENDING_FAILED;
    const struct run_steps steps = { .case_id = run->one->case_id,
                                     .may_write_lock = str_eq (run->arm->name, "baseline"),
                                     .staged = on_staged,
                                     .ended = on_ended,
                                     .ctx = run };
    if (cli_parse (run->table, argc, argv, &args) == CLI_RUN &&
        ! run_with_steps (args, &steps, &ending, &err))
        diag_error (err);
    json_t *o = json_object ();
    json_set_string (o, "ending", session_ending_name (ending));
    tell (run, o);
}

/* --- a session that was recorded --- */

static void
tell_verdict (const struct one_run *run, const struct player *p)
{
    const struct play_difference *d = player_difference (p);
    json_t *o = json_object ();
    json_set_string (o, "replay", play_verdict_name (player_verdict (p)));
    json_set_string (o, "replay_cause", d ? d->cause : NULL);
    tell (run, o);
    if (d)
        diag_plain_warning ("case %s ran otherwise than its record: %s at turn %llu (%s)",
                            run->one->case_id, d->part, (unsigned long long)d->turn, d->cause);
}

static bool
replay_record (struct one_run *run, const struct record *record, const char *dir,
               struct mur_error **err)
{
    const struct play_modes modes = { .model = PLAY_RECORDED,
                                      .tools = record->tape && ! record_has_harness (record)
                                                   ? PLAY_RERUN
                                                   : PLAY_RECORDED,
                                      .hooks = PLAY_RERUN };
    _cleanup_buf_ struct buf manifest = { 0 };
    _cleanup_free_ char *copy = x_strdup (run->arm->manifest_path);
    _cleanup_free_ char *root = home_work_root (NULL, dirname (copy), err);
    if (! root || ! fs_read_path (run->arm->manifest_path, MANIFEST_LIMIT, &manifest, err))
        return false;
    _cleanup_ (player_freep) struct player *player = player_new (record, &modes);
    const struct run_replay replay = { .player = player,
                                       .work_root = root,
                                       .manifest_dir = dir,
                                       .manifest_name = strrchr (run->arm->manifest_path, '/') + 1,
                                       .manifest = manifest.data,
                                       .manifest_len = manifest.len,
                                       .context_id = record->context_id,
                                       .needs_host = true };
    const struct replay_steps steps = {
        .staged = on_staged, .ended = on_ended, .ctx = run, .case_id = run->one->case_id
    };
    char *id = NULL;
    bool is_over = replay_launch (run->table, &replay, &steps, &id, err);
    free (id);
    tell_verdict (run, player);
    return is_over && player_verdict (player) == PLAY_SAME;
}

static void
launch_record (struct one_run *run)
{
    struct unpacked bundle = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    bool is_good = unpacked_open (run->one->record, &bundle, &err);
    _cleanup_record_ struct record *record = is_good ? record_read (bundle.dir, &err) : NULL;
    is_good =
        record && record_check (record, &err) && replay_record (run, record, bundle.dir, &err);
    unpacked_close (&bundle);
    if (err)
        diag_error (err);
    json_t *o = json_object ();
    json_set_string (o, "ending", session_ending_name (is_good ? ENDING_OK : ENDING_FAILED));
    tell (run, o);
}

static _Noreturn void
be_child (struct one_run *run, pid_t parent)
{
    prctl (PR_SET_PDEATHSIG, SIGTERM);
    int nowhere = open ("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0)
        dup2 (nowhere, STDOUT_FILENO);
    if (getppid () == parent && run->is_recorded)
        launch_record (run);
    else if (getppid () == parent)
        launch (run);
    _exit (0);
}

/* --- what came of it --- */

/* Everything the child told, laid over each other. Owned. */
static json_t *
read_report (int fd)
{
    _cleanup_buf_ struct buf text = { 0 };
    json_t *all = json_object ();
    (void)fd_read_all (fd, REPORT_LIMIT, &text);
    char *rest = text.data, *line;
    while ((line = strsep (&rest, "\n"))) {
        _cleanup_json_ json_t *o = json_loads (line, 0, NULL);
        if (json_is_object (o))
            json_object_update (all, o);
    }
    return all;
}

/* Sums a provider's counts; null when no call reported one. <of_harness>: the name of the same in a
 * line of a harness, which has no count of ours. */
static json_t *
sum_of (const struct trace *t, const char *counted, const char *of_harness)
{
    json_int_t sum = 0;
    bool has_any = false;
    for (const struct trace_event *e = NULL; (e = trace_next (t, "inference", e));) {
        const char *key = json_object_get (e->object, "max_output_tokens") ? counted : of_harness;
        const json_t *v = json_object_get (e->object, key);
        if (! json_is_integer (v))
            continue;
        sum += json_integer_value (v);
        has_any = true;
    }
    return has_any ? json_integer (sum) : json_null ();
}

static void
add_trace (json_t *run, const char *records_dir)
{
    _cleanup_free_ char *path = x_asprintf ("%s/trace.jsonl", records_dir);
    _cleanup_trace_ struct trace *t = trace_read (path, TRACE_STRICT, NULL);
    const struct trace_event *end = t ? trace_find (t, "session_end", 0) : NULL;
    if (! end)
        return;
    static const struct {
        const char *key, *counted;
    } sums[] = { { "input_tokens", "input_tokens_actual" },
                 { "output_tokens", "output_tokens_actual" },
                 { "cached_tokens", "cached_tokens" },
                 { "cache_write_tokens", "cache_write_tokens" } };
    json_set_string (run, "outcome", "completed");
    json_object_set (run, "exit_status", json_object_get (end->object, "exit_status"));
    json_object_set (run, "turns", json_object_get (end->object, "total_turns"));
    json_object_set (run, "agent_ms", json_object_get (end->object, "duration_ms"));
    for (size_t i = 0; i < ARRAY_LEN (sums); i++)
        json_object_set_new (run, sums[i].key, sum_of (t, sums[i].counted, sums[i].key));
}

static struct eval_scores *
read_scores (const json_t *run)
{
    const char *records_dir = json_get_string (run, "records_dir");
    _cleanup_error_ struct mur_error *err = NULL;
    if (! records_dir)
        return NULL;
    _cleanup_free_ char *path = x_asprintf ("%s/hooks/eval.jsonl", records_dir);
    struct eval_scores *scores = eval_read (path, &err);
    if (! scores && err->code != E_IO_001)
        diag_plain_warning ("%s", err->message);
    return scores;
}

/* The run's record from what the child told and what it left. */
static json_t *
run_record (const struct one_run *one, uint64_t repeat, size_t order, const json_t *told)
{
    static const char *const keys[] = { "session_id", "records_dir", "workdir", "start_sha256" };
    static const char *const later[] = { "turns",         "input_tokens",       "output_tokens",
                                         "cached_tokens", "cache_write_tokens", "agent_ms" };
    json_t *run = json_object ();
    const char *session = json_get_string (told, "session_id");
    const char *outcome = json_get_string (told, "outcome");
    const char *ending = json_get_string (told, "ending");
    const char *check = json_get_string (told, "check_result");
    json_set_string (run, "arm", one->arm->name);
    json_set_u64 (run, "repeat", repeat);
    json_set_u64 (run, "order", order);
    for (size_t i = 0; i < ARRAY_LEN (keys); i++)
        json_set_string (run, keys[i], json_get_string (told, keys[i]));
    json_set_string (run, "outcome",
                     outcome                 ? outcome
                     : ! session             ? "stage_failed"
                     : str_eq (ending, "ok") ? "completed"
                                             : "launch_failed");
    json_set_string (run, "exit_status", session && ! outcome ? ending : NULL);
    bool has_diverged = str_eq (json_get_string (told, "replay"), "diverged");
    json_set_string (run, "check_result",
                     has_diverged      ? "fail"
                     : check           ? check
                     : one->one->check ? "not_run"
                                       : NULL);
    json_t *report = json_object_get (told, "check");
    json_object_set (run, "check", report ? report : json_null ());
    for (size_t i = 0; i < ARRAY_LEN (later); i++)
        json_object_set_new (run, later[i], json_null ());
    json_set_string (run, "scores_overall", NULL);
    const char *replay = json_get_string (told, "replay");
    if (replay) {
        json_set_string (run, "replay", replay);
        json_set_string (run, "replay_cause", json_get_string (told, "replay_cause"));
    }
    if (session && ! outcome)
        add_trace (run, json_get_string (told, "records_dir"));
    return run;
}

/* --- one run --- */

static json_t *
start_and_wait (struct one_run *one, struct mur_error **err)
{
    int pipe_fds[2];
    if (pipe2 (pipe_fds, O_CLOEXEC) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot start a run"), NULL;
    one->report_fd = pipe_fds[1];
    fflush (NULL);
    pid_t parent = getpid (), pid = fork ();
    if (pid == 0) {
        close (pipe_fds[0]);
        be_child (one, parent);
    }
    close (pipe_fds[1]);
    json_t *told = pid < 0 ? NULL : read_report (pipe_fds[0]);
    close (pipe_fds[0]);
    if (pid < 0)
        return mur_fail_errno (err, E_IO_003, "cannot start a run"), NULL;
    while (waitpid (pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return told;
}

static void
show_run (const struct eval *e, const struct one_run *one, uint64_t repeat, const json_t *run)
{
    const char *session = json_get_string (run, "session_id");
    if (e->arm_count > 1 || e->repeat > 1)
        out_printf ("    arm: %s  repeat: %llu\n", one->arm->name, (unsigned long long)repeat + 1);
    out_printf ("    result: %s  session: %s\n", eval_verdict (run, e->is_recorded),
                session ? session : json_get_string (run, "outcome"));
}

static bool
run_one (struct eval *e, size_t case_index, const struct arm *arm, uint64_t repeat, size_t order,
         struct mur_error **err)
{
    const struct eval_case *c = &e->cases.items[case_index];
    struct one_run one = { .table = e->table, .arm = arm, .one = c, .is_recorded = e->is_recorded };
    _cleanup_json_ json_t *told = start_and_wait (&one, err);
    if (! told)
        return false;
    json_t *run = run_record (&one, repeat, order, told);
    _cleanup_eval_ struct eval_scores *scores = read_scores (run);
    const char *overall = scores ? eval_overall (scores) : "no_scores";
    json_set_string (run, "scores_overall", overall);
    if (str_eq (overall, "no_scores") && ! e->is_recorded)
        diag_plain_warning (
            "case %s: session %s left no scores", c->case_id,
            json_get_string (run, "session_id") ? json_get_string (run, "session_id") : "(none)");
    json_t *record = json_array_get (json_object_get (e->record, "cases"), case_index);
    json_array_append_new (json_object_get (record, "runs"), run);
    show_run (e, &one, repeat, run);
    return record_write (e, err);
}

static bool
run_cases (struct eval *e, struct mur_error **err)
{
    out_printf ("Running %zu case(s) …\n", e->cases.len);
    for (size_t c = 0; c < e->cases.len; c++) {
        out_printf ("  case: %s\n", e->cases.items[c].case_id);
        for (uint64_t repeat = 0; repeat < e->repeat; repeat++)
            for (size_t order = 0; order < e->arm_count; order++) {
                size_t arm = repeat % 2 ? e->arm_count - 1 - order : order;
                if (! run_one (e, c, &e->arms[arm], repeat, order, err))
                    return false;
            }
    }
    return true;
}

/* --- the end --- */

static void
show_scores (const struct eval_scores *scores)
{
    const char *name;
    json_t *score, *named = json_object_get (scores->dataset_run, "scores");
    json_object_foreach (named, name, score)
        out_printf ("  %s=%.2f", name, json_number_value (score));
    for (size_t i = 0; ! json_object_size (named) && i < scores->scorer_count; i++)
        out_printf ("  %s=%.2f", scores->scorers[i].name,
                    (double)scores->scorers[i].pass / (double)scores->scorers[i].total);
}

static void
show_summary (const struct eval *e)
{
    size_t i, n, total, passed = eval_verdict_count (e->record, e->is_recorded, &total);
    const json_t *c, *run;
    struct report r = { .is_started = true };
    report_heading (&r, "Summary");
    report_text (&r, "pass: %zu/%zu\n\n", passed, total);
    _cleanup_buf_ struct buf head = { 0 };
    report_finish (&r, false, &head);
    out_write (head.data, head.len);
    json_array_foreach (json_object_get (e->record, "cases"), i, c)
        json_array_foreach (json_object_get (c, "runs"), n, run)
    {
        _cleanup_eval_ struct eval_scores *scores = read_scores (run);
        const char *work = json_get_string (run, "workdir");
        out_printf ("  %-24s %s", json_get_string (c, "case_id"),
                    eval_verdict (run, e->is_recorded));
        if (scores)
            show_scores (scores);
        out_printf ("  (%s)\n", work ? work : "no work folder");
    }
}

static bool
finish (struct eval *e, struct mur_error **err)
{
    json_set_u64 (e->record, "ended_at_ms", clock_unix_ms ());
    json_set_bool (e->record, "complete", true);
    if (! record_write (e, err))
        return false;
    show_summary (e);
    _cleanup_buf_ struct buf table = { 0 };
    buf_putc (&table, '\n');
    eval_run_text (e->record, &table);
    out_write (table.data, table.len);
    out_printf ("\nrun: %s\n  hint: mur eval diff --run %s\n", e->id.text, e->id.text);
    size_t total, passed = eval_verdict_count (e->record, e->is_recorded, &total);
    return ! e->is_recorded || passed == total ||
           mur_fail (err, E_RPL_002, "%zu of %zu recorded cases did not pass", total - passed,
                     total);
}

int
cmd_eval_run (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_ (eval_clear) struct eval e = { .group_fd = -1 };
    if (! prepare (&e, args, err)) {
        diag_stdout_line ("status:  failed");
        return CLI_FAILED;
    }
    e.id = id_new ("evr_");
    e.record = record_new (&e);
    bool is_ok = record_write (&e, err) && run_cases (&e, err) && finish (&e, err);
    return is_ok ? CLI_OK : CLI_FAILED;
}

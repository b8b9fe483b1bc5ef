/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur run`: from the command line to a launched session and its exit status (spec/cli.md 2).
 *
 * The functions below run in the order of the checks; the first failure wins, and nothing is
 * created before staging.
 */
#include "cli/run/cmd_run.h"
#include "artifact/names/name.h"
#include "artifact/store/lock_file.h"
#include "artifact/trust/trust_policy.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "cli/line/args.h"
#include "cli/line/missing_manifest.h"
#include "cli/run/commands.h"
#include "cli/run/remote_stand.h"
#include "cli/run/roster_run.h"
#include "cli/run/run_explain.h"
#include "cli/run/run_inputs.h"
#include "cli/run/run_needs.h"
#include "cli/run/run_policy.h"
#include "cli/run/run_view.h"
#include "fs/paths.h"
#include "home/paths.h"
#include "home/supervisor.h"
#include "manifest/text/dotenv.h"
#include "manifest/text/yaml.h"
#include "replay/play/player.h"
#include "session/launch.h"
#include "session/readiness.h"
#include "session/resume.h"

#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- arguments and places --- */

/* A capsule run by name has no folder of its own: its store root, else its work folder, else here.
 */
static bool
find_places (struct run *r, struct mur_error **err)
{
    struct stage_request *q = &r->request;
    const struct run_replay *replay = run_replay_of (r);
    const char *workdir = cli_value (r->args, "--workdir");
    if (replay) {
        q->player = replay->player;
        q->file.name = replay->manifest_name;
        q->file.dir = replay->manifest_dir;
        q->work.root = replay->work_root;
        r->policy_request.home_dir = run_keep (r, home_path (err));
        return r->policy_request.home_dir != NULL;
    }
    if (cli_has (r->args, "--capsule")) {
        const char *root = cli_value (r->args, "--store-root");
        q->file.dir = run_keep (r, fs_canonical_path (root ? root : workdir ? workdir : ".", err));
    } else {
        _cleanup_free_ char *path = x_strdup (cli_value (r->args, "--manifest"));
        _cleanup_free_ char *copy = x_strdup (path);
        q->file.name = arena_strdup (r->arena, basename (copy));
        q->file.dir = run_keep (r, fs_canonical_path (dirname (path), err));
    }
    if (! q->file.dir)
        return false;
    q->work.dir = workdir;
    q->work.root = run_keep (r, home_work_root (workdir, q->file.dir, err));
    r->policy_request.home_dir = run_keep (r, home_path (err));
    return q->work.root && r->policy_request.home_dir;
}

static bool
check_home (struct run *r, struct mur_error **err)
{
    (void)r;
    return cli_has (r->args, "--explain-scope") || home_check_for_launch (err);
}

static bool
read_grant (struct run *r, struct mur_error **err)
{
    if (! run_read_surroundings (r->args, &r->request.public_url, &r->request.records_store, err))
        return false;
    if (! cli_has (r->args, "--spawn-grant-stdin"))
        return true;
    r->launcher.grant = launcher_read_grant (err);
    return r->launcher.grant != NULL;
}

static bool
read_launcher (struct run *r, struct mur_error **err)
{
    struct stage_request *q = &r->request;
    if (! launcher_inputs_read (&r->launcher, err) ||
        (cli_has (r->args, "--fleet-member") &&
         ! launcher_take_seat (&r->launcher, cli_value (r->args, "--fleet-token"), err)))
        return false;
    const struct rec_formation *then =
        run_replay_of (r) ? &player_record (run_replay_of (r)->player)->formation : NULL;
    if (then && then->id && then->member && ! r->launcher.membership)
        r->launcher.membership =
            membership_recorded (then->id, then->member, then->callees, then->callee_count);
    q->launcher.spawn_grant = r->launcher.grant;
    r->launcher.spawner.workdir_snapshot = cli_value (r->args, "--parent-workdir-snapshot");
    q->launcher.spawner = &r->launcher.spawner;
    q->launcher.formation_id = r->launcher.formation_id;
    q->launcher.membership = r->launcher.membership;
    q->time.has_inherited_deadline = cli_has (r->args, "--inherited-deadline");
    q->time.inherited_deadline_ms =
        q->time.has_inherited_deadline ? cli_number (r->args, "--inherited-deadline") : 0;
    uint64_t shared_ms = r->launcher.seat ? fleet_seat_deadline_ms (r->launcher.seat) : 0;
    if (shared_ms) {
        q->time.has_inherited_deadline = true;
        q->time.inherited_deadline_ms = shared_ms;
    }
    q->time.own_deadline_secs =
        cli_has (r->args, "--deadline") ? cli_number (r->args, "--deadline") : 0;
    q->bind_addr = cli_value (r->args, "--bind");
    q->bind_port = cli_has (r->args, "--port") ? (unsigned)cli_number (r->args, "--port") : 0;
    q->launcher.fleet_token = cli_value (r->args, "--fleet-token");
    q->case_id = r->steps ? r->steps->case_id : cli_value (r->args, "--case-id");
    q->dataset_id = cli_value (r->args, "--dataset-id");
    return true;
}

static bool
check_resume (struct run *r, struct mur_error **err)
{
    const struct run_replay *replay = run_replay_of (r);
    const char *context = replay ? replay->context_id : cli_value (r->args, "--context");
    if (! cli_has (r->args, "--resume")) {
        r->request.context_id = context;
        return true;
    }
    if (context)
        return mur_fail (err, E_RUN_015, "--resume %s and --context %s both name a conversation",
                         cli_value (r->args, "--resume"), context);
    if (! run_resolve_resume (cli_value (r->args, "--resume"), r->request.work.root, &r->resumed,
                              err))
        return false;
    r->request.context_id = r->resumed.context_id;
    r->request.resume.session = r->resumed.session_id;
    r->request.resume.trace = r->resumed.trace_path;
    bool is_compact = str_eq (cli_value (r->args, "--resume-mode"), "compact");
    r->request.resume.mode = is_compact ? RESUME_COMPACT : RESUME_FULL;
    return true;
}

static bool
load_dotenv (struct run *r, struct mur_error **err)
{
    if (cli_has (r->args, "--no-env-file"))
        return true;
    _cleanup_free_ char *root = dotenv_root (r->request.file.dir);
    return dotenv_load (root, err);
}

/* --- the manifest --- */

static bool
read_file_manifest (struct run *r, struct mur_error **err)
{
    const char *path = cli_value (r->args, "--manifest");
    struct stat st;
    _cleanup_free_ char *handed_over =
        cli_has (r->args, "--manifest-fd")
            ? x_asprintf ("/proc/self/fd/%s", cli_value (r->args, "--manifest-fd"))
            : NULL;
    if (! yaml_read_text (handed_over ? handed_over : path, E_MAN_002, &r->manifest_text, err)) {
        if (! handed_over && stat (path, &st) < 0)
            missing_manifest_hint (".", "run it in a project's folder, or name one with --manifest",
                                   err);
        return mur_context (err, "the manifest");
    }
    r->request.file.text = r->manifest_text.data;
    r->request.file.len = r->manifest_text.len;
    r->request.file.mode = stat (path, &st) == 0 ? st.st_mode : 0644;
    _cleanup_free_ char *shown = fs_shown_path (path);
    r->manifest = capsule_manifest_parse_aloud (r->manifest_text.data, r->manifest_text.len, shown,
                                                MANIFEST_WITH_SECRETS, err);
    return r->manifest != NULL;
}

static bool
read_replay_manifest (struct run *r, const struct run_replay *replay, struct mur_error **err)
{
    r->request.file.text = replay->manifest;
    r->request.file.len = replay->manifest_len;
    r->request.file.mode = 0644;
    r->manifest = capsule_manifest_parse (replay->manifest, replay->manifest_len,
                                          replay->manifest_name ? replay->manifest_name
                                                                : "the recorded manifest",
                                          MANIFEST_WITH_SECRETS, err);
    return r->manifest && run_change_for_replay (r->manifest, replay, err);
}

static bool
read_named_manifest (struct run *r, struct mur_error **err)
{
    const char *name = cli_value (r->args, "--capsule");
    const char *version = r->version;
    if (! name_check_full (name, E_REG_007, "--capsule", err))
        return false;
    struct resolved *capsule = capsule_resolve (r->request.stores, name, version,
                                                cli_value (r->args, "--capsule-sha256"), err);
    if (! capsule)
        return false;
    r->request.capsule.package = capsule;
    r->request.capsule.artifact = name;
    const struct package *p = capsule->package;
    _cleanup_free_ char *label = x_asprintf ("%s@%s:murmur.yaml", name, version);
    r->manifest = capsule_manifest_parse (p->manifest_text, p->manifest_len, label,
                                          MANIFEST_WITH_SECRETS, err);
    return r->manifest != NULL;
}

static bool
read_manifest (struct run *r, struct mur_error **err)
{
    r->request.stores = stores_new (r->request.file.dir, err);
    if (! r->request.stores)
        return false;
    const struct run_replay *replay = run_replay_of (r);
    /* Its artifacts are those of the record, by digest, and it reads no configuration. */
    if (replay && ! replay->needs_host && ! replay->needs_keys && ! replay->artifact_name)
        trust_policy_waive (r->request.stores->trust);
    if (! (replay                           ? read_replay_manifest (r, replay, err)
           : cli_has (r->args, "--capsule") ? read_named_manifest (r, err)
                                            : read_file_manifest (r, err)))
        return false;
    if (! run_change_manifest (r->args, r->manifest, &r->changed, err))
        return false;
    r->request.manifest = r->manifest;
    r->request.file.changed = &r->changed;
    capsule_manifest_warn_unknown (r->manifest);
    return true;
}

/* --- staging and launching --- */

/* A terminal that cannot move its cursor gets the answer only. What a program launched asks is
 * asked by that program. */
static enum run_view_mode
view_mode (const struct run *r)
{
    if (r->is_print)
        return RUN_VIEW_PRINT;
    if (cli_has (r->args, "--readiness-tokens"))
        return RUN_VIEW_NONE;
    if (r->is_json || ! isatty (STDOUT_FILENO))
        return RUN_VIEW_ASKS;
    return r->is_quiet || str_eq (getenv ("TERM"), "dumb") ? RUN_VIEW_ANSWER : RUN_VIEW_LIVE;
}

static void
announce (void *ctx, struct session *s, const char *url)
{
    struct run *r = ctx;
    if (r->steps)
        return;
    if (r->is_json && ! r->is_print)
        readiness_print_json (s, url, cli_has (r->args, "--readiness-tokens"));
    else if (! r->is_quiet && ! r->is_json)
        readiness_print_human (s, url, cli_has (r->args, "--verbose"),
                               r->is_print ? diag_stderr_line : diag_stdout_line);
    supervisor_tell ("READY=1", "%s%s%s", session_id_text (s), *url ? " at " : "", url);
    struct run_view_style style = { view_mode (r), cli_has (r->args, "--task"), r->is_json,
                                    cli_has (r->args, "--await-watcher") };
    r->view = run_view_start (&style, s);
}

/* The last line, once. */
static void
say_status (struct run *r, enum session_ending ending)
{
    if (r->is_json || r->is_quiet || r->steps || r->has_said_status)
        return;
    r->has_said_status = true;
    (r->is_print ? diag_stderr_line : diag_stdout_line) ("status:  %s",
                                                         session_ending_name (ending));
}

/* While a line that stdout refuses still has a log. */
static void
launch_ended (void *ctx, enum session_ending ending)
{
    struct run *r = ctx;
    run_view_stop (r->view);
    say_status (r, ending);
}

/* The pins of a first launch. A project that cannot be written runs all the same: what it may take
 * is said by its manifest. */
static bool
keep_pins (struct lock *lock, struct mur_error **err)
{
    _cleanup_error_ struct mur_error *caught = NULL;
    if (! lock || lock->exists || ! lock->count || lock_write (lock, &caught))
        return true;
    if (caught->code != E_IO_003 || ! caught->errno_value)
        return mur_propagate (err, steal_ptr (&caught));
    diag_warn (DIAG_RUNTIME, W_REG_004, "what this launch took is not pinned: %s", caught->message);
    return true;
}

static bool
stage_and_launch (struct run *r, enum session_ending *ending, struct mur_error **err)
{
    _cleanup_ (session_freep) struct session *s = session_stage (&r->request, err);
    if (! s)
        return false;
    const struct run_steps *steps = r->steps;
    if (steps && ! steps->staged (steps->ctx, s, err))
        return false;
    if (cli_has (r->args, "--task") &&
        ! session_write_task (s, r->task.data ? r->task.data : "", r->task.len, err))
        return false;
    if ((! steps || steps->may_write_lock) && ! keep_pins (r->request.lock, err))
        return false;
    struct launch_options options = { announce, launch_ended, r };
    bool is_ok = session_launch (s, &options, ending, err);
    const struct launch_counts counts = session_counts (s);
    r->failure = counts.was_interrupted                         ? CLI_INTERRUPTED
                 : counts.was_stopped && supervisor_is_there () ? CLI_STOPPED
                                                                : CLI_FAILED;
    if ((r->is_print && r->is_json) || cli_has (r->args, "--result-line"))
        run_view_print_result (r->view, &counts, session_id_text (s), *ending);
    if (steps)
        steps->ended (steps->ctx, s);
    return is_ok;
}

static bool (*const checks[]) (struct run *r, struct mur_error **err) = {
    read_grant,  find_places,   check_home,       read_launcher,        check_resume,
    load_dotenv, read_manifest, run_lower_policy, run_prepare_decision,
};

static bool (*const launch_checks[]) (struct run *r, struct mur_error **err) = {
    run_check_agent_flags, run_check_resume_record, run_check_workdir,
    run_check_artifacts,   run_take_task,
};

static bool
run_all (struct run *r, enum session_ending *ending, bool *has_launch, struct mur_error **err)
{
    for (size_t i = 0; i < ARRAY_LEN (checks); i++)
        if (! checks[i](r, err))
            return false;
    if (cli_has (r->args, "--explain-scope")) {
        *has_launch = false;
        return run_explain (&r->request, r->is_json, err);
    }
    for (size_t i = 0; i < ARRAY_LEN (launch_checks); i++)
        if (! launch_checks[i](r, err))
            return false;
    return stage_and_launch (r, ending, err);
}

int
cmd_run (const struct cli_args *args, struct mur_error **err)
{
    bool is_unversioned = cli_has (args, "--capsule") && ! cli_has (args, "--capsule-version");
    _cleanup_free_ char *newest = is_unversioned ? run_newest_installed (args) : NULL;
    if (is_unversioned && ! newest)
        return CLI_USAGE;
    if (cli_has (args, "--roster"))
        return roster_run (args, err);
    if (cli_has (args, "--remote-child"))
        return remote_stand_run (args, err);
    struct run r = { .args = args,
                     .version = newest ? newest : cli_value (args, "--capsule-version"),
                     .is_json = cli_has (args, "--json"),
                     .is_print = cli_has (args, "--print"),
                     .is_quiet = cli_has (args, "--quiet"),
                     .failure = CLI_FAILED,
                     .arena = arena_new (),
                     .request = { .time.process_start_ms = clock_monotonic_ms () } };
    enum session_ending ending = ENDING_FAILED;
    bool has_launch = true;
    bool ok = run_all (&r, &ending, &has_launch, err);
    if (has_launch || ! ok)
        say_status (&r, ending);
    run_clear (&r);
    return ok ? CLI_OK : r.failure;
}

bool
run_with_steps (const struct cli_args *args, const struct run_steps *steps,
                enum session_ending *ending, struct mur_error **err)
{
    struct run r = { .args = args,
                     .version = cli_value (args, "--capsule-version"),
                     .steps = steps,
                     .arena = arena_new (),
                     .request = { .time.process_start_ms = clock_monotonic_ms () } };
    bool has_launch = true;
    *ending = ENDING_FAILED;
    bool is_ok = run_all (&r, ending, &has_launch, err);
    run_clear (&r);
    return is_ok;
}

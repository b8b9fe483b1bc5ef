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
#include "base/json.h"
#include "cli/line/args.h"
#include "cli/line/missing_manifest.h"
#include "cli/line/missing_programs.h"
#include "cli/run/commands.h"
#include "cli/run/launcher_inputs.h"
#include "cli/run/remote_stand.h"
#include "cli/run/roster_run.h"
#include "cli/run/run_explain.h"
#include "cli/run/run_inputs.h"
#include "cli/run/run_view.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "home/paths.h"
#include "manifest/text/dotenv.h"
#include "manifest/text/yaml.h"
#include "policy/check.h"
#include "policy/warn.h"
#include "replay/play/player.h"
#include "sandbox/host/host.h"
#include "session/launch.h"
#include "session/readiness.h"
#include "session/resume.h"
#include "spawn/child/lifeline.h"

#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What staging is asked, filled by the check that knows each part, and what only the command needs.
 */
struct run {
    const struct cli_args *args;
    const char *version;           /* of --capsule */
    const struct run_steps *steps; /* NULL: nobody looks on */
    bool is_json, is_print, is_quiet;
    struct run_view *view; /* what the run shows of itself; NULL: nothing */
    struct arena *arena;   /* of the request's texts */
    struct stage_request request;
    /* The request has these as read only. */
    struct capsule_manifest *manifest;
    struct config *config;
    struct host_decision decision;
    bool has_said_status, was_interrupted;
    struct launcher_inputs launcher;
    struct policy_request policy_request;
    struct buf manifest_text;
    struct strv changed;    /* keys that the command line says otherwise */
    struct resumed resumed; /* --resume; all NULL without */
    struct buf task;
};

static void
run_clear (struct run *r)
{
    buf_free (&r->manifest_text);
    strv_free (&r->changed);
    resumed_clear (&r->resumed);
    resolved_freep (&r->request.capsule.package);
    stores_freep (&r->request.stores);
    policy_freep (&r->request.policy);
    capsule_manifest_freep (&r->manifest);
    config_freep (&r->config);
    host_decision_clear (&r->decision);
    host_probe_stop ();
    run_view_freep (&r->view);
    lock_freep (&r->request.lock);
    buf_free (&r->task);
    launcher_inputs_clear (&r->launcher);
    arena_free (r->arena);
}

/* The text (taken over) for as long as the request; NULL stays NULL. */
static const char *
keep (struct run *r, char *text)
{
    const char *kept = text ? arena_strdup (r->arena, text) : NULL;
    free (text);
    return kept;
}

/* The record that runs again, or NULL. */
static const struct run_replay *
replay_of (const struct run *r)
{
    return r->steps ? r->steps->replay : NULL;
}

/* --- arguments and places --- */

/* A capsule run by name has no folder of its own: its store root, else its work folder, else here.
 */
static bool
find_places (struct run *r, struct mur_error **err)
{
    struct stage_request *q = &r->request;
    const struct run_replay *replay = replay_of (r);
    const char *workdir = cli_value (r->args, "--workdir");
    if (replay) {
        q->player = replay->player;
        q->file.name = replay->manifest_name;
        q->file.dir = replay->manifest_dir;
        q->work.root = replay->work_root;
        r->policy_request.home_dir = keep (r, home_path (err));
        return r->policy_request.home_dir != NULL;
    }
    if (cli_has (r->args, "--capsule")) {
        const char *root = cli_value (r->args, "--store-root");
        q->file.dir = keep (r, fs_canonical_path (root ? root : workdir ? workdir : ".", err));
    } else {
        _cleanup_free_ char *path = x_strdup (cli_value (r->args, "--manifest"));
        _cleanup_free_ char *copy = x_strdup (path);
        q->file.name = arena_strdup (r->arena, basename (copy));
        q->file.dir = keep (r, fs_canonical_path (dirname (path), err));
    }
    if (! q->file.dir)
        return false;
    q->work.dir = workdir;
    q->work.root = keep (r, home_work_root (workdir, q->file.dir, err));
    r->policy_request.home_dir = keep (r, home_path (err));
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
    if (! launcher_inputs_read (&r->launcher, err))
        return false;
    const struct rec_formation *then =
        replay_of (r) ? &player_record (replay_of (r)->player)->formation : NULL;
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
    q->time.own_deadline_secs =
        cli_has (r->args, "--deadline") ? cli_number (r->args, "--deadline") : 0;
    q->bind_addr = cli_value (r->args, "--bind");
    q->bind_port = cli_has (r->args, "--port") ? (unsigned)cli_number (r->args, "--port") : 0;
    q->launcher.fleet_token = cli_value (r->args, "--fleet-token");
    q->case_id = r->steps ? r->steps->case_id : NULL;
    return true;
}

static bool
check_resume (struct run *r, struct mur_error **err)
{
    const struct run_replay *replay = replay_of (r);
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
    const struct run_replay *replay = replay_of (r);
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

/* --- policy --- */

/* A block that is read and does nothing is said. */
static void
note_unread_blocks (const struct capsule_manifest *m)
{
    if (m->deploy)
        diag_note ("deploy: is read by nothing in this version of mur");
}

/* A configuration that asks for nothing is weaker than every class; the weakest class stands for
 * it. */
static enum containment_class
config_class (enum config_floor floor)
{
    return floor == CONFIG_FLOOR_SEALED   ? CONTAINMENT_SEALED
           : floor == CONFIG_FLOOR_SCOPED ? CONTAINMENT_SCOPED
                                          : CONTAINMENT_ADVISORY;
}

static bool
lower_policy (struct run *r, struct mur_error **err)
{
    enum containment_class flag = CONTAINMENT_ADVISORY;
    if (! policy_check_env (r->manifest, err))
        return false;
    const struct run_replay *replay = replay_of (r);
    r->config = replay && ! replay->needs_keys ? config_none () : config_load (err);
    if (! r->config)
        return false;
    /* A pod has no control group of its own to give to commands: its limits are the wall. */
    r->config->cgroup_is_optional |= cli_has (r->args, "--fleet-token");
    r->request.config = r->config;
    r->policy_request = (struct policy_request){
        .home_dir = r->policy_request.home_dir,
        .manifest_dir = r->request.file.dir,
        .work_root = r->request.work.root,
        .config_floor = config_class (r->config->containment),
        .flag_floor = flag,
        .flag_task_acceptance = cli_value (r->args, "--lifecycle-task-acceptance"),
        .flag_after_task = cli_value (r->args, "--lifecycle-after-task"),
        .flag_conversation = cli_value (r->args, "--lifecycle-conversation"),
        .context_id = r->request.context_id,
        .approvals = r->launcher.spawner.approvals,
        .bind_addr = r->request.bind_addr,
    };
    struct policy *p = r->request.policy = policy_lower (r->manifest, &r->policy_request, err);
    if (! p)
        return false;
    policy_warn_door (p, false);
    policy_warn_parse (p, config_credential_copy, r->config);
    note_unread_blocks (r->manifest);
    missing_programs_note (p);
    if (! policy_check_tool_names (r->manifest, err) ||
        (cli_has (r->args, "--containment") &&
         ! containment_flag (cli_value (r->args, "--containment"), &flag, err)))
        return false;
    r->policy_request.flag_floor = flag;
    if (p->containment_floor < flag)
        p->containment_floor = flag;
    if (replay && ! replay->needs_host) /* no command is started that it would bind */
        p->containment_floor = CONTAINMENT_ADVISORY;
    return true;
}

/* A script capsule without a floor starts no native process and records no tier: nothing would read
 * the probe. */
static bool
needs_probe (const struct run *r)
{
    const struct policy *p = r->request.policy;
    if (replay_of (r) && ! replay_of (r)->needs_host)
        return false;
    return r->manifest->inference || p->containment_floor > CONTAINMENT_ADVISORY ||
           cli_has (r->args, "--explain-scope") || policy_may_run_native (p, false);
}

/* ~/.murmur inside the work folder, or what sessions have of it, is out of every sandbox's
 * protection. */
static const char *
dir_inside_workdir (struct run *r)
{
    static const char *const parts[] = { "", "/records", "/sessions" };
    for (size_t i = 0; i < ARRAY_LEN (parts); i++) {
        const char *path = arena_printf (r->arena, "%s%s", r->policy_request.home_dir, parts[i]);
        if (fs_path_is_within (path, r->request.work.root))
            return path;
    }
    return NULL;
}

/* The operator's stance, which no child has of its launcher. */
static bool
is_unconfined (const struct run *r)
{
    return ! cli_has (r->args, "--contained-launch") &&
           (cli_has (r->args, "--unconfined") || r->config->is_unconfined);
}

/* The probe runs beside us from here; staging waits for it where a refusal or a record needs it. */
static bool
prepare_decision (struct run *r, struct mur_error **err)
{
    (void)err;
    const struct policy *p = r->request.policy;
    r->decision = (struct host_decision){
        .floor = p->containment_floor,
        .capsule = { .workdir_exec = p->files.exec_allowed && ! p->files.exec_is_walled,
                     .may_be_unconfined = is_unconfined (r),
                     .dir_inside_workdir = dir_inside_workdir (r),
                     .work_dir = r->request.work.root },
        .is_without_host = ! needs_probe (r),
    };
    r->request.decision = &r->decision;
    if (! r->decision.is_without_host)
        host_probe_start ();
    return true;
}

/* --- what the launch needs --- */

static bool
has_harness (const struct run *r)
{
    const struct inference *inference = r->manifest->inference;
    return inference && inference->transport == TRANSPORT_PROCESS;
}

static bool
check_agent_flags (struct run *r, struct mur_error **err)
{
    bool is_agent = r->manifest->inference != NULL;
    if (! is_agent && cli_has (r->args, "--system-prompt"))
        return mur_fail (err, E_IO_003, "--system-prompt needs a capsule with an inference: block");
    if (! is_agent && lifeline_fd (LIFELINE_FORMATION) >= 0)
        return mur_fail (err, E_RUN_046,
                         "a script capsule cannot be a member: it holds a formation lifeline but "
                         "has no inference: block");
    if (! is_agent && cli_has (r->args, "--deadline")) {
        mur_fail (err, E_IO_003, "--deadline needs a capsule with an inference: block");
        return mur_hint (err, "bound a script with capabilities.limits.deadline_seconds");
    }
    r->request.resume.forgets_session = cli_has (r->args, "--forget-session");
    if (r->request.resume.forgets_session && ! has_harness (r))
        return mur_fail (err, E_RUN_039, "--forget-session: %s keeps no harness session to forget",
                         is_agent ? "transport http" : "a script capsule");
    if (has_harness (r) && str_eq (cli_value (r->args, "--resume-mode"), "compact"))
        return mur_fail (err, E_RUN_037,
                         "--resume-mode compact: under transport process the harness holds the "
                         "conversation");
    const struct run_replay *replay = replay_of (r);
    if (replay && replay->has_prompt) {
        r->request.system_prompt_is_overridden = true;
        r->request.system_prompt = replay->prompt;
    } else if (cli_has (r->args, "--system-prompt")) {
        const char *text = cli_value (r->args, "--system-prompt");
        text += strspn (text, " \t\r\n");
        size_t len = strlen (text);
        while (len && strchr (" \t\r\n", text[len - 1]))
            len--;
        r->request.system_prompt_is_overridden = true;
        r->request.system_prompt = len ? arena_strndup (r->arena, text, len) : NULL;
    }
    return true;
}

static bool
check_resume_record (struct run *r, struct mur_error **err)
{
    if (! r->resumed.session_id)
        return true;
    const char *store = r->request.policy->record_store, *context = r->request.context_id;
    bool exists = has_harness (r) ? harness_memory_exists (store, context)
                                  : conversation_exists (store, context);
    return exists || mur_fail (err, E_RUN_017, "--resume: context %s of session %s has no %s",
                               context, r->resumed.session_id,
                               has_harness (r) ? "harness session to resume" : "record to load");
}

static bool
read_task (struct run *r, struct mur_error **err)
{
    const char *value = cli_value (r->args, "--task");
    return ! value || run_read_task (value, &r->task, err);
}

static bool
check_artifacts (struct run *r, struct mur_error **err)
{
    struct stage_request *q = &r->request;
    if (! q->capsule.package && ! replay_of (r)) { /* a replay names what is another than it was */
        q->lock = lock_read (q->file.dir, err);
        if (! q->lock)
            return false;
    }
    size_t count = 0, all = r->manifest->artifacts.len;
    _cleanup_free_ const char **names = x_new_array (const char *, all + 1);
    _cleanup_free_ const char **versions = x_new_array (const char *, all + 1);
    _cleanup_free_ struct resolve_use *uses = x_new_array (struct resolve_use, all + 1);
    for (size_t i = 0; i < all; i++) {
        const struct artifact_entry *e = &r->manifest->artifacts.items[i];
        if (e->source)
            continue;
        const struct inference *inference = r->manifest->inference;
        names[count] = e->name;
        versions[count] = e->version;
        uses[count].field = "artifacts";
        uses[count].use_name = e->role == ROLE_HOOK                        ? "hook"
                               : e->role == ROLE_DRIVER                    ? "driver"
                               : e->gateway                                ? "gateway holder"
                               : inference && inference->prompt_entry == e ? "system prompt"
                                                                           : NULL;
        uses[count].is_plain = ! uses[count].use_name;
        count++;
    }
    if (! artifacts_check_present (q->stores, q->lock, names, versions, uses, count, err))
        return false;
    if (! r->manifest->inference && ! q->capsule.package)
        q->capsule.component_path = keep (r, package_component_in (q->file.dir, err));
    return r->manifest->inference || q->capsule.package || q->capsule.component_path;
}

static bool
check_workdir (struct run *r, struct mur_error **err)
{
    const char *workdir = cli_value (r->args, "--workdir");
    struct stat st;
    if (workdir && (stat (workdir, &st) != 0 || ! S_ISDIR (st.st_mode)))
        return mur_fail (err, E_IO_003, "--workdir %s is not a directory", workdir);
    if (! cli_has (r->args, "--workdir-identity"))
        return true;
    unsigned long long dev, ino;
    if (! run_parse_identity (cli_value (r->args, "--workdir-identity"), &dev, &ino, err))
        return false;
    r->request.work.has_identity = true;
    r->request.work.dev = (dev_t)dev;
    r->request.work.ino = (ino_t)ino;
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
    struct run_view_style style = { view_mode (r), cli_has (r->args, "--task"), r->is_json,
                                    cli_has (r->args, "--await-watcher") };
    r->view = run_view_start (&style, s);
}

/* --print --json: one object, keys in name order. */
static void
print_result (const struct run *r, const struct session *s, enum session_ending ending)
{
    struct launch_counts counts = session_counts (s);
    _cleanup_json_ json_t *result = json_object ();
    json_set_string (result, "answer", run_view_answer (r->view));
    json_set_u64 (result, "duration_ms", counts.duration_ms);
    json_set_u64 (result, "input_tokens", counts.input_tokens);
    json_set_u64 (result, "output_tokens", counts.output_tokens);
    json_set_string (result, "session_id", session_id_text (s));
    json_set_string (result, "status", session_ending_name (ending));
    json_set_u64 (result, "turns", counts.turns);
    _cleanup_free_ char *text = json_text (result, JSON_TEXT_ORDERED);
    out_printf ("%s\n", text);
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
    struct lock *lock = r->request.lock;
    bool writes_lock = lock && ! lock->exists && lock->count && (! steps || steps->may_write_lock);
    if (writes_lock && ! lock_write (lock, err))
        return false;
    struct launch_options options = { announce, launch_ended, r };
    bool is_ok = session_launch (s, &options, ending, err);
    r->was_interrupted = session_counts (s).was_interrupted;
    if ((r->is_print && r->is_json) || cli_has (r->args, "--result-line"))
        print_result (r, s, *ending);
    if (steps)
        steps->ended (steps->ctx, s);
    return is_ok;
}

static bool (*const checks[]) (struct run *r, struct mur_error **err) = {
    read_grant,  find_places,   check_home,   read_launcher,    check_resume,
    load_dotenv, read_manifest, lower_policy, prepare_decision,
};

static bool (*const launch_checks[]) (struct run *r, struct mur_error **err) = {
    check_agent_flags, check_resume_record, check_workdir, check_artifacts, read_task,
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
                     .arena = arena_new (),
                     .request = { .time.process_start_ms = clock_monotonic_ms () } };
    enum session_ending ending = ENDING_FAILED;
    bool has_launch = true;
    bool ok = run_all (&r, &ending, &has_launch, err);
    if (has_launch || ! ok)
        say_status (&r, ending);
    run_clear (&r);
    return ok ? CLI_OK : r.was_interrupted ? CLI_INTERRUPTED : CLI_FAILED;
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

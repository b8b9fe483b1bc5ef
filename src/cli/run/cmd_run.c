/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur run`: from the command line to a launched session and its exit status (spec/cli.md 2).
 *
 * The functions below run in the order of the checks; the first failure wins, and nothing is
 * created before staging.
 */
#include "artifact/names/name.h"
#include "artifact/store/lock_file.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "cli/line/args.h"
#include "cli/run/commands.h"
#include "cli/run/launcher_inputs.h"
#include "cli/run/roster_run.h"
#include "cli/run/run_inputs.h"
#include "cli/run/run_steps.h"
#include "fs/root.h"
#include "home/paths.h"
#include "manifest/text/dotenv.h"
#include "manifest/text/yaml.h"
#include "policy/scope_report.h"
#include "sandbox/host/host.h"
#include "session/grants.h"
#include "session/launch.h"
#include "session/readiness.h"
#include "session/resume.h"
#include "spawn/child/lifeline.h"

#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

struct run {
    const struct cli_args *args;
    const struct run_steps *steps; /* NULL: nobody looks on */
    bool is_json;
    char *home;
    char *manifest_dir; /* absolute */
    char *manifest_name;
    char *work_root;
    struct buf manifest_text;
    mode_t manifest_mode;
    struct resumed resumed; /* --resume; all NULL without */
    char *context_id;
    struct stores *stores;
    struct resolved *capsule; /* --capsule */
    struct capsule_manifest *manifest;
    struct config *config;
    struct policy_request policy_request;
    struct policy *policy;
    struct host_decision decision;
    char *dir_inside_workdir;
    struct lock *lock;
    char *system_prompt;
    struct buf task;
    char *component_path;
    struct launcher_inputs launcher;
    struct stage_request request;
};

static void
run_clear (struct run *r)
{
    free (r->home);
    free (r->manifest_dir);
    free (r->manifest_name);
    free (r->work_root);
    buf_free (&r->manifest_text);
    resumed_clear (&r->resumed);
    free (r->context_id);
    resolved_freep (&r->capsule);
    stores_freep (&r->stores);
    policy_freep (&r->policy);
    capsule_manifest_freep (&r->manifest);
    config_freep (&r->config);
    host_decision_clear (&r->decision);
    host_probe_stop ();
    free (r->dir_inside_workdir);
    lock_freep (&r->lock);
    free (r->system_prompt);
    buf_free (&r->task);
    free (r->component_path);
    launcher_inputs_clear (&r->launcher);
}

/* --- arguments and places --- */

/* A capsule run by name has no folder of its own: its store root, else its work folder, else here.
 */
static bool
find_places (struct run *r, struct mur_error **err)
{
    const char *workdir = cli_value (r->args, "--workdir");
    if (cli_has (r->args, "--capsule")) {
        const char *root = cli_value (r->args, "--store-root");
        r->manifest_dir = fs_canonical_path (root ? root : workdir ? workdir : ".", err);
    } else {
        _cleanup_free_ char *path = x_strdup (cli_value (r->args, "--manifest"));
        _cleanup_free_ char *copy = x_strdup (path);
        r->manifest_name = x_strdup (basename (copy));
        r->manifest_dir = fs_canonical_path (dirname (path), err);
    }
    if (! r->manifest_dir)
        return false;
    r->work_root = home_work_root (workdir, r->manifest_dir, err);
    r->home = home_path (err);
    return r->work_root && r->home;
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
    if (! cli_has (r->args, "--spawn-grant-stdin"))
        return true;
    r->launcher.grant = launcher_read_grant (err);
    return r->launcher.grant != NULL;
}

static bool
read_launcher (struct run *r, struct mur_error **err)
{
    return launcher_inputs_read (&r->launcher, err);
}

static bool
check_resume (struct run *r, struct mur_error **err)
{
    const char *context = cli_value (r->args, "--context");
    if (! cli_has (r->args, "--resume")) {
        r->context_id = context ? x_strdup (context) : NULL;
        return true;
    }
    if (context)
        return mur_fail (err, E_RUN_015, "--resume %s and --context %s both name a conversation",
                         cli_value (r->args, "--resume"), context);
    if (! run_resolve_resume (cli_value (r->args, "--resume"), r->work_root, &r->resumed, err))
        return false;
    r->context_id = x_strdup (r->resumed.context_id);
    return true;
}

static bool
load_dotenv (struct run *r, struct mur_error **err)
{
    if (cli_has (r->args, "--no-env-file"))
        return true;
    _cleanup_free_ char *root = dotenv_root (r->manifest_dir);
    return dotenv_load (root, err);
}

/* --- the manifest --- */

static bool
read_file_manifest (struct run *r, struct mur_error **err)
{
    const char *path = cli_value (r->args, "--manifest");
    struct stat st;
    if (! yaml_read_text (path, E_MAN_002, &r->manifest_text, err)) {
        if (stat (path, &st) < 0)
            mur_hint (err, "run it in a project's folder, or name one with --manifest; `mur new "
                           "agent hello` creates one");
        return mur_context (err, "the manifest");
    }
    r->manifest_mode = stat (path, &st) == 0 ? st.st_mode : 0644;
    _cleanup_free_ char *shown = fs_shown_path (path);
    r->manifest = capsule_manifest_parse (r->manifest_text.data, r->manifest_text.len, shown,
                                          MANIFEST_WITH_SECRETS, err);
    return r->manifest != NULL;
}

static bool
read_named_manifest (struct run *r, struct mur_error **err)
{
    const char *name = cli_value (r->args, "--capsule");
    const char *version = cli_value (r->args, "--capsule-version");
    if (! name_check_full (name, E_REG_007, "--capsule", err))
        return false;
    r->capsule =
        capsule_resolve (r->stores, name, version, cli_value (r->args, "--capsule-sha256"), err);
    if (! r->capsule)
        return false;
    const struct package *p = r->capsule->package;
    _cleanup_free_ char *label = x_asprintf ("%s@%s:murmur.yaml", name, version);
    r->manifest = capsule_manifest_parse (p->manifest_text, p->manifest_len, label,
                                          MANIFEST_WITH_SECRETS, err);
    return r->manifest != NULL;
}

static bool
read_manifest (struct run *r, struct mur_error **err)
{
    r->stores = stores_new (r->manifest_dir, err);
    if (! r->stores)
        return false;
    if (! (cli_has (r->args, "--capsule") ? read_named_manifest (r, err)
                                          : read_file_manifest (r, err)))
        return false;
    capsule_manifest_warn_unknown (r->manifest);
    return true;
}

/* --- policy --- */

static struct secret *
config_key (void *ctx, const char *name)
{
    const struct secret *value = config_credential (ctx, name);
    return value ? secret_copy (value) : NULL;
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
    if (cli_has (r->args, "--containment") &&
        ! containment_flag (cli_value (r->args, "--containment"), &flag, err))
        return false;
    r->config = config_load (err);
    if (! r->config)
        return false;
    r->policy_request = (struct policy_request){
        .home_dir = r->home,
        .manifest_dir = r->manifest_dir,
        .work_root = r->work_root,
        .config_floor = config_class (r->config->containment),
        .flag_floor = flag,
        .flag_task_acceptance = cli_value (r->args, "--lifecycle-task-acceptance"),
        .flag_after_task = cli_value (r->args, "--lifecycle-after-task"),
        .context_id = r->context_id,
        .bind_addr = cli_value (r->args, "--bind"),
    };
    r->policy = policy_lower (r->manifest, &r->policy_request, err);
    if (! r->policy)
        return false;
    policy_warn_door (r->policy, false);
    policy_warn_parse (r->policy, config_key, r->config);
    return policy_check_tool_names (r->manifest, err);
}

/* A script capsule without a floor starts no native process and records no tier: nothing would read
 * the probe. */
static bool
needs_probe (const struct run *r)
{
    return r->manifest->inference || r->policy->containment_floor > CONTAINMENT_ADVISORY ||
           cli_has (r->args, "--explain-scope") || policy_may_run_native (r->policy, false);
}

/* ~/.murmur inside the work folder, or what sessions have of it, is out of every sandbox's
 * protection. */
static void
take_dir_inside_workdir (struct run *r)
{
    static const char *const parts[] = { "", "/records", "/sessions" };
    for (size_t i = 0; i < ARRAY_LEN (parts) && ! r->dir_inside_workdir; i++) {
        _cleanup_free_ char *path = x_asprintf ("%s%s", r->home, parts[i]);
        if (fs_path_is_within (path, r->work_root))
            r->dir_inside_workdir = steal_ptr (&path);
    }
}

/* The probe runs beside us from here; staging waits for it where a refusal or a record needs it. */
static bool
prepare_decision (struct run *r, struct mur_error **err)
{
    (void)err;
    take_dir_inside_workdir (r);
    r->decision = (struct host_decision){
        .floor = r->policy->containment_floor,
        .capsule = { r->policy->workdir_exec_allowed, r->dir_inside_workdir, r->work_root },
        .is_without_host = ! needs_probe (r),
    };
    if (! r->decision.is_without_host)
        host_probe_start ();
    return true;
}

/* --- --explain-scope --- */

/* What the lock tells of an entry without opening a store: a hash for any platform is no native
 * tool. */
static void
read_lock_facts (struct run *r, struct lock *lock, bool *is_native, bool *is_resolved)
{
    for (size_t i = 0; i < r->manifest->artifacts.len; i++) {
        const struct artifact_entry *e = &r->manifest->artifacts.items[i];
        const struct lock_entry *pin = lock && lock->exists ? lock_find (lock, e->name) : NULL;
        is_resolved[i] = pin != NULL;
        is_native[i] = pin && ! pin->any;
    }
}

static bool
explain_scope (struct run *r, struct mur_error **err)
{
    if (! policy_check_explain (r->policy, err))
        return false;
    _cleanup_lock_ struct lock *lock = lock_read (r->manifest_dir, NULL);
    size_t count = r->manifest->artifacts.len + 1;
    _cleanup_free_ bool *is_native = x_calloc (count, sizeof (bool));
    _cleanup_free_ bool *is_resolved = x_calloc (count, sizeof (bool));
    read_lock_facts (r, lock, is_native, is_resolved);
    struct report_facts facts = { 0 };
    report_facts_fill (r->policy, host_decide (&r->decision), &facts);
    facts.artifact_is_native = is_native;
    facts.artifact_is_resolved = is_resolved;
    bool has_native = false;
    for (size_t i = 0; i < r->manifest->artifacts.len; i++)
        has_native |= is_native[i];
    grants_look (r->policy, r->work_root, policy_may_run_native (r->policy, has_native), &facts);
    _cleanup_buf_ struct buf text = { 0 };
    if (r->is_json) {
        _cleanup_json_ json_t *report = scope_report_json (r->policy, &facts);
        json_append (&text, report, JSON_TEXT_ORDERED);
        buf_putc (&text, '\n');
    } else {
        scope_report_text (r->policy, &facts, &text);
    }
    out_write (text.data, text.len);
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
    if (cli_has (r->args, "--forget-session") && ! has_harness (r))
        return mur_fail (err, E_RUN_039, "--forget-session: %s keeps no harness session to forget",
                         is_agent ? "transport http" : "a script capsule");
    if (has_harness (r) && str_eq (cli_value (r->args, "--resume-mode"), "compact"))
        return mur_fail (err, E_RUN_037,
                         "--resume-mode compact: under transport process the harness holds the "
                         "conversation");
    if (cli_has (r->args, "--system-prompt")) {
        const char *text = cli_value (r->args, "--system-prompt");
        text += strspn (text, " \t\r\n");
        size_t len = strlen (text);
        while (len && strchr (" \t\r\n", text[len - 1]))
            len--;
        r->system_prompt = len ? x_strndup (text, len) : NULL;
    }
    return true;
}

static bool
check_resume_record (struct run *r, struct mur_error **err)
{
    if (! r->resumed.session_id)
        return true;
    const char *store = r->policy->record_store;
    bool exists = has_harness (r) ? harness_memory_exists (store, r->context_id)
                                  : conversation_exists (store, r->context_id);
    return exists || mur_fail (err, E_RUN_017, "--resume: context %s of session %s has no %s",
                               r->context_id, r->resumed.session_id,
                               has_harness (r) ? "harness session to resume" : "record to load");
}

/* The contents of an existing file, else the text itself. */
static bool
read_task (struct run *r, struct mur_error **err)
{
    const char *value = cli_value (r->args, "--task");
    struct stat st;
    if (! value)
        return true;
    if (stat (value, &st) == 0 && ! S_ISDIR (st.st_mode))
        return fs_read_path (value, TASK_TEXT_LIMIT_BYTES, &r->task, err) ||
               mur_context (err, "--task");
    buf_puts (&r->task, value);
    return true;
}

static bool
check_artifacts (struct run *r, struct mur_error **err)
{
    if (! r->capsule) {
        r->lock = lock_read (r->manifest_dir, err);
        if (! r->lock)
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
    if (! artifacts_check_present (r->stores, r->lock, names, versions, uses, count, err))
        return false;
    if (! r->manifest->inference && ! r->capsule)
        r->component_path = run_find_component (r->manifest_dir, err);
    return r->manifest->inference || r->capsule || r->component_path;
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
    r->request.has_workdir_identity = true;
    r->request.workdir_dev = (dev_t)dev;
    r->request.workdir_ino = (ino_t)ino;
    return true;
}

/* --- staging and launching --- */

static void
fill_request (struct run *r, uint64_t started_ms)
{
    struct stage_request *q = &r->request;
    q->manifest = r->manifest;
    q->policy = r->policy;
    q->decision = &r->decision;
    q->config = r->config;
    q->stores = r->stores;
    q->lock = r->lock;
    q->manifest_dir = r->manifest_dir;
    q->manifest_name = r->capsule ? NULL : r->manifest_name;
    q->manifest_text = r->manifest_text.data;
    q->manifest_len = r->manifest_text.len;
    q->manifest_mode = r->manifest_mode;
    q->capsule_artifact = r->capsule ? cli_value (r->args, "--capsule") : NULL;
    q->component_path = r->component_path;
    q->capsule = r->capsule;
    q->workdir = cli_value (r->args, "--workdir");
    q->work_root = r->work_root;
    q->system_prompt = r->system_prompt;
    q->system_prompt_is_overridden = cli_has (r->args, "--system-prompt");
    q->context_id = r->context_id;
    q->forgets_session = cli_has (r->args, "--forget-session");
    bool is_compact = str_eq (cli_value (r->args, "--resume-mode"), "compact");
    q->resume_mode = ! r->resumed.session_id ? RESUME_NONE
                     : is_compact            ? RESUME_COMPACT
                                             : RESUME_FULL;
    q->resumed_session = r->resumed.session_id;
    q->resumed_trace = r->resumed.trace_path;
    q->process_start_ms = started_ms;
    q->own_deadline_secs = cli_has (r->args, "--deadline") ? cli_number (r->args, "--deadline") : 0;
    q->has_inherited_deadline = cli_has (r->args, "--inherited-deadline");
    q->inherited_deadline_ms =
        q->has_inherited_deadline ? cli_number (r->args, "--inherited-deadline") : 0;
    q->spawn_grant = r->launcher.grant;
    q->spawner = &r->launcher.spawner;
    q->formation_id = r->launcher.formation_id;
    q->membership = r->launcher.membership;
    q->bind_addr = cli_value (r->args, "--bind");
    q->case_id = r->steps ? r->steps->case_id : NULL;
}

static void
announce (void *ctx, struct session *s, const char *url)
{
    const struct run *r = ctx;
    if (r->steps)
        return;
    if (r->is_json)
        readiness_print_json (s, url, cli_has (r->args, "--readiness-tokens"));
    else
        readiness_print_human (s, url, cli_has (r->args, "--verbose"));
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
    bool writes_lock =
        r->lock && ! r->lock->exists && r->lock->count && (! steps || steps->may_write_lock);
    if (writes_lock && ! lock_write (r->lock, err))
        return false;
    struct launch_options options = { announce, r };
    bool is_ok = session_launch (s, &options, ending, err);
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
run_all (struct run *r, uint64_t started_ms, enum session_ending *ending, bool *has_launch,
         struct mur_error **err)
{
    for (size_t i = 0; i < ARRAY_LEN (checks); i++)
        if (! checks[i](r, err))
            return false;
    if (cli_has (r->args, "--explain-scope")) {
        *has_launch = false;
        return explain_scope (r, err);
    }
    for (size_t i = 0; i < ARRAY_LEN (launch_checks); i++)
        if (! launch_checks[i](r, err))
            return false;
    fill_request (r, started_ms);
    return stage_and_launch (r, ending, err);
}

int
cmd_run (const struct cli_args *args, struct mur_error **err)
{
    if (cli_has (args, "--roster"))
        return roster_run (args, err);
    uint64_t started_ms = clock_monotonic_ms ();
    struct run r = { .args = args, .is_json = cli_has (args, "--json") };
    enum session_ending ending = ENDING_FAILED;
    bool has_launch = true;
    bool ok = run_all (&r, started_ms, &ending, &has_launch, err);
    if (! r.is_json && (has_launch || ! ok))
        diag_stdout_line ("status:  %s", session_ending_name (ending));
    run_clear (&r);
    return ok ? CLI_OK : CLI_FAILED;
}

bool
run_with_steps (const struct cli_args *args, const struct run_steps *steps,
                enum session_ending *ending, struct mur_error **err)
{
    uint64_t started_ms = clock_monotonic_ms ();
    struct run r = { .args = args, .steps = steps };
    bool has_launch = true;
    *ending = ENDING_FAILED;
    bool is_ok = run_all (&r, started_ms, ending, &has_launch, err);
    run_clear (&r);
    return is_ok;
}

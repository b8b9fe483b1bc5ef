/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_policy.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "cli/line/missing_programs.h"
#include "cli/run/run_inputs.h"
#include "fs/paths.h"
#include "policy/check.h"
#include "policy/warn.h"

#include <string.h>

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

bool
run_lower_policy (struct run *r, struct mur_error **err)
{
    enum containment_class flag = CONTAINMENT_ADVISORY;
    if (! policy_check_env (r->manifest, err))
        return false;
    const struct run_replay *replay = run_replay_of (r);
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
    if (run_replay_of (r) && ! run_replay_of (r)->needs_host)
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

/* Staging waits for the probe where a refusal or a record needs it. */
bool
run_prepare_decision (struct run *r, struct mur_error **err)
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

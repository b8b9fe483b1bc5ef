/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_needs.h"

#include "artifact/store/lock_file.h"
#include "base/alloc.h"
#include "cli/run/run_inputs.h"
#include "session/resume.h"
#include "spawn/child/lifeline.h"

#include <string.h>
#include <sys/stat.h>

static bool
has_harness (const struct run *r)
{
    const struct inference *inference = r->manifest->inference;
    return inference && inference->transport == TRANSPORT_PROCESS;
}

bool
run_check_agent_flags (struct run *r, struct mur_error **err)
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
    const struct run_replay *replay = run_replay_of (r);
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

bool
run_check_resume_record (struct run *r, struct mur_error **err)
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

bool
run_take_task (struct run *r, struct mur_error **err)
{
    const char *value = cli_value (r->args, "--task");
    return ! value || run_read_task (value, &r->task, err);
}

bool
run_check_artifacts (struct run *r, struct mur_error **err)
{
    struct stage_request *q = &r->request;
    if (! q->capsule.package &&
        ! run_replay_of (r)) { /* a replay names what is another than it was */
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
        q->capsule.component_path = run_keep (r, package_component_in (q->file.dir, err));
    return r->manifest->inference || q->capsule.package || q->capsule.component_path;
}

bool
run_check_workdir (struct run *r, struct mur_error **err)
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

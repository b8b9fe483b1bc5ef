/* SPDX-License-Identifier: Apache-2.0
 *
 * The ordered steps of staging (docs/spec/session.md 3.2). See stage.h.
 *
 * The table below is the order; each step may refuse, and what a refusal leaves is what
 * session_free cannot undo: nothing before "session directories", the records directory and a
 * default work folder after it.
 */
#include "session/stage.h"
#include "door/callers/auth.h"
#include "door/door.h"
#include "door/tasks/tasks.h"
#include "fs/latch.h"
#include "net/http_client.h"
#include "policy/check.h"
#include "policy/warn.h"
#include "replay/play/player.h"
#include "session/commands/confine_check.h"
#include "session/commands/processes.h"
#include "session/grants.h"
#include "session/handoff/handoff.h"
#include "session/handoff/member_calls.h"
#include "session/loop/going.h"
#include "session/model/stage_driver.h"
#include "session/model/steering.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "sandbox/host/host.h"
#include "session/calls/approvals.h"
#include "session/calls/read_only.h"
#include "session/commands/confine.h"
#include "session/guests/guests.h"
#include "session/guests/recording.h"
#include "session/harness/stage_harness.h"
#include "session/hooks/hooks.h"
#include "session/loop/compaction.h"
#include "session/model/controller.h"
#include "session/served/served.h"
#include "session/servers/servers.h"
#include "session/stage/places.h"
#include "session/stage/provided_table.h"
#include "session/stage/stage_script.h"
#include "session/stage/stage_spans.h"
#include "session/stage/staged.h"
#include "session/state/held_hosts.h"
#include "session/state/refused.h"
#include "session/state/session.h"
#include "session/state/signals.h"
#include "session/toolbox/murmur_md.h"
#include "session/toolbox/stage_artifacts.h"
#include "session/toolbox/stage_inventory.h"
#include "session/toolbox/system_prompt.h"
#include "session/toolbox/told.h"
#include "session/toolbox/tool_files.h"
#include "spawn/formation/membership.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A replay whose commands are served starts none: what they would need need not be here. */
static bool
is_served (const struct session *s)
{
    const struct player *p = s->asked->player;
    return p && player_modes (p)->tools == PLAY_RECORDED && ! player_modes (p)->has_from;
}

static bool
check_policy (struct session *s, struct mur_error **err)
{
    if (is_served (s))
        return true;
    /* Every host meets the weakest floor: then the probe need not be over yet. */
    bool has_floor = s->policy->containment_floor > CONTAINMENT_ADVISORY;
    const struct containment *containment = has_floor ? host_decide (s->asked->decision) : NULL;
    if (! policy_check_stage (s->policy, containment, err) ||
        ! confine_check_entries (s->policy, err) || ! confine_check_host (s, false, err) ||
        ! policy_check_paths (s->policy, err))
        return false;
    confine_warn_host (s);
    policy_warn_inert (s->policy);
    policy_warn_stage (s->policy);
    member_calls_warn_network (s);
    return true;
}

/* Which entries are native is known only now. */
static bool
check_natives (struct session *s, struct mur_error **err)
{
    return is_served (s) || ! session_may_run_native (s) || confine_check_host (s, true, err);
}

static bool
mint_id (struct session *s, struct mur_error **err)
{
    (void)err;
    s->id = id_new ("ses_");
    return true;
}

/* The tokens of an authenticated door, the key of the control token: minted before there is a door
 * to show them to. */
static bool
mint_tokens (struct session *s, struct mur_error **err)
{
    (void)err;
    const struct door_network *network = s->manifest->network;
    const struct door_authentication *a = network ? network->authentication : NULL;
    const struct membership *m = s->asked->launcher.membership;
    for (size_t i = 0; m && i < membership_callee_count (m); i++)
        redactor_add (s->redactor, membership_token (m, membership_callee (m, i)));
    stage_controller (s);
    /* A pod's door is asked by other machines: never an open one. */
    if ((! a && ! s->asked->launcher.fleet_token) || ! s->manifest->inference)
        return true;
    size_t count = a ? a->credentials.len : 0;
    struct auth_declaration *declared =
        arena_new_array (s->arena, struct auth_declaration, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct door_credential *c = &a->credentials.items[i];
        declared[i] = (struct auth_declaration){ c->name, c->scopes.items, c->scopes.len };
    }
    s->rooms.staged->auth = door_auth_new (s->manifest->name, declared, count);
    if (m)
        door_auth_set_formation (s->rooms.staged->auth, membership_formation_id (m),
                                 membership_member (m), membership_verify_key (m));
    return true;
}

static bool
open_spend (struct session *s, struct mur_error **err)
{
    const struct inference *inference = s->manifest->inference;
    if (! inference)
        return true;
    uint64_t ceiling =
        inference->max_session_tokens.is_set ? inference->max_session_tokens.value : 0;
    s->spend = spend_meter_new (s->id.text, ceiling, s->asked->config->machine_tokens_per_day, err);
    return s->spend != NULL;
}

/* When and where the home was made is known to nobody outside, and stays. */
static bool
make_fence_word (struct session *s, struct mur_error **err)
{
    _cleanup_close_ int home = home_open_dir ("", err);
    struct statx home_facts;
    if (home < 0)
        return false;
    if (statx (home, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &home_facts) != 0)
        return mur_fail_errno (err, E_IO_003, "cannot look at ~/.murmur"), false;
    const uint64_t key[] = { home_facts.stx_dev_major, home_facts.stx_dev_minor, home_facts.stx_ino,
                             (uint64_t)home_facts.stx_btime.tv_sec, home_facts.stx_btime.tv_nsec };
    s->fence_word = fence_word_of (key, sizeof key, s->manifest->name);
    const char *then = s->asked->player ? player_record (s->asked->player)->fence_word : NULL;
    if (then) /* of another installation, perhaps */
        snprintf (s->fence_word.text, sizeof s->fence_word.text, "%s", then);
    return true;
}

/* A first run pins what it resolved; then the archives go, so that an idle session does not hold
 * them. */
static bool
pin_and_drop_packages (struct session *s, struct mur_error **err)
{
    (void)err;
    struct lock *lock = s->asked->lock;
    for (size_t i = 0; i < s->kit.artifact_count; i++) {
        struct resolved *r = s->kit.artifacts[i].resolved;
        if (! r)
            continue;
        if (lock && ! lock->exists)
            resolved_pin (r, lock);
        package_free (r->package);
        r->package = NULL;
    }
    return true;
}

static bool
warn_annotations (struct session *s, struct mur_error **err)
{
    (void)err;
    read_only_warn (s);
    return true;
}

static bool
write_first_murmur_md (struct session *s, struct mur_error **err)
{
    (void)err;
    if (s->manifest->inference)
        murmur_md_write (s, NULL);
    return true;
}

/* Folders are handed to guests and commands as /proc/self/fd/N. */
static bool
check_proc (struct session *s, struct mur_error **err)
{
    (void)s;
    if (access ("/proc/self/fd", X_OK) == 0)
        return true;
    mur_fail_errno (err, E_IO_003, "a session needs /proc, and it is not there");
    return mur_hint (err, "mount it: mount -t proc proc /proc");
}

/* A refusal a best-effort writer swallowed still fails the launch. */
static bool
drain_latch (struct session *s, struct mur_error **err)
{
    struct fs_refusal *refusals;
    size_t count = fs_latch_drain (s->places.latch, &refusals);
    if (count)
        mur_fail (err, E_RUN_050, "%s: %s is a %s; the runtime does not %s it", refusals[0].path,
                  refusals[0].refused_at, fs_reason_name (refusals[0].reason),
                  fs_operation_name (refusals[0].operation));
    fs_refusals_free (refusals, count);
    return count == 0;
}

static const struct stage_step {
    const char *name;
    bool (*run) (struct session *s, struct mur_error **err);
} steps[] = {
    { "proc", check_proc },
    { "policy and containment", check_policy }, /* 1-8 */
    { "engine", stage_engine },                 /* 9 */
    { "artifacts", stage_artifacts },           /* 10 */
    { "native artifacts", check_natives },
    { "system prompt", stage_system_prompt }, /* launch 5, read before anything exists */
    { "harness", stage_harness },             /* 11 */
    { "session id", mint_id },                /* 12 */
    { "harness spend", stage_harness_spend }, /* 13 */
    { "spend", open_spend },                  /* 13 */
    { "door tokens", mint_tokens },           /* 14 */
    { "gateways", stage_gateways },           /* 14 */
    { "spans", stage_spans },
    { "driver", stage_driver },           /* 14 */
    { "compaction", stage_compaction },   /* 14, 15 */
    { "script component", stage_script }, /* 16 */
    { "inventory", stage_inventory },
    { "work folder", stage_work_dir },             /* 17 */
    { "session directories", stage_session_dirs }, /* 18 */
    { "fence word", make_fence_word },
    { "guest directories", stage_guests },
    { "servers of tools", servers_stage },
    { "tool files", stage_tool_files },       /* 19 */
    { "tool annotations", warn_annotations }, /* 20 */
    { "on-stage hooks", stage_hooks },        /* 21 */
    { "manifest copy", stage_manifest_copy }, /* 22 */
    { "MURMUR.md", write_first_murmur_md },   /* 23 */
    { "pins and packages", pin_and_drop_packages },
    { "refused paths", drain_latch }, /* 24 */
};

/* What only some rooms see of a session, from the bottom up. */
static void (*const part_news[]) (struct session *s) = {
    refused_new, held_hosts_new, approvals_new, places_new, processes_new,
    handoff_new, steering_new,   told_new,      going_new,  staged_new,
};

struct session *
session_stage (const struct stage_request *request, struct mur_error **err)
{
    _cleanup_ (session_freep) struct session *s = x_new0 (struct session);
    pthread_mutex_init (&s->now.lock, NULL);
    pthread_mutex_init (&s->loop_lock.mutex, NULL);
    s->asked = request;
    s->manifest = request->manifest;
    s->policy = request->policy;
    s->arena = arena_new ();
    s->redactor = redactor_new ();
    s->http = http_client_new ();
    s->kit.provided = provided_table;
    s->kit.provided_count = provided_table_len;
    for (size_t i = 0; i < ARRAY_LEN (part_news); i++)
        part_news[i](s);
    for (size_t i = 0; i < ARRAY_LEN (steps); i++)
        if (! steps[i].run (s, err))
            return NULL;
    return steal_ptr (&s);
}

/* Nothing serves any more, and nobody else writes. */
static void
door_end (struct session *s)
{
    trace_writer_free (s->trace);
    stage_spans_free (s);
    door_close (s->door);
    registry_freep (&s->registry);
}

static void
http_end (struct session *s)
{
    http_client_freep (&s->http);
    spend_meter_freep (&s->spend);
}

/* From the top down: what is freed may still ask what stands below it. */
static void (*const part_frees[]) (struct session *s) = {
    hooks_free,     served_free,     door_end,     staged_free,
    going_free,     harness_free,    told_free,    stage_artifacts_free,
    handoff_free,   http_end,        guests_free,  stage_driver_free,
    steering_free,  processes_free,  places_free,  approvals_free,
    recording_free, held_hosts_free, refused_free,
};

void
session_free (struct session *s)
{
    if (! s)
        return;
    for (size_t i = 0; i < ARRAY_LEN (part_frees); i++)
        part_frees[i](s);
    redactor_free (s->redactor);
    pthread_mutex_destroy (&s->loop_lock.mutex);
    pthread_mutex_destroy (&s->now.lock);
    arena_free (s->arena);
    free (s);
}

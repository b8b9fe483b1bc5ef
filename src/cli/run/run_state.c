/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_state.h"

#include "artifact/store/lock.h"
#include "base/alloc.h"

void
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

const char *
run_keep (struct run *r, char *text)
{
    const char *kept = text ? arena_strdup (r->arena, text) : NULL;
    free (text);
    return kept;
}

const struct run_replay *
run_replay_of (const struct run *r)
{
    return r->steps ? r->steps->replay : NULL;
}

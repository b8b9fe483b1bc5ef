/* SPDX-License-Identifier: Apache-2.0 */
#include "session/guests/guests.h"

#include "artifact/package/zip.h"
#include "base/alloc.h"
#include "engine/engine.h"
#include "engine/form_cache.h"
#include "session/guests/guest_env.h"
#include "session/state/held_hosts.h"
#include "session/state/refused.h"
#include "session/state/session.h"
#include "session/state/signals.h"

#include <string.h>

struct guests {
    struct engine *engine;
    struct allow_list script_allow;
};

/* --- the engine --- */

bool
stage_engine (struct session *s, struct mur_error **err)
{
    sigset_t before;
    s->rooms.guests = x_new0 (struct guests);
    signals_hold (&before);
    s->rooms.guests->engine = engine_new (err);
    signals_release (&before);
    return s->rooms.guests->engine != NULL;
}

void
guests_free (struct session *s)
{
    if (! s->rooms.guests)
        return;
    allow_list_free (&s->rooms.guests->script_allow);
    engine_freep (&s->rooms.guests->engine);
    free (s->rooms.guests);
    s->rooms.guests = NULL;
}

struct engine *
guests_engine (const struct session *s)
{
    return s->rooms.guests->engine;
}

struct component *
guests_compile (struct session *s, const char *sha256, form_wasm_fn *give, void *ctx,
                struct mur_error **err)
{
    const struct form_cache_spec spec = { s->policy->request->home_dir, s->asked->work.root,
                                          zip_ceiling (), "/proc/self/exe" };
    sigset_t before;
    signals_hold (&before);
    struct component *c =
        form_cache_load (s->rooms.guests->engine, &spec, sha256, give, ctx, NULL, err);
    signals_release (&before);
    return c;
}

/* --- the network of a script --- */

bool
guests_allow_script (struct session *s, struct mur_error **err)
{
    for (size_t i = 0; i < s->policy->network.allow.len; i++)
        if (! allow_list_add (&s->rooms.guests->script_allow, s->policy->network.allow.items[i],
                              err))
            return false;
    return true;
}

const struct allow_list *
guests_script_allow (const struct session *s)
{
    return &s->rooms.guests->script_allow;
}

/* --- the directories of an artifact --- */

static bool
parse_allow (struct session *s, struct staged_artifact *a, struct mur_error **err)
{
    const struct str_list *entries =
        a->grant->has_own_network ? &a->grant->network : &s->policy->network.allow;
    for (size_t i = 0; i < entries->len; i++)
        if (! allow_list_add (&a->guest.allow, entries->items[i], err))
            return mur_context (err, "artifact %s", a->full_name);
    if (a->role == ROLE_TOOL) {
        a->guest.allow.hold = held_hosts_of (s);
        a->guest.allow.listener = (struct allow_listener){ refused_note_host, s };
    }
    return true;
}

/* Never falls back to the whole work folder or to nothing. */
static bool
open_scope (struct session *s, struct staged_artifact *a, struct mur_error **err)
{
    if (a->role == ROLE_HOOK && a->grant->opens_records_hooks)
        return (a->guest.scope_fd = fs_open_dir (s->places.records, "hooks", err)) >= 0 ||
               mur_context (err, "capabilities.filesystem.records of %s", a->full_name);
    const char *dir = a->grant->scope_dir;
    if (! dir || ! a->grant->opens_work_dir || ! dir[0])
        return true;
    if (! fs_make_dirs (s->places.work, dir, 0777, false, err) ||
        (a->guest.scope_fd = fs_open_dir (s->places.work, dir, err)) < 0)
        return mur_context (err, "capabilities.filesystem.scope %s of %s", a->grant->scope,
                            a->full_name);
    return true;
}

/* What a replay leaves in a store stays among its records. */
static int
open_replay_state (struct session *s, const char *below, struct mur_error **err)
{
    return fs_make_dirs (s->places.records, below, 0700, true, err)
               ? fs_open_dir (s->places.records, below, err)
               : -1;
}

static bool
open_state (struct session *s, struct staged_artifact *a, struct mur_error **err)
{
    if (! a->grant->state_store)
        return true;
    _cleanup_free_ char *below = x_asprintf ("state/%s", a->grant->state_store);
    _cleanup_error_ struct mur_error *caught = NULL;
    a->guest.state_fd =
        s->asked->player ? open_replay_state (s, below, &caught) : home_open_dir (below, &caught);
    if (a->guest.state_fd < 0)
        return mur_fail (err, E_CAP_009, "state store %s of %s cannot be opened: %s",
                         a->grant->state_store, a->full_name, caught->message);
    return true;
}

bool
stage_guests (struct session *s, struct mur_error **err)
{
    for (size_t i = 0; i < s->kit.artifact_count; i++) {
        struct staged_artifact *a = &s->kit.artifacts[i];
        if (a->component &&
            (! parse_allow (s, a, err) || ! open_scope (s, a, err) || ! open_state (s, a, err)))
            return false;
        if (a->role == ROLE_HOOK)
            guest_env_fill_hook (s, a);
    }
    return true;
}

bool
guests_add (struct session *s, struct staged_artifact *a, const char *url, struct mur_error **err)
{
    if (! a->component)
        return true;
    guest_env_fill_tool (s, url, a);
    return parse_allow (s, a, err) && open_scope (s, a, err) && open_state (s, a, err);
}

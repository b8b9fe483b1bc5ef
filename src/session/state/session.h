/* SPDX-License-Identifier: Apache-2.0
 *
 * The session as the files of this folder share it: what staging decided, what a launch holds.
 *
 * Callers: session/ only. Always true: what stage.c filled is read-only afterwards but for the
 * members named "live"; those are guarded as their comment says.
 */
#pragma once

#include "base/arena.h"
#include "base/cancel.h"
#include "base/ids.h"
#include "base/secret.h"
#include "door/door.h"
#include "engine/engine.h"
#include "net/guest_http.h"
#include "session/launch.h"
#include "session/state/driver.h"
#include "session/state/inventory.h"
#include "session/state/loop_lock.h"
#include "session/state/now.h"
#include "session/state/places.h"
#include "session/state/spend.h"
#include "session/state/tally.h"
#include "trace/lines/writer.h"

#include <pthread.h>
#include <stdatomic.h>

struct hooks;
struct delegations;
struct selection;
struct supplied_secrets;

enum termination_cause {
    NOT_TERMINATED,
    TERMINATED_BY_SIGNAL,
    TERMINATED_BY_DEADLINE,
    TERMINATED_BY_SPAWNER,   /* its lifeline closed */
    TERMINATED_BY_FORMATION, /* the formation's lifeline closed */
};

struct session {
    const struct stage_request *asked;
    const struct capsule_manifest *manifest;
    struct policy *policy;
    struct id id;
    struct arena *arena;
    struct http_client *http;
    struct redactor *redactor;
    struct trace_writer *trace;
    struct otel_settings *spans; /* how spans are exported; NULL: none are */
    struct otel *otel;           /* NULL: no spans are exported */
    struct door *door;
    struct registry *registry;
    struct spend_meter *spend;
    struct deadline *deadline;
    _Atomic enum termination_cause cause; /* set by the thread that takes the signals */

    struct places places;
    struct kit kit;
    struct choices choices;
    struct now now;
    struct tally tally;
    struct loop_lock loop_lock;

    struct engine *engine;

    struct component *script;    /* script capsules */
    struct pulled *script_pulls; /* live: what the script pulled, not recorded yet */
    size_t script_pull_count;
    /* live: what the script sent, not recorded yet; NULL: none */
    struct script_sends *script_sends;
    struct allow_list script_allow;
    struct controller *controller;     /* controller.h; NULL: no control plane */
    struct supplied_secrets *supplied; /* NULL: no control plane */
    struct selection *selection;       /* what is selected of the choices now */
    atomic_bool is_driver_busy;
    const char *compaction_prompt; /* NULL: none */
    bool has_compacted_resume;     /* live: --resume-mode compact was spent */
    struct harness *harness;       /* harness.h; NULL under transport: http */
    struct confined *confined;     /* confine.h; NULL: nothing here starts a native process */
    bool is_confinement_told;      /* what confines commands was said once */
    /* background.c: the newest first, and what runs in the foreground. Written by the task loop,
     * under now.lock; the door reads under it. */
    struct background *background, *foreground;

    char *system_prompt; /* resolved, NULL: none */
    const char *system_prompt_source;
    char *effective_grants; /* JSON text */
    char *host_facts;       /* JSON text */

    /* With mur-roost; NULL: not registered. Delegations ask it with these. */
    struct secret *roost_credential;
    const char *roost_url; /* borrowed from the environment */

    struct door_auth *auth;            /* NULL: a public door */
    struct member_calls *member_calls; /* member_calls.h; NULL: there is nobody to call */
    struct hooks *hooks;               /* hooks.h; NULL without hooks */
    struct delegations *delegations;   /* delegations.h; NULL: this capsule may start no others */
    struct termination *termination;
    char *logged_tools;   /* the tool array bootstrap.log holds last */
    bool has_cap_warning; /* W-RUN-001 was printed */
};

enum termination_cause termination_cause (const struct session *s);
/* "network", "filesystem", "shell": what the capsule may do, appended. */
void session_list_capabilities (const struct session *s, struct strv *out);

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

struct session {
    const struct stage_request *asked;
    const struct capsule_manifest *manifest;
    struct policy *policy;
    struct id id;
    struct arena *arena;
    struct http_client *http;
    struct redactor *redactor;
    struct trace_writer *trace;
    struct otel *otel; /* NULL: no spans are exported */
    struct door *door;
    struct registry *registry;
    struct spend_meter *spend;
    struct deadline *deadline;

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
    struct controller *controller; /* controller.h; NULL: no control plane */
    struct selection *selection;   /* what is selected of the choices now */
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

/* stage_artifacts.c: step 10. */
bool stage_artifacts (struct session *s, struct mur_error **err);
void staged_artifact_clear (struct staged_artifact *a);
/* What a pull adds: the package (taken over), read as an entry of the manifest without grants would
 * be. Nothing is written. */
bool stage_pulled (struct session *s, struct staged_artifact *a, const char *full_name,
                   enum artifact_role role, struct package *package, struct mur_error **err);
/* stage_driver.c: steps 13-14. */
bool stage_gateways (struct session *s, struct mur_error **err);
bool stage_driver (struct session *s, struct mur_error **err);
/* What a call of this choice may send when it reserves <output_cap> for the answer; 0: no bound is
 * known. <*basis> is its name in the trace. */
uint64_t driver_input_budget (const struct choice *d, uint64_t output_cap, const char **basis);
/* True when this entry is the driver of some choice of the http loop. */
bool session_is_driver_entry (const struct session *s, const struct artifact_entry *entry);
/* directories.c: steps 17-19, 22. */
bool stage_work_dir (struct session *s, struct mur_error **err);
bool stage_session_dirs (struct session *s, struct mur_error **err);
bool stage_tool_files (struct session *s, struct mur_error **err);
/* The files of one artifact, its native program aside. */
bool stage_artifact_files (struct session *s, struct staged_artifact *a, struct mur_error **err);
bool stage_manifest_copy (struct session *s, struct mur_error **err);
/* tool_inventory.c */
bool stage_inventory (struct session *s, struct mur_error **err);
const struct tool_entry *session_tool (const struct session *s, const char *name);
struct staged_artifact *session_artifact (const struct session *s, const char *tool_name);
/* True when an artifact of that tool name was pulled and removed again, and none is there now. */
bool session_has_removed (const struct session *s, const char *tool_name);
/* system_prompt.c */
bool stage_system_prompt (struct session *s, struct mur_error **err);
/* script.c: step 16. */
bool stage_script (struct session *s, struct mur_error **err);

bool launch_script (struct session *s, const struct launch_options *options,
                    enum session_ending *ending, struct mur_error **err);
bool launch_agent (struct session *s, const struct launch_options *options,
                   enum session_ending *ending, struct mur_error **err);

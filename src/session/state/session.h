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
#include "fs/root.h"
#include "home/paths.h"
#include "manifest/settings/artifact_manifest.h"
#include "net/guest_http.h"
#include "session/launch.h"
#include "session/state/spend.h"
#include "trace/lines/writer.h"

#include <pthread.h>
#include <stdatomic.h>

/* What the model may call: one entry of tools/. Sorted by name. */
struct tool_entry {
    const char *name;
    const char *description; /* NULL: none */
    const char *parameters;  /* compact JSON object text */
    struct strv required;    /* borrowed: top-level required names of the schema */
    bool is_schema_malformed;
    bool is_warned; /* live: W-RUN-004 was printed */
    bool is_skill;
    bool is_builtin;                  /* provided by the runtime */
    struct staged_artifact *artifact; /* NULL for a builtin */
};

struct staged_artifact {
    const struct artifact_entry *entry;
    const struct artifact_grant *grant;
    const char *tool_name;
    const char *full_name;
    char *version;
    enum artifact_role role;
    bool is_prompt; /* bound as the system prompt: not offered */
    enum lock_origin origin;
    char *pulled_by;           /* session of a runtime pin */
    struct resolved *resolved; /* NULL for a local skill; dropped once its files are written */
    char *manifest_text;       /* of tools/<name>/murmur.yaml */
    size_t manifest_len;
    struct buf skill_text;
    struct component *component; /* WASM tools and drivers */
    char *native_path;           /* native tools: tools/<n>/<n>, absolute; NULL else */
    struct strv native_closure;  /* further files its start needs */
    char *description;
    char *parameters;
    struct strv required;
    bool is_schema_malformed;
    bool is_upstream_none;
    bool is_removed; /* live: pulled and taken away again; the name answers as removed */
    struct hook_contract contract; /* hooks */

    /* How a guest of it is made; filled by guests.c. */
    char *config_env; /* "MURMUR_ARTIFACT_CONFIG=...", or NULL */
    struct allow_list allow;
    int scope_fd; /* "." when scoped, else -1 */
    int state_fd; /* "state", else -1 */
    struct gateway *gateway;
    struct credential *credential;
    struct strv env; /* once the URL is known */
};

/* Where a limit came from. */
enum limit_source {
    LIMIT_NONE,
    LIMIT_MANIFEST,
    LIMIT_DRIVER,
};

/* A driver choice: primary, or one of inference.alternates. */
struct driver {
    const char *name; /* "primary", or the alternate's */
    const char *model;
    struct staged_artifact *artifact;
    char *config;      /* compact JSON or NULL; all choices have the primary's */
    bool is_available; /* its credential could be resolved when it was staged */
    uint64_t output_cap;
    enum limit_source output_cap_source;
    uint64_t window; /* 0: none */
    enum limit_source window_source;
    uint64_t input_ceiling; /* 0: none */
    uint64_t input_budget;  /* 0: none */
    const char *budget_basis;
    struct strv env;
    struct model_cap { /* every model the driver's own manifest lists */
        const char *model;
        uint64_t cap;
    } * model_caps;
    size_t model_cap_count;
};

struct hooks;
struct delegations;

struct session {
    const struct stage_request *request;
    const struct capsule_manifest *manifest;
    struct policy *policy;
    struct id id;
    struct arena *arena;

    struct engine *engine;
    struct http_client *http;
    struct redactor *redactor;

    /* Directories. */
    struct fs_latch *latch;
    struct home_session dirs;
    int bootstrap_fd; /* logs/bootstrap.log, -1 */
    bool has_dirs;
    char *work_path;
    struct fs_root *work, *runtime, *records;

    /* Artifacts. */
    struct staged_artifact *artifacts;
    size_t artifact_count;
    size_t artifact_cap;       /* places: pulled artifacts never move the others */
    uint64_t tools_generation; /* live: grows when a pull or a removal changed the inventory */
    struct tool_entry *tools;  /* what the model sees, sorted by name */
    size_t tool_count;
    struct component *script;    /* script capsules */
    struct pulled *script_pulls; /* live: what the script pulled, not recorded yet */
    size_t script_pull_count;
    /* live: what the script sent, not recorded yet; NULL: none */
    struct script_sends *script_sends;
    struct allow_list script_allow;
    struct driver driver;          /* agents: the primary choice */
    struct driver **choices;       /* the primary, then inference.alternates in order */
    size_t choice_count;           /* 0 for a script */
    struct controller *controller; /* controller.h; NULL: no control plane */
    struct control_state *control; /* what is selected of them now */
    const char *compaction_prompt; /* NULL: none */
    bool has_compacted_resume;     /* live: --resume-mode compact was spent */
    struct harness *harness;       /* harness.h; NULL under transport: http */
    pthread_mutex_t loop_lock;     /* base/locks.h: loop; loop_lock.h */
    struct strv compaction_env; /* the driver's while a compaction hook asks it; empty: the same */
    struct confined *confined;  /* confine.h; NULL: nothing here starts a native process */
    bool is_confinement_told;   /* what confines commands was said once */
    /* background.c: the newest first, and what runs in the foreground. Written by the task loop,
     * under the lock below; the door reads under it. */
    struct background *background, *foreground;

    char *system_prompt; /* resolved, NULL: none */
    const char *system_prompt_source;
    char *effective_grants; /* JSON text */
    char *host_facts;       /* JSON text */

    struct spend_meter *spend;

    /* registered.h: with mur-roost; NULL: not registered. Delegations ask it with these. */
    struct secret *roost_credential;
    const char *roost_url; /* borrowed from the environment */

    /* The launch. */
    struct trace_writer *trace;
    struct otel *otel; /* NULL: no spans are exported */
    struct door *door;
    struct door_auth *auth; /* NULL: a public door */
    struct registry *registry;
    atomic_bool is_driver_busy;
    struct member_calls *member_calls; /* member_calls.h; NULL: there is nobody to call */
    struct hooks *hooks;               /* hooks.h; NULL without hooks */
    struct delegations *delegations;   /* delegations.h; NULL: this capsule may start no others */
    struct strv guest_env;             /* the runtime's own list for every guest */
    struct termination *termination;
    struct deadline *deadline;
    pthread_mutex_t lock; /* base/locks.h: session. Guards the members below */
    bool has_standing_answer;

    /* Totals of the launch, task loop only. */
    struct session_totals {
        uint64_t turns, input_tokens, output_tokens, tool_calls, shell_calls;
    } totals;
    struct usage_totals { /* for session-status: what some call reported */
        struct usage_count {
            bool is_known;
            uint64_t value;
        } input, output, cached, cache_write;
        uint64_t unreported_calls;
    } usage;
    uint64_t launched_ms;      /* monotonic */
    struct running_task *task; /* the task that runs, or NULL */
    bool notice_is_given;      /* deadline notice */
    char *logged_tools;        /* the tool array bootstrap.log holds last */
    bool has_cap_warning;      /* W-RUN-001 was printed */
    uint64_t plan_count;       /* plans stored: the number in the newest file's name */
};

/* Takes in what a call reported, or that it reported nothing. */
static inline void
usage_count_add (struct usage_count *c, bool is_reported, uint64_t value)
{
    c->is_known = c->is_known || is_reported;
    c->value += value;
}

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
uint64_t driver_input_budget (const struct driver *d, uint64_t output_cap, const char **basis);
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

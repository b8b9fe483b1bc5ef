/* SPDX-License-Identifier: Apache-2.0
 *
 * Staging: from a read manifest and a lowered policy to a session that only needs launching
 * (docs/spec/session.md 2.1, 3).
 *
 * Always true: nothing the capsule supplied runs here; every refusal comes before the side effects
 * of later steps; what the request points to is borrowed and must outlive the session.
 */
#pragma once

#include "artifact/store/resolve.h"
#include "manifest/settings/config.h"
#include "policy/policy.h"
#include "spawn/child/spawner.h"

struct host_decision; /* sandbox/host/host.h */
struct membership;
struct session;

enum resume_mode {
    RESUME_NONE,
    RESUME_FULL,
    RESUME_COMPACT,
};

struct stage_request {
    const struct capsule_manifest *manifest;
    struct policy *policy; /* lowered, flags applied */
    struct host_decision *decision;
    const struct config *config;
    struct stores *stores;
    /* NULL: a capsule run by name. When it does not exist it receives the pins of what was
     * resolved; the caller writes it. */
    struct lock *lock;

    const char *manifest_dir; /* absolute */
    /* base name of the file that was read; NULL for a capsule run by name */
    const char *manifest_name;
    const char *manifest_text;
    size_t manifest_len;
    mode_t manifest_mode;
    const char *capsule_artifact; /* "<scope>/<name>" when run by name, else NULL */
    const char *component_path;   /* script capsule from a folder */
    struct resolved *capsule;     /* capsule run by name: its package */

    const char *workdir;   /* --workdir; NULL: the default, created */
    const char *work_root; /* canonical (home_work_root) */
    bool has_workdir_identity;
    dev_t workdir_dev;
    ino_t workdir_ino;

    const char *system_prompt; /* --system-prompt, trimmed; NULL when cleared */
    bool system_prompt_is_overridden;
    const char *context_id; /* --context, or the resumed one; NULL: minted per task */
    enum resume_mode resume_mode;
    const char *resumed_session;
    const char *resumed_trace; /* path of that session's trace file */
    bool forgets_session;

    /* From the launcher: read before anything else of the launch (docs/spec/spawn.md A13). */
    const struct secret *spawn_grant; /* NULL: none was handed over */
    const struct spawner *spawner;    /* its session_id NULL: not delegated */
    const char *formation_id;         /* NULL: none */
    struct membership *membership;    /* spawn/formation/membership.h; NULL: no member */

    uint64_t process_start_ms;  /* monotonic: what deadlines are counted from */
    uint64_t own_deadline_secs; /* 0: none */
    bool has_inherited_deadline;
    uint64_t inherited_deadline_ms; /* Unix ms; may be past */
    const char *bind_addr;
    const char *case_id; /* of an eval run, for hooks; NULL: none */
};

/* Runs the steps of session.md 3.2 in order. NULL with *err on the first refusal, everything made
 * so far undone but the records directory and a default work folder of a failure after they were
 * created. */
struct session *session_stage (const struct stage_request *request, struct mur_error **err);
/* Frees; an unlaunched session's runtime directory is removed. */
void session_free (struct session *s);
DEFINE_CLEANUP (struct session, session_free)

const char *session_id (const struct session *s);
const char *session_workdir (const struct session *s);
const char *session_records_dir (const struct session *s);
bool session_is_agent (const struct session *s);
/* The capsule's full name: as it was run, else of scope local. Borrowed. */
const char *session_capsule_name (const struct session *s);
#define TASK_TEXT_LIMIT_BYTES ((size_t)16 << 20)

/* Between staging and launch: the text of --task becomes task.md of the runtime directory.
 * E-RUN-050, E-IO-003. */
bool session_write_task (struct session *s, const char *text, size_t len, struct mur_error **err);

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
struct player;
struct session;

enum resume_mode {
    RESUME_NONE,
    RESUME_FULL,
    RESUME_COMPACT,
};

/* The manifest's file, as it was read. */
struct asked_file {
    const char *dir;  /* absolute */
    const char *name; /* its base name; NULL for a capsule run by name */
    const char *text;
    size_t len;
    mode_t mode;
    const struct strv *changed; /* keys that the launch says otherwise; NULL: none */
};

/* What is run beside a manifest's text. */
struct asked_code {
    const char *artifact;       /* "<scope>/<name>" when run by name, else NULL */
    const char *component_path; /* script capsule from a folder */
    struct resolved *package;   /* capsule run by name: its package */
};

struct asked_work {
    const char *dir;  /* --workdir; NULL: the default, created */
    const char *root; /* canonical (home_work_root) */
    bool has_identity;
    dev_t dev;
    ino_t ino;
};

struct asked_resume {
    enum resume_mode mode;
    const char *session;
    const char *trace; /* path of that session's trace file */
    bool forgets_session;
};

/* From the launcher: read before anything else of the launch (docs/spec/spawn.md A13). */
struct asked_launcher {
    const struct secret *spawn_grant; /* NULL: none was handed over */
    const struct spawner *spawner;    /* its session_id NULL: not delegated */
    const char *formation_id;         /* NULL: none */
    struct membership *membership;    /* spawn/formation/membership.h; NULL: no member */
    const char *fleet_token;          /* file of the pod's projected token; NULL: no pod */
};

struct asked_time {
    uint64_t process_start_ms;  /* monotonic: what deadlines are counted from */
    uint64_t own_deadline_secs; /* 0: none */
    bool has_inherited_deadline;
    uint64_t inherited_deadline_ms; /* Unix ms; may be past */
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
    struct asked_file file;
    struct asked_code capsule;
    struct asked_work work;
    const char *public_url;    /* what the agent card names; NULL: localhost and the port */
    const char *records_store; /* where the records go while it runs; NULL: nowhere */
    const char *system_prompt; /* --system-prompt, trimmed; NULL when cleared */
    bool system_prompt_is_overridden;
    const char *context_id; /* --context, or the resumed one; NULL: minted per task */
    struct asked_resume resume;
    struct asked_launcher launcher;
    struct asked_time time;
    const char *bind_addr;
    unsigned bind_port;     /* 0: the manifest's, else a free one */
    const char *case_id;    /* of an eval run, for hooks; NULL: none */
    const char *dataset_id; /* the same; NULL: the manifest's */
    /* A record runs again (replay/play/player.h): what came from outside then is served, and
     * nothing outside the session's own records changes. NULL: an ordinary session. */
    struct player *player;
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

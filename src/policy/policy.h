/* SPDX-License-Identifier: Apache-2.0
 *
 * The effective capability policy: manifest, operator config and flags lowered into what a session
 * runs under (spec/manifest.md 18, spec/session.md 2.3), and the refusals and warnings that follow
 * from it.
 *
 * Absent means deny. Declared strings are carried verbatim, in order; parsed forms stand beside
 * them. A policy borrows the manifest, which must outlive it.
 */
#pragma once

#include "base/diag.h"
#include "manifest/capsule/capsule.h"
#include "policy/approvals.h"
#include "policy/containment.h"

struct allow_list; /* net/allow.h */

/* What a launch was asked for beside the manifest. */
struct policy_request {
    const char *home_dir;                /* ~/.murmur, absolute */
    const char *manifest_dir;            /* absolute; base of source paths */
    const char *work_root;               /* canonical; NULL: <manifest_dir>/workdir */
    enum containment_class config_floor; /* of global and project config, already the maximum */
    enum containment_class flag_floor;   /* --containment, advisory without */
    const char *flag_task_acceptance;    /* NULL without */
    const char *flag_after_task;
    const char *flag_conversation;
    const char *context_id; /* --context, NULL without */
    const char *approvals;  /* of the session that delegated: approval_rules_json; NULL: none */
    const char *bind_addr;  /* 127.0.0.1 without a flag */
};

/* What one artifact of a session may reach. One for each manifest entry, in order (skills too, all
 * empty). */
struct artifact_grant {
    const struct artifact_entry *entry;
    bool has_own_network; /* an entry's network block, a hook's absence included: use <network>, not
                             the ceiling */
    struct str_list network;  /* kept entries, verbatim */
    struct str_list dropped;  /* outside the ceiling: W-SEC-007 */
    const char *scope;        /* as written, NULL without */
    char *scope_dir;          /* lowered, "" for the whole work folder, NULL for none */
    bool opens_work_dir;      /* "." is the work folder or scope_dir below it */
    bool opens_records_hooks; /* "." is the records directory's hooks/ */
    const char *state_store;  /* NULL: none. Default applied */
    bool may_read_task_io;
    bool may_read_conversation;
    uint64_t deadline_seconds; /* of a call to it: hook rule applied */
};

struct network_policy {
    struct str_list allow;
    struct str_list peer_fetch_allow;
    bool unix_sockets_allowed;
    struct str_list host_sockets; /* of network.host_sockets */
};

struct files_policy {
    const char *scope;
    bool exec_allowed;   /* of what lies in the work folder */
    bool exec_is_walled; /* and lowers no class */
    struct str_list read_only_paths;
    struct str_list snapshot;
};

struct commands_policy {
    struct str_list allow;
    struct str_list strip_env;
    struct str_list baseline_env;
    const struct cap_shell *shell; /* NULL without; interpreter_runtime and staged_runtime */
};

struct install_policy {
    struct str_list skill;
    struct str_list tool;
    bool is_declared;
    bool from_sources;
};

/* Filled by staging. */
struct derived_policy {
    struct str_list interpreter_runtime;
    struct str_list program_parts; /* what recipes granted beside the programs, in words */
    struct str_list trust_store;
};

struct policy {
    const struct capsule_manifest *manifest;
    struct network_policy network;
    struct files_policy files;
    struct commands_policy commands;
    struct str_list spawn_allow;
    struct str_list env_allow;
    struct cap_limits limits;
    struct cap_resources resources;
    uint64_t declared_deadline_seconds;       /* 0: not declared */
    enum containment_class containment_floor; /* combined */
    bool plan_submit;
    struct install_policy install;
    bool state_declared;
    bool conversation_declared;
    struct derived_policy derived;

    struct lifecycle lifecycle; /* flags applied */
    struct approval_rules approvals;
    struct artifact_grant *grants;
    size_t grants_len;
    const char *record_store; /* default applied; NULL when record: off */
    const struct policy_request *request;
    struct arena *arena;
};

/* Lowers. Fails only for bad flags: E-IO-003. <request> is borrowed. */
struct policy *policy_lower (const struct capsule_manifest *m, const struct policy_request *request,
                             struct mur_error **err);
void policy_free (struct policy *p);
DEFINE_CLEANUP (struct policy, policy_free)

/* --- refusals, each in its place of manifest.md 18.4 --- */

/* Looks a gateway key up in the operator's config: the value (the caller frees it) or NULL. */
typedef struct secret *policy_credential_fn (const void *ctx, const char *name);
/* transport: process inside the session's walls. */
bool policy_confines_harness (const struct policy *p);
/* True when the launch may start a confined native process (shell, spawn, tool pulls, done_check, a
 * harness inside). Native tools are known only after resolving: <has_native_artifact>. */
bool policy_may_run_native (const struct policy *p, bool has_native_artifact);

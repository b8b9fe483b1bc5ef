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

/* E-CAP-016: every env.allow name the credential filter takes away. First of all, also under
 * --explain-scope. */
bool policy_check_env (const struct capsule_manifest *m, struct mur_error **err);
/* E-CAP-013, then E-CAP-020. */
bool policy_check_tool_names (const struct capsule_manifest *m, struct mur_error **err);
/* What --explain-scope refuses beyond the above: E-CAP-009, E-CAP-010, E-CAP-002 of artifact
 * entries. */
bool policy_check_explain (const struct policy *p, struct mur_error **err);
/* The refusals of staging that come before the host is asked, in order: E-CAP-001, 002, 003, 009,
 * 011, 013, 020, 016, 010, 002, 008, E-MAN-003 (queue room), E-CAP-004. <c> may be NULL without a
 * floor above advisory. */
bool
policy_check_stage (const struct policy *p, const struct containment *c, struct mur_error **err);
/* And those after it, before the first artifact is resolved: E-CAP-012, E-IO-001 (source paths). */
bool policy_check_paths (const struct policy *p, struct mur_error **err);
/* What `mur doctor` only warns of: E-CAP-002 of artifact entries, E-CAP-004, E-CAP-016, numbered
 * from 0. True when number <which> finds nothing wrong, or does not exist: then *is_last is set. */
bool
policy_check_concern (const struct policy *p, size_t which, bool *is_last, struct mur_error **err);
/* Looks a gateway key up in the operator's config: the value (the caller frees it) or NULL. */
typedef struct secret *policy_credential_fn (void *ctx, const char *name);
/* Every ${NAME} of a gateway must have a value somewhere: E-MAN-003. Names in control.secrets are
 * not looked up, nor those of drivers only inference.alternates names. */
bool policy_check_gateway_keys (const struct policy *p, policy_credential_fn *config_credential,
                                void *ctx, const char *config_path, struct mur_error **err);
/* transport: process inside the session's walls. */
bool policy_confines_harness (const struct policy *p);
/* True when the launch may start a confined native process (shell, spawn, tool pulls, done_check, a
 * harness inside). Native tools are known only after resolving: <has_native_artifact>. */
bool policy_may_run_native (const struct policy *p, bool has_native_artifact);

/* --- warnings --- */

/* W-SEC-032 of a public door on an exposed address; one line, on stdout for doctor. */
void policy_warn_door (const struct policy *p, bool to_stdout);
/* W-SEC-024, 025, 027, 030 in that order; also under --explain-scope. config_credential as above,
 * may be NULL. */
void policy_warn_parse (const struct policy *p, policy_credential_fn *config_credential, void *ctx);
/* W-SEC-014, 016: after state names resolve. */
void policy_warn_inert (const struct policy *p);
/* W-SEC-006, 007, 008 of the artifact entries, W-SEC-009, 011, 017: after every refusal of staging.
 */
void policy_warn_stage (const struct policy *p);
/* W-SEC-009 and W-SEC-011 alone; how many were printed. */
size_t policy_warn_programs (const struct policy *p, enum diag_source source);
/* W-SEC-008 and W-SEC-015 of an entry whose payload turned out native. */
void policy_warn_native_entry (const struct artifact_entry *e);
/* What confines the commands of a launch: W-SEC-005, 002 or 001, and W-SEC-003 where bash opens
 * connections nothing bounds. In order; the caller prints them. Texts are static. */
#define TIER_WARNINGS_MAX 2
struct tier_warning {
    enum diag_code code;
    const char *text;
};
size_t policy_tier_warnings (const struct policy *p, enum containment_tier tier,
                             struct tier_warning out[TIER_WARNINGS_MAX]);
/* W-SEC-018 when read_only paths are declared and the tool's input schema (may be NULL) says of no
 * value whether it is a destination. Once a tool, after its manifest was read. */
void policy_warn_unannotated (const struct policy *p, const char *tool_name,
                              const struct yaml_node *input_schema);
/* The interpreters of shell.allow read_only is only advisory against, in order. In the policy's
 * arena. */
struct str_list policy_advisory_interpreters (const struct policy *p);

/* An artifact's config as compact JSON of at most 65 536 bytes, or NULL with E-CAP-010. Owned. No
 * key: NULL without error. */
char *policy_artifact_config (const struct artifact_entry *e, const struct capsule_manifest *m,
                              struct mur_error **err);

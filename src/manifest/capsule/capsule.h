/* SPDX-License-Identifier: Apache-2.0
 *
 * The capsule manifest: murmur.yaml as the operator wrote it, every block and key (spec/manifest.md
 * 4-13).
 *
 * Reading judges everything that needs no store, environment or network, in the observable order
 * of 2.1. A NULL block was not declared; opt_* fields hold the default in .value and say in .is_set
 * whether the key was written. Everything lives in the manifest's arena. Nothing here grants
 * anything: policy/policy.h lowers it.
 */
#pragma once

#include "base/secret.h"
#include "manifest/capsule/endpoint.h"
#include "manifest/text/grammar.h"
#include "manifest/text/schema.h"

/* --- artifacts[] --- */

enum artifact_role {
    ROLE_TOOL,
    ROLE_DRIVER,
    ROLE_HOOK,
    ROLE_SKILL,
    ROLE_MCP, /* a server of tools */
};
#define ARTIFACT_ROLE_COUNT 5

enum overflow_policy {
    OVERFLOW_DROP,
    OVERFLOW_BLOCK,
};

struct gateway_block {
    const char *written_endpoint;
    /* NULL: no key; a literal's text is wiped after reading */
    const struct yaml_node *written_api_key;
    struct opt_bool written_keyless;
    const char *header; /* what carries the key; NULL: as the artifact says */
    struct endpoint endpoint;
    bool is_keyless;
    const char *key_reference;  /* NAME of ${NAME}, NULL for a literal or keyless */
    struct secret *key_literal; /* NULL for a reference, keyless, or a secret-less reading. Owned by
                                   the manifest */
    bool has_literal;           /* a literal was written (also when secret-less) */
};

/* One pair of a map of texts. */
struct name_value {
    const char *name, *value;
};

enum mcp_start {
    MCP_START_FIRST_CALL,
    MCP_START_LAUNCH,
};

enum mcp_keep {
    MCP_KEEP_SESSION,
    MCP_KEEP_CALL,
};

enum mcp_on_drift {
    MCP_DRIFT_REFUSE,
    MCP_DRIFT_DROP, /* only what changed */
};

enum mcp_ask {
    MCP_ASK_DENY,
    MCP_ASK_OPERATOR,
};

/* How a server of tools is started and what of it is offered. */
struct mcp_block {
    struct str_list args; /* not set: as reviewed */
    const struct yaml_node *written_env, *written_rename;
    LIST_OF (struct name_value) env;
    struct str_list tools; /* not set: all that were reviewed */
    const char *prefix;    /* NULL: the server's name; "": none */
    LIST_OF (struct name_value) rename;
    struct opt_u64 start, keep, on_drift, ask; /* the enums above */
    struct opt_u64 startup_secs;
    const char *url; /* of one far away: where its key goes; NULL: as reviewed */
    const char *gateway_env, *placeholder_env;
    struct str_list secret_env;
    struct opt_bool instructions;
};

struct capabilities;

struct artifact_entry {
    const char *name;    /* full name; bare with a source */
    const char *version; /* "local" with a source */
    const char *written_runtime;
    const char *source; /* NULL: from the stores */
    struct opt_bool local_source;
    struct opt_bool prompt_payload;
    struct capabilities *capabilities;
    const char *written_on_overflow;
    const struct yaml_node *config; /* NULL: no key. A null node is present */
    struct gateway_block *gateway;
    struct mcp_block *mcp; /* never NULL after reading for ROLE_MCP, else NULL */

    enum artifact_role role;
    enum overflow_policy on_overflow;
    const char *tool_name;   /* the part after '/' */
    bool may_be_prompt;      /* prompt_payload with its default applied */
    bool version_is_ignored; /* one was written beside a source */
    unsigned line, column;   /* of the entry */
};

/* --- capabilities --- */

struct cap_network {
    struct str_list allow;
    struct opt_bool unix_sockets;
    struct str_list host_sockets; /* absolute paths */
};

struct cap_allow {
    struct str_list allow;
};

/* Whether files of the work folder may be executed. */
enum workdir_exec {
    WORKDIR_EXEC_NONE,
    WORKDIR_EXEC_OPEN,   /* true: the class falls to advisory */
    WORKDIR_EXEC_WALLED, /* inside every wall; the class stays */
};

struct cap_filesystem {
    const char *scope;
    struct opt_u64 workdir_exec; /* enum workdir_exec */
    struct str_list read_only;   /* trimmed, blanks dropped */
    struct opt_bool records;
};

struct interpreter_dir {
    const char *path;
    struct opt_bool list_dir;
};

struct interpreter_runtime {
    const char *binary;
    LIST_OF (struct interpreter_dir) dirs;
};

struct staged_runtime {
    const char *binary;
    const char *source_path;
    const char *pin;
};

struct cap_shell {
    struct str_list allow;
    struct str_list strip_env;
    struct str_list baseline_env;
    LIST_OF (struct interpreter_runtime) interpreter_runtime;
    LIST_OF (struct staged_runtime) staged_runtime;
};

struct cap_spawn {
    struct str_list allow;
    struct str_list workdir_snapshot;
};

/* Bounds of one WASM call, defaults applied. */
struct cap_limits {
    struct opt_u64 memory_bytes;
    struct opt_u64 table_elements;
    struct opt_u64 instances;
    struct opt_u64 deadline_seconds; /* .value 600; .is_set decides for hooks */
};

/* Bounds of native subprocesses, defaults applied. */
struct cap_resources {
    struct opt_u64 max_processes;
    struct opt_u64 max_open_files;
    struct opt_u64 max_file_size_bytes;
    struct opt_u64 cpu_seconds;
    struct opt_u64 memory_bytes;
    struct opt_u64 cgroup_memory_bytes;
    struct opt_u64 cgroup_pids_max;
    struct opt_u64 cgroup_cpu_percent;
    struct opt_u64 cgroup_io_bytes_per_sec;
    struct opt_u64 workdir_max_bytes;
    struct opt_u64 free_disk_bytes;
};

struct cap_state {
    const char *store; /* NULL: the capsule's name. "" is kept and refused */
};

struct cap_read {
    struct opt_bool read;
};

struct cap_plan {
    struct opt_bool submit;
};

struct cap_install {
    struct str_list skill;
    struct str_list tool;
    struct str_list from;
};

struct capabilities {
    struct cap_network *network;
    struct cap_allow *peer_fetch;
    struct cap_filesystem *filesystem;
    struct cap_shell *shell;
    struct cap_spawn *spawn;
    struct cap_allow *env;
    struct cap_limits *limits;
    struct cap_resources *resources;
    struct cap_state *state;
    struct cap_read *task_io;
    struct cap_read *conversation;
    struct cap_plan *plan;
    struct cap_install *install;
    const char *written_containment;

    enum containment_class containment; /* advisory when not declared */
};

/* --- inference --- */

enum inference_transport {
    TRANSPORT_HTTP,
    TRANSPORT_PROCESS,
};

enum tool_refresh {
    TOOL_REFRESH_COMPACTION,
    TOOL_REFRESH_IMMEDIATE,
};

struct driver_choice {
    const char *artifact;
    const struct yaml_node *config; /* NULL or a map */
};

struct alternate {
    const char *name;
    const char *model;
    struct driver_choice *driver;

    const struct artifact_entry *entry; /* the driver's */
};

struct retry_limits {
    struct opt_u64 max_retries;
    struct opt_u64 initial_delay_ms;
    struct opt_u64 max_delay_ms;
};

struct compaction {
    struct opt_double threshold;
    const char *model;
    const char *system_prompt; /* verbatim */
    const char *system_prompt_file;
    struct opt_bool dump_summaries;
    struct opt_u64 max_tokens;
    const struct yaml_node *driver_config;
};

struct inference {
    const char *written_transport;
    const struct yaml_node *endpoint; /* refused keys: kept to be refused by name */
    const char *model;
    const struct yaml_node *api_key;
    const char *command;
    const char *written_containment; /* of the harness; NULL: the capsule's floor decides */
    const char *system_prompt;
    const char *system_prompt_file;
    const char *system_prompt_artifact;
    struct driver_choice *driver;
    struct compaction *compaction;
    struct opt_u64 max_turns; /* no default: no cap */
    const struct yaml_node *max_task_reopens;
    struct opt_u64 max_tokens;
    struct opt_u64 max_session_tokens;
    const char *written_tool_refresh;
    LIST_OF (struct alternate) alternates;
    struct retry_limits *retry; /* never NULL after reading: the defaults */

    enum inference_transport transport;
    enum tool_refresh tool_refresh;
    bool retry_is_declared;
    const struct artifact_entry *driver_entry;
    const struct artifact_entry *prompt_entry; /* of system_prompt_artifact */
};

/* --- the other blocks --- */

/* retain: of context and trace. A zero of either is "not given". */
struct retain {
    uint64_t max_count; /* messages or sessions */
    uint64_t max_age_secs;
};

struct context {
    struct opt_u64 max_tokens;
    const char *written_record;
    const char *record_store; /* NULL: the capsule's name; "" kept */
    struct opt_double seed_budget;
    struct opt_double seed_overflow_margin;
    const struct yaml_node *written_retain;

    bool is_recorded; /* record: on */
    struct retain *retain;
};

struct scorer {
    const char *type;
    const char *name;
    struct opt_u64 max;
    struct str_list expected;
};

struct eval_block {
    const char *dataset_id;
    LIST_OF (struct scorer) scorers; /* unknown types already left out */
    struct str_list skipped;         /* types this build does not know */
};

/* observability.otel, defaults applied. */
struct otel_block {
    const char *endpoint;    /* NULL: otel_endpoint's, or the environment's */
    const char *protocol;    /* NULL: http/protobuf */
    const char *conventions; /* NULL: gen_ai */
    const char *content;     /* NULL: none */
    const struct yaml_node *written_headers, *written_resource;
    LIST_OF (struct name_value) headers;
    LIST_OF (struct name_value) resource;
    struct opt_bool metrics; /* true */
    struct opt_bool pending;
    struct opt_double sample; /* 0 to 1 */
};

struct observability {
    const char *otel_endpoint;
    struct otel_block *otel;
    struct eval_block *eval;
};

enum trace_capture {
    CAPTURE_NONE,
    CAPTURE_META,
    CAPTURE_CONTENT,
    CAPTURE_REPLAY,
};

#define SNAPSHOT_MAX_BYTES ((uint64_t)256 << 20)
#define SNAPSHOT_MAX_FILE  ((uint64_t)16 << 20)
/* trace.snapshot: what of the work folder capture replay keeps. */
struct snapshot_block {
    struct opt_u64 max_bytes, max_file;
    struct str_list exclude;
};

struct trace_block {
    const char *written_capture;
    const struct yaml_node *written_retain;
    struct snapshot_block *snapshot; /* NULL: the defaults */

    enum trace_capture capture;
    struct retain *retain;
};

struct door_credential {
    const char *name;
    struct str_list scopes; /* trimmed, as declared */
};

struct door_authentication {
    const char *scheme;
    LIST_OF (struct door_credential) credentials; /* sorted by name */
};

struct door_network {
    struct opt_u64 internal_port;
    struct door_authentication *authentication; /* NULL: a public door */
};

enum task_acceptance {
    ACCEPT_NONE,
    ACCEPT_SINGLE,
    ACCEPT_QUEUE,
};

enum after_task {
    AFTER_EXIT,
    AFTER_SLEEP,
};

enum conversation_mode {
    CONVERSATION_STATELESS,
    CONVERSATION_THREADED,
};

struct keep_working {
    const char *message;
    struct opt_u64 limit;
};

struct done_check {
    const char *command;
    struct opt_u64 limit;
    struct opt_u64 timeout_secs;
};

struct lifecycle {
    struct opt_u64 task_acceptance; /* enum task_acceptance */
    struct opt_u64 after_task;      /* enum after_task */
    struct opt_u64 queue_depth;
    struct opt_u64 input_timeout_secs; /* not set: wait for ever */
    struct opt_u64 conversation;       /* enum conversation_mode */
    struct opt_u64 max_task_reopens;
    struct opt_u64 shell_grace_secs;
    struct opt_u64 delegation_deadline_secs;
    struct opt_u64 deadline_notice_secs; /* not set: derived from the deadline */
    struct keep_working *keep_working;
    struct done_check *done_check;
};

struct exported_files {
    const char *root; /* trimmed, as written */
    const char *mode;
    const char *written_max_bytes;
    uint64_t max_bytes;
};

struct exported_peer_files {
    const char *root;
    const char *written_max_ttl;
    const char *written_max_bytes;
    uint64_t max_ttl_secs; /* 3600 when not written */
    bool max_ttl_is_set;
    uint64_t max_bytes;
};

struct exported_peer_tasks {
    struct opt_bool accept;
};

struct exported_agent {
    const char *name; /* ask_... */
    const char *description;
};

struct exported_argument {
    const char *name;
    const char *description; /* NULL: none */
    struct opt_bool required;
    struct str_list values;
};

struct exported_prompt {
    const char *name;
    const char *description; /* NULL: none */
    const char *text;
    LIST_OF (struct exported_argument) arguments;
    struct str_list attach;
};

/* A tool whose call may go on as a task. */
struct exported_task {
    const char *tool;
    struct opt_bool required;
    struct opt_u64 wait_secs;
};

/* What MCP clients get. */
struct exported_mcp {
    struct str_list tools; /* names as the model sees them */
    struct exported_agent *agent;
    struct opt_bool skills, files;
    struct opt_bool sampling, roots; /* what its servers of tools may ask its clients */
    const char *files_uri;           /* NULL: file:/// */
    LIST_OF (struct exported_prompt) prompts;
    LIST_OF (struct exported_task) tasks;
};

struct exports {
    struct exported_files *files;
    struct exported_peer_files *peer_files;
    struct exported_peer_tasks *peer_tasks;
    struct exported_mcp *mcp;
    struct str_list origins;
};

struct control {
    struct str_list settings;
    struct str_list agent_settings;
    struct str_list secrets;
};

struct deploy {
    const char *mur_version;
};

/* --- what is asked first --- */

struct approvals {
    struct str_list tools;    /* names, or "*" */
    struct str_list commands; /* words, the first a program */
    struct str_list hosts;    /* entries as in network.allow */
    struct str_list paths;    /* subtrees of the work folder */
    struct str_list capsules; /* full or bare names */
    struct opt_u64 timeout_secs;
    struct opt_u64 on_timeout; /* enum approval_timeout */
};

enum approval_timeout { APPROVAL_TIMEOUT_REFUSES, APPROVAL_TIMEOUT_ALLOWS };

/* --- the manifest --- */

struct capsule_manifest {
    const char *name;
    const char *version;
    LIST_OF (struct artifact_entry) artifacts;
    struct capabilities *capabilities; /* never NULL after reading; all-deny when not declared */
    struct inference *inference;       /* NULL: a script capsule */
    struct context *context;
    struct observability *observability;
    struct trace_block *trace;
    struct door_network *network;
    struct lifecycle *lifecycle; /* never NULL after reading */
    struct approvals *approvals; /* NULL: nothing is asked */
    struct exports *exports;
    struct control *control; /* NULL also when all its lists are empty */
    struct deploy *deploy;
    const struct yaml_node *mur_version;
    const struct yaml_node *config;

    struct arena *arena;
    const char *file;             /* as messages call it */
    const struct yaml_node *root; /* the tree; literal keys wiped */
    const struct unknown_key *unknown_keys;
    size_t unknown_len;
    size_t unknown_total; /* above unknown_len when there are more than are worth listing */
    bool capabilities_are_declared;
    const struct artifact_entry **by_name; /* sorted, for capsule_manifest_artifact */
};

enum manifest_reading {
    MANIFEST_WITH_SECRETS,
    MANIFEST_SECRETLESS, /* the same judgement, but no literal key is kept */
};

/* Reads and judges a manifest. <file> is how messages call it. Prints nothing; unknown keys are
 * listed in the result. E-MAN-001/002/003, E-CAP-018. */
struct capsule_manifest *capsule_manifest_parse (const char *text, size_t len, const char *file,
                                                 enum manifest_reading how, struct mur_error **err);
/* The same; of a manifest that is refused it prints the unknown keys that are near a known one:
 * what is spelled wrongly is often why another is missing. */
struct capsule_manifest *
capsule_manifest_parse_aloud (const char *text, size_t len, const char *file,
                              enum manifest_reading how, struct mur_error **err);
/* That of a file: also E-IO-001 (missing), E-IO-003. */
struct capsule_manifest *
capsule_manifest_read (const char *path, enum manifest_reading how, struct mur_error **err);
void capsule_manifest_free (struct capsule_manifest *m);
DEFINE_CLEANUP (struct capsule_manifest, capsule_manifest_free)

/* Prints one W-SEC-019 line for each unknown key, in order. */
void capsule_manifest_warn_unknown (const struct capsule_manifest *m);
/* "<file>:<line>:<column>: <path>: <text>" as an error about a key; for checks later than the
 * parse. Always false. */
bool
capsule_manifest_fail (const struct capsule_manifest *m, struct mur_error **err,
                       enum diag_code code, const char *path, const char *fmt, ...) _printf_ (5, 6);
/* The limits and resources of a capsule that declares none. */
struct cap_limits limits_default (void);
struct cap_resources resources_default (void);
/* Tasks held at once: none 0, single 1, queue depth + 1. */
uint64_t lifecycle_tasks_held (const struct lifecycle *l);

/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/capsule/capsule_schema.h"
#include "manifest/capsule/exports_schema.h"
#include "manifest/text/schema_rows.h"

#define MIB (UINT64_C (1) << 20)
#define GIB (UINT64_C (1) << 30)

/* --- capabilities --- */

static const struct schema_key network_keys[] = {
    KEY (
        cap_network, allow, KEY_TEXTS,
        DOC (
            "Hosts that may be reached: host, host:port or https://host[:port]. Nothing else is.")),
    KEY (cap_network, unix_sockets, KEY_BOOL, .flags = KEY_NULL_IS_ERROR,
         DOC ("Commands may use unix sockets of their own.")),
    KEY (cap_network, host_sockets, KEY_TEXTS, .flags = KEY_TRIM_ITEMS,
         DOC ("Absolute paths of sockets of this host that commands may connect to. What answers "
              "there acts outside every wall.")),
    END,
};
static const struct schema network_schema = SCHEMA (network_keys, cap_network);

static const struct schema_key peer_fetch_keys[] = {
    KEY (cap_allow, allow, KEY_TEXTS,
         DOC ("Peers whose handed files may be fetched; adds the tool fetch-peer-file.")),
    END,
};
static const struct schema peer_fetch_schema = SCHEMA (peer_fetch_keys, cap_allow);

static const char *const workdir_exec_words[] = { "false", "true", "walled", NULL };

static const struct schema_key filesystem_keys[] = {
    KEY (cap_filesystem, scope, KEY_TRIMMED,
         DOC ("On an artifact: the part of the work folder it sees as its own. On the capsule: "
              "only reported and compared when spawning.")),
    KEY (cap_filesystem, workdir_exec, KEY_ENUM, .flags = KEY_NULL_IS_ERROR,
         .words = workdir_exec_words,
         DOC ("Files of the work folder and of the session's temporary and home folders may be "
              "executed: `walled` inside every wall (the class stays; shell.allow no longer bounds "
              "which code runs), `true` lowers containment to advisory.")),
    KEY (cap_filesystem, read_only, KEY_TEXTS, .flags = KEY_TRIM_ITEMS,
         DOC ("Subtrees of the work folder that tools and commands may not change.")),
    KEY (cap_filesystem, records, KEY_BOOL, .flags = KEY_NULL_IS_ERROR,
         DOC ("On a hook: its folder is the session's own records folder for hooks.")),
    END,
};
static const struct schema filesystem_schema = SCHEMA (filesystem_keys, cap_filesystem);

static const struct schema_key interpreter_dir_keys[] = {
    KEY (interpreter_dir, path, KEY_TEXT, DOC ("An absolute directory.")),
    KEY (interpreter_dir, list_dir, KEY_BOOL, DOC ("Whether it may be listed. Required.")),
    END,
};
static const struct schema interpreter_dir_schema = SCHEMA (interpreter_dir_keys, interpreter_dir);

static const struct schema_key interpreter_keys[] = {
    KEY (interpreter_runtime, binary, KEY_TEXT, DOC ("A name in shell.allow.")),
    KEY (interpreter_runtime, dirs, KEY_BLOCKS, .block = &interpreter_dir_schema,
         DOC ("Directories it may read.")),
    END,
};
static const struct schema interpreter_schema = SCHEMA (interpreter_keys, interpreter_runtime);

static const struct schema_key staged_keys[] = {
    KEY (staged_runtime, binary, KEY_TEXT, DOC ("A name in shell.allow.")),
    KEY (staged_runtime, source_path, KEY_TEXT, DOC ("The absolute directory to stage.")),
    KEY (staged_runtime, pin, KEY_TRIMMED, DOC ("What the operator pins it to; only reported.")),
    END,
};
static const struct schema staged_schema = SCHEMA (staged_keys, staged_runtime);

static const struct schema_key shell_keys[] = {
    KEY (cap_shell, allow, KEY_TEXTS, DOC ("Programs that may run, by bare name.")),
    KEY (cap_shell, strip_env, KEY_TEXTS, .flags = KEY_NULL_IS_ABSENT,
         DOC ("Variables taken out of every environment: NAME, PREFIX*, *SUFFIX, *PART*, *.")),
    KEY (cap_shell, baseline_env, KEY_TEXTS, .flags = KEY_NULL_IS_ABSENT,
         DOC ("Host variables added to the environment of commands, by exact name.")),
    KEY (cap_shell, interpreter_runtime, KEY_BLOCKS, .block = &interpreter_schema,
         DOC ("Host directories an allowed interpreter may read.")),
    KEY (cap_shell, staged_runtime, KEY_BLOCKS, .block = &staged_schema,
         DOC ("Runtimes placed into a sealed root; needs containment: sealed.")),
    END,
};
static const struct schema shell_schema = SCHEMA (shell_keys, cap_shell);

static const struct schema_key spawn_keys[] = {
    KEY (cap_spawn, allow, KEY_TEXTS,
         DOC ("Capsules that may be started, by full name; adds the tool delegate-task.")),
    KEY (cap_spawn, workdir_snapshot, KEY_TEXTS,
         DOC ("Children of spawn.allow that receive a snapshot of the work folder.")),
    END,
};
static const struct schema spawn_schema = SCHEMA (spawn_keys, cap_spawn);

static const struct schema_key env_keys[] = {
    KEY (cap_allow, allow, KEY_TEXTS, DOC ("Host variables guests receive, by exact name.")),
    END,
};
static const struct schema env_schema = SCHEMA (env_keys, cap_allow);

#define POSITIVE(default_value, text) .rule = RULE_POSITIVE, .fallback = (default_value), DOC (text)

static const struct schema_key limits_keys[] = {
    KEY (cap_limits, memory_bytes, KEY_U64, POSITIVE (512 * MIB, "Bytes of one linear memory.")),
    KEY (cap_limits, table_elements, KEY_U64, POSITIVE (100000, "Elements of one table.")),
    KEY (cap_limits, instances, KEY_U64, POSITIVE (1000, "Instances in one store.")),
    KEY (cap_limits, deadline_seconds, KEY_U64,
         POSITIVE (600, "Seconds of one call into a component; 30 for hooks when not written.")),
    END,
};
const struct schema limits_schema = SCHEMA (limits_keys, cap_limits);

static const struct schema_key resources_keys[] = {
    KEY (cap_resources, max_processes, KEY_U64,
         POSITIVE (128, "Processes, where no cgroup counts them.")),
    KEY (cap_resources, max_open_files, KEY_U64, POSITIVE (1024, "Open files of one process.")),
    KEY (cap_resources, max_file_size_bytes, KEY_U64,
         POSITIVE (4 * GIB, "Bytes of one file written.")),
    KEY (cap_resources, cpu_seconds, KEY_U64, POSITIVE (3600, "Processor seconds of one process.")),
    KEY (
        cap_resources, memory_bytes, KEY_U64,
        POSITIVE (
            2 * GIB,
            "Address space of one process. Unwritten, it holds only where no control group bounds memory.")),
    KEY (cap_resources, cgroup_memory_bytes, KEY_U64,
         POSITIVE (4 * GIB, "Memory of all commands together.")),
    KEY (cap_resources, cgroup_pids_max, KEY_U64,
         POSITIVE (256, "Processes of all commands together.")),
    KEY (cap_resources, cgroup_cpu_percent, KEY_U32, POSITIVE (200, "Percent of one processor.")),
    KEY (cap_resources, cgroup_io_bytes_per_sec, KEY_U64,
         POSITIVE (100 * MIB, "Disk bytes a second; best effort.")),
    KEY (cap_resources, workdir_max_bytes, KEY_U64,
         POSITIVE (10 * GIB, "Size of the work folder.")),
    KEY (cap_resources, free_disk_bytes, KEY_U64,
         POSITIVE (512 * MIB,
                   "A command is stopped while the disk of the work folder has less left; never "
                   "more than half of what was free when the first command began.")),
    END,
};
const struct schema resources_schema = SCHEMA (resources_keys, cap_resources);

static const struct schema_key state_keys[] = {
    KEY (cap_state, store, KEY_TRIM_KEPT,
         DOC ("Folder below ~/.murmur/state the artifact keeps between sessions; the capsule's "
              "name when absent.")),
    END,
};
static const struct schema state_schema = SCHEMA (state_keys, cap_state);

static const struct schema_key read_keys[] = {
    KEY (cap_read, read, KEY_BOOL, DOC ("Required.")),
    END,
};
static const struct schema read_schema = SCHEMA (read_keys, cap_read);

static const struct schema_key plan_keys[] = {
    KEY (cap_plan, submit, KEY_BOOL, DOC ("Adds the tool submit-plan. Required in the block.")),
    END,
};
static const struct schema plan_schema = SCHEMA (plan_keys, cap_plan);

static const struct schema_key install_keys[] = {
    KEY (cap_install, skill, KEY_TEXTS,
         DOC ("Skills a session may pull: *, scope/*, scope/prefix* or a full name.")),
    KEY (cap_install, tool, KEY_TEXTS, DOC ("Tools a session may pull, the same way.")),
    KEY (cap_install, from, KEY_TEXTS, .flags = KEY_NULL_IS_ABSENT,
         DOC ("Where pulls come from: stores, or stores and sources.")),
    END,
};
static const struct schema install_schema = SCHEMA (install_keys, cap_install);

static const struct schema_key capability_keys[] = {
    KEY (capabilities, network, KEY_BLOCK, .block = &network_schema, DOC ("Outbound network.")),
    KEY (capabilities, peer_fetch, KEY_BLOCK, .block = &peer_fetch_schema,
         DOC ("Files handed by peers.")),
    KEY (capabilities, filesystem, KEY_BLOCK, .block = &filesystem_schema, DOC ("Files.")),
    KEY (capabilities, shell, KEY_BLOCK, .block = &shell_schema, DOC ("Native commands.")),
    KEY (capabilities, spawn, KEY_BLOCK, .block = &spawn_schema, DOC ("Starting other capsules.")),
    KEY (capabilities, env, KEY_BLOCK, .block = &env_schema, DOC ("Host variables for guests.")),
    KEY (capabilities, limits, KEY_BLOCK, .block = &limits_schema,
         DOC ("Bounds of one component call.")),
    KEY (capabilities, resources, KEY_BLOCK, .block = &resources_schema,
         DOC ("Bounds of native commands.")),
    KEY (capabilities, state, KEY_BLOCK, .block = &state_schema,
         DOC ("State kept between sessions; on an artifact.")),
    KEY (capabilities, task_io, KEY_BLOCK, .block = &read_schema,
         DOC ("A hook may read the task's text.")),
    KEY (capabilities, conversation, KEY_BLOCK, .block = &read_schema,
         DOC ("A hook may read the conversation.")),
    KEY (capabilities, plan, KEY_BLOCK, .block = &plan_schema, DOC ("Plans.")),
    KEY (capabilities, install, KEY_BLOCK, .block = &install_schema,
         DOC ("Pulling artifacts while running.")),
    KEY_AS ("containment", capabilities, written_containment, KEY_TRIMMED, .rule = RULE_WORDS,
            .words = (const char *const[]){ "advisory", "scoped", "sealed", NULL },
            DOC ("The floor: a host that cannot give it refuses the launch.")),
    END,
};
const struct schema capabilities_schema = SCHEMA (capability_keys, capabilities);

/* --- artifacts[] --- */

static const struct schema_key gateway_keys[] = {
    KEY_AS ("endpoint", gateway_block, written_endpoint, KEY_TEXT,
            DOC ("The provider's literal address.")),
    KEY_AS ("api_key", gateway_block, written_api_key, KEY_SCALAR,
            DOC ("${NAME} of a credential or variable, or the key itself.")),
    KEY_AS ("keyless", gateway_block, written_keyless, KEY_BOOL,
            DOC ("The provider wants no key.")),
    KEY (gateway_block, header, KEY_TRIMMED,
         DOC ("The header that carries the key (authorization, x-api-key, x-goog-api-key, api-key, "
              "...), where the provider wants another than the artifact says.")),
    END,
};
static const struct schema gateway_schema = SCHEMA (gateway_keys, gateway_block);

static const char *const mcp_start_words[] = { "first-call", "launch", NULL };
static const char *const mcp_keep_words[] = { "session", "call", NULL };
static const char *const mcp_drift_words[] = { "refuse", "drop", NULL };
static const char *const mcp_ask_words[] = { "deny", "operator", NULL };

static const struct schema_key mcp_keys[] = {
    KEY (mcp_block, args, KEY_TEXTS,
         DOC ("Words after the packed command; those it was reviewed with when absent.")),
    KEY_AS ("env", mcp_block, written_env, KEY_NODE,
            DOC ("Constants of its environment. What looks like a key is refused.")),
    KEY (mcp_block, tools, KEY_TEXTS,
         DOC ("Which of the reviewed tools are offered; all when absent.")),
    KEY (mcp_block, prefix, KEY_TRIM_KEPT,
         DOC ("Put before the tools' names with an underscore: the server's name when absent, "
              "nothing when empty.")),
    KEY_AS ("rename", mcp_block, written_rename, KEY_NODE,
            DOC ("Other names for some of its tools, by their own names.")),
    KEY (mcp_block, start, KEY_ENUM, .flags = KEY_NULL_IS_ERROR, .words = mcp_start_words,
         DOC ("When it is started: with the first call, or with the launch.")),
    KEY (mcp_block, keep, KEY_ENUM, .flags = KEY_NULL_IS_ERROR, .words = mcp_keep_words,
         DOC ("How long it runs: for the session, or for one call.")),
    KEY (mcp_block, startup_secs, KEY_U64, .rule = RULE_RANGE, .min = 1, .max = 600, .fallback = 30,
         DOC ("Seconds it may take to start and list its tools.")),
    KEY (mcp_block, on_drift, KEY_ENUM, .flags = KEY_NULL_IS_ERROR, .words = mcp_drift_words,
         DOC ("When what it says of its tools is not what was reviewed: refuse every call, or "
              "drop the tools that changed.")),
    KEY (mcp_block, ask, KEY_ENUM, .flags = KEY_NULL_IS_ERROR, .words = mcp_ask_words,
         DOC ("When it asks a person for input: deny, or let the task wait for the operator.")),
    KEY (mcp_block, url, KEY_TRIMMED,
         DOC ("Of a server far away: its address, as reviewed. With a gateway beside it, without "
              "an endpoint, the key goes there.")),
    KEY (mcp_block, gateway_env, KEY_TRIMMED,
         DOC ("The variable that receives the gateway's address in place of the provider's.")),
    KEY (mcp_block, placeholder_env, KEY_TRIMMED,
         DOC ("The variable that receives a worthless token where it wants a key.")),
    KEY (mcp_block, secret_env, KEY_TEXTS,
         DOC ("Host variables with keys it is given plainly: the last resort, warned about.")),
    KEY (mcp_block, instructions, KEY_BOOL, .flags = KEY_NULL_IS_ERROR,
         DOC ("Its reviewed instructions are added to the system prompt.")),
    END,
};
const struct schema mcp_schema = SCHEMA (mcp_keys, mcp_block);

static const struct schema_key artifact_keys[] = {
    KEY (artifact_entry, name, KEY_TEXT,
         DOC ("Full name <scope>/<name>; bare with a source. Required.")),
    KEY (artifact_entry, version, KEY_TEXT, DOC ("Exact version. Required without a source.")),
    KEY_AS ("runtime", artifact_entry, written_runtime, KEY_TEXT,
            DOC ("tool, driver, hook, skill or mcp; tool when absent.")),
    KEY (artifact_entry, source, KEY_TRIMMED, DOC ("A local path instead of the stores.")),
    KEY (artifact_entry, local_source, KEY_BOOL,
         DOC ("Whether a source is accepted; true for skills.")),
    KEY (artifact_entry, prompt_payload, KEY_BOOL,
         DOC ("May be the system prompt; true for skills.")),
    KEY (artifact_entry, capabilities, KEY_BLOCK, .block = &capabilities_schema,
         DOC ("What this artifact may reach: narrows a tool or driver, grants a hook.")),
    KEY_AS ("on_overflow", artifact_entry, written_on_overflow, KEY_TEXT,
            DOC ("drop or block: what a full queue of an async hook does.")),
    KEY (artifact_entry, config, KEY_NODE, DOC ("Handed to the artifact as JSON.")),
    KEY (artifact_entry, gateway, KEY_BLOCK, .block = &gateway_schema, .flags = KEY_NULL_IS_EMPTY,
         DOC ("A provider reached with a key the artifact never sees.")),
    KEY (artifact_entry, mcp, KEY_BLOCK, .block = &mcp_schema, .flags = KEY_NULL_IS_EMPTY,
         DOC ("Of runtime: mcp: how the server is started and what of it is offered.")),
    END,
};
static const struct schema artifact_schema = SCHEMA (artifact_keys, artifact_entry);

/* --- inference --- */

static const struct schema_key driver_keys[] = {
    KEY (driver_choice, artifact, KEY_TRIMMED, DOC ("The declared driver artifact. Required.")),
    KEY (driver_choice, config, KEY_NODE, DOC ("Handed to the driver as JSON.")),
    END,
};
static const struct schema driver_schema = SCHEMA (driver_keys, driver_choice);

static const struct schema_key compaction_keys[] = {
    KEY (compaction, threshold, KEY_FLOAT, .rule = RULE_FRACTION_ABOVE_0, .fallback_fraction = 0.98,
         DOC ("Part of the input budget that starts a compaction.")),
    KEY (compaction, model, KEY_TEXT, DOC ("Model that compacts; the primary one when absent.")),
    KEY (compaction, system_prompt, KEY_TEXT, .flags = KEY_PROSE, DOC ("Its system prompt.")),
    KEY (compaction, system_prompt_file, KEY_TEXT, DOC ("A file with it.")),
    KEY (compaction, dump_summaries, KEY_BOOL, DOC ("Keep the summaries in the records.")),
    KEY (compaction, max_tokens, KEY_U32, .rule = RULE_POSITIVE,
         DOC ("Output cap of these calls.")),
    KEY (compaction, driver_config, KEY_NODE, DOC ("Laid over driver.config for these calls.")),
    END,
};
static const struct schema compaction_schema = SCHEMA (compaction_keys, compaction);

static const struct schema_key alternate_keys[] = {
    KEY (alternate, name, KEY_TEXT, DOC ("How it is selected. Required.")),
    KEY (alternate, model, KEY_TRIMMED, DOC ("Required.")),
    KEY (alternate, driver, KEY_BLOCK, .block = &driver_schema, DOC ("Required.")),
    END,
};
static const struct schema alternate_schema = SCHEMA (alternate_keys, alternate);

static const struct schema_key retry_keys[] = {
    KEY (retry_limits, max_retries, KEY_U64, .rule = RULE_RANGE, .min = 0, .max = 20, .fallback = 6,
         DOC ("How often a failed request is repeated.")),
    KEY (retry_limits, initial_delay_ms, KEY_U64, .rule = RULE_RANGE, .min = 1, .max = 60000,
         .fallback = 1000, DOC ("Milliseconds before the first repetition.")),
    KEY (retry_limits, max_delay_ms, KEY_U64, .rule = RULE_RANGE, .min = 1, .max = 3600000,
         .fallback = 60000, DOC ("Most milliseconds between two.")),
    END,
};
const struct schema retry_schema = SCHEMA (retry_keys, retry_limits);

static const struct schema_key inference_keys[] = {
    KEY_AS ("transport", inference, written_transport, KEY_TRIMMED, .rule = RULE_WORDS,
            .words = (const char *const[]){ "http", "process", NULL },
            DOC ("http asks a model through a driver; process drives a harness.")),
    KEY (inference, endpoint, KEY_NODE, .flags = KEY_HIDDEN),
    KEY (inference, model, KEY_TRIMMED, DOC ("The model's id. Required with http.")),
    KEY (inference, api_key, KEY_NODE, .flags = KEY_HIDDEN),
    KEY (inference, command, KEY_TRIMMED,
         DOC ("The harness executable, instead of the one the driver names.")),
    KEY_AS ("containment", inference, written_containment, KEY_TRIMMED, .rule = RULE_WORDS,
            .words = (const char *const[]){ "none", "advisory", "scoped", "sealed", NULL },
            DOC ("The class the harness itself runs in, with transport: process; the capsule's "
                 "own floor when absent, and outside of every class when there is none.")),
    KEY (inference, system_prompt, KEY_TRIMMED, .flags = KEY_PROSE,
         DOC ("The system prompt itself.")),
    KEY (inference, system_prompt_file, KEY_TRIMMED, DOC ("A file with it, beside the manifest.")),
    KEY (inference, system_prompt_artifact, KEY_TRIMMED, DOC ("A declared skill that is it.")),
    KEY (inference, driver, KEY_BLOCK, .block = &driver_schema, DOC ("The driver. Required.")),
    KEY (inference, compaction, KEY_BLOCK, .block = &compaction_schema,
         DOC ("Making a long conversation short.")),
    KEY (inference, max_turns, KEY_U32, .rule = RULE_POSITIVE, DOC ("Turns of one task.")),
    KEY (inference, max_task_reopens, KEY_NODE, .flags = KEY_HIDDEN),
    KEY (inference, max_tokens, KEY_U32, .rule = RULE_POSITIVE, DOC ("Output cap of one turn.")),
    KEY (inference, max_session_tokens, KEY_U64, .rule = RULE_POSITIVE,
         DOC ("Tokens the whole session may spend.")),
    KEY_AS ("tool_refresh", inference, written_tool_refresh, KEY_TEXT, .rule = RULE_WORDS,
            .words = (const char *const[]){ "compaction", "immediate", NULL },
            DOC ("When a changed tool list reaches the model.")),
    KEY (inference, alternates, KEY_BLOCKS, .block = &alternate_schema, .flags = KEY_NULL_IS_ABSENT,
         DOC ("Other drivers and models a session may switch to.")),
    KEY (inference, retry, KEY_BLOCK, .block = &retry_schema, DOC ("Repeating failed requests.")),
    END,
};
const struct schema inference_schema = SCHEMA (inference_keys, inference);

/* --- the rest --- */

static const struct schema_key context_keys[] = {
    KEY (context, max_tokens, KEY_U32, .rule = RULE_POSITIVE,
         DOC ("Context window of every driver choice.")),
    KEY_AS ("record", context, written_record, KEY_TRIM_KEPT, .rule = RULE_WORDS,
            .words = (const char *const[]){ "on", "off", NULL },
            DOC ("Whether conversations are kept.")),
    KEY (context, record_store, KEY_TRIM_KEPT,
         DOC ("Folder they are kept in; the capsule's name when absent.")),
    KEY (context, seed_budget, KEY_FLOAT, .rule = RULE_FRACTION, .fallback_fraction = 0.10,
         DOC ("Part of the budget a hook may seed.")),
    KEY (context, seed_overflow_margin, KEY_FLOAT, .rule = RULE_FRACTION, .fallback_fraction = 0.10,
         DOC ("How far a seed may exceed it.")),
    KEY_AS ("retain", context, written_retain, KEY_NODE,
            DOC ("max_messages and max_age of a record.")),
    END,
};
const struct schema context_schema = SCHEMA (context_keys, context);

static const struct schema_key scorer_keys[] = {
    KEY (scorer, type, KEY_TEXT, .flags = KEY_REQUIRED,
         DOC ("exit_ok, max_turns, max_tokens, tool_sequence or llm_judge. Required.")),
    KEY (scorer, name, KEY_TEXT, DOC ("Its name; the type when absent.")),
    KEY (scorer, max, KEY_U64, DOC ("10 turns or 100000 tokens when absent.")),
    KEY (scorer, expected, KEY_TEXTS, .flags = KEY_NULL_IS_ABSENT, DOC ("Tools in order.")),
    END,
};
static const struct schema scorer_schema = SCHEMA (scorer_keys, scorer);

static const struct schema_key eval_keys[] = {
    KEY (eval_block, dataset_id, KEY_TEXT, DOC ("Name of the dataset.")),
    KEY (eval_block, scorers, KEY_BLOCKS, .block = &scorer_schema, DOC ("How a run is judged.")),
    END,
};
static const struct schema eval_schema = SCHEMA (eval_keys, eval_block);

static const struct schema_key otel_keys[] = {
    KEY (otel_block, endpoint, KEY_TRIMMED,
         DOC ("Where spans go: http:// or https://, host, port, a prefix.")),
    KEY (otel_block, protocol, KEY_TRIMMED, .rule = RULE_WORDS,
         .words = (const char *const[]){ "http/protobuf", "http/json", NULL },
         DOC ("http/protobuf when absent, or http/json.")),
    KEY_AS ("headers", otel_block, written_headers, KEY_NODE,
            DOC ("Sent with each request: names to texts, in which ${NAME} is a credential.")),
    KEY (otel_block, conventions, KEY_TRIMMED, .rule = RULE_WORDS,
         .words = (const char *const[]){ "gen_ai", "capsule", NULL },
         DOC ("gen_ai when absent (OpenTelemetry's GenAI conventions), or capsule.")),
    KEY (otel_block, content, KEY_TRIMMED, .rule = RULE_WORDS,
         .words = (const char *const[]){ "none", "meta", "full", NULL },
         DOC ("What of the conversation spans carry: none when absent; meta: command lines and "
              "failures; full: messages, arguments and results, which trace.capture must keep.")),
    KEY (otel_block, metrics, KEY_BOOL, .fallback = true, DOC ("Metrics, too; true when absent.")),
    KEY (otel_block, pending, KEY_BOOL, DOC ("Send a task's span at its start as well.")),
    KEY (otel_block, sample, KEY_FLOAT, .rule = RULE_FRACTION,
         DOC ("The share of traces that is sent, 0 to 1; 1 when absent.")),
    KEY_AS ("resource", otel_block, written_resource, KEY_NODE,
            DOC ("Attributes of the sender: names to texts.")),
    END,
};
const struct schema otel_schema = SCHEMA (otel_keys, otel_block);

static const struct schema_key observability_keys[] = {
    KEY (observability, otel_endpoint, KEY_TRIMMED,
         DOC ("Where capsule.* spans are exported; with otel beside it, that block's endpoint.")),
    KEY (observability, otel, KEY_BLOCK, .block = &otel_schema, .flags = KEY_NULL_IS_EMPTY,
         DOC ("How spans are exported.")),
    KEY (observability, eval, KEY_BLOCK, .block = &eval_schema, DOC ("Evaluation.")),
    END,
};
static const struct schema observability_schema = SCHEMA (observability_keys, observability);

static const struct schema_key snapshot_keys[] = {
    KEY (snapshot_block, max_bytes, KEY_U64,
         POSITIVE (SNAPSHOT_MAX_BYTES, "Bytes of files kept of one moment.")),
    KEY (snapshot_block, max_file, KEY_U64,
         POSITIVE (SNAPSHOT_MAX_FILE, "Bytes of one file; larger ones are left out.")),
    KEY (snapshot_block, exclude, KEY_TEXTS, .flags = KEY_NULL_IS_ABSENT | KEY_TRIM_ITEMS,
         DOC ("Names and paths that are left out, as shell patterns.")),
    END,
};
static const struct schema snapshot_schema = SCHEMA (snapshot_keys, snapshot_block);

static const struct schema_key trace_keys[] = {
    KEY_AS ("capture", trace_block, written_capture, KEY_TRIM_KEPT, .rule = RULE_WORDS,
            .words = (const char *const[]){ "none", "meta", "content", "replay", NULL },
            DOC ("How much of what was said is kept; meta when absent.")),
    KEY (trace_block, snapshot, KEY_BLOCK, .block = &snapshot_schema,
         DOC ("What of the work folder capture replay keeps.")),
    KEY_AS ("retain", trace_block, written_retain, KEY_NODE,
            DOC ("max_sessions and max_age of traces.")),
    END,
};
const struct schema trace_schema = SCHEMA (trace_keys, trace_block);

static const struct schema_key credential_keys[] = {
    KEY (door_credential, scopes, KEY_TEXTS, .flags = KEY_NULL_IS_ABSENT | KEY_TRIM_ITEMS,
         DOC ("Methods this credential may call. Required.")),
    END,
};
static const struct schema credential_schema = SCHEMA (credential_keys, door_credential);

static const struct schema_key authentication_keys[] = {
    KEY (door_authentication, scheme, KEY_TRIMMED, DOC ("bearer. Required.")),
    KEY (door_authentication, credentials, KEY_BLOCK_MAP, .block = &credential_schema,
         .flags = KEY_NULL_IS_ABSENT, DOC ("Names and what each may do, beside the operator.")),
    END,
};
static const struct schema authentication_schema =
    SCHEMA (authentication_keys, door_authentication);

static const struct schema_key door_keys[] = {
    KEY (door_network, internal_port, KEY_U16, DOC ("Port of the door; any free one when absent.")),
    KEY (door_network, authentication, KEY_BLOCK, .block = &authentication_schema,
         DOC ("Who may come in; everybody when absent.")),
    END,
};
static const struct schema door_schema = SCHEMA (door_keys, door_network);

static const struct schema_key keep_working_keys[] = {
    KEY (keep_working, message, KEY_TEXT, .flags = KEY_PROSE,
         DOC ("What the model is told. Required.")),
    KEY (keep_working, limit, KEY_U32, .rule = RULE_POSITIVE, DOC ("How often. Required.")),
    END,
};
static const struct schema keep_working_schema = SCHEMA (keep_working_keys, keep_working);

static const struct schema_key done_check_keys[] = {
    KEY (done_check, command, KEY_TEXT,
         DOC ("An allowed command that judges the result. Required.")),
    KEY (done_check, limit, KEY_U32,
         DOC ("How often a task is reopened; 0 only records. Required.")),
    KEY (done_check, timeout_secs, KEY_U64, .rule = RULE_POSITIVE, .fallback = 600,
         DOC ("Seconds it may take.")),
    END,
};
static const struct schema done_check_schema = SCHEMA (done_check_keys, done_check);

static const struct schema_key lifecycle_keys[] = {
    KEY (lifecycle, task_acceptance, KEY_ENUM, .fallback = ACCEPT_SINGLE,
         .words = (const char *const[]){ "none", "single", "queue", NULL },
         DOC ("Tasks taken at the door.")),
    KEY (lifecycle, after_task, KEY_ENUM, .fallback = AFTER_EXIT,
         .words = (const char *const[]){ "exit", "sleep", NULL },
         DOC ("What happens when a task is done.")),
    KEY (lifecycle, queue_depth, KEY_U64, .fallback = 1, DOC ("Tasks that may wait with queue.")),
    KEY (lifecycle, input_timeout_secs, KEY_U64,
         DOC ("Seconds to wait for an answer; for ever when absent.")),
    KEY (lifecycle, conversation, KEY_ENUM, .fallback = CONVERSATION_STATELESS,
         .words = (const char *const[]){ "stateless", "threaded", NULL },
         DOC ("Whether a context is continued.")),
    KEY (lifecycle, max_task_reopens, KEY_U32, .fallback = 1,
         DOC ("How often hooks may reopen a task.")),
    KEY (lifecycle, shell_grace_secs, KEY_U64, .fallback = 10,
         DOC ("Seconds before a command goes to the background.")),
    KEY (lifecycle, delegation_deadline_secs, KEY_U64, .fallback = 600,
         DOC ("Seconds a delegated task may take.")),
    KEY (lifecycle, deadline_notice_secs, KEY_U64,
         DOC ("Seconds before the deadline the model is told; 0 never.")),
    KEY (lifecycle, keep_working, KEY_BLOCK, .block = &keep_working_schema,
         DOC ("Sends the model back to work.")),
    KEY (lifecycle, done_check, KEY_BLOCK, .block = &done_check_schema,
         DOC ("A command decides whether it is done.")),
    END,
};
const struct schema lifecycle_schema = SCHEMA (lifecycle_keys, lifecycle);

static const struct schema_key control_keys[] = {
    KEY (control, settings, KEY_TEXTS, .flags = KEY_NULL_IS_ABSENT | KEY_TRIM_ITEMS,
         DOC ("Settings a controller may change: inference.max_tokens, inference.driver.")),
    KEY (control, secrets, KEY_TEXTS, .flags = KEY_NULL_IS_ABSENT | KEY_TRIM_ITEMS,
         DOC ("Keys only a controller supplies.")),
    KEY (control, agent_settings, KEY_TEXTS, .flags = KEY_NULL_IS_ABSENT | KEY_TRIM_ITEMS,
         DOC ("Settings the agent may change itself: inference.driver.")),
    END,
};
static const struct schema control_schema = SCHEMA (control_keys, control);

static const char *const on_timeout_words[] = { "refuse", "allow", NULL };

static const struct schema_key approvals_keys[] = {
    KEY (approvals, tools, KEY_TEXTS, .flags = KEY_TRIM_ITEMS,
         DOC ("Tools asked about before each call, by the name the model calls them by or their "
              "full name; `*` for every tool.")),
    KEY (approvals, commands, KEY_TEXTS, .flags = KEY_TRIM_ITEMS,
         DOC ("Commands asked about before they run: a program, or a program and words that "
              "follow it in this order, as in `git push`. A script in which it cannot be seen "
              "which programs run is asked about too.")),
    KEY (approvals, hosts, KEY_TEXTS, .flags = KEY_TRIM_ITEMS,
         DOC ("Hosts of network.allow that stay closed to tools and commands until a call that "
              "names one was approved.")),
    KEY (approvals, paths, KEY_TEXTS, .flags = KEY_TRIM_ITEMS,
         DOC ("Subtrees of the work folder: what may write there is asked about.")),
    KEY (approvals, capsules, KEY_TEXTS, .flags = KEY_TRIM_ITEMS,
         DOC ("Capsules of spawn.allow asked about before a task is delegated to them.")),
    KEY (approvals, timeout_secs, KEY_U64, POSITIVE (300, "How long a question waits.")),
    KEY (approvals, on_timeout, KEY_ENUM, .words = on_timeout_words,
         DOC ("What the end of that time answers: `refuse` or `allow`, once.")),
    END,
};
const struct schema approvals_schema = SCHEMA (approvals_keys, approvals);

static const struct schema_key deploy_keys[] = {
    KEY (deploy, mur_version, KEY_TRIMMED, DOC ("The version a deployment uses.")),
    END,
};
static const struct schema deploy_schema = SCHEMA (deploy_keys, deploy);

static const struct schema_key capsule_keys[] = {
    KEY (capsule_manifest, name, KEY_TEXT, DOC ("Required.")),
    KEY (capsule_manifest, version, KEY_TEXT,
         DOC ("Required. Three numbers where it is packed, such as 0.1.0; a bare number is taken "
              "as its text.")),
    KEY (capsule_manifest, artifacts, KEY_BLOCKS, .block = &artifact_schema,
         DOC ("What the capsule is made of.")),
    KEY (capsule_manifest, capabilities, KEY_BLOCK, .block = &capabilities_schema,
         DOC ("What it may do. Absent means deny.")),
    KEY (capsule_manifest, inference, KEY_BLOCK, .block = &inference_schema,
         DOC ("The model. Absent: a script capsule.")),
    KEY (capsule_manifest, context, KEY_BLOCK, .block = &context_schema, DOC ("Conversations.")),
    KEY (capsule_manifest, observability, KEY_BLOCK, .block = &observability_schema,
         DOC ("Spans and evaluation.")),
    KEY (capsule_manifest, trace, KEY_BLOCK, .block = &trace_schema, DOC ("What the trace keeps.")),
    KEY (capsule_manifest, network, KEY_BLOCK, .block = &door_schema, DOC ("The door.")),
    KEY (capsule_manifest, lifecycle, KEY_BLOCK, .block = &lifecycle_schema,
         DOC ("Tasks and endings.")),
    KEY (capsule_manifest, approvals, KEY_BLOCK, .block = &approvals_schema,
         DOC ("What a person is asked about before it is done.")),
    KEY (capsule_manifest, exports, KEY_BLOCK, .block = &exports_schema,
         DOC ("What others may read.")),
    KEY (capsule_manifest, control, KEY_BLOCK, .block = &control_schema,
         DOC ("What a controller may change.")),
    KEY (capsule_manifest, deploy, KEY_BLOCK, .block = &deploy_schema, DOC ("Deployment.")),
    KEY (capsule_manifest, mur_version, KEY_NODE, .flags = KEY_HIDDEN),
    KEY (capsule_manifest, config, KEY_NODE, .flags = KEY_HIDDEN),
    KEY_INERT ("runtime", "Read when the folder is built."),
    KEY_INERT ("implementation", "Read when the folder is built."),
    KEY_INERT ("execution", "Read when the folder is built."),
    KEY_INERT ("requires_files", "Read when the folder is built."),
    KEY_INERT ("build", "A shell command that `mur build` runs in the folder before it packs."),
    END,
};

const struct schema *
capsule_schema (void)
{
    static const struct schema schema = SCHEMA (capsule_keys, capsule_manifest);
    return &schema;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/capsule/exports_schema.h"

#include "manifest/text/schema_rows.h"

static const struct schema_key exported_files_keys[] = {
    KEY (exported_files, root, KEY_TRIMMED, DOC ("Folder below the work folder. Required.")),
    KEY (exported_files, mode, KEY_TRIMMED, DOC ("read-only. Required.")),
    KEY_AS ("max_bytes", exported_files, written_max_bytes, KEY_TEXT, .rule = RULE_SIZE,
            DOC ("Of one file; 10Mi when absent.")),
    END,
};
static const struct schema exported_files_schema = SCHEMA (exported_files_keys, exported_files);

static const struct schema_key exported_peer_files_keys[] = {
    KEY (exported_peer_files, root, KEY_TRIMMED, DOC ("Folder below the work folder. Required.")),
    KEY_AS ("max_ttl", exported_peer_files, written_max_ttl, KEY_TEXT, .rule = RULE_DURATION,
            DOC ("How long a handle lives; 1h when absent.")),
    KEY_AS ("max_bytes", exported_peer_files, written_max_bytes, KEY_TEXT, .rule = RULE_SIZE,
            DOC ("Of one file; 10Mi when absent.")),
    END,
};
static const struct schema exported_peer_files_schema =
    SCHEMA (exported_peer_files_keys, exported_peer_files);

static const struct schema_key peer_tasks_keys[] = {
    KEY (exported_peer_tasks, accept, KEY_BOOL,
         DOC ("Whether members of a formation may call. Required.")),
    END,
};
static const struct schema peer_tasks_schema = SCHEMA (peer_tasks_keys, exported_peer_tasks);

static const struct schema_key exported_agent_keys[] = {
    KEY (exported_agent, name, KEY_TRIMMED,
         DOC ("The tool's name: ask_ and a-z, 0-9, _. Required.")),
    KEY (exported_agent, description, KEY_TRIMMED, DOC ("What a client's model reads. Required.")),
    END,
};
static const struct schema exported_agent_schema = SCHEMA (exported_agent_keys, exported_agent);

static const struct schema_key prompt_argument_keys[] = {
    KEY (exported_argument, name, KEY_TRIMMED, DOC ("Letters, digits, _ and -. Required.")),
    KEY (exported_argument, description, KEY_TRIMMED, DOC ("What a person is asked for.")),
    KEY (exported_argument, required, KEY_BOOL, DOC ("Whether it must be given.")),
    KEY (exported_argument, values, KEY_TEXTS, .flags = KEY_NULL_IS_ABSENT,
         DOC ("What a client proposes while it is typed.")),
    END,
};
static const struct schema prompt_argument_schema =
    SCHEMA (prompt_argument_keys, exported_argument);

static const struct schema_key exported_prompt_keys[] = {
    KEY (exported_prompt, name, KEY_TRIMMED, DOC ("Letters, digits, _, . and -. Required.")),
    KEY (exported_prompt, description, KEY_TRIMMED, DOC ("What a person reads of it.")),
    KEY (exported_prompt, text, KEY_TEXT,
         DOC ("What is said in the person's name; {{NAME}} is an argument. Required.")),
    KEY (exported_prompt, arguments, KEY_BLOCKS, .block = &prompt_argument_schema,
         DOC ("What it is filled with.")),
    KEY (exported_prompt, attach, KEY_TEXTS, .flags = KEY_NULL_IS_ABSENT | KEY_TRIM_ITEMS,
         DOC ("Files of exports.files that go with it; {{NAME}} is an argument.")),
    END,
};
static const struct schema exported_prompt_schema = SCHEMA (exported_prompt_keys, exported_prompt);

static const struct schema_key exported_task_keys[] = {
    KEY (exported_task, tool, KEY_TRIMMED, DOC ("A tool of exports.mcp.tools. Required.")),
    KEY (exported_task, required, KEY_BOOL,
         DOC ("Whether a client that knows no tasks is refused, instead of kept waiting.")),
    KEY (exported_task, wait_secs, KEY_U64, .rule = RULE_RANGE, .max = 60,
         DOC ("How long a call is waited for before it goes on as a task; what is over by then, "
              "or asks, is answered as any other.")),
    END,
};
static const struct schema exported_task_schema = SCHEMA (exported_task_keys, exported_task);

static const struct schema_key exported_mcp_keys[] = {
    KEY (exported_mcp, tools, KEY_TEXTS, .flags = KEY_NULL_IS_ABSENT | KEY_TRIM_ITEMS,
         DOC ("Tools served to MCP clients, by the names the model sees.")),
    KEY (exported_mcp, agent, KEY_BLOCK, .block = &exported_agent_schema,
         DOC ("The capsule itself as one tool.")),
    KEY (exported_mcp, skills, KEY_BOOL, DOC ("Whether skills are served, as prompts too.")),
    KEY (exported_mcp, files, KEY_BOOL, DOC ("Whether exports.files is served as resources.")),
    KEY (exported_mcp, files_uri, KEY_TRIMMED,
         DOC ("What their addresses begin with, such as notes://; file:/// when absent.")),
    KEY (exported_mcp, sampling, KEY_BOOL,
         DOC ("Whether a server of tools may ask the model of the client that calls it.")),
    KEY (exported_mcp, roots, KEY_BOOL,
         DOC ("Whether a server of tools is told which folders the client works in.")),
    KEY (exported_mcp, prompts, KEY_BLOCKS, .block = &exported_prompt_schema,
         DOC ("Texts a person picks in a client, filled with arguments.")),
    KEY (exported_mcp, tasks, KEY_BLOCKS, .block = &exported_task_schema,
         DOC ("Tools whose calls go on as tasks, for a client that knows tasks.")),
    END,
};
static const struct schema exported_mcp_schema = SCHEMA (exported_mcp_keys, exported_mcp);

static const struct schema_key exports_keys[] = {
    KEY (exports, files, KEY_BLOCK, .block = &exported_files_schema,
         DOC ("Files served at the door.")),
    KEY (exports, peer_files, KEY_BLOCK, .block = &exported_peer_files_schema,
         DOC ("Files handed to one peer.")),
    KEY (exports, peer_tasks, KEY_BLOCK, .block = &peer_tasks_schema,
         DOC ("Tasks of formation members.")),
    KEY (exports, origins, KEY_TEXTS, .flags = KEY_NULL_IS_ABSENT | KEY_TRIM_ITEMS,
         DOC ("Origins whose pages the door answers beside those of this machine, as a browser "
              "sends them: https://app.example.")),
    KEY (exports, mcp, KEY_BLOCK, .block = &exported_mcp_schema,
         DOC ("What MCP clients get: mur mcp serve, and /mcp at the door.")),
    END,
};
const struct schema exports_schema = SCHEMA (exports_keys, exports);

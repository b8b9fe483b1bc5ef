/* SPDX-License-Identifier: Apache-2.0
 *
 * The templates of `mur new`. An integration test builds and runs each as it comes.
 */
#include "cli/packages/templates.h"

#include "base/buf.h"

/* --- a script capsule --- */

static const struct template_file script_files[] = {
    { "murmur.yaml",
      "# A script capsule: one program, no model. capsule.wasm beside this file is what runs.\n"
      "name: @NAME@\n"
      "version: \"0.1.0\"\n" },
    { "capsule.c",
      "/* The whole program: reads the task, leaves its answer in the work folder. */\n"
      "#include <stdlib.h>\n"
      "#include <string.h>\n"
      "\n"
      "#include \"murmur_sdk.h\"\n"
      "\n"
      "void\n"
      "mur_capsule (void)\n"
      "{\n"
      "    char *error = NULL;\n"
      "    char *task = mur_file_read (\"murmur-runtime/task.md\", 1 << 20, NULL, NULL);\n"
      "    char *answer = mur_format (\"@NAME@ was asked: %s\\n\", task ? task : \"nothing\");\n"
      "    if (! mur_file_write (\"out/result.txt\", answer, strlen (answer), true, &error)) {\n"
      "        mur_log (\"%s\", error);\n"
      "        abort ();\n"
      "    }\n"
      "}\n" },
    { "README.md",
      "# @NAME@\n"
      "\n"
      "A script capsule in C. In this folder, with murmur's source tree at hand:\n"
      "\n"
      "    <murmur>/scripts/build-guests --folder .    # compiles capsule.c to capsule.wasm\n"
      "    mur run --task \"the world\"                  # runs it\n"
      "    cat workdir/*/out/result.txt                # its answer\n"
      "\n"
      "It sees its work folder and nothing else; grants go into murmur.yaml.\n" },
    { 0 }
};

/* --- an agent --- */

#define AGENT_HEAD                                                                                 \
    "name: @NAME@\n"                                                                               \
    "version: \"0.1.0\"\n"                                                                         \
    "artifacts:\n"                                                                                 \
    "  - {name: std/driver-scripted, version: \"0.1.0\", runtime: driver}\n"

static const struct template_file agent_files[] = {
    { "murmur.yaml",
      "# An agent: a driver that answers from the script below, and one tool. Needs no network and "
      "no key.\n" AGENT_HEAD "  - {name: std/files, version: \"0.1.0\"}\n"
      "inference:\n"
      "  model: scripted\n"
      "  system_prompt: You look after the files of a folder.\n"
      "  driver:\n"
      "    artifact: std/driver-scripted\n"
      "    config:\n"
      "      steps:\n"
      "        - tool_calls:\n"
      "            - {name: files, input: {action: write, path: note.txt, content: \"written by "
      "@NAME@\\n\"}}\n"
      "        - tool_calls:\n"
      "            - {name: files, input: {action: list}}\n"
      "        - text: \"You said: {{task}}. My work folder holds: {{result}}\"\n" },
    { "README.md", "# @NAME@\n"
                   "\n"
                   "An agent capsule that works offline: `std/driver-scripted` plays the model, "
                   "`std/files` is its tool.\n"
                   "\n"
                   "    mur run --task \"look around\"    # runs it\n"
                   "    mur trace show                  # what it did\n"
                   "    mur run --explain-scope         # what it may do\n"
                   "\n"
                   "Its answer is `out/result.txt` of the session's records; `mur run --verbose` "
                   "prints where they are.\n"
                   "Change `steps` in murmur.yaml and the next run plays the new script.\n" },
    { 0 }
};

/* --- an agent with a tool of its own --- */

static const struct template_file agent_tool_files[] = {
    { "murmur.yaml", "# An agent with a tool of its own, whose source is in tool/.\n" AGENT_HEAD
                     "  - {name: local/@NAME@-tool, version: \"0.1.0\"}\n"
                     "inference:\n"
                     "  model: scripted\n"
                     "  driver:\n"
                     "    artifact: std/driver-scripted\n"
                     "    config:\n"
                     "      steps:\n"
                     "        - tool_calls:\n"
                     "            - {name: @NAME@-tool, input: {name: world}}\n"
                     "        - text: \"The tool answered: {{result}}\"\n" },
    { "tool/murmur.yaml", "name: @NAME@-tool\n"
                          "version: \"0.1.0\"\n"
                          "runtime: tool\n"
                          "description: Greets somebody.\n"
                          "requires_files: [@NAME@-tool.wasm]\n"
                          "input_schema:\n"
                          "  type: object\n"
                          "  properties:\n"
                          "    name: {type: string, description: \"Whom to greet.\"}\n"
                          "  required: [name]\n"
                          "  additionalProperties: false\n"
                          "output_schema: {type: string}\n" },
    { "tool/tool.c",
      "/* A whole tool: JSON in, a text out. murmur_sdk.h says what else there is. */\n"
      "#include \"murmur_sdk.h\"\n"
      "\n"
      "void\n"
      "mur_tool (const struct mur_input *in, struct mur_result *out)\n"
      "{\n"
      "    char *name = mur_json_text (in->json, mur_json_get (in->json, 0, \"name\"));\n"
      "    if (name == NULL)\n"
      "        mur_failed (out, \"name: a string is needed\");\n"
      "    else\n"
      "        mur_passed (out, \"Hello, %s!\", name);\n"
      "}\n" },
    { "README.md",
      "# @NAME@\n"
      "\n"
      "An agent with a tool of its own in C. In this folder, with murmur's source tree at hand:\n"
      "\n"
      "    <murmur>/scripts/build-guests --folder tool         # compiles tool/tool.c\n"
      "    mur build tool                                      # packs it\n"
      "    mur publish tool/@NAME@-tool-0.1.0.mur.zip          # puts it into your store\n"
      "    mur run --task \"greet the world\"                    # the agent calls it\n"
      "    mur trace show\n"
      "\n"
      "A published version never changes: raise `version:` in both manifests when the tool "
      "changes.\n" },
    { 0 }
};

/* --- an agent that writes and runs code --- */

static const struct template_file coder_files[] = {
    { "murmur.yaml",
      "# An agent that works on code: it writes a test, runs it and commits it. Offline; the script "
      "below plays the model.\n" AGENT_HEAD "  - {name: std/files, version: \"0.1.0\"}\n"
      "inference:\n"
      "  model: scripted\n"
      "  system_prompt: You write code, run its tests and commit what passes.\n"
      "  driver:\n"
      "    artifact: std/driver-scripted\n"
      "    config:\n"
      "      steps:\n"
      "        - tool_calls:\n"
      "            - {name: files, input: {action: write, path: check.sh, content: \"#!/bin/sh\\ntest "
      "$((6 * 7)) = 42 && echo passed\\n\"}}\n"
      "        - tool_calls:\n"
      "            - {name: bash, input: {command: \"chmod +x check.sh && ./check.sh\"}}\n"
      "        - tool_calls:\n"
      "            - {name: bash, input: {command: \"git init -q && git add check.sh && git -c "
      "user.name=@NAME@ -c user.email=@NAME@@localhost commit -q -m check && git log --format=%s\"}}\n"
      "        - text: \"You said: {{task}}. {{result}}\"\n"
      "capabilities:\n"
      "  # Names of programs: each brings the helpers and libraries it needs, nothing of your home.\n"
      "  shell: {allow: [bash, cat, chmod, ls, mkdir, rm, git]}\n"
      "  # What the work makes may run, inside every wall.\n"
      "  filesystem: {workdir_exec: walled}\n" },
    { "README.md",
      "# @NAME@\n"
      "\n"
      "An agent that writes code, runs it and commits it. The script in murmur.yaml plays "
      "the model; put a driver with a provider in its place.\n"
      "\n"
      "    mur run --task \"add a check\"    # runs it\n"
      "    mur run --explain-scope         # what its programs bring, and what they never get\n"
      "\n"
      "Add the programs your project needs to `shell.allow` by name: make, gcc, node, npm, "
      "python3, cargo, go.\n" },
    { 0 }
};

/* --- coding agents in the walls --- */

#define HARNESS_MANIFEST(package, driver, endpoint, key, setting)                                  \
    "# " package " as the agent, inside murmur's walls and without a key of its own.\n"            \
    "name: @NAME@\n"                                                                               \
    "version: \"0.1.0\"\n"                                                                         \
    "artifacts:\n"                                                                                 \
    "  - name: std/" driver "\n"                                                                   \
    "    version: \"0.1.0\"\n"                                                                     \
    "    runtime: driver\n"                                                                        \
    "    # The key stays with murmur: the program gets an address of this session instead.\n"      \
    "    gateway: {endpoint: \"" endpoint "\", api_key: \"${" key "}\"}\n"                         \
    "inference:\n"                                                                                 \
    "  transport: process\n"                                                                       \
    "  containment: scoped\n"                                                                      \
    "  driver:\n"                                                                                  \
    "    artifact: std/" driver "\n"                                                               \
    "    # The walls decide, so the program need not ask.\n"                                       \
    "    config: {" setting "}\n"                                                                  \
    "capabilities:\n"                                                                              \
    "  # What its shell tool may start, by name.\n"                                                \
    "  shell: {allow: [bash, cat, ls, mkdir, rm, git, grep, sed]}\n"                               \
    "  filesystem: {workdir_exec: walled}\n"                                                       \
    "lifecycle: {conversation: threaded}\n"

#define HARNESS_README(package, key)                                                               \
    "# @NAME@\n"                                                                                   \
    "\n"                                                                                           \
    "`" package "` works on a folder of yours, inside murmur's walls.\n"                           \
    "\n"                                                                                           \
    "    npm install -g " package "\n"                                                             \
    "    mur config set -g credentials." key " YOUR-KEY\n"                                         \
    "    mur run --task \"what is in here?\" --workdir ~/project\n"                                \
    "    mur run --explain-scope\n"                                                                \
    "\n"                                                                                           \
    "`docs/harness.md` of murmur says what holds and what works.\n"

static const struct template_file claude_code_files[] = {
    { "murmur.yaml",
      HARNESS_MANIFEST ("Claude Code", "driver-claude-code", "https://api.anthropic.com",
                        "ANTHROPIC_API_KEY", "permission_mode: bypassPermissions") },
    { "README.md", HARNESS_README ("@anthropic-ai/claude-code", "ANTHROPIC_API_KEY") },
    { 0 }
};

static const struct template_file codex_files[] = {
    { "murmur.yaml", HARNESS_MANIFEST ("Codex", "driver-codex", "https://api.openai.com/v1",
                                       "OPENAI_API_KEY", "sandbox_mode: danger-full-access") },
    { "README.md", HARNESS_README ("@openai/codex", "OPENAI_API_KEY") },
    { 0 }
};

/* --- a server of tools --- */

static const struct template_file mcp_server_files[] = {
    { "server.py",
      "\"\"\"An MCP server in one file, without dependencies: a message a line, in and out.\"\"\"\n"
      "\n"
      "import json\n"
      "import sys\n"
      "\n"
      "TOOLS = [\n"
      "    {\n"
      "        \"name\": \"words\",\n"
      "        \"description\": \"Counts the words of a text.\",\n"
      "        \"inputSchema\": {\"type\": \"object\", \"properties\": {\"text\": {\"type\": \"string\"}}, \"required\": [\"text\"]},\n"
      "        \"annotations\": {\"readOnlyHint\": True},\n"
      "    },\n"
      "]\n"
      "\n"
      "\n"
      "def words(arguments):\n"
      "    return str(len(arguments[\"text\"].split()))\n"
      "\n"
      "\n"
      "def call(params):\n"
      "    \"\"\"A tool's failure is a result too: the model reads it and tries again.\"\"\"\n"
      "    try:\n"
      "        text, failed = {\"words\": words}[params[\"name\"]](params.get(\"arguments\", {})), False\n"
      "    except Exception as error:\n"
      "        text, failed = f\"{type(error).__name__}: {error}\", True\n"
      "    return {\"content\": [{\"type\": \"text\", \"text\": text}], \"isError\": failed}\n"
      "\n"
      "\n"
      "ANSWERS = {\n"
      "    \"initialize\": lambda params: {\n"
      "        \"protocolVersion\": params[\"protocolVersion\"],\n"
      "        \"capabilities\": {\"tools\": {}},\n"
      "        \"serverInfo\": {\"name\": \"@NAME@\", \"version\": \"0.1.0\"},\n"
      "    },\n"
      "    \"ping\": lambda params: {},\n"
      "    \"tools/list\": lambda params: {\"tools\": TOOLS},\n"
      "    \"tools/call\": call,\n"
      "}\n"
      "\n"
      "for line in sys.stdin:\n"
      "    message = json.loads(line)\n"
      "    if \"id\" not in message or \"method\" not in message:\n"
      "        continue\n"
      "    answer = {\"jsonrpc\": \"2.0\", \"id\": message[\"id\"]}\n"
      "    if message[\"method\"] in ANSWERS:\n"
      "        answer[\"result\"] = ANSWERS[message[\"method\"]](message.get(\"params\", {}))\n"
      "    else:\n"
      "        answer[\"error\"] = {\"code\": -32601, \"message\": \"no such method\"}\n"
      "    print(json.dumps(answer), flush=True)\n" },
    { "README.md",
      "# @NAME@\n"
      "\n"
      "An MCP server of one file. `mur mcp add path:.` looks at it once, in walls of its own, and packs it; a capsule uses it\n"
      "with `runtime: mcp`. After a change, `mur mcp update @NAME@@0.2.0 --source path:.` shows what is different.\n" },
    { 0 }
};

static const struct project_template templates[] = {
    { "mcp-server", mcp_server_files,
      "mur mcp add path:. --name @NAME@\n"
      "mur mcp call @NAME@ words --input '{\"text\": \"three small words\"}'\n" },
    { "claude-code", claude_code_files,
      "npm install -g @anthropic-ai/claude-code\n"
      "mur config set -g credentials.ANTHROPIC_API_KEY YOUR-KEY\n"
      "mur run --task \"what is in here?\" --workdir ~/project\n" },
    { "codex", codex_files,
      "npm install -g @openai/codex\n"
      "mur config set -g credentials.OPENAI_API_KEY YOUR-KEY\n"
      "mur run --task \"what is in here?\" --workdir ~/project\n" },
    { "script", script_files,
      "<murmur>/scripts/build-guests --folder .\n"
      "mur run --task \"the world\"\n" },
    { "agent", agent_files,
      "mur run --task \"look around\"\n"
      "mur trace show\n" },
    { "coder", coder_files,
      "mur run --task \"add a check\"\n"
      "mur trace show\n" },
    { "agent-tool", agent_tool_files,
      "<murmur>/scripts/build-guests --folder tool\n"
      "mur build tool && mur publish tool/@NAME@-tool-0.1.0.mur.zip\n"
      "mur run --task \"greet the world\"\n" },
};

const struct project_template *
project_template_find (const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN (templates); i++)
        if (str_eq (templates[i].name, name))
            return &templates[i];
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/packages/tool_templates.h"

#include "base/buf.h"

#define MANIFEST(build)                                                                            \
    {                                                                                              \
        "murmur.yaml", "name: @NAME@\n"                                                            \
                       "version: \"0.1.0\"\n"                                                      \
                       "runtime: tool\n"                                                           \
                       "description: Greets somebody.\n"                                           \
                       "requires_files: [@NAME@.wasm]\n"                                           \
                       "input_schema:\n"                                                           \
                       "  type: object\n"                                                          \
                       "  properties:\n"                                                           \
                       "    name: {type: string, description: \"Whom to greet.\"}\n"               \
                       "  required: [name]\n"                                                      \
                       "  additionalProperties: false\n"                                           \
                       "# What `mur build` runs in this folder before it packs.\n"                 \
                       "build: |\n" build                                                          \
    }

/* The world of a tool that wants nothing of its host but what its language's run time wants. */
#define WORLD                                                                                      \
    { "wit/world.wit", "package local:tool;\n"                                                     \
                       "\n"                                                                        \
                       "world tool {\n"                                                            \
                       "  export murmur:tool/run@0.1.0;\n"                                         \
                       "}\n" },                                                                    \
    {                                                                                              \
        "wit/deps/murmur-tool-0.1.0/tool.wit",                                                     \
            "package murmur:tool@0.1.0;\n"                                                         \
            "\n"                                                                                   \
            "interface run {\n"                                                                    \
            "  enum status {\n"                                                                    \
            "    passed,\n"                                                                        \
            "    failed,\n"                                                                        \
            "    error,\n"                                                                         \
            "  }\n"                                                                                \
            "\n"                                                                                   \
            "  record tool-input {\n"                                                              \
            "    /// The call's input, JSON text.\n"                                               \
            "    data: option<string>,\n"                                                          \
            "    log-path: option<string>,\n"                                                      \
            "  }\n"                                                                                \
            "\n"                                                                                   \
            "  record tool-result {\n"                                                             \
            "    status: status,\n"                                                                \
            "    summary: option<string>,\n"                                                       \
            "    /// What the caller reads; without it the summary.\n"                             \
            "    data: option<string>,\n"                                                          \
            "    data-path: option<string>,\n"                                                     \
            "    truncated: bool,\n"                                                               \
            "    metadata: list<tuple<string, string>>,\n"                                         \
            "  }\n"                                                                                \
            "\n"                                                                                   \
            "  run: func(input: tool-input) -> tool-result;\n"                                     \
            "}\n"                                                                                  \
    }

#define README(needs)                                                                              \
    {                                                                                              \
        "README.md", "# @NAME@\n"                                                                  \
                     "\n"                                                                          \
                     "A tool of murmur. Needs: " needs ".\n"                                       \
                     "\n"                                                                          \
                     "    mur build && mur publish\n"                                              \
                     "\n"                                                                          \
                     "Then a capsule names it among its `artifacts:`:\n"                           \
                     "\n"                                                                          \
                     "    - {name: local/@NAME@, version: \"0.1.0\"}\n"                            \
    }

#define IGNORED(names)                                                                             \
    {                                                                                              \
        ".gitignore", "*.wasm\n*.mur.zip\n" names                                                  \
    }

static const struct template_file c_files[] = {
    MANIFEST (
        "  \"${MURMUR_SOURCE:?name a checkout of murmur}/scripts/build-guests\" --folder .\n"),
    { "tool.c", "/* A whole tool: JSON in, a text out. murmur_sdk.h says what else there is. */\n"
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
    IGNORED (""),
    README ("a checkout of murmur that was built once, named by MURMUR_SOURCE"),
    { 0 }
};

static const struct template_file python_files[] = {
    MANIFEST ("  [ -x .tools/bin/componentize-py ] || { python3 -m venv .tools && .tools/bin/pip "
              "install -q componentize-py==0.25.1; }\n"
              "  .tools/bin/componentize-py -q -d wit -w tool componentize tool -o @NAME@.wasm\n"),
    { "tool.py", "import json\n"
                 "\n"
                 "from wit_world import exports\n"
                 "from wit_world.exports.run import Status, ToolInput, ToolResult\n"
                 "\n"
                 "\n"
                 "def answer(status: Status, text: str) -> ToolResult:\n"
                 "    return ToolResult(status, None, text, None, False, [])\n"
                 "\n"
                 "\n"
                 "class Run(exports.Run):\n"
                 "    def run(self, input: ToolInput) -> ToolResult:\n"
                 "        name = json.loads(input.data or \"{}\").get(\"name\")\n"
                 "        if not isinstance(name, str):\n"
                 "            return answer(Status.FAILED, \"name: a string is needed\")\n"
                 "        return answer(Status.PASSED, f\"Hello, {name}!\")\n" },
    WORLD,
    IGNORED (".tools/\n__pycache__/\n"),
    README ("Python 3.10 or newer with venv; componentize-py is fetched from PyPI"),
    { 0 }
};

static const struct template_file javascript_files[] = {
    MANIFEST (
        "  [ -d node_modules ] || npm install --silent --no-audit --no-fund\n"
        "  node_modules/.bin/componentize-js tool.js --wit wit -n tool --disable random clocks "
        "http fetch-event -o @NAME@.wasm\n"),
    { "package.json", "{\n"
                      "  \"private\": true,\n"
                      "  \"type\": \"module\",\n"
                      "  \"devDependencies\": {\n"
                      "    \"@bytecodealliance/componentize-js\": \"0.21.0\"\n"
                      "  }\n"
                      "}\n" },
    { "tool.js", "const answer = (status, data) =>\n"
                 "  ({ status, summary: undefined, data, dataPath: undefined, truncated: false, "
                 "metadata: [] });\n"
                 "\n"
                 "export const run = {\n"
                 "  run(input) {\n"
                 "    const { name } = JSON.parse(input.data ?? '{}');\n"
                 "    return typeof name === 'string'\n"
                 "      ? answer('passed', `Hello, ${name}!`)\n"
                 "      : answer('failed', 'name: a string is needed');\n"
                 "  },\n"
                 "};\n" },
    WORLD,
    IGNORED ("node_modules/\n"),
    README ("Node 20 or newer with npm; componentize-js is fetched from npm"),
    { 0 }
};

static const struct template_file rust_files[] = {
    MANIFEST ("  cargo build --release --target wasm32-wasip2\n"
              "  cp target/wasm32-wasip2/release/tool.wasm @NAME@.wasm\n"),
    { "Cargo.toml", "[package]\n"
                    "name = \"tool\"\n"
                    "version = \"0.1.0\"\n"
                    "edition = \"2021\"\n"
                    "\n"
                    "[lib]\n"
                    "crate-type = [\"cdylib\"]\n"
                    "\n"
                    "[dependencies]\n"
                    "serde_json = \"1\"\n"
                    "wit-bindgen = \"0.46\"\n"
                    "\n"
                    "[profile.release]\n"
                    "opt-level = \"s\"\n"
                    "lto = true\n"
                    "strip = true\n" },
    { "src/lib.rs",
      "wit_bindgen::generate!({ world: \"tool\", path: \"wit\" });\n"
      "\n"
      "use exports::murmur::tool::run::{Guest, Status, ToolInput, ToolResult};\n"
      "\n"
      "struct Tool;\n"
      "\n"
      "fn answer(status: Status, text: String) -> ToolResult {\n"
      "    ToolResult { status, summary: None, data: Some(text), data_path: None, "
      "truncated: false, metadata: vec![] }\n"
      "}\n"
      "\n"
      "impl Guest for Tool {\n"
      "    fn run(input: ToolInput) -> ToolResult {\n"
      "        let call: serde_json::Value =\n"
      "            serde_json::from_str(input.data.as_deref().unwrap_or(\"{}\"))"
      ".unwrap_or_default();\n"
      "        match call[\"name\"].as_str() {\n"
      "            Some(name) => answer(Status::Passed, format!(\"Hello, {name}!\")),\n"
      "            None => answer(Status::Failed, \"name: a string is needed\""
      ".to_string()),\n"
      "        }\n"
      "    }\n"
      "}\n"
      "\n"
      "export!(Tool);\n" },
    WORLD,
    IGNORED ("target/\n"),
    README ("Rust with `rustup target add wasm32-wasip2`"),
    { 0 }
};

static const struct project_template languages[] = {
    { "c", c_files, "mur build && mur publish\n" },
    { "python", python_files, "mur build && mur publish\n" },
    { "javascript", javascript_files, "mur build && mur publish\n" },
    { "rust", rust_files, "mur build && mur publish\n" },
};

const struct project_template *
tool_template_find (const char *language)
{
    for (size_t i = 0; i < ARRAY_LEN (languages); i++)
        if (str_eq (languages[i].name, language))
            return &languages[i];
    return NULL;
}

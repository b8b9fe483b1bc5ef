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
        TOOL_WIT

#define TOOL_WIT                                                                                   \
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

/* The standard compiler: its allocator has to be told of the adapter's page (early/), and what the
 * host passes in is laid out by hand (murmur.go). */
static const struct template_file go_files[] = {
    MANIFEST (
        "  GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w "
        "-checklinkname=0' -o core.wasm .\n"
        "  \"${MURMUR_SOURCE:?name a checkout of murmur}/scripts/build-guests\" --core core.wasm "
        "--output @NAME@.wasm\n"),
    { "go.mod", "module a.tool\n"
                "\n"
                "go 1.24\n" },
    { "tool.go",
      "package main\n"
      "\n"
      "import \"encoding/json\"\n"
      "\n"
      "// Answers one call: input is its JSON text. What is written to os.Stderr goes into the tool's log; files of the work folder are\n"
      "// opened by their relative names, if the capsule grants them.\n"
      "func tool(input string) Result {\n"
      "	var call struct {\n"
      "		Name *string `json:\"name\"`\n"
      "	}\n"
      "	if err := json.Unmarshal([]byte(input), &call); err != nil || call.Name == nil {\n"
      "		return Failed(\"name: a string is needed\")\n"
      "	}\n"
      "	return Passed(\"Hello, \" + *call.Name + \"!\")\n"
      "}\n" },
    { "murmur.go",
      "// The tool's side of murmur:tool/run, written out: the standard Go compiler has no generator of bindings.\n"
      "// Nothing here needs a change for a tool's sake.\n"
      "\n"
      "package main\n"
      "\n"
      "import (\n"
      "	\"unsafe\"\n"
      "\n"
      "	_ \"a.tool/early\"\n"
      ")\n"
      "\n"
      "type Result struct {\n"
      "	Status  Status\n"
      "	Summary string\n"
      "	Data    string\n"
      "}\n"
      "\n"
      "type Status uint8\n"
      "\n"
      "const (\n"
      "	StatusPassed Status = iota\n"
      "	StatusFailed\n"
      "	StatusError\n"
      ")\n"
      "\n"
      "func Passed(text string) Result { return Result{Status: StatusPassed, Data: text} }\n"
      "func Failed(text string) Result { return Result{Status: StatusFailed, Data: text} }\n"
      "\n"
      "// What the host has asked for or still reads: kept here, since the collector sees no pointer of it.\n"
      "var lent = map[uint32][]uint64{}\n"
      "\n"
      "func lend(size uint32) uint32 {\n"
      "	room := make([]uint64, size/8+1)\n"
      "	at := uint32(uintptr(unsafe.Pointer(&room[0])))\n"
      "	lent[at] = room\n"
      "	return at\n"
      "}\n"
      "\n"
      "// The canonical ABI's allocator for what the host passes in. Every alignment it asks for is at most 8.\n"
      "//\n"
      "//go:wasmexport cabi_export_realloc\n"
      "func hostAllocates(old, oldSize, align, size uint32) uint32 {\n"
      "	at := lend(size)\n"
      "	if old != 0 {\n"
      "		copy(memory(at, size), memory(old, min(oldSize, size)))\n"
      "		delete(lent, old)\n"
      "	}\n"
      "	return at\n"
      "}\n"
      "\n"
      "func memory(at, size uint32) []byte {\n"
      "	return unsafe.Slice((*byte)(unsafe.Pointer(uintptr(at))), size)\n"
      "}\n"
      "\n"
      "// A text the host has laid in our memory.\n"
      "func taken(present, at, size uint32) string {\n"
      "	if present == 0 {\n"
      "		return \"\"\n"
      "	}\n"
      "	defer delete(lent, at)\n"
      "	return string(memory(at, size))\n"
      "}\n"
      "\n"
      "// option<string> at an address.\n"
      "type option struct {\n"
      "	present uint32\n"
      "	at      uint32\n"
      "	size    uint32\n"
      "}\n"
      "\n"
      "func given(text string) option {\n"
      "	at := lend(uint32(len(text)))\n"
      "	copy(memory(at, uint32(len(text))), text)\n"
      "	return option{1, at, uint32(len(text))}\n"
      "}\n"
      "\n"
      "// tool-result as the canonical ABI lays it out.\n"
      "type laidOut struct {\n"
      "	status       uint32\n"
      "	summary      option\n"
      "	data         option\n"
      "	dataPath     option\n"
      "	truncated    uint32\n"
      "	metadata     uint32\n"
      "	metadataSize uint32\n"
      "}\n"
      "\n"
      "//go:wasmexport murmur:tool/run@0.1.0#run\n"
      "func run(dataPresent, dataAt, dataSize, pathPresent, pathAt, pathSize uint32) uint32 {\n"
      "	input := taken(dataPresent, dataAt, dataSize)\n"
      "	taken(pathPresent, pathAt, pathSize)\n"
      "	if dataPresent == 0 {\n"
      "		input = \"{}\"\n"
      "	}\n"
      "	result := tool(input)\n"
      "	at := lend(uint32(unsafe.Sizeof(laidOut{})))\n"
      "	out := (*laidOut)(unsafe.Pointer(uintptr(at)))\n"
      "	out.status = uint32(result.Status)\n"
      "	if result.Summary != \"\" {\n"
      "		out.summary = given(result.Summary)\n"
      "	}\n"
      "	out.data = given(result.Data)\n"
      "	return at\n"
      "}\n"
      "\n"
      "// Shows a piece of text as progress of the running task.\n"
      "//\n"
      "//go:wasmimport murmur:stream/events@0.1.0 emit-chunk\n"
      "func Progress(text string)\n"
      "\n"
      "// The host has read the result.\n"
      "//\n"
      "//go:wasmexport cabi_post_murmur:tool/run@0.1.0#run\n"
      "func wasRead(at uint32) {\n"
      "	clear(lent)\n"
      "}\n"
      "\n"
      "func main() {}\n" },
    { "early/early.go",
      "// Settles two things between Go's run time and the host before any other package starts; a tool's author has nothing to do here.\n"
      "//\n"
      "// Memory: the WASI adapter takes a page at the first call of the host, and Go's allocator believes that nobody but itself\n"
      "// grows the memory: it is told where the memory ends now. That has to come before it grows for the first time, so this\n"
      "// package imports only syscall. Files: the work folder is granted as \".\", where Go looks below \"/\".\n"
      "package early\n"
      "\n"
      "import (\n"
      "	_ \"syscall\"\n"
      "	_ \"unsafe\"\n"
      ")\n"
      "\n"
      "//go:linkname bloc runtime.bloc\n"
      "var bloc uintptr\n"
      "\n"
      "//go:linkname blocMax runtime.blocMax\n"
      "var blocMax uintptr\n"
      "\n"
      "type granted struct {\n"
      "	fd   int32\n"
      "	name string\n"
      "}\n"
      "\n"
      "//go:linkname folders syscall.preopens\n"
      "var folders []granted\n"
      "\n"
      "//go:linkname current syscall.cwd\n"
      "var current string\n"
      "\n"
      "func memoryEnd() uintptr\n"
      "\n"
      "func init() {\n"
      "	blocMax = memoryEnd()\n"
      "	bloc = blocMax\n"
      "	for i := range folders {\n"
      "		if folders[i].name == \".\" {\n"
      "			folders[i].name = \"/\"\n"
      "		} else if folders[i].name[0] != '/' {\n"
      "			folders[i].name = \"/\" + folders[i].name\n"
      "		}\n"
      "	}\n"
      "	current = \"/\"\n"
      "}\n" },
    { "early/memory_wasm.s", "#include \"textflag.h\"\n"
                             "\n"
                             "// func memoryEnd() uintptr\n"
                             "TEXT ·memoryEnd(SB), NOSPLIT, $0-8\n"
                             "	Get SP\n"
                             "	CurrentMemory\n"
                             "	I64ExtendI32U\n"
                             "	I64Const $16\n"
                             "	I64Shl\n"
                             "	I64Store ret+0(FP)\n"
                             "	RET\n" },
    { "wit/world.wit", "package local:tool;\n"
                       "\n"
                       "world tool {\n"
                       "  import murmur:%stream/events@0.1.0;\n"
                       "  export murmur:tool/run@0.1.0;\n"
                       "}\n" },
    { "wit/deps/murmur-stream-0.1.0/stream.wit", "package murmur:%stream@0.1.0;\n"
                                                 "\n"
                                                 "interface events {\n"
                                                 "  emit-chunk: func(chunk: string);\n"
                                                 "}\n" },
    TOOL_WIT,
    IGNORED (""),
    README (
        "Go 1.24 or newer (the standard compiler, not TinyGo) and a checkout of murmur that was "
        "built once, named by MURMUR_SOURCE"),
    { 0 }
};

static const struct project_template languages[] = {
    { "c", c_files, "mur build && mur publish\n" },
    { "python", python_files, "mur build && mur publish\n" },
    { "javascript", javascript_files, "mur build && mur publish\n" },
    { "rust", rust_files, "mur build && mur publish\n" },
    { "go", go_files, "mur build && mur publish\n" },
};

const struct project_template *
tool_template_find (const char *language)
{
    for (size_t i = 0; i < ARRAY_LEN (languages); i++)
        if (str_eq (languages[i].name, language))
            return &languages[i];
    return NULL;
}

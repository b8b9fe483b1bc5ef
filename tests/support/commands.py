# SPDX-License-Identifier: Apache-2.0
#
# Agents that run commands: a scripted driver calls one tool a turn, and what the model was handed is read back from the
# last request.

import json
import re
import zipfile

import yaml

SAVED = "conversation.json"


class Answer:
    """What the model read of one call."""

    def __init__(self, text):
        self.text = text
        found = re.search(r"Exit code: (-?\d+)\nStdout:\n(.*?)\nStderr:\n(.*?)(?:\n</untrusted-content>|\Z)", text, re.DOTALL)
        self.code = int(found.group(1)) if found else None
        self.stdout = found.group(2) if found else ""
        self.stderr = found.group(3) if found else ""

    def __str__(self):
        return self.text


def call(name, command=None, **more):
    return {"tool_calls": [{"name": name, "input": {"command": command, **more} if command is not None else more}]}


def command_agent(lab, calls, shell=("bash",), name="agent", text="done", **more):
    """An agent that makes these calls (a bash command line, or a whole step) one a turn. Its work folder is <project>/work."""
    steps = [call("bash", step) if isinstance(step, str) else step for step in calls]
    capabilities = more.pop("capabilities", {})
    block = {"shell": {"allow": list(shell)}} if shell else {}
    block.update(capabilities)
    if "shell" in capabilities and shell:
        block["shell"] = {"allow": list(shell), **capabilities["shell"]}
    project = lab.agent(name=name, steps=[*steps, {"text": text, "save_request": SAVED}], capabilities=block, **more)
    (project / "work").mkdir(exist_ok=True)
    return project


def run_commands(project, *arguments, **how):
    """Runs it to a good end; returns the session and the answers, in order."""
    result = project.run("--task", "go", "--workdir", project / "work", *arguments, **how).ok()
    return project.lab.session(result), answers(project)


def answers(project):
    saved = json.loads((project / "work" / SAVED).read_text())
    return [Answer("".join(part["text"] for part in message["content"]))
            for message in saved["messages"] if message["role"] == "tool"]


def native_tool(lab, name, program, **more):
    """Publishes a native tool; returns its full name and version."""
    directory = lab.directory / "native"
    directory.mkdir(exist_ok=True)
    archive = directory / f"{name}.mur.zip"
    manifest = {"name": name, "version": "0.1.0", "runtime": "tool", "implementation": "native", **more}
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("murmur.yaml", yaml.safe_dump(manifest, sort_keys=False))
        out.writestr(f"bin/{name}", program if isinstance(program, bytes) else program.encode())
    lab.mur("publish", archive).ok()
    return f"local/{name}@0.1.0"


def host_offers(lab):
    """The class this host can back: advisory, scoped or sealed."""
    project = lab.project("host-facts", {"name": "host-facts", "version": "0.1.0"})
    return project.run("--explain-scope", "--json").ok().json["host_containment"]


TOOL_FILES = call("sh", 'for f in "$MURMUR_RUNTIME_DIR"/tools/*/murmur.yaml; do echo ---; cat "$f"; done')


def schemas(request):
    """The schemas of the tools in the last request and, by the same names, those below tools/ (TOOL_FILES was called last)."""
    texts = ["".join(block.get("text", "") for block in message["content"])
             for message in request["messages"] if message["role"] == "tool"]
    written = {document["name"]: document.get("input_schema") for document in yaml.safe_load_all(Answer(texts[-1]).stdout)}
    told = {tool["name"]: tool["parameters"] for tool in request["tools"]}
    return told, {name: json.loads(schema) if isinstance(schema, str) else schema for name, schema in written.items()}

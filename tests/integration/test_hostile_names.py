# SPDX-License-Identifier: Apache-2.0
#
# Names and words of strangers (keys of a manifest, files, descriptions, tools, answers of servers) that hold a newline, a
# terminal's escape or a direction mark: they are shown, and begin no line that reads as one of ours.

import re

import pytest

from tests.support.mcp_servers import add, tool

EVIL = "x\nerror[E-FORGED]: y\n  hint: rm -rf\nnote: z\x1b[31m\x9b32m\u202e"
YAML = '"' + EVIL.replace("\n", "\\n").replace("\x1b", "\\e").replace("\x9b", "\\x9b").replace("\u202e", "\\u202e") + '"'
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


def is_harmless(told):
    for text in (told.stdout, told.stderr):
        assert not STEERS.search(text), repr(text)
        assert not re.search(r"(?m)^ {0,3}(error\[E-FORGED|hint: rm|note: z)", text), text
    return told


KEYS = [f"{YAML}: 1", f"capabilities: {{{YAML}: 1}}", f"capabilities: {{filesystem: {{{YAML}: 1}}}}",
        f"capabilities: {{network: {{allow: [{YAML}]}}}}", f"lifecycle: {YAML}",
        f"lifecycle: {{after_task: {YAML}}}"]


@pytest.mark.parametrize("block", KEYS)
@pytest.mark.parametrize("command", [("run", "--task", "x"), ("doctor",), ("run", "--explain-scope")])
def test_hostile_keys_and_values_of_a_manifest(lab, block, command):
    project = lab.agent(steps=[{"text": "hi"}])
    manifest = project / "murmur.yaml"
    manifest.write_text(re.sub(r"(?ms)^capabilities:.*?(?=^\S)", "", manifest.read_text()) + block + "\n")
    told = is_harmless(project.mur(*command))
    assert "error[E-FORGED]" in told.stderr, "and it is told"


TYPED = [("run", "--manifest", EVIL), ("run", "--task", "x", "--workdir", EVIL), ("trace", "show", EVIL), ("stop", EVIL),
         ("install", EVIL), ("mcp", "show", EVIL), ("mcp", "add", EVIL), ("publish", EVIL), ("verify", EVIL), ("explain", EVIL), (EVIL,),
         ("run", "--" + EVIL), ("config", "get", EVIL), ("new", "agent", EVIL), ("new", EVIL, "x"), ("build", EVIL),
         ("conversation", "show", EVIL), ("send", EVIL, "x"), ("search", EVIL), ("replay", EVIL), ("completions", EVIL),
         ("beta", "enable", EVIL), ("trust", "remove", EVIL), ("mcp", "connect", EVIL), ("sign", EVIL, "--key", "k")]


@pytest.mark.parametrize("line", TYPED, ids=[" ".join(word if word != EVIL else "EVIL" for word in line) for line in TYPED])
def test_hostile_words_of_a_command_line(lab, line):
    is_harmless(lab.mur(*line))


def test_hostile_names_of_files(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    inside = lab.directory / EVIL
    inside.mkdir()
    (inside / "murmur.yaml").write_text("name: x\n")
    for line in (("run", "--task", "x"), ("build", "."), ("doctor",)):
        is_harmless(lab.mur(*line, cwd=inside))
    (project / EVIL).write_text("x")
    is_harmless(project.mur("run", "--manifest", project / EVIL))


def test_hostile_words_of_a_server(lab):
    add(lab, "--accept", tools=[tool("echo", EVIL, schema={"type": "object", "properties": {EVIL: {"type": "string", "description": EVIL}}})],
        instructions=EVIL)
    for line in (("mcp", "show", "scripted"), ("mcp", "list"), ("mcp", "call", "scripted", EVIL), ("mcp", "call", "scripted", "echo")):
        is_harmless(lab.mur(*line))
    refused = is_harmless(add(lab, "--accept", name="named", tools=[tool(EVIL)]))
    assert refused.code != 0 and "the tool name" in refused.stderr


def test_hostile_words_of_a_model_and_a_tool(lab):
    project = lab.agent(steps=[{"tool_calls": [{"name": EVIL, "input": {EVIL: EVIL}}]}, {"text": EVIL}], trace={"capture": "content"})
    is_harmless(project.run("--task", "go"))
    for line in (("trace", "show"), ("trace", "steps"), ("trace", "list")):
        is_harmless(project.mur(*line))

# SPDX-License-Identifier: Apache-2.0
#
# What the model is told of its capsule, and what tools reach of the runtime's own files.

import json
import re

import pytest

from tests.support.commands import SAVED, TOOL_FILES, host_offers, schemas
from tests.support.fixtures import own_component
from tests.support.hooks import Hook


def probe_tool(lab, **entry):
    name, version = lab.publish("tool-probe", own_component("tool-probe"), input_schema={"type": "object"}).split("@")
    return {"name": name, "version": version, "runtime": "tool", **entry}


def system_of(lab, **how):
    session = lab.session(lab.agent(steps=[{"text": "{{system}}"}], **how).run("--task", "go").ok())
    return session.result_text


def inventory_of(lab, **how):
    capabilities = how.pop("capabilities", {})
    capabilities["shell"] = {"allow": ["sh", "cat"]}
    steps = [{"tool_calls": [{"name": "sh", "input": {"command": "cat $MURMUR_RUNTIME_DIR/MURMUR.md"}}]}, {"text": "{{result}}"}]
    session = lab.session(lab.agent(steps=steps, capabilities=capabilities, **how).run("--task", "go").ok())
    return session, session.result_text


@pytest.mark.parametrize("entry, sees", [({}, True), ({"capabilities": {"filesystem": {"scope": "sub"}}}, False)])
def test_session_8_1_an_unscoped_tool_reads_the_runtime_directory_and_no_other_does(lab, entry, sees):
    calls = [{"do": "list murmur-runtime\nread murmur-runtime/task.md\nwrite murmur-runtime/task.md x"}]
    project = lab.agent(tools=[probe_tool(lab, **entry)], steps=[
        *({"tool_calls": [{"name": "tool-probe", "input": call}]} for call in calls), {"text": "{{result}}"}])

    said = lab.session(project.run("--task", "the task").ok()).result_text

    assert ("the task" in said) == sees and ("MURMUR.md" in said) == sees
    assert "write: error" in said or "write murmur-runtime/task.md: error" in said or re.search("write.*error", said)


def test_session_10_1_the_runtime_files_are_named_by_the_names_that_reach_them(lab):
    echo = lab.publish("echo", own_component("echo"), input_schema={"type": "object"})
    assert "Runtime files:" not in system_of(lab, name="none", capabilities={"shell": {"allow": ["ls"]}})
    assert "\nRuntime files: read-only at $MURMUR_RUNTIME_DIR for sh; murmur-runtime/ for echo\n" in system_of(
        lab, name="both", tools=[echo], capabilities={"shell": {"allow": ["sh", "ls"]}})
    scoped = {"name": "local/echo", "version": "0.1.0", "runtime": "tool", "capabilities": {"filesystem": {"scope": "x"}}}
    assert "Runtime files:" not in system_of(lab, name="scoped", tools=[scoped])


def test_session_10_1_facts_are_the_manifests_and_nothing_of_a_launch(lab):
    text = system_of(lab, inference={"max_turns": 7, "max_session_tokens": 9000, "system_prompt": "Be kind."},
                     capabilities={"network": {"allow": ["api.example.com", "localhost:1"]}, "filesystem": {"read_only": ["tests"]}})

    assert text.startswith("[Capsule]\nName: agent\nVersion: 0.1.0\nWork folder: ./ ")
    assert "read-only: tests" in text and "\nNetwork allowlist: api.example.com, localhost:1\n" in text
    assert "\nLimits: 7 turns per task; 9000 tokens per session; 2 GiB of memory and 3600 CPU seconds per command\n" in text
    assert text.endswith("\n\nBe kind.")
    assert "/" + str(lab.directory).lstrip("/") not in text and "ses_" not in text


def test_session_10_3_murmur_md_has_its_sections_in_order(lab):
    echo = lab.publish("echo", own_component("echo"), input_schema={"type": "object"},
                       description="Says\tit `back`\n  again " + "x" * 300)
    session, text = inventory_of(lab, tools=[echo])

    assert re.findall("^## (.*)$", text, re.MULTILINE) == [
        "Identity", "Capsule", "Limits", "Runtime Directory", "Installed Tools", "Installed Skills", "Running Shell Commands"]
    assert f"- Session: {session.id}\n" in text and "- URL: localhost:" in text
    entry = re.search("^- `echo` 0.1.0: (.*)$", text, re.MULTILINE).group(1)
    assert entry.startswith("Says it back again xxx") and len(entry) == 201 and entry.endswith("…")
    assert "task.md" not in text and "compaction is not configured" in text


def test_session_10_3_compaction_is_configured_with_a_window_and_a_hook(lab):
    hook = Hook(lab, binding="on-compaction", commit_policy="replace-context")
    _, text = inventory_of(lab, tools=[hook.entry])
    assert "compaction is configured" in text


def test_session_10_3_what_the_kernel_refuses_is_said_where_it_does(lab):
    offered = host_offers(lab)
    _, text = inventory_of(lab)
    section = text.split("## Running Shell Commands")[1]
    assert ("The kernel refuses them writing outside the work folder" in section) == (offered != "advisory")


def test_session_3_1_the_files_of_a_tool_say_what_the_model_is_told_of_its_input(lab):
    alternate = {"name": "fast", "model": "swift", "driver": {"artifact": "std/driver-scripted"}}
    steps = [TOOL_FILES, {"text": "done", "save_request": SAVED}]
    project = lab.agent(
        steps=steps, control={"agent_settings": ["inference.driver"]},
        inference={"driver": {"artifact": "std/driver-scripted", "config": {"steps": steps}}, "alternates": [alternate]},
        capabilities={"shell": {"allow": ["sh", "cat"]}, "plan": {"submit": True},
                      "peer_fetch": {"allow": ["localhost:1"]}, "install": {"tool": ["local/*"]}})

    session = lab.session(project.run("--task", "go", "--workdir", project.directory).ok())

    told, written = schemas(json.loads((project / SAVED).read_text()))
    assert {"switch-driver", "submit-plan", "session-status", "background-command", "sh"} <= set(told) <= set(written)
    assert {name: written[name] for name in told} == told and session.result_text == "done"

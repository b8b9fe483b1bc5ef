# SPDX-License-Identifier: Apache-2.0
#
# A formation of harnesses: one stands in for Claude Code and calls, through the bridge, one that stands in for Codex.

import sys

import pytest
import yaml

from tests.support.formation import BEARER, CALLS, SERVES, Team

LEAD = """#!{python} -u
import json, sys, urllib.request
if "--version" in sys.argv:
    print("0.0.1 (stand-in)")
    sys.exit(0)
told = sys.stdin.read()

def say(**message):
    print(json.dumps(message), flush=True)

def call(name, **arguments):
    server = json.load(open(sys.argv[sys.argv.index("--mcp-config") + 1]))["mcpServers"]["murmur"]
    body = {{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {{"name": name, "arguments": arguments}}}}
    asked = urllib.request.Request(server["url"], json.dumps(body).encode(), {{**server["headers"], "content-type": "application/json"}})
    return json.load(urllib.request.urlopen(asked, timeout=60))["result"]

say(type="system", subtype="init", session_id="11111111-1111-4111-8111-111111111111", apiKeySource="none", model="m")
if "--resume" in sys.argv:
    say(type="result", subtype="success", is_error=False, result="heard: " + told)
else:
    answer = call({tool!r}, **{arguments!r})
    say(type="assistant", message={{"content": [{{"type": "text", "text": json.dumps(answer)}}]}})
    say(type="result", subtype="success", is_error=answer["isError"], result="asked")
"""
CODER = """#!{python} -u
import json, sys
if "--version" in sys.argv:
    print("codex-cli 0.0.1")
    sys.exit(0)
task = sys.stdin.read()
open("made.txt", "w").write("made")
for message in ({{"type": "thread.started", "thread_id": "t-1"}},
                {{"type": "item.completed", "item": {{"id": "i", "type": "agent_message", "text": "wrote it: " + task.strip()[-40:]}}}},
                {{"type": "turn.completed", "usage": {{"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1}}}}):
    print(json.dumps(message), flush=True)
"""


def publish(lab, name, driver, program, containment="scoped", **manifest):
    """A harness in the lab's store."""
    folder = lab.directory / "packages" / name
    folder.mkdir(parents=True)
    path = lab.directory / f"{name}-program"
    path.write_text(program)
    path.chmod(0o755)
    artifact = f"std/driver-{driver}"
    (folder / "murmur.yaml").write_text(yaml.safe_dump({
        "name": name, "version": "0.1.0", "runtime": "capsule", "execution": "static",
        "artifacts": [{"name": artifact, "version": "0.1.0", "runtime": "driver"}],
        "inference": {"transport": "process", "containment": containment, "command": str(path), "driver": {"artifact": artifact}},
        **manifest}, sort_keys=False))
    lab.mur("build", ".", cwd=folder).ok()
    lab.mur("publish", cwd=folder).ok()


@pytest.mark.parametrize("containment", ["scoped", "sealed"])
def test_harness_one_member_calls_the_other_through_the_bridge(lab, containment):
    lead = LEAD.format(python=sys.executable, tool="call-member", arguments={"member": "coder", "task": "Write made.txt"})
    publish(lab, "lead", "claude-code", lead, containment, **CALLS, **BEARER)
    publish(lab, "coder", "codex", CODER.format(python=sys.executable), containment, **SERVES, **BEARER)
    team = Team(lab, "lead", "coder", reachability=[{"from": "lead", "to": ["coder"]}])

    team.run("--task", "go").ok()

    traces = team.sessions()
    assert "wrote it: " in lab.session(traces["lead"].one("session_start")["session_id"]).result_text
    assert [line["harness"] for line in (traces["lead"].all("harness_start")[0], traces["coder"].one("harness_start"))] == [
        "claude-code", "codex"]
    assert traces["lead"].all("harness_start")[1]["session_mode"] == "resume"
    assert [change["path"] for change in traces["coder"].one("harness_changes")["files"]] == ["made.txt"]

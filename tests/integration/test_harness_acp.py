# SPDX-License-Identifier: Apache-2.0
#
# std/driver-acp: agents that speak the Agent Client Protocol, inside the walls.

import json
import os
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.acp_agent import acp_project
from tests.support.agent_provider import AgentProvider
from tests.support.door_client import SLEEPER, Door
from tests.support.lab import SLOWER
from tests.support.polling import eventually

FILES = {"name": "std/files", "version": "0.1.0", "runtime": "tool"}


def run(lab, project, *arguments):
    return lab.session(project.run("--task", "do it", *arguments).ok())


def notes(session):
    return [line["text"] for line in session.trace.all("harness_note")]


def seen(project):
    return json.loads(next(project.lab.directory.rglob("seen.json")).read_text())


def test_acp_a_task_is_a_prompt_and_its_words_are_the_answer(lab):
    project = acp_project(lab, """
        new, prompt = begin()
        say("agent_thought_chunk", content={"type": "text", "text": "hm"})
        text("All ")
        text("done.")
        stop(prompt, usage={"inputTokens": 5, "outputTokens": 2})
    """)

    session = run(lab, project)

    assert session.result_text == "All done."
    start = session.trace.one("harness_start")
    assert start["harness"] == "acp" and session.trace.one("harness_session")["harness_session_id"] == "s-1"
    line, = session.trace.all("inference")
    assert (line["input_tokens"], line["output_tokens"]) == (5, 2)
    asked = seen(project)
    assert [message["method"] for message in asked] == ["initialize", "session/new", "session/prompt"]
    assert asked[1]["params"]["cwd"].startswith("/") and "do it" in asked[2]["params"]["prompt"][-1]["text"]


def test_acp_a_tool_of_the_capsule_is_called_through_the_bridge(lab):
    project = acp_project(lab, """
        new, prompt = begin()
        server, = new["params"]["mcpServers"]
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "files", "arguments": {"action": "write", "path": "made.txt", "content": "x"}}}
        headers = {one["name"]: one["value"] for one in server["headers"]}
        say("tool_call", toolCallId="c-9", title="mcp__murmur__files", kind="other", status="pending", rawInput={"action": "write"})
        asked = urllib.request.Request(server["url"], json.dumps(body).encode(), headers)
        said = json.loads(urllib.request.urlopen(asked, timeout=30).read())
        say("tool_call_update", toolCallId="c-9", status="completed", content=[{"type": "content", "content": said["result"]["content"][0]}])
        stop(prompt)
    """, tools=[FILES])

    session = run(lab, project)

    call = session.trace.one("tool_call")
    assert (call["tool_name"], call["by"], call["status"]) == ("mcp__murmur__files", "bridge", "ok")
    changed = {item["path"]: item for line in session.trace.all("harness_changes") for item in line["files"]}
    assert changed["made.txt"]["change"] == "created" and changed["made.txt"]["before"] is None


def test_acp_its_own_calls_are_lines_with_the_command_they_ran(lab):
    project = acp_project(lab, """
        new, prompt = begin()
        say("tool_call", toolCallId="c-1", title="run ls", kind="execute", status="pending")
        say("tool_call_update", toolCallId="c-1", status="in_progress", rawInput={"command": ["ls", "-l"]})
        say("tool_call_update", toolCallId="c-1", status="failed", content=[{"type": "content", "content": {"type": "text", "text": "no"}}])
        stop(prompt)
    """)
    call = run(lab, project).trace.one("tool_call")
    assert (call["tool_name"], call["by"], call["argv"], call["status"], call["output_bytes"]) == (
        "execute", "harness", ["ls", "-l"], "error", 2)


@pytest.mark.parametrize("asked, config, given, why", [
    ("'execute', rawInput={'command': 'cd sub && A=1 /bin/ls -l \\\"a; curl\\\" 2>&1; echo done'}", None, True, "has its programs"),
    ("'execute', rawInput={'command': ['ls', '-l', 'curl']}", None, True, "has its programs"),
    ("'execute', rawInput={'command': 'if true; then ls; else curl x; fi'}", None, False, "shell.allow has no curl"),
    ("'execute', rawInput={'command': 'ls -l | nc host 1'}", None, False, "shell.allow has no nc"),
    ("'execute', rawInput={'command': '/usr/bin/curl x'}", None, False, "shell.allow has no curl"),
    ("'execute'", None, False, "does not say"),
    ("'edit', locations=[{'path': os.getcwd() + '/kept/a.txt'}]", None, False, "read_only"),
    ("'edit', locations=[{'path': os.getcwd() + '/free.txt'}]", None, True, "written"),
    ("'fetch'", None, False, "no host"),
    ("'read'", None, True, "changes nothing"),
    ("'other'", None, False, "no rule speaks"),
    ("'brand_new_kind'", None, False, "no rule speaks"),
    ("'other'", {"allow": ["other"]}, True, "config.allow"),
    ("'read'", {"deny": ["read"]}, False, "config.deny"),
    ("'other', 'mcp__murmur__files'", None, True, "tool of the capsule"),
])
def test_acp_permission_is_asked_of_the_manifests_rules(lab, asked, config, given, why):
    project = acp_project(lab, f"""
        new, prompt = begin()
        outcome = permission({asked})
        text(json.dumps(outcome))
        stop(prompt)
    """, config=config, capabilities={"shell": {"allow": ["sh", "ls"]}, "filesystem": {"read_only": ["kept"]}})

    session = run(lab, project)

    assert json.loads(session.result_text) == {"outcome": "selected", "optionId": "o-allow_once" if given else "o-reject_once"}
    note, = [text for text in notes(session) if text.startswith("permission was")]
    assert note.startswith(f"permission was {'given' if given else 'refused'} to") and why in note


def test_acp_what_it_said_of_a_call_before_counts_when_it_asks(lab):
    project = acp_project(lab, """
        new, prompt = begin()
        say("tool_call", toolCallId="c-7", title="ls", kind="execute", status="pending", rawInput={"command": "ls -l"})
        write({"id": "p-2", "method": "session/request_permission", "params": {"sessionId": "s-1", "toolCall": {"toolCallId": "c-7"},
            "options": [{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]}})
        text(read()["result"]["outcome"]["optionId"])
        stop(prompt)
    """)
    assert run(lab, project).result_text == "yes"


def test_acp_without_a_fitting_option_nothing_is_chosen(lab):
    project = acp_project(lab, """
        new, prompt = begin()
        text(json.dumps(permission("other", options=("allow_always",))))
        stop(prompt)
    """)
    assert json.loads(run(lab, project).result_text) == {"outcome": "cancelled"}


def test_acp_what_it_asks_that_is_not_offered_is_refused_by_name(lab):
    project = acp_project(lab, """
        new, prompt = begin()
        write({"id": "f-1", "method": "fs/read_text_file", "params": {"path": "/etc/shadow"}})
        text(json.dumps(read()["error"]))
        stop(prompt)
    """)
    assert json.loads(run(lab, project).result_text) == {"code": -32601, "message": "fs/read_text_file is not offered"}


def test_acp_a_conversation_is_loaded_again_without_its_past_words(lab):
    project = acp_project(lab, """
        loads = os.path.exists("once")
        open("once", "w").close()
        new, prompt = begin(session="session/load" if loads else "session/new")
        text("second" if loads else "first")
        stop(prompt)
    """, lifecycle={"conversation": "threaded"})
    work = project.directory / "work"
    work.mkdir()
    assert run(lab, project, "--workdir", work).result_text == "first"

    session = run(lab, project, "--workdir", work, "--resume")

    assert session.result_text == "second" and session.trace.one("harness_start")["session_mode"] == "resume"


def test_acp_a_cancel_is_told_in_the_protocols_words(lab):
    project = acp_project(lab, """
        new, prompt = begin()
        text("working")
        told = read()
        assert told["method"] == "session/cancel" and told["params"] == {"sessionId": "s-1"}
        stop(prompt, "cancelled")
        read()
    """, lifecycle=SLEEPER)
    running = project.start()
    door = Door(running)
    task = door.send_at_once("go")
    eventually(lambda: "working" in str(door.state(task["id"])) or lab.session(running).trace.all("harness_session"),
               30 * SLOWER, "it works")
    door.result("CancelTask", {"id": task["id"]})
    line = eventually(lambda: lab.session(running).trace.all("harness_exit"), 30 * SLOWER, "it is gone")[0]
    assert line["cause"] == "canceled" and not lab.session(running).trace.one("harness_interrupt")["grace_ms"] == 0
    running.signal()
    running.result()


@pytest.mark.parametrize("body, word", [
    ("answer(read(), {'protocolVersion': 7})", "version 7"),
    ("answer(read(), {'protocolVersion': 1}); answer(read(), error={'code': -32000, 'message': 'Authentication required'})", "(auth)"),
    ("answer(read(), error={'code': -32603, 'message': 'Internal error', 'data': {'details': 'quite broken'}})", "quite broken"),
    ("print('no key', file=sys.stderr); sys.exit(3)", "no key"),
    ("begin(); sys.exit(1)", "in the middle of its turn"),
    ("new, prompt = begin(); stop(prompt, 'refusal')", "refused to go on"),
    ("new, prompt = begin(); stop(prompt, 'max_turn_requests')", "max-turns"),
    ("sys.stdout.write('no json\\n'); sys.stdout.flush(); sys.exit(0)", "before it had a session"),
])
def test_acp_what_goes_wrong_is_one_error(lab, body, word):
    failed = acp_project(lab, body).run("--task", "go")
    assert failed.code == 1 and failed.stderr.count("error[") == 1
    assert "error[E-RUN-033]" in failed.stderr and word in failed.stderr


def test_acp_an_agent_that_is_not_there_is_told_with_the_remedy(lab):
    project = acp_project(lab, "", inference={"command": "no-such-agent"})
    failed = project.run("--task", "go")
    assert failed.code == 1 and "E-RUN-006" in failed.stderr and "inference.command" in failed.stderr


@pytest.mark.parametrize("config, word", [({"gatway_env": {}}, "gatway_env"), ({"gateway_env": {"X": "url"}}, "no gateway"),
                                          ({"env": {"X": 1}}, "a text is wanted"), ({"args": "x"}, "list of texts")])
def test_acp_a_config_that_cannot_be_meant_is_refused(lab, config, word):
    failed = acp_project(lab, "begin()", config=config).run("--task", "go")
    assert failed.code == 1 and word in failed.stderr


def test_acp_odd_lines_are_noted_and_passed_over(lab):
    project = acp_project(lab, """
        new, prompt = begin()
        sys.stdout.write("warming up\\n{half\\n\\n[1]\\n" + json.dumps({"jsonrpc": "2.0", "id": 99, "result": {}}) + "\\n")
        sys.stdout.flush()
        sys.stdout.buffer.write(b"\\xff\\xfe not text\\n")
        sys.stdout.buffer.write(b"x" * (20 << 20) + b"\\n")
        sys.stdout.buffer.flush()
        say("something_new", what=1)
        say("agent_message_chunk", content={"type": "image"})
        text("fine")
        stop(prompt)
    """)
    session = run(lab, project)
    assert session.result_text == "fine" and "warming up" in notes(session) and "{half" in notes(session)


@pytest.mark.parametrize("containment", ["scoped", "sealed"])
@pytest.mark.parametrize("prefix", ["/tmp", "/var/tmp", "/opt"])
def test_harness_a_program_of_any_prefix_runs_behind_its_links(lab, prefix, containment):
    project = acp_project(lab, """
        import beside
        new, prompt = begin()
        text(beside.WORD)
        stop(prompt)
    """, containment=containment, inference={"command": "placed-agent"})
    with tempfile.TemporaryDirectory(dir=prefix) as folder:
        place = Path(folder)
        (place / "lib/pkg").mkdir(parents=True)
        (place / "bin").mkdir()
        agent = place / "lib/pkg/agent.py"
        agent.write_text((lab.directory / "lab-agent").read_text().replace(f"{sys.executable} -u", "/usr/bin/env python3"))
        agent.chmod(0o755)
        (place / "lib/pkg/beside.py").write_text("WORD = 'from beside'")
        (place / "bin/placed-agent").symlink_to("../lib/pkg/agent.py")
        done = project.run("--task", "go", env={"PATH": f"{place}/bin:{os.environ['PATH']}"}).ok()
    assert lab.session(done).result_text == "from beside"


@pytest.mark.parametrize("told, warned", [({"inputTokens": 19, "outputTokens": 9}, False), ({"inputTokens": 1, "outputTokens": 1}, True)])
def test_harness_a_report_that_differs_from_the_providers_is_a_warning(lab, told, warned):
    with AgentProvider({"text": "hi"}) as provider:
        project = acp_project(lab, f"""
            new, prompt = begin()
            body = json.dumps({{"model": "m", "tools": [1], "stream": True, "messages": []}}).encode()
            headers = {{"authorization": "Bearer " + os.environ["KEY"], "content-type": "application/json"}}
            urllib.request.urlopen(urllib.request.Request(os.environ["URL"] + "/v1/messages", body, headers), timeout=30).read()
            text("done")
            stop(prompt, usage={told!r})
        """, config={"gateway_env": {"URL": "url", "KEY": "key"}},
                              gateway={"endpoint": provider.url, "api_key": "${PROVIDER_KEY}"})
        done = project.run("--task", "go", env={"PROVIDER_KEY": "sk-real"}).ok()
    lines = [line for line in lab.session(done).trace.all("harness_warning") if line["code"] == "W-RUN-010"]
    assert bool(lines) == warned and ("W-RUN-010" in done.stderr) == warned
    if warned:
        assert "reported 1 input and 1 output tokens, its provider 19 and 9" in lines[0]["message"]

# SPDX-License-Identifier: Apache-2.0
#
# Acceptance cases 1, 2, 3, 9 and 10 of spec/records.md, and the facts that session_start states.

import hashlib
import os
import shutil
import signal

from tests.support.fixtures import own_component
from tests.support.polling import eventually

HEAD = ["event_type", "event_id", "parent_id", "session_id", "timestamp"]
ORDER = {
    "task_start": ["task_id", "context_id", "source", "origin", "trust", "lane", "message_parts_bytes"],
    "task_end": ["task_id", "exit_status", "duration_ms", "turns", "input_tokens", "output_tokens", "tool_calls",
                 "shell_calls", "reopen_count"],
    "session_end": ["total_turns", "total_input_tokens", "total_output_tokens", "total_tool_calls", "total_shell_calls",
                    "duration_ms", "exit_status"],
    "tool_call": ["turn", "task_id", "tool_name", "tool_call_id", "input", "input_bytes", "output_bytes", "duration_ms",
                  "status"],
}
SESSION_START = [
    "capsule_name", "capsule_version", "model", "max_turns", "model_limits", "max_session_tokens",
    "machine_tokens_per_day", "deadline", "capabilities", "tools_declared", "containment_declared",
    "containment_achieved", "workdir_exec", "userns_grant", "effective_grants", "system_prompt_source",
    "system_prompt_sha256", "credential_source", "gateways", "tool_refresh", "runtime_artifacts", "host_facts",
    "resumed_from", "context_id",
]


def one_turn(lab, **how):
    return lab.agent(steps=[{"text": "hello"}], **how)


def test_records_01_a_one_turn_session_writes_its_five_lines_in_order(lab):
    trace = lab.session(one_turn(lab).run("--task", "hi").ok()).trace

    assert trace.types == ["session_start", "task_start", "inference", "task_end", "session_end"]
    seen = set()
    for event in trace.events:
        assert list(event)[:5] == HEAD
        assert event["parent_id"] is None or event["parent_id"] in seen
        seen.add(event["event_id"])
    ids = [event["event_id"] for event in trace.events]
    assert ids == sorted(ids) and len(set(ids)) == len(ids)
    start, task, inference, _, end = trace.events
    assert start["parent_id"] is None
    assert task["parent_id"] == end["parent_id"] == start["event_id"]
    assert inference["parent_id"] == task["event_id"]
    for event in trace.events:
        wanted = ORDER.get(event["event_type"])
        if wanted:
            assert [key for key in list(event)[5:] if key in wanted] == wanted
    assert [key for key in list(start)[5:] if key in SESSION_START] == SESSION_START
    assert trace.path.read_bytes().endswith(b"\n")
    assert b": " not in trace.path.read_bytes().split(b'"text"')[0][:200]


def test_records_01_every_line_is_one_write(lab):
    """A tool turn: the call hangs under its inference line, and carries its own facts."""
    echo = lab.publish("echo", own_component("echo"), input_schema={"type": "object"})
    project = lab.agent(tools=[echo], steps=[
        {"tool_calls": [{"name": "echo", "id": "c1", "input": {"a": 1}}]}, {"text": "done"}])

    trace = lab.session(project.run("--task", "hi").ok()).trace

    call = trace.one("tool_call")
    assert call["parent_id"] == trace.all("inference")[0]["event_id"]
    assert [key for key in list(call)[5:] if key in ORDER["tool_call"]] == ORDER["tool_call"]
    assert (call["tool_name"], call["tool_call_id"], call["input"], call["status"]) == ("echo", "c1", {"a": 1}, "ok")
    assert call["input_bytes"] == len('{"a":1}')
    assert trace.one("session_end")["total_tool_calls"] == 1


def test_records_session_start_states_facts(lab):
    prompt = "You are brief."
    project = one_turn(lab, inference={"system_prompt": prompt, "max_turns": 7}, capabilities={
        "network": {"allow": ["https://api.example.com"]}})
    lab.publish("echo", own_component("echo"), input_schema={"type": "object"})

    start = lab.session(project.run("--task", "hi").ok()).trace.one("session_start")

    assert (start["capsule_name"], start["capsule_version"], start["model"]) == ("agent", "0.1.0", "scripted")
    assert start["max_turns"] == 7
    assert start["capabilities"] == ["network"]
    assert start["system_prompt_source"] == "manifest"
    assert start["system_prompt_sha256"] == hashlib.sha256(prompt.encode()).hexdigest()
    host = project.run("--explain-scope", "--json").ok().json
    assert start["containment_declared"] == "advisory"
    assert start["containment_achieved"] == host["achieved_containment"] in ("advisory", "scoped", "sealed")
    assert start["workdir_exec"] is False
    assert start["credential_source"] == "none" and start["gateways"] == []
    assert start["model_limits"]["max_output_tokens"] == 1024
    assert start["model_limits"]["max_output_tokens_source"] == "manifest"
    assert start["effective_grants"] == host


def test_records_02_a_killed_session_leaves_whole_lines_and_no_end(lab):
    running = lab.agent(steps=[{"text": "late", "delay_ms": 60000}]).start("--task", "hi")
    session = lab.session(running)
    eventually(lambda: "task_start" in session.trace.types)
    running.signal(signal.SIGKILL)
    running.result()

    assert "session_end" not in session.trace.types
    shown = lab.mur("trace", "show", cwd=lab.directory / "agent").ok().stdout
    assert "ended without a session_end (last event: task_start" in shown


def test_records_03_a_cut_last_line_is_named_and_a_cut_middle_is_an_error(lab):
    project = one_turn(lab)
    session = lab.session(project.run("--task", "hi").ok())
    path = session.trace.path
    whole = path.read_bytes()

    path.write_bytes(whole[:-20])
    assert "line 5, the last, is not valid JSON and was skipped" in project.mur("trace", "show").ok().stdout

    lines = whole.split(b"\n")
    lines[1] = lines[1][:30]
    path.write_bytes(b"\n".join(lines))
    assert f"{path}:2" in project.mur("trace", "show").failed("E-TRC-001").stderr


def test_records_09_a_link_in_the_mirrored_path_refuses_the_launch(lab):
    project = one_turn(lab)
    target = lab.directory / "elsewhere"
    target.mkdir()
    first = project.directory.resolve().parts[1]
    records = lab.murmur_home / "records"
    records.mkdir(parents=True, mode=0o700)
    (records / first).symlink_to(target)

    result = project.run("--task", "hi")

    assert result.code == 1 and "error[" in result.stderr
    assert os.listdir(target) == []


def test_records_10_an_unusable_home_is_refused_and_nothing_written(lab):
    project = one_turn(lab)
    before = sorted(os.listdir(project.directory))

    for home in (None, "relative/home"):
        project.run("--task", "hi", env={"HOME": home}).failed("E-IO-004")
        assert sorted(os.listdir(project.directory)) == before
    shutil.rmtree(lab.home)
    lab.home.mkdir()

# SPDX-License-Identifier: Apache-2.0
#
# `mur replay`: what a content trace holds is served by its place, and the first difference is told with turn, part, byte and
# cause.

import ctypes
import json
import os
import platform
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest

from tests.support.commands import command_agent, run_commands
from tests.support.door_client import SLEEPER, Door
from tests.support.fixtures import own_component
from tests.support.hooks import Hook
from tests.support.model_server import answer, fault
from tests.support.polling import eventually
from tests.support.replays import (CONTENT, diverges, edit_manifest, edit_trace, put_blob, replay, same, tree_digest)

ECHO = {"input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}}


def echo_call(text):
    return {"tool_calls": [{"name": "echo", "input": {"text": text}}]}


def six_turns(lab, **more):
    tool = lab.publish("echo", own_component("echo"), **ECHO)
    more.setdefault("inference", {"system_prompt": "Be exact."})
    return lab.agent(steps=[*[echo_call(f"number {n}") for n in range(5)], {"text": "done"}], tools=[tool], trace=CONTENT,
                     **more)


def recorded(lab, project, *arguments):
    return lab.session(project.run("--task", "go", *arguments).ok())


def test_replay_01_six_scripted_turns_are_the_same(lab):
    project = six_turns(lab)
    session = recorded(lab, project)

    report = same(project)

    assert report["replay_of"] == session.id and report["modes"]["tools"] == "recorded"
    assert [turn["same"] for turn in report["turns"]] == [True] * 6
    assert report["served"] == {"answers": 6, "calls": 5, "tasks": 1}
    again = lab.session(report["session_id"])
    assert again.trace.one("session_start")["replay_of"]["session_id"] == session.id
    text = project.mur("replay", session.id).ok().stdout
    assert text.count("same") == 7 and text.endswith("verdict: same\n")


@pytest.mark.parametrize("capture", ["meta", "none"])
def test_replay_02_without_bodies_there_is_nothing_to_run_again(lab, capture):
    project = lab.agent(steps=[{"text": "x"}], trace={"capture": capture})
    recorded(lab, project)
    before = lab.records

    result = project.mur("replay").failed("E-RPL-001")

    assert "capture: content" in result.stderr and lab.records == before


def test_replay_03_a_replay_can_be_replayed(lab):
    project = six_turns(lab)
    recorded(lab, project)
    first = same(project)

    second = same(project, session=first["session_id"])

    assert second["replay_of"] == first["session_id"] and len(second["turns"]) == 6


def test_replay_04_a_byte_of_the_system_prompt_is_found_where_it_stands(lab):
    project = six_turns(lab)
    session = recorded(lab, project)
    system = project.mur("trace", "show", "--body", "system", "--turn", "0").ok().stdout
    edit_manifest(project, lambda m: m["inference"].update(system_prompt="Be exacT."))

    first = diverges(project, part="system", cause="prompt")

    assert first["offset"] == system.index("exact.") + 4 and "exacT" in first["now"] and first["call"] is None
    assert first["recorded_sha"] == session.trace.all("inference")[0]["system_sha"]
    shown = project.mur("replay").failed("E-RPL-002")
    assert f"byte      {first['offset']}" in shown.stdout and "cause     prompt" in shown.stdout
    assert diverges(project, "--with-system-prompt", "Be quick.", part="system", cause="prompt")["offset"] < first["offset"]


def test_replay_answers_can_be_served_whatever_is_asked(lab):
    project = six_turns(lab)
    recorded(lab, project)
    edit_manifest(project, lambda m: m["inference"].update(system_prompt="Be quick."))

    report = replay(project, "--model", "served", expect="same")

    assert report["modes"]["model"] == "served" and len(report["turns"]) == 6


def test_replay_05_another_description_of_a_tool_is_its_artifact_s_digest(lab):
    tool = lab.publish("echo", own_component("echo"), description="Repeats.", **ECHO)
    project = lab.agent(steps=[echo_call("a"), {"text": "done"}], tools=[tool], trace=CONTENT)
    recorded(lab, project)
    republish(lab, "echo", "echo", description="Repeats!", **ECHO)

    first = diverges(project, part="tools", cause="artifact local/echo: digest")

    assert first["pointer"] == "/0/description" and "->" in first["cause"]


def republish(lab, name, component, runtime="tool", **manifest):
    """Another artifact under the same name and version: the one that was published is taken away first."""
    shutil.rmtree(lab.directory / "packages" / f"{name}-0.1.0")
    for store in lab.murmur_home.glob(f"artifacts/local/{name}/0.1.0"):
        shutil.rmtree(store)
    lab.publish(name, own_component(component), runtime, **manifest)


def test_replay_09_equal_requests_get_their_answers_in_order(lab):
    tool = lab.publish("echo", own_component("echo"), **ECHO)
    project = lab.agent(steps=[echo_call("x"), echo_call("x"), echo_call("x"), {"text": "done"}], tools=[tool], trace=CONTENT)
    session = recorded(lab, project)
    outputs = iter(["first", "second", "third"])

    def answer_each(line):
        if line["event_type"] == "tool_call":
            line["output"] = next(outputs)
    edit_trace(session, answer_each)

    report = replay(project, "--keep-going", expect="diverged")

    assert report["first"]["part"] == "message" and '"first"' in report["first"]["now"]
    served = [line["output"] for line in lab.session(report["session_id"]).trace.all("tool_call")]
    assert served == ["first", "second", "third"]


def provider_agent(lab, model, **more):
    return lab.agent(driver="std/driver-anthropic@0.1.0", gateway={"endpoint": model.url, "api_key": "${TEST_KEY}"},
                     inference={"model": "claude-test", "retry": {"initial_delay_ms": 600}}, trace=CONTENT,
                     context={"max_tokens": 100000}, **more)


def test_replay_10_retries_are_not_waited_for(lab):
    model = lab.model_server()
    project = provider_agent(lab, model)
    model.script(fault(500), fault(500), answer("third time"))
    session = lab.session(project.run("--task", "go", env={"TEST_KEY": "canary-1"}).ok())
    assert len(session.trace.all("inference_retry")) == 2
    model.close()

    report = same(project)

    again = lab.session(report["session_id"]).trace
    assert again.one("inference")["attempts"] == 3 and again.one("session_end")["duration_ms"] < 1200


def test_replay_10_a_call_that_failed_for_good_fails_again(lab):
    model = lab.model_server()
    project = provider_agent(lab, model)
    model.script(fault(400))
    session = lab.session(project.run("--task", "go", env={"TEST_KEY": "canary-1"}).failed())
    assert session.trace.one("task_end")["exit_status"] == "failed"

    report = same(project)

    assert lab.session(report["session_id"]).trace.one("task_end")["exit_status"] == "failed"


def test_replay_13_a_command_is_not_run_again_and_nothing_outside_changes(lab):
    project = command_agent(lab, ["rm -rf precious", "ls"], shell=("bash", "rm", "ls"), trace=CONTENT)
    (project / "work/precious").mkdir()
    (project / "work/precious/file").write_text("x")
    session, _ = run_commands(project)
    assert not (project / "work/precious").exists()
    (project / "work/precious").mkdir()
    (project / "work/precious/file").write_text("x")
    folder, home = tree_digest(project.directory), tree_digest(lab.murmur_home, but=("sessions",))

    report = same(project, "--workdir", project / "work")

    own = str(lab.session(report["session_id"]).records.relative_to(lab.murmur_home))
    assert tree_digest(project.directory) == folder
    assert tree_digest(lab.murmur_home, but=("sessions", own)) == home
    assert [line["exit_code"] for line in lab.session(report["session_id"]).trace.all("shell")] == [0, 0]


def test_replay_a_long_conversation_whose_lines_hold_only_what_is_new(lab):
    tool = lab.publish("echo", own_component("echo"), **ECHO)
    project = lab.agent(steps=[*[echo_call(f"number {n}") for n in range(25)], {"text": "done"}], tools=[tool], trace=CONTENT)
    session = recorded(lab, project)
    lines = session.trace.all("inference")
    assert "messages_after" in lines[-1] and len(lines[-1]["message_shas"]) < 51

    report = same(project)
    assert len(report["turns"]) == 26

    def change(line):
        if line["event_type"] == "tool_call" and line["turn"] == 20:
            line["output"] = line["output"].replace("number 20", "number Z")
    edit_trace(session, change)
    first = diverges(project, session=session, part="message", turn=21, cause="result of turn 20 call 0 (echo)")
    assert first["message"] == 42


def test_replay_14_a_killed_session_replays_its_whole_turns(lab):
    project = six_turns(lab)
    session = recorded(lab, project)
    path = session.records / "trace.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    cut = max(n for n, line in enumerate(lines) if '"inference"' in line and '"turn":3' in line)
    path.write_text("".join(lines[:cut]) + lines[cut][: len(lines[cut]) // 2])

    report = replay(project, session=session, expect="incomplete")

    assert [turn["turn"] for turn in report["turns"] if turn["calls"]] == [0, 1, 2] and report["missing"]
    assert all(turn["same"] for turn in report["turns"])


def test_replay_14_every_end_of_a_record_is_told(lab):
    """Cut after any line, or within one: never an error of ours, never another verdict than incomplete."""
    project = six_turns(lab)
    session = recorded(lab, project)
    path = session.records / "trace.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    for cut in range(3, len(lines) - 1, 3):
        path.write_text("".join(lines[:cut]) + lines[cut][:17])
        assert replay(project, session=session)["verdict"] == "incomplete", f"after line {cut}"


@pytest.mark.parametrize("harm", ["altered", "missing", "link", "folder"])
def test_replay_15_a_body_that_is_not_what_its_name_says_stops_before_anything(lab, harm):
    project = six_turns(lab)
    session = recorded(lab, project)
    blob = session.records / "blobs" / session.trace.all("inference")[3]["response_sha"]
    data = blob.read_bytes()
    blob.unlink()
    if harm == "altered":
        blob.write_bytes(data[:-1] + b" ")
    elif harm == "link":
        (project / "elsewhere").write_bytes(data)
        blob.symlink_to(project / "elsewhere")
    elif harm == "folder":
        blob.mkdir()
    before = lab.records

    result = project.mur("replay", session.id).failed("E-RPL-004")

    assert blob.name in result.stderr and lab.records == before


def test_replay_16_no_key_is_read_and_none_is_in_a_record(lab):
    model = lab.model_server()
    project = provider_agent(lab, model)
    model.script(answer("hello"))
    session = lab.session(project.run("--task", "go", env={"TEST_KEY": "canary-5521"}).ok())
    model.close()
    config = lab.murmur_home / "config.yaml"
    config.write_text("credentials: [this is no configuration\n")

    report = same(project)

    for records in (session.records, lab.session(report["session_id"]).records):
        for path in records.rglob("*"):
            assert not path.is_file() or b"canary-5521" not in path.read_bytes()


def test_replay_hooks_run_again_and_a_changed_one_is_the_cause(lab):
    tool = lab.publish("echo", own_component("echo"), **ECHO)
    deny = {"name": "std/hook-deny", "version": "0.1.0", "runtime": "hook",
            "config": {"rules": [{"tool": "echo", "input": {"text": "secret*"}, "reason": "by hand"}]}}
    project = lab.agent(steps=[echo_call("secret a"), echo_call("b"), {"text": "done"}], tools=[tool, deny], trace=CONTENT)
    session = recorded(lab, project)
    assert len(session.trace.all("call_denied")) == 1

    report = same(project)
    assert len(lab.session(report["session_id"]).trace.all("call_denied")) == 1

    edit_manifest(project, lambda m: m["artifacts"][2]["config"]["rules"][0].update(reason="by hanD"))
    first = diverges(project, turn=1, part="message", cause="manifest key")
    assert "by hanD" in first["now"]
    edit_manifest(project, lambda m: m["artifacts"][2]["config"]["rules"].clear() or m["artifacts"][2]["config"]["rules"].append(
        {"tool": "nothing"}))
    diverges(project, part="call", cause="manifest")


def test_replay_another_hook_is_the_cause(lab):
    hook = Hook(lab, "seeder",
                on={"on-task-start": {"answer": "seed-context", "messages": [{"role": "user", "content": "known before"}]}})
    project = six_turns(lab, context={"max_tokens": 50000})
    edit_manifest(project, lambda m: m["artifacts"].append(hook.entry))
    session = recorded(lab, project)
    assert session.trace.one("context_seed")["outcome"] == "seeded"
    same(project)
    republish(lab, "seeder", "hook-observer", "hook")

    first = diverges(project, part="message", cause="hook local/seeder: digest")

    assert first["pointer"] == "/content/0/text" and "known before" in first["recorded"]


def test_replay_a_seed_of_a_hook_comes_again(lab):
    seed = {"name": "std/hook-seed", "version": "0.1.0", "runtime": "hook"}
    project = six_turns(lab)
    edit_manifest(project, lambda m: m["artifacts"].append(seed))
    recorded(lab, project)

    same(project)


def test_replay_the_order_of_calls_is_compared(lab):
    tool = lab.publish("echo", own_component("echo"), **ECHO)
    both = {"tool_calls": [{"name": "echo", "input": {"text": "a"}}, {"name": "echo", "input": {"text": "b"}}]}
    project = lab.agent(steps=[both, {"text": "done"}], tools=[tool], trace=CONTENT)
    session = recorded(lab, project)
    line = session.trace.all("inference")[0]
    body = json.loads((session.records / "blobs" / line["response_sha"]).read_bytes())
    calls = [block for block in body["content"] if block["type"] == "tool_call"]
    calls[0]["input"], calls[1]["input"] = calls[1]["input"], calls[0]["input"]
    sha = put_blob(session, json.dumps(body).encode())

    def point_at_it(one):
        if one.get("response_sha") == line["response_sha"]:
            one["response_sha"] = sha
    edit_trace(session, point_at_it)

    first = diverges(project, part="tool_input", cause="order of calls")

    assert first["call"] == 0 and first["pointer"] == "/text"


def test_replay_a_result_that_was_altered_is_the_cause_of_the_next_request(lab):
    project = six_turns(lab)
    session = recorded(lab, project)

    def change(line):
        if line["event_type"] == "tool_call" and line["turn"] == 2:
            line["output"] = line["output"].replace("number 2", "number Z")
    edit_trace(session, change)

    first = diverges(project, part="message", turn=3, cause="result of turn 2 call 0 (echo)")

    assert first["pointer"].endswith("/text") and "number Z" in first["now"]


@pytest.mark.parametrize("change, part, pointer, cause", [
    (lambda m: m["inference"].update(max_tokens=1000), "request", "/max_tokens", "manifest key"),
    (lambda m: m["inference"]["driver"]["config"]["steps"].append({"text": "more"}), "request", "/driver_config/steps/6",
     "manifest"),
    (lambda m: m["inference"].update(model="other"), "request", "/model", "manifest key model"),
    (lambda m: m["artifacts"].pop(), "system", "", "local/echo is not there any more"),
])
def test_replay_what_the_manifest_says_otherwise_is_named(lab, change, part, pointer, cause):
    project = six_turns(lab)
    recorded(lab, project)
    edit_manifest(project, change)

    first = diverges(project, part=part, cause=cause)

    assert first["pointer"].startswith(pointer)


def test_replay_26_another_version_of_mur_is_named_with_both(lab):
    project = six_turns(lab)
    session = recorded(lab, project)
    line = session.trace.all("inference")[0]
    system = (session.records / "blobs" / line["system_sha"]).read_bytes()
    sha = put_blob(session, system.replace(b"[Capsule]", b"[capsule]"))

    def older(one):
        if one["event_type"] == "session_start":
            one["mur_version"] = "0.0.9"
        if one.get("system_sha"):
            one["system_sha"] = sha
    edit_trace(session, older)

    first = diverges(project, part="system", cause="mur version: 0.0.9 -> 0.1.0")

    assert first["offset"] == 1


def test_replay_tasks_from_the_door_and_their_conversation(lab):
    project = six_turns(lab, lifecycle={**SLEEPER, "conversation": "threaded"})
    running = project.start()
    door = Door(running)
    for text in ("one", "two"):
        task = door.send(text, contextId="ctx-a")
        assert "COMPLETED" in str(task), task
    running.signal(signal.SIGTERM)
    running.result()

    report = same(project, session=running.session_id)

    assert report["served"]["tasks"] == 2
    starts = lab.session(report["session_id"]).trace.all("task_start")
    assert [line["source"] for line in starts] == ["a2a", "a2a"] and starts[0]["trust"] == "untrusted"


def test_replay_a_running_session_is_refused_and_until_takes_what_is_finished(lab):
    project = six_turns(lab, lifecycle=SLEEPER)
    running = project.start()
    door = Door(running)
    door.send("one")
    session = lab.session(running.session_id)
    eventually(lambda: session.trace.all("task_end"), 20)

    project.mur("replay", session.id).failed("E-RPL-005")
    report = replay(project, "--until", "3", session=session)

    assert [turn["turn"] for turn in report["turns"]] == [0, 1, 2] and report["verdict"] in ("same", "incomplete")
    running.signal(signal.SIGTERM)
    running.result()


def test_replay_an_artifact_in_no_store_is_named(lab):
    project = six_turns(lab)
    recorded(lab, project)
    for store in lab.murmur_home.glob("artifacts/local/echo"):
        shutil.rmtree(store)

    result = project.mur("replay").failed("E-RPL-008")

    assert "local/echo" in result.stderr


def test_replay_the_manifest_is_gone_and_the_recorded_one_runs(lab):
    project = six_turns(lab)
    session = recorded(lab, project)
    shutil.move(project / "murmur.yaml", project / "elsewhere.yaml")

    same(project, session=session)


def test_replay_a_session_that_was_cancelled_is_cancelled_again(lab):
    model = lab.model_server()
    project = provider_agent(lab, model, lifecycle=SLEEPER)
    gate = threading.Event()
    model.script(answer("late", hold=gate))
    running = project.start(env={"TEST_KEY": "k"})
    door = Door(running)
    task = door.send_at_once("go")["id"]
    eventually(lambda: model.requests, 20)
    door.call("CancelTask", {"id": task})
    eventually(lambda: lab.session(running.session_id).trace.all("task_end"), 20)
    running.signal(signal.SIGTERM)
    running.result()
    gate.set()

    report = same(project, session=running.session_id)

    assert lab.session(report["session_id"]).trace.one("task_end")["exit_status"] == "canceled"


def test_replay_25_fifty_turns_are_served_without_waiting_for_the_model(lab):
    tool = lab.publish("echo", own_component("echo"), **ECHO)
    steps = [{**step, "delay_ms": 60} for step in [*[echo_call(f"number {n}") for n in range(49)], {"text": "done"}]]
    project = lab.agent(steps=steps, tools=[tool], trace=CONTENT)
    began = time.monotonic()
    session = recorded(lab, project)
    took = time.monotonic() - began
    began = time.monotonic()

    report = same(project, session=session)

    assert len(report["turns"]) == 50 and took >= 3
    assert time.monotonic() - began < took, "nobody waits for what the model took then"


def test_replay_25_a_trace_of_two_hundred_megabytes_is_read_in_little_memory(lab):
    project = six_turns(lab)
    session = recorded(lab, project)
    path = session.records / "trace.jsonl"
    first, *rest = path.read_text().splitlines(keepends=True)
    long = json.dumps({"event_type": "harness_note", "event_id": "evt_0", "session_id": session.id, "text": "x" * (1 << 20)}) + "\n"
    with path.open("w") as trace:
        trace.write(first)
        for _ in range(200):
            trace.write(long)
        trace.writelines(rest)

    result = subprocess.run([lab.mur_path, "replay", session.id, "--can"], cwd=project.directory, env=lab.environment(None),
                            capture_output=True, text=True, timeout=120,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (64 << 20, 64 << 20)))

    assert result.returncode == 0 and "served         yes" in result.stdout, result.stderr


def test_replay_another_machine_s_record_is_warned_of(lab):
    project = six_turns(lab)
    session = recorded(lab, project)
    edit_trace(session, lambda line: line.update(arch="pdp11") if line["event_type"] == "session_start" else None)

    result = project.mur("replay", session.id).ok()

    assert "W-RPL-001" in result.stderr and "pdp11" in result.stderr and "verdict: same" in result.stdout


def kill_who_opens_a_socket():
    """From here on this process is killed by the kernel when it opens an IPv4 or an IPv6 socket."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 41, "aarch64": 198}[platform.machine()]
    allow, kill = 0x7FFF0000, 0x80000000
    program = [(0x20, 0, 0, 0), (0x15, 0, 4, number), (0x20, 0, 0, 16), (0x15, 1, 0, socket.AF_INET),
               (0x15, 0, 1, socket.AF_INET6), (0x06, 0, 0, kill), (0x06, 0, 0, allow)]
    code = b"".join(struct.pack("HBBI", *line) for line in program)
    kept = ctypes.create_string_buffer(code, len(code))
    filter_program = struct.pack("HxxxxxxP", len(program), ctypes.addressof(kept))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, filter_program, 0, 0) != 0:
        os._exit(99)


def test_replay_opens_no_socket_or_the_kernel_would_kill_it(lab):
    project = six_turns(lab)
    session = recorded(lab, project)

    def under_the_filter(*argv):
        return subprocess.run(argv, cwd=project.directory, env=lab.environment(None), capture_output=True, text=True, timeout=60,
                              preexec_fn=kill_who_opens_a_socket)

    probe = under_the_filter(sys.executable, "-c", "import socket; socket.socket()")
    assert probe.returncode == -signal.SIGSYS, "the filter holds"

    result = under_the_filter(lab.mur_path, "replay", session.id)

    assert result.returncode == 0 and "verdict: same" in result.stdout, result.stderr

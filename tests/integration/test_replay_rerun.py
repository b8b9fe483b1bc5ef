# SPDX-License-Identifier: Apache-2.0
#
# trace.capture: replay, and tools that run again on what they were given then: files, clocks, random numbers, variables,
# answers from the network, replies of people.

import json
import shutil
import signal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import threading

import pytest

from tests.support.commands import command_agent, run_commands
from tests.support.door_client import SLEEPER, Door
from tests.support.fixtures import own_component
from tests.support.hooks import Hook
from tests.support.model_server import answer
from tests.support.polling import eventually
from tests.support.replays import FULL, diverges, edit_manifest, replay, same, tree_digest

PROBE = {"input_schema": {"type": "object", "properties": {"do": {"type": "string"}}}}


def do(*lines):
    return {"tool_calls": [{"name": "tool-probe", "input": {"do": "\n".join(lines)}}]}


def probing(lab, steps, trace=FULL, tool=None, **more):
    tool = tool or lab.publish("tool-probe", own_component("tool-probe"), **PROBE)
    return lab.agent(steps=[*steps, {"text": "done"}], tools=[tool], trace=trace, **more)


def recorded(lab, project, *arguments, **how):
    (project / "work").mkdir(exist_ok=True)
    return lab.session(project.run("--task", "go", "--workdir", project / "work", *arguments, **how).ok())


def rerun(project, *arguments, expect="same", **how):
    return replay(project, "--workdir", project / "work", "--tools", "rerun", *arguments, expect=expect, **how)


def tape(session):
    return [json.loads(line) for line in (session.records / "replay.jsonl").read_text().splitlines()]


def test_replay_06_clock_random_numbers_variables_and_folders_come_again(lab):
    project = probing(lab, [do("time", "random 16", "env", "order ."), do("time", "random 16", "sleep 30", "list .")],
                      capabilities={"env": {"allow": ["PLACE"]}})
    (project / "work").mkdir()
    for name in ["zebra", "ape", "m 1", "Über"]:
        (project / "work" / name).write_text(name)
    session = recorded(lab, project, env={"PLACE": "berlin"})
    outputs = [line["output"] for line in session.trace.all("tool_call")]
    assert "PLACE=berlin" in outputs[0] and session.id in outputs[0]
    for name in ["zebra", "ape"]:
        (project / "work" / name).unlink()

    report = rerun(project, env={"PLACE": "rome"})

    again = lab.session(report["session_id"])
    assert [line["output"] for line in again.trace.all("tool_call")] == outputs
    assert report["not_promised"] == [] and report["network_attempts"] == 0
    assert tape(session)[-1]["kind"] == "end" and (session.records / "replay.jsonl").stat().st_mode & 0o777 == 0o600
    third = rerun(project, session=report["session_id"])
    assert third["replay_of"] == report["session_id"]


class Pieces(BaseHTTPRequestHandler):
    """Answers in three pieces, each its own chunk."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.send_header("x-kind", "pieces")
        self.end_headers()
        for piece in [b"first ", b"second ", b"third"]:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    do_POST = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture
def pieces():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pieces)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_replay_07_a_tool_is_given_the_same_pieces_with_the_server_gone(lab, pieces):
    url = f"http://127.0.0.1:{pieces.server_address[1]}/x"
    project = probing(lab, [do(f"fetch {url}", "fetch http://127.0.0.1:9/closed", "fetch http://not-granted.example/")],
                      capabilities={"network": {"allow": [url.rsplit("/", 1)[0], "http://127.0.0.1:9"]}})
    session = recorded(lab, project)
    pieces.shutdown()
    pieces.server_close()
    http = [line for line in tape(session) if line["kind"] == "http" and line["place"].startswith("0/0/0/")]
    assert len(http) == 3 and sum(http[0]["chunks"]) == len("first second third") and http[2]["refused"]

    report = rerun(project)

    assert report["network_attempts"] == 0
    assert "first second third" in lab.session(report["session_id"]).trace.one("tool_call")["output"]


def test_replay_07_another_request_is_the_first_difference(lab, pieces):
    host = f"http://127.0.0.1:{pieces.server_address[1]}"
    project = probing(lab, [do("read where"), do(f"fetch {host}/x")], capabilities={"network": {"allow": [host]}})
    session = recorded(lab, project)
    path = session.records / "replay.jsonl"
    lines = path.read_text().splitlines()
    lines[-2:] = [line.replace("/x", "/y") for line in lines[-2:] if '"end"' not in line]
    path.write_text("\n".join(line.replace(f"{host}/x", f"{host}/y") for line in lines) + "\n")

    first = rerun(project, expect="diverged")["first"]

    assert first["part"] == "http" and first["turn"] == 1 and first["call"] == 0
    assert "/y" in first["recorded"] and "/x" in first["now"]


def test_replay_08_a_changed_constant_of_a_tool_is_found_at_its_call(lab):
    tool = lab.publish("tool-probe", own_component("tool-probe"), **PROBE)
    project = probing(lab, [do("say one"), do("say two"), do("say three")], tool=tool)
    recorded(lab, project)
    changed = own_component("tool-probe").read_bytes().replace(b"log: %s\n", b"LOG: %s\n")
    republish(lab, changed)
    assert rerun(project)["first"] is None  # the constant is not reached
    project = probing(lab, [do("say one"), do("log"), do("say three")], tool=tool, name="other")
    recorded(lab, project)
    republish(lab, own_component("tool-probe").read_bytes())

    first = rerun(project, expect="diverged")["first"]

    assert (first["part"], first["turn"], first["call"]) == ("tool_result", 1, 0)
    assert "LOG" in first["recorded"] and "artifact local/tool-probe: digest" in first["cause"]
    assert rerun(project, "--keep-going", expect="diverged")["differences"] == 1


def republish(lab, wasm):
    shutil.rmtree(lab.directory / "packages" / "tool-probe-0.1.0")
    shutil.rmtree(lab.murmur_home / "artifacts/local/tool-probe/0.1.0")
    path = lab.directory / "tool-probe.wasm"
    path.write_bytes(wasm)
    lab.publish("tool-probe", path, **PROBE)


def test_replay_files_a_tool_left_are_compared_and_put_back(lab):
    project = probing(lab, [do("append log one"), do("append log two", "mkdir d", "write d/x 1"), do("read log", "list d")])
    (project / "work").mkdir()
    (project / "work/log").write_text("zero ")
    session = recorded(lab, project)
    assert (project / "work/log").read_text() == "zero onetwo"
    trees = [line for line in tape(session) if line["kind"] == "tree"]
    assert [line.get("turn") for line in trees] == [None, 0, 1]
    before = tree_digest(project / "work")

    report = rerun(project)

    assert tree_digest(project / "work") == before
    assert (lab.session(report["session_id"]).records / "work/log").read_text() == "zero onetwo"


def test_replay_commands_run_again_without_a_network_and_are_not_promised(lab):
    project = command_agent(lab, ["cat notes; echo more >> notes", "date +%N; cat notes"], ("bash", "cat", "date"), trace=FULL)
    (project / "work/notes").write_text("some\n")
    run_commands(project)
    before = tree_digest(project / "work")

    report = replay(project, "--workdir", project / "work", "--tools", "rerun", expect="same")

    assert tree_digest(project / "work") == before
    assert len(report["not_promised"]) == 1 and "turn 1" in report["not_promised"][0]


def ask_agent(lab, **more):
    return probing(lab, [do("ask which colour?"), do("say next")], lifecycle=SLEEPER, **more)


def answered(lab, project, reply="green"):
    (project / "work").mkdir(exist_ok=True)
    running = project.start("--workdir", project / "work")
    door = Door(running)
    task = door.send("go")
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    door.send(reply, taskId=task["id"])
    door.wait_for(task["id"], "COMPLETED")
    running.signal()
    running.result(20)
    return lab.session(running)


def test_replay_12_a_reply_of_a_person_is_given_again(lab):
    project = ask_agent(lab)
    session = answered(lab, project)
    assert "answer: green" in session.trace.all("tool_call")[0]["output"]
    asked = [line for line in tape(session) if line["kind"] == "input"]
    assert [(line["prompt_text"], line["reply_text"]) for line in asked] == [("which colour?", "green")]

    report = rerun(project)

    assert "answer: green" in lab.session(report["session_id"]).trace.all("tool_call")[0]["output"]


def test_replay_12_nobody_is_there_to_answer_what_the_record_does_not_hold(lab):
    project = ask_agent(lab)
    session = answered(lab, project)
    path = session.records / "replay.jsonl"
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True)
                            if '"kind":"input"' not in line and '"kind":"end"' not in line))

    result = project.mur("replay", "--workdir", project / "work", "--tools", "rerun")

    assert "E-RPL-006" in result.stderr and "which colour?" in result.stderr and result.code == 1


def test_replay_14_killed_while_it_records_it_replays_its_whole_turns(lab):
    project = probing(lab, [do("time", "append log 1"), do("time", "append log 2"), do("time", "spin")])
    (project / "work").mkdir()
    running = project.start("--task", "go", "--workdir", project / "work")
    session = lab.session(running)
    eventually(lambda: len(session.trace.all("inference")) == 3, within_s=60)
    running.signal(signal.SIGKILL)
    running.result(20)

    report = rerun(project, expect="incomplete", session=session)

    assert [turn["turn"] for turn in report["turns"] if turn["calls"]] == [0, 1, 2]
    assert all(turn["same"] for turn in report["turns"]) and report["missing"]
    assert replay(project, "--workdir", project / "work", session=session)["verdict"] == "incomplete"


@pytest.mark.parametrize("harm", ["line", "order", "format", "after", "blob", "tree"])
def test_replay_15_an_altered_tape_stops_before_anything(lab, harm):
    project = probing(lab, [do("append log " + "x" * 2000), do("time")])
    session = recorded(lab, project)
    path = session.records / "replay.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    if harm == "line":
        lines[1] = lines[1].replace('"files":', '"files":1')
    elif harm == "order":
        lines[1], lines[2] = lines[2], lines[1]
    elif harm == "format":
        lines[0] = lines[0].replace('"format":1', '"format":7')
    elif harm == "after":
        lines.append('{"kind":"guest"}\n')
    path.write_text("".join(lines))
    trees = [json.loads(line) for line in lines if '"kind":"tree"' in line]
    if harm == "blob":
        next(path for path in (session.records / "blobs").iterdir() if path.stat().st_size == 2000).unlink()
    elif harm == "tree":
        (session.records / "blobs" / trees[-1]["sha256"]).write_text("f 644 3 /etc/passwd ../../x\n")
    before = lab.records

    result = project.mur("replay", "--workdir", project / "work", session.id).failed("E-RPL-004")

    assert lab.records == before and ("format 7" in result.stderr) == (harm == "format")


def test_replay_16_no_key_is_in_a_full_record(lab, pieces):
    model = lab.model_server()
    host = f"http://127.0.0.1:{pieces.server_address[1]}"
    tool = lab.publish("tool-probe", own_component("tool-probe"), input_schema={"type": "object"},
                       upstream_auth={"header": "x-tool-key", "value": "Key {key}"})
    project = lab.agent(driver="std/driver-anthropic@0.1.0", gateway={"endpoint": model.url, "api_key": "${TEST_KEY}"},
                        inference={"model": "claude-test"}, trace=FULL, context={"max_tokens": 100000},
                        tools=[{"name": tool.split("@")[0], "version": "0.1.0", "runtime": "tool",
                                "gateway": {"endpoint": host, "api_key": "${TOOL_KEY}"}}])
    from tests.support.model_server import call
    model.script(call("tool-probe", {"do": "env\nfetch http://gateway.invalid/x"}), answer("hello"))
    session = recorded(lab, project, env={"TEST_KEY": "canary-5521", "TOOL_KEY": "canary-7788"})
    model.close()

    report = rerun(project)

    for records in (session.records, lab.session(report["session_id"]).records):
        for path in records.rglob("*"):
            if path.is_file():
                data = path.read_bytes()
                assert b"canary-5521" not in data and b"canary-7788" not in data, path


def test_replay_18_a_hook_that_decides_by_the_clock_decides_so_again(lab):
    hook = Hook(lab, "clock", on={"on-task-start": {"answer": "seed-context", "clock": True, "messages": [
        {"role": "user", "content": "It is {{asked}}."}]}})
    project = probing(lab, [do("say x")], context={"max_tokens": 50000})
    edit_manifest(project, lambda m: m["artifacts"].append(hook.entry))
    session = recorded(lab, project)
    assert session.trace.one("context_seed")["outcome"] == "seeded"

    same(project, "--workdir", project / "work")
    rerun(project)


def test_replay_24_a_folder_above_its_bounds_is_left_out_and_said(lab):
    project = probing(lab, [do("append small x"), do("read small")],
                      trace={"capture": "replay", "snapshot": {"max_bytes": 5000, "max_file": 3000, "exclude": ["*.tmp"]}})
    (project / "work").mkdir()
    (project / "work/big").write_bytes(b"x" * 3001)
    (project / "work/a.tmp").write_text("y")
    session = recorded(lab, project)
    tree = next(line for line in tape(session) if line["kind"] == "tree")
    assert sorted(tree["left_out"]) == ["a.tmp", "big"] and tree["files"] == 0

    report = rerun(project)

    assert sorted(report["left_out"]) == ["a.tmp", "big"]
    text = project.mur("replay", "--workdir", project / "work", session.id).ok().stdout
    assert "left out of the record: 2 entries" in text


def test_replay_rerun_needs_a_record_that_holds_what_tools_were_given(lab):
    project = probing(lab, [do("say x")], trace={"capture": "content"})
    recorded(lab, project)

    result = project.mur("replay", "--workdir", project / "work", "--tools", "rerun").failed("E-RPL-001")

    assert "capture: replay" in result.stderr

# SPDX-License-Identifier: Apache-2.0
#
# Records as a session leaves them and `mur trace` reads them back: captures, hashes, bodies, ledgers.

import hashlib
import json
import os
import subprocess

import pytest

from tests.support.door_client import SLEEPER, Door, message
from tests.support.fixtures import own_component
from tests.support.lab import SLOWER
from tests.support.model_server import answer
from tests.support.polling import eventually


def echo_tool(lab):
    return lab.publish("echo", own_component("echo"), input_schema={"type": "object"})


@pytest.mark.parametrize("value", ["bogus", "Content", "7"])
def test_records_04_an_unknown_capture_level_is_refused_before_anything_exists(lab, value):
    project = lab.agent(steps=[{"text": "x"}], trace={"capture": value})

    result = project.run("--task", "go").failed("E-MAN-003")

    assert "trace.capture" in result.stderr and lab.records == [] and lab.runtime_directories == []
    assert not (project / "workdir").exists() and not (project / "murmur.lock").exists()


def test_records_05_a_body_is_the_bytes_that_were_hashed(lab):
    project = lab.agent(steps=[{"text": "x"}], trace={"capture": "content"}, inference={"system_prompt": "Be exact."})
    session = lab.session(project.run("--task", "go").ok())
    line = session.trace.one("inference")

    for part, sha in (("system", line["system_sha"]), ("tools", line["tools_sha"]), ("response", line["response_sha"]),
                      ("message:0", line["message_shas"][0])):
        shown = subprocess.run([lab.mur_path, "trace", "show", "--body", part, "--turn", "0"], cwd=project.directory,
                               env=lab.environment(), capture_output=True, check=True)
        assert hashlib.sha256(shown.stdout).hexdigest() == sha
    system = project.mur("trace", "show", "--body", line["system_sha"][:8]).ok().stdout
    assert system.startswith("[Capsule]\n") and system.endswith("Be exact.")


@pytest.mark.parametrize("capture", ["meta", "none"])
def test_records_05_without_content_there_is_no_body_to_show(lab, capture):
    project = lab.agent(steps=[{"text": "x"}], trace={"capture": capture})
    session = lab.session(project.run("--task", "go").ok())

    assert ("system_sha" in session.trace.one("inference")) == (capture == "meta")
    assert not (session.records / "blobs").exists()
    shown = project.mur("trace", "show", "--body", "system", "--turn", "0").failed("E-TRC-001")
    assert shown.stdout == "" and ("no body" if capture == "meta" else "no hash") in shown.stderr


@pytest.mark.parametrize("arguments", [
    ("--body", "system"), ("--body", "system", "--turn", "9"), ("--body", "message:5", "--turn", "0"),
    ("--body", "message:x", "--turn", "0"), ("--body", "nothing", "--turn", "0"), ("--turn", "0"), ("--body", "ABCDEF0123"),
    ("--body", "abc"), ("--body", "0" * 64)])
def test_records_body_selectors_that_name_nothing(lab, arguments):
    project = lab.agent(steps=[{"text": "x"}], trace={"capture": "content"})
    project.run("--task", "go").ok()

    assert project.mur("trace", "show", *arguments).failed("E-TRC-001").stdout == ""


def test_records_06_two_runs_on_one_input_hash_alike(lab):
    echo = echo_tool(lab)
    project = lab.agent(tools=[echo], steps=[{"text": "x"}], inference={"system_prompt": "Be exact."},
                        capabilities={"shell": {"allow": ["sh", "ls"]}})
    lines = [lab.session(project.run("--task", "the same").ok()).trace.one("inference") for _ in range(2)]

    assert [lines[0][key] for key in ("system_sha", "tools_sha")] == [lines[1][key] for key in ("system_sha", "tools_sha")]
    assert lines[0]["message_shas"][0] == lines[1]["message_shas"][0]
    assert lines[0]["message_ids"] != lines[1]["message_ids"]


@pytest.mark.parametrize("planted", ["link", "file"])
def test_records_07_planted_blobs_are_refused_and_the_task_fails(lab, model, planted):
    project = lab.agent(driver=lab.publish("driver-anthropic", own_component("driver-anthropic"), "driver",
                                           upstream_auth={"header": "x-api-key", "value": "{key}"}),
                        gateway={"endpoint": model.url, "keyless": True}, trace={"capture": "content"})
    outside = lab.directory / "outside"
    outside.mkdir()
    model.script(answer("x", delay_s=1.5))
    running = project.start("--task", "go", "--json")
    session = lab.session(running)
    blobs = session.records / "blobs"
    eventually(lambda: model.requests, 20 * SLOWER, "the provider was asked")
    if blobs.exists():
        for path in blobs.iterdir():
            path.unlink()
        blobs.rmdir()
    if planted == "link":
        blobs.symlink_to(outside)
    else:
        blobs.write_text("mine")

    result = running.result().failed("E-RUN-050")

    trace = session.trace
    refused = trace.one("workdir_path_refused")
    assert refused["path"].startswith(str(session.records)) and refused["refused_at"] == str(blobs)
    assert refused["reason"] == ("symlink" if planted == "link" else "not_a_regular_file"), result
    assert trace.one("task_failed")["cause"] == "workdir_path_refused" and "inference" not in trace.types
    assert trace.one("task_end")["exit_status"] == "failed" and list(outside.iterdir()) == []


def test_records_15_redundant_reads(lab):
    echo = echo_tool(lab)  # says state_effect read
    probe = lab.publish("result-path", own_component("result-path"), input_schema={"type": "object"})  # says nothing
    read, other = {"name": "echo", "input": {"path": "a.txt"}}, {"name": "echo", "input": {"File": "b.txt"}}
    undeclared = {"name": "result-path", "input": {"path": "a.txt"}}
    for name, calls, count in (("twice", [read, read], 1), ("undeclared", [read, undeclared, read], 0),
                               ("others", [read, other, read, other], 2)):
        project = lab.agent(name=name, tools=[echo, probe], steps=[*({"tool_calls": [call]} for call in calls), {"text": "done"}])
        project.run("--task", "go").ok()
        shown = project.mur("trace", "show").ok().stdout
        section = shown.split("── Redundant calls ")[1].split("\n")
        assert section[1] == f"count:      {count}", name
        assert "redundant calls" in project.mur("trace", "report").ok().stdout


@pytest.mark.parametrize("effects, redundant", [
    (["read", "read"], 1), (["read", "mutate", "read"], 0), (["read", None, "read"], 0)])
def test_records_15_what_a_call_in_between_does_decides_what_is_redundant(lab, effects, redundant):
    probe = lab.publish("probe", own_component("tool-probe"), input_schema={"type": "object"})
    calls = [{"name": "probe", "id": f"c{n}", "input": {"do": "\n".join(
        ([f"meta state_effect {effect}"] if effect else []) + ["meta resource_id thing"])}} for n, effect in enumerate(effects)]
    project = lab.agent(tools=[probe], steps=[{"tool_calls": calls}, {"text": "done"}])
    session = lab.session(project.run("--task", "go").ok())
    assert [line.get("state_effect") for line in session.trace.all("tool_call")] == effects

    told = project.mur("trace", "report").ok().stdout

    assert ("Redundant calls: 1" in told) == (redundant == 1), told


def test_records_20_what_was_served_after_the_end_is_read_with_the_rest(lab):
    project = lab.agent(steps=[{"text": "x"}], lifecycle=SLEEPER, exports={"files": {"root": ".", "mode": "read-only"}})
    (project / "work").mkdir()
    project.write("work/a.txt", "hello")
    running = project.start("--workdir", project / "work")
    door = Door(running)
    door.call("SendMessage", message())
    assert door.get("/resources/files/a.txt").body == b"hello"
    running.signal()
    running.result()

    session = lab.session(running)
    lines = session.trace.lines
    served, = [line for line in lines if '"event_type":"resource_read"' in line]
    lines.remove(served)
    (session.records / "trace.jsonl").write_text("\n".join([*lines, served]) + "\n")
    shown = project.mur("trace", "show", "--workdir", project / "work").ok().stdout
    assert "read:       1 ok" in shown and "ended without" not in shown
    for command in ("steps", "report"):
        project.mur("trace", command, "--workdir", project / "work").ok()


def test_records_27_two_processes_share_the_machines_ceiling(lab, model):
    driver = lab.publish("driver-anthropic", own_component("driver-anthropic"), "driver",
                         upstream_auth={"header": "x-api-key", "value": "{key}"})
    model.script(repeat=answer("x", usage={"input_tokens": 300, "output_tokens": 100}, delay_s=0.5))
    projects = [lab.agent(name=f"agent{n}", driver=driver, gateway={"endpoint": model.url, "keyless": True},
                          inference={"max_tokens": 400}) for n in range(2)]
    (lab.murmur_home).mkdir(mode=0o700, exist_ok=True)
    (lab.murmur_home / "config.yaml").write_text("spend: {machine_tokens_per_day: 1000}\n")
    running = [project.start("--task", "go") for project in projects]
    results = [one.result() for one in running]

    used = sum(entry["input_tokens"] + entry["output_tokens"]
               for path in (lab.murmur_home / "spend").iterdir() for entry in map(json.loads, path.read_text().splitlines()))
    assert used == 400 * sum(result.code == 0 for result in results) and used <= 1000
    refused = projects[0].run("--task", "again")
    refused = projects[1].run("--task", "again") if refused.code == 0 else refused
    assert refused.status == "spend_ceiling_reached"
    line = lab.session(refused).trace.one("spend_ceiling_reached")
    assert (line["limit"], line["ceiling"]) == ("machine", 1000) and line["used"] + line["requested"] > 1000
    spend, = (lab.murmur_home / "spend").iterdir()
    assert os.stat(spend).st_mode & 0o777 == 0o600 and os.stat(spend.parent).st_mode & 0o777 == 0o700


def test_records_27_without_a_usable_ledger_nothing_is_staged(lab):
    lab.murmur_home.mkdir(exist_ok=True, mode=0o700)
    (lab.murmur_home / "config.yaml").write_text("spend: {machine_tokens_per_day: 1000}\n")
    (lab.murmur_home / "spend").write_text("in the way")
    lab.agent(steps=[{"text": "x"}]).run("--task", "x").failed("E-RUN-026")
    assert lab.records == []


def test_records_a_session_ceiling_alone_keeps_no_ledger(lab):
    lab.agent(steps=[{"text": "x"}], inference={"max_session_tokens": 100000}).run("--task", "go").ok()
    assert not (lab.murmur_home / "spend").exists()


def test_session_07_a_reader_that_leaves_after_the_first_line_costs_nothing(lab):
    project = lab.agent(steps=[{"text": "the answer", "delay_ms": 500}])
    read_end, write_end = os.pipe()
    running = project.start("--task", "go", "--json", stdout=write_end)
    os.close(write_end)
    with os.fdopen(read_end) as lines:
        ready = json.loads(lines.readline())

    running.result().ok()
    session = lab.session(ready["session_id"])
    assert session.trace.one("session_end")["exit_status"] == "ok" and session.result_text == "the answer"


def test_session_08_a_tampered_artifact_is_refused_before_there_is_a_session(lab):
    echo = echo_tool(lab)
    project = lab.agent(tools=[echo], steps=[{"text": "x"}])
    project.run("--task", "go").ok()
    lock = project / "murmur.lock"
    sha = next(word for word in lock.read_text().split() if len(word.strip('"')) == 64).strip('"')
    lock.write_text(lock.read_text().replace(sha, "0" * 64))
    before = (lab.records, project.session_directories)

    project.run("--task", "go").failed("E-REG-002")

    assert (lab.records, project.session_directories) == before

# SPDX-License-Identifier: Apache-2.0
#
# Sessions of a harness run again with no program there: its lines are served, what is made of them is compared.

import json
import shutil
import signal
from textwrap import dedent

import pytest

from tests.integration.test_harness_asks import ASKS, RUN, permission
from tests.integration.test_harness_gateway import KEY, gateway_project
from tests.integration.test_harness import counting, used
from tests.integration.test_replay_rerun import PROBE, do, tape
from tests.support.acp_agent import acp_project
from tests.support.agent_provider import AgentProvider
from tests.support.approvals import Asker
from tests.support.door_client import SLEEPER, Door
from tests.support.fixtures import own_component
from tests.support.harness import harness_project
from tests.support.polling import eventually
from tests.support.replays import CONTENT, FULL, edit_manifest, replay

ANSWER = """
    started()
    say("text", text="looking at " + os.getcwd())
    say("usage", input=10, output=4)
    say("tool-call", id="c1", name="own", input={"command": ["ls", "-l"]})
    say("tool-result", id="c1", output="two files", is_error=False)
    said = use("tool-probe", do="say hello")
    say("text", text="the tool said " + said[0])
    open("left", "w").write(str(time.time()))
    say("usage", input=30, output=9)
    say("turn-end", text="done")
"""
DENY = {"name": "std/hook-deny", "version": "0.1.0", "runtime": "hook",
        "config": {"rules": [{"tool": "tool-probe", "input": {"do": "say hello*"}, "reason": "by hand"}]}}


def recorded(lab, body=ANSWER, trace=FULL, code=0, env=None, **how):
    tool = lab.publish("tool-probe", own_component("tool-probe"), **PROBE)
    project = harness_project(lab, dedent(body), tools=[tool], trace=trace, **how)
    (project / "work").mkdir()
    result = project.run("--task", "do X", "--workdir", project / "work", env=env)
    assert result.code == code, str(result)
    return project, lab.session(result)


def gone(lab):
    """The program that ran is on this machine no more."""
    (lab.directory / "lab-harness").unlink(missing_ok=True)


def again(project, session, *arguments, **how):
    return replay(project, *arguments, "--workdir", project / "work", session=session, **how)


def same(lab, project, session):
    gone(lab)
    report = again(project, session, expect="same")
    assert report["first"] is None and report["live_calls"] == 0 and report["network_attempts"] == 0
    return report


def test_replay_harness_of_a_resumed_thread_counts_what_it_added_then(lab):
    project = counting(lab, trace=FULL)
    for task in ("one", "two"):
        session = lab.session(project.run("--task", task, "--context", "c1", "--workdir", project / "work").ok())
    assert used(session) == [(100, 100)]
    report = same(lab, project, session)
    assert used(lab.session(report["session_id"])) == [(100, 100)]


def test_replay_harness_is_served_by_its_lines(lab):
    project, session = recorded(lab)

    report = same(lab, project, session)

    assert [turn["decision"] for turn in report["turns"]] == ["tool_call", "end_turn"]
    assert [turn["calls"] for turn in report["turns"]] == [["own"], ["tool-probe"]]
    assert lab.session(report["session_id"]).result_text == session.result_text == "done"
    assert again(project, report["session_id"])["verdict"] == "same", "a replay of a replay"


ENDS = {
    "exit": ('started()\nsys.stderr.write("no such model")\nsys.exit(3)', {}, 1),
    "signal": ("started()\nos.kill(os.getpid(), 9)", {}, 1),
    "refused": ('started()\nsay("turn-failed", kind="quota", message="come back")', {}, 1),
    "turns": ('started()\nfor n in range(9):\n    say("text", text="x")\n    say("tool-call", id=str(n), name="own", input={})\n'
              '    say("tool-result", id=str(n), output="y", is_error=False)\ntime.sleep(60)', {"inference": {"max_turns": 2}}, 1),
    "spent": ('started()\nsay("text", text="x")\nsay("usage", input=900, output=200)\nsay("turn-end", text="late")\n',
              {"inference": {"max_session_tokens": 1000}}, 1),
    "silent": ("started()\ntime.sleep(60)", {"env": {"MURMUR_HARNESS_INACTIVITY_SECS": "1"}}, 1),
}


@pytest.mark.parametrize("name", ENDS)
def test_replay_harness_ends_as_it_ended(lab, name):
    body, how, code = ENDS[name]
    project, session = recorded(lab, body, code=code, **how)
    same(lab, project, session)


def test_replay_harness_cancelled_where_it_was_and_its_sessions_go_on(lab):
    body = """
        started()
        if "hold on" in request["task"]:
            say("text", text="waiting")
            keep("seen", 1)
            time.sleep(60)
        say("text", text=request["mode"])
        say("turn-end", text=request["mode"])
    """
    project = harness_project(lab, dedent(body), trace=FULL, lifecycle={**SLEEPER, "conversation": "threaded"}, driver="harness-signal")
    (project / "work").mkdir()
    running = project.start("--workdir", project / "work")
    door = Door(running)
    for text in ("one", "two"):
        door.wait_for(door.send(text, contextId="ctx-a")["id"], "COMPLETED")
    task = door.send_at_once("hold on", contextId="ctx-a")["id"]
    eventually(lambda: list((project / "work").rglob("seen")), 60)
    door.call("CancelTask", {"id": task})
    eventually(lambda: len(lab.session(running).trace.all("task_end")) == 3, 60)
    running.signal(signal.SIGTERM)
    running.result(60)

    report = same(lab, project, lab.session(running))

    assert report["served"]["tasks"] == 3


def test_replay_harness_hears_what_a_person_said_then(lab):
    project = acp_project(lab, ASKS.format(asked=permission(**RUN)), lifecycle=SLEEPER, approvals={"commands": ["ls"]}, trace=FULL)
    asker = Asker.of(lab, project.directory, None, project.start())
    asker.answer(asker.begin(), "no")
    session = lab.session(asker.running.session_id)
    asker.end()

    report = replay(project, session=session, expect="same")

    assert lab.session(report["session_id"]).result_text == session.result_text


def test_replay_harness_with_a_gateway_needs_no_key_and_keeps_none(lab):
    with AgentProvider({"text": "hi"}) as provider:
        project = gateway_project(lab, provider, trace=FULL)
        session = lab.session(project.run("--task", "go", env={"PROVIDER_KEY": KEY}).ok())
    kept = b"".join(path.read_bytes() for path in session.records.rglob("*") if path.is_file())
    assert KEY.encode() not in kept

    replay(project, session=session, expect="same")


def republished(lab, project, session):
    shutil.rmtree(lab.directory / "packages/tool-probe-0.1.0")
    shutil.rmtree(lab.murmur_home / "artifacts/local/tool-probe/0.1.0")
    lab.publish("tool-probe", own_component("tool-probe"), **{**PROBE, "description": "another"})


def altered(lab, project, session):
    path = session.records / "replay.jsonl"
    lines = [line for line in path.read_text().splitlines(keepends=True) if '"kind":"end"' not in line]
    path.write_text("".join(line.replace('two files\\"', 'two filez\\"', 1) if '"kind":"harness_line"' in line else line for line in lines))


MUTATIONS = {
    "prompt": (lambda m: m["inference"].update(system_prompt="Be quick."), "system", {}, "prompt"),
    "configuration": (lambda m: m["inference"]["driver"].update(config={"args": ["-x"]}), "harness_plan", {"line": 0}, "manifest"),
    "a hook that denies": (lambda m: m["artifacts"].append(DENY), "tool_result", {"call": 0}, "hook std/hook-deny"),
    "a tool": (republished, "tools", {}, "artifact local/tool-probe"),
    "a line": (altered, "harness_line", {"line": 5}, "line 5 of the harness"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_replay_harness_mutations_are_found_at_their_line(lab, name):
    change, part, place, cause = MUTATIONS[name]
    project, session = recorded(lab)
    if change in (republished, altered):
        change(lab, project, session)
    else:
        edit_manifest(project, change)

    report = again(project, session)

    first = report["first"]
    assert report["verdict"] == "diverged" and first["part"] == part and cause in first["cause"], first
    assert place.items() <= first.items(), first


def test_replay_14_harness_killed_while_it_records_is_incomplete(lab):
    project, session = recorded(lab)
    path = session.records / "replay.jsonl"
    whole = path.read_bytes().splitlines(keepends=True)
    first = next(i for i, line in enumerate(whole) if b'"kind":"harness"' in line)
    trace = session.records / "trace.jsonl"
    trace.write_text("".join(line for line in trace.read_text().splitlines(keepends=True) if '"session_end"' not in line and '"task_end"' not in line))
    for cut in range(first, len(whole) - 2):
        path.write_bytes(b"".join(whole[:cut]) + whole[cut][:10])
        assert again(project, session)["verdict"] == "incomplete", cut


def test_replay_harness_says_what_a_record_lacks_and_what_cannot_be(lab):
    project, session = recorded(lab, trace=CONTENT)
    result = project.mur("replay", session.id, "--workdir", project / "work")
    assert result.code == 1 and "error[E-RPL-001]" in result.stderr and "capture: replay" in result.stderr

    edit_manifest(project, lambda m: m.update(trace=FULL))
    session = lab.session(project.run("--task", "do X", "--workdir", project / "work").ok())
    for option in (["--tools", "rerun"], ["--from", "0"], ["--each-turn"], ["--model", "live"]):
        result = project.mur("replay", session.id, "--workdir", project / "work", *option)
        assert result.code == 1 and "error[E-RPL-009]" in result.stderr and option[0] in result.stderr
    can = json.loads(project.mur("replay", session.id, "--workdir", project / "work", "--can", "--json").stdout)
    assert can["rerun"] is False and "harness" in can["tasks"][0]["why_not"]

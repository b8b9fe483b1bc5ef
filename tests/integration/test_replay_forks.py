# SPDX-License-Identifier: Apache-2.0
#
# Replays that meet the model again: forks, each turn once more, other models and artifacts; and what was mended of served
# replays on the way: approvals, deadlines, continuations, delegations.

import json

import pytest

from tests.integration.test_replay_rerun import PROBE, do, probing, recorded, rerun, tape
from tests.support.approvals import Asker
from tests.support.commands import call as shell_call

from tests.support.fixtures import own_component
from tests.support.model_server import answer, call
from tests.support.replays import CONTENT, FULL, edit_manifest, replay, same, tree_digest


def script(project, *steps):
    edit_manifest(project, lambda m: m["inference"]["driver"]["config"].update(steps=list(steps)))


def forkable(lab, **more):
    return probing(lab, [do(f"append log {n}", "time") for n in range(5)], **more)


def test_replay_19_a_fork_goes_on_live_on_the_files_of_its_turn(lab):
    project = forkable(lab)
    session = recorded(lab, project)
    before = tree_digest(project / "work")
    script(project, *[{"text": "never"}] * 3, do("read log", "append log NEW"), do("delegate x"), {"text": "another end"})

    report = replay(project, "--workdir", project / "work", "--from", "3", expect="forked")

    again = lab.session(report["session_id"])
    assert [turn["source"] for turn in report["turns"]] == ["record"] * 3 + ["live"] * 3
    outputs = [line["output"] for line in again.trace.all("tool_call")]
    assert outputs[:3] == [line["output"] for line in session.trace.all("tool_call")[:3]]
    assert "\n012\n" in outputs[3] and (again.records / "work/log").read_text() == "012NEW"
    assert report["live_calls"] == 5 and tree_digest(project / "work") == before
    assert again.trace.one("session_start")["replay_of"] == {
        "session_id": session.id, "modes": {"model": "recorded", "tools": "recorded", "hooks": "rerun"},
        "from": {"task": 0, "turn": 3}}
    text = project.mur("replay", session.id, "--workdir", project / "work", "--from", "3").ok().stdout
    assert "it leaves the record before turn 3 of task 0" in text and "verdict: forked" in text and "same       end_turn" not in text
    started = [line for line in tape(again) if line["kind"] == "tree"]
    assert [line["turn"] for line in started if "turn" in line] == [3]


def test_replay_19_a_fork_begins_at_the_first_turn_with_the_files_of_the_task(lab):
    project = forkable(lab)
    (project / "work").mkdir()
    (project / "work/log").write_text("start")
    recorded(lab, project)
    script(project, do("read log"), {"text": "end"})

    report = replay(project, "--workdir", project / "work", "--from", "0", expect="forked")

    assert "\nstart\n" in lab.session(report["session_id"]).trace.one("tool_call")["output"]


def test_replay_20_a_fork_that_cannot_be_is_refused_and_the_turns_that_can_are_named(lab):
    project = forkable(lab)
    session = recorded(lab, project)
    before = lab.records

    result = project.mur("replay", session.id, "--workdir", project / "work", "--from", "9").failed("E-RPL-007")
    assert "past the end" in result.stderr and "0 to 5" in result.stderr
    project.mur("replay", session.id, "--workdir", project / "work", "--from", "0", "--task", "3").failed("E-RPL-007")

    plain = probing(lab, [do("say x")], trace=CONTENT, name="plain")
    recorded(lab, plain)
    before = lab.records
    result = plain.mur("replay", "--workdir", plain / "work", "--from", "0").failed("E-RPL-007")
    assert "trace.capture: replay" in result.stderr and lab.records == before


def test_replay_20_a_background_command_that_may_have_written_stands_in_the_way(lab):
    project = lab.agent(steps=[shell_call("bash", "sleep 30"), {"text": "done"}], trace=FULL,
                        capabilities={"shell": {"allow": ["bash", "sleep"]}}, lifecycle={"shell_grace_secs": 1})
    recorded(lab, project)

    result = project.mur("replay", "--workdir", project / "work", "--from", "1").failed("E-RPL-007")

    assert "background" in result.stderr


def test_replay_21_each_turn_is_asked_once_more_and_the_agreement_told(lab):
    model = lab.model_server()
    tool = lab.publish("tool-probe", own_component("tool-probe"), **PROBE)
    project = lab.agent(driver="std/driver-anthropic@0.1.0", gateway={"endpoint": model.url, "api_key": "sk-x"},
                        inference={"model": "claude-test"}, trace=FULL, context={"max_tokens": 100000}, tools=[tool])
    turns = [call("tool-probe", {"do": f"append log {n}"}, call_id=f"c{n}") for n in range(4)]
    model.script(*turns, answer("the end"))
    session = recorded(lab, project)
    asked = len(model.requests)
    edit_manifest(project, lambda m: m["inference"].update(system_prompt="Another prompt."))
    model.script(turns[0], call("tool-probe", {"do": "append log 7"}, call_id="c9"), turns[2], turns[3], answer("in other words"))
    before = tree_digest(project / "work")

    report = replay(project, "--workdir", project / "work", "--each-turn", expect="live")

    assert report["agreement"] == {"same": 4, "asked": 5}
    assert [turn["same"] for turn in report["turns"]] == [True, False, True, True, True]
    assert '"append log 7"' in report["turns"][1]["now"] and '"append log 1"' in report["turns"][1]["decision"]
    sent = [request.json for request in model.requests[asked:]]
    assert all("Another prompt." in json.dumps(request["system"]) for request in sent)
    assert "append log 1" in json.dumps(sent[2]["messages"]) and "append log 7" not in json.dumps(sent[2]["messages"])
    assert tree_digest(project / "work") == before and session.id == report["replay_of"]
    model.script(*turns, answer("x"))
    text = project.mur("replay", session.id, "--workdir", project / "work", "--each-turn").ok().stdout
    assert "agreement: 5 of 5 turns" in text and "verdict: live" in text


def test_replay_another_model_answers_and_tools_are_served_for_equal_calls(lab):
    model = lab.model_server()
    tool = lab.publish("tool-probe", own_component("tool-probe"), **PROBE)
    project = lab.agent(driver="std/driver-anthropic@0.1.0", gateway={"endpoint": model.url, "api_key": "sk-x"},
                        inference={"model": "claude-test"}, trace=FULL, context={"max_tokens": 100000}, tools=[tool])
    model.script(call("tool-probe", {"do": "random 4"}), answer("the end"))
    session = recorded(lab, project)
    then = session.trace.one("tool_call")["output"]

    model.script(call("tool-probe", {"do": "random 4"}), answer("another end"))
    report = replay(project, "--workdir", project / "work", "--model", "live", "--with-model", "claude-other", expect="live")
    assert lab.session(report["session_id"]).trace.one("tool_call")["output"] == then
    assert model.requests[-1].json["model"] == "claude-other" and report["live_calls"] == 2

    model.script(call("tool-probe", {"do": "random 5"}))
    report = replay(project, "--workdir", project / "work", "--model", "live", expect="diverged")
    assert report["first"]["part"] == "tool_input"


def test_replay_live_tools_say_whether_the_world_still_answers_the_same(lab):
    project = probing(lab, [do("say x"), do("time")])
    recorded(lab, project)

    first = replay(project, "--workdir", project / "work", "--tools", "live", expect="diverged")["first"]

    assert (first["part"], first["turn"]) == ("tool_result", 1)


def test_replay_another_version_of_an_artifact_is_run_instead(lab):
    old = lab.publish("tool-probe", own_component("tool-probe"), **PROBE)
    lab.publish("tool-probe", own_component("tool-probe"), version="0.2.0", description="newer", **PROBE)
    project = probing(lab, [do("say x")], tool=old)
    recorded(lab, project)

    first = replay(project, "--workdir", project / "work", "--with-artifact", "local/tool-probe@0.2.0", expect="diverged")["first"]

    assert first["part"] == "tools" and "newer" in first["now"]
    project.mur("replay", "--workdir", project / "work", "--with-artifact", "local/nothing@1.0.0").failed("E-RPL-008")


def test_replay_11_continuation_ids_lead_to_the_same_short_requests(lab):
    project = probing(lab, [{**do("say x"), "continuation": True}, {**do("say y"), "continuation": True}])
    session = recorded(lab, project)
    assert session.trace.all("inference")[1]["continuation_id"]

    same(project, "--workdir", project / "work")
    rerun(project)


@pytest.mark.parametrize("how", ["recorded", "rerun"])
def test_replay_what_a_person_refused_is_refused_again(lab, how):
    one = Asker(lab, ["touch a", "touch b", "echo c", "touch d", "touch e"], {"commands": ["touch"]}, trace=FULL).start()
    task = one.answer(one.begin(), "no")
    task = one.answer(task, "once")
    one.answer(task, "never")
    one.end()

    report = replay(one.project, "--workdir", one.work, "--tools", how, expect="same", session=lab.session(one.running))
    replay(one.project, "--workdir", one.work, expect="same", session=report["session_id"])


@pytest.mark.parametrize("how", ["recorded", "rerun"])
def test_replay_a_deadline_comes_where_it_came(lab, how):
    project = probing(lab, [do("say x"), {"text": "late", "delay_ms": 60000}])
    (project / "work").mkdir()
    result = project.run("--task", "go", "--workdir", project / "work", "--deadline", "8")
    assert "deadline_reached" in result.stdout

    report = replay(project, "--workdir", project / "work", "--tools", how, expect="same", session=lab.session(result))

    assert [turn["calls"] for turn in report["turns"]] == [["tool-probe"]]

# SPDX-License-Identifier: Apache-2.0
#
# Every pair of neighbouring steps of the task loop, raced with a cancel through the door, a stop and the deadline: whatever
# comes first, all who are told of the ending are told the same, and a cancel the door accepted is never lost.

import http.client
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.delegation import Plane, delegate, turn
from tests.support.door_client import SLEEPER, Door, at_once, message
from tests.support.fixtures import own_component
from tests.support.lab import IS_SANITIZED, Trace
from tests.support.polling import eventually
from tests.support.spawn import publish_agent

pytestmark = pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer's runtime must be the first library")

ROUNDS = int(os.environ.get("RACE_ROUNDS", "200"))
SOURCE = Path(__file__).resolve().parents[1] / "support/race.c"
STATUS = {"name": "session-status", "input": {}}
WORK = [{"tool_calls": [STATUS]}, {"text": "first"}, {"text": "second"}]
KEEP_WORKING = {"keep_working": {"message": "go on", "limit": 1}}
# The line a step of the loop ends with: what is set off there meets the step after it.
STEPS = ["task_start:1", "inference:1", "tool_call:1", "inference:2", "keep_working:1", "inference:3", "task_end:1"]
CHECK = {"done_check": {"command": "bash -c true", "limit": 1}}
CANCELED_TEXT = "canceled: the task was stopped; there is no result"


@pytest.fixture
def race(lab):
    library = lab.directory / "race.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)

    def environment(step, what, hold_us=400):
        return {"LD_PRELOAD": library, "RACE_AT": step, "RACE_DO": what, "RACE_HOLD_US": hold_us}
    return environment


class Canceller:
    """One connection that cancels a task as soon as the loop reaches the step."""

    def __init__(self, door, pipe):
        self.pipe, self.wire = pipe, http.client.HTTPConnection(*door.address, timeout=30)
        self.wire.connect()
        self.headers = dict(door.headers())

    def cancel(self, task_id):
        """The answer once the step was reached."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "CancelTask", "params": {"id": task_id}})
        assert os.read(self.pipe, 1) == b"!"
        self.wire.request("POST", "/", body, self.headers)
        return json.loads(self.wire.getresponse().read())


def records_of(project, session_id, work="workdir"):
    """Without a look at the hundreds of other sessions."""
    return Path(f"{project.lab.murmur_home}/records{project / work / session_id}")


def lines_by_task(trace):
    found = {}
    for line in trace.events:
        if line.get("task_id"):
            found.setdefault(line["task_id"], []).append(line)
    return found


def assert_one_ending(lines, is_canceled, task_id):
    ends = [line["exit_status"] for line in lines if line["event_type"] == "task_end"]
    canceled = [line for line in lines if line["event_type"] == "task_canceled"]
    assert ends == ["canceled" if is_canceled else "ok"], (task_id, [line["event_type"] for line in lines])
    assert len(canceled) == is_canceled, (task_id, [line["event_type"] for line in lines])


def race_cancels(lab, project, environment, rounds=ROUNDS, **start):
    """`rounds` tasks, one after the other, each cancelled at the step."""
    mine, theirs = os.pipe()
    running = lab.start("run", *start.pop("arguments", ()), cwd=project.directory, pass_fds=(theirs,),
                        env={**environment, **start.pop("env", {}), "RACE_FD": theirs})
    os.close(theirs)
    door = Door(running)
    canceller, accepted = Canceller(door, mine), {}
    for _ in range(rounds):
        task_id = door.result("SendMessage", at_once(message()))["task"]["id"]
        answer = canceller.cancel(task_id)
        assert "result" in answer or answer["error"]["code"] == -32002, answer
        accepted[task_id] = "result" in answer
        if accepted[task_id]:
            assert answer["result"]["status"]["state"] == "TASK_STATE_CANCELED", answer

    # The last may still be on its way to its end.
    trace = lab.session(running)

    def all_ended():
        return len(trace.trace.all("task_end")) == rounds
    eventually(all_ended, 30, "every task has its end")
    states = {task_id: door.state(task_id) for task_id in accepted}
    running.signal()
    running.result()
    os.close(mine)
    by_task = lines_by_task(trace.trace)
    for task_id, was_accepted in accepted.items():
        assert_one_ending(by_task[task_id], was_accepted, task_id)
        assert states[task_id] == ("CANCELED" if was_accepted else "COMPLETED"), task_id
    return accepted


def assert_told_alike(project, result, answer, work="workdir"):
    """A run that was stopped somewhere: all its records name one ending."""
    records = records_of(project, result.session_id, work)
    lines = Trace(records / "trace.jsonl")
    end, last = lines.one("task_end")["exit_status"], lines.one("session_end")["exit_status"]
    assert_one_ending(lines.events, end == "canceled", result.session_id)
    text = (records / "out/result.txt").read_text()
    if end == "ok":
        assert text in answer, (end, text)
    else:
        assert text == CANCELED_TEXT, (end, text)
        assert last in ("canceled", "deadline_reached"), last
    assert (result.code == 0) == (last == "ok"), str(result)
    assert result.status == last, str(result)


@pytest.mark.parametrize("step", STEPS)
def test_T18_a_cancel_meets_each_step_of_the_loop(lab, race, step):
    project = lab.agent(steps=WORK, lifecycle={**SLEEPER, **KEEP_WORKING})
    race_cancels(lab, project, race(step, "tell"))


@pytest.mark.parametrize("what", ["signal", "deadline"])
@pytest.mark.parametrize("step", STEPS)
def test_T18_a_stop_and_the_deadline_meet_each_step_of_the_loop(lab, race, step, what):
    project = lab.agent(steps=WORK, lifecycle=KEEP_WORKING)
    for _ in range(ROUNDS):
        result = project.run("--task", "go", "--deadline", "3600", env=race(step, what))
        assert_told_alike(project, result, ("first", "second"))


def test_T18_a_cancel_meets_the_done_check(lab, race):
    project = lab.agent(steps=[{"text": "first"}], lifecycle={**SLEEPER, **CHECK},
                        capabilities={"shell": {"allow": ["bash"]}})
    for step in ("inference:1", "done_check:1"):
        race_cancels(lab, project, race(step, "tell"))


@pytest.mark.parametrize("what", ["signal", "deadline"])
@pytest.mark.parametrize("step", ["inference:1", "done_check:1"])
def test_T18_a_stop_and_the_deadline_meet_the_done_check(lab, race, step, what):
    project = lab.agent(steps=[{"text": "first"}], lifecycle=CHECK, capabilities={"shell": {"allow": ["bash"]}})
    for _ in range(ROUNDS):
        result = project.run("--task", "go", "--deadline", "3600", env=race(step, what))
        assert_told_alike(project, result, ("first",))


@pytest.fixture
def plane(lab):
    publish_agent(lab, "child-slow", [{"text": "never said", "delay_ms": 120_000}])
    with Plane(lab, "local/child-slow") as plane:
        plane.wrap('unset LD_PRELOAD; exec "$MUR" "$@"')
        yield plane


def test_T18_a_cancel_between_the_end_of_a_turn_and_the_wait_for_a_child(lab, race, plane):
    project = plane.parent(turn(delegate("local/child-slow")), {"text": "waiting"}, {"text": "all"}, lifecycle=SLEEPER)
    for step in ("tool_call:1", "inference:2"):
        accepted = race_cancels(lab, project, {**race(step, "tell"), **plane.environment},
                                arguments=("--workdir", project / "work"))
        assert all(accepted.values())


@pytest.mark.parametrize("what", ["signal", "deadline"])
def test_T18_a_stop_and_the_deadline_between_the_end_of_a_turn_and_the_wait_for_a_child(lab, race, plane, what):
    project = plane.parent(turn(delegate("local/child-slow")), {"text": "waiting"}, {"text": "all"})
    for _ in range(ROUNDS):
        result = plane.run(project, "--deadline", "3600", env=race("inference:2", what))
        # The deadline spares the answer that stood when it came.
        assert_told_alike(project, result, ("waiting",) if what == "deadline" else (), "work")


def test_audit_09_a_cancel_of_a_task_that_waits_for_input_starts_no_inference(lab):
    tool = lab.publish("tool-probe", own_component("tool-probe"))
    ask = {"tool_calls": [{"name": "tool-probe", "input": {"do": "ask which?"}}]}
    project = lab.agent(steps=[ask, {"text": "went on"}], tools=[tool], lifecycle=SLEEPER)
    running = project.start()
    door, ids = Door(running), []
    for _ in range(ROUNDS):
        task = door.send()
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED", task
        door.result("CancelTask", {"id": task["id"]})
        ids.append(task["id"])
    session = lab.session(running)
    eventually(lambda: len(session.trace.all("task_end")) == ROUNDS, 30, "every task has its end")
    by_task = lines_by_task(session.trace)
    for task_id in ids:
        events = [line["event_type"] for line in by_task[task_id]]
        assert events.count("inference") == 1, events
        assert [line["phase"] for line in by_task[task_id] if line["event_type"] == "task_canceled"] == ["input"]
    running.signal().result()

# SPDX-License-Identifier: Apache-2.0
#
# Parent, child or daemon killed at each step of a delegation (A1 of spec/spawn.md): within the stated bounds no process, no
# zombie and no stuck reservation is left, and whoever lives on tells what happened.
#
# The pauses are outside the programs: a proxy before the daemon, a wrapper in the child's place, stopped processes.

import json
import os
import signal
import threading
from pathlib import Path

import pytest

from tests.support.delegation import Plane, delegate, gone, process_of, reads, turn
from tests.support.lab import SLOWER
from tests.support.polling import children_of, eventually, pid_exists
from tests.support.roost import Roost
from tests.support.spawn import completion, publish_agent

HELLO = [{"text": "hello"}]
SLOW = [{"text": "never said", "delay_ms": 120_000}]
WAITING = {"text": "waiting"}
UNWINDS_WITHIN_S = 25  # the lifeline's 20 s, and what looking at it costs


@pytest.fixture
def plane(lab):
    publish_agent(lab, "child-agent", HELLO)
    publish_agent(lab, "child-slow", SLOW)
    with Plane(lab, "local/child-agent", "local/child-slow") as plane:
        # It tells its id, and waits while there is a file "hold".
        plane.wrap('echo $$ >"$LOG.pid"; while [ -e "$LOG.hold" ]; do sleep 0.02; done; exec "$MUR" "$@"')
        yield plane


class Pause:
    """A place where somebody waits until `release`; `reached` says that it came there."""

    def __init__(self):
        self._reached, self._released = threading.Event(), threading.Event()

    def hold(self):
        self._reached.set()
        self._released.wait(60)

    def reached(self):
        assert self._reached.wait(30 * SLOWER), "nobody came to the pause"

    def release(self):
        self._released.set()


class Scene:
    """A parent that delegates, stopped at a step: `asked`, `approved`, `started`, `registering`, `registered` or `working`."""

    def __init__(self, plane, step):
        self.plane, self.lab, self.step, self.pause = plane, plane.lab, step, Pause()
        self.hold_file = Path(f"{plane.log}.hold")
        where = {"asked": ("before", "/spawn"), "approved": ("after", "/spawn"), "registering": ("before", "/register"),
                 "registered": ("after", "/register")}
        if step == "started":
            self.hold_file.touch()
        capsule = "child-slow" if step == "working" else "child-agent"
        project = plane.parent(turn(delegate(capsule)), WAITING, reads())
        proxy = plane.through_proxy()
        if step in where:
            moment, path = where[step]
            seen = []

            def pass_on(asked):
                seen.append(asked)
                # The first registration is the parent's own.
                if asked == path and (path == "/spawn" or seen.count(path) == 2):
                    self.pause.hold()
            setattr(proxy, moment, pass_on)
        self.running = plane.start(project)
        self.reach()

    def reach(self):
        if self.step == "started":
            eventually(lambda: Path(f"{self.plane.log}.pid").exists(), 30 * SLOWER, "the wrapper runs")
        elif self.step == "working":
            eventually(lambda: any('"task_start"' in (path / "trace.jsonl").read_text() for path in self.child_records()) and
                       "tool_call" in self.trace.types, 30 * SLOWER, "the child works, and its parent knows")
        else:
            self.pause.reached()

    def child_records(self):
        return [path for path in self.lab.records if "/children/" in str(path) and (path / "trace.jsonl").exists()]

    @property
    def child_pid(self):
        path = Path(f"{self.plane.log}.pid")
        return int(path.read_text()) if path.exists() else None

    def release(self):
        self.hold_file.unlink(missing_ok=True)
        self.pause.release()

    @property
    def trace(self):
        return self.lab.session(self.running).trace


def child_capsules_of(pid):
    """Direct children that are capsules, zombies of any kind included; a session has other helpers."""
    found = []
    for child in children_of(pid):
        try:
            is_capsule = b"--spawn-grant-stdin" in Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if is_capsule or not pid_exists(child):
            found.append(child)
    return found


@pytest.fixture
def scene(plane, request):
    return Scene(plane, request.param)


AFTER_THE_LAUNCH = ("started", "registering", "registered", "working")


@pytest.mark.parametrize("scene", ("asked", "approved", *AFTER_THE_LAUNCH), indirect=True)
def test_spawn_A1_a_parent_killed_at_any_step_leaves_nothing_running(lab, plane, scene):
    child = scene.child_pid
    scene.running.signal(signal.SIGKILL)
    scene.running.result()
    scene.release()

    if child:
        gone(child, UNWINDS_WITHIN_S)
    eventually(lambda: [line for pid, line in lab.processes() if pid != plane.roost.pid] == [], UNWINDS_WITHIN_S * SLOWER,
               "only the daemon is left")
    assert len(plane.launches) == (scene.step in AFTER_THE_LAUNCH)
    assert all(line["event_type"] != "delegation" for line in scene.trace.events)
    for records in scene.child_records():
        types = [json.loads(line)["event_type"] for line in (records / "trace.jsonl").read_text().splitlines()]
        assert types[-1] == "session_end" and "spawner_ended" in types
        assert completion(records)["status"] == ("error" if "task_start" in types else "ok")


OUTCOME_OF_A_KILLED_CHILD = {"started": "failed", "registering": "failed", "registered": "failed", "working": "crashed"}


@pytest.mark.parametrize("scene", AFTER_THE_LAUNCH, indirect=True)
def test_spawn_A1_a_child_killed_at_any_step_is_told_of(lab, plane, scene):
    os.kill(scene.child_pid, signal.SIGKILL)
    eventually(lambda: not pid_exists(scene.child_pid), 10, "the child is dead")
    scene.release()

    result = scene.running.result(60).ok()

    end = scene.trace.one("delegation")
    assert end["outcome"] == OUTCOME_OF_A_KILLED_CHILD[scene.step] and "signal 9" in end["reason"]
    has_record = [completion(path)["status"] for path in scene.child_records() if (path / "completion.json").exists()]
    assert has_record == (["crashed"] if scene.step == "working" else [])
    folders = list((lab.session(result).records / "children").iterdir())
    assert len(folders) == (scene.step == "working")


OUTCOME_WITHOUT_A_DAEMON = {"asked": "refused", "approved": "failed", "started": "failed", "registering": "failed",
                            "registered": "ok", "working": "terminated"}


@pytest.mark.parametrize("scene", OUTCOME_WITHOUT_A_DAEMON, indirect=True)
def test_spawn_A1_a_daemon_killed_at_any_step_takes_no_child_along(lab, plane, scene):
    plane.roost.stop(signal.SIGKILL)
    child = scene.child_pid
    scene.release()
    if scene.step == "working":
        assert pid_exists(child)
        scene.running.signal()
        result = scene.running.result(60)
    else:
        result = scene.running.result(60).ok()

    end = scene.trace.one("delegation")
    assert end["outcome"] == OUTCOME_WITHOUT_A_DAEMON[scene.step], end
    if end["outcome"] in ("refused", "failed"):
        assert "mur-roost" in end["reason"]
        assert not list(Path(lab.session(result).records).glob("children/*"))
    assert "msa1" not in result.stderr and "msc1" not in result.stderr
    plane.roost = Roost(lab, "--spawn-allow", "local/parent")


def test_spawn_A1_a_child_killed_while_it_reports_has_its_report_delivered(lab, plane):
    publish_agent(lab, "child-unhurried", [{"text": "hello", "delay_ms": 700}])
    plane.children.append("local/child-unhurried")
    project = plane.parent(turn(delegate("child-unhurried")), WAITING, reads())
    running = plane.start(project)
    eventually(lambda: '"event_type":"tool_call"' in (lab.session(running).records / "trace.jsonl").read_text(), 30 * SLOWER,
               "the child holds its task")
    running.signal(signal.SIGSTOP)  # its door takes no completion now
    start = lab.session(running).trace.one("delegation_start")
    record = Path(start["child_records_dir"]) / "completion.json"
    eventually(record.exists, 20 * SLOWER, "the child reports")
    assert completion(record.parent)["delivered"] is False
    os.kill(process_of(lab, start["child_session_id"]), signal.SIGKILL)
    running.signal(signal.SIGCONT)

    running.result(60).ok()

    assert lab.session(running).trace.one("delegation")["outcome"] == "ok"
    assert completion(record.parent)["delivered"] is True and completion(record.parent)["reported_by"] == "child"


def test_spawn_A1_a_live_parent_keeps_no_zombie(lab, plane):
    project = plane.parent(turn(*(delegate("child-agent", call_id=f"c{i}") for i in range(3))), WAITING,
                           {"text": "done", "delay_ms": 60_000})
    running = plane.start(project)
    eventually(lambda: '"task_continued"' in (lab.session(running).records / "trace.jsonl").read_text(), 60 * SLOWER,
               "the outcomes are in")
    assert child_capsules_of(running.pid) == []
    running.signal()
    running.result(60)


def test_spawn_A1_a_killed_parents_place_and_reservation_are_free_again(lab, plane):
    plane.roost.stop()
    plane.roost = Roost(lab, "--spawn-allow", "local/parent", "--max-live-capsules", "2")
    scene = Scene(plane, "approved")
    other = plane.roost.credential("ses_" + "d" * 32, "local/parent")
    assert "--max-live-capsules 2" in plane.roost.spawn(other, "local/child-agent").refused()
    scene.running.signal(signal.SIGKILL)
    scene.running.result()
    scene.release()
    assert plane.roost.spawn(other, "local/child-agent").status == 200


def test_spawn_B4_killed_sessions_hold_no_place_for_ever(lab, plane):
    plane.roost.stop()
    plane.roost = Roost(lab, "--spawn-allow", "local/parent", "--max-live-capsules", "2")
    first = Scene(plane, "working")
    other = plane.roost.credential("ses_" + "d" * 32, "local/parent")
    assert "--max-live-capsules 2" in plane.roost.spawn(other, "local/child-agent").refused()
    os.kill(first.child_pid, signal.SIGKILL)
    first.running.result(60).ok()
    assert plane.roost.spawn(other, "local/child-agent").status == 200
    assert plane.roost.status(first.trace.one("delegation")["child_session_id"]).ok()["status"] == "failed"

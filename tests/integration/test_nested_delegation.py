# SPDX-License-Identifier: Apache-2.0
#
# Children that start children, with real sessions all the way down: what is handed on, what ends with whom, where no token
# may be (A10, A21 of spec/spawn.md; D5, R2).

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.support.delegation import Plane, delegate, gone, turn
from tests.support.lab import SLOWER
from tests.support.polling import eventually, pid_exists
from tests.support.spawn import publish_agent, trace_so_far

SLOW = [{"text": "never said", "delay_ms": 120_000}]
FORMATION = "frm_" + "0" * 31 + "7"
TOKEN = re.compile(rb"m(?:sa|sc|dt|ft)1\.[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}")


class Node:
    """One session of a tree, found by the records of its parent."""

    def __init__(self, records):
        self.records = Path(records)

    @property
    def trace(self):
        return trace_so_far(self.records)

    @property
    def types(self):
        return [event["event_type"] for event in self.trace]

    def event(self, event_type):
        return next((event for event in self.trace if event["event_type"] == event_type), None)

    def child(self):
        """The session it delegated to, once that runs a task."""
        started = eventually(lambda: self.event("delegation_start"), 40 * SLOWER, "it delegated")
        node = Node(started["child_records_dir"])
        eventually(lambda: node.event("task_start"), 40 * SLOWER, "the child runs its task")
        eventually(lambda: self.event("tool_call"), 40 * SLOWER, "delegate-task returned: the hand-over is done")
        return node

    def pid(self, lab):
        return json.loads((lab.murmur_home / "running" / f"{self.records.name}.json").read_text())["pid"]


@pytest.fixture
def plane(lab):
    """parent -> middle -> slow; slow's door asks for a token."""
    publish_agent(lab, "slow", SLOW, network={"authentication": {"scheme": "bearer"}})
    publish_agent(lab, "middle", [turn(delegate("slow")), {"text": "waiting"}, {"text": "done"}],
                  capabilities={"spawn": {"allow": ["local/slow"]}})
    with Plane(lab, "local/middle", "local/slow") as plane:
        yield plane


@pytest.fixture
def family(lab, plane):
    """The three, running: (the parent's process, its node, middle, slow)."""
    project = plane.parent(turn(delegate("middle")), {"text": "waiting"}, {"text": "done"})
    running = plane.start(project, "--deadline", "600", env={"MURMUR_FORMATION_ID": FORMATION})
    node = Node(eventually(lambda: next((path for path in lab.records if (path / "trace.jsonl").exists()), None), 20 * SLOWER))
    middle = node.child()
    return running, node, middle, middle.child()


def test_spawn_A21_lineage_folder_formation_and_deadline_are_handed_on(lab, plane, family):
    running, parent, middle, slow = family
    starts = [node.event("session_start") for node in (parent, middle, slow)]
    for above, below, node in ((parent, middle, middle), (middle, slow, slow)):
        start = node.event("session_start")
        assert start["spawned_by"] == above.records.name
        assert start["delegation_id"] == above.event("delegation_start")["delegation_id"]
        # The child's records mirror its work folder, which is below its parent's records.
        assert f"{above.records}/children/" in str(below.records)
        record = json.loads((lab.murmur_home / "running" / f"{below.records.name}.json").read_text())
        assert record["spawned_by"] == above.records.name and record["formation_id"] == FORMATION
    assert [start["formation_id"] for start in starts] == [FORMATION] * 3
    assert [start["deadline"]["source"] for start in starts] == ["own", "inherited", "inherited"]
    assert len({start["deadline"]["at"] for start in starts}) <= 2  # the clock may turn a second over between two roundings
    told = lab.mur("ps", "--verbose").ok()
    assert f"delegated: {middle.records.name} — started by {parent.records.name}\n" in told.stderr
    assert f"delegated: {slow.records.name} — started by {middle.records.name}\n" in told.stderr
    assert told.stderr.count("delegated: ") == 2 and "delegated" not in lab.mur("ps").ok().stderr
    depths = [plane.roost.status(node.records.name).ok()["depth_remaining"] for node in (parent, middle, slow)]
    assert depths == [3, 2, 1]
    running.signal().result(40)


def test_spawn_D5_a_killed_parent_takes_child_and_grandchild_with_it(lab, plane, family):
    running, _parent, middle, slow = family
    pids = [middle.pid(lab), slow.pid(lab)]
    running.signal(signal.SIGKILL)
    running.result()
    gone(pids[0], 20)
    gone(pids[1], 40)
    types = middle.types
    assert types.count("spawner_ended") == 1 and types.index("spawner_ended") < types.index("task_canceled"), types
    assert "spawner_ended" not in slow.types  # it was ended by middle, which lived to do so
    assert middle.types[-1] == slow.types[-1] == "session_end"
    assert middle.event("task_canceled")["delegation_ids"] == [middle.event("delegation_start")["delegation_id"]]
    assert all(plane.roost.status(node.records.name).ok()["status"] == "failed" for node in (middle, slow))


def test_spawn_A15_a_stopped_parent_ends_its_tree_and_nobody_says_it_died(lab, plane, family):
    running, parent, middle, slow = family
    pids = [middle.pid(lab), slow.pid(lab)]
    running.signal().result(40).failed("E-RUN-040")
    for pid in pids:
        gone(pid, 20)
    assert "spawner_ended" not in middle.types
    assert parent.event("delegation")["outcome"] == "terminated"


def files_below(directory):
    for path in directory.rglob("*"):
        if path.is_file() and not path.is_symlink():
            yield path


def test_spawn_no_token_is_in_any_argument_variable_or_file_while_children_run(lab, plane, family):
    running, _parent, middle, slow = family
    pids = [running.pid, middle.pid(lab), slow.pid(lab), plane.roost.pid]
    door_token = json.loads((lab.murmur_home / "running" / f"{slow.records.name}.json").read_text())["door_token"]
    assert TOKEN.fullmatch(door_token.encode())  # what the search below would find
    for pid in pids:
        for name in ("cmdline", "environ"):
            assert not TOKEN.search(Path(f"/proc/{pid}/{name}").read_bytes()), (pid, name)
    running_records = lab.murmur_home / "running"
    for path in files_below(lab.directory):
        if path.parent != running_records:
            assert not TOKEN.search(path.read_bytes()), path
    for record in running_records.glob("*.json"):
        assert b"msa1." not in record.read_bytes() and b"msc1." not in record.read_bytes()
        assert record.stat().st_mode & 0o077 == 0
    result = running.signal().result(40)
    assert not TOKEN.search((result.stdout + result.stderr).encode())
    assert not TOKEN.search("".join(plane.roost.lines).encode())
    for path in files_below(lab.directory):
        assert not TOKEN.search(path.read_bytes()), path


def test_spawn_R2_a_capsule_that_lists_itself_gets_exactly_its_depth(lab):
    steps = [turn(delegate("self")), {"text": "waiting"}, {"text": "done"}]
    publish_agent(lab, "self", steps, capabilities={"spawn": {"allow": ["local/self"]}})
    with Plane(lab, "local/self", roost_arguments=("--max-depth", "2", "--spawn-allow", "local/self")) as plane:
        project = plane.parent(*steps)
        plane.run(project).ok()
        levels, node = 0, Node(lab.records[0])
        while started := node.event("delegation_start"):
            levels, node = levels + 1, Node(started["child_records_dir"])
    assert levels == 2
    refused = node.event("delegation")
    assert refused["outcome"] == "refused" and "--max-depth 2" in refused["reason"]


@pytest.mark.parametrize("victim", ["middle", "slow"])
def test_spawn_D4_a_child_killed_at_work_is_reported_by_whoever_started_it(lab, plane, family, victim):
    running, parent, middle, slow = family
    node, above = (middle, parent) if victim == "middle" else (slow, middle)
    os.kill(node.pid(lab), signal.SIGKILL)
    running.result(60).ok()
    record = json.loads((node.records / "completion.json").read_text())
    assert (record["status"], record["reported_by"], record["delivered"]) == ("crashed", "launcher", True)
    assert "signal 9" in record["detail"]
    assert above.event("delegation")["outcome"] == "crashed"
    if victim == "middle":
        eventually(lambda: slow.types[-1] == "session_end", 20 * SLOWER, "the grandchild wound down")
        assert "spawner_ended" in slow.types


def test_spawn_A1_a_dead_daemon_takes_no_child_along(lab, plane, family):
    running, parent, middle, slow = family
    plane.roost.stop(signal.SIGKILL)
    begun = time.monotonic()
    assert all(pid_exists(node.pid(lab)) for node in (middle, slow))
    os.kill(slow.pid(lab), signal.SIGTERM)
    result = running.result(60).ok()
    assert time.monotonic() - begun < 30 * SLOWER
    assert parent.event("delegation")["outcome"] == "ok" and middle.event("delegation")["outcome"] == "error"
    assert "deregister" in result.stderr
    plane.close = lambda: None

# SPDX-License-Identifier: Apache-2.0
#
# Records of a child on another machine (docs/spec/records.md 15): they come home with its end, and are in the store also when nobody
# is left to bring them.

import json
import os
import signal

import pytest

from tests.integration.test_fleet_formation import ALLOWED, SpreadTeam
from tests.support.delegation import delegate, reads, turn
from tests.support.fleet import Fleet
from tests.support.lab import SLOWER
from tests.support.polling import eventually
from tests.support.record_store import Store

LONG = "{{task}}, as I was asked. " * 1500  # beyond what a referee hands on
WAITING = {"text": "waiting"}


@pytest.fixture
def store():
    one = Store()
    yield one
    one.close()


def start(fleet, store, steps):
    fleet.publish("child", steps)
    fleet.publish_parent(turn(delegate("child", task="look at each of the folders once")), WAITING, reads())
    fleet.start_root(arguments=("--records-store", store.url))


def elsewhere(lab):
    home = lab.directory / "elsewhere"
    home.mkdir()
    return {"cwd": home, "env": {"HOME": str(home)}}


def complete(store, session):
    return json.loads(store.objects.get(f"{session}/complete.json", b"{}"))


def test_fleet_2_all_records_of_a_child_come_home_and_a_tree_is_fetched_by_its_root(lab, store):
    with Fleet(lab, "--records-store", store.url) as fleet:
        start(fleet, store, [{"text": LONG}])
        pod = fleet.wait_end("root-1", 60)
        assert pod["status"]["phase"] == "Succeeded", fleet.logs()
        [job] = fleet.children()
        child, root = fleet.annotation(job, "session"), fleet.annotation(job, "parent-session")
        [there] = fleet.home_of(fleet.pods_of(job["metadata"]["name"])[0]).glob(f".murmur/records/**/{child}")
        [home] = fleet.home_of(pod).glob(f".murmur/records/**/{child}")
        answer = (home / "out/result.txt").read_bytes()
        assert len(answer) > 65536 and answer == (there / "out/result.txt").read_bytes()
        assert (home / "trace.jsonl").read_bytes() == (there / "trace.jsonl").read_bytes()
        record = json.loads((home / "completion.json").read_text())
        assert (record["status"], record["reported_by"]) == ("ok", "child")
        assert complete(store, child)["parent_session_id"] == root

        far = elsewhere(lab)
        said = lab.mur("trace", "fetch", store.url, root, "--tree", **far).ok().stdout
        assert [line.split(":")[0] for line in said.splitlines()] == [root, child] and said.count("ended ok") == 2
        assert "child" in lab.mur("trace", "show", child, **far).ok().stdout


def test_formation_on_a_fleet_leaves_the_records_of_every_member_whole(lab, store):
    with Fleet(lab, *ALLOWED, "--records-store", store.url) as fleet:
        team = SpreadTeam(fleet)
        team.deploy(change=lambda job: job["spec"]["template"]["spec"]["containers"][0]["args"].extend(["--records-store", store.url]))
        peers = team.at_work()
        assert "coder answers" in team.answer()
        sessions = {name: fleet.annotation(job, "session") for name, job in [*peers.items(), ("lead", team.entry())]}
        team.gone(peers)
        eventually(lambda: all(complete(store, session) for session in sessions.values()), 40 * SLOWER, f"all are whole: {fleet.logs()}")
        far = elsewhere(lab)
        for name, session in sessions.items():
            said = lab.mur("trace", "fetch", store.url, session, **far).ok().stdout
            assert said.startswith(f"{session}: ") and "ended" in said and ("ended ok" in said or name != "lead")
            assert name in lab.mur("trace", "show", session, **far).ok().stdout


def test_fleet_2_a_child_whose_parent_died_first_has_shipped_its_records(lab, store):
    with Fleet(lab, "--records-store", store.url) as fleet:
        start(fleet, store, [{"text": "never said", "delay_ms": 120_000}])
        [job] = fleet.at_work()
        child, root = fleet.annotation(job, "session"), fleet.annotation(job, "parent-session")
        eventually(lambda: b"delegation_start" in b"".join(data for key, data in store.objects.items() if key.startswith(root)),
                   60 * SLOWER, "the parent's trace has left its pod")
        os.killpg(fleet.node.process_of(fleet.pods_of("root-1")[0]).pid, signal.SIGKILL)
        eventually(lambda: complete(store, child), 60 * SLOWER, f"the child's records are whole: {fleet.logs()}")
        assert complete(store, child)["status"] not in ("ok", None) and not complete(store, root)

        said = lab.mur("trace", "fetch", store.url, root, "--tree", **elsewhere(lab)).ok().stdout.splitlines()
        assert said[0].startswith(root) and "not complete" in said[0]
        assert said[1].startswith(child) and "not complete" not in said[1]


def test_fleet_2_a_store_that_gives_nothing_back_costs_no_outcome(lab, store):
    store.harm = "lies"
    with Fleet(lab, "--records-store", store.url) as fleet:
        start(fleet, store, [{"text": "hello from afar"}])
        pod = fleet.wait_end("root-1", 60)
        assert "hello from afar" in fleet.work_file(pod).read_text(), fleet.logs()
        [record] = fleet.home_of(pod).glob(".murmur/records/**/completion.json")
        assert (record.parent / "out/result.txt").read_text().strip() == "hello from afar"

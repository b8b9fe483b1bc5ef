# SPDX-License-Identifier: Apache-2.0
#
# The fleet under Kueue (scripts/fleet-programs kueue): what is deployed and what a session starts is admitted by the queue's quota, and
# by nothing else. Numbers are those of the design's cases; MURMUR_FLEET_SESSIONS and MURMUR_FLEET_QUOTA say how many there are
# where there are many (200, of which 20 at once).

import os

import pytest

from tests.integration.test_deploy_render import IMAGE
from tests.real.test_fleet import HELLO, SLOW, WAITING, wipe
from tests.support.control_plane import ControlPlane, missing
from tests.support.delegation import delegate, reads, turn
from tests.support.fleet import Fleet
from tests.support.fleet_engines import Kueue, Kwok
from tests.support.fleet_many import CONTROLLERS, NODES, SESSIONS, Many, say
from tests.support.lab import SLOWER
from tests.support.polling import eventually

LACKING = missing("kueue")
QUOTA = int(os.environ.get("MURMUR_FLEET_QUOTA", "20"))
pytestmark = pytest.mark.skipif(LACKING is not None, reason=LACKING or "")


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with ControlPlane(tmp_path_factory.mktemp("plane") / "control") as plane:
        yield plane


@pytest.fixture(scope="module")
def kueue(plane):
    with Kueue(plane) as kueue:
        yield kueue


@pytest.fixture
def started(lab, plane, kueue):
    open_ones = []

    def start(*arguments):
        fleet = Fleet(lab, *arguments, cluster=plane.cluster)
        open_ones.append(fleet)
        return fleet.__enter__()
    yield start
    for fleet in open_ones:
        fleet.__exit__(None, None, None)
    wipe(plane)


def is_suspended(plane, name):
    return plane.api.get("jobs", name)["spec"]["suspend"]


def ps(lab, plane):
    return lab.mur("ps", "--fleet", "--kubeconfig", plane.directory / "admin.json", "--namespace", "tenant").ok()


def test_fleet_18_what_is_deployed_is_admitted_by_the_queues_quota(lab, plane, kueue):
    """Two may run; the third waits, says so, and is admitted when one has ended."""
    kueue.queue("two", 2)
    admin = plane.directory / "admin.json"
    manifest = {"version": "1.0.0", "inference": {"model": "m", "max_tokens": 1000, "driver": {
        "artifact": "std/driver-scripted", "config": {"steps": [{"text": "x"}]}}}}
    for name in ("first", "second", "third"):
        project = lab.project(name, {"name": name, **manifest, "artifacts": [{"name": "std/driver-scripted", "version": "0.1.0", "runtime": "driver"}]})
        said = project.mur("deploy", "apply", "--to", "kueue", "--queue", "two", "--namespace", "tenant", "--image", IMAGE, "--task", "go",
                           "--kubeconfig", admin).ok()
        assert f"mur-{name} in namespace tenant" in said.stdout
        if name != "third":
            eventually(lambda name=name: not is_suspended(plane, f"mur-{name}"), 30 * SLOWER, f"{name} is admitted")
    eventually(lambda: len(kueue.workloads()) == 3, 30 * SLOWER, "the queue knows all three")
    assert is_suspended(plane, "mur-third") and "waiting: mur-third — its queue has not admitted it" in ps(lab, plane).stderr
    # The same words again change nothing of one the queue has let go.
    again = (lab.directory / "first")
    assert lab.mur("deploy", "apply", "--manifest", again / "murmur.yaml", "--to", "kueue", "--queue", "two", "--namespace", "tenant", "--image", IMAGE,
                   "--task", "go", "--kubeconfig", admin).ok().stdout.startswith("Job mur-first of namespace tenant is there already")
    assert lab.mur("stop", "--fleet", "--kubeconfig", admin, "--namespace", "tenant", "mur-first").ok()
    eventually(lambda: not is_suspended(plane, "mur-third"), 30 * SLOWER, "its place goes to the third")
    wipe(plane)


def test_fleet_18_a_child_of_a_queued_session_is_itself_counted(started, plane, kueue):
    """Its owner is a pod of the queue, and it takes a place of its own all the same."""
    kueue.queue("places", 1)
    fleet = started("--queue", "places", "--queue-timeout", "600")
    fleet.publish("child", SLOW)
    fleet.publish_parent(turn(delegate("child", call_id="a"), delegate("child", call_id="b")), WAITING, reads())
    fleet.start_root()
    jobs = eventually(lambda: len(fleet.children()) == 2 and fleet.children(), 60 * SLOWER, "both Jobs are there")
    eventually(lambda: len(kueue.workloads()) == 2, 30 * SLOWER, lambda: f"the queue knows both: {len(kueue.workloads())}")
    [first] = fleet.registered(1)
    [other] = [job["metadata"]["name"] for job in jobs if job["metadata"]["name"] != first["metadata"]["name"]]
    assert is_suspended(plane, other) and fleet.pods_of(other) == []
    assert f"waiting: {other} — its queue has not admitted it" in ps(fleet.lab, plane).stderr
    # Whoever has the place gives it up, and the other begins.
    fleet.lab.mur("stop", "--fleet", "--kubeconfig", plane.directory / "admin.json", first["metadata"]["name"]).ok()
    eventually(lambda: fleet.annotation(fleet.api.get("jobs", other), "session"), 60 * SLOWER, lambda: f"the other registers: {fleet.logs()}")


def test_fleet_16_no_place_in_time_is_told_to_the_model_and_leaves_nothing(started, kueue):
    kueue.queue("full", 0)
    fleet = started("--queue", "full", "--queue-timeout", "3")
    fleet.publish("child", HELLO)
    fleet.publish_parent(turn(delegate("child")), reads())
    fleet.start_root()
    text = fleet.read_by_model(90)
    assert "no place for it was free within 3 s (--queue-timeout)" in text, text
    eventually(lambda: fleet.children() == [] and kueue.workloads() == [], 60 * SLOWER, "neither its Job nor its place in the queue is left")


@pytest.mark.skipif(missing("kwok", "kube-scheduler") is not None, reason=missing("kwok", "kube-scheduler") or "")
@pytest.mark.timeout(900 + 3 * SESSIONS)
def test_fleet_36_a_queue_admits_many_a_few_at_a_time(lab, tmp_path):
    """Kueue's quota is the bound: never more at once, none lost, none started twice."""
    with ControlPlane(tmp_path / "control", CONTROLLERS) as plane, Kwok(plane, NODES), Kueue(plane) as kueue:
        kueue.queue("nightly", QUOTA)
        with Many(lab, plane, "--queue", "nightly", "--queue-timeout", "3600") as many:
            many.start_all()
            many.wait_registered()
            many.wait_finished()
            figures = many.figures()
            assert 0 < many.children.most <= QUOTA
            say(sessions=SESSIONS, quota_of_the_queue=QUOTA, most_admitted_at_once=many.children.most,
                admissions_a_second=round(SESSIONS / many.admitted_s, 1), **figures)
            assert figures["mur_roost_most_memory_MB"] < 64

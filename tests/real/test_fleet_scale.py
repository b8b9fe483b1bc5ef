# SPDX-License-Identifier: Apache-2.0
#
# Many sessions on the real control plane, on nodes of kwok, which run nothing: none is lost, none is started twice, none outlives its
# root, and what each costs is printed. MURMUR_FLEET_SESSIONS says how many (200).

import json
import os
import re
import ssl
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.cluster import root_job
from tests.support.control_plane import ControlPlane, missing
from tests.support.fleet import Fleet
from tests.support.fleet_engines import Kueue, Kwok
from tests.support.lab import SLOWER
from tests.support.polling import eventually
from tests.support.simulated_node import Children, SimulatedSessions

LACKING = missing("kwok", "kube-scheduler")
pytestmark = pytest.mark.skipif(LACKING is not None, reason=LACKING or "")
SESSIONS = int(os.environ.get("MURMUR_FLEET_SESSIONS", "200"))
NODES, QUOTA = 10, 20
# What a cluster of this size is given (docs/fleet.md).
CONTROLLERS = ["--kube-api-qps=300", "--kube-api-burst=600", "--concurrent-job-syncs=20", "--concurrent-gc-syncs=20"]
WRITES = re.compile(r'^apiserver_request_total\{.*resource="(jobs|pods|events)".*verb="(POST|PUT|PATCH|DELETE|APPLY)".*\} (\S+)$', re.M)


def metrics(plane):
    request = urllib.request.Request(f"{plane.url}/metrics", headers={"authorization": "Bearer admin"})
    with urllib.request.urlopen(request, timeout=60, context=ssl.create_default_context(cafile=str(plane.ca))) as answer:
        return answer.read().decode()


def writes(plane):
    return sum(float(value) for _resource, _verb, value in WRITES.findall(metrics(plane)))


def first(plane, kind):
    """One of them, if there are any."""
    return plane.api.call("GET", f"{plane.api.path(kind)}?limit=1")[1]["items"]


def rss_mb(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) / 1024


def say(**values):
    print()
    for name, value in values.items():
        print(f"{name.replace('_', ' '):50} {value}")


def job_bytes(jobs):
    """What the store keeps of one session's Job, as JSON."""
    return max(len(json.dumps(job)) for job in jobs)


class Many:
    """SESSIONS children of one root, asked for eight at a time."""

    def __init__(self, lab, plane, *arguments, **sessions):
        self.plane = plane
        self.fleet = Fleet(lab, "--max-concurrent", str(SESSIONS), "--max-live-capsules", str(SESSIONS + 8), *arguments, cluster=plane.cluster)
        self.fleet.publish("child", [{"text": "x"}])
        self.fleet.publish_parent({"text": "x"}, children=("local/child",))
        self.fleet.start_roost()
        self.sessions, self.children = SimulatedSessions(plane.api, self.fleet.roost.url, **sessions), Children(plane.api)
        self.delegations = {f"dlg_{number:032x}" for number in range(1, SESSIONS + 1)}  # a name ends in 16 digits of it
        self.asked, self.began, self.admitted_s, self.before, self.tickets = {}, None, None, None, {}

    def __enter__(self):
        job = root_job("root-1", "local/parent", "0.1.0", None, self.fleet.roost.url)
        assert self.plane.api.call("POST", self.plane.api.path("jobs"), job)[0] == 201
        self.credential = eventually(lambda: self.sessions.roots.get("root-1"), 60 * SLOWER, lambda: f"the root is registered: {self.sessions.refused}")
        return self

    def __exit__(self, *_exception):
        self.sessions.close()
        self.children.close()
        self.fleet.roost.stop()

    def spawn(self, delegation):
        self.asked[delegation] = time.monotonic()
        return self.sessions.referee.ask("/spawn", {"name": "local/child", "version": "0.1.0", "delegation_id": delegation, "context_id": "ctx_" + "0" * 32,
                                                    "bound_secs": 3600}, x_murmur_spawn_credential=self.credential)

    def start_all(self):
        self.before = writes(self.plane)
        self.began = time.monotonic()
        with ThreadPoolExecutor(8) as pool:
            names = sorted(self.delegations)
            answers = list(pool.map(self.spawn, names))
        self.admitted_s = time.monotonic() - self.began
        assert {status for status, _answer in answers} == {200}, [answer for status, answer in answers if status != 200][:3]
        self.tickets = {name: answer["approval"] for name, (_status, answer) in zip(names, answers)}

    def ask_after_all(self):
        """As their parent does at once: a child that nobody has asked after in two minutes is ended."""
        for name, ticket in self.tickets.items():
            status, answer = self.sessions.referee.ask(f"/children/{name}?wait=0", x_murmur_child_ticket=ticket)
            assert status == 200, answer

    def wait_registered(self):
        eventually(lambda: len(self.sessions.registered) == SESSIONS, 120 + SESSIONS * 3 * SLOWER, self.told, every_s=0.5)

    def wait_finished(self):
        """All of them ended well: none is lost, none had a second pod."""
        eventually(lambda: len(self.children.ended) == SESSIONS, 120 + SESSIONS * SLOWER, self.told, every_s=0.5)
        jobs = list(self.children.ended.values())
        assert {self.fleet.annotation(job, "delegation") for job in jobs} == self.delegations == set(self.sessions.registered)
        assert set(self.sessions.pods.values()) == {1} and self.sessions.refused == [] and not self.children.failed
        return jobs

    def told(self):
        return (f"{len(self.sessions.registered)} registered, {len(self.children.ended)} ended, {len(self.children.failed)} failed; "
                f"{self.sessions.refused[:3]} {self.fleet.roost.lines[-5:]}")

    def starts(self):
        found = sorted(self.sessions.registered[one] - self.asked[one] for one in self.delegations)
        return {"ask_to_registration_s_p50": round(found[len(found) // 2], 2), "ask_to_registration_s_p99": round(found[int(len(found) * 0.99)], 2)}


def test_fleet_36_none_of_many_is_lost_and_what_each_costs(lab, tmp_path):
    with ControlPlane(tmp_path / "control", CONTROLLERS) as plane, Kwok(plane, NODES), Many(lab, plane) as many:
        many.start_all()
        many.wait_registered()
        jobs = many.wait_finished()
        whole_s = time.monotonic() - many.began
        say(sessions=SESSIONS, admissions_a_second=round(SESSIONS / many.admitted_s, 1), sessions_to_the_end_a_second=round(SESSIONS / whole_s, 1),
            **many.starts(), writes_of_jobs_pods_and_events_a_session=round((writes(plane) - many.before - many.sessions.writes) / SESSIONS, 1),
            bytes_of_an_ended_Job_in_the_store=job_bytes(jobs), mur_roost_most_memory_MB=round(rss_mb(many.fleet.roost.process.pid), 1))


def test_fleet_36_their_roots_end_leaves_none_of_many_behind(lab, tmp_path):
    """All at work when the root's Job goes: the referee and the garbage collector end every one."""
    with ControlPlane(tmp_path / "control", CONTROLLERS) as plane, Kwok(plane, NODES), Many(lab, plane, stays=True) as many:
        many.start_all()
        many.ask_after_all()
        many.wait_registered()
        assert len(many.children.at_work) == SESSIONS, many.told()
        began = time.monotonic()
        plane.api.call("DELETE", plane.api.path("jobs", "root-1"), {"propagationPolicy": "Background"})
        eventually(lambda: not any(first(plane, kind) for kind in ("jobs", "pods")), 120 + SESSIONS * SLOWER,
                   lambda: f"{len(plane.api.list('jobs'))} Jobs, {len(plane.api.list('pods'))} pods are left", every_s=0.5)
        say(sessions=SESSIONS, orphans=0, all_gone_after_the_roots_Job_s=round(time.monotonic() - began, 1))


@pytest.mark.skipif(missing("kueue") is not None, reason=missing("kueue") or "")
def test_fleet_36_a_queue_admits_many_a_few_at_a_time(lab, tmp_path):
    """Kueue's quota is the bound: never more at once, none lost, none started twice."""
    with ControlPlane(tmp_path / "control", CONTROLLERS) as plane, Kwok(plane, NODES), Kueue(plane) as kueue:
        kueue.queue("nightly", QUOTA)
        with Many(lab, plane, "--queue", "nightly", "--queue-timeout", "3600") as many:
            many.start_all()
            many.wait_registered()
            many.wait_finished()
            whole_s = time.monotonic() - many.began
            assert 0 < many.children.most <= QUOTA
            say(sessions=SESSIONS, quota_of_the_queue=QUOTA, most_admitted_at_once=many.children.most, admissions_a_second_by_Kueue=round(SESSIONS / whole_s, 1),
                **many.starts(), bytes_of_a_Workload=max(len(json.dumps(one)) for one in kueue.workloads()),
                mur_roost_most_memory_MB=round(rss_mb(many.fleet.roost.process.pid), 1))

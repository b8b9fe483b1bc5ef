# SPDX-License-Identifier: Apache-2.0
#
# Many sessions on the real control plane, by a node that runs nothing: none is lost, none is started twice, and what each costs is
# printed. MURMUR_FLEET_SESSIONS says how many (200).

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
from tests.support.lab import SLOWER
from tests.support.polling import eventually
from tests.support.simulated_node import SimulatedNode

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")
SESSIONS = int(os.environ.get("MURMUR_FLEET_SESSIONS", "200"))
# What a cluster of this size is given (docs/fleet.md).
CONTROLLERS = ["--kube-api-qps=300", "--kube-api-burst=600", "--concurrent-job-syncs=20", "--concurrent-gc-syncs=20"]
WRITES = re.compile(r'^apiserver_request_total\{.*resource="(jobs|pods|events)".*verb="(POST|PUT|PATCH|DELETE|APPLY)".*\} (\S+)$', re.M)


def metrics(plane):
    request = urllib.request.Request(f"{plane.url}/metrics", headers={"authorization": "Bearer admin"})
    with urllib.request.urlopen(request, timeout=60, context=ssl.create_default_context(cafile=str(plane.ca))) as answer:
        return answer.read().decode()


def writes(plane):
    return sum(float(value) for _resource, _verb, value in WRITES.findall(metrics(plane)))


def rss_mb(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) / 1024


def test_fleet_36_none_of_many_is_lost_and_what_each_costs(lab, tmp_path):
    with ControlPlane(tmp_path / "control", CONTROLLERS) as plane:
        fleet = Fleet(lab, "--max-concurrent", str(SESSIONS), "--max-live-capsules", str(SESSIONS + 8), cluster=plane.cluster)
        fleet.publish("child", [{"text": "x"}])
        fleet.publish_parent({"text": "x"}, children=("local/child",))
        fleet.start_roost()
        node = SimulatedNode(plane.api, fleet.roost.url)
        try:
            assert plane.api.call("POST", plane.api.path("jobs"), root_job("root-1", "local/parent", "0.1.0", None, fleet.roost.url))[0] == 201
            credential = eventually(lambda: node.roots.get("root-1"), 60 * SLOWER, lambda: f"the root is registered: {node.refused}")
            before = writes(plane)
            delegations = {f"dlg_{number:032x}" for number in range(1, SESSIONS + 1)}
            # A name ends in 16 digits of the delegation.
            asked = {}

            def spawn(delegation):
                asked[delegation] = time.monotonic()
                return node.referee.ask("/spawn", {"name": "local/child", "version": "0.1.0", "delegation_id": delegation,
                                                   "context_id": "ctx_" + "0" * 32, "bound_secs": 600}, x_murmur_spawn_credential=credential)
            began = time.monotonic()
            with ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(spawn, sorted(delegations)))
            admitted_s = time.monotonic() - began
            assert {status for status, _answer in answers} == {200}, [answer for status, answer in answers if status != 200][:3]
            eventually(lambda: len(node.registered) == SESSIONS, 60 + SESSIONS * 2 * SLOWER, lambda: f"{len(node.registered)} {node.refused[:3]}", every_s=0.5)

            def finished():
                return [job for job in fleet.children() if any(one["type"] == "Complete" and one["status"] == "True"
                                                               for one in job.get("status", {}).get("conditions", []))]
            eventually(lambda: len(finished()) == SESSIONS, 60 + SESSIONS * SLOWER, lambda: f"{len(finished())} have ended", every_s=1)
            whole_s = time.monotonic() - began
            jobs = finished()
            assert {fleet.annotation(job, "delegation") for job in jobs} == delegations and set(node.registered) == delegations
            assert node.refused == []
            starts = sorted(node.registered[one] - asked[one] for one in delegations)
            print()
            for name, value in {
                    "sessions": SESSIONS,
                    "admissions a second": round(SESSIONS / admitted_s, 1),
                    "sessions to the end, a second": round(SESSIONS / whole_s, 1),
                    "ask to registration, s, p50": round(starts[len(starts) // 2], 2),
                    "ask to registration, s, p99": round(starts[int(len(starts) * 0.99)], 2),
                    "writes of jobs, pods and events a session": round((writes(plane) - before) / SESSIONS, 1),
                    "mur-roost, most memory, MB": round(rss_mb(fleet.roost.process.pid), 1)}.items():
                print(f"{name:50} {value}")
        finally:
            node.close()
            fleet.roost.stop()

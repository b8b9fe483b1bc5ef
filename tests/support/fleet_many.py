# SPDX-License-Identifier: Apache-2.0
#
# Many sessions on a real control plane with nodes that run nothing, and what each costs: MURMUR_FLEET_SESSIONS says how many (200).

import base64
import json
import os
import re
import ssl
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from .cluster import NAMESPACE, root_job
from .fleet import Fleet
from .lab import SLOWER
from .polling import eventually
from .simulated_node import Children, SimulatedSessions

SESSIONS = int(os.environ.get("MURMUR_FLEET_SESSIONS", "200"))
NODES = 10
# What a cluster of this size is given (docs/fleet.md).
CONTROLLERS = ["--kube-api-qps=300", "--kube-api-burst=600", "--concurrent-job-syncs=20", "--concurrent-gc-syncs=20"]
WRITES = re.compile(r'^apiserver_request_total\{.*resource="(jobs|pods|events|workloads|clusterqueues|localqueues)".*verb="(POST|PUT|PATCH|DELETE|APPLY)".*\} (\S+)$', re.M)


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


# What the store keeps of a session, by the prefix of its keys.
KEPT = {"Job": "jobs", "pod": "pods", "events": "events", "Workload": "kueue.x-k8s.io/workloads"}


def of_store(plane, path, **body):
    request = urllib.request.Request(f"http://127.0.0.1:{plane.etcd_port}/v3/{path}", json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def kept_below(plane, prefix):
    """How many keys of the store begin so, and their bytes and their values' in all."""
    coded = [base64.b64encode(one).decode() for one in (prefix.encode(), prefix[:-1].encode() + bytes([ord(prefix[-1]) + 1]))]
    count, whole, start = 0, 0, coded[0]
    while True:
        answer = of_store(plane, "kv/range", key=start, range_end=coded[1], limit="200")
        found = answer.get("kvs", [])
        count += len(found)
        whole += sum(len(base64.b64decode(one["key"])) + len(base64.b64decode(one["value"])) for one in found)
        if not answer.get("more"):
            return count, whole
        start = base64.b64encode(base64.b64decode(found[-1]["key"]) + b"\0").decode()


def bytes_in_the_store(plane):
    """Of one session, by kind and in all. What has ended is taken away after ten minutes, so each kind is what one of it has; events stay
    for an hour, so a session's are all of them by the number of sessions."""
    found = {}
    for kind, place in KEPT.items():
        count, whole = kept_below(plane, f"/registry/{place}/{NAMESPACE}/")
        found[f"bytes_of_a_sessions_{kind}_in_etcd"] = round(whole / (SESSIONS if kind == "events" else max(count, 1)))
    return {**found, "bytes_of_a_session_in_etcd": sum(found.values()),
            "bytes_of_etcds_file_a_session": round(int(of_store(plane, "maintenance/status")["dbSize"]) / SESSIONS)}


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

    def figures(self):
        """Since they were asked for, once all have ended."""
        return {"sessions_to_the_end_a_second": round(SESSIONS / (time.monotonic() - self.began), 1), **self.starts(),
                "writes_at_the_API_server_a_session": round((writes(self.plane) - self.before - self.sessions.writes) / SESSIONS, 1),
                **bytes_in_the_store(self.plane), "mur_roost_most_memory_MB": round(rss_mb(self.fleet.roost.process.pid), 1)}

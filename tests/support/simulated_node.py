# SPDX-License-Identifier: Apache-2.0
#
# A node that runs nothing: it starts pods in the API's eyes, and says to the referee what a session in each would say. For as many
# sessions as a machine of tests could never run.

import http.client
import json
import os
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

from .cluster import now

MERGE = "application/merge-patch+json"


def session_id():
    return f"ses_{int(time.time() * 1000):012x}7{os.urandom(2).hex()[:3]}8{os.urandom(8).hex()[:15]}"


class Referee:
    """One client of mur-roost, as a session is."""

    def __init__(self, url):
        self.url = urllib.parse.urlsplit(url)

    def ask(self, path, body, **headers):
        wire = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=60)
        wire.request("POST", path, json.dumps(body), {"content-type": "application/json",
                                                      **{name.replace("_", "-"): value for name, value in headers.items()}})
        answer = wire.getresponse()
        try:
            return answer.status, json.loads(answer.read())
        finally:
            wire.close()


class SimulatedNode:
    """`roots` keeps the credential of each root's Job; `registered` when each child was, by its delegation."""

    def __init__(self, api, roost_url, workers=6):
        self.api, self.referee = api, Referee(roost_url)
        self.roots, self.registered, self.refused, self.seen = {}, {}, [], set()
        self.is_open, self.count = True, 0
        self.pool = ThreadPoolExecutor(workers)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while self.is_open:
            for pod in self.api.list("pods"):
                uid = pod["metadata"]["uid"]
                if pod.get("status", {}).get("phase", "Pending") == "Pending" and uid not in self.seen:
                    self.seen.add(uid)
                    self.count += 1
                    self.pool.submit(self.live, pod, f"127.{self.count >> 16 & 255}.{self.count >> 8 & 255}.{self.count & 255}")
            time.sleep(0.1)

    def live(self, pod, address):
        try:
            self.start(pod, address)
        except (OSError, http.client.HTTPException, ValueError, KeyError) as fault:
            self.refused.append(repr(fault))

    def status(self, pod, status):
        self.api.call("PATCH", self.api.path("pods", pod["metadata"]["name"] + "/status"), {"status": status}, MERGE)

    def start(self, pod, address):
        meta = pod["metadata"]
        job = self.api.get("jobs", meta["labels"].get("batch.kubernetes.io/job-name") or meta["labels"]["job-name"])
        notes = job["metadata"]["annotations"]
        self.api.call("POST", self.api.path("pods", f"{meta['name']}/binding"), {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta["name"]}, "target": {"kind": "Node", "name": "here"}})
        self.status(pod, {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "hostIP": "127.0.0.1", "startTime": now()})
        token = self.api.call("POST", self.api.path("serviceaccounts", "murmur-session/token"), {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {
                "audiences": ["mur-roost"], "expirationSeconds": 600, "boundObjectRef": {
                    "kind": "Pod", "apiVersion": "v1", "name": meta["name"], "uid": meta["uid"]}}})[1]["status"]["token"]
        mine = session_id()
        status, answer = self.referee.ask("/register", {"session_id": mine, "name": notes["murmur.dev/name"],
                                                        "version": notes["murmur.dev/version"]}, x_murmur_pod_token=token)
        if status != 200:
            self.refused.append(answer)
            return
        if "murmur.dev/delegation" not in notes:
            self.roots[job["metadata"]["name"]] = answer["credential"]
            return
        self.registered[notes["murmur.dev/delegation"]] = time.monotonic()
        self.referee.ask("/deregister", {"outcome": "complete", "completion": {"status": "ok", "duration_ms": 1, "result": "done"}},
                         x_murmur_spawn_credential=answer["credential"])
        self.status(pod, {"phase": "Succeeded", "containerStatuses": [{
            "name": "mur", "image": "x", "imageID": "x", "ready": False, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]})

    def close(self):
        self.is_open = False
        self.thread.join(30)
        self.pool.shutdown()

# SPDX-License-Identifier: Apache-2.0
#
# The sessions of pods that run nothing (tests/support/fleet_engines.py, Kwok): for each pod, what a session in it would say to the
# referee. For as many sessions as a machine of tests could never run.

import http.client
import json
import os
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

MERGE = "application/merge-patch+json"


def session_id():
    return f"ses_{int(time.time() * 1000):012x}7{os.urandom(2).hex()[:3]}8{os.urandom(8).hex()[:15]}"


class Referee:
    """One client of mur-roost, as a session is."""

    def __init__(self, url):
        self.url = urllib.parse.urlsplit(url)

    def ask(self, path, body=None, **headers):
        wire = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=60)
        wire.request("POST" if body else "GET", path, body and json.dumps(body), {
            "content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}})
        answer = wire.getresponse()
        try:
            return answer.status, json.loads(answer.read())
        finally:
            wire.close()


class Kept:
    """An Api whose every thread keeps its connection: a new one a call would be most of the work."""

    def __init__(self, api):
        self.api, self.mine = api, threading.local()

    def call(self, method, path, body=None, content_type="application/json"):
        for attempt in (1, 2):
            wire = getattr(self.mine, "wire", None) or http.client.HTTPSConnection(self.api.url.hostname, self.api.url.port, timeout=60,
                                                                                   context=self.api.context)
            self.mine.wire = wire
            try:
                wire.request(method, path, None if body is None else json.dumps(body),
                             {"authorization": f"Bearer {self.api.token}", "content-type": content_type})
                answer = wire.getresponse()
                return answer.status, json.loads(answer.read() or b"{}")
            except (OSError, http.client.HTTPException):
                wire.close()
                self.mine.wire = None
                if attempt == 2 or method == "POST":
                    raise
        return None


class Watch:
    """Every object of a kind and each change of one, told to `look(what, object)` in a thread of its own: what is "LISTED" first, and
    again, after `forget()`, where the API server no longer knows what came since."""

    def __init__(self, api, kind):
        self.api, self.path, self.is_open = api, api.path(kind), True
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        version = None
        while self.is_open:
            try:
                version = self.follow(version or self.list())
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                version = None
                time.sleep(0.2)

    def list(self):
        answer = self.api.call("GET", self.path)[1]
        self.forget()
        for one in answer["items"]:
            self.look("LISTED", one)
        return answer["metadata"]["resourceVersion"]

    def follow(self, version):
        """Where the stream ended; None: to be listed again."""
        wire = http.client.HTTPSConnection(self.api.url.hostname, self.api.url.port, timeout=20, context=self.api.context)
        try:
            wire.request("GET", f"{self.path}?watch=true&timeoutSeconds=15&resourceVersion={version}",
                         headers={"authorization": f"Bearer {self.api.token}"})
            answer = wire.getresponse()
            while self.is_open and (line := answer.readline()):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return None
                version = event["object"]["metadata"]["resourceVersion"]
                self.look(event["type"], event["object"])
            return version
        finally:
            wire.close()

    def forget(self):
        pass

    def close(self):
        self.is_open = False
        self.thread.join(30)


class Children(Watch):
    """The Jobs of delegations as they were last seen: the cluster takes each away ten minutes after its end. `ended` well, `failed`, and
    how many were let go and not over at the most."""

    def __init__(self, api):
        self.ended, self.failed, self.at_work, self.most = {}, {}, set(), 0
        super().__init__(api, "jobs")

    def look(self, what, job):
        name, status = job["metadata"]["name"], job.get("status", {})
        if "murmur.dev/delegation" not in job["metadata"].get("annotations", {}):
            return
        over = {one["type"] for one in status.get("conditions", []) if one["status"] == "True"} & {"Complete", "Failed"}
        if over:
            (self.ended if over == {"Complete"} else self.failed)[name] = job
        is_at_work = what != "DELETED" and not over and job["spec"]["suspend"] is False
        (self.at_work.add if is_at_work else self.at_work.discard)(name)
        self.most = max(self.most, len(self.at_work))

    def forget(self):
        self.at_work = set()


class SimulatedSessions(Watch):
    """`roots` keeps the credential of each root's Job; `registered` when each child was, by its delegation; `pods` how many pods each
    had. `stays`: children go on until told to end."""

    def __init__(self, api, roost_url, workers=16, stays=False):
        self.kept, self.referee, self.stays = Kept(api), Referee(roost_url), stays
        self.roots, self.registered, self.refused, self.pods, self.seen = {}, {}, [], {}, set()
        self.credentials, self.writes = {}, 0
        self.pool = ThreadPoolExecutor(workers)
        super().__init__(api, "pods")

    def look(self, what, pod):
        uid = pod["metadata"]["uid"]
        if what != "DELETED" and pod.get("status", {}).get("phase") == "Running" and uid not in self.seen:
            self.seen.add(uid)
            self.pool.submit(self.live, pod)

    def live(self, pod):
        try:
            self.begin(pod)
        except (OSError, http.client.HTTPException, ValueError, KeyError) as fault:
            self.refused.append(repr(fault))

    def begin(self, pod):
        meta = pod["metadata"]
        job = self.kept.call("GET", self.api.path("jobs", meta["labels"]["job-name"]))[1]
        notes = job["metadata"]["annotations"]
        token = self.kept.call("POST", self.api.path("serviceaccounts", "murmur-session/token"), {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {
                "audiences": ["mur-roost"], "expirationSeconds": 600, "boundObjectRef": {
                    "kind": "Pod", "apiVersion": "v1", "name": meta["name"], "uid": meta["uid"]}}})[1]["status"]["token"]
        status, answer = self.referee.ask("/register", {"session_id": session_id(), "name": notes["murmur.dev/name"],
                                                        "version": notes["murmur.dev/version"]}, x_murmur_pod_token=token)
        if status != 200:
            self.refused.append(answer)
            return
        delegation = notes.get("murmur.dev/delegation")
        if not delegation:
            self.roots[job["metadata"]["name"]] = answer["credential"]
            return
        self.pods[delegation] = self.pods.get(delegation, 0) + 1
        self.registered[delegation] = time.monotonic()
        self.credentials[delegation] = (answer["credential"], meta["name"])
        if not self.stays:
            self.end(delegation)

    def end(self, delegation):
        """Its work is done, as its session says and then its pod."""
        credential, name = self.credentials[delegation]
        self.referee.ask("/deregister", {"outcome": "complete", "completion": {"status": "ok", "duration_ms": 1, "result": "done"}},
                         x_murmur_spawn_credential=credential)
        self.writes += 1  # the tests' own: how kwok is told
        self.kept.call("PATCH", self.api.path("pods", name), {"metadata": {"annotations": {"tests/ended": "yes"}}}, MERGE)

    def close(self):
        super().close()
        self.pool.shutdown()

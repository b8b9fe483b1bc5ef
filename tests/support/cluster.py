# SPDX-License-Identifier: Apache-2.0
#
# A cluster small enough for a test: an API server that keeps Jobs and pods and follows them as the real controllers would, and a
# node, which runs each pod's arguments as a process of this machine. The node speaks the API's own protocol, so that it serves a
# real API server as well (tests/real).

import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import threading
import time
import urllib.parse
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAMESPACE = "tenant"
GROUPS = {"jobs": "apis/batch/v1", "deployments": "apis/apps/v1", "pods": "api/v1"}


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def merge(target, patch):
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            merge(target[key], value)
        else:
            target[key] = value


class Refused(Exception):
    def __init__(self, status, reason, message):
        super().__init__(message)
        self.status = {"kind": "Status", "status": "Failure", "code": status, "reason": reason, "message": message}


class ScriptedServer:
    """The API server and the controllers of Jobs and of garbage. `job_quota`: Jobs it takes, None: all. `is_holding`: pods are
    created, but of no Job (a queue). `before` is called with (method, path) and may raise ConnectionError or Refused; so is `after`,
    when the call was carried out and is not answered yet."""

    def __init__(self):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.objects = {"jobs": {}, "deployments": {}, "pods": {}, "events": {}}
        self.tokens = {}
        self.events = []
        self.version = 10
        self.job_quota, self.is_holding = None, False
        self.creations, self.is_open = 0, True
        self.before = self.after = lambda method, path: None
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                try:
                    cluster.before(self.command, self.path)
                    url = urllib.parse.urlsplit(self.path)
                    query = dict(urllib.parse.parse_qsl(url.query))
                    if query.get("watch"):
                        return self.stream(url.path.rsplit("/", 1)[1], int(query["resourceVersion"]))
                    answer, status = cluster.handle(self.command, url.path, json.loads(body) if body else None), 200
                    if self.command == "POST":
                        status = 201
                    cluster.after(self.command, self.path)
                except Refused as refused:
                    answer, status = refused.status, refused.status["code"]
                except ConnectionError:
                    self.close_connection = True
                    return None
                text = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
                return None

            def stream(self, kind, version):
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("connection", "close")
                self.end_headers()
                self.close_connection = True
                try:
                    for event in cluster.follow(kind, version):
                        self.wfile.write(json.dumps(event).encode() + b"\n")
                        self.wfile.flush()
                except OSError:
                    pass

            do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = handle_any

            def log_message(self, *_arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        with self.lock:
            self.is_open = False
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def kubeconfig(self, path):
        path.write_text(json.dumps({
            "current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x", "namespace": NAMESPACE}}],
            "clusters": [{"name": "x", "cluster": {"server": self.url}}], "users": [{"name": "x", "user": {"token": "referee"}}]}))
        return path

    # --- the API ---

    def handle(self, method, path, body):
        parts = path.strip("/").split("/")
        if parts[-1] == "tokenreviews":
            return self.review(body["spec"])
        at = parts.index("namespaces")
        kind, name, sub = (parts[at + 2:] + [None, None])[:3]
        with self.lock:
            if kind == "serviceaccounts":
                return self.issue(body)
            if method == "POST" and sub == "binding":
                return {}
            if method == "POST":
                return self.create(kind, body)
            if method == "GET" and name is None:
                return {"metadata": {"resourceVersion": str(self.version)}, "items": list(self.objects[kind].values())}
            found = self.objects[kind].get(name)
            if found is None:
                raise Refused(404, "NotFound", f"{kind} {name} not found")
            if method == "GET":
                return found
            if method == "PATCH":
                return self.patch(kind, found, body)
            return self.delete(kind, found, body or {})

    def issue(self, body):
        pod = body["spec"]["boundObjectRef"]
        token = f"token-{uuid.uuid4().hex}"
        self.tokens[token] = (pod["name"], pod["uid"], body["spec"]["audiences"])
        return {"status": {"token": token}}

    def review(self, spec):
        name, uid, audiences = self.tokens.get(spec["token"], (None, None, []))
        if not set(audiences) & set(spec["audiences"]):
            return {"status": {"authenticated": False}}
        extra = {"authentication.kubernetes.io/pod-name": [name], "authentication.kubernetes.io/pod-uid": [uid]}
        return {"status": {"authenticated": True, "audiences": spec["audiences"],
                           "user": {"username": f"system:serviceaccount:{NAMESPACE}:murmur-session", "extra": extra if name else {}}}}

    def create(self, kind, body):
        name = body["metadata"]["name"]
        if name in self.objects[kind]:
            raise Refused(409, "AlreadyExists", f'{kind} "{name}" already exists')
        if kind == "jobs" and self.job_quota is not None and len(self.objects["jobs"]) >= self.job_quota:
            raise Refused(403, "Forbidden", f'jobs.batch "{name}" is forbidden: exceeded quota: sessions, requested: '
                          f"count/jobs.batch=1, used: count/jobs.batch={self.job_quota}, limited: count/jobs.batch={self.job_quota}")
        body["metadata"].update({"uid": str(uuid.uuid4()), "creationTimestamp": now()})
        self.objects[kind][name] = body
        self.creations += kind == "jobs"
        self.write(kind, body, "ADDED")
        self.control()
        return body

    def patch(self, kind, found, body):
        version = body.get("metadata", {}).pop("resourceVersion", None)
        if version and version != found["metadata"]["resourceVersion"]:
            raise Refused(409, "Conflict", "the object has been modified")
        merge(found, body)
        self.write(kind, found, "MODIFIED")
        self.control()
        return found

    def delete(self, kind, found, options):
        meta = found["metadata"]
        if options.get("preconditions", {}).get("uid", meta["uid"]) != meta["uid"]:
            raise Refused(409, "Conflict", "another uid")
        is_running = kind == "pods" and found.get("status", {}).get("phase") == "Running"
        if is_running and options.get("gracePeriodSeconds") != 0:
            meta.setdefault("deletionTimestamp", now())
            meta["deletionGracePeriodSeconds"] = options.get("gracePeriodSeconds", 25)
            self.write(kind, found, "MODIFIED")
        elif self.objects[kind].pop(meta["name"], None):
            self.write(kind, found, "DELETED")
            self.collect(meta["uid"])
        return found

    def collect(self, uid):
        """What is owned by something that is gone goes, too."""
        for kind in self.objects:
            for one in list(self.objects[kind].values()):
                if any(owner["uid"] == uid for owner in one["metadata"].get("ownerReferences", [])):
                    self.delete(kind, one, {})

    def control(self):
        """Jobs: a pod each, and its end is theirs."""
        for name, job in list(self.objects["jobs"].items()):
            pods = [pod for pod in self.objects["pods"].values() if pod["metadata"]["labels"].get("job-name") == name]
            status = job.setdefault("status", {})
            if not pods and not status and not self.is_holding and not job["spec"].get("suspend"):
                template = json.loads(json.dumps(job["spec"]["template"]))
                self.create("pods", {"metadata": {
                    "name": f"{name}-{uuid.uuid4().hex[:5]}", "namespace": NAMESPACE,
                    "labels": {**template["metadata"].get("labels", {}), "job-name": name},
                    "ownerReferences": [{"kind": "Job", "name": name, "uid": job["metadata"]["uid"], "controller": True}]},
                    "spec": template["spec"], "status": {"phase": "Pending"}})
            phases = {pod["status"]["phase"] for pod in pods}
            if phases & {"Succeeded", "Failed"} and not status.get("conditions"):
                is_well = "Succeeded" in phases
                status["conditions"] = [{"type": "Complete" if is_well else "Failed", "status": "True", "reason": "x", "message": "x"}]
                self.write("jobs", job, "MODIFIED")

    def write(self, kind, found, what):
        self.version += 1
        found["metadata"]["resourceVersion"] = str(self.version)
        self.events.append((self.version, kind, {"type": what, "object": json.loads(json.dumps(found))}))
        self.changed.notify_all()

    def follow(self, kind, version):
        at = 0
        while True:
            with self.lock:
                while at >= len(self.events) and self.is_open:
                    self.changed.wait(1)
                if not self.is_open:
                    return
                fresh, at = self.events[at:], len(self.events)
            yield from (event for number, its_kind, event in fresh if number > version and its_kind == kind)


class Api:
    """A client of an API server, ours or the real one."""

    def __init__(self, url, token="admin", ca=None):
        self.url, self.token = urllib.parse.urlsplit(url), token
        self.context = ssl.create_default_context(cafile=str(ca)) if ca else None

    def call(self, method, path, body=None, content_type="application/json"):
        wire = (http.client.HTTPSConnection(self.url.hostname, self.url.port, timeout=30, context=self.context) if self.context
                else http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=30))
        try:
            wire.request(method, path, None if body is None else json.dumps(body),
                         {"authorization": f"Bearer {self.token}", "content-type": content_type})
            answer = wire.getresponse()
            return answer.status, json.loads(answer.read() or b"{}")
        finally:
            wire.close()

    def path(self, kind, name=None, namespace=NAMESPACE):
        return f"/{GROUPS.get(kind, 'api/v1')}/namespaces/{namespace}/{kind}{'/' + name if name else ''}"

    def list(self, kind):
        return self.call("GET", self.path(kind))[1].get("items", [])

    def get(self, kind, name):
        status, found = self.call("GET", self.path(kind, name))
        return found if status == 200 else None


def expanded(word, variables):
    """As a kubelet writes $(NAME) and $$."""
    return re.sub(r"\$\$|\$\((\w+)\)", lambda found: "$" if found[0] == "$$" else variables.get(found[1], found[0]), word)


class Node:
    """Plays the kubelet: each pod's container is `mur` with its arguments, in a home of its own that has the lab's store. `files`: what
    each finds in its work folder, by name; `places`: what lies where else, by its path in the pod."""

    def __init__(self, lab, api, environment=None):
        self.lab, self.api, self.environment = lab, api, environment or {}
        self.running, self.logs, self.first_seen, self.files, self.places = {}, {}, {}, {}, {}
        self.count, self.is_open, self.is_starting = 10, True, True
        self.deaf = set()  # pods whose deletion it does not hear of, by uid
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while self.is_open:
            try:
                pods = {pod["metadata"]["uid"]: pod for pod in self.api.list("pods")}
                for uid, pod in pods.items():
                    if uid not in self.deaf:
                        self.tend(uid, pod)
                for uid in [uid for uid in self.running if uid not in pods and uid not in self.deaf]:
                    self.end(uid, 0)
            except (OSError, http.client.HTTPException, ValueError):
                pass
            time.sleep(0.05)

    def tend(self, uid, pod):
        meta, phase = pod["metadata"], pod.get("status", {}).get("phase", "Pending")
        process = self.running.get(uid)
        if process is None and phase == "Pending" and self.is_starting and "deletionTimestamp" not in meta:
            self.start(uid, pod)
        elif process is not None and process.poll() is not None:
            self.say_end(uid, pod, process.returncode)
        elif "deletionTimestamp" in meta:
            threading.Thread(target=self.end_deleted, args=(uid, pod), daemon=True).start() if uid not in self.first_seen else None
            self.first_seen[uid] = True

    def address(self):
        """Of its own among the tests that run at the same time."""
        number = os.getpid() * 256 + self.count % 250 + 1
        return f"127.{16 + (number >> 16) % 200}.{number >> 8 & 255}.{number & 255}"

    def start(self, uid, pod):
        self.count += 1
        name, address = pod["metadata"]["name"], self.address()
        home = self.lab.directory / "pods" / name
        (home / ".murmur").mkdir(parents=True)
        (home / "work").mkdir()
        for file, text in self.files.items():
            (home / "work" / file).write_text(text)
        (home / ".murmur/artifacts").symlink_to(self.lab.murmur_home / "artifacts")
        container = pod["spec"]["containers"][0]
        self.api.call("POST", self.api.path("pods", f"{name}/binding"), {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "here"}})
        account = pod["spec"].get("serviceAccountName", "default")
        status, answer = self.api.call("POST", self.api.path("serviceaccounts", f"{account}/token"), {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {
                "audiences": ["mur-roost"], "expirationSeconds": 600,
                "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": uid}}})
        if status >= 300:
            return
        (home / "token").write_text(answer["status"]["token"])
        environment = {**self.lab.environment(self.environment), "HOME": str(home)}
        environment.update({one["name"]: one["value"] for one in container.get("env", []) if "value" in one and one["name"] != "HOME"})
        places = {**self.places, "/var/run/secrets/murmur/token": str(home / "token"), "/work": str(home / "work"), "0.0.0.0": address,
                  "/var/run/secrets/murmur.dev/keys": str(home / "keys")}
        (home / "keys").mkdir(exist_ok=True)
        own = {one["name"]: address for one in container.get("env", []) if "fieldRef" in one.get("valueFrom", {})}
        environment.update(own)
        arguments = [expanded(places.get(word, word), own) for word in container["args"]]
        log = (home / "log").open("wb")
        self.logs[name] = home / "log"
        self.running[uid] = subprocess.Popen([self.lab.mur_path, *arguments], env=environment, cwd=home / "work",
                                             stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        log.close()
        self.status(pod, {"phase": "Running", "podIP": address, "hostIP": "127.0.0.1", "startTime": now(),
                          "podIPs": [{"ip": address}]})

    def status(self, pod, status):
        self.api.call("PATCH", self.api.path("pods", pod["metadata"]["name"] + "/status"), {"status": status},
                      "application/merge-patch+json")

    def say_end(self, uid, pod, code, reason=None):
        if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            return
        code = 128 - code if code < 0 else code
        log = self.logs.get(pod["metadata"]["name"])
        last = log.read_text(errors="replace")[-1000:] if log else ""
        self.status(pod, {"phase": "Failed" if code else "Succeeded", "containerStatuses": [{
            "name": "mur", "image": "x", "imageID": "x", "ready": False, "restartCount": 0, "state": {"terminated": {
                "exitCode": code, "reason": reason or ("Error" if code else "Completed"), "message": last if code else ""}}}]})

    def end(self, uid, grace):
        process = self.running.get(uid)
        if process and process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(grace)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def end_deleted(self, uid, pod):
        self.end(uid, pod["metadata"].get("deletionGracePeriodSeconds", 25))
        name = pod["metadata"]["name"]
        try:
            self.api.call("DELETE", self.api.path("pods", name), {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})
        except (OSError, http.client.HTTPException, ValueError):
            self.first_seen.pop(uid, None)  # said again

    def process_of(self, pod):
        return self.running.get(pod["metadata"]["uid"])

    def close(self):
        self.is_open = False
        self.thread.join(10)
        for uid in list(self.running):
            self.end(uid, 5)


def root_job(name, capsule, version, task=None, roost_url="", arguments=()):
    """What a deploy renders of a root, as far as the referee looks."""
    words = ["run", "--capsule", capsule, "--capsule-version", version, "--workdir", "/work", "--bind", "0.0.0.0", "--port", "8080",
             "--fleet-token", "/var/run/secrets/murmur/token", "--no-env-file", *(["--task", task] if task else []), *arguments]
    labels = {"murmur.dev/root": name, "murmur.dev/capsule": capsule.split("/")[1]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {
        "name": name, "namespace": NAMESPACE, "labels": labels,
        "annotations": {"murmur.dev/name": capsule, "murmur.dev/version": version}},
        "spec": {"backoffLimit": 0, "template": {"metadata": {"labels": dict(labels)}, "spec": {
            "restartPolicy": "Never", "serviceAccountName": "murmur-session", "terminationGracePeriodSeconds": 25,
            "containers": [{"name": "mur", "image": "murmur", "args": words,
                            "env": [{"name": "MURMUR_ROOST_URL", "value": roost_url}]}]}}}}

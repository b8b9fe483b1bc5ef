# SPDX-License-Identifier: Apache-2.0
#
# A fleet in a lab: a cluster, its node, and the referee over them.

import json
import socket
import subprocess
import threading
import urllib.error
import urllib.request

import yaml

from .cluster import NAMESPACE, Api, Node, ScriptedServer, root_job
from .delegation import ask_door
from .lab import SLOWER
from .polling import eventually
from .roost import ROOST, Roost
from .spawn import publish_agent

ANNOTATION = "murmur.dev/"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def ask_referee(fleet, method, path, body=None, **headers):
    request = urllib.request.Request(fleet.roost.url + path, None if body is None else json.dumps(body).encode(), method=method, headers={
        "content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}})
    try:
        with urllib.request.urlopen(request, timeout=30 * SLOWER) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())


class FleetRoost(Roost):
    """mur-roost --backend kubernetes."""

    def __init__(self, lab, kubeconfig, port, *arguments):
        self.lab, self.port, self.url = lab, port, f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [str(ROOST), "--backend", "kubernetes", "--kubeconfig", str(kubeconfig), "--namespace", NAMESPACE, "--image", "murmur:1",
             "--roost-url", self.url, "--port", str(port), "--spawn-allow", "local/parent", *map(str, arguments)],
            env=lab.environment(), cwd=lab.directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            start_new_session=True)
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        eventually(lambda: any("listening" in line for line in self.lines) or self.process.poll() is not None, 40 * SLOWER,
                   "mur-roost is ready")
        assert self.process.poll() is None, self.lines


class Fleet:
    """A context manager. `cluster`: (kubeconfig, Api); without one a scripted server is started, as `server`."""

    def __init__(self, lab, *roost_arguments, cluster=None, placement="fleet"):
        self.lab = lab
        self.server = None if cluster else ScriptedServer()
        self.kubeconfig, self.api = cluster or (self.server.kubeconfig(lab.directory / "kubeconfig"), Api(self.server.url))
        self.key_file = lab.directory / "referee.key"
        self.key_file.write_bytes(bytes(range(64)))
        self.port = free_port()
        self.arguments = ["--placement", placement, "--key-file", self.key_file, *roost_arguments]
        self.roost, self.node = None, None

    def __enter__(self):
        self.start_roost()
        self.node = Node(self.lab, self.api)
        return self

    def start_roost(self, *arguments):
        self.roost = FleetRoost(self.lab, self.kubeconfig, self.port, *self.arguments, *arguments)

    def __exit__(self, *_exception):
        if self.node:
            self.node.close()
        if self.roost.process.poll() is None:
            self.roost.stop()
        if self.server:
            self.server.close()

    def publish(self, name, steps, **manifest):
        return publish_agent(self.lab, name, steps, **manifest)

    def publish_parent(self, *steps, children=("local/child",), name="parent", **manifest):
        capabilities = {**manifest.pop("capabilities", {}), "spawn": {"allow": list(children)}}
        return publish_agent(self.lab, name, list(steps), capabilities=capabilities, **manifest)

    def start_root(self, name="root-1", capsule="local/parent", task="go", arguments=()):
        status, answer = self.api.call("POST", self.api.path("jobs"), root_job(
            name, capsule, "0.1.0", task, self.roost.url, arguments))
        assert status < 300, answer
        return name

    def deploy_root(self, *arguments, name="parent"):
        """A root as `mur deploy render` makes it; the node finds the capsule's folder where the image would have it."""
        folder = self.lab.directory / "packages" / name
        self.node.places["/capsule/murmur.yaml"] = str(folder / "murmur.yaml")
        text = self.lab.mur("deploy", "render", "--to", "kubernetes", "--image", "murmur:1", "--namespace", NAMESPACE, "--roost-url",
                           self.roost.url, *arguments, cwd=folder).ok().stdout
        [job] = [one for one in yaml.safe_load_all(text) if one["kind"] == "Job"]
        status, answer = self.api.call("POST", self.api.path("jobs"), job)
        assert status < 300, answer
        return job

    # --- looking ---

    def children(self):
        return [job for job in self.api.list("jobs") if ANNOTATION + "delegation" in job["metadata"]["annotations"]]

    def annotation(self, job, name):
        return job["metadata"]["annotations"].get(ANNOTATION + name)

    def pods_of(self, job):
        return [pod for pod in self.api.list("pods") if pod["metadata"]["labels"].get("job-name") == job]

    def registered(self, count=1, within_s=30):
        """The children once so many are registered."""
        def all_of_them():
            found = [job for job in self.children() if self.annotation(job, "session")]
            return found if len(found) >= count else None
        return eventually(all_of_them, within_s * SLOWER, f"{count} children registered: {self.logs()}")

    def at_work(self, count=1, within_s=30):
        """The children once so many hold their task."""
        def has_task(job):
            return any('"task_start"' in trace.read_text() for pod in self.pods_of(job["metadata"]["name"])
                       for trace in self.home_of(pod).glob(".murmur/records/**/trace.jsonl"))

        def all_of_them():
            found = self.registered(count, within_s)
            return found if all(has_task(job) for job in found) else None
        return eventually(all_of_them, within_s * SLOWER, f"{count} children at work")

    def read_by_model(self, within_s=60, root="root-1"):
        """What the root's model was sent in the end."""
        return self.work_file(self.wait_end(root, within_s)).read_text()

    def wait_end(self, job, within_s=40):
        def ended():
            pods = self.pods_of(job)
            return pods and pods[0]["status"]["phase"] in ("Succeeded", "Failed") and pods[0]
        return eventually(ended, within_s * SLOWER, f"{job} ended")

    def logs(self):
        return {name: path.read_text(errors="replace") for name, path in self.node.logs.items()} | {"roost": self.roost.lines}

    def home_of(self, pod):
        return self.lab.directory / "pods" / pod["metadata"]["name"]

    def work_file(self, pod, name="request.json"):
        return self.home_of(pod) / "work" / name


__all__ = ["Fleet", "ask_door", "ask_referee"]

# SPDX-License-Identifier: Apache-2.0
#
# A capsule from its folder to a pod on a real node: built as an image, put into the node's store, deployed, run under the walls a pod
# has. Numbers are those of the design's cases.

import base64
import json
import subprocess
import time

import pytest

from tests.support.control_plane import ControlPlane
from tests.support.lab import SLOWER
from tests.support.polling import eventually
from tests.support.real_node import RealNode, no_node
from tests.support.service_address import ServiceAddress
from tests.support.spawn import publish_agent

LACKING = no_node()
pytestmark = pytest.mark.skipif(LACKING is not None, reason=LACKING or "")
STEPS = [{"tool_calls": [{"name": "bash", "input": {"command": "id -u; echo made > here; cat here; cat /var/run/secrets/kubernetes.io/*/token"}}]},
         {"text": "it is done"}]
# What the command found stays to be read while its session goes on.
TOLD = [{"tool_calls": [{"name": "bash", "input": {"command": "id -u > here; cat /var/run/secrets/kubernetes.io/*/token; echo $? >> here"}}]},
        {"text": "it is done", "delay_ms": 15_000}]


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    with ControlPlane(tmp_path_factory.mktemp("plane") / "control", ["--controllers=deployment-controller,replicaset-controller"]) as plane, RealNode(plane) as node:
        plane.api.call("PATCH", "/api/v1/namespaces/tenant", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
                       "application/merge-patch+json")
        plane.api.call("DELETE", "/api/v1/nodes/here")
        yield node


class Deployed:
    def __init__(self, lab, node, name, steps, *words, capabilities=None, **manifest):
        self.lab, self.node, self.api = lab, node, node.plane.api
        self.project = lab.project(name, {
            "name": name, "version": "1.0.0", "artifacts": [{"name": "std/driver-scripted", "version": "0.1.0", "runtime": "driver"}],
            "inference": {"model": "m", "max_tokens": 1000, "driver": {"artifact": "std/driver-scripted", "config": {"steps": steps}}},
            "capabilities": capabilities or {"containment": "scoped", "shell": {"allow": ["bash", "cat", "id"]}}, **manifest})
        self.project.mur("image", "build", "--base", node.base, "-o", "image").ok()
        self.digest = node.take(self.project / "image", f"docker.io/local/{name}")
        self.began = time.monotonic()
        self.project.mur("deploy", "apply", "--to", "kubernetes", "--namespace", "tenant", "--image", f"docker.io/local/{name}", "--layout", "image",
                         "--kubeconfig", node.plane.directory / "admin.json", *words).ok()
        self.name = f"mur-{name}"

    def pod(self):
        found = [pod for pod in self.api.list("pods") if pod["metadata"]["name"].startswith(self.name + "-")]
        return found[0] if found else None

    def phase(self, *phases):
        def there():
            pod = self.pod()
            return pod and pod.get("status", {}).get("phase") in phases and pod
        return eventually(there, 120 * SLOWER, lambda: f"{phases}: {json.dumps(self.pod())[-1500:]} {self.node.log_of(self.pod())}", every_s=0.3)


def test_fleet_6_33_an_image_is_a_pod_of_the_restricted_level_and_its_commands_are_walled(lab, node):
    """containerd takes the image by the digest that mur says; commands run as `scoped` without namespaces; no token of the API is there."""
    deployed = Deployed(lab, node, "scoped-one", TOLD, "--task", "go")
    pod = deployed.phase("Running")

    def here():
        volumes = node.directory / "kubelet/pods" / pod["metadata"]["uid"] / "volumes/kubernetes.io~empty-dir"
        found = [path.read_text().split() for path in volumes.glob("**/here")]
        return found and len(found[0]) == 2 and found[0]
    print("\napply to its command's word on a real node, s:", end=" ")
    user, no_token = eventually(here, 30 * SLOWER, lambda: f"the command has run: {node.log_of(pod)}", every_s=0.2)
    print(round(time.monotonic() - deployed.began, 1))
    assert user != "0" and no_token == "1"
    pod = deployed.phase("Succeeded", "Failed")
    log = node.log_of(pod)
    assert pod["status"]["phase"] == "Succeeded" and "status:  ok" in log, log
    assert deployed.digest in pod["spec"]["containers"][0]["image"]
    assert "E-CAP-" not in log, log


def test_fleet_34_under_the_profile_a_pod_keeps_sealed(lab, node):
    profiles = node.directory / "kubelet/seccomp"
    profiles.mkdir(exist_ok=True)
    (profiles / "murmur.json").write_text(lab.mur("deploy", "profile").ok().stdout)
    deployed = Deployed(lab, node, "sealed-one", STEPS, "--task", "go", "--seccomp-profile", "murmur.json",
                        capabilities={"containment": "sealed", "shell": {"allow": ["bash", "cat", "id"]}})
    pod = deployed.phase("Succeeded", "Failed")
    log = node.log_of(pod)
    assert pod["status"]["phase"] == "Succeeded" and "status:  ok" in log, log
    assert "a root of their own (mount namespace)" in log and "network (a namespace of their own)" in log, log


def test_fleet_35_a_deleted_pod_winds_down_within_its_grace(lab, node):
    deployed = Deployed(lab, node, "long-one", [{"text": "never said", "delay_ms": 240_000}], "--task", "go")
    pod = deployed.phase("Running")
    eventually(lambda: "session: " in node.log_of(pod), 60 * SLOWER, "it has begun")

    def row():
        told = lab.mur("ps", "--fleet", "--namespace", "tenant", "--kubeconfig", node.plane.directory / "admin.json").ok().stdout
        return next(line for line in told.splitlines() if deployed.name in line)
    eventually(lambda: " running " in row(), 30 * SLOWER, row, every_s=0.3)  # its Job counts a ready pod a second later
    began = time.monotonic()
    lab.mur("stop", "--fleet", "--namespace", "tenant", "--kubeconfig", node.plane.directory / "admin.json", deployed.name).ok()
    kept = node.log_of(pod)
    eventually(lambda: deployed.pod() is None, 40 * SLOWER, lambda: f"the pod is gone: {kept}", every_s=0.2)
    assert time.monotonic() - began < 25 * SLOWER, "its own word, not the kubelet's KILL"


ROOST_ADDRESS = "10.96.0.77"


def test_fleet_12_the_printed_referee_runs_in_the_cluster_and_knows_its_pods(lab, node):
    """`mur deploy referee | kubectl apply`, exactly: it asks the API server by its account, ends TLS with a certificate of an authority
    the image does not know, and the session of a pod that trusts that (--ca) registers by its projected token."""
    plane, api = node.plane, node.plane.api
    publish_agent(lab, "lead", [{"text": "it is done"}], capabilities={"spawn": {"allow": ["local/lead"]}})
    folder = lab.directory / "packages/lead"
    lab.mur("image", "build", ".", "local/lead@0.1.0", "--base", node.base, "-o", lab.directory / "image", cwd=folder).ok()
    digest = node.take(lab.directory / "image", "docker.io/local/lead")
    image = f"docker.io/local/lead@{digest}"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "tls.key", "-out", "tls.crt", "-days", "2", "-subj", "/CN=roost",
                    "-addext", f"subjectAltName=IP:{ROOST_ADDRESS}"], cwd=lab.directory, check=True, capture_output=True)

    def coded(data):
        return base64.b64encode(data).decode()
    certificate, key = ((lab.directory / name).read_bytes() for name in ("tls.crt", "tls.key"))
    for kind, body in [("secrets", {"metadata": {"name": "mur-roost"}, "data": {"key": coded(bytes(range(64)))}}),
                       ("secrets", {"metadata": {"name": "mur-roost-tls"}, "type": "kubernetes.io/tls", "data": {"tls.crt": coded(certificate), "tls.key": coded(key)}}),
                       ("configmaps", {"metadata": {"name": "team-ca"}, "data": {"ca.crt": certificate.decode()}}),
                       # What a controller that is not run here puts into every namespace.
                       ("configmaps", {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": plane.ca.read_text()}})]:
        status, answer = api.call("POST", api.path(kind), body)
        assert status == 201, answer
    printed = lab.mur("deploy", "referee", "--namespace", "tenant", "--image", image, "--roost-url", f"https://{ROOST_ADDRESS}", "--ca", "team-ca", "local/lead").ok().stdout
    applied = subprocess.run(["kubectl", "--kubeconfig", plane.directory / "admin.json", "apply", "-f", "-"], input=printed, text=True, capture_output=True)
    assert applied.returncode == 0, applied.stderr

    def referee():
        found = [pod for pod in api.list("pods") if pod["metadata"]["labels"].get("murmur.dev/fleet") == "referee"]
        return found[0] if found else None

    def is_ready():
        pod = referee()
        return pod and any(one["type"] == "Ready" and one["status"] == "True" for one in pod.get("status", {}).get("conditions", [])) and pod
    with ServiceAddress("10.96.0.1", ("127.0.0.1", plane.port)):
        pod = eventually(is_ready, 120 * SLOWER, lambda: f"the referee is ready: {json.dumps(referee())[-1500:]} {node.log_of(referee(), 'mur-roost')}", every_s=0.5)
        with ServiceAddress(ROOST_ADDRESS, (pod["status"]["podIP"], 7743)):
            lab.mur("deploy", "apply", "--to", "kubernetes", "--namespace", "tenant", "--image", image, "--roost-url", f"https://{ROOST_ADDRESS}", "--ca", "team-ca",
                    "--task", "go", "--kubeconfig", plane.directory / "admin.json", cwd=folder).ok()

            def session():
                job = api.get("jobs", "mur-lead")
                return job and job["metadata"]["annotations"].get("murmur.dev/session")

            def story():
                mine = [one for one in api.list("pods") if one["metadata"]["labels"].get("job-name") == "mur-lead"]
                return f"{node.log_of(pod, 'mur-roost')} {[node.log_of(one) for one in mine]} {json.dumps(mine)[-1500:]}"
            assert eventually(session, 120 * SLOWER, story, every_s=0.5).startswith("ses_")

# SPDX-License-Identifier: Apache-2.0
#
# What is put on a real control plane beside it (scripts/fleet-programs): Kueue, which admits Jobs by quota, and kwok, whose nodes run
# nothing and say of every pod that it runs.

import base64
import json
import shutil
import ssl
import subprocess
import urllib.request

import yaml

from .control_plane import folder, free_ports
from .cluster import NAMESPACE
from .lab import SLOWER
from .polling import eventually

APPLY = "application/apply-patch+yaml"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
PLURALS = {"CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
           "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
           "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
           "ResourceFlavor": f"{KUEUE}/resourceflavors", "ClusterQueue": f"{KUEUE}/clusterqueues",
           "LocalQueue": f"{KUEUE}/namespaces/{NAMESPACE}/localqueues", "Namespace": "/api/v1/namespaces", "Node": "/api/v1/nodes"}


def put(plane, body):
    """The object as it is, whatever is there."""
    path = f"{PLURALS[body['kind']]}/{body['metadata']['name']}?fieldManager=tests&force=true"
    status, answer = plane.api.call("PATCH", path, body, APPLY)
    return status < 300 or answer


def must_put(plane, body):
    answers = []

    def taken():
        answers.append(put(plane, body))
        return answers[-1] is True
    eventually(taken, 60 * SLOWER, lambda: f"{body['kind']} is taken: {answers[-1]}", every_s=0.3)


class Kueue:
    """A context manager over a ControlPlane."""

    def __init__(self, plane):
        self.plane, self.directory = plane, plane.directory / "kueue"
        self.port, self.health = free_ports(2)

    def __enter__(self):
        self.directory.mkdir()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "tls.key", "-out", "tls.crt", "-days", "2",
                        "-subj", "/CN=kueue", "-addext", "subjectAltName=IP:127.0.0.1"], cwd=self.directory, check=True, capture_output=True)
        manifests = folder() / "kueue-manifests"
        for path in sorted(manifests.glob("kueue*.yaml")):
            must_put(self.plane, yaml.safe_load(path.read_text()))
        must_put(self.plane, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}})
        kinds = {path.name.split("_")[1].removesuffix(".yaml") for path in manifests.glob("kueue*.yaml")}
        eventually(lambda: kinds <= {one["name"] for one in self.plane.api.call("GET", KUEUE)[1].get("resources", [])}, 60 * SLOWER,
                   "the API server knows Kueue's kinds", every_s=0.2)
        (self.directory / "config.json").write_text(json.dumps({
            "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "namespace": "kueue-system",
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self.health}"}, "metrics": {"bindAddress": "0"},
            "webhook": {"host": "127.0.0.1", "port": self.port, "certDir": str(self.directory)},
            "leaderElection": {"leaderElect": False}, "internalCertManagement": {"enable": False},
            "clientConnection": {"qps": 300, "burst": 600}, "integrations": {"frameworks": ["batch/job"]}}))
        # Certificates that others make for it are looked for at one place of the machine's own: a /etc of its own has them there.
        certificates = self.directory / "etc/kueue/metrics/certs"
        certificates.mkdir(parents=True)
        (self.directory / "work").mkdir()
        for name in ("tls.key", "tls.crt"):
            shutil.copy(self.directory / name, certificates / name)
        self.plane.start("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec",
                         f'mount -t overlay etc -o "lowerdir=/etc,upperdir={self.directory}/etc,workdir={self.directory}/work" /etc; exec "$0" "$@"',
                         str(folder() / "kueue"), "--config", str(self.directory / "config.json"), "--kubeconfig", "admin.json",
                         "--feature-gates=VisibilityOnDemand=false")
        try:
            eventually(self.is_ready, 120 * SLOWER, lambda: "Kueue is ready: " + (self.plane.directory / "unshare.log").read_text()[-2000:], every_s=0.3)
            for one in yaml.safe_load_all((manifests / "manifests.yaml").read_text()):
                self.judge(one)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/readyz", timeout=5) as answer:
                if answer.status != 200:
                    return False
            context = ssl.create_default_context(cafile=str(self.directory / "tls.crt"))
            urllib.request.urlopen(f"https://127.0.0.1:{self.port}/", timeout=5, context=context)
        except urllib.error.HTTPError:
            return True  # its webhooks listen, and know no such path
        except OSError:
            return False
        return True

    def judge(self, configuration):
        """Its webhooks for Jobs and for its own kinds, called where it listens."""
        ca = base64.b64encode((self.directory / "tls.crt").read_bytes()).decode()
        mine = [one for one in configuration["webhooks"] if one["rules"][0]["apiGroups"][0] in ("batch", "kueue.x-k8s.io")]
        for one in mine:
            path = one["clientConfig"]["service"]["path"]
            one["clientConfig"] = {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": ca}
        must_put(self.plane, {**configuration, "metadata": {"name": f"kueue-{configuration['kind'].lower()}"}, "webhooks": mine})

    def queue(self, name, pods):
        """A LocalQueue that admits so many pods at once."""
        must_put(self.plane, {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "any"}})
        quota = {"name": "any", "resources": [{"name": "cpu", "nominalQuota": "10000"}, {"name": "memory", "nominalQuota": "10000Gi"},
                                              {"name": "pods", "nominalQuota": str(pods)}]}
        must_put(self.plane, {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": name}, "spec": {
            "namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu", "memory", "pods"], "flavors": [quota]}]}})
        must_put(self.plane, {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
                              "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"clusterQueue": name}})

    def workloads(self):
        return self.plane.api.call("GET", f"{KUEUE}/namespaces/{NAMESPACE}/workloads")[1].get("items", [])

    def __exit__(self, *_exception):
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
            self.plane.api.call("DELETE", f"{PLURALS[kind]}/kueue-{kind.lower()}")
        self.plane.stop("unshare")
        shutil.rmtree(self.directory, ignore_errors=True)


# A node is ready at once. A pod runs once a node has it, and has ended once its session says so.
STAGES = """
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: node-is-ready}
spec:
  resourceRef: {apiGroup: v1, kind: Node}
  selector:
    matchExpressions:
    - {key: '.status.conditions.[] | select( .type == "Ready" ) | .status', operator: NotIn, values: ["True"]}
  next:
    statusTemplate: |
      {{ $now := Now }}
      allocatable: {cpu: "1000", memory: 1Ti, pods: "10000"}
      capacity: {cpu: "1000", memory: 1Ti, pods: "10000"}
      conditions:
      - {type: Ready, status: "True", reason: KubeletReady, message: "", lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }}}
      phase: Running
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-runs}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: DoesNotExist}
    - {key: '.status.phase', operator: In, values: [Pending]}
  next:
    statusTemplate: |
      {{ $now := Now }}
      conditions:
      - {lastTransitionTime: {{ $now | Quote }}, status: "True", type: Ready}
      containerStatuses:
      {{ range .spec.containers }}
      - image: {{ .image | Quote }}
        name: {{ .name | Quote }}
        ready: true
        restartCount: 0
        state: {running: {startedAt: {{ $now | Quote }}}}
      {{ end }}
      {{ with PodIPsWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) }}
      podIP: {{ index . 0 | Quote }}
      podIPs: [{ip: {{ index . 0 | Quote }}}]
      {{ end }}
      phase: Running
      startTime: {{ $now | Quote }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-ends}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: DoesNotExist}
    - {key: '.status.phase', operator: In, values: [Running]}
    - {key: '.metadata.annotations["tests/ended"]', operator: Exists}
  next:
    statusTemplate: |
      {{ $now := Now }}
      containerStatuses:
      {{ range .spec.containers }}
      - image: {{ .image | Quote }}
        name: {{ .name | Quote }}
        ready: false
        restartCount: 0
        started: false
        state: {terminated: {exitCode: 0, finishedAt: {{ $now | Quote }}, reason: Completed, startedAt: {{ $now | Quote }}}}
      {{ end }}
      phase: Succeeded
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-goes}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: Exists}
  next: {delete: true}
"""


class Kwok:
    """A context manager over a ControlPlane: the scheduler, and so many nodes that run nothing."""

    def __init__(self, plane, nodes):
        self.plane, self.nodes = plane, nodes

    def __enter__(self):
        for number in range(self.nodes):
            must_put(self.plane, {"apiVersion": "v1", "kind": "Node", "metadata": {
                "name": f"kwok-{number}", "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": {"kubernetes.io/os": "linux"}}})
            # What a new node is kept free by until a controller that is not run here has seen it.
            self.plane.api.call("PATCH", f"{PLURALS['Node']}/kwok-{number}", {"spec": {"taints": None}}, "application/merge-patch+json")
        (self.plane.directory / "stages.yaml").write_text(STAGES)
        [port] = free_ports(1)
        self.plane.start("kube-scheduler", "--kubeconfig=admin.json", "--leader-elect=false", f"--secure-port={port}", "--bind-address=127.0.0.1",
                         "--cert-dir=certs-scheduler", "--kube-api-qps=300", "--kube-api-burst=600")
        self.plane.start("kwok", "--kubeconfig", "admin.json", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
                         "--cidr=10.96.0.0/12", "--config", "stages.yaml")

        def are_ready():
            nodes = self.plane.api.call("GET", "/api/v1/nodes")[1].get("items", [])
            return sum(any(one["type"] == "Ready" and one["status"] == "True" for one in node.get("status", {}).get("conditions", []))
                       for node in nodes) >= self.nodes
        try:
            eventually(are_ready, 120 * SLOWER, lambda: "the nodes are ready: " + (self.plane.directory / "kwok.log").read_text()[-2000:], every_s=0.5)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_exception):
        for name in ("kwok", "kube-scheduler"):
            self.plane.stop(name)

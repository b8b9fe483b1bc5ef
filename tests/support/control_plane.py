# SPDX-License-Identifier: Apache-2.0
#
# A real control plane: etcd of the distribution, API server and controllers as scripts/fleet-programs builds them. What a node
# would be is tests/support/cluster.py's.

import json
import shutil
import socket
import ssl
import subprocess
import time
import urllib.request
from pathlib import Path

from .cluster import NAMESPACE, Api
from .lab import ROOT, SLOWER
from .polling import eventually

CONTROLLERS = ("job-controller,garbage-collector-controller,serviceaccount-controller,namespace-controller,"
               "ttl-after-finished-controller,resourcequota-controller")
RULES = [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "delete", "get", "list", "watch", "patch"]},
         {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "delete"]}]


def folder():
    """Where the programs are."""
    script = ROOT / "scripts/fleet-programs"
    return Path(subprocess.run([str(script), "--folder"], capture_output=True, text=True, check=True).stdout.strip())


def missing(*more):
    """Why there can be no control plane; None when there can."""
    lacking = [name for name in ("kube-apiserver", "kube-controller-manager", *more) if not (folder() / name).is_file()]
    if lacking:
        return f"{', '.join(lacking)} not built: scripts/fleet-programs"
    return None if shutil.which("etcd") else "etcd is not installed (Debian package etcd-server)"


def free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


class ControlPlane:
    """A context manager; one namespace, the account of sessions, and the referee's rights as docs/fleet.md lists them."""

    def __init__(self, directory, controller_arguments=()):
        self.directory, self.controller_arguments = directory, list(controller_arguments)
        self.directory.mkdir(parents=True)
        self.processes = {}
        self.etcd_port, self.etcd_peer, self.port, self.controller_port = free_ports(4)
        self.url, self.ca = f"https://127.0.0.1:{self.port}", directory / "certs/apiserver.crt"
        self.api = None

    def start(self, name, *arguments):
        program = folder() / name
        log = (self.directory / f"{name}.log").open("ab")
        # It ends with the tests, however those end.
        self.processes[name] = subprocess.Popen(["setpriv", "--pdeathsig", "TERM", str(program) if program.is_file() else name, *arguments],
                                                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory)
        log.close()

    def stop(self, name):
        process = self.processes.pop(name)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def start_etcd(self):
        self.start("etcd", "--data-dir", "etcd", "--unsafe-no-fsync", "--listen-client-urls", f"http://127.0.0.1:{self.etcd_port}",
                   "--advertise-client-urls", f"http://127.0.0.1:{self.etcd_port}", "--listen-peer-urls",
                   f"http://127.0.0.1:{self.etcd_peer}", "--log-level", "error", "--logger", "zap")

    def start_server(self):
        self.start("kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.etcd_port}", "--cert-dir=certs", f"--secure-port={self.port}",
                   "--bind-address=127.0.0.1", "--token-auth-file=tokens.csv", "--authorization-mode=RBAC",
                   "--service-account-issuer=https://fleet.test", "--service-account-key-file=sa.pub",
                   "--service-account-signing-key-file=sa.key", "--service-cluster-ip-range=10.96.0.0/16",
                   # The distribution's etcd cannot say how far a watch is, which lists by watching need.
                   "--feature-gates=WatchList=false", "-v=0")
        eventually(self.is_ready, 120 * SLOWER, "the API server is ready", every_s=0.3)

    def start_controllers(self):
        self.start("kube-controller-manager", "--kubeconfig=admin.json", "--service-account-private-key-file=sa.key",
                   f"--root-ca-file={self.ca}", "--leader-elect=false", f"--secure-port={self.controller_port}",
                   "--bind-address=127.0.0.1", "--cert-dir=certs-controllers", f"--controllers={CONTROLLERS}",
                   *self.controller_arguments)

    def is_ready(self):
        try:
            context = ssl.create_default_context(cafile=str(self.ca))
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5, context=context) as answer:
                return answer.status == 200
        except (OSError, ValueError):
            return False

    def kubeconfig(self, name, token):
        path = self.directory / f"{name}.json"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x", "namespace": NAMESPACE}}],
            "clusters": [{"name": "x", "cluster": {"server": self.url, "certificate-authority": str(self.ca)}}],
            "users": [{"name": "x", "user": {"token": token}}]}))
        return path

    def __enter__(self):
        for command in (["openssl", "genrsa", "-out", "sa.key", "2048"], ["openssl", "rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub"]):
            subprocess.run(command, cwd=self.directory, check=True, capture_output=True)
        (self.directory / "tokens.csv").write_text('admin,admin,1,"system:masters"\nreferee,referee,2\n')
        try:
            self.start_etcd()
            self.start_server()
            self.api = Api(self.url, "admin", self.ca)
            self.referee_config = self.kubeconfig("referee", "referee")
            self.kubeconfig("admin", "admin")
            self.start_controllers()
            self.furnish()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def furnish(self):
        def post(path, body):
            deadline = time.monotonic() + 60 * SLOWER
            while True:
                status, answer = self.api.call("POST", path, body)
                if status < 300 or status == 409:
                    return
                assert time.monotonic() < deadline, answer
                time.sleep(0.2)
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        subject = [{"kind": "User", "name": "referee", "apiGroup": "rbac.authorization.k8s.io"}]
        post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        post(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "murmur-session"}})
        post(f"{rbac}/namespaces/{NAMESPACE}/roles", {"metadata": {"name": "referee"}, "rules": RULES})
        post(f"{rbac}/namespaces/{NAMESPACE}/rolebindings", {"metadata": {"name": "referee"}, "subjects": subject, "roleRef": {
            "kind": "Role", "name": "referee", "apiGroup": "rbac.authorization.k8s.io"}})
        post(f"{rbac}/clusterrolebindings", {"metadata": {"name": "referee"}, "subjects": subject, "roleRef": {
            "kind": "ClusterRole", "name": "system:auth-delegator", "apiGroup": "rbac.authorization.k8s.io"}})
        post("/api/v1/nodes", {"metadata": {"name": "here"}})

    @property
    def cluster(self):
        return self.referee_config, self.api

    def __exit__(self, *_exception):
        for name in list(reversed(self.processes)):
            self.stop(name)

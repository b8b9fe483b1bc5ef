# SPDX-License-Identifier: Apache-2.0
#
# A real node beside a real control plane: the kubelet (scripts/fleet-programs kubelet) over the distribution's containerd, runc and
# network plugins, and the scheduler. Root alone has one. What a container may not do on such a machine is left out: an
# `oom_score_adj` below the daemon's own.

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from .control_plane import folder, free_ports, missing
from .debian_root import DebianRoot
from .lab import BUILD, ROOT, SLOWER
from .polling import eventually

PROGRAMS = ("containerd", "ctr", "runc")
PLUGINS = Path("/usr/lib/cni")
LIBRARIES = ("libcurl.so.4", "libmicrohttpd.so.12")
GROUP, GATEWAY = "murmur-node", "10.244.9.1"
CONTAINERD = """version = 2
root = "{0}/images"
state = "{0}/state"
[grpc]
  address = "{0}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "local/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{1}"
    conf_dir = "{0}/network"
"""
PAUSE = "#include <unistd.h>\n#include <signal.h>\nstatic void end (int s) { _exit (s * 0); }\nint main (void) { signal (SIGTERM, end); for (;;) pause (); }\n"


def no_node():
    """Why there can be none here; None when there can."""
    if os.geteuid() != 0:
        return "a node is root's"
    lacking = [name for name in PROGRAMS if not shutil.which(name)] or ([] if (PLUGINS / "ptp").exists() else [str(PLUGINS)])
    if lacking:
        return f"{', '.join(lacking)} not installed (Debian packages containerd, runc, containernetworking-plugins)"
    return missing("kubelet", "kube-scheduler")


def layout_of(root, command, to):
    """An OCI layout of one layer."""
    import gzip
    import hashlib
    blobs = to / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(data):
        digest = hashlib.sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {"digest": f"sha256:{digest}", "size": len(data)}
    tar = subprocess.run(["tar", "-C", root, "-cf", "-", "."], capture_output=True, check=True).stdout
    kind = "application/vnd.oci.image"
    layer = {"mediaType": f"{kind}.layer.v1.tar+gzip", **blob(gzip.compress(tar, 1))}
    config = {"mediaType": f"{kind}.config.v1+json", **blob(json.dumps({
        "architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], "Cmd": command},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}"]}}).encode())}
    manifest = blob(json.dumps({"schemaVersion": 2, "mediaType": f"{kind}.manifest.v1+json", "config": config, "layers": [layer]}).encode())
    (to / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    (to / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [
        {"mediaType": f"{kind}.manifest.v1+json", **manifest, "annotations": {"org.opencontainers.image.ref.name": "1"}}]}))
    return to


class RealNode:
    """A context manager over a ControlPlane: the node `real`, and the image of a Debian with mur at `base`, as a layout."""

    def __init__(self, plane):
        self.plane, self.processes = plane, []
        self.directory = Path(tempfile.mkdtemp(prefix="mnode-", dir="/var/tmp"))  # a socket's path is short
        self.base = self.directory / "base"

    def start(self, *command):
        with (self.directory / f"{Path(command[0]).name}.log").open("ab") as log:
            # It ends with the tests, however those end.
            self.processes.append(subprocess.Popen(["setpriv", "--pdeathsig", "TERM", *[str(word) for word in command]], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                   cwd=self.plane.directory))

    def ctr(self, *words, **how):
        return subprocess.run(["ctr", "-a", f"{self.directory}/containerd.sock", "-n", "k8s.io", *map(str, words)], capture_output=True, check=True, **how)

    def take(self, layout, name):
        """The image of a layout under this name, as a registry would give it."""
        archive = self.directory / "image.tar"
        subprocess.run(["tar", "-C", layout, "-cf", archive, "."], check=True)
        index = json.loads((Path(layout) / "index.json").read_text())["manifests"][0]
        tag = index["annotations"]["org.opencontainers.image.ref.name"]
        self.ctr("images", "import", "--snapshotter", "native", "--base-name", name, archive)
        archive.unlink()
        if tag != "1":
            self.ctr("images", "tag", f"{name}:{tag}", f"{name}@{index['digest']}")
        return index["digest"]

    def make_images(self):
        root = DebianRoot(self.directory / "root").folder
        subprocess.run([ROOT / "scripts/install", BUILD, "/usr/local"], env={**os.environ, "DESTDIR": str(root)}, check=True, capture_output=True)
        for at in [Path("/usr/lib/x86_64-linux-gnu") / library for library in LIBRARIES] + [BUILD / "mur-roost"]:
            needs = subprocess.run(["ldd", at], capture_output=True, text=True, check=True).stdout.split()
            for path in [*([] if at.parent == BUILD else [str(at)]), *[word for word in needs if word.startswith("/") and "ld-linux" not in word]]:
                to = root / "usr/lib/x86_64-linux-gnu" / Path(path).name
                if not to.exists():
                    shutil.copy(path, to)
        layout_of(root, ["mur"], self.base)
        pause = self.directory / "pause"
        pause.mkdir()
        subprocess.run(["cc", "-static", "-x", "c", "-o", pause / "pause", "-"], input=PAUSE.encode(), check=True)
        self.take(layout_of(pause, ["/pause"], self.directory / "pause-image"), "docker.io/local/pause")

    def make_group(self):
        """One group in each hierarchy for all pods."""
        for hierarchy in Path("/sys/fs/cgroup").iterdir():
            if (hierarchy / "cgroup.procs").exists():
                (hierarchy / GROUP).mkdir(exist_ok=True)
        cpuset = Path("/sys/fs/cgroup/cpuset")
        for name in ("cpuset.cpus", "cpuset.mems") if (cpuset / GROUP / "cpuset.cpus").exists() else ():
            (cpuset / GROUP / name).write_text((cpuset / name).read_text())

    @staticmethod
    def drop_group():
        for group in Path("/sys/fs/cgroup").glob(f"*/{GROUP}"):
            for base, _directories, _files in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):  # another node's
                    os.rmdir(base)

    @staticmethod
    def drop_networks():
        """What pods that still ran had of the machine's: the next node would give their addresses anew."""
        said = subprocess.run(["ip", "-o", "-4", "address"], capture_output=True, text=True).stdout
        for line in said.splitlines():
            if f" {GATEWAY}/32 " in line:
                subprocess.run(["ip", "link", "delete", line.split()[1]], capture_output=True)

    def __enter__(self):
        self.drop_networks()
        try:
            self.furnish()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def furnish(self):
        (self.directory / "network").mkdir()
        (self.directory / "network/10-pods.conflist").write_text(json.dumps({"cniVersion": "0.4.0", "name": "pods", "plugins": [{
            "type": "ptp", "ipMasq": False, "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.9.0/24"}]],
                                                     "dataDir": f"{self.directory}/addresses", "routes": [{"dst": "0.0.0.0/0"}]}}]}))
        (self.directory / "containerd.toml").write_text(CONTAINERD.format(self.directory, PLUGINS))
        self.start("containerd", "-c", self.directory / "containerd.toml")
        eventually(lambda: subprocess.run(["ctr", "-a", f"{self.directory}/containerd.sock", "version"], capture_output=True).returncode == 0,
                   60 * SLOWER, "containerd answers", every_s=0.3)
        self.make_images()
        self.make_group()
        port, scheduler = free_ports(2)
        (self.directory / "kubelet.json").write_text(json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "failCgroupV1": False, "cgroupDriver": "cgroupfs",
            "containerRuntimeEndpoint": f"unix://{self.directory}/containerd.sock", "address": "127.0.0.1", "port": port, "healthzPort": 0,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}}, "authorization": {"mode": "AlwaysAllow"},
            "failSwapOn": False, "enforceNodeAllocatable": [], "cgroupRoot": f"/{GROUP}", "makeIPTablesUtilChains": False,
            "podLogsDir": f"{self.directory}/logs", "localStorageCapacityIsolation": False,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"}}))
        self.start(folder() / "kubelet", "--config", self.directory / "kubelet.json", "--kubeconfig", "admin.json", "--hostname-override=real",
                   f"--root-dir={self.directory}/kubelet", f"--cert-dir={self.directory}/certificates")
        self.start(folder() / "kube-scheduler", "--kubeconfig=admin.json", "--leader-elect=false", f"--secure-port={scheduler}",
                   "--bind-address=127.0.0.1", f"--cert-dir={self.directory}/certificates")
        node = "/api/v1/nodes/real"

        def is_ready():
            status, found = self.plane.api.call("GET", node)
            return status == 200 and any(one["type"] == "Ready" and one["status"] == "True" for one in found.get("status", {}).get("conditions", []))
        eventually(is_ready, 120 * SLOWER, lambda: "the node is ready: " + (self.directory / "kubelet.log").read_text()[-2000:], every_s=0.5)
        self.plane.api.call("PATCH", node, {"spec": {"taints": None}}, "application/merge-patch+json")

    def log_of(self, pod, container="mur"):
        """What the pod's container said."""
        if pod is None:
            return ""
        meta = pod["metadata"]
        paths = sorted(self.directory.glob(f"logs/{meta['namespace']}_{meta['name']}_*/{container}/*.log"))
        return "".join(path.read_text() for path in paths)

    def __exit__(self, *_exception):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shims = subprocess.run(["pgrep", "-f", f"containerd-shim.*{self.directory}/containerd.sock"], capture_output=True, text=True).stdout.split()
        for shim in shims:
            subprocess.run(["pkill", "-KILL", "-P", shim])
            os.kill(int(shim), signal.SIGKILL)
        self.drop_networks()
        self.drop_group()
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if line.split()[1].startswith(str(self.directory))]
        for mount in sorted(mounts, reverse=True):
            subprocess.run(["umount", "-l", mount])
        subprocess.run(["rm", "-rf", self.directory])

# SPDX-License-Identifier: Apache-2.0
#
# mur inside real rootless containers: Podman with runc, a root of empty folders into which the host's /usr is mounted, and the
# system call filters that Podman, Docker and Kubernetes' restricted profile come with. What a container refuses is named in
# the report, what it leaves is used, and nothing of it is worked around.

import json
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.support.commands import answers, command_agent
from tests.support.hosts import PROBE, needs
from tests.support.lab import BUILD, ROOT
from tests.support.landlock import landlock_abi

PROFILE = Path("/usr/share/containers/seccomp.json")
# What Docker's profile wants CAP_SYS_ADMIN for, and Podman's gives.
OF_ADMINISTRATORS = {"unshare", "setns", "mount", "umount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen",
                     "fsconfig", "fsmount", "fspick", "mount_setattr", "clone3"}
NAMESPACE_FLAGS = 0x7e020000
KINDS = {
    "podman": [],
    "docker": ["--security-opt", "seccomp={profile}"],
    "kubernetes": ["--security-opt", "seccomp={profile}", "--security-opt", "no-new-privileges", "--cap-drop", "all", "--read-only",
                   "--tmpfs", "/tmp"],
}
REFUSES_NAMESPACES = ["docker", "kubernetes"]


def dockers_profile():
    profile = {**json.loads(PROFILE.read_text()), "defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 1, "defaultErrno": "EPERM"}
    for rule in profile["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name not in OF_ADMINISTRATORS and name != "clone"]
    profile["syscalls"] = [rule for rule in profile["syscalls"] if rule["names"]]
    profile["syscalls"].append({"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [
        {"index": 0, "value": NAMESPACE_FLAGS, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]})
    profile["syscalls"].append({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38, "args": []})
    return profile


class Containers:
    """Where containers start from: a root, the profiles, a home of Podman's own, all of an ordinary user's."""

    def __init__(self, folder):
        self.folder = folder
        root = folder / "root"
        for name in ("usr", "etc", "tmp", "proc", "dev", "sys", "run", "var/tmp"):
            (root / name).mkdir(parents=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            (root / name).symlink_to(f"usr/{name}")
        (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        (root / "etc/group").write_text("root:x:0:\n")
        (root / "var/secret").write_text("the container's\n")
        shutil.copy("/etc/ld.so.cache", root / "etc/ld.so.cache")
        shutil.copytree("/etc/alternatives", root / "etc/alternatives", symlinks=True)
        (folder / "docker.json").write_text(json.dumps(dockers_profile()))
        for name in ("home", "run"):
            (folder / name).mkdir(mode=0o700)
        self.user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None

    def give(self, *trees):
        """To the user the containers belong to."""
        for tree in trees if self.user else ():
            subprocess.run(["chown", "-R", f"{self.user.pw_uid}:{self.user.pw_gid}", tree], check=True)

    def command(self, kind, *mounts):
        hard = subprocess.run(["bash", "-c", "ulimit -Hn"], capture_output=True, text=True).stdout.strip()
        become = ["setpriv", "--reuid", self.user.pw_uid, "--regid", self.user.pw_gid, "--clear-groups"] if self.user else []
        limit = [] if hard == "unlimited" else ["--ulimit", f"nofile={hard}:{hard}"]
        options = [word.format(profile=self.folder / "docker.json") for word in KINDS[kind]]
        volumes = [word for path in ("/usr:/usr:ro", *mounts) for word in ("-v", path)]
        return [*map(str, become), "env", f"HOME={self.folder}/home", f"XDG_RUNTIME_DIR={self.folder}/run",
                f"PATH={os.environ['PATH']}:/usr/sbin:/sbin", "podman", "--log-level", "error", "--runtime", "runc",
                "--cgroup-manager", "cgroupfs", "run", "--rm", "--network", "none", *limit, "--ulimit", "nproc=4096:4096", *options,
                *volumes]


@pytest.fixture(scope="module")
def containers():
    for program in ("podman", "runc", "setpriv"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    if not PROFILE.is_file():
        pytest.skip(f"{PROFILE} is missing")
    folder = Path(tempfile.mkdtemp(prefix="murmur-containers-", dir="/var/tmp"))
    try:
        made = Containers(folder)
        made.give(folder)
        folder.chmod(0o755)
        tried = subprocess.run([*made.command("podman"), "--rootfs", folder / "root", "true"], capture_output=True, text=True, timeout=120)
        if tried.returncode:
            pytest.skip(f"no rootless container can be started here: {tried.stderr.strip()[-300:]}")
        yield made
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", folder])
        shutil.rmtree(folder, ignore_errors=True)


def inside(containers, lab, kind):
    """Makes the lab's mur run in a container of that kind, with the lab and the build at their own places."""
    lab.murmur_home.mkdir(exist_ok=True)
    (lab.murmur_home / "config.yaml").write_text("resources: {cgroup: optional}\n")
    for parent in (lab.directory, *lab.directory.parents[:-2]):
        if parent.stat().st_uid == os.geteuid() and str(parent) not in ("/tmp", "/var/tmp"):
            parent.chmod(parent.stat().st_mode | 0o111)
    words = [*containers.command(kind, f"{lab.directory}:{lab.directory}", f"{ROOT}:{ROOT}:ro", f"{BUILD}:{BUILD}:ro"),
             "-e", f"HOME={lab.home}", "-e", "PATH=" + f"{PROBE.parent}:/usr/local/bin:/usr/bin:/bin", "-e", "LANG=C.UTF-8",
             "-e", f"TMPDIR={lab.directory}"]
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
    path = lab.directory / f"mur-in-{kind}"
    path.write_text(f"#!/bin/sh\nexec {quoted} -w \"$PWD\" --rootfs '{containers.folder / 'root'}' {lab.mur_path} \"$@\"\n")
    path.chmod(0o755)
    lab.mur_path = path


CALLS = ["id -u; echo made > here; cat here", "cat /var/secret",
         {"tool_calls": [{"name": "escape-probe", "input": {"command": "ptrace 1"}}]},
         {"tool_calls": [{"name": "escape-probe", "input": {"command": "clone 10000000"}}]},
         {"tool_calls": [{"name": "escape-probe", "input": {"command": "call bpf"}}]},
         {"tool_calls": [{"name": "escape-probe", "input": {"command": "signal-everybody 9"}}]}]


def agent(containers, lab, kind, calls=CALLS, **more):
    needs(lab, "scoped")
    nests = subprocess.run([*containers.command(kind), "--rootfs", containers.folder / "root", "unshare", "--user", "--map-root-user",
                            "--net", "true"], capture_output=True, text=True, timeout=120)
    if (nests.returncode == 0) == (kind in REFUSES_NAMESPACES):
        pytest.skip(f"a container of this kind is another one here: unshare says {nests.stderr.strip()[-200:] or 'yes'}")
    project = command_agent(lab, calls, shell=("bash", "cat", "id", "escape-probe"), **more)
    inside(containers, lab, kind)
    containers.give(lab.directory)
    return project


def run(project, *arguments):
    return project.run("--task", "go", "--workdir", project / "work", *arguments, timeout=120)


@pytest.mark.parametrize("kind", REFUSES_NAMESPACES)
def test_security_in_a_container_without_namespaces_the_operator_decides(containers, lab, kind):
    project = agent(containers, lab, kind)
    if landlock_abi() < 4:
        assert "--unconfined" in run(project).failed("E-CAP-005").stderr
    result = run(project, "--unconfined").ok()
    assert result.stderr.count("warning[W-SEC-034]") == 1
    made, shadow, ptrace, clone, bpf, everybody = answers(project)
    assert made.stdout.endswith("made\n"), made.text
    assert "Permission denied" in shadow.stderr and not shadow.stdout, "Landlock needs no namespace"
    assert [one.stdout.strip() for one in (ptrace, clone, bpf, everybody)] == ["refused EPERM"] * 4
    grants = lab.session(result).trace.one("session_start")["effective_grants"]
    assert grants["unconfined"] and grants["achieved_containment"] == "advisory"
    assert grants["enforcement_tier"] == "landlock+seccomp"
    report = project.run("--explain-scope", "--unconfined").ok().stdout
    assert "they reach every address" in report


@pytest.mark.parametrize("kind", REFUSES_NAMESPACES)
def test_fleet_33_in_a_container_without_namespaces_scoped_stands(containers, lab, kind):
    """Landlock and the filter stand for the namespaces: no socket but to the relay, nothing outside the folder."""
    if landlock_abi() < 4:
        pytest.skip("Landlock of this kernel does not judge the network")
    tries = [{"tool_calls": [{"name": "escape-probe", "input": {"command": command}}]}
             for command in ("connect 127.0.0.1 1", "udp 127.0.0.1 53", "socket 2 3", "socket 16 3", "socket 1 1", "socket 10 1")]
    project = agent(containers, lab, kind, calls=[*CALLS, *tries], capabilities={"containment": "scoped", "network": {
        "allow": ["https://api.example.com"]}})
    result = run(project).ok()
    made, shadow, ptrace, clone, bpf, everybody, *sockets = answers(project)
    assert made.stdout.endswith("made\n"), made.text
    assert "Permission denied" in shadow.stderr and not shadow.stdout
    assert [one.stdout.strip() for one in (ptrace, clone, bpf, everybody)] == ["refused EPERM"] * 4
    assert [one.stdout.strip() for one in sockets] == ["refused EACCES"] * 5 + ["refused EAFNOSUPPORT"]
    grants = lab.session(result).trace.one("session_start")["effective_grants"]
    assert grants["without_namespaces"] and grants["achieved_containment"] == "scoped" and "unconfined" not in grants


@pytest.mark.parametrize("kind", REFUSES_NAMESPACES)
def test_security_in_a_container_a_floor_above_what_is_left_is_refused(containers, lab, kind):
    project = agent(containers, lab, kind, capabilities={"containment": "scoped"})
    assert "'advisory' at most" in run(project, "--unconfined").failed("E-CAP-003").stderr


def test_security_in_a_container_that_nests_the_walls_stand(containers, lab):
    """Podman's own profile lets user namespaces nest: commands have theirs there without any stance."""
    project = agent(containers, lab, "podman")
    result = run(project).ok()
    made, shadow, ptrace, clone, bpf, everybody = answers(project)
    assert made.stdout.endswith("made\n"), made.text
    assert not shadow.stdout and shadow.code != 0
    assert [one.stdout.strip() for one in (ptrace, clone, bpf)] == ["refused EPERM"] * 3
    grants = lab.session(result).trace.one("session_start")["effective_grants"]
    assert "unconfined" not in grants and grants["achieved_containment"] in ("scoped", "sealed")

# SPDX-License-Identifier: Apache-2.0
#
# The filter of system calls for nodes (`mur deploy profile`): a pod under it makes murmur's walls, and gets nothing else that its
# runtime's own would refuse.

import json
from pathlib import Path

import yaml

from tests.integration.test_deploy_render import IMAGE, render, writer
from tests.support.commands import command_agent, run_commands
from tests.support.hosts import needs, under_profile, with_mounts

RUNTIMES_OWN = Path("/usr/share/containers/seccomp.json")  # of podman and others; Debian's golang-github-containers-common
WALLS = {"clone", "clone3", "unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen",
         "fsconfig", "fsmount", "mount_setattr", "fspick", "sethostname", "setdomainname"}
# Harmless, and younger than some lists.
NEWER = {"cachestat", "fchmodat2", "futex_requeue", "futex_wait", "futex_waitv", "futex_wake", "map_shadow_stack", "mseal", "process_madvise",
         "io_pgetevents", "vmsplice", "arch_prctl", "pidfd_getfd"}
NEVER = {"bpf", "perf_event_open", "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "io_uring_setup", "io_uring_enter",
         "io_uring_register", "userfaultfd", "keyctl", "add_key", "request_key", "open_by_handle_at", "init_module", "finit_module",
         "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "syslog", "settimeofday", "clock_settime",
         "iopl", "ioperm", "fanotify_init", "quotactl"}


def profile_of(lab, *arguments):
    return lab.mur("deploy", "profile", *arguments).ok().stdout


def allowed(profile):
    return {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" and not rule.get("includes") for name in rule["names"]}


def test_fleet_34_the_profile_is_the_walls_and_what_any_container_may(lab):
    text = profile_of(lab)
    profile = json.loads(text)
    assert profile_of(lab) == text
    assert (profile["defaultAction"], profile["defaultErrnoRet"]) == ("SCMP_ACT_ERRNO", 1)
    names = allowed(profile)
    assert WALLS <= names and not names & NEVER
    assert {rule["args"][0]["value"] for rule in profile["syscalls"] if rule["names"] == ["socket"]} == {1, 2, 10, 16}
    if RUNTIMES_OWN.is_file():
        beyond = names - allowed(json.loads(RUNTIMES_OWN.read_text()))
        assert beyond <= WALLS | NEWER, beyond - WALLS - NEWER
    known = yaml.safe_load(profile_of(lab, "--operator", "--namespace", "agents"))
    assert (known["kind"], known["metadata"]) == ("SeccompProfile", {"name": "murmur", "namespace": "agents"})
    assert known["spec"]["syscalls"] == profile["syscalls"]


def test_fleet_34_under_the_profile_a_command_is_sealed_as_in_a_pod(lab):
    needs(lab, "sealed")
    (lab.directory / "murmur.json").write_text(profile_of(lab))
    # As a container's runtime leaves /proc: parts of it are covered, so that none can be mounted anew.
    with_mounts(lab, "mount -t tmpfs none /proc/irq")
    under_profile(lab, lab.directory / "murmur.json")
    project = command_agent(lab, ["echo from inside; id -u; python3 -c 'import socket; socket.socket(40, 1)' 2>&1 | tail -1"],
                            shell=("bash", "id", "python3", "tail"), capabilities={"containment": "sealed"})
    session, [answer] = run_commands(project)
    assert "from inside" in answer.text and "Operation not permitted" in answer.text, answer.text
    assert session.trace.one("session_start")["containment_achieved"] == "sealed"


def test_fleet_34_a_rendered_pod_names_the_profile_and_then_keeps_sealed(lab):
    project = writer(lab, containment="sealed")
    refused = render(project, "--to", "kubernetes", "--task", "x").failed("E-DEP-001")
    assert "--seccomp-profile" in refused.stderr
    text = render(project, "--to", "kubernetes", "--task", "x", "--seccomp-profile", "murmur.json").ok().stdout
    [job] = [one for one in yaml.safe_load_all(text) if one["kind"] == "Job"]
    assert job["spec"]["template"]["spec"]["securityContext"]["seccompProfile"] == {"type": "Localhost", "localhostProfile": "murmur.json"}
    for target, name in (("quadlet", "murmur.json"), ("kubernetes", "/etc/murmur.json"), ("kubernetes", "../murmur.json")):
        assert "--seccomp-profile" in render(writer(lab), "--to", target, "--seccomp-profile", name).failed("E-DEP-005").stderr
    assert IMAGE in text

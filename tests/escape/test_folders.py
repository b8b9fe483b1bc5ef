# SPDX-License-Identifier: Apache-2.0
#
# The walls around files one by one: what of /usr and /etc is shown, what is the session's own, what is protected in the work
# folder, what a crash leaves; and what stays possible, as docs/lock-down.md says.

import os
import resource
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.escape.attempts import PATH, attempt, expect, is_refused
from tests.escape.test_escape import METADATA_SERVER
from tests.escape.test_walls import against_the_runtime, outside_probe, without
from tests.support.commands import command_agent
from tests.support.hosts import with_mounts, with_name_server
from tests.support.walls import PREFLIGHT, wall


@wall("`/usr` and the like", outside=PREFLIGHT)
def test_security_usr_is_shown_as_far_as_programs_need_it(lab, tier):
    """A program nobody was granted: not run; its bytes can be read where /usr is shown whole. Nothing there is written."""
    foreign = shutil.which("id", path="/usr/bin:/bin")
    read, run, written, shared = attempt(
        lab, tier, ["read", foreign], ["exec", foreign],
        ["write", "/usr/share/murmur-was-here"] if tier != "advisory" else ["preflight"], ["list", "/usr/share"])
    expect(tier, read, "S", "R", "S")
    expect(tier, run, "S", "R", "R")
    expect(tier, written)
    expect(tier, shared, "S", "S", "S")
    assert not os.path.exists("/usr/share/murmur-was-here")


@wall("`/etc`", outside="here")
def test_security_etc_holds_what_is_listed_and_nothing_of_the_host_s(lab, tier):
    asked = [name for name in ("/etc/fstab", "/etc/hostname", "/etc/machine-id", "/etc/login.defs", "/etc/adduser.conf", "/etc/shells",
                               "/etc/debconf.conf") if os.path.isfile(name) and os.path.getsize(name)]
    if not asked:
        pytest.skip("none of these files is on this host")
    *told, users, hosts = attempt(lab, tier, *(["read", name] for name in asked), "while read -r line; do echo $line; done < /etc/passwd",
                                  "while read -r line; do echo $line; done < /etc/hosts")
    for name, line in zip(asked, told):
        expect(tier, line, "S" if tier == "advisory" else "-")
        assert outside_probe("read", name).startswith("ok"), name
    assert all(line.startswith(("root:", "nobody:")) or f":{os.geteuid()}:" in line for line in users.splitlines()), users
    assert {line.split()[0] for line in hosts.splitlines() if line.strip()} <= {"127.0.0.1", "::1", "127.0.1.1"}, hosts


@wall("`/tmp`, `/dev/shm`, `/dev/pts`", outside="here")
def test_security_temporary_folders_are_the_session_s_own(lab, tier):
    """What lies in those of the host is not there, and what is left there stays in the session."""
    mark = f"murmur-{os.getpid()}-{tier}"
    places = [Path("/tmp") / mark, Path("/dev/shm") / mark]
    master, terminal = os.openpty()
    pts = os.ttyname(terminal)
    try:
        for place in places:
            place.write_text("the host's\n")
        shown, memory, names, *made = attempt(lab, tier, *(["read", place] for place in places), "for f in /dev/pts/[0-9]*; do echo $f; done",
                                              *(["write", place.with_name(mark + "-inside")] for place in places))
        assert is_refused(shown, "ENOENT") and is_refused(memory, "ENOENT"), (shown, memory)
        assert pts not in names.split() or os.path.basename(pts) == "0", names
        assert made == ["ok", "ok"], made
        assert not any(place.with_name(mark + "-inside").exists() for place in places)
        assert all(outside_probe("read", place) == "ok the host's" for place in places)
    finally:
        os.close(master)
        os.close(terminal)
        for place in places:
            place.unlink(missing_ok=True)


@wall("`filesystem.read_only`", outside="here")
def test_security_protected_paths_hold_against_every_name_they_have(lab, tier):
    """By a program's own calls, which no word of a command shows: the file, a link to it, its folder moved away, another put there."""
    def prepare(project):
        for name in ("kept/file", "loose/file"):
            project.write(f"work/{name}", "as it was\n")
        os.symlink("kept/file", project / "work/link")
        kept.append(project / "work")

    kept = []
    attempts = [["write", "kept/file"], ["truncate", "link"], ["unlink", "kept/file"], ["rename", "kept", "moved"],
                ["write", "kept/new"], ["rename", "loose/file", "kept/file"], ["link", "kept/file", "third"]]
    *told, loose = attempt(lab, tier, *attempts, ["write", "loose/file"], prepare=prepare,
                           capabilities={"filesystem": {"read_only": ["kept"]}})
    assert all(is_refused(line) for line in told), told
    assert (kept[0] / "kept/file").read_text() == "as it was\n" and os.listdir(kept[0] / "kept") == ["file"]
    assert loose == "ok"
    elsewhere = lab.directory / "elsewhere"
    elsewhere.mkdir()
    assert outside_probe("write", elsewhere / "file") == "ok" and outside_probe("truncate", elsewhere / "file") == "ok"


@wall("Mode, owner, times", outside="here")
def test_security_modes_and_watches_of_files_outside(lab, tier, outside):
    secret = outside / "secret"
    os.chmod(secret, 0o600)
    mode, watch = attempt(lab, tier, ["chmod", secret], ["watch", secret])
    for told in (mode, watch):
        expect(tier, told, "S", "S", "R")
    assert oct(secret.stat().st_mode & 0o777) == ("0o600" if tier == "sealed" else "0o640")
    assert outside_probe("chmod", secret) == "ok" and outside_probe("watch", secret) == "ok"


@wall("A hard link in the work folder", outside="possible")
def test_security_a_hard_link_that_is_there_is_the_file_and_none_can_be_made(lab, tier, outside):
    secret = Path("/var/tmp") / outside.name / "secret"

    def prepare(project):
        source = project / "elsewhere"
        source.write_text("the host's\n")
        os.link(source, project / "work/hard")
        project.write("work/kept/file", "as it was\n")
        os.link(project / "work/kept/file", project / "work/second")

    read, made, second = attempt(lab, tier, ["read", "hard"], ["link", secret, "made"], ["write", "second"], prepare=prepare,
                                 capabilities={"filesystem": {"read_only": ["kept"]}})
    assert read == "ok the host's" and second == "ok", (read, second)
    expect(tier, made)


PRIVATE_SERVER = METADATA_SERVER.replace("169.254.77.7", "10.77.7.7")


@wall("A listed name that leads to a private network", outside="possible")
def test_security_a_listed_name_that_leads_to_a_private_network_is_reached(lab, tier):
    if not shutil.which("ip"):
        pytest.skip("no ip")
    (lab.directory / "server.py").write_text(PRIVATE_SERVER)
    ready = lab.directory / "ready"
    with_name_server(lab, "inner.test=10.77.7.7", also=(
        f"ip addr add 10.77.7.7/32 dev lo; {sys.executable} {lab.directory}/server.py {ready} & until [ -e {ready} ]; do sleep 0.02; done"))
    _, told = attempt(lab, tier, ["dns", "inner.test", 1], ["connect", "10.77.7.7", 8077],
                      capabilities={"network": {"allow": ["inner.test:8077"]}})
    assert told == "ok reached", told


@wall("What a crash leaves", outside="here")
def test_security_a_crash_leaves_no_core(lab, tier):
    """A command cannot raise its limit, and what it was writes nothing of itself anywhere."""
    if Path("/proc/sys/kernel/core_pattern").read_text().startswith("|"):
        pytest.skip("this host hands cores to a program, whatever the limit is")
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    works = []
    told, = attempt(lab, tier, ["core-dump"], prepare=lambda project: works.append(project / "work"))
    assert told == "refused EFBIG", told
    assert not [path for path in works[0].rglob("core*") if path.is_file()]
    if hard != 0:
        folder = lab.directory / "crash"
        folder.mkdir()
        assert outside_probe("core-dump", cwd=folder) == "ok"
        shutil.rmtree(folder)


@wall("The last of the disk", outside="here")
def test_security_D2_a_command_is_stopped_before_the_disk_is_full(lab, tier):
    line = "i=0; while ((i < 1000)); do head -c 1048576 /dev/zero >> big; i=$((i + 1)); sleep 0.02; done; rm -f big"
    project = command_agent(lab, [line, "echo again"], shell=("bash", "head", "sleep", "rm"), capabilities={"containment": tier})
    with_mounts(lab, f"mount -t tmpfs -o size=64m none {project / 'work'}")
    result = project.run("--task", "go", "--workdir", project / "work", timeout=120, env={"PATH": PATH}).ok()
    call = lab.session(result).trace.all("shell")[0]
    assert (call.get("resource_limit"), call["exit_code"]) == ("free_disk_bytes", 137)
    folder = lab.directory / "unbounded"
    folder.mkdir()
    assert outside_probe("file-bomb", folder / "big", 16) == "ok"
    shutil.rmtree(folder)


@wall("host name", outside="possible")
@pytest.mark.parametrize("scope", ["scoped", "sealed"])
def test_security_the_host_s_name_is_shown_with_and_without_a_namespace(lab, scope):
    line = "read -r n < /proc/sys/kernel/hostname; echo $n"
    own, written = attempt(lab, scope, line, ["write", "/proc/sys/kernel/hostname"])
    without(lab, "uts")
    shown, = attempt(lab, scope, line)
    assert own == shown == socket.gethostname() and is_refused(written), (own, shown, written)


@wall("control group", outside="here")
@pytest.mark.parametrize("scope", ["scoped", "sealed"])
def test_security_the_path_of_the_control_group_shows_without_its_namespace(lab, scope):
    line = "while IFS=: read -r n kinds path; do echo \"$path\"; done < /proc/self/cgroup"
    own, = attempt(lab, scope, line)
    without(lab, "cgroup")
    shown, = attempt(lab, scope, line)
    if "murmur" not in shown:
        pytest.skip("no control group of the session's own here")
    assert "murmur" not in own, own
    assert outside_probe("read", "/proc/self/cgroup").startswith("ok")


@wall("`/proc` of its own", outside="here")
@pytest.mark.parametrize("scope", ["scoped"])
def test_security_without_a_proc_of_its_own_processes_stay_hidden(lab, scope):
    """No mount can be made: of the host's /proc only what tells of the machine can be read."""
    without(lab, "mnt")
    (environ, names, machine), _ = against_the_runtime(
        lab, scope, "escape-probe read /proc/$STRANGER/environ", "escape-probe list /proc", "escape-probe read /proc/cpuinfo")
    assert is_refused(environ, "EACCES") and is_refused(names, "EACCES"), (environ, names)
    assert machine.startswith("ok")
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        assert outside_probe("read", f"/proc/{stranger.pid}/environ").startswith("ok") and outside_probe("list", "/proc") == "ok"
    finally:
        stranger.kill()
        stranger.wait()

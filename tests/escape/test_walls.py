# SPDX-License-Identifier: Apache-2.0
#
# The walls between a session and everything else on the machine: processes, their memory, the terminal, namespaces. Each row
# has an attempt that succeeds outside and is refused inside, at every class.

import ctypes
import os
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager

import pytest

from tests.escape.attempts import PATH, attempt, is_refused, listener
from tests.support.commands import answers, command_agent
from tests.support.hosts import CLASSES, PROBE, needs, on_host, without_namespaces
from tests.support.landlock import landlock_abi
from tests.support.lab import SLOWER
from tests.support.polling import eventually, marked_processes
from tests.support.walls import PROCESSES, wall

NAMESPACES = {"mount": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000, "pid": 0x20000000,
              "net": 0x40000000}
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.shmat.restype = ctypes.c_void_p
LIBC.shmat.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


def outside_probe(*words, **how):
    """The same attempt where nothing confines it."""
    done = subprocess.run([PROBE, *map(str, words)], capture_output=True, text=True, timeout=30, **how)
    assert done.returncode == 0, done
    return done.stdout.strip()


def watchers_of(pid):
    found = []
    for entry in os.listdir("/proc"):
        try:
            name, rest = open(f"/proc/{entry}/stat").read().rsplit(")", 1) if entry.isdigit() else ("", "")
            if name.endswith("(mur-watcher") and int(rest.split()[1]) == pid:
                found.append(int(entry))
        except OSError:
            pass
    return found


def against_the_runtime(lab, tier, *lines, capabilities=None, arguments=(), shell=(), **more):
    """Bash lines of a session at work, in which $RUNTIME, $WATCHER and $STRANGER are process ids, $THREADS the runtime's others;
    what each printed."""
    wait = "until [ -s facts ]; do sleep 0.02; done"
    project = command_agent(lab, [wait, *(f". ./facts; {line}" for line in lines)], shell=("bash", "escape-probe", "sleep", "setsid", *shell),
                            capabilities={"containment": tier, **(capabilities or {})}, **more)
    running = project.start("--task", "go", "--workdir", project / "work", *arguments, env={"PATH": PATH})
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        watchers = eventually(lambda: watchers_of(running.pid), 20 * SLOWER)
        threads = " ".join(sorted(os.listdir(f"/proc/{running.pid}/task"), key=int)[1:])
        project.write("work/facts.new", f"RUNTIME={running.pid} WATCHER={watchers[0]} STRANGER={stranger.pid} THREADS='{threads}'\n")
        (project / "work/facts.new").rename(project / "work/facts")
        result = running.result(60 * SLOWER).ok()
        assert stranger.poll() is None, "a process of nobody's was killed"
        return [answer.stdout.strip() or answer.text for answer in answers(project)[1:]], result
    finally:
        stranger.kill()
        stranger.wait()


# --- processes -------------------------------------------------------------------------------------------------------


@wall("Other processes", outside=PROCESSES)
def test_security_B1_a_command_cannot_kill_the_killer(lab, tier):
    mark = f"6{os.getpid()}{CLASSES.index(tier)}"
    (told, *signals), _ = against_the_runtime(
        lab, tier, f"setsid sleep {mark} < /dev/null > /dev/null 2>&1 & echo left",
        *(f"escape-probe signal ${name} {number}" for name in ("WATCHER", "RUNTIME", "STRANGER") for number in (9, 19)))
    assert told == "left"
    assert all(is_refused(told) for told in signals), signals
    eventually(lambda: not marked_processes(f"sleep\0{mark}\0".encode()), 10 * SLOWER, "nothing outlives the session")


@wall("The end of the session", outside=PROCESSES)
def test_security_B1_the_end_of_the_runtime_is_the_end_of_all(lab, tier):
    """SIGKILL of the runtime and of its watcher at once: the process namespace ends what is left."""
    mark = f"8{os.getpid()}{CLASSES.index(tier)}"
    project = command_agent(lab, [f"setsid setsid sleep {mark} < /dev/null > /dev/null 2>&1 & sleep 600"],
                            shell=("bash", "sleep", "setsid"), capabilities={"containment": tier})
    running = project.start("--task", "go", "--workdir", project / "work", env={"PATH": PATH})
    eventually(lambda: marked_processes(f"sleep\0{mark}\0".encode()), 20 * SLOWER)
    for pid in (*watchers_of(running.pid), running.pid):
        os.kill(pid, 9)
    eventually(lambda: not marked_processes(f"sleep\0{mark}\0".encode()), 10 * SLOWER, "nothing outlives the runtime")


def test_security_B1_commands_of_one_session_signal_each_other(lab, tier):
    (started, killed, seen), _ = against_the_runtime(
        lab, tier, "sleep 600 < /dev/null > /dev/null 2>&1 & echo $! > child; echo started", "kill $(<child) && echo killed",
        "for i in 1 2 3 4 5 6 7 8 9; do kill -0 $(<child) 2> /dev/null || break; sleep 0.1; done; kill -0 $(<child) || echo gone")
    assert (started, killed) == ("started", "killed"), (started, killed, seen)
    assert seen.startswith("gone"), (started, killed, seen)


@wall("Other processes", outside=PROCESSES)
def test_security_B11_limits_and_priority_of_the_runtime_stay(lab, tier):
    told, _ = against_the_runtime(
        lab, tier, *(f"escape-probe {name} ${who}" for name in ("prlimit", "priority") for who in ("RUNTIME", "WATCHER", "STRANGER")))
    assert all(is_refused(line) for line in told), told


def test_escape_into_the_runtime_by_its_number(lab, tier):
    files = [f"escape-probe {how} /proc/$RUNTIME/{name}" for how, name in
             (("read", "environ"), ("read", "mem"), ("read", "maps"), ("list", "fd"), ("read", "root/etc/shadow"), ("read", "cmdline"))]
    told, _ = against_the_runtime(lab, tier, *files, "escape-probe ptrace $RUNTIME", "escape-probe read /proc/1/environ",
                                  "escape-probe read /proc/1/maps", "escape-probe read /proc/1/fd/3")
    assert all(is_refused(line) for line in told), told


@wall("`/proc`", outside=PROCESSES)
def test_security_B1_what_proc_shows_is_of_the_session(lab, tier):
    """With a /proc of the session's own a program finds itself, its neighbours and the init; not the host's processes, and no
    words of the runtime's command line."""
    (names, line, own, kernel), _ = against_the_runtime(
        lab, tier, "cd /proc && for p in [0-9]*; do read -r n < $p/comm && echo $p=$n; done",
        "tr() { :; }; while IFS= read -r -d '' word; do echo $word; done < /proc/1/cmdline", "read -r n < /proc/self/comm; echo $n",
        "escape-probe write /proc/sys/kernel/hostname; escape-probe write /proc/sysrq-trigger; escape-probe read /proc/kcore")
    shown = dict(entry.split("=", 1) for entry in names.split())
    assert shown.get("1") == "mur-init" and set(shown.values()) <= {"mur-init", "bash", "sleep"}, names
    assert "--task" not in line and "go" not in line.split()
    assert own == "bash"
    assert len(kernel.splitlines()) == 3 and all(is_refused(told) for told in kernel.splitlines()), kernel


def test_security_outside_the_walls_other_processes_are_within_reach():
    """Signals, limits, priority, environment and memory map of a process of the same user; and who is left lives on."""
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        assert outside_probe("prlimit", stranger.pid) == "ok" and outside_probe("priority", stranger.pid).startswith("ok")
        assert outside_probe("read", f"/proc/{stranger.pid}/environ").startswith("ok")
        assert outside_probe("signal", stranger.pid, 9) == "ok kill"
        assert stranger.wait() == -9
    finally:
        stranger.kill()
        stranger.wait()
    for way in ("folder", "file"):
        stranger = subprocess.Popen(["sleep", "600"])
        assert outside_probe(f"signal-by-{way}", stranger.pid, 9).startswith("ok") and stranger.wait(20) == -9, way
    left = subprocess.run(["sh", "-c", "setsid sleep 600 < /dev/null > /dev/null 2>&1 & echo $!"], capture_output=True, text=True, timeout=20)
    os.kill(int(left.stdout), 9)


# --- memory ----------------------------------------------------------------------------------------------------------


@contextmanager
def host_memory():
    """System V objects of the host under one key; yields the key and a function that reads the segment."""
    key = 0x5EED0000 | (os.getpid() & 0xFFFF)
    shm, queue, semaphore = LIBC.shmget(key, 4096, 0o1600), LIBC.msgget(key, 0o1600), LIBC.semget(key, 1, 0o1600)
    assert min(shm, queue, semaphore) >= 0, os.strerror(ctypes.get_errno())
    memory = LIBC.shmat(shm, None, 0)
    ctypes.memmove(memory, b"the host's\0", 11)
    try:
        yield key, lambda: ctypes.string_at(memory)
    finally:
        LIBC.shmdt(ctypes.c_void_p(memory))
        LIBC.shmctl(shm, 0, None)
        LIBC.msgctl(queue, 0, None)
        LIBC.semctl(semaphore, 0, 0)


@wall("Memory and queues", outside="here")
def test_security_B2_memory_and_queues_of_the_host_are_out_of_reach(lab, tier):
    with host_memory() as (key, text):
        told = attempt(lab, tier, *(["shm", key], ["queue", key], ["semaphore", key]))
        assert all(is_refused(line, "ENOENT", "EPERM") for line in told), told
        assert text() == b"the host's"
        assert outside_probe("shm", key) == "ok the host's" and text() == b"overwritten"
        assert outside_probe("queue", key) == "ok" and outside_probe("semaphore", key) == "ok"


def test_security_B2_sessions_share_no_memory_and_commands_of_one_do(lab, tier):
    made, found = attempt(lab, tier, ["own-shm", 0x5EED77], ["shm", 0x5EED77])
    elsewhere, = attempt(lab, tier, ["shm", 0x5EED77])
    assert made == "ok" and found == "ok"
    assert is_refused(elsewhere, "ENOENT") and outside_probe("shm", 0x5EED77) == "refused ENOENT"


# --- namespaces ------------------------------------------------------------------------------------------------------


@wall("Dangerous system calls", outside="test_security_B14_the_probe_nests_namespaces_where_nothing_confines_it")
def test_security_B3_no_namespace_is_nested(lab, tier):
    """The call's own result, so that nothing refused later on is taken for it (B14)."""
    flags = [*NAMESPACES.values(), NAMESPACES["user"] | NAMESPACES["net"], sum(NAMESPACES.values())]
    told = attempt(lab, tier, *(["clone", f"{flag:x}"] for flag in flags), *(["clone3", f"{flag:x}"] for flag in flags),
                   ["clone", "0"])
    assert told == ["refused EPERM"] * len(flags) + ["refused ENOSYS"] * len(flags) + ["ok"], told


def test_security_B14_the_probe_nests_namespaces_where_nothing_confines_it():
    for name in ("user", "net"):
        flag = f"{NAMESPACES['user'] | NAMESPACES[name]:x}"
        if outside_probe("clone", flag) != "ok":
            pytest.skip("this host gives no user namespaces")
        assert outside_probe("clone3", flag) == "ok"


# --- the terminal ----------------------------------------------------------------------------------------------------

AT_A_TERMINAL = """import fcntl, os, pty, sys, termios
master, terminal = pty.openpty()
os.setsid()
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
os.set_inheritable(master, True)
os.write(master, b"secret\\n")
os.execv(sys.argv[1], sys.argv[1:])
"""


@wall("The terminal", outside="here")
def test_security_B4_a_command_takes_no_terminal(lab, tier, tmp_path):
    script = lab.directory / "at_a_terminal.py"
    script.write_text(AT_A_TERMINAL)
    typed = subprocess.run([sys.executable, script, PROBE, "terminal"], capture_output=True, text=True, timeout=20)
    assert typed.stdout == "ok secret\n", "where nothing confines it, it reads what a person types"

    on_host(lab, f'exec {sys.executable} {script} {lab.mur_path} "$@"', "mur-at-a-terminal")
    told, = attempt(lab, tier, ["terminal"])
    assert is_refused(told, "ENXIO", "EACCES"), told


# --- attributes ------------------------------------------------------------------------------------------------------


@wall("Extended attributes", outside="here")
def test_security_B12_attributes_of_files_outside(lab, tier, outside):
    secret = outside / "secret"
    try:
        os.setxattr(secret, "user.note", b"the host's")
    except OSError:
        pytest.skip("this file system keeps no attributes")
    read, write = attempt(lab, tier, ["read-attribute", secret], ["write-attribute", secret])
    assert is_refused(read, "EOPNOTSUPP", "ENOENT"), read
    assert is_refused(write, "EOPNOTSUPP"), write
    assert os.listxattr(secret) == ["user.note"]
    assert outside_probe("read-attribute", secret) == "ok the host's" and outside_probe("write-attribute", secret) == "ok"


# --- sockets and size --------------------------------------------------------------------------------------------------


@wall("Sockets of the host with a path", outside="here")
def test_security_sockets_of_the_host_are_covered_where_sockets_are_granted(lab, tier, outside):
    path = str(outside / "engine.sock")
    with listener(socket.AF_UNIX, path) as (_, seen):
        host, own = attempt(lab, tier, ["unix", path], ["bind-here", "mine.sock"], capabilities={"network": {"unix_sockets": True}})
        assert is_refused(host), host
        assert own == "ok", own
        assert seen == []
        assert outside_probe("unix", path) == "ok"
        eventually(lambda: seen, 10 * SLOWER, "the listener has seen it")


@wall("Sockets of the host with a path", outside="here")
def test_security_sockets_of_the_host_bound_later_are_out_of_reach(lab, tier, outside):
    """Anew, and at a path that was not there as the session's first command began."""
    if tier == "advisory":
        pytest.skip("below scoped files outside are not protected, and what is bound later is one")
    path, work = str(outside / "later.sock"), []
    with ExitStack() as later:
        def bind_when_asked():
            eventually(lambda: work and (work[0] / "asks").exists(), 60 * SLOWER, "a command asks for it")
            later.enter_context(listener(socket.AF_UNIX, path))
            (work[0] / "answer").touch()
        binder = threading.Thread(target=bind_when_asked, daemon=True)
        binder.start()
        asked, told = attempt(lab, tier, "until [ -e answer ]; do : > asks; done; echo asked", ["unix", path],
                              prepare=lambda project: work.append(project / "work"),
                              capabilities={"network": {"unix_sockets": True}})
        binder.join()
        assert asked == "asked" and is_refused(told), told
        assert outside_probe("unix", path) == "ok"


@wall("The same, named in `network.host_sockets`", outside="possible")
def test_security_a_socket_of_the_host_that_is_named_is_reached_and_warned_of(lab, tier, outside):
    named, other = str(outside / "named.sock"), str(outside / "other.sock")
    with listener(socket.AF_UNIX, named) as (_, seen), listener(socket.AF_UNIX, other) as (_, unseen):
        project = command_agent(lab, [{"tool_calls": [{"name": "escape-probe", "input": {"command": f"unix {path}"}}]}
                                      for path in (named, other)], shell=("escape-probe",),
                                capabilities={"containment": tier, "network": {"host_sockets": [named]}})
        result = project.run("--task", "go", "--workdir", project / "work", env={"PATH": PATH}).ok()
        to_named, to_other = (answer.stdout.strip() for answer in answers(project))
        assert to_named == "ok" and is_refused(to_other), (to_named, to_other)
        eventually(lambda: seen, 10 * SLOWER, "the named one has seen it")
        assert unseen == []
    assert "W-SEC-036" in result.stderr and named in result.stderr


def outgrow(lab, tier, line):
    """A command, and one after it, in a folder of 10 MiB: the second must not run."""
    project = command_agent(lab, [line, "echo again"], shell=("bash", "sleep", "mkdir", "dd", "rm"),
                            capabilities={"containment": tier, "resources": {"workdir_max_bytes": 10 << 20}})
    result = project.run("--task", "go", "--workdir", project / "work", env={"PATH": PATH}, timeout=120)
    assert result.code != 0 and "E-RUN-013" in result.stderr, (result.code, result.stderr)


@pytest.mark.parametrize("scope", ["scoped", "sealed"])
def test_security_B7_deep_trees_count(lab, scope):
    outgrow(lab, scope, "p=.; for ((i = 0; i < 300; i++)); do mkdir d; cd d; done; dd if=/dev/zero of=big bs=1M count=60 2>/dev/null")


@pytest.mark.parametrize("scope", ["scoped", "sealed"])
def test_security_B7_files_without_a_name_count(lab, scope):
    outgrow(lab, scope, "exec 9>held; dd if=/dev/zero bs=1M count=60 >&9 2>/dev/null; rm held; sleep 600 < /dev/null > /dev/null 2>&1 & echo held")


@pytest.mark.parametrize("scope", ["scoped", "sealed"])
def test_security_B7_entries_count(lab, scope):
    outgrow(lab, scope, "for ((i = 0; i < 60000; i++)); do : > f$i; done")


# --- hosts that give less --------------------------------------------------------------------------------------------


def without(lab, *kinds):
    on_host(lab, "exec unshare --user --map-root-user sh -c '" +
            "".join(f"echo 0 > /proc/sys/user/max_{kind}_namespaces && " for kind in kinds) + f"exec {lab.mur_path} \"$@\"' - \"$@\"")


@pytest.mark.parametrize("scope", ["scoped", "sealed"])
@wall("process namespace", outside=PROCESSES)
def test_security_B1_without_a_process_namespace_the_runtime_is_kept_from_signals(lab, scope):
    without(lab, "pid")
    (*signals, everybody, priority, limit), result = against_the_runtime(
        lab, scope, "escape-probe signal $WATCHER 9", "escape-probe signal $RUNTIME 9", "escape-probe signal-everybody 9",
        "escape-probe priority $RUNTIME", "escape-probe prlimit $RUNTIME")
    for told in (*signals, everybody, priority, limit):
        assert is_refused(told, "EPERM"), told
    left = lab.session(result).trace.one("session_start")["effective_grants"]["filesystem_boundary"]["not_protected"]
    assert any("no process namespace" in line for line in left), left


@wall("process namespace", outside=PROCESSES)
def test_security_B1_without_a_process_namespace_no_other_way_of_a_signal_ends_the_runtime(lab, tier):
    """A folder of /proc for its number, the owner of a file, the group; and below a Landlock that knows signals the stranger stays."""
    without(lab, "pid")
    told, _ = against_the_runtime(
        lab, tier, *(f"escape-probe signal-by-{way} ${who} 9" for way in ("folder", "file") for who in ("RUNTIME", "WATCHER")),
        "escape-probe signal-by-file -$RUNTIME 9", "escape-probe signal -$RUNTIME 9",
        *(["escape-probe signal-by-folder $STRANGER 9", "escape-probe signal-by-file $STRANGER 9"] if tier != "advisory" else []))
    *by_runtime, group_owner, group = told[:6]
    assert all(is_refused(line) for line in (*by_runtime, group)), told
    assert all(line.startswith("ok F_SETOWN") for line in told[7:]), "the owner is set, and no signal comes"


SPEAKER = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(chr(0) + sys.argv[1])
s.listen()
open(sys.argv[2], 'w').write(str(os.getpid()))
while True:
    s.accept()[0].sendall(b'of the session')
"""
LISTENER = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(chr(0) + sys.argv[1]); print(s.recv(99).decode())"


@pytest.mark.parametrize("host", ["scoped", "sealed", "no namespaces", "unconfined"])
@wall("process namespace", outside=PROCESSES)
def test_security_without_a_process_namespace_commands_of_a_session_share_one_domain(lab, host):
    """A later command signals what an earlier one left and meets it at an abstract socket; strangers and the runtime's threads stay."""
    needs(lab, host if host == "sealed" else "scoped")
    if landlock_abi() < 6:
        pytest.skip("Landlock of this kernel does not know signals")
    without(lab, "pid") if host in CLASSES else without_namespaces(lab)
    own, far = f"own-{os.getpid()}-{host}".replace(" ", "-"), f"far-{os.getpid()}-{host}".replace(" ", "-")
    every = "for t in $THREADS; do for n in 9 15; do escape-probe signal $t $n; escape-probe signal-by-file $t $n; done; done"
    with listener(socket.AF_UNIX, "\0" + far) as (_, seen):
        lines = [f"cat > speaker.py <<'EOF'\n{SPEAKER}EOF\npython3 speaker.py {own} speaker < /dev/null > /dev/null 2>&1 & "
                 "until [ -s speaker ]; do sleep 0.02; done; echo started",
                 f"python3 -c '{LISTENER}' {own}", "kill -0 $(<speaker) && echo there", "kill -9 $(<speaker) && echo killed",
                 "escape-probe signal $STRANGER 9; escape-probe signal-by-file $STRANGER 9", every, f"escape-probe unix @{far}"]
        told, _ = against_the_runtime(lab, host if host in CLASSES else "advisory" if host == "unconfined" else "scoped", *lines,
                                      arguments=["--unconfined"] * (host == "unconfined"), shell=("python3", "cat"),
                                      capabilities={"network": {"unix_sockets": True}})
        assert not seen
    started, met, there, killed, stranger, threads, socket_of_another = told
    assert (started, met, there, killed) == ("started", "of the session", "there", "killed"), told
    assert is_refused(stranger.splitlines()[0], "EPERM") and is_refused(socket_of_another), told
    assert not [line for line in threads.splitlines() if line.startswith("ok kill") or "tgkill" in line or "sigqueue" in line], threads


@pytest.mark.parametrize("scope", ["scoped", "sealed"])
@wall("IPC namespace", outside="test_security_B2_memory_and_queues_of_the_host_are_out_of_reach")
def test_security_B2_without_an_ipc_namespace_the_calls_are_refused(lab, scope):
    without(lab, "ipc")
    with host_memory() as (key, text):
        told = attempt(lab, scope, ["shm", key], ["queue", key], ["semaphore", key], ["own-shm", 7])
        assert told == ["refused EPERM"] * 4 and text() == b"the host's"


def test_security_doctor_names_the_namespaces_a_host_lacks(lab):
    without(lab, "pid", "ipc", "uts")
    told = lab.project("asked", {"name": "asked", "version": "0.1.0"}).mur("doctor")
    text = told.stdout
    for name in ("process namespace", "IPC namespace", "host name namespace"):
        assert name in text, text

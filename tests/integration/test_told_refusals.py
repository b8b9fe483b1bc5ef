# SPDX-License-Identifier: Apache-2.0
#
# A refusal tells, also where the program keeps it to itself: what the walls saw is in the result the model reads and in the trace,
# each thing once, with the key or the reason.

import os
import socket

import pytest

from tests.escape.attempts import PATH
from tests.integration.test_audit import Served
from tests.integration.test_plans import submit
from tests.support.commands import call, command_agent, native_tool, run_commands
from tests.support.hosts import CLASSES
from tests.support.lab import IS_SANITIZED, SLOWER
from tests.support.polling import eventually

TOLD = "Refused by this capsule: "


def lines_of(answer):
    return [line.partition(TOLD)[2] for line in answer.text.splitlines() if line.startswith(TOLD)]


def ran(lab, calls, shell, **capabilities):
    project = command_agent(lab, calls, shell=shell, capabilities=capabilities)
    session, told = run_commands(project, env={"PATH": PATH})
    return session.trace, [lines_of(answer) for answer in told]


SILENT_CALLS = """import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for number in {numbers}:
    for _ in range(3):
        libc.syscall(number, -1, 0, 0, 0)
print("came through")
"""


@pytest.mark.parametrize("scope", CLASSES)
def test_security_a_call_that_is_refused_in_silence_is_told(lab, scope):
    """unshare, mount, bpf and ptrace of x86-64, whose failures the program swallows; once in a session where it comes through."""
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers of the calls are those of x86-64")
    script = "python3 calls.py"
    project = command_agent(lab, [script, script, script + "; false"], shell=("bash", "python3"),
                            capabilities={"containment": scope})
    (project / "work/calls.py").write_text(SILENT_CALLS.format(numbers=[272, 165, 321, 101]))
    session, told = run_commands(project, env={"PATH": PATH})
    wanted = {f"the system call {name} is refused to every command; no key grants it" for name in ("unshare", "mount", "bpf", "ptrace")}
    assert "came through" in told[0].stdout
    assert set(lines_of(told[0])) == wanted and lines_of(told[1]) == [] and set(lines_of(told[2])) == wanted
    recorded = [line["what"] for line in session.trace.all("command_refused")]
    assert len(recorded) == len(set(recorded[:4])) * 2 == 8, recorded


def test_security_a_namespace_by_clone_is_told_and_threads_are_not(lab):
    trace, (nested, threads) = ran(lab, [call("escape-probe", "clone 10000000"), call(
        "bash", "python3 -c 'import threading; t = threading.Thread(target=print); t.start(); t.join()'")],
        ("escape-probe", "bash", "python3"))
    assert nested == ["the system call clone with a namespace of its own is refused to every command; no key grants it"]
    assert threads == []
    assert trace.one("command_refused")["binary"] == "escape-probe"


def test_security_thousands_of_refused_calls_stay_refused(lab):
    """Beyond what the runtime hears of the kernel answers by itself; nothing comes through."""
    script = """import ctypes
libc = ctypes.CDLL(None, use_errno=True)
seen = set()
for _ in range(20000):
    assert libc.syscall(272, 0x10000000) == -1
    seen.add(ctypes.get_errno())
print(sorted(seen))"""
    if os.uname().machine != "x86_64":
        pytest.skip("the number of the call is that of x86-64")
    project = command_agent(lab, ["python3 calls.py; python3 -c 'print(1)'"], shell=("bash", "python3"))
    (project / "work/calls.py").write_text(script)
    _, (told,) = run_commands(project, env={"PATH": PATH})
    assert told.stdout == "[1, 38]\n1\n", told.text
    assert len(lines_of(told)) == 1


SWALLOWED = """import socket, sys
for host, port in {targets}:
    try:
        socket.create_connection((host, port), 3)
    except OSError:
        pass
sys.exit({code})
"""


@pytest.mark.parametrize("allow", [[], ["http://127.0.0.1:9"]])
def test_security_a_host_that_is_refused_in_silence_is_told(lab, allow):
    """Names and addresses, with the port where it is not the web's; with and without hosts that are granted."""
    targets = [("198.51.100.7", 5432), ("198.51.100.8", 443), ("db.elsewhere.example", 5432)]
    project = command_agent(lab, ["python3 dial.py"], shell=("bash", "python3"),
                            capabilities={"network": {"allow": allow}} if allow else {})
    (project / "work/dial.py").write_text(SWALLOWED.format(targets=targets, code=1))
    session, (told,) = run_commands(project, env={"PATH": PATH})
    assert sorted(lines_of(told)) == [f"{host} is no host of this capsule (network.allow: [{host}])"
                                      for host in ("198.51.100.7:5432", "198.51.100.8", "db.elsewhere.example")], told.text
    events = {line["host"]: line for line in session.trace.all("network_refused")}
    assert events["198.51.100.7"]["port"] == 5432 and events["198.51.100.7"]["remedy"] == "capabilities.network.allow: [198.51.100.7:5432]"
    assert events["db.elsewhere.example"]["port"] is None and not session.trace.all("command_refused")


def test_security_a_service_of_this_machine_that_is_not_granted_is_told(lab):
    """localhost of a session is its own: a port somebody of the host listens at is told, one nobody has is not."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port, nobody = server.getsockname()[1], closed.getsockname()[1]
        project = command_agent(lab, ["python3 dial.py"], shell=("bash", "python3"))
        (project / "work/dial.py").write_text(SWALLOWED.format(targets=[("127.0.0.1", nobody), ("127.0.0.1", port)], code=3))
        _, (told,) = run_commands(project, env={"PATH": PATH})
    assert lines_of(told) == [f"127.0.0.1:{port} is no host of this capsule (network.allow: [127.0.0.1:{port}])"], told.text


def test_security_a_server_of_the_session_s_own_is_no_refusal(lab):
    """A client that waits for its server sees refused connections, and that is all there is to it."""
    script = """import socket, sys, threading
with socket.socket() as place:
    place.bind(("127.0.0.1", 0))
    port = place.getsockname()[1]
try:
    socket.create_connection(("127.0.0.1", port))
except OSError:
    pass
server = socket.create_server(("127.0.0.1", port))
socket.create_connection(server.getsockname())
sys.exit(1)"""
    project = command_agent(lab, ["python3 both.py"], shell=("bash", "python3"))
    (project / "work/both.py").write_text(script)
    _, (told,) = run_commands(project, env={"PATH": PATH})
    assert lines_of(told) == [], told.text


@pytest.mark.parametrize("scope", ["scoped", "sealed"])  # below, files outside are not protected
def test_security_a_path_that_is_refused_in_silence_is_told_by_the_line_that_names_it(lab, scope):
    private = lab.home / "notes.txt"
    private.write_text("x\n")
    trace, told = ran(lab, [f"cat {private} 2>/dev/null", "id 2>/dev/null", "cat missing 2>/dev/null", f"echo {private}"],
                      ("bash", "cat"), containment=scope)
    assert told[0] and told[0][0].startswith(f"{private} lies outside what commands may read") and len(told[0]) == 1
    assert len(told[1]) == 1 and "/id is no program of this capsule (shell.allow: [id])" in told[1][0]
    assert told[2:] == [[], []]


@pytest.mark.parametrize("program, words", [
    ("docker", "container engine"), ("sudo", "rights"), ("strace", "ptrace"), ("mount", "mounts are refused"),
    ("ping", "network.allow"), ("systemctl", "service manager"), ("podman", "namespaces"), ("apt-get", "shell.allow"),
    ("ip", "netlink"), ("dmesg", "machine")])
def test_security_programs_that_cannot_work_inside_are_told_why(lab, program, words):
    """Whether the host has them or not, whatever they print; one sentence."""
    trace, (failed, swallowed, named) = ran(
        lab, [f"{program} x", f"cd . && {program} x >/dev/null 2>&1", f"echo {program}; echo '; {program} x'"], ("bash",))
    for told in (failed, swallowed):
        why = [line for line in told if line.startswith(f"{program} cannot do its work here: ")]
        assert len(why) == 1 and words in why[0], told
    assert named == []
    assert {line["binary"] for line in trace.all("command_refused")} == {"bash"}


def test_security_a_program_that_cannot_work_inside_is_told_of_before_it_is_tried(lab):
    """Where it is granted by name: in the report, and once at the launch; not where the socket it needs is granted."""
    project = command_agent(lab, ["true", "true"], shell=("bash", "mount", "true"))
    report = project.run("--explain-scope", env={"PATH": PATH}).ok().stdout
    assert "mount: cannot do its work inside: mounts are refused to every command" in report
    result = project.run("--task", "go", "--workdir", project / "work", env={"PATH": PATH}).ok()
    assert result.stderr.count("note: shell.allow: mount cannot do its work inside") == 1 and "true cannot" not in result.stderr
    granted = command_agent(lab, ["true"], shell=("bash", "docker"), name="granted",
                            capabilities={"network": {"host_sockets": ["/var/run/docker.sock"]}})
    assert "cannot do its work" not in granted.run("--explain-scope", env={"PATH": PATH}).ok().stdout


@pytest.mark.skipif(IS_SANITIZED, reason="limits of address space and sanitizers do not go together")
def test_security_the_bound_on_addresses_names_its_key(lab):
    trace, (told,) = ran(lab, ["python3 -c 'x = bytearray(1 << 30)'"], ("bash", "python3"), resources={"memory_bytes": 400 << 20})
    assert told == [f"one process may not have more than {400 << 20} bytes of addresses (resources.memory_bytes: a larger number)"]
    assert trace.one("command_refused")["rule"] == "resources.memory_bytes"


HOG = "python3 -c 'x = bytearray(600 << 20)'"


@pytest.mark.skipif(IS_SANITIZED, reason="the runtime's own memory is a multiple there")
@pytest.mark.parametrize("line", [HOG, HOG + "; exit 3", f"{HOG}; true"])
def test_security_a_command_killed_for_memory_names_the_key(lab, line):
    """The kernel may have killed a process of the command instead of its first."""
    project = command_agent(lab, [line], shell=("bash", "python3"), capabilities={"resources": {"cgroup_memory_bytes": 200 << 20}})
    session, (told,) = run_commands(project, env={"PATH": PATH})
    assert "capabilities.resources.cgroup_memory_bytes stopped the command" in told.text, told.text
    assert session.trace.one("shell")["resource_limit"] == "cgroup_memory_bytes"


@pytest.mark.skipif(IS_SANITIZED, reason="the runtime's own memory is a multiple there")
def test_security_a_command_killed_for_memory_beside_another_names_the_key(lab):
    """A command in the background keeps the counters from being one command's alone."""
    steps = [call("bash", "sleep 30"), call("bash", HOG)]
    project = command_agent(lab, steps, shell=("bash", "python3", "sleep"), lifecycle={"shell_grace_secs": 1},
                            capabilities={"resources": {"cgroup_memory_bytes": 200 << 20}})
    _, told = run_commands(project, env={"PATH": PATH})
    assert "capabilities.resources.cgroup_memory_bytes stopped the command" in told[1].text, told[1].text


def test_security_a_command_in_the_background_tells_when_it_has_ended(lab, model):
    """In the answer of background-command, once; the walls do not care where a command runs."""
    served = Served(lab, model)
    work_id = served.start("until [ -e go ]; do sleep 0.1; done; cat /etc/shadow; docker ps >/dev/null 2>&1; false")
    (served.project / "work/go").touch()
    told = eventually(lambda: (lambda text: "state: exited" in text and text)(served.asked("wait", work_id, wait_secs=20)[1]), 30 * SLOWER)
    lines = [line for line in told.splitlines() if line.startswith(TOLD)]
    assert len(lines) == 2 and "docker cannot do its work here" in lines[0] and "/cat is no program of this capsule" in lines[1], told
    assert len(served.trace.all("command_refused")) == 2


def test_security_a_native_tool_and_a_plan_s_step_are_told_too(lab):
    tool = native_tool(lab, "prober", "#!/bin/sh\ncat /etc/shadow\n")
    steps = [call("prober", x=1), submit({"id": "a", "shell": "bash -c 'cat /etc/shadow'"})]
    project = command_agent(lab, steps, shell=("bash", "cat", "sh"), tools=[tool], capabilities={"plan": {"submit": True}})
    session, told = run_commands(project, env={"PATH": PATH})
    assert all(TOLD + "/etc/shadow lies outside" in answer.text for answer in told), [str(answer) for answer in told]
    assert len(session.trace.all("command_refused")) == 2

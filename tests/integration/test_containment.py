# SPDX-License-Identifier: Apache-2.0
#
# Acceptance cases of spec/containment.md: classes, floors and refusals, and what commands and native tools may do under
# them. What only a class this host does not back could show is skipped by name. The escape table is in tests/escape.

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.commands import answers, call, command_agent, host_offers, native_tool, run_commands
from tests.support.door_client import SLEEPER, Door, message
from tests.support.fixtures import own_component
from tests.support.hosts import (CLASSES, PROBE_PATH, needs, with_mounts, without_cgroups, without_landlock,
                                 without_namespaces, without_walls)
from tests.support.lab import IS_SANITIZED, SLOWER
from tests.support.service_bus import ServiceBus
from tests.support.polling import eventually, marked_processes

PATH = PROBE_PATH
MIB = 1 << 20
STEPS = [{"text": "done"}]


def plain_agent(lab, capabilities, **more):
    return lab.agent(steps=[{"text": "done"}], capabilities=capabilities, **more)


@pytest.fixture
def outside():
    """A folder of the host that no session has anything to do with; not below /tmp, which commands have their own of."""
    directory = Path(tempfile.mkdtemp(prefix="murmur-outside-", dir="/var/tmp"))
    (directory / "secret").write_text("the host's\n")
    yield directory
    shutil.rmtree(directory)


def refused_before_anything(lab, project, result, code):
    result.failed(code)
    assert result.stdout == "status:  failed\n"
    assert lab.records == [] and lab.runtime_directories == []
    assert project.session_directories == [] and not (project / "murmur.lock").exists()
    return result


@contextmanager
def server(answer=b"reached\n"):
    """A TCP server of the host: its address and what it was sent."""
    listener = socket.create_server(("127.0.0.1", 0))
    seen = []

    def serve():
        while True:
            try:
                client, _ = listener.accept()
                seen.append(client.recv(4096))
                client.sendall(answer)
                client.close()
            except OSError:
                return
    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname(), seen
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


# --- floors and refusals -----------------------------------------------------------------------------------------------


def test_containment_01_sealed_on_a_host_without_it_is_refused_before_anything(lab):
    project = plain_agent(lab, {"containment": "sealed"})
    without_namespaces(lab)

    result = refused_before_anything(lab, project, project.run("--task", "x"), "E-CAP-003")

    assert "declared containment class 'sealed'" in result.stderr
    assert "is not achievable on this host" in result.stderr and "(achieved: 'scoped')" in result.stderr
    assert "unshare" in result.stderr and "ENOSPC" in result.stderr
    assert "user.max_user_namespaces" in result.stderr and "CONFIG_USER_NS" in result.stderr


def test_containment_01_scoped_on_a_host_without_landlock(lab):
    project = plain_agent(lab, {"containment": "scoped"})
    without_landlock(lab)

    result = refused_before_anything(lab, project, project.run("--task", "x"), "E-CAP-003")

    assert "declared containment class 'scoped'" in result.stderr and "(achieved: 'advisory')" in result.stderr
    assert "Landlock" in result.stderr and "5.13" in result.stderr


def test_containment_02_03_an_unmet_floor_is_reported_and_nothing_is_made(lab):
    project = plain_agent(lab, {"containment": "sealed"})
    without_namespaces(lab)

    text = project.run("--explain-scope").ok().stdout
    result = project.run("--explain-scope", "--json").ok()

    assert "  declared:  sealed\n" in text and "  floor met: no\n" in text and "  reason:    " in text
    assert result.stdout.count("\n") == 1
    report = result.json
    assert report["declared_containment"] == "sealed" and report["achieved_containment"] == "scoped"
    assert report["floor_met"] is False and "ENOSPC" in report["shortfall_reason"]
    assert lab.records == [] and lab.runtime_directories == [] and project.session_directories == []


def test_containment_03_a_floor_that_is_met_has_no_reason(lab):
    offered = host_offers(lab)
    for declared in CLASSES:
        report = plain_agent(lab, {"containment": declared}, name=declared).run("--explain-scope", "--json").ok().json
        assert report["floor_met"] == (CLASSES.index(offered) >= CLASSES.index(declared))
        assert ("shortfall_reason" in report) == (not report["floor_met"])
        if declared == "sealed":
            assert report["floor_met"] == (report["achieved_containment"] == "sealed")


def test_containment_04_without_a_floor_a_sealed_host_applies_scoped(lab):
    needs(lab, "sealed")
    project = command_agent(lab, ["true"])

    session, _ = run_commands(project)

    start = session.trace.one("session_start")
    grants = start["effective_grants"]
    assert (start["containment_declared"], start["containment_achieved"]) == ("advisory", "scoped")
    assert (grants["achieved_containment"], grants["enforcement_tier"], grants["host_containment"]) == \
        ("scoped", "landlock+seccomp", "sealed")


def test_containment_06_a_class_that_does_not_exist(lab):
    project = plain_agent(lab, {})
    result = project.run("--task", "x", "--containment", "paranoid").failed("E-IO-003")
    assert "--containment must be one of: advisory, scoped, sealed; got 'paranoid'" in result.stderr

    result = plain_agent(lab, {"containment": "paranoid"}, name="declares").run("--task", "x").failed("E-MAN-003")
    assert "capabilities.containment" in result.stderr and "must be one of: advisory, scoped, sealed" in result.stderr
    assert lab.records == []


def test_containment_07_a_floor_of_the_projects_configuration(lab):
    project = plain_agent(lab, {})
    project.write(".murmur/config.yaml", "containment: sealed\n")
    assert project.run("--explain-scope", "--json").ok().json["declared_containment"] == "sealed"

    project.write(".murmur/config.yaml", "containment: paranoid\n")
    result = project.run("--explain-scope").failed("E-IO-003")
    assert str(project / ".murmur/config.yaml") in result.stderr and "must be advisory, scoped or sealed" in result.stderr


def test_containment_08_workdir_exec_caps_the_class_and_not_the_mechanism(lab):
    needs(lab, "scoped")
    project = plain_agent(lab, {"containment": "scoped", "filesystem": {"workdir_exec": True}})
    result = refused_before_anything(lab, project, project.run("--task", "x"), "E-CAP-003")
    assert "capabilities.filesystem.workdir_exec" in result.stderr

    project = command_agent(lab, ["true"], name="alone", capabilities={"filesystem": {"workdir_exec": True}})
    result = project.run("--task", "go", "--workdir", project / "work").ok()
    assert "W-SEC-011" in result.stderr
    grants = lab.session(result).trace.one("session_start")["effective_grants"]
    assert (grants["achieved_containment"], grants["enforcement_tier"]) == ("advisory", "landlock+seccomp")
    assert grants["filesystem_boundary"]["restriction"] == "enforced"


def test_containment_09_a_home_inside_the_work_folder(lab):
    needs(lab, "scoped")
    project = plain_agent(lab, {})
    result = project.run("--task", "x", "--workdir", lab.home).ok()
    assert "W-SEC-033" in result.stderr
    assert lab.session(result).trace.one("session_start")["containment_achieved"] == "advisory"

    result = project.run("--task", "x", "--workdir", lab.home, "--containment", "scoped").failed("E-CAP-003")
    assert str(lab.murmur_home) in result.stderr and "--workdir" in result.stderr


def staged(source):
    return {"shell": {"staged_runtime": [{"binary": "bash", "source_path": str(source), "pin": "1"}]}}


def test_containment_10_a_staged_runtime_needs_a_sealed_root(lab):
    needs(lab, "scoped")
    project = command_agent(lab, ["true"], capabilities={"containment": "scoped", **staged("/opt")})
    result = refused_before_anything(lab, project, project.run("--task", "x"), "E-CAP-004")
    assert "bash" in result.stderr and "'scoped'" in result.stderr


def test_containment_10_a_staged_runtime_that_is_not_there_ends_the_session(lab):
    needs(lab, "sealed")
    project = command_agent(lab, ["echo one", "echo two"],
                            capabilities={"containment": "sealed", **staged(lab.directory / "absent")})

    result = project.run("--task", "go", "--workdir", project / "work").failed("E-RUN-014")

    assert str(lab.directory / "absent") in result.stderr
    trace = lab.session(result).trace
    assert len(trace.all("inference")) == 1 and trace.one("session_end")["exit_status"] != "ok"


def test_containment_10_a_staged_runtime_is_at_its_own_path(lab):
    needs(lab, "sealed")
    tree = lab.directory / "runtime"
    (tree / "bin").mkdir(parents=True)
    shutil.copy(shutil.which("id", path="/usr/bin:/bin"), tree / "bin/staged-id")
    project = command_agent(lab, [f"{tree}/bin/staged-id -u", f"echo x > {tree}/planted"],
                            capabilities={"containment": "sealed", **staged(tree)})

    _, (ran, planted) = run_commands(project)

    assert ran.stdout == f"{os.geteuid()}\n", ran
    assert planted.code != 0 and "Read-only file system" in planted.stderr
    assert sorted(os.listdir(tree)) == ["bin"]


def test_containment_06_a_script_whose_interpreter_a_sealed_root_lacks(lab):
    needs(lab, "sealed")
    folder = lab.directory / "programs"
    folder.mkdir()
    for name, first in (("direct", "#!/bin/sh"), ("by-env", "#!/usr/bin/env -S LC_ALL=C python3")):
        (folder / name).write_text(f"{first}\n")
        (folder / name).chmod(0o755)
    env = {"PATH": f"{folder}:/usr/bin:/bin"}
    project = command_agent(lab, ["true"], shell=("bash", "direct", "by-env"), capabilities={"containment": "sealed"})

    result = refused_before_anything(lab, project, project.run("--task", "x", env=env), "E-CAP-006")

    assert f"direct ({folder}/direct, run by sh)" in result.stderr
    assert f"by-env ({folder}/by-env, run by python3)" in result.stderr and "bash (" not in result.stderr
    assert project.run("--explain-scope", env=env).ok()


# --- files and programs ------------------------------------------------------------------------------------------------

READ_HOST = "#!/bin/bash\nread line < {path} && echo \"$line\"\necho planted > {planted}\n"


@pytest.mark.parametrize("containment, words", [("scoped", "Permission denied"), ("sealed", "No such file or directory")])
def test_containment_11_a_native_tool_cannot_read_the_host(lab, outside, containment, words):
    needs(lab, containment)
    secret, planted = outside / "secret", outside / "planted"
    tool = native_tool(lab, "peek", READ_HOST.format(path=secret, planted=planted) + "exit 3\n")
    project = command_agent(lab, [call("peek")], shell=(), tools=[tool], capabilities={"containment": containment})

    session, (peek,) = run_commands(project)

    assert words in peek.text and "the host's" not in peek.text, peek
    assert not planted.exists()
    assert session.trace.one("tool_call")["status"] == "error"


def test_containment_12_an_unlisted_host_is_refused_at_once(lab):
    with server() as (address, seen):
        project = command_agent(lab, [f"exec 3<>/dev/tcp/127.0.0.1/{address[1]}", "exec 3<>/dev/tcp/192.0.2.1/81"],
                                capabilities={"network": {"allow": ["example.invalid"]}})
        session, told = run_commands(project)
    assert all("Connection refused" in answer.stderr and answer.code == 1 for answer in told), told
    assert all(event["duration_ms"] < 3000 * SLOWER for event in session.trace.all("shell"))
    assert not any(seen)


def test_containment_13_a_native_tool_reaches_an_allowed_address(lab):
    with server(b"the server's reply\n") as (address, seen):
        tool = native_tool(lab, "ask", f"#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/{address[1]}\necho hello >&3\n"
                                       "read -r line <&3\necho \"got $line\"\n")
        project = command_agent(lab, [call("ask")], shell=(), tools=[tool],
                                capabilities={"network": {"allow": [f"127.0.0.1:{address[1]}"]}})
        _, (told,) = run_commands(project)
    assert "got the server's reply" in told.text
    assert b"hello\n" in seen


LISTEN = ("use IO::Socket::INET; my $s = IO::Socket::INET->new (LocalAddr => '127.0.0.1', LocalPort => 8080, Listen => 5, "
          "ReuseAddr => 1) or die; exit if fork; close STDOUT; close STDERR; "
          "while (my $c = $s->accept) { print $c qq(from the first\\n); close $c; }")


@pytest.mark.skipif(not shutil.which("perl", path="/usr/bin:/bin"), reason="no perl to serve with")
def test_containment_14_commands_of_a_session_share_one_network(lab):
    asks = "exec 3<>/dev/tcp/127.0.0.1/8080; read -r line <&3; echo \"got $line\"; readlink /proc/self/ns/net"
    tool = native_tool(lab, "ask", "#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/8080\nread -r line <&3\necho \"got $line\"\n")
    project = command_agent(lab, [call("perl", f'-e "{LISTEN}"'), asks, "readlink /proc/self/ns/net", call("ask")],
                            shell=("perl", "bash", "readlink"), tools=[tool])
    _, (_, first, second, tool_told) = run_commands(project, env={"PATH": "/usr/bin:/bin"})
    assert "got from the first" in first.stdout, first
    assert "got from the first" in tool_told.text
    inside = set(re.findall(r"net:\[\d+\]", first.stdout + second.stdout))
    host = os.readlink("/proc/self/ns/net")
    # Without a way to read /proc, which scoped does not grant, the two links cannot be compared.
    assert host not in inside and len(inside) <= 1


def test_containment_15_only_what_is_allowed_is_executed(lab):
    needs(lab, "scoped")
    unlisted = shutil.which("id", path="/usr/bin:/bin")
    project = command_agent(lab, [f"exec {unlisted}", call("sleep", "0"), "sleep 0", call("id")], shell=("bash", "sleep"))

    session, (by_path, direct, from_bash, by_name) = run_commands(project)

    assert "Permission denied" in by_path.stderr and by_path.code == 126
    assert direct.code == 0 and from_bash.code == 0
    assert by_name.code is None and "id" in by_name.text
    assert len(session.trace.all("shell")) == 3


@pytest.mark.parametrize("is_granted", [False, True])
def test_containment_16_a_copy_in_the_work_folder_runs_only_with_workdir_exec(lab, is_granted):
    needs(lab, "scoped")
    project = command_agent(lab, ["./bash -u"], capabilities={"filesystem": {"workdir_exec": is_granted}},
                            shell=("bash", "id"))
    shutil.copy(shutil.which("id", path="/usr/bin:/bin"), project / "work/bash")

    _, (ran,) = run_commands(project)

    if is_granted:
        assert ran.stdout == f"{os.geteuid()}\n", ran
    else:
        assert "Permission denied" in ran.stderr and ran.code == 126


@pytest.mark.parametrize("is_granted", [False, True])
def test_containment_12_a_program_on_path_within_the_work_folder_is_none(lab, is_granted):
    """PATH may lead into the work folder; what a command can rewrite is executed only with workdir_exec."""
    needs(lab, "scoped")
    project = command_agent(lab, [call("mine", "-u")], shell=("bash", "mine"), capabilities={"filesystem": {"workdir_exec": is_granted}})
    (project / "work/bin").mkdir()
    shutil.copy(shutil.which("id", path="/usr/bin:/bin"), project / "work/bin/mine")
    project.run("--task", "go", "--workdir", project / "work", env={"PATH": f"{project / 'work/bin'}:/usr/bin:/bin"}).ok()
    told, = answers(project)
    assert (told.stdout == f"{os.geteuid()}\n") == is_granted, told
    assert is_granted or "Permission denied" in told.text


@pytest.mark.parametrize("is_allowed", [False, True])
def test_containment_17_a_script_tool_has_its_interpreter_and_nothing_more(lab, is_allowed):
    needs(lab, "scoped")
    program = shutil.which("id", path="/usr/bin:/bin")
    tool = native_tool(lab, "script", f"#!/bin/sh\necho builtin works\n{program} -u 2>&1\nexit 0\n")
    project = command_agent(lab, [call("script")], shell=("id",) if is_allowed else (), tools=[tool])

    _, (told,) = run_commands(project)

    assert "builtin works" in told.text
    assert ("Permission denied" in told.text) == (not is_allowed)
    assert (f"\n{os.geteuid()}\n" in told.text) == is_allowed


@pytest.mark.skipif(IS_SANITIZED, reason="the sanitizer's own descriptors and address space are bounded too")
def test_containment_18_a_tool_has_three_descriptors_whatever_the_runtime_holds(lab):
    script = lab.directory / "mur-with-descriptors"
    script.write_text(f"#!{sys.executable}\nimport os, sys\n"
                      "for n in range(300): os.set_inheritable(os.open('/dev/null', os.O_RDONLY), True)\n"
                      f"os.execv('{lab.mur_path}', ['{lab.mur_path}', *sys.argv[1:]])\n")
    script.chmod(0o755)
    tool = native_tool(lab, "count", "#!/bin/bash\nulimit -n\nescape-probe fds\nexit 0\n")
    project = command_agent(lab, [call("count")], shell=("escape-probe",), tools=[tool],
                            capabilities={"resources": {"max_open_files": 64}})
    lab.mur_path = script
    _, (told,) = run_commands(project, env={"PATH": PATH})
    assert "64\nok 0,1,2\n" in told.text, told


@pytest.mark.parametrize("is_granted, unix", [(False, "refused EACCES"), (True, "ok")])
def test_containment_19_kinds_of_sockets(lab, is_granted, unix):
    project = command_agent(lab, [call("escape-probe", f"socket {family} {kind}") for family, kind in
                                  [(socket.AF_UNIX, 1), (38, 5), (16, 3), (17, 3), (socket.AF_INET, 1)]],
                            shell=("escape-probe",), capabilities={"network": {"unix_sockets": is_granted}})

    _, told = run_commands(project, env={"PATH": PATH})

    assert [answer.stdout for answer in told] == \
        [f"{unix}\n", "refused EPERM\n", "refused EACCES\n", "refused EACCES\n", "ok\n"]


def test_containment_20_python_has_its_library_and_no_more(lab):
    needs(lab, "scoped")
    python = shutil.which("python3", path="/usr/bin:/bin")
    if not python or subprocess.run([python, "-c", "import sqlite3"], capture_output=True).returncode:
        pytest.skip("no python3 with sqlite3 in the system's folders")
    library = subprocess.run([python, "-Ic", "import os; print(os.path.dirname(os.__file__))"], capture_output=True,
                             text=True).stdout.strip()
    sibling = next((path for path in sorted(Path(library).parent.iterdir())
                    if path.is_dir() and "python" not in path.name and os.access(path, os.R_OK)), None)
    if sibling is None:
        pytest.skip(f"nothing lies beside {library}")
    project = command_agent(lab, [call("python3", "-Ic 'import sqlite3; print(sqlite3.connect(str()).execute(\"select 6*7\").fetchone()[0])'"),
                                  call("python3", f"-Ic 'import os; print(os.listdir(\"{sibling}\"))'")],
                            shell=("python3",))

    session, (imports, lists) = run_commands(project, env={"PATH": "/usr/bin:/bin"})

    assert imports.stdout == "42\n", imports
    assert "PermissionError" in lists.stderr
    derived = session.trace.one("session_start")["effective_grants"]["derived_interpreter_runtime"]
    # One a folder (manifest.md 18.5).
    assert f"{os.path.realpath(python)}: {library} (list_dir)" in derived
    assert all(re.fullmatch(rf"{re.escape(os.path.realpath(python))}: /\S+( \(list_dir\))?", line) for line in derived)


@pytest.mark.parametrize("network", [[], ["example.invalid"]])
def test_containment_21_the_trust_store_comes_with_the_network(lab, network):
    needs(lab, "scoped")
    bundle = "/etc/ssl/certs/ca-certificates.crt"
    if not os.path.isfile(bundle):
        pytest.skip(f"no {bundle}")
    project = command_agent(lab, [f"read -r line < {bundle}; echo \"$line\""], capabilities={"network": {"allow": network}})

    session, (told,) = run_commands(project)

    assert ("BEGIN CERTIFICATE" in told.stdout) == bool(network), told
    assert ("Permission denied" in told.stderr) == (not network)
    store = session.trace.one("session_start")["effective_grants"]["trust_store"]
    assert (bundle in store) == bool(network) and "/etc/ssl" not in store


def test_containment_22_names_are_judged_before_they_are_looked_up(lab):
    project = command_agent(lab, [call("escape-probe", f"dns {name} {kind}") for name, kind in
                                  [("unlisted.example", 1), ("localhost", 16), ("sub.localhost", 1)]],
                            shell=("escape-probe",), capabilities={"network": {"allow": ["localhost"]}})
    _, told = run_commands(project, env={"PATH": PATH})
    assert [answer.stdout for answer in told] == \
        ["ok rcode=5 answers=0\n", "ok rcode=0 answers=0\n", "ok rcode=5 answers=0\n"]


# --- environment, protected paths, temporary files ------------------------------------------------------------------------


def test_containment_31_home_belongs_to_the_session(lab):
    project = command_agent(lab, ['echo "$HOME"; echo "$USERPROFILE"; echo "$KEEP"'],
                            capabilities={"shell": {"baseline_env": ["HOME", "KEEP"], "strip_env": ["*"]}})
    session, (told,) = run_commands(project, env={"KEEP": "kept"})
    home = str(session.records / "home")
    assert told.stdout == f"{home}\n{home}\n\n", told


def test_containment_33_a_command_that_writes_below_a_protected_path_is_refused(lab):
    project = command_agent(lab, ["echo x > tests/a", "echo x > alias/b", call("cat", "tests/a"), "echo x > tests2"],
                            shell=("bash", "cat"), capabilities={"filesystem": {"read_only": ["tests"]}})
    project.write("work/tests/a", "kept\n")
    (project / "work/alias").symlink_to("tests")

    session, (plain, linked, read, other) = run_commands(project)

    assert "tests/a" in plain.text and "tests/b" in linked.text and plain.code is None and linked.code is None
    assert read.stdout == "kept\n" and other.code == 0
    assert (project / "work/tests/a").read_text() == "kept\n" and not (project / "work/tests/b").exists()
    assert (project / "work/tests2").read_text() == "x\n"
    refused = session.trace.all("protected_path_denied")
    assert [event["path"] for event in refused] == ["tests/a", "tests/b"]
    assert len(session.trace.all("shell")) == 2


def test_containment_34_tmp_belongs_to_the_session(lab):
    name = f"murmur-34-{os.getpid()}"
    project = command_agent(lab, [f"echo mine > /tmp/{name}; echo $TMPDIR", f"read -r line < /tmp/{name}; echo $line"])
    other = command_agent(lab, [f"read -r line < /tmp/{name}"], name="other")

    session, (first, second) = run_commands(project)
    _, (elsewhere,) = run_commands(other)

    assert first.stdout == "/tmp\n" and second.stdout == "mine\n"
    assert not os.path.exists(f"/tmp/{name}")
    assert (session.records / "tmp" / name).read_text() == "mine\n"
    assert elsewhere.code == 1 and "No such file" in elsewhere.stderr


def test_containment_34_a_link_put_in_the_place_of_the_temporary_folder_starts_nothing(lab):
    needs(lab, "scoped")
    target = lab.directory / "target"
    target.mkdir()
    project = command_agent(lab, [f"until [ -e go ]; do sleep 0.02 # {os.getpid()}\ndone", "echo x > /tmp/planted"], shell=("bash", "sleep"))
    running = project.start("--task", "go", "--workdir", project / "work")
    session = lab.session(running)
    eventually(lambda: marked_processes(f"[ -e go ]; do sleep 0.02 # {os.getpid()}".encode()), 20 * SLOWER)
    records = session.records
    os.rename(records / "tmp", records / "moved")
    (records / "tmp").symlink_to(target)
    project.write("work/go", "")
    running.result().ok()
    told = answers(project)

    assert told[0].code == 0
    assert told[1].code is None and "Did not start" in told[1].text, told[1]
    assert os.listdir(target) == []


# --- lifetime ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("containment", ["scoped", "sealed"])
def test_containment_35_nothing_outlives_a_killed_runtime(lab, containment):
    needs(lab, containment)
    if not shutil.which("setsid", path="/usr/bin:/bin"):
        pytest.skip("no setsid")
    seconds = f"9{os.getpid()}"
    project = command_agent(lab, [f"setsid sleep {seconds} & sleep {seconds}"], shell=("bash", "setsid", "sleep"),
                            capabilities={"containment": containment})
    mark = f"sleep\0{seconds}\0".encode()
    running = project.start("--task", "go", "--workdir", project / "work")
    eventually(lambda: len(marked_processes(mark)) == 2, 20 * SLOWER)
    session_id = running.session_id

    running.signal(signal.SIGKILL).process.wait(10)

    eventually(lambda: not marked_processes(mark), 4 * SLOWER)
    eventually(lambda: not cgroups_of(session_id), 4 * SLOWER)
    assert lab.session(session_id).trace.one("session_start")


def cgroups_of(session_id):
    """Its control groups; other sessions' come and go meanwhile, which os.walk passes over."""
    return [os.path.join(parent, name) for parent, names, _ in os.walk("/sys/fs/cgroup") for name in names
            if name.startswith(f"murmur-{session_id}")]


def test_containment_36_a_leftover_holds_the_pipes_for_three_seconds_at_most(lab):
    mark = f"6{os.getpid()}"
    project = command_agent(lab, [f"sleep {mark} & echo hi"], shell=("bash", "sleep"))

    session, (told,) = run_commands(project)

    assert told.stdout == "hi\n" and told.code == 0
    assert "still held its output and were killed" in told.text
    assert 900 <= session.trace.one("shell")["duration_ms"] <= 3000 * SLOWER
    assert not marked_processes(f"sleep\0{mark}\0".encode())


def test_session_17_leftovers_are_killed_and_noted(lab):
    project = command_agent(lab, ["sleep 100 & echo hi; sleep 0"], shell=("bash", "sleep"))
    _, (told,) = run_commands(project)
    assert told.stdout == "hi\n" and "were killed" in told.text


# --- control groups ------------------------------------------------------------------------------------------------------


def test_containment_37_a_limit_on_io_that_cannot_be_set_is_said_once(lab):
    work = Path("/dev/shm") / f"murmur-37-{os.getpid()}"
    if not Path("/dev/shm").is_dir() or not os.access("/dev/shm", os.W_OK):
        pytest.skip("no tmpfs at /dev/shm")
    work.mkdir()
    try:
        project = command_agent(lab, ["true"])
        explained = project.run("--explain-scope", "--json", "--workdir", work).ok().json["io_max"]
        result = project.run("--task", "go", "--workdir", work).ok()
    finally:
        shutil.rmtree(work)
    recorded = lab.session(result).trace.one("session_start")["effective_grants"]["io_max"]
    assert recorded["status"] == "unavailable" and recorded["declared_bytes_per_sec"] == 100 * MIB
    assert explained == recorded
    warnings = [line for line in result.stderr.splitlines() if "W-SEC-021" in line]
    assert len(warnings) == 1 and recorded["reason"] in warnings[0]


def test_containment_38_without_control_groups_commands_are_refused(lab):
    project = command_agent(lab, ["echo hi"])
    other = plain_agent(lab, {}, name="without-commands")
    without_cgroups(lab)

    result = project.run("--task", "go", "--workdir", project / "work").failed("E-RUN-012")
    assert "version 2" in result.stderr and "version 1" in result.stderr
    assert not (project / "work/conversation.json").exists()

    other.run("--task", "x").ok()


def test_containment_38_optional_control_groups(lab):
    (lab.murmur_home).mkdir(mode=0o700)
    (lab.murmur_home / "config.yaml").write_text("resources:\n  cgroup: optional\n")
    (lab.murmur_home / "config.yaml").chmod(0o600)
    project = command_agent(lab, ["echo hi; ulimit -u"])
    without_cgroups(lab)

    result = project.run("--task", "go", "--workdir", project / "work").ok()

    told, = answers(project)
    assert told.stdout.startswith("hi\n") and told.stdout.split("\n")[1].isdigit()
    assert "W-SEC-010" in result.stderr


def test_containment_14_where_systemd_owns_the_groups_it_is_asked_for_a_scope(lab):
    """A manager that refuses changes nothing: the session is placed as it would be without one."""
    if not shutil.which("unshare"):
        pytest.skip("no unshare")
    bus = ServiceBus(lab.directory / "bus")
    project = command_agent(lab, ["echo hi"])
    with_mounts(lab, "mount -t tmpfs none /run && mkdir -p /run/systemd/system")
    try:
        env = {"DBUS_SESSION_BUS_ADDRESS": f"unix:path={bus.path}"}
        _, (told,) = run_commands(project, env=env)
        called = list(bus.calls.get("StartTransientUnit", []))
        quiet = lab.agent(name="without-commands", steps=STEPS)
        quiet.run("--task", "x", env=env).ok()
    finally:
        bus.close()
    assert told.stdout == "hi\n"
    assert len(called) == 1 and len(bus.calls["StartTransientUnit"]) == 1, "one question a process, and only for commands"
    assert re.search(rb"murmur-\d+-0\.scope\0", called[0]) and b"fail\0" in called[0]
    assert b"Delegate\0" in called[0] and b"PIDs\0" in called[0]


def test_containment_14_without_systemd_nobody_is_asked(lab):
    bus = ServiceBus(lab.directory / "bus")
    project = command_agent(lab, ["echo hi"])
    try:
        if os.path.isdir("/run/systemd/system"):
            with_mounts(lab, "mount -t tmpfs none /run")
        run_commands(project, env={"DBUS_SESSION_BUS_ADDRESS": f"unix:path={bus.path}"})
    finally:
        bus.close()
    assert bus.calls == {}


# --- reports and warnings ------------------------------------------------------------------------------------------------


def test_containment_16_launch_warnings_say_what_is_enforced(lab):
    needs(lab, "scoped")
    project = command_agent(lab, ["true"])
    result = project.run("--task", "go", "--workdir", project / "work").ok()
    assert result.stderr.count("warning[W-SEC-005]") == 1
    assert "W-SEC-005" in (lab.session(result).records / "logs/bootstrap.log").read_text()
    assert "W-SEC" not in plain_agent(lab, {}, name="without").run("--task", "x").ok().stderr


def test_containment_16_without_landlock_the_warning_says_so(lab):
    project = command_agent(lab, ["true"])
    without_landlock(lab)
    result = project.run("--task", "go", "--workdir", project / "work").ok()
    assert result.stderr.count("warning[W-SEC-002]") == 1 and "W-SEC-005" not in result.stderr
    grants = lab.session(result).trace.one("session_start")["effective_grants"]
    assert (grants["enforcement_tier"], grants["landlock_abi"]) == ("seccomp-only", None)


def test_containment_06_05_without_network_namespaces_commands_are_refused(lab):
    project = command_agent(lab, ["true"])
    without_walls(lab)
    result = project.run("--task", "x").failed("E-CAP-005")
    assert "unshare" in result.stderr and "ENOSPC" in result.stderr
    assert lab.records == []
    assert project.run("--explain-scope").ok()


def test_cli_09_an_unmet_floor_of_the_flag_names_both_classes(lab):
    project = plain_agent(lab, {})
    without_namespaces(lab)
    result = refused_before_anything(lab, project, project.run("--task", "x", "--containment", "sealed"), "E-CAP-003")
    assert "'sealed'" in result.stderr and "'scoped'" in result.stderr and "max_user_namespaces" in result.stderr


# --- size guard and resource limits ------------------------------------------------------------------------------------


def test_containment_14_a_full_work_folder_ends_the_session(lab):
    project = command_agent(lab, ["for ((i = 0; i < 3000; i++)); do echo 0123456789012345678901234567890123456789; done > big",
                                  "echo more"], capabilities={"resources": {"workdir_max_bytes": 65536}})

    result = project.run("--task", "go", "--workdir", project / "work").failed("E-RUN-013")

    size = (project / "work/big").stat().st_size
    assert str(size) in result.stderr and "65536" in result.stderr and "workdir_max_bytes" in result.stderr
    trace = lab.session(result).trace
    assert len(trace.all("shell")) == 1 and trace.one("session_end")["exit_status"] != "ok"


def test_containment_14_a_limit_that_was_met_is_named(lab):
    project = command_agent(lab, ["while :; do :; done", "while :; do echo 0123456789 ; done > big"],
                            capabilities={"resources": {"cpu_seconds": 1, "max_file_size_bytes": 1024}})

    session, (cpu, size) = run_commands(project, timeout=60)

    assert cpu.code == 128 + signal.SIGXCPU and "resource_limit: cpu_seconds" in cpu.text
    assert "resource_limit: max_file_size_bytes" in size.text or size.code != 0
    assert session.trace.all("shell")[0]["resource_limit"] == "cpu_seconds"


# --- refused paths -------------------------------------------------------------------------------------------------------


def plant(path, kind, target):
    if kind == "link":
        path.symlink_to(target)
    else:
        os.mkfifo(path)


REASONS = {"link": "symlink", "fifo": "not_a_regular_file"}


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_containment_39_what_a_capsule_planted_at_out_stays_as_it_is(lab, kind):
    project = lab.script_capsule(own_component("script-task"))
    work, target = lab.directory / "work", lab.directory / "target"
    work.mkdir()
    target.mkdir()
    plant(work / "out", kind, target)

    result = project.run("--task", "hello", "--workdir", work, timeout=20)

    result.failed("E-RUN-001")
    assert os.listdir(target) == []
    assert (work / "out").is_symlink() if kind == "link" else (work / "out").is_fifo()


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_containment_39_a_planted_task_file_fails_the_first_task_and_no_later_one(lab, kind):
    project = lab.agent(steps=STEPS, lifecycle=SLEEPER)
    work, target = lab.directory / "work", lab.directory / "target"
    work.mkdir()
    target.write_text("the host's\n")
    plant(work / "task.md", kind, target)
    running = project.start("--workdir", work)
    door = Door(running)

    states = [door.result("SendMessage", message(text))["task"]["status"]["state"] for text in ("one", "two")]
    running.signal().result()

    trace = lab.session(running).trace
    assert states == ["TASK_STATE_FAILED", "TASK_STATE_COMPLETED"]
    refused = trace.one("workdir_path_refused")
    assert (refused["path"], refused["refused_at"], refused["operation"], refused["reason"]) == \
        ("task.md", "task.md", "read", REASONS[kind])
    assert trace.one("task_failed")["cause"] == "workdir_path_refused"
    assert target.read_text() == "the host's\n" and "the host's" not in trace.path.read_text()


def test_containment_39_a_planted_task_file_decides_the_exit_of_the_launch(lab):
    project = lab.agent(steps=STEPS, lifecycle={"task_acceptance": "single"})
    work, target = lab.directory / "work", lab.directory / "target"
    work.mkdir()
    target.write_text("the host's\n")
    plant(work / "task.md", "link", target)
    running = project.start("--workdir", work)
    Door(running).result("SendMessage", message("one"))
    result = running.result().failed("E-RUN-050")
    assert "task.md" in result.stderr and "symlink" in result.stderr and target.read_text() == "the host's\n"


@pytest.mark.parametrize("place", ["task.md", "out/result.txt"])
@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_containment_39_what_was_planted_where_the_runtime_writes_is_refused(lab, kind, place):
    """Below scoped a command can change both directories; the runtime then touches nothing it put there."""
    target = lab.directory / "target"
    target.write_text("the host's\n")
    project = lab.agent(steps=STEPS, lifecycle=SLEEPER)
    running = project.start()
    door, session = Door(running), lab.session(running)
    assert door.send("one")["status"]["state"] == "TASK_STATE_COMPLETED"
    planted = (session.runtime_directory / "runtime" if place == "task.md" else session.records) / place
    planted.unlink()
    plant(planted, kind, target)

    state = door.send("two")["status"]["state"]
    running.signal().result()

    assert state == "TASK_STATE_FAILED"
    refused, = session.trace.all("workdir_path_refused")
    assert (refused["operation"], refused["reason"]) == ("write", REASONS[kind])
    assert refused["path"].endswith(place) and refused["refused_at"].endswith(os.path.basename(place))
    assert session.trace.one("task_failed")["cause"] == "workdir_path_refused"
    assert target.read_text() == "the host's\n"


# --- records and sessions -------------------------------------------------------------------------------------------------


def test_records_08_a_command_cannot_remove_the_records(lab):
    needs(lab, "scoped")
    project = command_agent(lab, ['rm -rf "$MURMUR_RECORDS_DIR"', 'mktemp -p "$MURMUR_RECORDS_DIR/tmp"', 'mktemp'],
                            shell=("bash", "rm", "mktemp"))
    session, (removed, temporary, default) = run_commands(project)
    assert removed.code != 0 and re.search("Permission denied|Read-only file system", removed.stderr)
    assert session.trace.one("session_end")["exit_status"] == "ok"
    assert temporary.code == 0, temporary
    assert default.code == 0 and default.stdout.startswith("/tmp/")


def test_manifest_30_protected_paths_are_advisory_against_interpreters(lab):
    project = plain_agent(lab, {"shell": {"allow": ["bash", "cat"]}, "filesystem": {"read_only": ["tests"]}})
    report = project.run("--explain-scope", "--json").ok().json
    assert report["read_only_paths"] == ["tests"] and report["read_only_advisory_for"] == ["bash"]


def test_session_16_a_long_command_goes_on_in_the_background(lab):
    project = command_agent(lab, ["sleep 60"], shell=("bash", "sleep"), lifecycle={"shell_grace_secs": 1})

    result = project.run("--task", "go", "--workdir", project / "work", timeout=30).ok()

    told, = answers(project)
    work_id = re.search(r"wrk_[0-9a-f]+", told.text).group(0)
    trace = lab.session(result).trace
    detached, abandoned = trace.one("shell_detached"), trace.one("shell_abandoned")
    assert detached["work_id"] == abandoned["work_id"] == work_id
    assert 900 <= abandoned["running_ms"] <= 10_000 * SLOWER
    assert work_id in result.stderr
    log = (lab.session(result).records / f"logs/{work_id}.log").read_text()
    assert log.startswith("Command: sleep 60\n")


def test_session_18_long_output_is_cut_and_kept_whole(lab):
    line = "0123456789abcde"
    project = command_agent(lab, [f"for ((i = 0; i < 65536; i++)); do echo {line}; done"])

    session, (told,) = run_commands(project)

    log, = (session.records / "logs").glob("shell-*.log")
    assert told.stdout.count(line) == 16384 // 16
    assert f"logs/{log.name}" in told.text
    assert log.read_text().count(f"\n{line}") == 65536
    assert session.trace.one("shell")["stdout_bytes"] == MIB


def test_session_19_a_key_never_reaches_a_command(lab):
    project = command_agent(lab, ["env"], shell=("bash", "env"),
                            capabilities={"shell": {"baseline_env": ["OPENAI_API_KEY", "SEEN"]}})
    session, (told,) = run_commands(project, env={"OPENAI_API_KEY": "sk-do-not-show", "SEEN": "yes"})
    seen = dict(line.split("=", 1) for line in told.stdout.strip().splitlines())
    assert "OPENAI_API_KEY" not in seen and "sk-do-not-show" not in told.text
    assert seen["SEEN"] == "yes" and seen["HOME"] == str(session.records / "home")
    assert seen["TMPDIR"] == seen["TMP"] == seen["TEMP"] == "/tmp"

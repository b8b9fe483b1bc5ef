# SPDX-License-Identifier: Apache-2.0
#
# How an attempt of the escape suite is made: probe calls as commands of a real agent at one class, and what they printed.

import os
import shutil
import socket
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.commands import answers, command_agent, host_offers
from tests.support.hosts import CLASSES, PROBE, PROBE_PATH, without_landlock
from tests.support.lab import BUILD

PATH = PROBE_PATH
MIB = 1 << 20


@pytest.fixture(params=CLASSES)
def tier(request, lab):
    """A class this host reaches; `lab` runs on a kernel without Landlock for advisory."""
    assert PROBE.is_file(), f"{PROBE} is missing: run scripts/build {BUILD}"
    offered = host_offers(lab)
    if CLASSES.index(request.param) > CLASSES.index(offered):
        pytest.skip(f"this host backs {offered}, not {request.param}")
    if request.param == "advisory":
        without_landlock(lab)
    return request.param


def attempt(lab, tier, *calls, timeout=60, env=None, prepare=None, **more):
    """Runs probe calls (lists of words, or a bash line) as commands; returns what each printed, the preflight checked."""
    steps = [{"tool_calls": [{"name": "escape-probe", "input": {"command": "preflight"}}]}]
    for words in calls:
        is_line = isinstance(words, str)
        steps.append({"tool_calls": [{"name": "bash" if is_line else "escape-probe", "input": {
            "command": words if is_line else " ".join(f"'{word}'" for word in words)}}]})
    capabilities = {"containment": tier, **more.pop("capabilities", {})}
    project = command_agent(lab, steps, shell=("escape-probe", "bash"), name=f"agent-{len(os.listdir(lab.directory))}",
                            capabilities=capabilities, **more)
    if prepare:
        prepare(project)
    result = project.run("--task", "go", "--workdir", project / "work", timeout=timeout, env={"PATH": PATH, **(env or {})}).ok()
    told = answers(project)
    assert told[0].stdout == "ok the probe runs\n", f"preflight: {told[0]}\n{result}"
    start = lab.session(result).trace.one("session_start")
    assert start["effective_grants"]["enforcement_tier"] == {
        "advisory": "seccomp-only", "scoped": "landlock+seccomp", "sealed": "mountns+pivot_root+landlock+seccomp"}[tier]
    return [answer.stdout.strip() or answer.text for answer in told[1:]]


def is_refused(text, *errnos):
    return text.startswith("refused ") and (not errnos or text.split()[1] in errnos)


def expect(tier, text, advisory="-", scoped="R", sealed="R"):
    """R or S of the table for what the probe printed."""
    wanted = {"advisory": advisory, "scoped": scoped, "sealed": sealed}[tier]
    if wanted == "R":
        assert is_refused(text), f"{tier}: {text}"
    elif wanted == "S":
        assert text.startswith("ok"), f"{tier}: {text}"


@pytest.fixture
def outside():
    """A folder of the host that no session has anything to do with; not below /tmp, which commands have their own of."""
    directory = Path(tempfile.mkdtemp(prefix="murmur-escape-", dir="/var/tmp"))
    (directory / "secret").write_text("the host's\n")
    yield directory
    shutil.rmtree(directory)


@contextmanager
def listener(family=socket.AF_INET, address=("127.0.0.1", 0), kind=socket.SOCK_STREAM):
    """A server of the host that counts who reaches it; its answer is `reached`."""
    server = socket.socket(family, kind)
    server.bind(address)
    seen = []

    def serve():
        while True:
            try:
                if kind == socket.SOCK_DGRAM:
                    data, peer = server.recvfrom(100)
                    if peer is None:  # shut down
                        return
                    seen.append(data)
                    server.sendto(b"reached\n", peer)
                else:
                    client, _ = server.accept()
                    seen.append(client.recv(100))
                    client.sendall(b"reached\n")
                    client.close()
            except OSError:
                return
    if kind == socket.SOCK_STREAM:
        server.listen()
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname(), seen
    finally:
        try:
            server.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        server.close()

# SPDX-License-Identifier: Apache-2.0
#
# The units of systemd, read as it reads them: what a service works in is there before it starts, and its manager is told how it is.

import configparser
import contextlib
import re
import socket
import subprocess

import pytest

from tests.support.lab import BUILD, ROOT, Session
from tests.support.polling import eventually

UNITS = sorted((ROOT / "packaging/systemd").glob("*.service"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_each_folder_a_unit_names_below_its_state_is_made_for_it(unit):
    read = configparser.RawConfigParser(strict=False)
    read.optionxform = str
    read.read(unit)
    service = read["Service"]
    made = {f"/var/lib/{name}" for name in service["StateDirectory"].split()}
    words = [*service["ExecStart"].split(), service.get("WorkingDirectory", "/var/lib/murmur"), service["Environment"].split("=", 1)[1]]
    named = {word for word in words if word.startswith("/var/lib/")}
    assert named and named <= made


@pytest.fixture
def manager(lab):
    """The socket of a service manager, and the environment that names it."""
    path = lab.directory / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        bound.bind(str(path))
        bound.settimeout(30)
        yield bound, {"NOTIFY_SOCKET": str(path)}


def told(bound):
    return dict(line.split("=", 1) for line in bound.recv(4096).decode().split("\n"))


def test_a_service_manager_is_told_when_the_door_is_open_and_when_it_closes(lab, manager):
    bound, environment = manager
    project = lab.agent(steps=[{"text": "never", "delay_ms": 60000}], lifecycle={"task_acceptance": "queue", "after_task": "sleep"})
    session = project.start("--task", "wait", env=environment)
    said = told(bound)
    assert said["READY"] == "1" and re.fullmatch(r"ses_\w+ at localhost:\d+", said["STATUS"])
    recorded = Session(lab, said["STATUS"].split()[0])
    eventually(lambda: "task_start" in recorded.trace.types, 30, "the task begins")
    session.signal()
    assert told(bound) == {"STOPPING": "1", "STATUS": "winding down"}
    # Told to end while a task ran: neither done nor a failure of the service.
    assert session.result().code == 143
    assert "SuccessExitStatus=143" in (ROOT / "packaging/systemd/murmur@.service").read_text()


def test_a_service_manager_is_told_what_is_wrong_in_one_line(lab, manager):
    bound, environment = manager
    project = lab.agent(steps=[], capabilities={"network": {"allow": ["https://example.org/page"]}})
    project.run(env=environment).failed("E-CAP-001")
    assert re.match(r"error\[E-CAP-001\]: .*murmur.yaml.*example.org/page", told(bound)["STATUS"])


def test_a_referee_tells_when_it_listens(lab, manager):
    bound, environment = manager
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        done = subprocess.run([BUILD / "mur-roost", "--port", str(taken.getsockname()[1])], env=lab.environment(environment),
                              capture_output=True, text=True)
    assert done.returncode == 1 and told(bound)["STATUS"] in done.stderr
    roost = subprocess.Popen([BUILD / "mur-roost"], env=lab.environment(environment), stderr=subprocess.DEVNULL)
    said = told(bound)
    roost.terminate()
    assert roost.wait(30) == 0
    assert said == {"READY": "1", "STATUS": f"listening on unix:{lab.home}/.murmur/roost.sock"}


def test_the_referee_holds_no_sentence_of_the_reference():
    sentence = b"Hosts that may be reached"
    assert sentence in (BUILD / "mur").read_bytes()
    assert sentence not in (BUILD / "mur-roost").read_bytes()

# SPDX-License-Identifier: Apache-2.0
#
# Who may ask the referee, and for how long what it was told counts.

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from contextlib import closing

import pytest

from tests.support.lab import SLOWER
from tests.support.polling import eventually
from tests.support.roost import ROOST, Roost, publish_capsule


def session_id():
    return "ses_" + uuid.uuid4().hex


class SocketConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20 * SLOWER)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        here = os.open(os.path.dirname(self.path), os.O_PATH)
        try:
            self.sock.connect(f"/proc/self/fd/{here}/{os.path.basename(self.path)}")
        finally:
            os.close(here)


class SocketRoost:
    """A daemon as it listens by default: on a socket of the user's own."""

    def __init__(self, lab, *arguments):
        self.path = lab.murmur_home / "roost.sock"
        self.process = subprocess.Popen([str(ROOST), *map(str, arguments)], env=lab.environment(None), cwd=lab.directory,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        eventually(lambda: self.path.exists() or self.process.poll() is not None, 20 * SLOWER)
        assert self.process.poll() is None, self.process.stderr.read()

    def ask(self, method, path, body=None, **headers):
        with closing(SocketConnection(self.path)) as wire:
            wire.request(method, path, body=None if body is None else json.dumps(body),
                         headers={"content-type": "application/json", **{n.replace("_", "-"): v for n, v in headers.items()}})
            answer = wire.getresponse()
            return answer.status, json.loads(answer.read())

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20 * SLOWER) == 0
        self.process.stderr.close()


@pytest.fixture
def family(lab):
    publish_capsule(lab, "worker")
    return publish_capsule(lab, "lead", capabilities={"spawn": {"allow": ["local/worker"]}})


def registration(name="local/lead"):
    return {"session_id": session_id(), "name": name, "version": "0.1.0"}


REGISTERS = """import http.client, json, os, socket, sys, uuid
def send():
    wire = http.client.HTTPConnection("localhost")
    wire.sock = socket.socket(socket.AF_UNIX)
    os.chdir(os.path.dirname(sys.argv[1]))
    wire.sock.connect(os.path.basename(sys.argv[1]))
    wire.request("POST", "/register", json.dumps({"session_id": "ses_" + uuid.uuid4().hex, "name": "local/lead",
                                                  "version": "0.1.0"}), {"content-type": "application/json"})
    return wire.getresponse().status
print([send() for _ in range(int(sys.argv[2]))])
"""


def test_security_B6_a_phantom_is_gone_with_the_process_that_registered_it(lab, family):
    roost = SocketRoost(lab, "--spawn-allow", family, "--max-live-capsules", "3")
    try:
        done = subprocess.run([sys.executable, "-c", REGISTERS, str(roost.path), "3"], capture_output=True, text=True, timeout=30)
        assert done.stdout == "[200, 200, 200]\n", done
        status, answer = roost.ask("POST", "/register", registration())
        assert status == 200, answer
        status, answer = roost.ask("POST", "/spawn", {"name": "local/worker", "version": "0.1.0"},
                                   x_murmur_spawn_credential=answer["credential"])
        assert status == 200, answer
    finally:
        roost.close()
    assert not roost.path.exists()


def test_security_B6_the_sessions_a_daemon_remembers_are_bounded(lab, family):
    roost = SocketRoost(lab, "--spawn-allow", family)
    try:
        statuses = [roost.ask("POST", "/register", registration())[0] for _ in range(4100)]
        assert statuses == [200] * 4096 + [403] * 4
    finally:
        roost.close()


@pytest.mark.parametrize("headers", [
    {"content-type": "text/plain"}, {"content-type": "text/plain; application/json"}, {"content-type": "application/jsonp"},
    {"content-type": "multipart/form-data; boundary=application/json"},
    {"content-type": "application/json", "origin": "http://evil.example"}, {"origin": "null"},
    {"content-type": "application/json", "origin": "http://localhost:1"}])
def test_security_B6_a_page_of_a_browser_is_not_answered(lab, family, headers):
    roost = Roost(lab, "--spawn-allow", family, "--max-live-capsules", "3")
    try:
        for _ in range(3):
            answer = roost.ask("POST", "/register", registration(), headers)
            assert answer.status in (403, 415), str(answer)
        assert roost.register(session_id(), family).status == 200
    finally:
        roost.stop()


def test_security_B6_another_user_is_not_answered_without_the_token(lab, family):
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    roost = Roost(lab, "--spawn-allow", family)
    script = ("import http.client, os, sys\nos.setuid(65534)\nwire = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))\n"
              "wire.request('POST', '/register', sys.argv[2], dict([('content-type', 'application/json')] + "
              "([('x-murmur-roost-token', sys.argv[3])] if sys.argv[3] else [])))\nprint(wire.getresponse().status)\n")
    try:
        token = (lab.murmur_home / "roost.token").read_text()
        assert (lab.murmur_home / "roost.token").stat().st_mode & 0o777 == 0o600
        for given, status in (("", "403"), ("x" * len(token), "403"), (token, "200")):
            done = subprocess.run([sys.executable, "-c", script, str(roost.port), json.dumps(registration()), given],
                                  capture_output=True, text=True, timeout=30)
            assert done.stdout.strip() == status, done
    finally:
        roost.stop()


def test_security_B6_a_session_finds_the_daemon_on_the_socket(lab, family):
    project = lab.agent(name="lead", steps=[{"text": "done"}], capabilities={"spawn": {"allow": ["local/worker"]}})
    assert "MURMUR_ROOST_URL is not set" in project.run("--task", "x").failed("E-RUN-019").stderr
    roost = SocketRoost(lab, "--spawn-allow", family, "--spawn-allow", "local/agent", "--spawn-allow", "agent")
    try:
        told = project.run("--task", "x")
        assert "MURMUR_ROOST_URL is not set" not in told.stderr, told.stderr
    finally:
        roost.close()


def test_security_B6_what_finished_is_forgotten(lab, family):
    """Registrations that come and go cost no memory for ever."""
    roost = SocketRoost(lab, "--spawn-allow", family)
    try:
        def round_trip():
            status, answer = roost.ask("POST", "/register", registration())
            assert status == 200, answer
            assert roost.ask("POST", "/deregister", {"outcome": "complete"},
                             x_murmur_spawn_credential=answer["credential"])[0] == 200
        first = registration()
        credential = roost.ask("POST", "/register", first)[1]["credential"]
        roost.ask("POST", "/deregister", {"outcome": "complete"}, x_murmur_spawn_credential=credential)
        assert roost.ask("GET", f"/status/{first['session_id']}")[0] == 200
        for _ in range(50):
            round_trip()
        assert roost.ask("GET", f"/status/{first['session_id']}")[0] == 200, "it can be asked for a good while"
    finally:
        roost.close()


@pytest.mark.parametrize("head", [
    b"GET /health HTTP/1.1\nHost: x\n\n", b"GET /health HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n",
    b"POST /register HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    b"POST /register HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"POST /register HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n\r\n{}"])
def test_security_D9_heads_with_two_readings_are_refused(lab, family, head):
    roost = Roost(lab, "--spawn-allow", family)
    try:
        assert roost.raw(head).startswith(b"HTTP/1.1 400 "), head
    finally:
        roost.stop()


def test_security_D10_a_key_given_twice_is_refused(lab, family):
    roost = Roost(lab, "--spawn-allow", family)
    try:
        body = '{"session_id":"%s","name":"local/worker","name":"local/lead","version":"0.1.0"}' % session_id()
        assert "twice" in roost.ask("POST", "/register", body).refused(400)
    finally:
        roost.stop()


def test_security_B13_idle_connections_keep_nobody_out(lab, family):
    roost = Roost(lab, "--spawn-allow", family)
    idle = []
    try:
        for _ in range(200):
            idle.append(socket.create_connection(("127.0.0.1", roost.port), 20))
            idle[-1].sendall(b"GET /health HTT")
        began = time.monotonic()
        assert roost.ask("GET", "/health").status == 200
        assert time.monotonic() - began < 5 * SLOWER, "shed, not waited for"
    finally:
        for connection in idle:
            connection.close()
        roost.stop()

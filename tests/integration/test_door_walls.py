# SPDX-License-Identifier: Apache-2.0
#
# Who may ask at a door, and what a request may be: browsers' pages, content types, heads with two readings, bodies that add up.

import json
import os
import socket

import pytest

from tests.support.door_client import SLEEPER, Door
from tests.support.lab import SLOWER
from tests.support.polling import eventually

CALL = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}


@pytest.fixture
def door(lab):
    project = lab.agent(steps=[{"text": "done"}], lifecycle=SLEEPER)
    running = project.start()
    yield Door(running)
    running.signal()
    running.result(30 * SLOWER)


def raw(door, data, within_s=20):
    with socket.create_connection(door.address, within_s * SLOWER) as wire:
        wire.sendall(data)
        received = b""
        wire.settimeout(within_s * SLOWER)
        while b"\r\n\r\n" not in received:
            piece = wire.recv(65536)
            if not piece:
                break
            received += piece
        return received


def post(door, body=None, *lines):
    text = json.dumps(CALL).encode() if body is None else body
    given = [b"Host: localhost", b"A2A-Version: 1.0", *lines]
    if not any(line.lower().startswith(b"content-type") for line in given):
        given.append(b"Content-Type: application/json")
    return raw(door, b"POST / HTTP/1.1\r\n" + b"".join(line + b"\r\n" for line in given) +
               b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(text) + text)


def status(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/") else None


@pytest.mark.parametrize("value", [b"text/plain; application/json", b"multipart/form-data; boundary=application/json",
                                   b"application/x-www-form-urlencoded; x=application/json", b"application/jsonp", b"text/json"])
def test_security_B8_no_other_content_type_is_served(door, value):
    assert status(post(door, None, b"Content-Type: " + value)) == 404


def test_security_B8_json_types_are_served(door):
    for value in (b"application/json", b"Application/JSON; charset=utf-8", b"application/a2a+json"):
        assert status(post(door, None, b"Content-Type: " + value)) == 200, value


def test_security_D1_a_page_from_elsewhere_is_not_answered(door):
    for origin in (b"http://evil.example", b"https://evil.example:8080", b"null", b"http://localhost.evil.example",
                   b"http://127.0.0.1.evil.example", b"file://"):
        assert status(post(door, None, b"Origin: " + origin)) == 403, origin
    for origin in (b"http://localhost:3000", b"http://127.0.0.1", b"http://[::1]:8080"):
        assert status(post(door, None, b"Origin: " + origin)) == 200, origin
    assert status(post(door)) == 200, "programs send none"


def test_security_D1_a_key_allows_an_origin(lab):
    project = lab.agent(steps=[{"text": "done"}], lifecycle=SLEEPER, exports={"origins": ["https://app.example"]})
    running = project.start()
    try:
        door = Door(running)
        assert status(post(door, None, b"Origin: https://app.example")) == 200
        assert status(post(door, None, b"Origin: https://app.example.evil")) == 403
    finally:
        running.signal()
        running.result(30 * SLOWER)


@pytest.mark.parametrize("head", [
    b"POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 2\r\n\r\n{}",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    b"POST / HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    b"GET /.well-known/agent-card.json HTTP/1.1\r\n\r\n",
    b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: a\nX-Second: b\r\n\r\n",
    b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: a\r\nX-Second: b\0c\r\n\r\n"])
def test_security_D9_heads_with_two_readings_are_refused(door, head):
    assert status(raw(door, head)) == 400, head


def test_security_D9_plain_heads_are_answered(door):
    for head in (b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /.well-known/agent-card.json HTTP/1.0\r\n\r\n",
                 b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: a\r\nEmpty:\r\nBlanks:  x  \r\nAccept: */*\r\n\r\n"):
        assert status(raw(door, head)) == 200, head


def test_security_D10_a_key_given_twice_is_refused(door):
    body = b'{"jsonrpc":"2.0","id":1,"method":"ListTasks","method":"SendMessage","params":{}}'
    answer = post(door, body)
    assert b"-32700" in answer or b"-32600" in answer or status(answer) == 400 or b'"error"' in answer, answer


def test_security_B9_bodies_have_a_sum(door):
    """Ninety clients begin a body of 16 MiB and stop half-way: what they make the runtime hold is bounded, and others are served."""
    def resident():
        with open(f"/proc/{door.running.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    before = resident()
    open_ones = []
    try:
        for _ in range(90):
            wire = socket.create_connection(door.address, 20 * SLOWER)
            wire.settimeout(5 * SLOWER)
            open_ones.append(wire)
            try:
                wire.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n"
                             b"Content-Length: 16000000\r\n\r\n" + b" " * 8_000_000)
            except OSError:
                pass  # refused
        assert status(post(door)) == 200
        eventually(lambda: resident() - before < 200 << 20, 20 * SLOWER)
    finally:
        for wire in open_ones:
            wire.close()
    eventually(lambda: status(post(door)) == 200, 20 * SLOWER)

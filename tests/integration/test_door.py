# SPDX-License-Identifier: Apache-2.0
#
# The door of a real session, spoken to as its clients do: raw sockets, JSON, and the official Python client of A2A.

import asyncio
import json
import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import AgentCard, Message, Part, Role, SendMessageRequest
from google.protobuf import json_format

from tests.support.polling import eventually

SLEEPER = {"task_acceptance": "queue", "after_task": "sleep", "queue_depth": 4}
STREAM = "https://docs.murmur.nexus/reference/streaming-protocol/#murmur-stream-v1"


@pytest.fixture
def door(lab):
    running = lab.agent(steps=[{"text": "the answer"}], lifecycle=SLEEPER).start()
    running.url  # waits for the readiness line
    yield running
    running.signal()
    running.result(20)


def address(running):
    parts = urllib.parse.urlsplit(running.url)
    return parts.hostname, parts.port


def get(running, path):
    return urllib.request.urlopen(f"{running.url}{path}", timeout=20)


def raw(running, request, patience=10):
    host, port = address(running)
    with socket.create_connection((host, port), timeout=patience) as connection:
        connection.sendall(request)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received


def rpc(running, method, params=None, headers=None):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    request = urllib.request.Request(f"{running.url}/", data=json.dumps(body).encode(), headers={
        "content-type": "application/json", "A2A-Version": "1.0", **(headers or {})})
    return urllib.request.urlopen(request, timeout=30)


def call(running, method, params=None):
    with rpc(running, method, params) as reply:
        return json.load(reply)


def message(text="hello", **more):
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}], **more}}


def events(reply):
    for line in reply:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])["result"]


def test_door_the_card_is_a_strict_agent_card(door):
    text = get(door, "/.well-known/agent-card.json").read()
    card = json_format.Parse(text, AgentCard())
    assert card.supported_interfaces[0].url == door.url
    capsule = next(e["params"] for e in json.loads(text)["capabilities"]["extensions"] if "capsule-v1" in e["uri"])
    assert capsule["sessionId"] == door.session_id


def test_door_what_is_not_there_is_an_empty_404(door):
    for request in ("GET /", "GET /.well-known/agent.json", "OPTIONS /", "PUT /controls/x"):
        answer = raw(door, f"{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()).lower()
        assert answer.startswith(b"http/1.1 404 "), request
        assert b"content-length: 0\r\n" in answer and answer.endswith(b"\r\n\r\n")
        assert b"access-control" not in answer


def test_door_09_a_held_send_answers_with_the_finished_task(door):
    task = call(door, "SendMessage", message())["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert task["artifacts"][0]["name"] == "response"
    assert "the answer" in task["artifacts"][0]["parts"][0]["text"]
    at_once = call(door, "SendMessage", {**message(), "configuration": {"returnImmediately": True}})["result"]["task"]
    assert at_once["status"]["state"] == "TASK_STATE_SUBMITTED"


def test_door_10_a_client_that_leaves_changes_nothing(lab):
    running = lab.agent(steps=[{"text": "done anyway", "delay_ms": 300}], lifecycle=SLEEPER).start()
    host, port = address(running)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message()}).encode()
    with socket.create_connection((host, port)) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        eventually(lambda: call(running, "ListTasks")["result"]["totalSize"] == 1)
    task_id = call(running, "ListTasks")["result"]["tasks"][0]["id"]
    eventually(lambda: call(running, "GetTask", {"id": task_id})["result"]["status"]["state"] == "TASK_STATE_COMPLETED")
    running.signal()
    running.result(20).ok()


def test_door_14_a_watch_sees_two_tasks_and_stays_open(door):
    seen, done = [], threading.Event()

    def watch():
        try:
            with rpc(door, "murmur.WatchSession") as reply:
                for event in events(reply):
                    seen.append(event)
        except OSError:
            pass
        done.set()

    threading.Thread(target=watch, daemon=True).start()
    eventually(lambda: seen)
    for _ in range(2):
        call(door, "SendMessage", message())

    def completed():
        return [e for e in seen if e.get("statusUpdate", {}).get("status", {}).get("state") == "TASK_STATE_COMPLETED"]

    eventually(lambda: len(completed()) == 2)
    assert not done.is_set()
    assert seen[0]["message"]["metadata"][STREAM] == {
        "frame": "connection-ack", "role": "observer", "conversationMode": "stateless"}


def test_door_20_a_running_task_is_cancelled_at_once(lab):
    running = lab.agent(steps=[{"text": "never", "delay_ms": 60000}], lifecycle=SLEEPER).start()
    task = call(running, "SendMessage", {**message(), "configuration": {"returnImmediately": True}})["result"]["task"]
    eventually(lambda: call(running, "GetTask", {"id": task["id"]})["result"]["status"]["state"] == "TASK_STATE_WORKING")
    started = time.monotonic()
    assert call(running, "CancelTask", {"id": task["id"]})["result"]["status"]["state"] == "TASK_STATE_CANCELED"
    assert time.monotonic() - started < 2
    assert call(running, "CancelTask", {"id": task["id"]})["error"]["code"] == -32002
    running.signal()
    running.result(20)


def test_door_39_a_taken_port_is_named_and_leaves_no_record(lab):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = lab.agent(steps=[{"text": "x"}], network={"internal_port": port}).run("--task", "x")
    result.failed("E-RUN-010")
    assert str(port) in result.stderr
    running = lab.murmur_home / "running"
    assert not running.exists() or not list(running.iterdir())


def test_door_40_heads_and_bodies_beyond_the_limits(door):
    lines = b"".join(b"h%d: %s\r\n" % (i, b"x" * 1000) for i in range(66))
    assert raw(door, b"GET / HTTP/1.1\r\nHost: x\r\n" + lines + b"\r\n").startswith(b"HTTP/1.1 431 ")
    answer = raw(door, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                       b"Content-Length: 99999999999\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")
    host, port = address(door)
    idle = [socket.create_connection((host, port)) for _ in range(300)]
    assert get(door, "/.well-known/agent-card.json").status == 200
    for connection in idle:
        connection.close()


def test_door_the_official_client_discovers_sends_and_streams(door):
    async def talk():
        async with httpx.AsyncClient(timeout=30) as http:
            card = await A2ACardResolver(http, door.url).get_agent_card()
            client = ClientFactory(ClientConfig(httpx_client=http)).create(card)
            sent = SendMessageRequest(message=Message(
                message_id="m1", role=Role.ROLE_USER, parts=[Part(text="hello from the client")]))
            return [event async for event in client.send_message(sent)]

    received = asyncio.run(talk())
    assert "TASK_STATE_COMPLETED" in str(received[-1])
    assert any("the answer" in str(event) for event in received)


def test_door_closing_ends_watches_and_removes_the_record(lab):
    running = lab.agent(steps=[{"text": "x"}], lifecycle=SLEEPER).start()
    record = lab.murmur_home / "running" / f"{running.session_id}.json"
    assert record.stat().st_mode & 0o777 == 0o600
    with rpc(running, "murmur.WatchSession") as reply:
        next(events(reply))
        os.kill(running.pid, signal.SIGTERM)
        rest = list(events(reply))
    assert not any("capsule-closed" in json.dumps(event) for event in rest)
    running.result(20).ok()
    assert not record.exists()
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        get(running, "/")

# SPDX-License-Identifier: Apache-2.0
#
# Many clients at one door, slow ones and hostile ones. What is asserted is that everything is answered and answered right;
# how fast, bench/run measures.

import http.client
import json
import os
import re
import select
import socket
import threading
import time
from pathlib import Path

import pytest

from tests.support import head_mutator
from tests.support.door_client import SLEEPER, Door, message
from tests.support.fixtures import own_component
from tests.support.lab import IS_SANITIZED, SLOWER
from tests.support.polling import descriptor_count, eventually, threads_of

SECONDS = 10
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n"


def rss_mib(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS line")


@pytest.fixture
def busy(lab):
    """A capsule in the middle of a turn that does not end by itself."""
    running = lab.agent(steps=[{"text": "x", "delay_ms": 600000}], lifecycle=SLEEPER).start()
    door = Door(running)
    task = door.send_at_once()["id"]
    door.wait_for(task, "WORKING")
    yield running, door, task
    door.result("murmur.StopSession")
    running.signal()
    running.result(20)


def client_of(door, until, persistent, task, counts, faults):
    bodies = [json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).encode()
              for method, params in (("GetTask", {"id": task}), ("ListTasks", {}))]
    headers = {"content-type": "application/json", "A2A-Version": "1.0"}
    connection, count = None, 0
    try:
        while time.monotonic() < until:
            connection = connection or http.client.HTTPConnection(*door.address, timeout=30 * SLOWER)
            connection.request("POST", "/", bodies[count % 2], {**headers, **({} if persistent else {"connection": "close"})})
            reply = connection.getresponse()
            answer = json.loads(reply.read())
            found = answer["result"] if count % 2 == 0 else answer["result"]["tasks"][0]
            assert answer["id"] == 7 and found["id"] == task and found["status"]["state"] == "TASK_STATE_WORKING", answer
            assert reply.will_close == (not persistent)
            count += 1
            if not persistent:
                connection.close()
                connection = None
        if connection:
            connection.close()
    except Exception as fault:  # noqa: BLE001 - told by the test
        faults.append(fault)
    counts.append(count)


@pytest.mark.parametrize("persistent", [True, False])
def test_door_64_connections_are_answered_while_a_turn_runs(busy, persistent):
    running, door, task = busy
    before = descriptor_count(running.pid), threads_of(running.pid)
    counts, faults = [], []
    until = time.monotonic() + SECONDS
    clients = [threading.Thread(target=client_of, args=(door, until, persistent, task, counts, faults)) for _ in range(64)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert faults == [] and len(counts) == 64 and min(counts) >= 2, (faults[:3], counts)
    eventually(lambda: descriptor_count(running.pid) <= before[0] + 1, 10 * SLOWER)
    assert threads_of(running.pid) == before[1]


def numbers_of(text):
    """The ids of a stream's whole lines."""
    return [int(line[4:]) for line in text.split(b"\n")[:-1] if line.startswith(b"id: ")]


def lost(text):
    """How many events the stream said it lost."""
    return sum(int(count) for count in re.findall(rb'"frame":"lagged","missed":(\d+)', text))


def read_events(sockets, ends_with, within_s):
    """Reads all these streams with one thread until each has the bytes; returns what each got."""
    received = {connection: bytearray() for connection in sockets}
    open_ones, deadline = set(sockets), time.monotonic() + within_s
    poller = select.epoll()
    by_descriptor = {connection.fileno(): connection for connection in sockets}
    for descriptor in by_descriptor:
        poller.register(descriptor, select.EPOLLIN)
    while open_ones and time.monotonic() < deadline:
        for descriptor, _ in poller.poll(1):
            connection = by_descriptor[descriptor]
            chunk = connection.recv(65536)
            received[connection] += chunk
            if not chunk or ends_with in received[connection]:
                poller.unregister(descriptor)
                open_ones.discard(connection)
    poller.close()
    return received, open_ones


def test_door_500_watchers_see_every_event_in_order(lab):
    count, events = 500, 60
    tool = lab.publish("tool-probe", own_component("tool-probe"), "tool", description="probe",
                       input_schema={"type": "object", "properties": {"do": {"type": "string"}}})
    lines = "\n".join(f"emit line {number}" for number in range(events))
    running = lab.agent(steps=[{"tool_calls": [{"name": "tool-probe", "input": {"do": "ask go?"}}]},
                               {"tool_calls": [{"name": "tool-probe", "input": {"do": lines}}]}, {"text": "done"}],
                        tools=[tool], lifecycle=SLEEPER).start()
    door = Door(running)
    task = door.send()["id"]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task}}).encode()
    request = (HEAD + b"A2A-Extensions: https://docs.murmur.nexus/reference/streaming-protocol/#murmur-stream-v1\r\n"
               b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    before = rss_mib(running.pid)
    watchers = []
    try:
        for _ in range(count):
            watchers.append(socket.create_connection(door.address, timeout=30))
            watchers[-1].sendall(request)
        received, missing = read_events(watchers, b'"task":{', 30 * SLOWER)
        assert not missing
        assert IS_SANITIZED or rss_mib(running.pid) - before < count * 64 / 1024  # 64 KiB a watcher
        door.send_at_once("go", taskId=task)
        rest, missing = read_events(watchers, b"TASK_STATE_COMPLETED", 60 * SLOWER)
        assert not missing, len(missing)
        seen = set()
        for connection in watchers:
            text = bytes(received[connection] + rest[connection])
            numbers = [int(line[4:]) for line in text.split(b"\n") if line.startswith(b"id: ")]
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), numbers
            assert b'"lagged"' not in text
            seen.add(tuple(numbers))
        assert len(seen) == 1 and len(seen.pop()) >= events
    finally:
        for connection in watchers:
            connection.close()
    running.signal()
    running.result(20).ok()


def test_door_40_thousands_of_slow_connections_leave_the_card_answering(lab):
    """More than are let in: the longest without a head go. Half of them hold a head back, half a body."""
    running = lab.agent(steps=[{"text": "x"}], lifecycle=SLEEPER).start()
    door = Door(running)
    door.get()
    before = rss_mib(running.pid)
    slow = []
    try:
        for number in range(5000):
            try:
                connection = socket.create_connection(door.address, timeout=20)
                connection.sendall(HEAD + (b"Content-Length: 900000\r\n\r\n{" if number % 2 else b"X-Slow"))
            except OSError:
                continue  # shed while it was connecting
            slow.append(connection)
            if len(slow) > 1500:
                slow.pop(0).close()  # this test's own bound on descriptors
            if number % 500 == 499:
                assert door.get().status == 200
                assert door.result("ListTasks")["totalSize"] == 0
        assert IS_SANITIZED or rss_mib(running.pid) - before < 64, rss_mib(running.pid)
        assert door.send()["status"]["state"] == "TASK_STATE_COMPLETED"
    finally:
        for connection in slow:
            connection.close()
    eventually(lambda: descriptor_count(running.pid) < 100, 20 * SLOWER)
    running.signal()
    running.result(20).ok()


def test_door_40_streams_beyond_the_cap_are_refused_and_the_card_is_not(lab):
    """1 024 connections, 16 of them kept for short requests."""
    running = lab.agent(steps=[{"text": "x"}], lifecycle=SLEEPER).start()
    door = Door(running)
    body = b'{"jsonrpc":"2.0","id":1,"method":"murmur.WatchSession"}'
    watches, statuses = [], []
    try:
        for _ in range(1024):
            connection = socket.create_connection(door.address, timeout=20)
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            statuses.append(connection.recv(13))
            watches.append(connection)
        assert statuses.count(b"HTTP/1.1 200 ") == 1008 and set(statuses[1008:]) == {b"HTTP/1.1 503 "}
        assert door.get().status == 200
        assert door.result("ListTasks")["totalSize"] == 0
        held = door.request("POST", "/", door.headers(), json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message()}).encode())
        assert held.status == 503 and door.result("ListTasks")["totalSize"] == 0
    finally:
        for connection in watches:
            connection.close()
    running.signal()
    running.result(20).ok()


def test_door_40_a_stalled_reader_loses_its_stream_and_blocks_nobody(lab):
    tool = lab.publish("tool-probe", own_component("tool-probe"), "tool", description="probe",
                       input_schema={"type": "object", "properties": {"do": {"type": "string"}}})
    emitted = "\n".join(f"emit {'x' * 150} {number}" for number in range(300))
    turn = {"tool_calls": [{"name": "tool-probe", "input": {"do": emitted}}]}
    turns = 30
    running = lab.agent(steps=[turn, {"text": "done"}], tools=[tool], lifecycle=SLEEPER).start()
    door = Door(running)
    body = b'{"jsonrpc":"2.0","id":1,"method":"murmur.WatchSession"}'
    with socket.socket() as stalled:
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stalled.settimeout(30 * SLOWER)
        stalled.connect(door.address)
        stalled.sendall(HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        text = stalled.recv(1000)
        for _ in range(turns):
            assert door.send()["status"]["state"] == "TASK_STATE_COMPLETED"  # no task waited for the reader
        last = door.stream("murmur.WatchSession").until(lambda w: w.ids and w.states.count("COMPLETED") and w.ids[-1])
        while not numbers_of(text) or numbers_of(text)[-1] < last:
            chunk = stalled.recv(65536)
            assert chunk
            text += chunk
    numbers = numbers_of(text)
    assert numbers == sorted(numbers) and lost(text) > 0
    assert len(numbers) + lost(text) == numbers[-1]  # from 0: what was seen and what was lost is everything
    running.signal()
    running.result(20).ok()


def test_door_40_heads_that_nobody_means_are_survived(lab):
    seconds = float(os.environ.get("MURMUR_HEADS_SECONDS", "20" if "CI" in os.environ else "5"))
    seed = int(os.environ.get("MURMUR_HEADS_SEED", time.time_ns() % 100000))
    running = lab.agent(steps=[{"text": "x"}], lifecycle=SLEEPER).start()
    door = Door(running)
    door.get()
    before = descriptor_count(running.pid), threads_of(running.pid)
    print(f"seed {seed}")
    head_mutator.run(door.address, seconds, seed)
    assert door.get().status == 200
    assert door.send()["status"]["state"] == "TASK_STATE_COMPLETED"
    eventually(lambda: descriptor_count(running.pid) <= before[0] + 2, 40 * SLOWER)
    assert threads_of(running.pid) <= before[1] + 1 and (IS_SANITIZED or rss_mib(running.pid) < 64)
    running.signal()
    assert running.result(20).ok().stderr.count("\n") < 5

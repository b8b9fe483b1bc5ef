# SPDX-License-Identifier: Apache-2.0
#
# What a door takes: requests over many connections of one client thread, one event to many watchers, the first answer after a
# wait. The client is as thin as Python allows; where the client is the bound, both builds meet the same one.

import contextlib
import json
import select
import signal
import socket
import subprocess
import time
import urllib.parse

CONNECTIONS = 32
WATCHERS = 500
IDLE_S = 3.0
REQUESTS = {
    "card": b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: x\r\n%s\r\n",
    "list": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\nContent-Length: 45\r\n%s\r\n"
            b'{"jsonrpc":"2.0","id":1,"method":"ListTasks"}',
}


@contextlib.contextmanager
def capsule(subject, folder):
    """A capsule that waits for tasks: (address, process)."""
    process = subprocess.Popen([str(subject.path), "run", "--json"], cwd=folder, env=subject.env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        line = json.loads(process.stdout.readline())
        parts = urllib.parse.urlsplit("http://" + line["url"])
        yield (parts.hostname, parts.port), process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def dial(address):
    connection = socket.create_connection(address, timeout=20)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def is_whole(answer):
    head, mark, body = answer.partition(b"\r\n\r\n")
    if not mark:
        return False
    at = head.lower().find(b"content-length: ")
    return len(body) >= int(head[at + 16:].split(b"\r\n")[0])


def request_us(address, what, closes, seconds=1.0):
    """(mean, 99th percentile) microseconds a request takes, CONNECTIONS at a time. The mean is time by count."""
    request = REQUESTS[what] % (b"Connection: close\r\n" if closes else b"")
    poller, open_ones, took = select.epoll(), {}, []

    def send(connection):
        open_ones[connection.fileno()] = [connection, bytearray(), time.perf_counter_ns()]
        connection.sendall(request)

    def begin():
        connection = dial(address)
        poller.register(connection, select.EPOLLIN)
        send(connection)

    for _ in range(CONNECTIONS):
        begin()
    started = time.perf_counter_ns()
    until = started + int(seconds * 1e9)
    while time.perf_counter_ns() < until:
        for descriptor, _ in poller.poll(5):
            entry = open_ones[descriptor]
            chunk = entry[0].recv(65536)
            entry[1] += chunk
            if chunk and (closes or not is_whole(bytes(entry[1]))):
                continue
            took.append(time.perf_counter_ns() - entry[2])
            if chunk:
                send(entry[0])
                continue
            poller.unregister(entry[0])
            open_ones.pop(descriptor)[0].close()
            begin()
    elapsed = time.perf_counter_ns() - started
    for connection, _, _ in open_ones.values():
        connection.close()
    poller.close()
    took.sort()
    return elapsed / len(took) / 1e3, took[len(took) * 99 // 100] / 1e3


def fan_out_ms(address):
    """From sending a task to the moment every watcher has read of its end."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"murmur.WatchSession"}'
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\nContent-Length: %d\r\n\r\n%s"
    poller, watchers = select.epoll(), {}
    for _ in range(WATCHERS):
        connection = dial(address)
        connection.sendall(head % (len(body), body))
        while b"connection-ack" not in connection.recv(65536):
            pass
        watchers[connection.fileno()] = [connection, b"", 0]
        poller.register(connection, select.EPOLLIN)
    send = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {
        "messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}}}).encode()
    sender = dial(address)
    sender.sendall(head % (len(send), send))
    first, last, left = 0, 0, set(watchers)
    while left:
        for descriptor, _ in poller.poll(20):
            entry = watchers[descriptor]
            entry[1] = entry[1][-40:] + entry[0].recv(65536)
            if b"TASK_STATE_COMPLETED" in entry[1]:
                last = time.perf_counter_ns()
                first = first or last
                left.discard(descriptor)
    for connection, _, _ in watchers.values():
        connection.close()
    sender.close()
    poller.close()
    return (last - first) / 1e6


def after_idle_ms(address):
    """How long the first request takes once the capsule has waited. What Python and the name service take for a first
    connection of their own is over before: some milliseconds, and not the capsule's."""
    address = socket.getaddrinfo(*address, socket.AF_INET, socket.SOCK_STREAM)[0][4]
    time.sleep(IDLE_S)
    with socket.create_server(("127.0.0.1", 0)) as ours:
        dial(ours.getsockname()).close()
    started = time.perf_counter_ns()
    connection = dial(address)
    connection.sendall(REQUESTS["list"] % b"")
    connection.recv(65536)
    took = (time.perf_counter_ns() - started) / 1e6
    connection.close()
    return took

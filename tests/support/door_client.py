# SPDX-License-Identifier: Apache-2.0
#
# A door as its clients see it: raw bytes, JSON-RPC calls, and event streams read as they come.

import http.client
import json
import socket
import threading
import urllib.parse

from .lab import SLOWER
from .polling import eventually

DOOR = "https://docs.murmur.nexus/reference/agent-card/#murmur-door-v1"
CAPSULE = "https://docs.murmur.nexus/reference/agent-card/#murmur-capsule-v1"
STREAM = "https://docs.murmur.nexus/reference/streaming-protocol/#murmur-stream-v1"
SLEEPER = {"task_acceptance": "queue", "after_task": "sleep", "queue_depth": 4}


def message(text="hello", **more):
    """SendMessage's params; `parts` and other members of the message replace what is there."""
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}], **more}}


def at_once(params):
    return {**params, "configuration": {"returnImmediately": True}}


class Answer:
    """One HTTP answer."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Door:
    """`Door(running)`; `token` is sent with every call that does not say otherwise."""

    def __init__(self, running, token=None):
        self.running, self.token = running, token
        parts = urllib.parse.urlsplit(running.url)
        self.address = (parts.hostname, parts.port)

    def headers(self, more=()):
        """(name, value) lines of a JSON-RPC request."""
        lines = [("content-type", "application/json"), ("A2A-Version", "1.0")]
        if self.token:
            lines.append(("Authorization", f"Bearer {self.token}"))
        return lines + list(more)

    def request(self, method, path, headers=(), body=b"", patience=30):
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection(*self.address, timeout=patience * SLOWER)
        connection.putrequest(method, path)
        for name, value in headers:
            connection.putheader(name, value)
        if body:
            connection.putheader("content-length", str(len(body)))
        connection.endheaders(body or None)
        with connection.getresponse() as reply:
            answer = Answer(reply.status, reply.headers, reply.read())
        connection.close()
        return answer

    def get(self, path="/.well-known/agent-card.json"):
        return self.request("GET", path)

    def post(self, body, headers=None, patience=30):
        """A JSON-RPC body, bytes or an object, as it is."""
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", "/", self.headers() if headers is None else headers, body, patience)

    def call(self, method, params=None, request_id=1):
        """The JSON-RPC answer."""
        answer = self.post({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}})
        assert answer.status == 200, answer.body
        return answer.json

    def result(self, method, params=None):
        answer = self.call(method, params)
        assert "result" in answer, answer
        return answer["result"]

    def error(self, method, params=None):
        answer = self.call(method, params)
        assert "error" in answer, answer
        return answer["error"]

    def send(self, text="hello", **more):
        """The task once it has settled."""
        return self.result("SendMessage", message(text, **more))["task"]

    def send_at_once(self, text="hello", **more):
        return self.result("SendMessage", at_once(message(text, **more)))["task"]

    def task(self, task_id):
        return self.result("GetTask", {"id": task_id})

    def state(self, task_id):
        return self.task(task_id)["status"]["state"].removeprefix("TASK_STATE_")

    def wait_for(self, task_id, state, within_s=20):
        eventually(lambda: self.state(task_id) == state, within_s * SLOWER, f"{task_id} {state}")
        return self.task(task_id)

    def raw(self, request, patience=10):
        """Everything that comes until the door closes."""
        with socket.create_connection(self.address, timeout=patience * SLOWER) as connection:
            connection.sendall(request)
            received = b""
            while chunk := connection.recv(65536):
                received += chunk
            return received

    def stream(self, method, params=None, cursor=None, extended=True, headers=()):
        return Stream(self, method, params, cursor, extended, headers)


class Event:
    """One event of a stream: its id (None when unnumbered), the JSON-RPC object, and what is in it."""

    def __init__(self, number, envelope):
        self.id, self.envelope = number, envelope
        self.result = envelope["result"]

    @property
    def update(self):
        return self.result.get("statusUpdate") or {}

    @property
    def state(self):
        """The state a status says; None for frames, artifacts and messages."""
        return None if self.frame else self.update.get("status", {}).get("state", "").removeprefix("TASK_STATE_") or None

    @property
    def text(self):
        parts = self.update.get("status", {}).get("message", {}).get("parts", [{}])
        return parts[0].get("text")

    @property
    def frame(self):
        carrier = self.result.get("statusUpdate") or self.result.get("message") or {}
        found = carrier.get("metadata", {}).get(STREAM, {})
        return found if "frame" in found else None

    def __repr__(self):
        return f"<{self.id} {json.dumps(self.result)}>"


class Stream:
    """An event stream, read by a thread as it comes."""

    def __init__(self, door, method, params=None, cursor=None, extended=True, headers=()):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}).encode()
        lines = door.headers(headers)
        if extended:
            lines.append(("A2A-Extensions", STREAM))
        if cursor is not None:
            lines.append(("Last-Event-ID", str(cursor)))
        self._connection = http.client.HTTPConnection(*door.address, timeout=120)
        self._connection.putrequest("POST", "/")
        for name, value in lines:
            self._connection.putheader(name, value)
        self._connection.putheader("content-length", str(len(body)))
        self._connection.endheaders(body)
        self._socket = self._connection.sock  # a stream's reply takes it over
        self.reply = self._connection.getresponse()
        self.raw, self.events, self.is_over = b"", [], False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        number = None
        try:
            for line in self.reply:
                self.raw += line
                if line.startswith(b"id: "):
                    number = int(line[4:])
                elif line.startswith(b"data: "):
                    self.events.append(Event(number, json.loads(line[6:])))
                    number = None
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass  # closed by the test
        self.is_over = True

    @property
    def ids(self):
        return [event.id for event in self.events if event.id is not None]

    @property
    def states(self):
        return [event.state for event in self.events if event.state]

    def frames(self, name):
        return [event.frame for event in self.events if event.frame and event.frame["frame"] == name]

    def until(self, fact, within_s=20):
        """Waits until fact(self) is true; returns it."""
        return eventually(lambda: fact(self), within_s * SLOWER, f"the awaited event; so far: {self.events}")

    def end(self, within_s=20):
        """Waits until the door ends it; returns the events."""
        eventually(lambda: self.is_over, within_s * SLOWER, f"the end of the stream; so far: {self.events}")
        self.close()
        return self.events

    def close(self):
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the door was first
        self._thread.join(5)
        self._connection.close()
        self.reply.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

# SPDX-License-Identifier: Apache-2.0
"""A capsule that runs already, by its door: A2A over HTTP, with the standard library alone."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from typing import Any

STREAM = "https://docs.murmur.nexus/reference/streaming-protocol/#murmur-stream-v1"


class DoorError(Exception):
    """What the door refused: ``code`` of JSON-RPC, or of HTTP where it got no further."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:  # across processes, too
        return DoorError, (self.code, str(self))


class Door:
    """Calls of one door. ``address`` is "host:port"; ``token`` what `mur token` prints, where the door wants one."""

    def __init__(self, address: str, token: str | None = None, timeout: float = 30):
        self.url = address if "://" in address else f"http://{address}"
        self.token, self.timeout = token, timeout

    def _open(self, path: str, body: dict[str, Any] | None, accept: str, timeout: float | None) -> Any:
        headers = {"accept": accept, "a2a-version": "1.0", "a2a-extensions": STREAM}
        data = None
        if body is not None:
            headers["content-type"], data = "application/json", json.dumps(body).encode()
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        try:
            return urllib.request.urlopen(urllib.request.Request(self.url + path, data, headers), timeout=timeout)
        except urllib.error.HTTPError as refused:
            with refused:
                raise DoorError(refused.code, _said(refused.read()) or f"HTTP {refused.code}") from None

    def call(self, method: str, **params: Any) -> Any:
        """One JSON-RPC call: its result."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        with self._open("/", body, "application/json", self.timeout) as answer:
            return _result(answer.read())

    def card(self) -> dict[str, Any]:
        """The agent card."""
        with self._open("/.well-known/agent-card.json", None, "application/json", self.timeout) as answer:
            return dict(json.loads(answer.read()))

    def send(self, text: str, context: str | None = None, task: str | None = None, wait: bool = True) -> dict[str, Any]:
        """Sends a task, or the answer to what ``task`` asks; returns the task, ended or asking unless ``wait`` is false."""
        message = {"messageId": f"msg_{uuid.uuid4().hex}", "role": "ROLE_USER", "parts": [{"text": text}]}
        message |= {key: value for key, value in (("contextId", context), ("taskId", task)) if value}
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage",
                "params": {"message": message, "configuration": {"returnImmediately": not wait}}}
        with self._open("/", body, "application/json", None if wait else self.timeout) as answer:
            return dict(_result(answer.read())["task"])

    def task(self, task: str) -> dict[str, Any]:
        return dict(self.call("GetTask", id=task))

    def cancel(self, task: str) -> dict[str, Any]:
        return dict(self.call("CancelTask", id=task))

    def watch(self) -> Iterator[dict[str, Any]]:
        """Every event of the session, from its beginning, as A2A's StreamResponse; ends with it."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "murmur.WatchSession", "params": {}}
        with self._open("/", body, "text/event-stream", 60) as stream:
            for line in stream:
                if line.startswith(b"data:"):
                    yield _result(line[5:])


def _said(text: bytes) -> str | None:
    try:
        error = json.loads(text)["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, LookupError, TypeError):
        return None


def _result(text: bytes) -> Any:
    answer = json.loads(text)
    if "error" in answer:
        raise DoorError(answer["error"]["code"], answer["error"]["message"])
    return answer["result"]

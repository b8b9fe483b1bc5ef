# SPDX-License-Identifier: Apache-2.0
"""A capsule that runs already, by its door: A2A over HTTP, with the standard library alone."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator
from typing import Any

STREAM = "https://docs.murmur.nexus/reference/streaming-protocol/#murmur-stream-v1"
QUIET = 60  # seconds; a stream has a heartbeat every 15


class DoorError(Exception):
    """What the door refused: ``code`` of JSON-RPC, or of HTTP where it got no further. A door that is not reached, or goes away, is
    an OSError: ConnectionError, TimeoutError or urllib's URLError."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:  # across processes, too
        return DoorError, (self.code, str(self))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A door sends nobody elsewhere; whoever does must not get the token."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:
        return None


def _opener(url: str) -> urllib.request.OpenerDirector:
    """Of a door of this machine no proxy is asked, whatever the environment says."""
    host = urllib.parse.urlsplit(url).hostname or ""
    is_here = host in ("localhost", "::1") or host.startswith("127.")
    return urllib.request.build_opener(_NoRedirect, *([urllib.request.ProxyHandler({})] if is_here else []))


class Door:
    """Calls of one door. ``address`` is "host:port" or a URL; ``token`` what `mur token` prints, where the door wants one."""

    def __init__(self, address: str, token: str | None = None, timeout: float = 30):
        self.url = (address if "://" in address else f"http://{address}").rstrip("/")
        self.token, self.timeout = token, timeout
        self._opener = _opener(self.url)

    def _open(self, path: str, body: dict[str, Any] | None, accept: str, timeout: float | None) -> Any:
        headers = {"accept": accept, "a2a-version": "1.0", "a2a-extensions": STREAM}
        data = None
        if body is not None:
            headers["content-type"], data = "application/json", json.dumps(body).encode()
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        try:
            return self._opener.open(urllib.request.Request(self.url + path, data, headers), timeout=timeout)
        except urllib.error.HTTPError as refused:
            with refused:
                raise DoorError(refused.code, _said(refused.read()) or f"HTTP {refused.code}") from None

    def call(self, method: str, **params: Any) -> Any:
        """One JSON-RPC call: its result."""
        with self._open("/", _body(method, params), "application/json", self.timeout) as answer:
            return _result(answer.read())

    def card(self) -> dict[str, Any]:
        """The agent card."""
        with self._open("/.well-known/agent-card.json", None, "application/json", self.timeout) as answer:
            return _object(answer.read())

    def send(self, text: str, context: str | None = None, task: str | None = None, wait: bool = True) -> dict[str, Any]:
        """Sends a task, or the answer to what ``task`` asks; returns the task, ended or asking unless ``wait`` is false."""
        params = {"message": _message(text, context, task), "configuration": {"returnImmediately": not wait}}
        with self._open("/", _body("SendMessage", params), "application/json", None if wait else self.timeout) as answer:
            return dict(_result(answer.read())["task"])

    def stream(self, text: str, context: str | None = None, task: str | None = None) -> Iterator[dict[str, Any]]:
        """As `send`, with its events as A2A's StreamResponse, until it has ended or asks."""
        return self._events("SendStreamingMessage", {"message": _message(text, context, task)})

    def task(self, task: str) -> dict[str, Any]:
        return dict(self.call("GetTask", id=task))

    def cancel(self, task: str) -> dict[str, Any]:
        return dict(self.call("CancelTask", id=task))

    def watch(self) -> Iterator[dict[str, Any]]:
        """Every event of the session, from its beginning, as A2A's StreamResponse; ends with it."""
        return self._events("murmur.WatchSession", {})

    def _events(self, method: str, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
        with self._open("/", _body(method, params), "text/event-stream", QUIET) as stream:
            if stream.headers.get_content_type() != "text/event-stream":  # an answer, which is a refusal
                _result(stream.read())
            try:
                for line in stream:
                    if line.startswith(b"data:"):
                        yield _result(line[5:])
            except http.client.HTTPException as cut:
                raise ConnectionError(f"the door went away: {cut}") from None


def _body(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _message(text: str, context: str | None, task: str | None) -> dict[str, Any]:
    message = {"messageId": f"msg_{uuid.uuid4().hex}", "role": "ROLE_USER", "parts": [{"text": text}]}
    return message | {key: value for key, value in (("contextId", context), ("taskId", task)) if value}


def _said(text: bytes) -> str | None:
    try:
        error = json.loads(text)["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, LookupError, TypeError):
        return None


def _object(text: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError):
        raise DoorError(0, f"no door answers there: {text[:80]!r}") from None


def _result(text: bytes) -> Any:
    answer = _object(text)
    if "error" in answer:
        raise DoorError(answer["error"]["code"], answer["error"]["message"])
    return answer["result"]

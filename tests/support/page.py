# SPDX-License-Identifier: Apache-2.0
#
# `mur ui` as a browser and as a stranger meet it: its address, requests made byte by byte, its stream of events.

import http.client
import json
import os
import socket
import urllib.parse

from .lab import SLOWER
from .polling import eventually

HEADS = {
    "content-security-policy": "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class Page:
    """A server of the page over the lab's home. As a context manager."""

    def __init__(self, lab, *arguments, **how):
        self.lab = lab
        self.running = lab.start("ui", "--json", *arguments, **how)
        said = json.loads(self.running.wait_for(r"^\{.*\}$").group())
        self.url, self.pid = said["url"], said["pid"]
        parts = urllib.parse.urlsplit(self.url)
        self.port, self.token = parts.port, parts.fragment
        self.origin = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.running.is_running:
            self.running.signal()
        result = self.running.result(30 * SLOWER)
        assert result.code == 0, result

    # --- requests ---

    def raw(self, data, half_close=False):
        """All that comes back for these bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20 * SLOWER) as link:
            link.sendall(data)
            if half_close:
                link.shutdown(socket.SHUT_WR)
            link.settimeout(5 * SLOWER)
            got = b""
            while piece := link.recv(65536):
                got += piece
                head, _, body = got.partition(b"\r\n\r\n")
                length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                if length and len(body) >= int(length[0].split(b":")[1]):
                    return got
            return got

    def request(self, method="GET", path="/api/sessions", lines=None, body=b"", host=None, token="right"):
        """The status, the heads (lower case), the body. `lines` are further heads; None as host: ours, "" none at all."""
        heads = [] if host == "" else [f"Host: {host or f'127.0.0.1:{self.port}'}"]
        if token:
            heads.append(f"Authorization: Bearer {self.token if token == 'right' else token}")
        heads += lines or []
        if body:
            heads.append(f"Content-Length: {len(body)}")
        answer = self.raw((f"{method} {path} HTTP/1.1\r\n" + "".join(f"{line}\r\n" for line in heads) + "\r\n").encode("latin-1") + body)
        head, _, content = answer.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        return int(first.split()[1]), dict(line.lower().split(": ", 1) if ": " in line else (line.lower(), "") for line in rest), content

    def get(self, path):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30 * SLOWER)
        link.request("GET", f"/api/{path}", headers={"authorization": f"Bearer {self.token}"})
        answer = link.getresponse()
        data = answer.read()
        assert answer.status in (200, 206), (path, answer.status, data)
        return json.loads(data)

    def act(self, session, name, **asked):
        """The status and what is answered."""
        return self.post(f"session/{session}/{name}", **asked)

    def run(self, **asked):
        """The same of a launch."""
        return self.post("run", **asked)

    def post(self, path, **asked):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=90 * SLOWER)
        body = {"request_id": os.urandom(8).hex(), **asked}
        link.request("POST", f"/api/{path}", json.dumps(body),
                     {"authorization": f"Bearer {self.token}", "content-type": "application/json"})
        answer = link.getresponse()
        return answer.status, json.loads(answer.read())

    def lines(self, path):
        """The values of an answer that is a line of JSON each."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60 * SLOWER)
        link.request("GET", f"/api/{path}", headers={"authorization": f"Bearer {self.token}"})
        answer = link.getresponse()
        assert answer.status == 200, answer.read()
        return [json.loads(line) for line in answer.read().splitlines()]

    def session(self, session_id):
        return next((row for row in self.get("sessions")["sessions"] if row["id"] == session_id), None)

    def asking(self, session_id):
        """The task of a session that asks something."""
        def look():
            row = self.session(session_id)
            return next((task for task in (row or {}).get("tasks", []) if task["state"] == "INPUT_REQUIRED"), None)
        return eventually(look, 30 * SLOWER, "it asks")

    def events(self, last_id=None):
        return Events(self, last_id)


class Events:
    """The stream of events, read as it comes."""

    def __init__(self, page, last_id=None):
        self.link = http.client.HTTPConnection("127.0.0.1", page.port, timeout=30 * SLOWER)
        self.link.request("GET", "/api/stream", headers={"authorization": f"Bearer {page.token}", **({"last-event-id": last_id} if last_id else {})})
        self.answer = self.link.getresponse()
        assert self.answer.status == 200
        self.last_id = last_id

    def __iter__(self):
        while line := self.answer.readline():
            text = line.decode().rstrip("\n")
            if text.startswith("id: "):
                self.last_id = text[4:]
            elif text.startswith("data: "):
                yield json.loads(text[6:])

    def until(self, wanted):
        """The events up to the first that `wanted` is true of."""
        seen = []
        for event in self:
            seen.append(event)
            if wanted(event):
                return seen
        raise AssertionError(f"the stream ended: {seen[-5:]}")

    def close(self):
        self.answer.close()
        self.link.close()

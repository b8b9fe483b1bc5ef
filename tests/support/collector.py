# SPDX-License-Identifier: Apache-2.0
#
# A collector of spans as a test sees one: every request to its last byte, and the spans in it.

import json
import socket
import threading
import time


class Collector:
    """Answers each POST; `status` is what it says, `delay_s` how long it takes. As a context manager."""

    def __init__(self, status="200 OK", delay_s=0, answers=True):
        self.status, self.delay_s, self.answers = status, delay_s, answers
        self.requests, self.saw_half_close = [], False
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                wire, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(wire,), daemon=True).start()

    def _serve(self, wire):
        with wire:
            data = b""
            while b"\r\n\r\n" not in data:
                piece = wire.recv(65536)
                if not piece:
                    return
                data += piece
            head, body = data.split(b"\r\n\r\n", 1)
            lines = head.decode().split("\r\n")
            headers = [tuple(line.split(": ", 1)) for line in lines[1:]]
            length = int(dict(headers)["Content-Length"])
            while len(body) < length:
                body += wire.recv(65536)
            wire.settimeout(0.05)
            try:
                self.saw_half_close |= wire.recv(1) == b""
            except TimeoutError:
                pass
            time.sleep(self.delay_s)
            self.requests.append((lines[0], headers, json.loads(body)))
            if self.answers:
                wire.settimeout(5)
                wire.sendall(f"HTTP/1.1 {self.status}\r\nContent-Length: 2\r\n\r\n{{}}".encode())
            else:
                time.sleep(60)

    @property
    def spans(self):
        """In the order they came."""
        return [Span(span, resource["resource"]) for _, _, body in self.requests for resource in body["resourceSpans"]
                for scope in resource["scopeSpans"] for span in scope["spans"]]

    def named(self, name):
        return [span for span in self.spans if span.name == name]

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)  # also wakes who waits in accept
        self._socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Span:
    def __init__(self, span, resource):
        self.raw, self.resource = span, values(resource["attributes"])
        self.name, self.trace, self.id = span["name"], span["traceId"], span["spanId"]
        self.parent = span.get("parentSpanId")
        self.attributes = values(span["attributes"])
        self.start, self.end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])


def values(attributes):
    found = {}
    for attribute in attributes:
        (kind, value), = attribute["value"].items()
        found[attribute["key"]] = int(value) if kind == "intValue" else value
    return found

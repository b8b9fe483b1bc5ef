# SPDX-License-Identifier: Apache-2.0
"""HTTP for a component: what the capsule's manifest lets through (`network.allow`, or a gateway). Sockets lead nowhere."""

import json as json_text
from dataclasses import dataclass
from urllib.parse import urlsplit

from componentize_py_types import Err, Ok
from wit_world.imports import outgoing_handler
from wit_world.imports import types as http
from wit_world.imports.streams import StreamError_Closed

METHODS = {name: getattr(http, f"Method_{name.title()}") for name in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")}
# As much as an output stream takes at once.
PIECE = 4096


@dataclass
class Response:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self):
        return json_text.loads(self.body)


def fetch(url: str, method: str = "GET", headers: dict[str, str] | None = None, body: bytes | str = b"") -> Response:
    """One request and its whole answer, whatever its status. OSError says why there is none: refused, no connection, a timeout."""
    try:
        return _fetch(urlsplit(url), method.upper(), headers or {}, body.encode() if isinstance(body, str) else body)
    except Err as problem:
        raise OSError(f"{method} {url}: {_reason(problem.value)}") from None


def _fetch(url, method, headers, body):
    fields = http.Fields()
    for name, value in headers.items():
        fields.append(name, value.encode())
    request = http.OutgoingRequest(fields)
    request.set_method(METHODS[method]() if method in METHODS else http.Method_Other(method))
    request.set_scheme(http.Scheme_Http() if url.scheme == "http" else http.Scheme_Https())
    request.set_authority(url.netloc)
    request.set_path_with_query((url.path or "/") + (f"?{url.query}" if url.query else ""))
    outgoing = request.body()
    coming = outgoing_handler.handle(request, None)
    with outgoing.write() as stream:
        for at in range(0, len(body), PIECE):
            stream.blocking_write_and_flush(body[at:at + PIECE])
    http.OutgoingBody.finish(outgoing, None)
    with coming.subscribe() as head:
        head.block()
    match coming.get():
        case Ok(Ok(response)):
            return _read(response)
        case Ok(Err(reason)):
            raise Err(reason)
        case _:
            raise OSError("no answer came")


def _read(response):
    with response.headers() as fields:
        headers = [(name.lower(), value.decode("latin-1")) for name, value in fields.entries()]
    pieces = []
    with response.consume() as incoming, incoming.stream() as stream:
        try:
            while True:
                pieces.append(stream.blocking_read(65536))
        except Err as end:
            if not isinstance(end.value, StreamError_Closed):
                raise
    return Response(response.status(), headers, b"".join(pieces))


def _reason(error) -> str:
    """`ErrorCode_ConnectionRefused()` as words."""
    detail = getattr(error, "value", None)
    if hasattr(detail, "to_debug_string"):
        return detail.to_debug_string()
    name = type(error).__name__.rpartition("_")[2]
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()
    return f"{words}: {detail}" if detail else words or "refused"

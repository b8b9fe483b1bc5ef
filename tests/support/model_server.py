# SPDX-License-Identifier: Apache-2.0
#
# A model provider that answers from a script: POST /v1/messages, whole or streamed as server-sent events, with every fault
# a network can show. It logs each request and each connection.
#
# Always true: replies are taken in order, one a request; a request beyond the script is answered 500 and fails the test
# through `unexpected`.

import json
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Reply:
    """One scripted answer. `content` holds blocks; the rest says how it travels."""

    content: list = field(default_factory=list)
    stop_reason: str = "end_turn"
    usage: dict = field(default_factory=lambda: {"input_tokens": 10, "output_tokens": 5})
    status: int = 200
    headers: dict = field(default_factory=dict)
    body: bytes | None = None  # sent as it is, in place of the content
    content_type: str | None = None  # in place of the one that follows from the rest
    delay_s: float = 0.0  # before the first byte
    chunk_bytes: int | None = None  # how many body bytes a chunk carries (None: a whole event, or the whole body)
    between_chunks_s: float = 0.0
    reset_after_bytes: int | None = None  # connection reset once so many body bytes are out; 0 = before the head
    hold: threading.Event | None = None  # the answer waits for this, a lost connection or the server's end
    hold_body: threading.Event | None = None  # the same, after the first chunk of the body


def answer(text, **how):
    """The model ends its turn with this text."""
    return Reply(content=[{"type": "text", "text": text}], **how)


def call(name, arguments, call_id=None, text=None, **how):
    """The model calls one tool."""
    block = {"type": "tool_use", "id": call_id or f"call_{name}", "name": name, "input": arguments}
    before = [{"type": "text", "text": text}] if text else []
    return Reply(content=before + [block], stop_reason="tool_use", **how)


def calls(*pairs, **how):
    """The model calls several tools in one turn: (name, arguments) each."""
    blocks = [{"type": "tool_use", "id": f"call_{index}", "name": name, "input": arguments}
              for index, (name, arguments) in enumerate(pairs)]
    return Reply(content=blocks, stop_reason="tool_use", **how)


def fault(status, message="scripted fault", **how):
    """The provider refuses: 429, 500, 529 and so on; `headers={"retry-after": "1"}` where it says when to come back."""
    body = json.dumps({"type": "error", "error": {"type": "api_error", "message": message}}).encode()
    return Reply(status=status, body=body, **how)


@dataclass
class Request:
    method: str
    path: str
    headers: dict  # names in lower case
    body: bytes
    at: float
    connection: int
    is_client_gone: bool = False

    @property
    def json(self):
        return json.loads(self.body)


def stream_events(reply, model):
    """The answer as the provider's server-sent events."""
    def event(kind, **data):
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()

    usage = dict(reply.usage)
    output_tokens = usage.pop("output_tokens", 0)
    yield event("message_start", message={
        "id": "msg_scripted", "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {**usage, "output_tokens": 1}})
    for index, block in enumerate(reply.content):
        if block["type"] == "text":
            yield event("content_block_start", index=index, content_block={"type": "text", "text": ""})
            pieces = [{"type": "text_delta", "text": block["text"]}]
        elif block["type"] == "thinking":
            yield event("content_block_start", index=index, content_block={"type": "thinking", "thinking": ""})
            pieces = [{"type": "thinking_delta", "thinking": block["thinking"]}]
        else:
            yield event("content_block_start", index=index, content_block={**block, "input": {}})
            pieces = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        for piece in pieces:
            yield event("content_block_delta", index=index, delta=piece)
        yield event("content_block_stop", index=index)
    yield event("message_delta", delta={"stop_reason": reply.stop_reason, "stop_sequence": None},
                usage={"output_tokens": output_tokens})
    yield event("message_stop")


def whole_message(reply, model):
    return json.dumps({
        "id": "msg_scripted", "type": "message", "role": "assistant", "model": model, "content": reply.content,
        "stop_reason": reply.stop_reason, "stop_sequence": None, "usage": reply.usage}).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        with self.server.model.lock:
            self.server.model.connections += 1
            self.connection_number = self.server.model.connections
        self.server.model.open_sockets.add(self.connection)

    def finish(self):
        self.server.model.open_sockets.discard(self.connection)
        try:
            super().finish()
        except OSError:
            pass

    def log_message(self, *_args):
        pass

    def do_GET(self):
        self.respond(b"")

    def do_POST(self):
        length = self.headers.get("content-length")
        if length is not None:
            body = self.rfile.read(int(length))
        else:
            body = self.read_chunks()
        self.respond(body)

    do_PUT = do_DELETE = do_HEAD = do_PATCH = do_POST

    def read_chunks(self):
        body = b""
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return body
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            piece = self.rfile.read(size)
            self.rfile.readline()
            if size == 0:
                return body
            body += piece

    def respond(self, body):
        model = self.server.model
        request = Request(self.command, self.path, {name.lower(): value for name, value in self.headers.items()},
                          body, time.monotonic(), self.connection_number)
        reply = model.take(request)
        try:
            self.send(request, reply)
        except (BrokenPipeError, ConnectionResetError):
            request.is_client_gone = True
            self.close_connection = True

    def send(self, request, reply):
        self.wait(request, reply.hold)
        if reply.delay_s:
            self.pause(request, reply.delay_s)
        if reply.reset_after_bytes == 0:
            self.reset()
            return
        try:
            asked = json.loads(request.body) if request.body else {}
        except ValueError:
            asked = {}
        is_stream = reply.body is None and isinstance(asked, dict) and asked.get("stream") is True
        name = asked.get("model", "scripted") if isinstance(asked, dict) else "scripted"
        if reply.body is not None:
            pieces = [reply.body]
        elif is_stream:
            pieces = list(stream_events(reply, name))
        else:
            pieces = [whole_message(reply, name)]
        if reply.chunk_bytes:
            whole = b"".join(pieces)
            pieces = [whole[at:at + reply.chunk_bytes] for at in range(0, len(whole), reply.chunk_bytes)]
        is_chunked = is_stream or reply.chunk_bytes is not None or reply.hold_body is not None

        self.send_response(reply.status)
        self.send_header("content-type", reply.content_type or ("text/event-stream" if is_stream else "application/json"))
        for header, value in reply.headers.items():
            self.send_header(header, value)
        if is_chunked:
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-length", str(sum(map(len, pieces))))
        self.end_headers()
        sent = 0
        for index, piece in enumerate(pieces):
            if reply.reset_after_bytes is not None and sent + len(piece) >= reply.reset_after_bytes:
                self.write(piece[:reply.reset_after_bytes - sent], is_chunked)
                self.reset()
                return
            self.write(piece, is_chunked)
            sent += len(piece)
            if index == 0:
                self.wait(request, reply.hold_body)
            if reply.between_chunks_s and index + 1 < len(pieces):
                self.pause(request, reply.between_chunks_s)
        if is_chunked:
            self.wfile.write(b"0\r\n\r\n")

    def write(self, piece, is_chunked):
        if piece:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if is_chunked else piece)

    def wait(self, request, event):
        """Until the event is set, the client is gone or the server closes."""
        while event is not None and not event.wait(0.01) and not self.server.model.is_closing.is_set():
            self.notice_lost_client(request)

    def pause(self, request, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.server.model.is_closing.wait(min(0.01, seconds)):
            self.notice_lost_client(request)

    def notice_lost_client(self, request):
        try:
            if self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b"":
                raise ConnectionResetError
        except BlockingIOError:
            return
        except OSError:
            request.is_client_gone = True
            raise

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass


class ModelServer:
    """`with ModelServer() as model: model.script(answer("hello"))`"""

    def __init__(self):
        self.lock = threading.Lock()
        self.requests = []
        self.unexpected = []
        self.connections = 0
        self.open_sockets = set()
        self.is_closing = threading.Event()
        self._replies = []
        self._repeat = None
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.model = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.close()

    @property
    def port(self):
        return self._server.server_address[1]

    @property
    def host(self):
        return f"127.0.0.1:{self.port}"

    @property
    def url(self):
        return f"http://{self.host}"

    def script(self, *replies, repeat=None):
        """Appends replies; each is a Reply or a function of the Request that returns one. After them, `repeat` for ever."""
        with self.lock:
            self._replies += replies
            self._repeat = repeat if repeat is not None else self._repeat
        return self

    def take(self, request):
        with self.lock:
            self.requests.append(request)
            if self._replies:
                reply = self._replies.pop(0)
            elif self._repeat is not None:
                reply = self._repeat
            else:
                self.unexpected.append(request)
                return fault(500, "the script has no more answers")
        return reply(request) if callable(reply) else reply

    @property
    def open_connections(self):
        return len(self.open_sockets)

    def close(self):
        self.is_closing.set()
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self.open_sockets):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self._thread.join(5)

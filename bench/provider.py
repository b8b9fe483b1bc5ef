# SPDX-License-Identifier: Apache-2.0
#
# A model provider that costs as little as a Python program can: canned answers over persistent connections, so that what is
# measured is mur. One thread a connection; it speaks just enough HTTP/1.1 for POST /v1/messages.

import json
import socket
import threading


def _event(kind, **data):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"


def _stream(content, stop_reason):
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "bench", "content": [], "stop_reason": None,
             "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1}}
    text = _event("message_start", message=start)
    for index, block in enumerate(content):
        empty = {**block, "input": {}} if block["type"] == "tool_use" else {"type": "text", "text": ""}
        delta = ({"type": "input_json_delta", "partial_json": json.dumps(block["input"])} if block["type"] == "tool_use"
                 else {"type": "text_delta", "text": block["text"]})
        text += _event("content_block_start", index=index, content_block=empty)
        text += _event("content_block_delta", index=index, delta=delta)
        text += _event("content_block_stop", index=index)
    text += _event("message_delta", delta={"stop_reason": stop_reason, "stop_sequence": None}, usage={"output_tokens": 5})
    return text + _event("message_stop")


def _whole(content, stop_reason):
    return json.dumps({"id": "msg_1", "type": "message", "role": "assistant", "model": "bench", "content": content,
                       "stop_reason": stop_reason, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 5}})


def _response(content, stop_reason):
    """The same answer twice: whole, and as a stream."""
    made = []
    for text, kind in ((_whole(content, stop_reason), "application/json"),
                       (_stream(content, stop_reason), "text/event-stream")):
        body = text.encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
        made.append(head.encode() + body)
    return made


class Provider:
    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests = 0
        self._calls = []
        self._end = _response([{"type": "text", "text": "done"}], "end_turn")
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self._listener.close()

    def script_turns(self, count, tool):
        """The next `count` requests are answered with a call of `tool`, the one after with the end."""
        self.requests = 0
        self._calls = [_response([{"type": "tool_use", "id": f"call_{number}", "name": tool,
                                   "input": {"text": "x" * 64}}], "tool_use") for number in range(count)]

    def script_batches(self, count, size, tool, arguments):
        """The next `count` requests are answered with `size` calls of `tool` each, the one after with the end."""
        self.requests = 0
        self._calls = [_response([{"type": "tool_use", "id": f"call_{number}_{n}", "name": tool, "input": arguments}
                                  for n in range(size)], "tool_use") for number in range(count)]

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        held = b""
        with connection:
            while True:
                request, held = self._read(connection, held)
                if request is None:
                    return
                answer = self._calls[self.requests] if self.requests < len(self._calls) else self._end
                self.requests += 1
                is_stream = b'"stream":true' in request or b'"stream": true' in request
                connection.sendall(answer[1 if is_stream else 0])

    @staticmethod
    def _read(connection, held):
        """One request and what came after it; (None, b"") at the connection's end."""
        def more():
            nonlocal held
            try:
                piece = connection.recv(262144)
            except OSError:
                piece = b""
            held += piece
            return bool(piece)

        while (end := held.find(b"\r\n\r\n")) < 0:
            if not more():
                return None, b""
        head = held[:end].lower()
        at = end + 4
        if b"transfer-encoding: chunked" in head:
            while held.find(b"\r\n0\r\n\r\n", at - 2) < 0 and not held.startswith(b"0\r\n\r\n", at):
                if not more():
                    return None, b""
            at = held.find(b"0\r\n\r\n", at) + 5
        else:
            found = head.find(b"content-length:")
            length = int(head[found + 15:].split(b"\r\n")[0]) if found >= 0 else 0
            while len(held) < at + length:
                if not more():
                    return None, b""
            at += length
        return held[:at], held[at:]

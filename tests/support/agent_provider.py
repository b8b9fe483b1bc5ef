# SPDX-License-Identifier: Apache-2.0
#
# A scripted provider in the wire forms that coding agents speak, streaming: the Messages, Responses, Chat Completions and
# generateContent forms. A step answers one request that offers tools: {"text": ...}, {"tool": name, "input": {...}}, {"status": N, "headers": {...}},
# {"cut": True} (the stream breaks off), {"wait": event} (an answer comes once it is set). Beyond the script it says "done".

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ERRORS = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
USAGE = {"input_tokens": 11, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3, "output_tokens": 9}


class AgentProvider:
    def __init__(self, *steps):
        self.steps, self.requests, self.lock = list(steps), [], threading.Lock()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.say(404, {}, b"{}")

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
                provider.answer(self, body)

            def say(self, status, headers, data):
                self.send_response(status)
                for name, value in {"content-type": "application/json", **headers, "content-length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @property
    def keys(self):
        return {dict(headers).get("x-api-key") or dict(headers).get("authorization") for _, headers, _ in self.requests}

    @property
    def shown(self):
        """The headers that carried a key, as (name, value)."""
        return {pair for _, headers, _ in self.requests for pair in headers if pair[0] in KEY_HEADERS}

    @property
    def results(self):
        """What came back of tools, as texts, in order and each once."""
        seen = {}
        for _, _, body in self.requests:
            for message in body.get("messages", []):
                if message["role"] == "tool":
                    seen[message["tool_call_id"]] = text_of(message["content"])
                for part in message["content"] if isinstance(message["content"], list) else []:
                    if part.get("type") == "tool_result":
                        seen[part["tool_use_id"]] = text_of(part["content"])
            for item in body.get("input", []) if isinstance(body.get("input"), list) else []:
                if item.get("type") in ("function_call_output", "custom_tool_call_output"):
                    seen[item["call_id"]] = text_of(item["output"])
            for number, content in enumerate(body.get("contents", [])):
                for part in content.get("parts", []):
                    if "functionResponse" in part:
                        seen[number] = json.dumps(part["functionResponse"]["response"])
        return list(seen.values())

    def answer(self, handler, body):
        if "count_tokens" in handler.path:
            return handler.say(200, {}, b'{"input_tokens": 11}')
        has_tools = bool(body.get("tools"))
        with self.lock:
            self.requests.append((handler.path, [(name.lower(), value) for name, value in handler.headers.items()], body))
            number = len(self.requests)
            step = (self.steps.pop(0) if self.steps else {"text": "done"}) if has_tools else {"text": "a title"}
        if "wait" in step:
            step["wait"].wait(60)
        if "status" in step:
            return handler.say(step["status"], step.get("headers", {}), json.dumps(
                {"type": "error", "error": {"type": ERRORS.get(step["status"], "api_error"), "message": "scripted refusal"}}).encode())
        if "enerateContent" in handler.path or "/chat/completions" in handler.path:
            return self.answer_otherwise(handler, step, body, number)
        if not body.get("stream") and "/responses" not in handler.path:
            return handler.say(200, {}, json.dumps(whole_message(step, body, number)).encode())
        events = responses_events(step, body, number) if "/responses" in handler.path else messages_events(step, body, number)
        data = "".join(f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n" for kind, fields in events).encode()
        if step.get("cut"):
            data = data[:len(data) // 2]
            handler.send_response(200)
            handler.send_header("content-type", "text/event-stream")
            handler.send_header("content-length", str(len(data) * 2))
            handler.end_headers()
            handler.wfile.write(data)
            handler.close_connection = True
            return None
        return handler.say(200, {"content-type": "text/event-stream"}, data)


    def answer_otherwise(self, handler, step, body, number):
        """The forms whose events have no names."""
        is_chat = "/chat/completions" in handler.path
        events = list(chat_events(step, body, number) if is_chat else [generated(step)])
        if not (body.get("stream") if is_chat else "streamGenerateContent" in handler.path):
            return handler.say(200, {}, json.dumps(whole_chat(step, body, number) if is_chat else events[0]).encode())
        data = "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events) + ("data: [DONE]\n\n" if is_chat else "")
        return handler.say(200, {"content-type": "text/event-stream"}, data.encode())


def chat_call(step, number):
    return {"id": f"call_{number}", "type": "function", "function": {"name": step["tool"], "arguments": json.dumps(step["input"])}}


CHAT_USAGE = {"prompt_tokens": 16, "prompt_tokens_details": {"cached_tokens": 5}, "completion_tokens": 9, "total_tokens": 25}


def whole_chat(step, body, number):
    message = {"role": "assistant", "content": step.get("text")}
    if "tool" in step:
        message["tool_calls"] = [chat_call(step, number)]
    return {"id": f"c{number}", "object": "chat.completion", "created": 1, "model": body.get("model"), "usage": CHAT_USAGE,
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if "tool" in step else "stop"}]}


def chat_events(step, body, number):
    def chunk(*choices, **more):
        return {"id": f"c{number}", "object": "chat.completion.chunk", "created": 1, "model": body.get("model"),
                "choices": list(choices), **more}

    if "tool" in step:
        yield chunk({"index": 0, "delta": {"role": "assistant", "tool_calls": [{"index": 0, **chat_call(step, number)}]}, "finish_reason": None})
    else:
        for piece in (step["text"][:2], step["text"][2:]):
            yield chunk({"index": 0, "delta": {"role": "assistant", "content": piece}, "finish_reason": None})
    yield chunk({"index": 0, "delta": {}, "finish_reason": "tool_calls" if "tool" in step else "stop"})
    if (body.get("stream_options") or {}).get("include_usage"):
        yield chunk(usage=CHAT_USAGE)


def generated(step):
    part = {"functionCall": {"name": step["tool"], "args": step["input"]}} if "tool" in step else {"text": step["text"]}
    return {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 16, "cachedContentTokenCount": 5, "candidatesTokenCount": 7, "thoughtsTokenCount": 2,
                              "totalTokenCount": 25}, "modelVersion": "test-model"}


def text_of(content):
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def whole_message(step, body, number):
    block = ({"type": "tool_use", "id": f"toolu_{number}", "name": step["tool"], "input": step["input"]} if "tool" in step
             else {"type": "text", "text": step["text"]})
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body.get("model"), "content": [block],
            "stop_reason": "tool_use" if "tool" in step else "end_turn", "stop_sequence": None, "usage": USAGE}


def messages_events(step, body, number):
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"], "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": {**USAGE, "output_tokens": 1}}
    yield "message_start", {"message": message}
    if "tool" in step:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": step["tool"], "input": {}}
        yield "content_block_start", {"index": 0, "content_block": block}
        yield "content_block_delta", {"index": 0, "delta": {"type": "input_json_delta", "partial_json": json.dumps(step["input"])}}
    else:
        yield "content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}
        for piece in (step["text"][:2], step["text"][2:]):
            yield "content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": piece}}
    yield "content_block_stop", {"index": 0}
    reason = "tool_use" if "tool" in step else "end_turn"
    yield "message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": USAGE["output_tokens"]}}
    yield "message_stop", {}


def responses_events(step, body, number):
    response = {"id": f"resp_{number}", "object": "response", "status": "in_progress", "model": body["model"], "output": []}
    yield "response.created", {"response": response}
    if "tool" in step:
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": step["tool"],
                "arguments": json.dumps(step["input"]), "status": "completed",
                **({"namespace": step["namespace"]} if "namespace" in step else {})}
    else:
        item = {"type": "message", "id": f"m_{number}", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": step["text"], "annotations": []}]}
    yield "response.output_item.added", {"output_index": 0, "item": {**item, "status": "in_progress"}}
    if "tool" not in step:
        yield "response.output_text.delta", {"item_id": item["id"], "output_index": 0, "content_index": 0, "delta": step["text"]}
    yield "response.output_item.done", {"output_index": 0, "item": item}
    usage = {"input_tokens": 16, "input_tokens_details": {"cached_tokens": 5}, "output_tokens": 9,
             "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 25}
    yield "response.completed", {"response": {**response, "status": "completed", "output": [item], "usage": usage}}

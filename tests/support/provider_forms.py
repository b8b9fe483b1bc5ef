# SPDX-License-Identifier: Apache-2.0
#
# What providers say on the wire: one answer of a model in each of the forms the bundled drivers speak, whole and as events,
# and what a request of each form must look like.

import json
import re
from dataclasses import dataclass, field

KEY = "sk-lab-key-0123456789"


@dataclass
class Turn:
    """One answer of the model, before a provider's form is given to it."""

    text: str = ""
    thinking: str = ""
    calls: list = field(default_factory=list)  # (name, input) each; an input may be text that is no JSON
    stop: str | None = None  # the provider's word; None: what follows from the rest
    more: list = field(default_factory=list)  # further members or blocks, as the provider words them
    members: dict = field(default_factory=dict)  # of a Responses answer, beside the usual ones


def written(arguments):
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def pieces(text, size=5):
    return [text[at:at + size] for at in range(0, len(text), size)]


def dumped(value):
    return json.dumps(value, ensure_ascii=False).encode()


class Messages:
    name, driver, path, key_header = "anthropic", "std/driver-anthropic@0.1.0", "/v1/messages", ("x-api-key", KEY)
    refusal_stop, cut_stop = "refusal", "max_tokens"
    usage = {"input_tokens": 11, "output_tokens": 7, "cached_tokens": 5, "cache_write_tokens": 3}

    def check(self, request):
        body = request.json
        assert request.method == "POST" and request.headers["content-type"] == "application/json"
        assert request.headers["anthropic-version"] == "2023-06-01"
        assert set(body) <= {"model", "max_tokens", "system", "messages", "tools", "stream", "thinking", "temperature"}
        assert isinstance(body["model"], str) and body["max_tokens"] > 0
        assert request.body.count(b'"cache_control"') <= 4
        for tool in body.get("tools", []):
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", tool["name"]) and tool["input_schema"]["type"] == "object"
            assert set(tool) <= {"name", "description", "input_schema", "cache_control"}
        asked, role = [], None
        for message in body["messages"]:
            assert set(message) == {"role", "content"} and message["role"] in ("user", "assistant")
            assert message["role"] != role and message["content"]
            role = message["role"]
            for block in message["content"]:
                self.check_block(block)
            answered = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
            assert answered == asked
            asked = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        assert body["messages"][0]["role"] == body["messages"][-1]["role"] == "user"

    def check_block(self, block):
        keys = {"text": {"text"}, "tool_use": {"id", "name", "input"}, "tool_result": {"tool_use_id", "content"},
                "thinking": {"thinking", "signature"}, "redacted_thinking": {"data"}}.get(block["type"])
        if keys is not None:
            assert keys <= set(block) <= keys | {"type", "cache_control", "is_error"}
        if block["type"] == "text":
            assert block["text"].strip()
        if block["type"] == "tool_use":
            assert re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]) and isinstance(block["input"], dict)

    def blocks(self, turn):
        blocks = [{"type": "thinking", "thinking": turn.thinking, "signature": "sig=="}] if turn.thinking else []
        blocks += turn.more
        blocks += [{"type": "text", "text": turn.text}] if turn.text else []
        return blocks + [{"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": arguments}
                         for index, (name, arguments) in enumerate(turn.calls)]

    def stop(self, turn):
        return turn.stop if turn.stop is not None else "tool_use" if turn.calls else "end_turn"

    def whole(self, turn):
        return dumped({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": self.blocks(turn),
                       "stop_reason": self.stop(turn), "stop_sequence": None,
                       "usage": {"input_tokens": 11, "output_tokens": 7, "cache_read_input_tokens": 5,
                                 "cache_creation_input_tokens": 3}})

    def events(self, turn):
        yield {"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "m", "stop_reason": None,
            "usage": {"input_tokens": 11, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3, "output_tokens": 1}}}
        yield {"type": "ping"}
        for index, block in enumerate(self.blocks(turn)):
            deltas = []
            start = dict(block)
            if block["type"] == "text":
                start, deltas = {"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in pieces(block["text"])]
            elif block["type"] == "thinking":
                start = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": p} for p in pieces(block["thinking"])]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            elif block["type"] == "tool_use":
                start = {**block, "input": {}}
                deltas = [{"type": "input_json_delta", "partial_json": p}
                          for p in ["", *pieces(written(block["input"]), 30_000)]]
            yield {"type": "content_block_start", "index": index, "content_block": start}
            for delta in deltas:
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        yield {"type": "a_type_of_tomorrow", "value": 1}
        yield {"type": "message_delta", "delta": {"stop_reason": self.stop(turn), "stop_sequence": None},
               "usage": {"output_tokens": 7}}
        yield {"type": "message_stop"}

    def stream(self, turn, newline="\n"):
        return b"".join(f"event: {event['type']}{newline}data: ".encode() + dumped(event) + (newline * 2).encode()
                        for event in self.events(turn))

    def error(self, kind, message):
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


class ChatCompletions:
    name, driver, path, key_header = "openai", "std/driver-openai@0.1.0", "/v1/chat/completions", ("authorization", f"Bearer {KEY}")
    refusal_stop, cut_stop = "content_filter", "length"
    usage = {"input_tokens": 14, "output_tokens": 7, "cached_tokens": 5, "thinking_tokens": 2}
    counts = {"prompt_tokens": 19, "completion_tokens": 7, "total_tokens": 26, "prompt_tokens_details": {"cached_tokens": 5},
              "completion_tokens_details": {"reasoning_tokens": 2}}

    def check(self, request):
        body = request.json
        assert request.method == "POST" and request.headers["content-type"] == "application/json"
        assert set(body) <= {"model", "max_tokens", "max_completion_tokens", "messages", "tools", "stream", "stream_options",
                             "prompt_cache_key", "temperature"}
        assert body.get("max_tokens", body.get("max_completion_tokens")) > 0
        assert ("stream_options" in body) == body.get("stream", False)
        for tool in body.get("tools", []):
            assert set(tool) == {"type", "function"} and tool["type"] == "function"
            assert set(tool["function"]) <= {"name", "description", "parameters"}
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["function"]["name"])
        asked = []
        for position, message in enumerate(body["messages"]):
            role = message["role"]
            assert role == "system" if position == 0 else role in ("user", "assistant", "tool")
            if role == "tool":
                assert set(message) == {"role", "tool_call_id", "content"} and isinstance(message["content"], str)
                assert message["tool_call_id"] == asked.pop(0)
                continue
            assert not asked
            if role == "assistant":
                assert set(message) <= {"role", "content", "tool_calls", "reasoning_content", "reasoning"}
                assert isinstance(message["content"], str) or message["tool_calls"]
                for call in message.get("tool_calls", []):
                    assert call["type"] == "function" and isinstance(json.loads(call["function"]["arguments"]), dict)
                    asked.append(call["id"])
        assert not asked and body["messages"][-1]["role"] != "assistant"

    def message(self, turn):
        message = {"role": "assistant", "content": turn.text or None}
        if turn.thinking:
            message["reasoning_content"] = turn.thinking
        if turn.calls:
            message["tool_calls"] = [{"id": f"call_{index}", "type": "function",
                                      "function": {"name": name, "arguments": written(arguments)}}
                                     for index, (name, arguments) in enumerate(turn.calls)]
        for member in turn.more:
            message.update(member)
        return message

    def stop(self, turn):
        return turn.stop if turn.stop is not None else "tool_calls" if turn.calls else "stop"

    def whole(self, turn):
        return dumped({"id": "c1", "object": "chat.completion", "model": "m", "usage": self.counts, "choices": [
            {"index": 0, "message": self.message(turn), "finish_reason": self.stop(turn), "logprobs": None}]})

    def events(self, turn):
        message = self.message(turn)
        calls = message.pop("tool_calls", [])
        yield {"role": "assistant", "content": ""}
        for key in message:
            if key not in ("role", "content", "reasoning_content"):
                yield {key: message[key]}
        for key in ("reasoning_content", "content"):
            for piece in pieces(message.get(key) or ""):
                yield {key: piece}
        for index, call in enumerate(calls):
            function = call["function"]
            yield {"tool_calls": [{**call, "index": index, "function": {"name": function["name"], "arguments": ""}}]}
            for piece in pieces(function["arguments"], 30_000):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def stream(self, turn, newline="\n"):
        base = {"id": "c1", "object": "chat.completion.chunk", "model": "m"}
        chunks = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None}
                  for delta in self.events(turn)]
        chunks.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": self.stop(turn)}], "usage": None})
        chunks.append({**base, "choices": [], "usage": self.counts})
        lines = [b": a comment", *(b"data: " + dumped(chunk) for chunk in chunks), b"data: [DONE]"]
        return b"".join(line + (newline * 2).encode() for line in lines)

    def error(self, kind, message):
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}


class Responses:
    name, driver, path, key_header = "responses", "std/driver-responses@0.1.0", "/v1/responses", ("authorization", f"Bearer {KEY}")
    refusal_stop, cut_stop = "content_filter", "max_output_tokens"
    usage = {"input_tokens": 14, "output_tokens": 7, "cached_tokens": 5, "thinking_tokens": 2}
    counts = {"input_tokens": 19, "output_tokens": 7, "total_tokens": 26, "input_tokens_details": {"cached_tokens": 5},
              "output_tokens_details": {"reasoning_tokens": 2}}

    def check(self, request):
        body = request.json
        assert request.method == "POST" and request.headers["content-type"] == "application/json"
        assert set(body) <= {"model", "max_output_tokens", "instructions", "input", "tools", "stream", "store", "include",
                             "previous_response_id", "prompt_cache_key", "temperature"}
        assert body["max_output_tokens"] > 0 and body["input"]
        for tool in body.get("tools", []):
            assert set(tool) <= {"type", "strict", "name", "description", "parameters"} and tool["type"] == "function"
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"]) and tool["parameters"]["type"] == "object"
        asked = []
        for item in body["input"]:
            if item["type"] == "message":
                part, = item["content"]
                assert part["type"] == {"user": "input_text", "assistant": "output_text"}[item["role"]] and part["text"]
            elif item["type"] == "function_call":
                assert isinstance(json.loads(item["arguments"]), dict) and item["name"]
                asked.append(item["call_id"])
            elif item["type"] == "function_call_output":
                assert isinstance(item["output"], str)
                assert "previous_response_id" in body or item["call_id"] == asked.pop(0)
            else:
                assert item["type"] in ("reasoning", "of_tomorrow")
        assert not asked

    def items(self, turn):
        items = [{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": turn.thinking}],
                  "encrypted_content": "AAAA"}] if turn.thinking else []
        items += turn.more
        if turn.text:
            items.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                          "content": [{"type": "output_text", "text": turn.text, "annotations": []}]})
        return items + [{"type": "function_call", "id": f"fc_{index}", "call_id": f"call_{index}", "name": name,
                         "arguments": written(arguments), "status": "completed"}
                        for index, (name, arguments) in enumerate(turn.calls)]

    def response(self, turn, items):
        ended = {"status": "completed", "incomplete_details": None}
        if turn.stop in (self.cut_stop, self.refusal_stop):
            ended = {"status": "incomplete", "incomplete_details": {"reason": turn.stop}}
        elif turn.stop is not None:
            ended = {"status": turn.stop, "incomplete_details": None}
        return {"id": "resp_1", "object": "response", "model": "m", "error": None, "output": items, "usage": self.counts,
                **ended, **turn.members}

    def whole(self, turn):
        return dumped(self.response(turn, self.items(turn)))

    def events(self, turn):
        items = self.items(turn)
        begun = {"id": "resp_1", "object": "response", "status": "in_progress", "error": None, "output": [], "usage": None}
        yield {"type": "response.created", "response": begun}
        yield {"type": "response.in_progress", "response": begun}
        for index, item in enumerate(items):
            place = {"output_index": index, "item_id": item.get("id")}
            empty = {"message": {"content": []}, "reasoning": {"summary": [], "encrypted_content": None},
                     "function_call": {"arguments": ""}}.get(item["type"], {})
            yield {"type": "response.output_item.added", "output_index": index, "item": {**item, **empty}}
            if item["type"] == "message":
                for piece in pieces(item["content"][0]["text"]):
                    yield {"type": "response.output_text.delta", **place, "content_index": 0, "delta": piece}
                yield {"type": "response.output_text.done", **place, "content_index": 0, "text": item["content"][0]["text"]}
            elif item["type"] == "reasoning":
                for piece in pieces(item["summary"][0]["text"]):
                    yield {"type": "response.reasoning_summary_text.delta", **place, "summary_index": 0, "delta": piece}
            elif item["type"] == "function_call":
                for piece in pieces(item["arguments"], 30_000):
                    yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
                yield {"type": "response.function_call_arguments.done", **place, "arguments": item["arguments"]}
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
        yield {"type": "response.of_tomorrow", "value": 1}
        response = self.response(turn, items)
        yield {"type": "response.incomplete" if response["incomplete_details"] else "response.completed", "response": response}

    def stream(self, turn, newline="\n"):
        return b"".join(f"event: {event['type']}{newline}data: ".encode() + dumped(event) + (newline * 2).encode()
                        for event in self.events(turn))

    def error(self, kind, message):
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}


PROVIDERS = [Messages(), ChatCompletions(), Responses()]

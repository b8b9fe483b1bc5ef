# SPDX-License-Identifier: Apache-2.0
"""A whole driver: asks a server that speaks Chat Completions, one answer at a time.

The runtime's request comes in as JSON and its answer goes out as JSON; the key is put into the request by the runtime, after it
has left this component. `from wit_world.imports import events` has `events.emit_chunk(text)`, for a server that streams.
"""

import json
import os

from fetch import fetch
from wit_world import exports
from wit_world.exports.run import Status, ToolInput, ToolResult

STOPS = {"tool_calls": "tool_call", "length": "max_tokens", "stop": "end_turn"}


class Run(exports.Run):
    def run(self, input: ToolInput) -> ToolResult:
        try:
            answer = ask(json.loads(input.data or "{}"))
        except (OSError, ValueError, LookupError) as problem:
            answer = {"stop_reason": "error", "content": [], "error": str(problem)}
        return ToolResult(Status.PASSED, None, json.dumps(answer), None, False, [])


def ask(call: dict) -> dict:
    url = os.environ["MURMUR_INFERENCE_ENDPOINT"].rstrip("/") + "/v1/chat/completions"
    response = fetch(url, "POST", {"content-type": "application/json"}, json.dumps(request(call)))
    if response.status != 200:
        return {"stop_reason": "error", "content": [], "error": f"HTTP {response.status}: {response.text[:500]}"}
    told = response.json()
    choice, usage = told["choices"][0], told.get("usage") or {}
    return {
        "stop_reason": STOPS.get(choice["finish_reason"], "error"),
        "content": blocks(choice["message"]),
        "usage": {"input_tokens": usage.get("prompt_tokens"), "output_tokens": usage.get("completion_tokens")},
    }


def request(call: dict) -> dict:
    made = {"model": call["model"], "max_tokens": call["max_tokens"], "messages": []}
    if call.get("system"):
        made["messages"].append({"role": "system", "content": call["system"]})
    made["messages"] += [message(each) for each in call["messages"]]
    if call.get("tools"):
        made["tools"] = [{"type": "function", "function": tool} for tool in call["tools"]]
    return made


def message(given: dict) -> dict:
    text = "\n".join(block["text"] for block in given["content"] if block["type"] == "text")
    made = {"role": given["role"], "content": text}
    if given["role"] == "tool":
        made["tool_call_id"] = given["tool_call_id"]
    calls = [block for block in given["content"] if block["type"] == "tool_call"]
    if calls:
        made["tool_calls"] = [
            {"id": block["id"], "type": "function", "function": {"name": block["name"], "arguments": json.dumps(block["input"])}}
            for block in calls
        ]
    return made


def blocks(message: dict) -> list[dict]:
    made = [{"type": "text", "text": message["content"]}] if message.get("content") else []
    for call in message.get("tool_calls") or []:
        function = call["function"]
        made.append({"type": "tool_call", "id": call["id"], "name": function["name"], "input": json.loads(function["arguments"])})
    return made

# SPDX-License-Identifier: Apache-2.0
#
# The tools the conformance suite asks for, as a server of tools that a capsule holds in its walls and serves on. What it asks it
# asks as a modern server, by results that want input.

import json
import sys
import threading
import time

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
NOTHING = {"type": "object", "properties": {}}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object",
                          "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
                   "contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"},
                   "email": {"type": "string"}},
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]}, "else": {"required": ["email"]}, "additionalProperties": False,
}
HEADERS = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


def resource(uri, value, mime="text/plain"):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": value}}


IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
RESULTS = {
    "test_simple_text": text("This is a simple text response for testing."),
    "test_error_handling": text("This tool intentionally returns an error for testing", isError=True),
    "test_image_content": {"content": [IMAGE]},
    "test_audio_content": {"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]},
    "test_embedded_resource": {"content": [resource("test://embedded-resource", "This is an embedded resource content.")]},
    "test_multiple_content_types": {"content": [
        {"type": "text", "text": "Multiple content types test:"}, IMAGE,
        resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")]},
    "test_tool_with_progress": text("done"),
    "test_streaming_elicitation": text("done"),
    "test_logging_tool": text("logged nothing"),
    "test_tool_with_logging": text("logged"),
    "json_schema_2020_12_tool": text("ok"),
    "test_headers": text("ok"),
    "slow_compute": text("computed"),
    "failing_job": text("the job failed", isError=True),
}
USER = {"username": {"type": "string", "description": "User's response"}, "email": {"type": "string", "description": "User's email address"}}
DEFAULTS = {"name": {"type": "string", "default": "John Doe"}, "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5}, "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True}}
WORDS, TITLED = ["option1", "option2", "option3"], [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
ENUMS = {"untitledSingle": {"type": "string", "enum": WORDS}, "titledSingle": {"type": "string", "oneOf": TITLED},
         "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
         "untitledMulti": {"type": "array", "items": {"type": "string", "enum": WORDS}},
         "titledMulti": {"type": "array", "items": {"anyOf": TITLED}}}


def form(message, required=(), **properties):
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": {
        "type": "object", "properties": properties, **({"required": list(required)} if required else {})}}}


NAME = form("What is your name?", ["name"], name={"type": "string"})
OK = form("Please confirm", ["ok"], ok={"type": "boolean"})
SAMPLE = {"method": "sampling/createMessage", "params": {
    "messages": [{"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}}], "maxTokens": 100}}
ROOTS = {"method": "roots/list", "params": {}}
# What each asks, round after round.
QUESTIONS = {
    "test_sampling": [{"answer": SAMPLE}],
    "test_missing_capability": [{"answer": SAMPLE}],
    "test_input_required_result_sampling": [{"capital_question": SAMPLE}],
    "test_input_required_result_list_roots": [{"client_roots": ROOTS}],
    "test_input_required_result_multiple_inputs": [{"user_name": NAME, "greeting": SAMPLE, "client_roots": ROOTS}],
    "test_input_required_result_capabilities": [{"user_name": NAME, "capital_question": SAMPLE}],
    "test_elicitation": [{"user": form("Please tell", USER, **USER)}],
    "test_elicitation_sep1034_defaults": [{"user": form("Please review", **DEFAULTS)}],
    "test_elicitation_sep1330_enums": [{"user": form("Please choose", **ENUMS)}],
    "test_input_required_result_elicitation": [{"user_name": NAME}],
    "test_input_required_result_request_state": [{"confirm": OK}],
    "test_input_required_result_tampered_state": [{"confirm": OK}],
    "test_input_required_result_multi_round": [
        {"step1": form("Step 1: What is your name?", ["name"], name={"type": "string"})},
        {"step2": form("Step 2: What is your favorite color?", ["color"], color={"type": "string"})}],
}
CONFIRM = form("Delete it?", ["confirm"], confirm={"type": "boolean"})
QUESTIONS.update({
    "confirm_delete": [{"confirm": CONFIRM}],
    "multi_input": [{"name": NAME, "confirm": CONFIRM}],
    "test_tool_with_task": [{"user_name": NAME}],
})
RESULTS.update({name: text("state-ok") for name in QUESTIONS})
# Whose result is in their arguments, or none.
RESULTS.update({"greet": {}, "protocol_error_job": {}})
# How the calls of some go on as tasks: exports.mcp.tasks.
TASKS = [{"tool": "slow_compute"}, {"tool": "failing_job", "required": True}, {"tool": "protocol_error_job"},
         {"tool": "confirm_delete"}, {"tool": "multi_input"}, {"tool": "test_tool_with_task", "required": True, "wait_secs": 60}]
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}}
SECONDS = {"type": "object", "properties": {"seconds": {"type": "number"}, "label": {"type": "string"}}}
SCHEMAS = {"json_schema_2020_12_tool": SCHEMA, "test_headers": HEADERS, "greet": NAMED, "slow_compute": SECONDS,
           "confirm_delete": {"type": "object", "properties": {"filename": {"type": "string"}}}}
LOGS = ("Tool execution started", "Tool processing data", "Tool execution completed")
CAPABILITY = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
SLOW = ("test_tool_with_progress", "test_streaming_elicitation")


WRITING = threading.Lock()
CANCELLED = {}


def send(message):
    with WRITING:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def meta(params, name):
    return params.get("_meta", {}).get(f"io.modelcontextprotocol/{name}")


def asked(params):
    """What is wanted before this call is over; its state is the round."""
    rounds, at = QUESTIONS.get(params["name"], []), int(params.get("requestState", "0"))
    at += bool(params.get("inputResponses"))
    if at >= len(rounds):
        return None
    wanted = rounds[at]
    if params["name"] == "test_input_required_result_capabilities":
        wanted = {key: request for key, request in wanted.items() if CAPABILITY[request["method"]] in meta(params, "clientCapabilities")}
    return {"resultType": "input_required", "inputRequests": wanted, "requestState": str(at)}


def said(params):
    """What depends on what was given."""
    name, arguments = params["name"], params.get("arguments", {})
    if name == "greet":
        return text(f"Hello, {arguments['name']}!")
    if name == "test_tool_with_task":
        return text(f"Hello, {params['inputResponses']['user_name']['content']['name']}!")
    return RESULTS[name]


def result_of(method, params, cancelled):
    if method == "server/discover":
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "public"}
    if method == "tools/list":
        return {"tools": [{"name": name, "description": "Of the conformance suite.", "inputSchema": SCHEMAS.get(name, NOTHING)}
                          for name in RESULTS], "ttlMs": 0, "cacheScope": "public"}
    if method != "tools/call":
        return None
    token = params.get("_meta", {}).get("progressToken")
    for at in (0, 50, 100) if params["name"] in SLOW else ():
        if token is not None:
            send({"method": "notifications/progress", "params": {"progressToken": token, "progress": at, "total": 100}})
        time.sleep(0.05)
    for words in LOGS if params["name"] == "test_tool_with_logging" and meta(params, "logLevel") else ():
        send({"method": "notifications/message", "params": {"level": "info", "data": words}})
        time.sleep(0.05)
    cancelled.wait(params.get("arguments", {}).get("seconds", 0))
    return asked(params) or said(params)


def answer(request, cancelled):
    found = result_of(request["method"], request.get("params", {}), cancelled)
    if not cancelled.is_set():
        send({"id": request["id"], **({"result": {"resultType": "complete", **found}} if found else
                                      {"error": {"code": -32601, "message": "there is no such thing"}})})


def main():
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            cancelled = CANCELLED[request["id"]] = threading.Event()
            threading.Thread(target=answer, args=(request, cancelled), daemon=True).start()
        elif request["method"] == "notifications/cancelled" and request["params"]["requestId"] in CANCELLED:
            CANCELLED[request["params"]["requestId"]].set()


if __name__ == "__main__":
    main()

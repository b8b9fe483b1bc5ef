# SPDX-License-Identifier: Apache-2.0
#
# The tools the conformance suite asks for, as a server of tools that a capsule holds in its walls and serves on.

import json
import sys
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
    "json_schema_2020_12_tool": text("ok"),
    "test_headers": text("ok"),
}
SCHEMAS = {"json_schema_2020_12_tool": SCHEMA, "test_headers": HEADERS}
SLOW = ("test_tool_with_progress", "test_streaming_elicitation")


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def result_of(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "conformance", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": name, "description": "Of the conformance suite.", "inputSchema": SCHEMAS.get(name, NOTHING)}
                          for name in RESULTS]}
    if method != "tools/call":
        return None
    token = params.get("_meta", {}).get("progressToken")
    for at in (0, 50, 100) if params["name"] in SLOW else ():
        if token is not None:
            send({"method": "notifications/progress", "params": {"progressToken": token, "progress": at, "total": 100}})
        time.sleep(0.05)
    return RESULTS[params["name"]]


def main():
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            answer = result_of(request["method"], request.get("params", {}))
            send({"id": request["id"], **({"result": answer} if answer else {"error": {"code": -32601, "message": "no such method"}})})


if __name__ == "__main__":
    main()

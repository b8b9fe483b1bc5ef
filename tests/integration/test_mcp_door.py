# SPDX-License-Identifier: Apache-2.0
#
# MCP at the door of a running capsule: POST /mcp, streamable HTTP of both eras.

import base64
import http.client
import json
import urllib.parse

import pytest

from tests.integration.test_mcp_serve import FILES, runs, trace_of
from tests.support.door_client import SLEEPER
from tests.support.mcp_client import LEGACY, MODERN, meta
from tests.support.polling import eventually

SERVED = {"mcp": {"tools": ["files", "sh"], "agent": {"name": "ask_agent", "description": "Answers."}}}


def start(lab, **how):
    project = lab.agent(steps=[{"text": "you said {{task}}"}], tools=[FILES], capabilities={"shell": {"allow": ["sh", "sleep"]}},
                        exports=SERVED, lifecycle=SLEEPER, **how)
    running = project.start()
    running.url  # waits for the readiness line
    return running


class Http:
    """One client of /mcp; every request is a connection."""

    def __init__(self, running, token=None):
        self.address, self.token = urllib.parse.urlsplit(running.url).netloc, token

    def open(self, body, headers, method="POST"):
        connection = http.client.HTTPConnection(self.address, timeout=60)
        connection.putrequest(method, "/mcp", skip_host="Host" in headers)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        every = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                 "Content-Length": str(len(data)), **({"Authorization": f"Bearer {self.token}"} if self.token else {}), **headers}
        for name, value in every.items():
            connection.putheader(name, value)
        connection.endheaders(data)
        return connection

    def raw(self, body, headers=None, method="POST"):
        """(status, headers, messages)."""
        connection = self.open(body, headers or {}, method)
        with connection.getresponse() as reply:
            text = reply.read().decode()
            if reply.headers.get("content-type", "").startswith("text/event-stream"):
                found = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
            else:
                found = [json.loads(text)] if text.startswith("{") else []
        connection.close()
        return reply.status, reply.headers, found

    def modern(self, method, id=1, headers=None, capabilities=None, version=MODERN, **params):
        named = params.get("name") or params.get("uri")
        every = {"MCP-Protocol-Version": version, "Mcp-Method": method, **({"Mcp-Name": named} if named else {}), **(headers or {})}
        return self.raw({"jsonrpc": "2.0", "id": id, "method": method, "params": {"_meta": meta(version, capabilities), **params}},
                        {name: value for name, value in every.items() if value is not None})

    def result(self, method, **how):
        status, _, found = self.modern(method, **how)
        assert status == 200 and "result" in found[-1], (status, found)
        return found[-1]["result"]


def error_of(answer):
    status, _, found = answer
    return status, found[-1]["error"]["code"]


def test_mcp_05_headers_repeat_the_body(lab):
    http = Http(start(lab))
    encoded = "=?base64?" + base64.b64encode(b"files").decode() + "?="
    call = {"name": "files", "arguments": {"action": "list"}}

    assert http.result("tools/call", **call)["isError"] is False
    assert http.result("tools/call", headers={"Mcp-Name": None, "mCP-naME": encoded}, **call)["isError"] is False
    assert error_of(http.modern("tools/call", headers={"Mcp-Name": "json"}, **call)) == (400, -32020)
    assert error_of(http.modern("tools/call", headers={"Mcp-Name": None}, **call)) == (400, -32020)
    assert error_of(http.modern("tools/call", headers={"Mcp-Method": None}, **call)) == (400, -32020)
    assert error_of(http.modern("tools/list", headers={"MCP-Protocol-Version": LEGACY})) == (400, -32020)
    assert error_of(http.modern("no/such")) == (404, -32601)
    assert error_of(http.modern("tools/list", version="1900-01-01")) == (400, -32022)
    assert error_of(http.raw({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {}}},
                             {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"})) == (400, -32602)
    assert error_of(http.raw(b"{nonsense")) == (400, -32700) and error_of(http.raw([])) == (400, -32600)


def test_mcp_06_pages_of_other_sites_and_other_methods_are_refused(lab):
    http = Http(start(lab))
    seen = [http.modern("tools/list", headers={"Origin": "https://evil.example"}),
            http.modern("tools/list", headers={"Host": "evil.example"}),
            http.raw(b"", method="GET"), http.raw(b"", method="DELETE"), http.modern("tools/list"),
            http.raw({"jsonrpc": "2.0", "method": "notifications/cancelled"})]

    assert [status for status, _, _ in seen] == [403, 403, 405, 405, 200, 202]
    assert not [name for _, headers, _ in seen for name in headers if name.lower().startswith("access-control")]


def test_mcp_07_tokens_and_scopes(lab):
    running = start(lab, network={"authentication": {"scheme": "bearer", "credentials": {
        "tools": {"scopes": ["mcp/tools"]}, "both": {"scopes": ["mcp/tools", "mcp/ask"]}, "none": {"scopes": ["GetTask"]}}}})

    def token(name):
        return lab.mur("token", running.session_id, "--credential", name).ok().stdout.strip()

    asked = {"name": "ask_agent", "arguments": {"message": "hi"}}
    status, headers, _ = Http(running).modern("tools/list")
    assert status == 401 and headers["www-authenticate"].startswith("Bearer")
    assert Http(running, token("tools")).result("tools/list")["tools"]
    status, headers, _ = Http(running, token("tools")).modern("tools/call", **asked)
    assert status == 403 and "insufficient_scope" in headers["www-authenticate"] and "mcp/ask" in headers["www-authenticate"]
    assert Http(running, token("none")).modern("tools/list")[0] == 403
    both = Http(running, token("both")).result("tools/call", **asked)["structuredContent"]
    assert both["state"] == "completed" and "hi" in both["answer"]


def test_mcp_12_closing_the_stream_cancels_a_modern_call_and_no_legacy_one(lab):
    running = start(lab)
    http, params = Http(running), {"name": "sh", "arguments": {"command": f": {lab.directory}; sleep 600"}}
    modern = http.open({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": meta(), **params}},
                       {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "sh"})
    eventually(lambda: runs(lab.directory), 20)
    modern.close()
    eventually(lambda: not runs(lab.directory), 2)

    short = {"name": "sh", "arguments": {"command": "sleep 2; echo > done"}}
    http.open({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": short}, {"MCP-Protocol-Version": LEGACY}).close()
    listed = {"name": "files", "arguments": {"action": "list"}}
    eventually(lambda: "done" in http.result("tools/call", **listed)["content"][0]["text"], 20)


def test_mcp_14_a_subscription_over_http_ends_with_the_session(lab):
    running = start(lab)
    connection = Http(running).open(
        {"jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen",
         "params": {"_meta": meta(), "notifications": {"toolsListChanged": True}}},
        {"MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen"})
    reply = connection.getresponse()
    assert reply.status == 200 and reply.headers["x-accel-buffering"] == "no"
    first = json.loads((reply.readline(), reply.readline())[1][6:])
    assert first["method"] == "notifications/subscriptions/acknowledged"

    running.signal()
    messages = [json.loads(line[6:]) for line in reply.read().decode().splitlines() if line.startswith("data: ")]
    assert messages[-1]["id"] == "s" and messages[-1]["result"]["resultType"] == "complete"
    running.result(20)


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", LEGACY])
def test_mcp_02_a_legacy_client_over_http_has_a_session(lab, version):
    http = Http(start(lab))

    status, headers, (opened,) = http.raw({"jsonrpc": "2.0", "id": 0, "method": "initialize",
                                           "params": {"protocolVersion": version, "capabilities": {}}})
    session = {"Mcp-Session-Id": headers["mcp-session-id"], "MCP-Protocol-Version": version}
    assert status == 200 and opened["result"]["protocolVersion"] == version and opened["id"] == 0
    assert http.raw({"jsonrpc": "2.0", "method": "notifications/initialized"}, session)[0] == 202
    _, _, (listed,) = http.raw({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, session)
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["files", "sh", "ask_agent"]
    assert http.raw({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {"Mcp-Session-Id": "gone"})[0] == 404


def test_mcp_09_a_call_at_the_door_is_recorded_like_a_models(lab):
    running = start(lab)
    Http(running).result("tools/call", name="files", arguments={"action": "list"}, id="x")
    running.signal()
    running.result(20)

    assert trace_of(lab).one("tool_call")["tool_call_id"] == '"x"'


def test_mcp_05_a_header_that_names_another_revision_is_what_is_wrong(lab):
    client = Http(start(lab))
    unserved = client.modern("tools/list", version="1900-01-01")
    unlike = client.modern("tools/list", version="1900-01-01", headers={"MCP-Protocol-Version": MODERN})
    assert error_of(unserved)[1] == -32022 and error_of(unlike)[:2] == (400, -32020)


def test_mcp_05_an_encoded_header_is_padded(lab):
    client = Http(start(lab))
    encoded = base64.b64encode(b"files").decode()
    assert encoded.endswith("=")
    good = client.modern("tools/call", headers={"Mcp-Name": f"=?base64?{encoded}?="}, name="files", arguments={"action": "list"})
    bad = client.modern("tools/call", headers={"Mcp-Name": f"=?base64?{encoded.rstrip('=')}?="}, name="files", arguments={"action": "list"})
    assert good[0] == 200 and error_of(bad)[:2] == (400, -32020)

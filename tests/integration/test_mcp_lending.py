# SPDX-License-Identifier: Apache-2.0
#
# What a served capsule has of its clients beside their person: their model and their folders, where the manifest lets it; and what
# they hear of it: messages of a level they name, and changes of the resources they look after.

import json
import threading

import pytest

from tests.integration.test_mcp_door import Http
from tests.integration.test_mcp_servers import outcome
from tests.integration.test_pull import publish, skill_package
from tests.support.door_client import SLEEPER, Door
from tests.support.mcp_client import LEGACY, StdioClient, meta
from tests.support.mcp_servers import add, called, entry, tool, using
from tests.support.polling import eventually

ELICITS = {"elicitation": {}}


class Session:
    """A legacy session at a door; the messages of each answer, the answer last."""

    def __init__(self, running, token=None):
        self.http = Http(running, token)
        _, headers, found = self.http.raw({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
        self.headers, self.opened = {"Mcp-Session-Id": headers["mcp-session-id"]}, found[-1]["result"]

    def ask(self, method, **params):
        return self.http.raw({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, self.headers)[2]


# --- its client's model and folders --------------------------------------------------------------------------------------

LENDS = {"sampling": {}, "roots": {}}
GIVEN = {"sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m", "stopReason": "endTurn"},
         "roots/list": {"roots": [{"uri": "file:///its/folder", "name": "it"}]}}
SAMPLING, ROOTS = GIVEN


def lending(lab, era, **exports):
    add(lab, era=era, tools=[tool("sample", schema={"type": "object"})]).ok()
    return using(lab, [], entry(), exports={"mcp": {"tools": ["scripted_sample"], **exports}})


@pytest.mark.parametrize("method, key", [(SAMPLING, "sampling"), (ROOTS, "roots")])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_mcp_20_a_served_tool_asks_a_modern_client_for_what_the_manifest_lets_it(lab, era, method, key):
    client = StdioClient(lab, lending(lab, era, **{key: True}).directory)
    asked = client.call("scripted_sample", {"method": method}, capabilities=LENDS)
    assert asked["resultType"] == "input_required", asked
    (at, request), = asked["inputRequests"].items()
    assert request["method"] == method and request["params"]["maxTokens"] == 9
    done = client.call("scripted_sample", {"method": method}, capabilities=LENDS, requestState=asked["requestState"], inputResponses={at: GIVEN[method]})
    assert done["resultType"] == "complete" and json.dumps(GIVEN[method], sort_keys=True) in done["content"][0]["text"]


@pytest.mark.parametrize("method, key", [(SAMPLING, "sampling"), (ROOTS, "roots")])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_mcp_20_a_served_tool_asks_a_legacy_client_while_its_call_runs(lab, era, method, key):
    client = StdioClient(lab, lending(lab, era, **{key: True}).directory, era=LEGACY, capabilities=LENDS)
    call = client.send("tools/call", name="scripted_sample", arguments={"method": method})
    client.wait_until(lambda: any(notice["method"] == method for notice in client.notices))
    (question,) = [notice for notice in client.notices if notice["method"] == method]
    client.write(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": GIVEN[method]}) + "\n")
    assert json.dumps(GIVEN[method], sort_keys=True) in client.answer(call)["result"]["content"][0]["text"]


@pytest.mark.parametrize("method, key", [(SAMPLING, "sampling"), (ROOTS, "roots")])
def test_mcp_20_a_modern_client_is_told_what_it_has_to_declare(lab, method, key):
    client = StdioClient(lab, lending(lab, "modern", **{key: True}).directory)
    error = client.fails("tools/call", name="scripted_sample", arguments={"method": method}, capabilities=ELICITS)
    assert error["code"] == -32021 and error["data"] == {"requiredCapabilities": {key: {}}}


@pytest.mark.parametrize("method, key", [(SAMPLING, "sampling"), (ROOTS, "roots")])
def test_mcp_20_no_client_is_asked_for_what_the_manifest_does_not_name(lab, method, key):
    client = StdioClient(lab, lending(lab, "modern", **{"roots" if key == "sampling" else "sampling": True}).directory)
    refused = client.call("scripted_sample", {"method": method}, capabilities={**LENDS, **ELICITS})
    assert refused["isError"] and f"exports.mcp.{key}: true" in refused["content"][0]["text"]


def test_mcp_20_the_capsules_own_model_lends_nobody_a_model(lab):
    add(lab, era="modern", tools=[tool("sample", schema={"type": "object"})]).ok()
    project = using(lab, [called("scripted_sample", method=SAMPLING)], entry(), exports={"mcp": {"tools": ["scripted_sample"], "sampling": True}})
    line, _ = outcome(lab, project)
    assert line["status"] == "error" and "declares sampling" in line["error"]


# --- messages ------------------------------------------------------------------------------------------------------------

LEVEL = "io.modelcontextprotocol/logLevel"


def heard(client):
    return [notice["params"] for notice in client.notices if notice["method"] == "notifications/message"]


def saying(lab, era):
    add(lab, era=era, tools=[tool("says", schema={"type": "object"})]).ok()
    return using(lab, [], entry(), exports={"mcp": {"tools": ["scripted_says"]}})


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_mcp_20_a_modern_client_hears_the_levels_a_call_asks_for(lab, era):
    client = StdioClient(lab, saying(lab, era).directory)
    call = {"name": "scripted_says", "arguments": {"levels": ["debug", "warning", "error"]}}
    client.ask("tools/call", **call)
    assert heard(client) == []
    client.ask("tools/call", **call, _meta=meta(**{LEVEL: "info"}))
    assert [(said["level"], said["logger"]) for said in heard(client)] == [("warning", "scripted"), ("error", "scripted"), ("info", "murmur")]
    assert heard(client)[0]["data"] == {"words": "warning"} and heard(client)[2]["data"]["status"] == "ok"
    wrong = client.fails("tools/call", **call, _meta=meta(**{LEVEL: "loud"}))
    assert wrong["code"] == -32602 and "debug, info" in wrong["message"]


def test_mcp_20_a_legacy_client_sets_the_level_it_hears(lab):
    client = StdioClient(lab, saying(lab, "legacy").directory, era=LEGACY)
    assert client.opened["capabilities"]["logging"] == {}
    client.call("scripted_says", {"levels": ["emergency"]})
    assert heard(client) == []
    assert client.ask("logging/setLevel", level="error") == {}
    client.call("scripted_says", {"levels": ["notice", "error"]})
    assert [said["level"] for said in heard(client)] == ["error"]
    assert client.fails("logging/setLevel", level="loud")["code"] == -32602


def test_mcp_20_a_legacy_session_at_the_door_hears_messages_on_its_calls(lab):
    add(lab, tools=[tool("says", schema={"type": "object"})]).ok()
    project = using(lab, [], entry(), exports={"mcp": {"tools": ["scripted_says"]}}, lifecycle=SLEEPER)
    running = project.start()
    running.url
    client = Session(running)
    assert client.ask("logging/setLevel", level="info")[-1]["result"] == {}
    messages = client.ask("tools/call", name="scripted_says", arguments={"levels": ["error", "debug"]})
    assert [message["params"]["level"] for message in messages if message.get("method") == "notifications/message"] == ["error", "info"]
    assert len(Session(running).ask("tools/call", name="scripted_says", arguments={"levels": ["error"]})) == 1
    running.signal().result(30)


# --- resources -----------------------------------------------------------------------------------------------------------

NOTE = "file:///note.txt"


def keeping(lab, **more):
    project = lab.agent(tools=["std/files@0.1.0"], exports={"files": {"root": "shared", "mode": "read-only"}, "mcp": {"tools": ["files"], "files": True}}, **more)
    (project.directory / "shared").mkdir()
    (project.directory / "shared/note.txt").write_text("one")
    return project


def changes(client):
    return [notice["params"] for notice in client.notices if notice["method"] == "notifications/resources/updated"]


def test_mcp_20_a_legacy_client_is_told_when_a_file_it_looks_after_changes(lab):
    project = keeping(lab)
    client = StdioClient(lab, project.directory, "--workdir", project.directory, era=LEGACY)
    assert client.opened["capabilities"]["resources"] == {"listChanged": True, "subscribe": True}
    assert client.ask("resources/subscribe", uri=NOTE) == client.ask("resources/subscribe", uri="file:///later.txt") == {}
    (project.directory / "shared/note.txt").write_text("two, longer")
    client.wait_until(lambda: changes(client) == [{"uri": NOTE}])
    (project.directory / "shared/later.txt").write_text("new")
    client.wait_until(lambda: changes(client)[1:] == [{"uri": "file:///later.txt"}])
    assert client.ask("resources/unsubscribe", uri=NOTE) == {}
    (project.directory / "shared/note.txt").write_text("three, which nobody hears of")
    (project.directory / "shared/later.txt").unlink()
    client.wait_until(lambda: changes(client)[2:] == [{"uri": "file:///later.txt"}])
    for uri in ("file:///../murmur.yaml", "test://other", "skill://none/SKILL.md"):
        assert client.fails("resources/subscribe", uri=uri)["code"] == -32602
    assert client.close() == 0


def test_mcp_14_a_modern_subscription_names_the_resources_it_looks_after(lab):
    project = keeping(lab)
    client = StdioClient(lab, project.directory, "--workdir", project.directory)
    assert client.ask("server/discover")["capabilities"]["resources"] == {"listChanged": True, "subscribe": True}
    listen = client.send("subscriptions/listen", notifications={"resourceSubscriptions": [NOTE, "file:///../up", 5]})
    client.wait_until(lambda: client.notices)
    assert client.notices[0]["params"]["notifications"] == {"resourceSubscriptions": [NOTE]}
    (project.directory / "shared/note.txt").write_text("changed")
    client.wait_until(lambda: len(changes(client)) == 1)
    assert changes(client) == [{"uri": NOTE, "_meta": {"io.modelcontextprotocol/subscriptionId": listen}}]
    assert client.fails("resources/subscribe", uri=NOTE)["code"] == -32601


def lists(client):
    return [notice.get("params") for notice in client.notices if notice["method"] == "notifications/resources/list_changed"]


@pytest.mark.parametrize("era", ["modern", LEGACY])
def test_mcp_20_a_client_is_told_when_other_files_are_listed(lab, era):
    project = keeping(lab)
    client = StdioClient(lab, project.directory, "--workdir", project.directory, era=era)
    mark = {}
    if era == "modern":
        listen = client.send("subscriptions/listen", notifications={"resourcesListChanged": True})
        client.wait_until(lambda: client.notices)
        assert client.notices[0]["params"]["notifications"] == {"resourcesListChanged": True}
        mark = {"_meta": {"io.modelcontextprotocol/subscriptionId": listen}}
    client.ask("resources/list")
    (project.directory / "shared/note.txt").write_text("other words of the same file")
    (project.directory / "shared/new.txt").write_text("new")
    client.wait_until(lambda: lists(client))
    assert [one["name"] for one in client.ask("resources/list")["resources"]] == ["new.txt", "note.txt"]
    (project.directory / "shared/new.txt").unlink()
    client.wait_until(lambda: len(lists(client)) == 2)
    assert all((one or {}) == mark for one in lists(client)) and not changes(client)
    assert client.close() == 0


def test_mcp_20_a_session_at_the_door_is_told_with_its_next_call_that_other_files_are_listed(lab):
    project = keeping(lab, lifecycle=SLEEPER)
    running = project.start("--workdir", project.directory)
    running.url
    client = Session(running)
    client.ask("resources/list")
    (project.directory / "shared/new.txt").write_text("new")

    def told():
        return [message["method"] for message in client.ask("resources/list") if message.get("method", "").endswith("list_changed")]
    assert eventually(told, within_s=30) == ["notifications/resources/list_changed"]
    running.signal().result(30)


def test_mcp_20_a_client_looks_after_so_many_resources_and_no_more(lab):
    project = keeping(lab)
    client = StdioClient(lab, project.directory, "--workdir", project.directory, era=LEGACY)
    for at in range(64):
        client.ask("resources/subscribe", uri=f"file:///{at}")
    refused = client.fails("resources/subscribe", uri=NOTE)
    assert refused["code"] == -32602 and "64" in refused["message"]
    assert client.ask("resources/subscribe", uri="file:///7") == {}


def test_mcp_20_a_session_at_the_door_hears_of_changes_with_its_next_call(lab):
    project = keeping(lab, lifecycle=SLEEPER)
    running = project.start("--workdir", project.directory)
    running.url
    client, other = Session(running), Session(running)
    assert client.ask("resources/subscribe", uri=NOTE)[-1]["result"] == {}
    (project.directory / "shared/note.txt").write_text("changed at the door")

    def told():
        return [message["params"] for message in client.ask("resources/list") if message.get("method") == "notifications/resources/updated"]
    assert eventually(told, within_s=20) == [{"uri": NOTE}]
    assert told() == [] and len(other.ask("resources/list")) == 1
    running.signal().result(30)


class Stream:
    """A legacy session's own stream: what it hears without asking."""

    def __init__(self, client, **headers):
        self.connection = client.http.open(b"", {**client.headers, **headers}, method="GET")
        self.reply = self.connection.getresponse()
        self.heard, self.is_over = [], False
        if self.reply.status == 200:
            threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.reply:
            if line.startswith(b"data: "):
                self.heard.append(json.loads(line[6:]))
        self.is_over = True

    def methods(self):
        return [message["method"].removeprefix("notifications/") for message in self.heard]


def test_mcp_20_a_session_at_the_door_hears_of_changes_at_once_on_a_stream_of_its_own(lab):
    project = keeping(lab, lifecycle=SLEEPER)
    running = project.start("--workdir", project.directory)
    running.url
    client, other = Session(running), Session(running)
    first, others = Stream(client), Stream(other)
    assert first.reply.status == 200 and first.reply.headers["content-type"] == "text/event-stream"
    client.ask("resources/subscribe", uri=NOTE)
    (project.directory / "shared/note.txt").write_text("changed while nobody calls")
    eventually(lambda: [message["params"] for message in first.heard] == [{"uri": NOTE}], within_s=20)

    second = Stream(client)  # a client that comes back: its new stream takes the old one's place
    eventually(lambda: first.is_over, within_s=20)
    (project.directory / "shared/note.txt").write_text("changed again, and longer")
    eventually(lambda: second.methods() == ["resources/updated"], within_s=20)
    assert len(client.ask("resources/list")) == 1 and len(first.heard) == 1 and others.heard == []

    assert client.http.raw(b"", client.headers, method="DELETE")[0] == 204
    eventually(lambda: second.is_over, within_s=20)
    assert client.http.raw(b"", client.headers, method="DELETE")[0] == Stream(client).reply.status == 404
    running.signal().result(30)
    eventually(lambda: others.is_over, within_s=20)


def test_mcp_06_a_stream_is_a_sessions_alone(lab):
    scopes = {name: {"scopes": ["mcp/tools"]} for name in ("one", "two")}
    running = keeping(lab, lifecycle=SLEEPER, network={"authentication": {"scheme": "bearer", "credentials": scopes}}).start()
    running.url
    one, two = (lab.mur("token", "--credential", name).ok().stdout.strip() for name in scopes)
    client = Session(running, one)
    assert Stream(client, Accept="application/json").reply.status == 405
    assert Stream(client, Authorization=f"Bearer {two}").reply.status == 404
    assert Stream(client, Authorization="Bearer wrong").reply.status == 401
    assert Stream(client, Origin="https://evil.example").reply.status == 403
    assert Stream(client).reply.status == 200
    running.signal().result(30)


@pytest.mark.parametrize("has_stream", [True, False])
def test_mcp_14_a_session_at_the_door_hears_that_its_agent_pulled_a_tool(lab, has_stream):
    publish(lab, skill_package("sk", text="# How to\n"), "sk")
    pull = {"tool_calls": [{"name": "pull-artifact", "input": {"artifact": "local/sk"}}]}
    project = keeping(lab, steps=[pull, {"text": "pulled"}], capabilities={"install": {"skill": ["local/*"]}}, lifecycle=SLEEPER)
    running = project.start()
    running.url
    client = Session(running)
    stream = Stream(client) if has_stream else None
    door = Door(running)
    door.wait_for(door.send_at_once("go")["id"], "COMPLETED", 40)

    def told():
        return stream.methods() if stream else [message["method"].removeprefix("notifications/") for message in client.ask("resources/list")[:-1]]
    assert eventually(told, within_s=20) == ["tools/list_changed"]
    running.signal().result(30)

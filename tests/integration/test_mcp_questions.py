# SPDX-License-Identifier: Apache-2.0
#
# What a server of tools asks: answered by the person behind a task, or, where its tools are served, by the client's own person in
# either era; and what a client that declared nothing gets.

import json

import pytest

from tests.integration.test_mcp_door import Http
from tests.integration.test_mcp_remote import add as add_far
from tests.integration.test_mcp_remote import there
from tests.support.door_client import SLEEPER, Door
from tests.support.fixtures import own_component
from tests.support.mcp_client import LEGACY, StdioClient
from tests.support.mcp_remote import Remote
from tests.support.mcp_servers import add, called, entry, tool, using
from tests.support.polling import eventually

ELICITS = {"elicitation": {}}
COLOUR = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}


# --- the person behind a task ------------------------------------------------------------------------------------------


def asked_at_door(project, answer, within_s=40):
    """A task whose server asks; what the model read after the person's answer."""
    running = project.start()
    door = Door(running)
    task = door.send_at_once("go")["id"]
    waiting = door.wait_for(task, "INPUT_REQUIRED", within_s)
    door.send_at_once(answer, taskId=task)
    door.wait_for(task, "COMPLETED", within_s)
    running.signal().result(30)
    return json.dumps(waiting), project.lab.session(running).trace.one("tool_call")


@pytest.mark.parametrize("era, answer, said", [("legacy", "blue", {"action": "accept", "content": {"colour": "blue"}}),
                                               ("modern", '{"colour": "red"}', {"action": "accept", "content": {"colour": "red"}}),
                                               ("modern", "decline", {"action": "decline"})])
def test_mcp_39_the_operator_answers_what_a_server_asks(lab, era, answer, said):
    add(lab, era=era, tools=[tool("ask")]).ok()
    project = using(lab, [called("scripted_ask")], entry(mcp={"ask": "operator"}), lifecycle=SLEEPER, trace={"capture": "content"})

    waiting, line = asked_at_door(project, answer)

    assert "Which colour?" in waiting and line["status"] == "ok" and json.dumps(said, sort_keys=True) in line["output"]


def test_mcp_39_what_an_answer_leaves_out_is_what_the_server_proposes(lab):
    schema = {"type": "object", "properties": {"name": {"type": "string", "default": "John"}, "age": {"type": "integer", "default": 30},
                                               "sure": {"type": "boolean", "default": False}}}
    asks = {"resultType": "input_required", "inputRequests": {"q": {"method": "elicitation/create",
                                                                    "params": {"mode": "form", "message": "Who?", "requestedSchema": schema}}}}
    with Remote() as far:
        add_far(lab, far).ok()
        far.answers["echo"] = lambda params: asks if "inputResponses" not in params else {
            "content": [{"type": "text", "text": json.dumps(params["inputResponses"]["q"]["content"], sort_keys=True)}]}
        project = using(lab, [called("far_echo")], there(far, mcp={"ask": "operator"}), lifecycle=SLEEPER, trace={"capture": "content"})
        _, line = asked_at_door(project, '{"age": 31}')
        assert '{"age": 31, "name": "John", "sure": false}' in line["output"]


def test_mcp_40_an_older_server_far_away_asks_on_the_stream_it_is_listened_to(lab):
    stream = []

    def listens(handler):
        handler.open_stream()
        stream.append(handler)
        far.closed.wait(60)
        return True

    def asks(handler, request):
        eventually(lambda: stream, within_s=20)
        stream[-1].event({"jsonrpc": "2.0", "id": "s-1", "method": "elicitation/create",
                          "params": {"message": "Which?", "requestedSchema": COLOUR}})
        eventually(lambda: any(notice.get("id") == "s-1" for notice in far.notices), within_s=40)
        (answer,) = [notice for notice in far.notices if notice.get("id") == "s-1"]
        handler.result(request, {"content": [{"type": "text", "text": json.dumps(answer["result"], sort_keys=True)}]})

    with Remote("legacy", sessions=True) as far:
        add_far(lab, far).ok()
        far.on_get, far.odd["tools/call"] = listens, asks
        project = using(lab, [called("far_echo")], there(far, mcp={"ask": "operator"}), lifecycle=SLEEPER, trace={"capture": "content"})
        _, line = asked_at_door(project, "green")
        assert '"colour": "green"' in line["output"]


@pytest.mark.parametrize("discovery", [{}, {"supportedVersions": [LEGACY, "2025-06-18"]}])
def test_mcp_25_who_answers_a_discovery_with_nothing_of_it_is_of_the_older_era(lab, discovery):
    def odd(handler, request):
        handler.reply(200, {"jsonrpc": "2.0", "id": request["id"], "result": discovery})
    with Remote("both") as far:
        far.odd["server/discover"] = odd
        add_far(lab, far).ok()
        assert f"speaks {LEGACY} (legacy)" in lab.mur("mcp", "show", "far").ok().stdout


# --- served tools ------------------------------------------------------------------------------------------------------


def serving(lab, era="modern", ask="operator", **more):
    add(lab, era=era, tools=[tool("ask"), tool("steps", schema={"type": "object"})]).ok()
    return using(lab, [], entry(mcp={"ask": ask}), exports={"mcp": {"tools": ["scripted_ask", "scripted_steps"]}}, **more)


def wants(result):
    assert result.get("resultType") == "input_required", result
    (key, request), = result["inputRequests"].items()
    assert request["method"] == "elicitation/create" and request["params"]["message"] == "Which colour?"
    assert request["params"]["requestedSchema"] == COLOUR
    return key, result["requestState"]


def blue(key):
    return {key: {"action": "accept", "content": {"colour": "blue"}}}


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_mcp_16_a_served_tool_asks_a_modern_client(lab, era):
    client = StdioClient(lab, serving(lab, era).directory)
    key, state = wants(client.call("scripted_ask", capabilities=ELICITS))

    assert wants(client.call("scripted_ask", capabilities=ELICITS, requestState=state, inputResponses={"other": {"action": "accept"}}))[0] == key
    done = client.call("scripted_ask", capabilities=ELICITS, requestState=state, inputResponses={**blue(key), "more": {"action": "accept"}})
    assert done["resultType"] == "complete" and '"colour": "blue"' in done["content"][0]["text"]
    over = client.call("scripted_ask", capabilities=ELICITS, requestState=state, inputResponses=blue(key))
    assert over["isError"] and "call the tool again" in over["content"][0]["text"]
    assert client.close() == 0
    lines = lab.session(lab.records[-1].name).trace.all("tool_call")
    assert len(lines) == 1 and lines[0]["status"] == "ok"


def test_mcp_16_a_state_of_another_call_of_a_tool_is_refused(lab):
    client = StdioClient(lab, serving(lab).directory)
    key, state = wants(client.call("scripted_ask", capabilities=ELICITS))
    altered = state[:-1] + ("0" if state[-1] != "0" else "1")
    for name, arguments, shown in [("scripted_ask", {}, altered), ("scripted_ask", {"text": "x"}, state), ("scripted_steps", {}, state)]:
        error = client.fails("tools/call", name=name, arguments=arguments, capabilities=ELICITS, requestState=shown, inputResponses=blue(key))
        assert error["code"] == -32602 and "requestState" in error["message"]
    assert client.call("scripted_ask", capabilities=ELICITS, requestState=state, inputResponses=blue(key))["resultType"] == "complete"


def test_mcp_16_a_question_of_another_caller_at_the_door_is_not_answered(lab):
    network = {"authentication": {"scheme": "bearer", "credentials": {"one": {"scopes": ["mcp/tools"]}, "two": {"scopes": ["mcp/tools"]}}}}
    running = serving(lab, network=network, lifecycle=SLEEPER).start()
    running.url
    one, two = (Http(running, lab.mur("token", "--credential", name).ok().stdout.strip()) for name in ("one", "two"))

    def call(client, **more):
        return client.modern("tools/call", name="scripted_ask", arguments={}, capabilities=ELICITS, **more)
    key, state = wants(call(one)[2][-1]["result"])
    assert call(two, requestState=state, inputResponses=blue(key))[2][-1]["error"]["code"] == -32602
    assert '"colour": "blue"' in call(one, requestState=state, inputResponses=blue(key))[2][-1]["result"]["content"][0]["text"]
    running.signal().result(30)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_mcp_16_a_served_tool_asks_a_legacy_client_while_its_call_runs(lab, era):
    client = StdioClient(lab, serving(lab, era).directory, era=LEGACY, capabilities=ELICITS)
    call = client.send("tools/call", name="scripted_ask", arguments={})
    client.wait_until(lambda: any(notice["method"] == "elicitation/create" for notice in client.notices))
    (question,) = [notice for notice in client.notices if notice["method"] == "elicitation/create"]
    assert question["params"]["requestedSchema"] == COLOUR
    client.write(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"colour": "blue"}}}) + "\n")
    assert '"colour": "blue"' in client.answer(call)["result"]["content"][0]["text"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_mcp_16_no_client_that_declared_nothing_is_waited_for(lab, era):
    client = StdioClient(lab, serving(lab, era).directory)
    assert '"action": "cancel"' in client.text("scripted_ask")


def test_mcp_16_a_server_that_may_not_ask_is_refused_when_served_too(lab):
    client = StdioClient(lab, serving(lab, ask="deny").directory)
    refused = client.call("scripted_ask", capabilities=ELICITS)
    assert refused["isError"] and "mcp.ask: operator" in refused["content"][0]["text"]


def test_mcp_16_a_client_that_leaves_a_question_open_leaves_nothing_behind(lab):
    client = StdioClient(lab, serving(lab).directory)
    for _ in range(3):
        wants(client.call("scripted_ask", capabilities=ELICITS))
    assert client.close() == 0


def test_mcp_12_a_call_that_may_ask_is_cancelled_like_any(lab):
    client = StdioClient(lab, serving(lab, "legacy").directory)
    call = client.send("tools/call", name="scripted_steps", arguments={"count": 600, "every": 0.1}, capabilities=ELICITS, token="t")
    client.wait_until(lambda: any(notice["method"] == "notifications/progress" for notice in client.notices))
    client.notify("notifications/cancelled", requestId=call)
    assert client.ask("tools/list", capabilities=ELICITS)["tools"] and client.close() == 0
    assert json.dumps(call) not in client.answers


def test_mcp_16_a_capsules_own_tool_asks_the_client(lab):
    probe = lab.publish("tool-probe", own_component("tool-probe"), "tool", description="probe",
                        input_schema={"type": "object", "properties": {"do": {"type": "string"}}})
    project = lab.agent(steps=[{"text": "done"}], tools=[probe], exports={"mcp": {"tools": ["tool-probe"]}})
    client = StdioClient(lab, project.directory)
    first = client.call("tool-probe", {"do": "ask which?"}, capabilities=ELICITS)
    (key, request), = first["inputRequests"].items()
    assert request["params"]["message"] == "which?"
    done = client.call("tool-probe", {"do": "ask which?"}, capabilities=ELICITS, requestState=first["requestState"],
                       inputResponses={key: {"action": "accept", "content": {"answer": "this one"}}})
    assert "this one" in done["content"][0]["text"]


@pytest.mark.parametrize("word, passes", [("once", True), ("no", False)])
def test_mcp_16_R37_the_person_at_the_client_approves_a_served_call(lab, word, passes):
    project = serving(lab, "legacy", approvals={"tools": ["scripted_steps"]})
    client = StdioClient(lab, project.directory)
    arguments = {"count": 1, "every": 0}
    first = client.call("scripted_steps", arguments, capabilities=ELICITS)
    (key, request), = first["inputRequests"].items()
    assert word in request["params"]["requestedSchema"]["properties"]["answer"]["enum"]
    done = client.call("scripted_steps", arguments, capabilities=ELICITS, requestState=first["requestState"],
                       inputResponses={key: {"action": "accept", "content": {"answer": word}}})
    assert bool(done.get("isError")) != passes and (done["content"][0]["text"] == "done") == passes
    refused = client.call("scripted_steps", arguments)
    assert refused["isError"] and "nobody" in refused["content"][0]["text"]

# SPDX-License-Identifier: Apache-2.0
#
# A served capsule that asks, and long work: input_required with its state, elicitation, task handles; and servers that answer
# with a task of their own.

import json
import time

import pytest

from tests.integration.test_mcp_door import Http
from tests.integration.test_mcp_remote import add, used
from tests.support.door_client import SLEEPER
from tests.support.fixtures import own_component
from tests.support.mcp_client import LEGACY, StdioClient
from tests.support.mcp_remote import Remote
from tests.support.mcp_servers import add as add_local
from tests.support.mcp_servers import called, tool, using
from tests.support.mcp_servers import entry as local
from tests.support.polling import eventually

ELICITS = {"elicitation": {}}
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


def asking(lab, question="which?", **how):
    """A capsule whose agent asks once and then says what it was told."""
    tool = lab.publish("tool-probe", own_component("tool-probe"), "tool", description="probe",
                       input_schema={"type": "object", "properties": {"do": {"type": "string"}}})
    return lab.agent(steps=[{"tool_calls": [{"name": "tool-probe", "input": {"do": f"ask {question}"}}]}, {"text": "heard: {{result}}"}],
                     tools=[tool], exports={"mcp": {"agent": {"name": "ask_agent", "description": "Answers."}}}, **how)


def outcome(result):
    return result["structuredContent"]


def wants(result):
    assert result["resultType"] == "input_required", result
    (key, request), = result["inputRequests"].items()
    assert request["method"] == "elicitation/create" and request["params"]["mode"] == "form"
    assert request["params"]["message"] == "which?" and list(request["params"]["requestedSchema"]["properties"]) == ["answer"]
    return key, result["requestState"]


def responses(key, answer="this one", action="accept"):
    return {key: {"action": action, **({"content": {"answer": answer}} if action == "accept" else {})}}


ASKED = {"message": "go"}


def test_mcp_16_a_question_is_input_required_and_its_answer_goes_on(lab):
    client = StdioClient(lab, asking(lab).directory)
    key, state = wants(client.call("ask_agent", ASKED, capabilities=ELICITS))

    again = client.call("ask_agent", ASKED, capabilities=ELICITS, requestState=state)  # nothing answered: asked once more
    assert wants(again)[0] == key
    extra = {**responses(key), "another": {"action": "accept"}}
    done = outcome(client.call("ask_agent", ASKED, capabilities=ELICITS, requestState=state, inputResponses=extra))
    assert done["state"] == "completed" and "this one" in done["answer"]


@pytest.mark.parametrize("change", ["altered", "cut", "other arguments", "other subject"])
def test_mcp_16_a_state_that_is_not_its_own_is_refused(lab, change):
    client = StdioClient(lab, asking(lab).directory)
    key, state = wants(client.call("ask_agent", ASKED, capabilities=ELICITS))
    wrong = {"altered": state[:-1] + ("0" if state[-1] != "0" else "1"), "cut": state.rsplit(".", 1)[0], "other arguments": state,
             "other subject": "tsk_" + "0" * 32 + state[state.index("."):]}[change]
    arguments = {"message": "other"} if change == "other arguments" else ASKED
    refused = client.fails("tools/call", name="ask_agent", arguments=arguments, capabilities=ELICITS, requestState=wrong,
                           inputResponses=responses(key))
    assert refused["code"] == -32602 and "requestState" in refused["message"]


def test_mcp_16_a_state_of_another_principal_is_refused(lab):
    running = asking(lab, lifecycle=SLEEPER, network={"authentication": {"scheme": "bearer", "credentials": {
        name: {"scopes": ["mcp/tools", "mcp/ask"]} for name in ("one", "two")}}}).start()
    running.url
    one, two = (Http(running, lab.mur("token", "--credential", name).ok().stdout.strip()) for name in ("one", "two"))

    def call(client, **more):
        status, _, messages = client.modern("tools/call", name="ask_agent", arguments=ASKED, capabilities=ELICITS, **more)
        return status, messages[-1]
    key, state = wants(call(one)[1]["result"])
    assert call(two, requestState=state, inputResponses=responses(key))[1]["error"]["code"] == -32602
    assert outcome(call(one, requestState=state, inputResponses=responses(key))[1]["result"])["state"] == "completed"
    running.signal()
    running.result(30)


def test_mcp_16_a_person_who_declines(lab):
    client = StdioClient(lab, asking(lab).directory)
    key, state = wants(client.call("ask_agent", ASKED, capabilities=ELICITS))
    done = outcome(client.call("ask_agent", ASKED, capabilities=ELICITS, requestState=state, inputResponses=responses(key, action="decline")))
    assert done["state"] == "completed" and "declined" in done["answer"]


@pytest.mark.parametrize("era", ["modern", LEGACY])
def test_mcp_16_a_client_that_declared_nothing_is_told_how_to_answer(lab, era):
    client = StdioClient(lab, asking(lab).directory, era=era)
    asked = outcome(client.call("ask_agent", ASKED))
    assert asked["state"] == "input-required" and "which?" in asked["answer"] and asked["context_id"] in asked["answer"]

    done = outcome(client.call("ask_agent", {"message": "that one", "context_id": asked["context_id"]}))
    assert done["state"] == "completed" and "that one" in done["answer"] and done["task_id"] == asked["task_id"]
    assert not [notice for notice in client.notices if notice["method"] == "elicitation/create"]


class Elicited(StdioClient):
    """A legacy client with a person."""

    def __init__(self, lab, folder, reply):
        super().__init__(lab, folder)
        self.era = LEGACY
        self.write(json.dumps({"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": {
            "protocolVersion": LEGACY, "capabilities": ELICITS, "clientInfo": {"name": "t", "version": "1"}}}) + "\n")
        assert self.answer("open")["result"]
        self.notify("notifications/initialized")
        self.reply = reply

    def answer_one(self):
        self.wait_until(lambda: any(notice["method"] == "elicitation/create" for notice in self.notices))
        (request,) = [notice for notice in self.notices if notice["method"] == "elicitation/create"]
        self.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **self.reply}) + "\n")
        return request


@pytest.mark.parametrize("reply, said", [
    ({"result": {"action": "accept", "content": {"answer": "blue"}}}, "blue"), ({"result": {"action": "decline"}}, "declined")])
def test_mcp_16_a_legacy_client_is_asked_while_the_call_runs(lab, reply, said):
    client = Elicited(lab, asking(lab).directory, reply)
    id = client.send("tools/call", name="ask_agent", arguments=ASKED)
    request = client.answer_one()
    assert request["params"]["message"] == "which?"
    done = outcome(client.answer(id)["result"])
    assert done["state"] == "completed" and said in done["answer"]


def test_mcp_16_a_legacy_client_that_refuses_to_ask_is_told_how(lab):
    client = Elicited(lab, asking(lab).directory, {"error": {"code": -32601, "message": "no"}})
    id = client.send("tools/call", name="ask_agent", arguments=ASKED)
    client.answer_one()
    assert outcome(client.answer(id)["result"])["state"] == "input-required"


def test_mcp_16_a_legacy_client_at_the_door_is_asked_on_its_stream(lab):
    running = asking(lab, lifecycle=SLEEPER).start()
    running.url
    client = Http(running)
    _, headers, _ = client.raw({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": LEGACY, "capabilities": ELICITS, "clientInfo": {"name": "t", "version": "1"}}})
    session = {"Mcp-Session-Id": headers["mcp-session-id"]}
    connection = client.open({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "ask_agent", "arguments": ASKED}}, session)
    with connection.getresponse() as reply:
        lines = iter(lambda: reply.readline().decode(), "")
        request = next(json.loads(line[6:]) for line in lines if line.startswith("data: ") and "elicitation/create" in line)
        forged = client.raw({"jsonrpc": "2.0", "id": "murmur-1", "result": {"action": "accept", "content": {"answer": "evil"}}}, session)
        assert forged[0] == 202
        assert client.raw({"jsonrpc": "2.0", "id": request["id"], "result": {"action": "accept", "content": {"answer": "red"}}}, session)[0] == 202
        result = next(json.loads(line[6:]) for line in lines if line.startswith("data: ") and '"result"' in line)["result"]
    connection.close()
    assert "red" in outcome(result)["answer"] and "evil" not in outcome(result)["answer"]
    running.signal()
    running.result(30)


# --- task handles ------------------------------------------------------------------------------------------------------


def status_of(client, id, **how):
    return client.ask("tasks/get", taskId=id, capabilities=TASKS, **how)


def until(client, id, *wanted):
    return eventually(lambda: (lambda got: got if got["status"] in wanted else None)(status_of(client, id)), within_s=60)


def test_mcp_17_a_task_handle_is_asked_after_until_it_is_over(lab):
    client = StdioClient(lab, asking(lab).directory)
    assert "io.modelcontextprotocol/tasks" in client.ask("server/discover")["capabilities"]["extensions"]
    created = client.call("ask_agent", ASKED, capabilities=TASKS)
    assert created["resultType"] == "task" and created["status"] in ("working", "input_required") and "content" not in created
    assert created["ttlMs"] is None and created["pollIntervalMs"] > 0 and created["createdAt"].endswith("Z") and "task" not in created

    asks = until(client, created["taskId"], "input_required")
    (key,) = asks["inputRequests"]
    assert asks["resultType"] == "complete"
    assert client.ask("tasks/update", taskId=created["taskId"], inputResponses={"other": {}}, capabilities=TASKS)["resultType"] == "complete"
    assert status_of(client, created["taskId"])["status"] == "input_required"
    client.ask("tasks/update", taskId=created["taskId"], inputResponses=responses(key), capabilities=TASKS)
    done = until(client, created["taskId"], "completed")
    assert "this one" in outcome(done["result"])["answer"] and not done["result"]["isError"] and "inputRequests" not in done
    assert done["createdAt"] == created["createdAt"]
    assert client.ask("tasks/cancel", taskId=created["taskId"], capabilities=TASKS)["resultType"] == "complete"  # it is over: no fault
    assert status_of(client, created["taskId"])["status"] == "completed"


def test_mcp_17_a_task_is_cancelled(lab):
    client = StdioClient(lab, asking(lab).directory)
    created = client.call("ask_agent", ASKED, capabilities=TASKS)
    until(client, created["taskId"], "input_required")
    client.ask("tasks/cancel", taskId=created["taskId"], capabilities=TASKS)
    assert "result" not in until(client, created["taskId"], "cancelled")


def test_mcp_17_no_handle_for_who_declared_none(lab):
    client = StdioClient(lab, asking(lab).directory)
    assert outcome(client.call("ask_agent", ASKED))["state"] == "input-required"
    refused = client.fails("tasks/get", taskId="tsk_" + "0" * 32)
    assert refused["code"] == -32021 and refused["data"]["requiredCapabilities"] == TASKS
    assert client.fails("tasks/get", taskId="tsk_" + "0" * 32, capabilities=TASKS)["code"] == -32602
    assert client.fails("tasks/result", taskId="x", capabilities=TASKS)["code"] == -32601
    legacy = StdioClient(lab, asking(lab).directory, era=LEGACY)
    assert "extensions" not in legacy.opened["capabilities"]
    assert legacy.fails("tasks/get", taskId="x")["code"] == -32601


def test_mcp_17_a_task_of_another_is_not_there_and_needs_the_scope(lab):
    running = asking(lab, lifecycle=SLEEPER, network={"authentication": {"scheme": "bearer", "credentials": {
        "one": {"scopes": ["mcp/tools", "mcp/ask"]}, "two": {"scopes": ["mcp/tools", "mcp/ask"]}, "tools": {"scopes": ["mcp/tools"]}}}}).start()
    running.url
    one, two, tools = (Http(running, lab.mur("token", "--credential", name).ok().stdout.strip()) for name in ("one", "two", "tools"))
    created = one.modern("tools/call", name="ask_agent", arguments=ASKED, capabilities=TASKS)[2][-1]["result"]

    def get(client, name=None):
        return client.modern("tasks/get", taskId=created["taskId"], capabilities=TASKS, headers={"Mcp-Name": name or created["taskId"]})
    assert get(one)[2][-1]["result"]["taskId"] == created["taskId"]
    assert get(two)[2][-1]["error"]["code"] == -32602
    assert get(tools)[0] == 403
    assert get(one, "another")[2][-1]["error"]["code"] == -32020
    running.signal()
    running.result(30)


# --- calls of tools as tasks -------------------------------------------------------------------------------------------


BOTH = {**ELICITS, **TASKS}


def working(lab, *tasks, era="modern", **more):
    """A capsule whose tools' calls go on as tasks."""
    add_local(lab, era=era, tools=[tool("ask"), tool("steps", schema={"type": "object"}), tool("crash"), tool("echo")]).ok()
    return using(lab, [], local(mcp={"ask": "operator"}),
                 exports={"mcp": {"tools": [f"scripted_{name}" for name in ("ask", "steps", "crash", "echo")], "tasks": list(tasks)}}, **more)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_mcp_17_a_call_goes_on_as_a_task_and_asks_there(lab, era):
    client = StdioClient(lab, working(lab, {"tool": "scripted_ask"}, {"tool": "scripted_crash"}, era=era).directory)
    created = client.call("scripted_ask", capabilities=BOTH)
    assert created["resultType"] == "task" and created["status"] in ("working", "input_required")
    assert created["ttlMs"] >= 3600000 and "content" not in created and "requestState" not in created

    asks = until(client, created["taskId"], "input_required")
    (key, request), = asks["inputRequests"].items()
    assert request["params"]["message"] == "Which colour?" and asks["ttlMs"] >= created["ttlMs"]
    assert client.fails("tasks/update", taskId=created["taskId"], capabilities=BOTH)["code"] == -32602
    client.ask("tasks/update", taskId=created["taskId"], inputResponses={"other": {}}, capabilities=BOTH)
    assert status_of(client, created["taskId"])["status"] == "input_required"
    answers = {key: {"action": "accept", "content": {"colour": "blue"}}}
    client.ask("tasks/update", taskId=created["taskId"], inputResponses=answers, capabilities=BOTH)
    done = until(client, created["taskId"], "completed", "failed")
    assert '"colour": "blue"' in done["result"]["content"][0]["text"] and "inputRequests" not in done

    crashed = client.call("scripted_crash", capabilities=TASKS)
    failed = until(client, crashed["taskId"], "completed", "failed")
    assert failed["result"]["isError"] and "the disk is on fire" in failed["result"]["content"][0]["text"]
    assert client.close() == 0
    assert [line["status"] for line in lab.session(lab.records[-1].name).trace.all("tool_call")] == ["ok", "error"]


def test_mcp_17_a_task_whose_client_cannot_be_asked_is_not_asked(lab):
    client = StdioClient(lab, working(lab, {"tool": "scripted_ask"}).directory)
    created = client.call("scripted_ask", capabilities=TASKS)
    assert '"action": "cancel"' in until(client, created["taskId"], "completed")["result"]["content"][0]["text"]


def test_mcp_17_a_call_that_is_over_or_asks_in_its_time_is_no_task(lab):
    waits = [{"tool": f"scripted_{name}", "wait_secs": 60} for name in ("echo", "ask")]
    client = StdioClient(lab, working(lab, *waits).directory)
    assert client.text("scripted_echo", {"text": "hi"}, capabilities=BOTH) == "echo: hi"
    asks = client.call("scripted_ask", capabilities=BOTH)
    assert asks["resultType"] == "input_required" and "taskId" not in asks
    answers = {key: {"action": "accept", "content": {"colour": "blue"}} for key in asks["inputRequests"]}
    on = client.call("scripted_ask", capabilities=BOTH, requestState=asks["requestState"], inputResponses=answers)
    done = until(client, on["taskId"], "completed")["result"] if on["resultType"] == "task" else on
    assert "requestState" not in on and '"colour": "blue"' in done["content"][0]["text"]


def test_mcp_17_a_call_as_a_task_is_cancelled_and_ends_with_its_client(lab):
    client = StdioClient(lab, working(lab, {"tool": "scripted_steps"}).directory)
    long = {"count": 6000, "every": 0.1, "says": "turning the crank"}
    first = client.call("scripted_steps", long, capabilities=TASKS)["taskId"]
    assert status_of(client, first)["status"] == "working"
    eventually(lambda: status_of(client, first).get("statusMessage") == "turning the crank", within_s=60)
    assert client.ask("tasks/cancel", taskId=first, capabilities=TASKS) == client.ask("tasks/cancel", taskId=first, capabilities=TASKS)
    ended = until(client, first, "cancelled")
    assert "result" not in ended and "error" not in ended
    client.call("scripted_steps", long, capabilities=TASKS)
    assert client.close() == 0


def test_mcp_17_a_tool_that_is_a_task_only_refuses_who_knows_none(lab):
    project = working(lab, {"tool": "scripted_echo", "required": True}, lifecycle=SLEEPER)
    running = project.start()
    status, _, found = Http(running).modern("tools/call", name="scripted_echo", arguments={})
    assert status == 400 and found[-1]["error"]["code"] == -32021 and found[-1]["error"]["data"]["requiredCapabilities"] == TASKS
    assert Http(running).modern("tools/call", name="scripted_echo", arguments={}, capabilities=TASKS)[0] == 200
    running.signal()
    running.result(30)
    legacy = StdioClient(lab, project.directory, era=LEGACY)
    refused = legacy.call("scripted_echo")
    assert refused["isError"] and "knows no tasks" in refused["content"][0]["text"]


def test_mcp_17_a_call_as_a_task_is_its_callers_alone(lab):
    scopes = {name: {"scopes": ["mcp/tools"]} for name in ("one", "two")}
    running = working(lab, {"tool": "scripted_echo"}, lifecycle=SLEEPER,
                      network={"authentication": {"scheme": "bearer", "credentials": scopes}}).start()
    running.url
    one, two = (Http(running, lab.mur("token", "--credential", name).ok().stdout.strip()) for name in scopes)
    id = one.modern("tools/call", name="scripted_echo", arguments={"text": "mine"}, capabilities=TASKS)[2][-1]["result"]["taskId"]

    def asked(client, method, **params):
        return client.modern(method, taskId=id, capabilities=TASKS, headers={"Mcp-Name": id}, **params)[2][-1]
    for method, params in (("tasks/get", {}), ("tasks/update", {"inputResponses": {}}), ("tasks/cancel", {})):
        assert asked(two, method, **params)["error"]["code"] == -32602
    done = eventually(lambda: (lambda got: got if got["status"] == "completed" else None)(asked(one, "tasks/get")["result"]), within_s=60)
    assert done["result"]["content"][0]["text"] == "echo: mine"
    running.signal()
    running.result(30)


def test_mcp_17_beyond_the_bound_a_call_is_waited_for(lab):
    client = StdioClient(lab, working(lab, {"tool": "scripted_steps"}).directory)
    slow = {"count": 1, "every": 0.02}
    kinds = [client.call("scripted_steps", slow, capabilities=TASKS)["resultType"] for _ in range(65)]
    assert kinds == ["task"] * 64 + ["complete"]


# --- servers that answer with a task -----------------------------------------------------------------------------------


class Worker:
    """What a far server says of one task, each time it is asked."""

    def __init__(self, far, *said):
        self.far, self.said, self.updates, self.cancelled = far, list(said), [], []
        self.declared = None
        far.odd["tools/call"], far.odd["tasks/get"] = self.begin, self.get
        far.odd["tasks/update"], far.odd["tasks/cancel"] = self.update, self.cancel

    def handle(self, **more):
        return {"taskId": "job-1", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": None,
                "pollIntervalMs": 50, **more}

    def begin(self, handler, request):
        self.declared = request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        handler.result(request, self.handle(resultType="task", status="working"))

    def get(self, handler, request):
        assert handler.headers["mcp-name"] == "job-1"
        handler.result(request, self.handle(**(self.said.pop(0) if len(self.said) > 1 else self.said[0])))

    def update(self, handler, request):
        self.updates.append(request["params"]["inputResponses"])
        self.said.pop(0)
        handler.result(request, {})

    def cancel(self, handler, request):
        self.cancelled.append(request["params"]["taskId"])
        handler.result(request, {})


DONE = {"status": "completed", "result": {"content": [{"type": "text", "text": "the work is done"}]}}


def test_mcp_17_a_servers_task_is_followed_to_its_result(lab):
    with Remote() as far:
        add(lab, far).ok()
        worker = Worker(far, {"status": "working"}, {"status": "working", "statusMessage": "half"}, DONE)
        (line,), session = used(lab, far)
        assert line["status"] == "ok" and "the work is done" in session.result_text and line["progress_count"] >= 1
        assert worker.declared["extensions"] == {"io.modelcontextprotocol/tasks": {}} and not worker.cancelled
        answer = lab.mur("mcp", "call", "far", "echo", timeout=60).ok()
        assert "the work is done" in answer.stdout


@pytest.mark.parametrize("said, why", [
    ({"status": "failed", "error": {"code": -32603, "message": "the disk is full"}}, "failed: -32603: the disk is full"),
    ({"status": "cancelled"}, "was cancelled there"), ({"status": "completed"}, "without a result"), ({"status": "odd"}, "without a result"),
    ({"status": "input_required", "inputRequests": {"q": {"method": "elicitation/create", "params": {"message": "which?"}}}}, "asks for input")])
def test_mcp_17_a_servers_task_that_ends_badly_is_one_clear_error(lab, said, why):
    with Remote() as far:
        add(lab, far).ok()
        worker = Worker(far, said)
        (line,), _ = used(lab, far)
        assert "E-MCP-005" in line["error"] and why in line["error"]
        assert worker.cancelled == (["job-1"] if said["status"] == "input_required" else [])


def test_mcp_17_a_servers_task_without_end_is_cancelled(lab):
    with Remote() as far:
        add(lab, far).ok()
        worker = Worker(far, {"status": "working"})
        began = time.monotonic()
        (line,), _ = used(lab, far, capabilities={"limits": {"deadline_seconds": 1}})
        assert "E-MCP-002" in line["error"] and worker.cancelled == ["job-1"] and time.monotonic() - began < 60


@pytest.mark.parametrize("id", [None, "", 3, "x" * 600])
def test_mcp_17_a_task_without_a_name_is_a_breach(lab, id):
    with Remote() as far:
        add(lab, far).ok()
        far.odd["tools/call"] = lambda handler, request: handler.result(request, {"resultType": "task", "taskId": id, "status": "working"})
        (line,), _ = used(lab, far, called("far_echo", text="x"))
        assert "E-MCP-005" in line["error"] and "without a taskId" in line["error"]

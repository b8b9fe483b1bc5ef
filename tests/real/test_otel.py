# SPDX-License-Identifier: Apache-2.0
#
# Spans and metrics in real receivers: OpenTelemetry's collector and Jaeger, built from their Go modules, and Phoenix, from
# PyPI. What is asserted is what each of them says over its own interface.

import json

import pytest

from tests.integration.test_otel_gen_ai import CALLER, STEPS, USAGE, agent, log_of
from tests.integration.test_std_hooks import GRANTS, hook
from tests.support.delegation import Plane, delegate, turn
from tests.support.door_client import SLEEPER, Door, message
from tests.support.fixtures import own_component
from tests.support.lab import SLOWER
from tests.support.polling import eventually
from tests.support.receivers import Jaeger, Phoenix, RealCollector
from tests.support.spawn import publish_agent

WAITING = {"text": "waiting"}


@pytest.fixture(scope="module")
def collector(tmp_path_factory):
    with RealCollector(tmp_path_factory.mktemp("collector")) as receiver:
        yield receiver


@pytest.fixture(scope="module")
def jaeger(tmp_path_factory):
    with Jaeger(tmp_path_factory.mktemp("jaeger")) as receiver:
        yield receiver


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory):
    with Phoenix(tmp_path_factory.mktemp("phoenix")) as receiver:
        yield receiver


def soon(look, what):
    return eventually(look, 60 * SLOWER, what, every_s=0.5)


def named(spans, prefix, key="name"):
    return [span for span in spans if span[key].startswith(prefix)]


def values(tags):
    return {tag["key"]: tag["value"] for tag in tags}


def three_levels(lab, receiver, **otel):
    """A capsule that delegates to one that delegates to one whose tool call fails."""
    observed = {"observability": {"otel": {"endpoint": receiver.endpoint, "metrics": False, **otel}}}
    publish_agent(lab, "leaf", [turn({"name": "files", "input": {"action": "read", "path": "missing"}}), {"text": "no such file"}],
                  artifacts=[{"name": "std/files", "version": "0.1.0", "runtime": "tool"}], **observed)
    with Plane(lab, "local/leaf") as plane:
        plane.publish_middle(turn(delegate("leaf")), WAITING, {"text": "told"}, **observed)
        project = plane.parent(turn(delegate("middle")), WAITING, {"text": "done"}, **observed)
        plane.run(project).ok()


# --- the collector ---


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_otel_1_the_collector_takes_both_encodings_whole(lab, collector, protocol):
    session = lab.session(agent(lab, collector, otel={"protocol": protocol}).run("--task", "go").ok())

    def mine():
        spans = [span for span in collector.spans if session.id in json.dumps(span["resource"])]
        return spans if len(spans) == 5 else None

    spans = soon(mine, "all five spans are there")
    whole, = named(spans, "invoke_agent")
    chats, tool, command = named(spans, "chat"), named(spans, "execute_tool")[0], named(spans, "command")[0]
    assert {span["traceId"] for span in spans} == {whole["traceId"]} and not whole.get("parentSpanId")
    assert {span["parentSpanId"] for span in [*chats, tool]} == {whole["spanId"]} and command["parentSpanId"] == tool["spanId"]
    assert [(span["kind"], span["attributes"]["gen_ai.usage.input_tokens"]) for span in chats] == [(3, 140)] * 2
    assert command["status"] == {"code": 2} and whole["status"] == {}
    assert log_of(session) == ""


def test_otel_18_the_collector_takes_the_metrics(lab, collector):
    session = lab.session(agent(lab, collector).run("--task", "go").ok())

    usage = soon(lambda: collector.metrics.get("gen_ai.client.token.usage"), "metrics are there")
    points = usage["histogram"]["dataPoints"]
    assert {values(point["attributes"])["gen_ai.token.type"]["stringValue"] for point in points} >= {"input", "output"}
    assert usage["histogram"]["aggregationTemporality"] == 2  # cumulative
    assert log_of(session) == ""


# --- Jaeger ---


def test_otel_5_three_levels_with_a_failing_tool_are_one_tree_in_jaeger(lab, jaeger):
    three_levels(lab, jaeger)

    def whole():
        traces = jaeger.traces("leaf")
        return traces if traces and len(named(traces[0]["spans"], "invoke_agent", "operationName")) == 5 else None

    trace, = soon(whole, "the tree is whole")
    assert [trace["warnings"], *(span["warnings"] for span in trace["spans"])] == [None] * (len(trace["spans"]) + 1)
    known = {span["spanID"] for span in trace["spans"]}
    parents = {span["spanID"]: [reference["spanID"] for reference in span["references"]] for span in trace["spans"]}
    roots = [span for span in trace["spans"] if not span["references"]]
    assert [span["operationName"] for span in roots] == ["invoke_agent parent"]
    assert all(above in known for found in parents.values() for above in found)
    assert {process["serviceName"] for process in trace["processes"].values()} == {"parent", "middle", "leaf"}
    failed = [span["operationName"] for span in trace["spans"] if values(span["tags"]).get("error") is True]
    assert failed == ["execute_tool files"]
    for span in trace["spans"]:  # children lie within the agent's span they are of
        inside = [other for other in trace["spans"] if other["spanID"] in parents[span["spanID"]]
                  and other["processID"] == span["processID"]]
        assert all(other["startTime"] <= span["startTime"] and span["startTime"] + span["duration"] <=
                   other["startTime"] + other["duration"] for other in inside), span["operationName"]


def test_otel_5_a_callers_span_is_above_and_a_resuming_caller_is_linked_in_jaeger(lab, jaeger):
    tool = lab.publish("tool-probe", own_component("tool-probe"), "tool", description="probe", input_schema={"type": "object"})
    steps = [{"tool_calls": [{"name": "tool-probe", "input": {"do": "ask which?"}}]}, {"text": "thanks"}]
    resuming = "00-" + "c" * 32 + "-" + "d" * 16 + "-01"
    running = agent(lab, jaeger, steps, otel={"metrics": False}, tools=[tool], lifecycle=SLEEPER).start()
    door = Door(running)

    def send(said, caller):
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": said}
        return door.post(body, door.headers([("traceparent", caller)])).json["result"]["task"]

    task = send(message("go"), CALLER)
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    again = message("that one")
    again["message"]["taskId"] = task["id"]
    send(again, resuming)
    soon(lambda: lab.session(running).trace.all("task_end"), "it is over")
    running.signal()
    running.result()
    assert lab.session(running).trace.one("task_resumed")["traceparent_from_caller"] == resuming

    def asked():
        spans = [span for trace in jaeger.traces("agent") for span in trace["spans"] if span["traceID"] == "a" * 32]
        return named(spans, "invoke_agent", "operationName")

    span, = soon(asked, "the task is there")
    references = [(reference["refType"], reference["traceID"], reference["spanID"]) for reference in span["references"]]
    assert ("CHILD_OF", "a" * 32, "b" * 16) in references and ("FOLLOWS_FROM", "c" * 32, "d" * 16) in references


# --- Phoenix ---


def test_otel_1_phoenix_knows_agents_models_and_tools_by_kind(lab, phoenix):
    otel = {"content": "full", "metrics": False}
    said = "what is in the folder?"
    session = lab.session(agent(lab, phoenix, [*STEPS], otel=otel, trace={"capture": "content"}, name="shown")
                          .run("--task", said).ok())
    assert log_of(session) == ""

    def filed():
        project = phoenix.project("shown")
        return project if project and len(project["spans"]["edges"]) == 5 else None

    project = soon(filed, "the spans are filed under the capsule's name")
    spans = [edge["node"] for edge in project["spans"]["edges"]]
    kinds = sorted((span["spanKind"], span["name"]) for span in spans if span["spanKind"] != "unknown")
    assert ("agent", "invoke_agent shown") in kinds and ("tool", "execute_tool sh") in kinds
    chats = [span for span in spans if span["spanKind"] == "llm"]
    assert [(span["tokenCountPrompt"], span["tokenCountCompletion"]) for span in chats] == [(140, 7)] * 2
    assert project["tokenCountTotal"] == 2 * 147
    conversation, = [edge["node"] for edge in project["sessions"]["edges"]]
    assert conversation["sessionId"] == session.trace.one("task_start")["context_id"]
    assert conversation["firstInput"]["value"] == said and conversation["lastOutput"]["value"] == "all done"
    command, = [span for span in spans if span["name"].startswith("command")]
    assert command["statusCode"] == "ERROR"


def test_otel_5_three_levels_are_one_trace_in_phoenix(lab, phoenix):
    three_levels(lab, phoenix, resource={"openinference.project.name": "tree"})  # else a trace is filed under who came first

    def whole():
        project = phoenix.project("tree")
        spans = [edge["node"] for edge in project["spans"]["edges"]] if project else []
        return spans if len(named(spans, "invoke_agent")) == 5 else None

    spans = soon(whole, "the tree is whole")
    assert [span["name"] for span in spans if not span["parentId"]] == ["invoke_agent parent"]
    assert {span["name"] for span in spans if span["statusCode"] == "ERROR"} == {"execute_tool files"}
    assert phoenix.project("tree")["traceCount"] == 1


def test_otel_scores_of_a_hook_are_events_phoenix_shows(lab, phoenix):
    steps = [{"text": "hey", "usage": USAGE}]
    project = lab.agent("scored", steps=steps, tools=[hook("eval", {}, GRANTS)], observability={
        "otel": {"endpoint": phoenix.endpoint, "metrics": False}, "eval": {"scorers": [{"type": "exit_ok"}]}})
    lab.session(project.run("--task", "go").ok())
    text = "{ projects { edges { node { name spans(first: 100) { edges { node { name events { name } } } } } } } }"

    def scored():
        return [event["name"] for edge in phoenix.query(text)["projects"]["edges"] if edge["node"]["name"] == "scored"
                for span in edge["node"]["spans"]["edges"] if span["node"]["name"] == "evaluation"
                for event in span["node"]["events"]]

    assert soon(scored, "the score is there") == ["gen_ai.evaluation.result"]

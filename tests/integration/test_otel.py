# SPDX-License-Identifier: Apache-2.0
#
# Export of spans to a collector: what is sent, how tasks become traces, and that no collector can hurt a session.

import json
import re

import pytest

from tests.support.collector import Collector
from tests.support.delegation import Plane, delegate, turn
from tests.support.door_client import SLEEPER, Door, message
from tests.support.fixtures import own_component
from tests.support.hooks import Hook
from tests.support.lab import SLOWER
from tests.support.model_server import answer, call
from tests.support.polling import eventually
from tests.support.spawn import publish_agent

USAGE = {"input_tokens": 100, "output_tokens": 7, "cached_tokens": 40}
CALLER = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


def agent(lab, endpoint, steps=None, **more):
    steps = steps or [{"tool_calls": [{"name": "sh", "input": {"command": "exit 3"}}], "usage": USAGE}, {"text": "done"}]
    return lab.agent(steps=steps, capabilities={"shell": {"allow": ["sh"]}}, observability={"otel_endpoint": endpoint}, **more)


def log_of(session):
    path = session.records / "logs/otel.log"
    return path.read_text() if path.exists() else ""


def normal(trace):
    """What a trace says, without what differs between two runs."""
    return [{key: value for key, value in event.items() if not re.search("id$|ids$|timestamp|_ms$|tokens$|_shas?$", key)}
            for event in trace.events if event["event_type"] != "session_start"]


def test_otel_a_task_is_one_trace_of_spans(lab):
    with Collector() as collector:
        session = lab.session(agent(lab, collector.endpoint + "/").run("--task", "go").ok())

    line, headers, body = collector.requests[0]
    assert line == "POST /v1/traces HTTP/1.1"
    assert headers == [("Host", f"127.0.0.1:{collector.port}"), ("Content-Type", "application/json"),
                       ("Content-Length", headers[2][1]), ("Connection", "close")]
    assert not collector.saw_half_close and log_of(session) == ""
    assert list(body) == ["resourceSpans"]
    scope, = body["resourceSpans"][0]["scopeSpans"]
    assert scope["scope"] == {"name": "murmur-capsule-runtime"}
    assert [span.name for span in collector.spans] == [
        "capsule.inference", "capsule.tool_call", "capsule.shell", "capsule.inference", "capsule.session"]
    first, tool, shell, last, whole = collector.spans
    assert {span.trace for span in collector.spans} == {whole.trace} and re.fullmatch("[0-9a-f]{32}", whole.trace)
    assert {span.parent for span in collector.spans[:-1]} == {whole.id} and re.fullmatch("[0-9a-f]{16}", whole.id)
    assert whole.parent is None and "parentSpanId" not in whole.raw
    assert len({span.id for span in collector.spans}) == 5
    assert whole.resource == {"service.name": "agent", "service.version": "0.1.0"}
    assert whole.attributes == {"exit_status": "ok"} and whole.raw["kind"] == 1 and whole.raw["status"] == {"code": 1}
    call = session.trace.one("tool_call")
    answered, ended = session.trace.all("inference")
    assert list(first.attributes.items()) == [
        ("turn", 0), ("input_tokens", answered["input_tokens"]), ("output_tokens", answered["output_tokens"]),
        ("decision", "tool_call"), ("stop_reason", answered["stop_reason"]), ("tool_name", "sh"), ("input_tokens_actual", 100),
        ("output_tokens_actual", 7), ("cached_tokens", 40)]
    assert (last.attributes["turn"], last.attributes["decision"]) == (1, "end_turn") and "tool_name" not in last.attributes
    assert ended["turn"] == 1
    assert list(tool.attributes.items()) == [("tool_name", "sh"), ("input_bytes", call["input_bytes"]),
                                             ("output_bytes", call["output_bytes"]), ("duration_ms", call["duration_ms"]),
                                             ("status", "ok")]
    assert shell.attributes == {"command": "exit 3", "exit_code": 3, "duration_ms": shell.attributes["duration_ms"]}
    for span in collector.spans:
        assert whole.start <= span.start <= span.end <= whole.end


def test_otel_long_commands_are_cut_and_a_prefix_is_kept(lab):
    with Collector() as collector:
        steps = [{"tool_calls": [{"name": "sh", "input": {"command": "true " + "ä" * 300}}]}, {"text": "done"}]
        agent(lab, f"https://127.0.0.1:{collector.port}/some/where/", steps).run("--task", "go").ok()

    assert {line for line, _, _ in collector.requests} == {"POST /some/where/v1/traces HTTP/1.1"}
    assert collector.named("capsule.shell")[0].attributes["command"] == "true " + "ä" * 195


def test_records_21_a_collector_that_is_down_costs_lines_of_a_log_and_nothing_else(lab):
    with Collector() as collector:
        endpoint = collector.endpoint
    down = lab.session(agent(lab, endpoint, name="down").run("--task", "go").ok())
    without = lab.agent(name="down", steps=[{"tool_calls": [{"name": "sh", "input": {"command": "exit 3"}}], "usage": USAGE},
                                            {"text": "done"}], capabilities={"shell": {"allow": ["sh"]}})
    plain = lab.session(without.run("--task", "go").ok())

    lines = log_of(down).splitlines()
    assert len(lines) == 5 and all(re.match(r"\[\d{10,}\] capsule\.\w+ was not sent: ", line) for line in lines)
    assert normal(down.trace) == normal(plain.trace)
    assert not (plain.records / "logs/otel.log").exists()


def test_records_21_a_slow_collector_gets_every_span(lab):
    with Collector(delay_s=0.3) as collector:
        session = lab.session(agent(lab, collector.endpoint).run("--task", "go").ok())
        assert len(collector.spans) == 5 and log_of(session) == ""


def test_otel_a_collector_is_found_by_its_name(lab):
    with Collector() as collector:
        session = lab.session(agent(lab, f"http://localhost:{collector.port}").run("--task", "go").ok())
        assert len(collector.spans) == 5 and log_of(session) == ""
        assert ("Host", f"localhost:{collector.port}") in collector.requests[0][1]
    lost = lab.session(agent(lab, "http://collector.invalid:4318", name="lost").run("--task", "go", timeout=60).ok())
    assert "cannot resolve collector.invalid" in log_of(lost)


@pytest.mark.parametrize("status", ["503 Service Unavailable", "404 Not Found"])
def test_otel_a_refusal_is_a_line_of_the_log(lab, status):
    with Collector(status=status) as collector:
        session = lab.session(agent(lab, collector.endpoint).run("--task", "go").ok())

    assert len(collector.spans) == 5
    assert log_of(session).count(f"answered HTTP {status[:3]}") == 5


@pytest.mark.parametrize("endpoint", ["http://collector.example", "127.0.0.1", "http://127.0.0.1:x/"])
def test_otel_an_endpoint_without_a_port_sends_nothing(lab, endpoint):
    session = lab.session(agent(lab, endpoint).run("--task", "go").ok())

    assert len(log_of(session).splitlines()) == 5 and endpoint.strip("/") in log_of(session)


def test_otel_a_collector_that_never_answers_is_given_up_at_the_end(lab):
    with Collector(answers=False) as collector:
        result = agent(lab, collector.endpoint).run("--task", "go", timeout=40).ok()

    log = log_of(lab.session(result))
    assert len(log.splitlines()) == 5 and "the collector does not answer" in log


def test_otel_without_an_endpoint_nothing_is_sent_and_a_blank_one_is_none(lab):
    session = lab.session(agent(lab, "  ").run("--task", "go").ok())
    assert log_of(session) == ""


def test_otel_a_session_without_a_task_sends_one_span(lab):
    with Collector() as collector:
        agent(lab, collector.endpoint).run(env={"MURMUR_A2A_TIMEOUT_SECS": "1"}).ok()

    span, = collector.spans
    assert (span.name, span.attributes, span.parent) == ("capsule.session", {"exit_status": "ok"}, None)


def test_otel_a_script_sends_its_run(lab):
    with Collector() as collector:
        script = lab.script_capsule(own_component("script-task"), observability={"otel_endpoint": collector.endpoint})
        script.run("--task", "go").ok()

    span, = collector.spans
    assert (span.name, span.attributes, span.resource["service.name"]) == ("capsule.session", {"exit_status": "ok"}, "script")


def test_records_22_a_callers_span_becomes_the_parent_of_its_task_alone(lab):
    with Collector() as collector:
        running = agent(lab, collector.endpoint, [{"text": "done"}], lifecycle=SLEEPER).start()
        door = Door(running)
        for more in ([("traceparent", CALLER)], [], [("traceparent", CALLER[:-1])]):
            answered = door.post({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message()}, door.headers(more))
            assert answered.json["result"]["task"]
        running.signal()
        running.result()
        eventually(lambda: len(collector.named("capsule.session")) == 3, 10 * SLOWER, "three tasks")

    spans = collector.named("capsule.session")
    assert [span.parent for span in spans] == ["b" * 16, None, None]
    assert len({span.trace for span in spans}) == 3 and "a" * 32 not in {span.trace for span in spans}
    received = lab.session(running).trace.all("a2a_task_received")
    assert [line["traceparent_from_caller"] for line in received] == [CALLER, None, CALLER[:-1]]


def test_otel_a_hooks_call_is_a_span_with_its_origin(lab):
    hook = Hook(lab, on={"on-task-end": {"ask": "well?"}})
    with Collector() as collector:
        lab.agent(steps=[{"text": "done"}, {"text": "so so"}], tools=[hook.entry],
                  observability={"otel_endpoint": collector.endpoint}).run("--task", "go").ok()

    asked = [span for span in collector.named("capsule.inference") if "origin" in span.attributes]
    assert [span.attributes["origin"] for span in asked] == ["hook:watch"] and asked[0].attributes["model"] == "scripted"


def test_otel_a_hook_is_told_the_endpoint(lab):
    hook = Hook(lab, on={"on-session-start": {"env": ["MURMUR_OTEL_ENDPOINT"]}})
    with Collector() as collector:
        result = lab.agent(steps=[{"text": "done"}], tools=[hook.entry],
                           observability={"otel_endpoint": collector.endpoint}).run("--task", "go").ok()
    seen, = hook.seen(lab.session(result), "on-session-start")
    assert seen["MURMUR_OTEL_ENDPOINT"] == collector.endpoint


def test_otel_secrets_do_not_leave_in_spans(lab):
    key = "sk-very-secret-value"
    model = lab.model_server()
    model.script(call("sh", {"command": f"echo {key}"}), answer("done"))
    driver = lab.publish("driver-anthropic", own_component("driver-anthropic"), "driver",
                         upstream_auth={"header": "x-api-key", "value": "{key}"})
    with Collector() as collector:
        lab.agent(driver=driver, gateway={"endpoint": model.url, "api_key": key}, capabilities={"shell": {"allow": ["sh"]}},
                  observability={"otel_endpoint": collector.endpoint}).run("--task", "go").ok()

    assert collector.named("capsule.shell")[0].attributes["command"] == "echo [redacted]"
    assert key not in json.dumps([span.raw for span in collector.spans])


def test_otel_a_delegated_child_continues_below_the_task_that_sent_it(lab):
    with Collector() as collector:
        observed = {"observability": {"otel_endpoint": collector.endpoint}}
        publish_agent(lab, "child-agent", [{"text": "hello"}], **observed)
        with Plane(lab, "local/child-agent") as plane:
            project = plane.parent(turn(delegate("child-agent")), {"text": "waiting"}, {"text": "done"}, **observed)
            plane.run(project).ok()

    sessions = {span.resource["service.name"]: span for span in collector.named("capsule.session")}
    assert sessions["child-agent"].parent == sessions["parent"].id
    assert sessions["child-agent"].trace != sessions["parent"].trace


def test_otel_handles_of_peer_files_leave_in_spans_as_little_as_in_the_trace(lab):
    handle = "mh1.eyJhIjoxfQ.AAAAAAAAAAAAAAAAAAAAAA"
    with Collector() as collector:
        session = lab.session(agent(lab, collector.endpoint, [
            {"tool_calls": [{"name": "sh", "input": {"command": f"echo {handle}"}}]}, {"text": "done"}]).run("--task", "go").ok())

    command = session.trace.one("shell")["command"]
    assert "<handle:" in command and handle not in command
    assert collector.named("capsule.shell")[0].attributes["command"] == command


# --- messages of a script ------------------------------------------------------------------------------------------------


def sender(lab, url, text="hello", allow=None, **more):
    """A script that sends one message; what it saw is in its work folder."""
    script = lab.script_capsule(own_component("probe"), name="sender",
                                capabilities={"network": {"allow": [url if allow is None else allow]}}, **more)
    (script / "work").mkdir(exist_ok=True)
    result = script.run("--task", f"send {url} {text}", "--workdir", script / "work").ok()
    return lab.session(result), (script / "work/out/result.txt").read_text()


def test_session_7_a_script_sends_a_message_to_a_peer_its_grant_names(lab):
    peer = lab.agent(steps=[{"text": "the answer"}], lifecycle=SLEEPER, exports={"peer_tasks": {"accept": True}}).start()
    with Collector() as collector:
        session, said = sender(lab, peer.url, observability={"otel_endpoint": collector.endpoint})
    received = eventually(lambda: lab.session(peer).trace.all("a2a_task_received"), 10 * SLOWER, "the peer has it")[0]
    start = eventually(lambda: lab.session(peer).trace.all("task_start"), 10 * SLOWER, "the peer runs it")[0]

    line = session.trace.one("a2a_send")
    whole = collector.named("capsule.session")[0]
    assert session.trace.types == ["a2a_send"] and line["parent_id"] is None
    assert list(line)[5:] == ["peer_url", "message_id", "task_id", "context_id", "traceparent", "trust"]
    assert (line["peer_url"], line["message_id"], line["task_id"], line["trust"]) == (
        peer.url, "msg_probe", received["task_id"], "untrusted")
    assert said.startswith("send: ") and line["task_id"] in said
    assert received["traceparent_from_caller"] == line["traceparent"] == f"00-{whole.trace}-{whole.id}-01"
    assert (start["origin"], start["trust"]) == ("peer", "untrusted")


def test_session_7_a_message_outside_the_grant_makes_no_connection(lab):
    with Collector() as nobody:
        session, said = sender(lab, nobody.endpoint, allow="http://127.0.0.1:1")
        assert "network policy:" in said and nobody.requests == []
    assert not (session.records / "trace.jsonl").exists()


def test_session_7_what_a_peer_refuses_is_told_to_the_script(lab):
    peer = lab.agent(steps=[{"text": "x"}], lifecycle=SLEEPER, network={"authentication": {"scheme": "bearer"}}).start()
    _, said = sender(lab, peer.url)
    assert "HTTP 401: " in said
    closed = lab.agent(name="closed", steps=[{"text": "x"}], lifecycle=SLEEPER).start()
    assert "HTTP 403: peer_not_accepted: " in sender(lab, closed.url)[1]
    with Collector() as gone:
        endpoint = gone.endpoint
    _, said = sender(lab, endpoint)
    assert "refused" in said

# SPDX-License-Identifier: Apache-2.0
#
# Spans and metrics by OpenTelemetry's GenAI conventions, decoded by its own classes. otel_N: the cases by number.

import json
import ssl
import subprocess
import time

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess, ExportTraceServiceResponse)

from tests.integration.test_mcp_serve import served
from tests.integration.test_std_hooks import GRANTS, hook
from tests.support.delegation import Plane, delegate, turn
from tests.support.door_client import SLEEPER, Door, message
from tests.support.fixtures import own_component
from tests.support.lab import SLOWER
from tests.support.mcp_client import LEGACY, StdioClient
from tests.support.model_server import fault
from tests.support.otlp import OtlpCollector
from tests.support.polling import eventually
from tests.support.spawn import publish_agent

USAGE = {"input_tokens": 100, "output_tokens": 7, "cached_tokens": 40}
CALLER = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
SHELL = {"capabilities": {"shell": {"allow": ["sh"]}}}
STEPS = [{"tool_calls": [{"name": "sh", "input": {"command": "exit 3"}}], "usage": USAGE}, {"text": "all done", "usage": USAGE}]


def agent(lab, collector, steps=None, otel=None, **more):
    more = {**SHELL, **more}
    endpoint = collector if isinstance(collector, str) else collector.endpoint
    return lab.agent(steps=steps or STEPS, observability={"otel": {"endpoint": endpoint, **(otel or {})}}, **more)


def log_of(session):
    path = session.records / "logs/otel.log"
    return path.read_text() if path.exists() else ""


def test_otel_1_a_task_is_an_agent_with_chats_and_tools(lab):
    with OtlpCollector() as collector:
        session = lab.session(agent(lab, collector).run("--task", "go").ok())

    whole, chats = collector.one("invoke_agent"), collector.named("chat")
    tool, command = collector.one("execute_tool"), collector.one("command")
    assert log_of(session) == ""
    assert (whole.name, whole.parent, whole.kind) == ("invoke_agent agent", None, 1)
    assert {span.trace for span in collector.spans} == {whole.trace}
    assert [span.name for span in chats] == ["chat scripted"] * 2 and {span.kind for span in chats} == {3}
    assert {span.parent for span in [*chats, tool]} == {whole.id}
    start = session.trace.one("task_start")
    assert {span.attributes["gen_ai.conversation.id"] for span in collector.spans} == {start["context_id"]}
    assert {span.attributes["gen_ai.operation.name"] for span in chats} == {"chat"}
    first = chats[0].attributes
    assert (first["gen_ai.usage.input_tokens"], first["gen_ai.usage.output_tokens"], first["gen_ai.usage.total_tokens"],
            first["gen_ai.usage.cache_read.input_tokens"]) == (140, 7, 147, 40)
    assert first["gen_ai.response.finish_reasons"] == ["tool_call"] and first["gen_ai.request.model"] == "scripted"
    assert first["murmur.usage.estimated_input_tokens"] == session.trace.all("inference")[0]["input_tokens"]
    assert whole.attributes["gen_ai.agent.name"] == "agent" and whole.attributes["murmur.exit_status"] == "ok"
    assert not any(key.startswith("gen_ai.usage") for key in whole.attributes)
    assert whole.resource["service.name"] == "agent" and whole.resource["service.instance.id"] == session.id
    assert not whole.has_failed and not tool.has_failed


def test_otel_16_a_command_hangs_below_the_call_that_ran_it(lab):
    with OtlpCollector() as collector:
        agent(lab, collector).run("--task", "go").ok()

    tool, command = collector.one("execute_tool"), collector.one("command")
    assert command.parent == tool.id
    assert (command.attributes["process.executable.name"], command.attributes["process.exit.code"]) == ("dash", 3)
    assert command.has_failed and command.attributes["error.type"] == "exit"


CANARY = ("canary-task", "canary-answer", "canary-input", "canary-output")


def canary(lab, collector, content, **more):
    steps = [{"tool_calls": [{"name": "sh", "input": {"command": "echo canary-output # canary-input"}}]}, {"text": "canary-answer"}]
    agent(lab, collector, steps, {"content": content}, **more).run("--task", "canary-task").ok()
    return b"".join(body for _, _, body in collector.requests)


def test_otel_2_without_content_nothing_that_was_said_leaves(lab):
    with OtlpCollector() as collector:
        sent = canary(lab, collector, "none", trace={"capture": "content"})
    assert len(collector.spans) == 5 and not [word for word in CANARY if word.encode() in sent]


def test_otel_2_meta_carries_command_lines_and_full_carries_messages(lab):
    with OtlpCollector() as collector:
        sent = canary(lab, collector, "meta")
    assert b"canary-input" in sent and b"canary-task" not in sent and b"canary-answer" not in sent
    with OtlpCollector() as collector:
        canary(lab, collector, "full", trace={"capture": "content"}, name="full")
    whole, (first, last) = collector.one("invoke_agent"), collector.named("chat")
    assert (whole.attributes["input.value"], whole.attributes["output.value"]) == ("canary-task", "canary-answer")
    assert "input.value" not in first.attributes
    messages = json.loads(last.attributes["gen_ai.input.messages"])
    assert [one["role"] for one in messages] == ["user", "assistant", "tool"]
    assert messages[0]["parts"] == [{"type": "text", "content": "canary-task"}]
    assert messages[1]["parts"][0]["type"] == "tool_call" and messages[1]["parts"][0]["name"] == "sh"
    assert messages[2]["parts"][0]["type"] == "tool_call_response" and "canary-output" in messages[2]["parts"][0]["response"]
    said, = json.loads(last.attributes["gen_ai.output.messages"])
    assert said["parts"] == [{"type": "text", "content": "canary-answer"}]
    assert "canary-input" in collector.one("execute_tool").attributes["gen_ai.tool.call.arguments"]


def test_otel_3_the_older_spans_stay_as_they_were(lab):
    with OtlpCollector() as collector:
        agent(lab, collector, otel={"conventions": "capsule"}).run("--task", "go").ok()
    assert [span.name for span in collector.spans] == [
        "capsule.inference", "capsule.tool_call", "capsule.shell", "capsule.inference", "capsule.session"]
    assert {headers["Content-Type"] for _, headers, _ in collector.requests} == {"application/json"}


def test_otel_4_both_encodings_say_the_same(lab):
    bodies = []
    project = agent(lab, "http://127.0.0.1:9")
    project.run("--task", "go").ok()
    for protocol in ("http/protobuf", "http/json"):
        with OtlpCollector() as collector:
            project.mur("trace", "export", "--otlp", collector.endpoint, "--content", "meta",
                        env={"OTEL_EXPORTER_OTLP_PROTOCOL": protocol}).ok()
        bodies += collector.bodies("/v1/traces")
    assert len(bodies) == 2 and bodies[0] == bodies[1]


def test_otel_5_a_callers_trace_goes_on(lab):
    with OtlpCollector() as collector:
        running = agent(lab, collector, [{"text": "done"}], lifecycle=SLEEPER).start()
        door = Door(running)
        for more in ([("traceparent", CALLER)], [("traceparent", CALLER[:-1])], [("traceparent", CALLER[:-1] + "0")]):
            assert door.post({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message()}, door.headers(more)).json["result"]
        running.signal()
        running.result()
    first, second = collector.named("invoke_agent")  # the third caller does not sample: nothing is sent
    assert (first.trace, first.parent) == ("a" * 32, "b" * 16)
    assert second.trace != "a" * 32 and second.parent is None  # otel_6: an invalid one begins a new trace


def test_otel_5_three_capsules_are_one_tree(lab):
    with OtlpCollector() as collector:
        observed = {"observability": {"otel": {"endpoint": collector.endpoint}}}
        publish_agent(lab, "child-agent", [{"text": "hello"}], **observed)
        with Plane(lab, "local/child-agent") as plane:
            project = plane.parent(turn(delegate("child-agent")), {"text": "waiting"}, {"text": "done"}, **observed)
            plane.run(project).ok()
    agents = {span.resource["service.name"]: span for span in collector.named("invoke_agent") if span.kind == 1}
    assert agents["child-agent"].trace == agents["parent"].trace and agents["child-agent"].parent == agents["parent"].id
    call, = [span for span in collector.named("invoke_agent") if span.kind == 3]
    assert call.attributes["gen_ai.agent.name"] == "local/child-agent" and call.parent == agents["parent"].id
    known = {span.id for span in collector.spans}
    assert all(span.parent in known for span in collector.spans if span.parent)


def test_otel_7_a_collector_that_is_gone_costs_two_lines_of_a_log(lab):
    with OtlpCollector() as collector:
        endpoint = collector.endpoint
    session = lab.session(agent(lab, endpoint, [*STEPS[:1] * 30, STEPS[1]]).run("--task", "go").ok())
    lines = log_of(session).splitlines()
    assert 1 <= len(lines) <= 2 and any(" spans were not sent: " in line for line in lines)


def test_otel_8_a_collector_that_never_answers_does_not_hold_the_end(lab):
    with OtlpCollector(lambda path, count: time.sleep(20) or (200, {}, None)) as collector:
        before = time.monotonic()
        agent(lab, collector).run("--task", "go").ok()
        assert time.monotonic() - before < 8 * SLOWER


def test_otel_9_a_busy_collector_is_asked_again_when_it_says(lab):
    with OtlpCollector(lambda path, count: (429, {"retry-after": "1"}, None) if path == "/v1/traces" and not count else (200, {}, None)) as collector:
        running = agent(lab, collector, lifecycle=SLEEPER).start()
        Door(running).send("go")
        eventually(lambda: len([1 for path, _, _ in collector.requests if path == "/v1/traces"]) == 2, 20 * SLOWER, "a second try")
        running.signal()
        session = lab.session(running.result())
    first, second = [body for path, _, body in collector.requests if path == "/v1/traces"]
    assert first == second and log_of(session) == ""


def test_otel_10_what_a_collector_did_not_take_is_told(lab):
    said = ExportTraceServiceResponse(partial_success=ExportTracePartialSuccess(rejected_spans=3, error_message="too old")).SerializeToString()
    with OtlpCollector(lambda path, count: (200, {}, said if path == "/v1/traces" else None)) as collector:
        session = lab.session(agent(lab, collector).run("--task", "go").ok())
    assert "did not take 3 of them: too old" in log_of(session)


@pytest.mark.parametrize("status", [404, 405])
def test_otel_11_a_collector_without_metrics_gets_spans_all_the_same(lab, status):
    with OtlpCollector(lambda path, count: (status if path == "/v1/metrics" else 200, {}, None)) as collector:
        session = lab.session(agent(lab, collector).run("--task", "go").ok())
    assert len(collector.spans) == 5
    assert log_of(session).count("metrics") == 1 and "takes none" in log_of(session)


def test_otel_12_a_headers_credential_is_on_the_wire_and_nowhere_else(lab):
    key = "otel-secret-value-1"
    with OtlpCollector() as collector:
        project = agent(lab, collector, otel={"headers": {"Authorization": "Bearer ${OTEL_KEY}"}})
        session = lab.session(project.run("--task", "go", env={"OTEL_KEY": key}).ok())
    assert {headers["authorization"] for _, headers, _ in collector.requests} == {f"Bearer {key}"}
    for path in session.records.rglob("*"):
        assert not path.is_file() or key.encode() not in path.read_bytes(), path


def test_otel_12_a_header_without_its_credential_refuses_the_launch(lab):
    refused = agent(lab, "http://127.0.0.1:9", otel={"headers": {"Authorization": "Bearer ${OTEL_KEY}"}}).run("--task", "go")
    assert refused.code == 1 and "error[E-MAN-003]" in refused.stderr and "OTEL_KEY is not set" in refused.stderr


def certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", folder / "key.pem", "-out",
                    folder / "cert.pem", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


def test_otel_13_https_is_spoken_and_a_strange_certificate_is_told(lab, tmp_path):
    with OtlpCollector(tls=certificate(tmp_path)) as collector:
        trusted = lab.session(agent(lab, collector).run("--task", "go", env={"SSL_CERT_FILE": str(tmp_path / "cert.pem")}).ok())
        count = len(collector.spans)
        strange = lab.session(agent(lab, collector, name="strange").run("--task", "go").ok())
    assert count == 5 and log_of(trusted) == ""
    assert len(collector.spans) == 5 and "were not sent" in log_of(strange)


def test_otel_14_failures_are_errors_with_their_type(lab):
    model = lab.model_server()
    model.script(fault(500), fault(500), fault(500))
    driver = lab.publish("driver-anthropic", own_component("driver-anthropic"), "driver", upstream_auth={"header": "x-api-key", "value": "{key}"})
    with OtlpCollector() as collector:
        failed = lab.agent(driver=driver, gateway={"endpoint": model.url, "keyless": True},
                           inference={"retry": {"max_retries": 2, "initial_delay_ms": 10}},
                           observability={"otel": {"endpoint": collector.endpoint}}).run("--task", "go")
        assert failed.code != 0
    chat, whole = collector.one("chat"), collector.one("invoke_agent")
    assert chat.has_failed and chat.attributes["error.type"] == "500"
    assert [name for name, _ in chat.events] == ["murmur.retry"] * 2
    assert chat.attributes["server.address"] == "127.0.0.1" and chat.attributes["gen_ai.provider.name"] == "anthropic"
    assert whole.has_failed and whole.attributes["error.type"]


def test_otel_15_children_lie_within_their_parents(lab):
    with OtlpCollector() as collector:
        agent(lab, collector).run("--task", "go").ok()
    by_id = {span.id: span for span in collector.spans}
    for span in collector.spans:
        assert span.start <= span.end
        if span.parent:
            assert by_id[span.parent].start <= span.start and span.end <= by_id[span.parent].end + 1_000_000


def points(metric):
    (kind,) = [key for key in ("sum", "histogram") if key in metric]
    assert metric[kind]["aggregationTemporality"] == 2
    return metric[kind]["dataPoints"]


def test_otel_18_metrics_add_up_to_the_sessions_numbers(lab):
    with OtlpCollector() as collector:
        session = lab.session(agent(lab, collector).run("--task", "go").ok())
    metrics = collector.metrics
    end = session.trace.one("session_end")
    durations = points(metrics["gen_ai.client.operation.duration"])
    assert sum(int(point["count"]) for point in durations) == end["total_turns"]
    assert sum(int(point["count"]) for point in points(metrics["gen_ai.execute_tool.duration"])) == end["total_tool_calls"]
    assert [int(point["asInt"]) for point in points(metrics["gen_ai.client.inference.usage.input_tokens"])] == [280]
    assert metrics["gen_ai.client.inference.usage.input_tokens"]["sum"]["isMonotonic"] is True
    # otel_19: the convention's buckets, one count more than bounds
    assert durations[0]["explicitBounds"] == [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
    assert len(durations[0]["bucketCounts"]) == 15 and sum(map(int, durations[0]["bucketCounts"])) == int(durations[0]["count"])


def test_otel_20_a_long_text_is_cut_on_a_character(lab):
    with OtlpCollector() as collector:
        agent(lab, collector, [{"text": "done"}], {"content": "full"}, trace={"capture": "content"}).run("--task", "ü" * 50_000).ok()
    said = collector.one("invoke_agent").attributes["input.value"]
    assert said.endswith("ü…") and 65_000 < len(said.encode()) <= 65_536 and set(said) == {"ü", "…"}


def test_otel_22_many_spans_travel_in_few_posts(lab):
    steps = [*[{"tool_calls": [{"name": "sh", "input": {"command": "true"}}] * 8}] * 40, {"text": "done"}]
    with OtlpCollector() as collector:
        agent(lab, collector, steps).run("--task", "go", timeout=120).ok()
    posts = [body for path, _, body in collector.requests if path == "/v1/traces"]
    assert len(collector.spans) == 40 * 17 + 2 and len(posts) <= 20 and max(map(len, posts)) <= 4 << 20


def shown(body):
    """A body without the starts of chats, which a trace does not have."""
    spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return sorted(json.dumps({key: value for key, value in span.items() if not (key == "startTimeUnixNano" and span["name"].startswith("chat"))},
                             sort_keys=True) for span in spans)


def test_otel_23_a_finished_trace_gives_the_spans_that_were_sent(lab, tmp_path):
    with OtlpCollector() as collector:
        project = agent(lab, collector)
        project.run("--task", "go").ok()
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file in files:
        project.mur("trace", "export", "--otlp", file).ok()
    assert files[0].read_bytes() == files[1].read_bytes()
    sent, = collector.bodies("/v1/traces")
    # JSON has its 64-bit numbers as texts, the official classes' dictionaries too.
    assert shown(json.loads(files[0].read_text())) == shown(sent)


def test_otel_24_what_was_killed_is_an_error(lab, tmp_path):
    project = agent(lab, "http://127.0.0.1:9", [{"tool_calls": [{"name": "sh", "input": {"command": "sleep 600"}}]}, {"text": "x"}])
    running = project.start("--task", "go")
    session = lab.session(running)
    eventually(lambda: session.trace.all("inference"), 20 * SLOWER, "the first turn")
    running.kill()
    running.result()
    project.mur("trace", "export", "--otlp", tmp_path / "a.json").ok()
    spans = json.loads((tmp_path / "a.json").read_text())["resourceSpans"][0]["scopeSpans"][0]["spans"]
    whole, = [span for span in spans if span["name"] == "invoke_agent agent"]
    assert whole["status"]["code"] == 2 and {"key": "error.type", "value": {"stringValue": "killed"}} in whole["attributes"]


def test_otel_25_a_locked_operator_keeps_the_collector_to_themselves(lab):
    (lab.home / ".murmur").mkdir(exist_ok=True)
    (lab.home / ".murmur/config.yaml").write_text("observability: {locked: true}\n")
    refused = agent(lab, "http://127.0.0.1:9").run("--task", "go")
    assert refused.code == 1 and "error[E-CAP-021]" in refused.stderr and "OTEL_EXPORTER_OTLP_ENDPOINT" in refused.stderr
    with OtlpCollector() as collector:
        lab.agent(name="plain", steps=STEPS, **SHELL).run("--task", "go", env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}).ok()
        assert len(collector.spans) == 5


def test_otel_the_standard_variables_win_over_the_manifest(lab):
    with OtlpCollector() as collector, OtlpCollector() as other:
        project = agent(lab, other, otel={"headers": {"x-team": "manifest"}, "resource": {"a": "manifest", "b": "manifest"}})
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint + "/", "OTEL_EXPORTER_OTLP_HEADERS": "x-team=env%20one,x-more=2",
               "OTEL_RESOURCE_ATTRIBUTES": "a=env,deployment.environment.name=test", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}
        project.run("--task", "go", env=env).ok()
        project.run("--task", "go", env={"OTEL_SDK_DISABLED": "true"}).ok()
        assert other.requests == []
    _, headers, body = collector.requests[0]
    headers = {name.lower(): value for name, value in headers.items()}
    assert (headers["x-team"], headers["x-more"], headers["content-type"]) == ("env one", "2", "application/json")
    resource = collector.spans[0].resource
    assert (resource["a"], resource["b"], resource["deployment.environment.name"]) == ("env", "manifest", "test")
    refused = project.run("--task", "go", env={"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    assert refused.code == 1 and "E-RUN-056" in refused.stderr and "http/protobuf" in refused.stderr


@pytest.mark.parametrize("otel, more, path", [
    ({"protocol": "grpc"}, {}, "observability.otel.protocol"),
    ({"content": "full"}, {}, "observability.otel.content"),
    ({"content": "meta"}, {"trace": {"capture": "none"}}, "observability.otel.content"),
    ({"headers": {"bad name": "x"}}, {}, "observability.otel.headers"),
    ({"headers": ["x"]}, {}, "observability.otel.headers"),
    ({"endpoint": "ftp://x"}, {}, "observability.otel.endpoint"),
    ({"sample": 2}, {}, "observability.otel.sample"),
    ({"resource": {"a": {"b": 1}}}, {}, "observability.otel.resource.a"),
])
def test_otel_what_a_manifest_cannot_mean_is_refused(lab, otel, more, path):
    refused = agent(lab, "http://127.0.0.1:9", otel=otel, **more).run("--task", "go")
    assert refused.code == 1 and "error[E-MAN-003]" in refused.stderr and path in refused.stderr


def test_otel_a_resuming_message_links_to_its_callers_span(lab):
    tool = lab.publish("tool-probe", own_component("tool-probe"), "tool", description="probe", input_schema={"type": "object"})
    steps = [{"tool_calls": [{"name": "tool-probe", "input": {"do": "ask which?"}}]}, {"text": "thanks"}]
    with OtlpCollector() as collector:
        running = agent(lab, collector, steps, tools=[tool], lifecycle=SLEEPER).start()
        door = Door(running)

        def send(said, caller):
            body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": said}
            return door.post(body, door.headers([("traceparent", caller)])).json["result"]["task"]

        task = send(message("go"), CALLER)
        again = message("that one")
        again["message"]["taskId"] = task["id"]
        send(again, "00-" + "c" * 32 + "-" + "d" * 16 + "-01")
        running.signal()
        running.result()
    whole = collector.one("invoke_agent")
    assert (whole.trace, whole.parent) == ("a" * 32, "b" * 16)
    assert [(link["traceId"], link["spanId"]) for link in whole.raw["links"]] == [("c" * 32, "d" * 16)]


def test_otel_17_a_call_over_mcp_is_told_by_that_convention(lab):
    with OtlpCollector() as collector:
        project = served(lab, observability={"otel": {"endpoint": collector.endpoint}})
        client = StdioClient(lab, project.directory, era=LEGACY)
        client.call("files", {"action": "list", "path": "."}, _meta={"traceparent": CALLER})
        client.call("files", {"action": "read", "path": "missing"})
        assert client.close() == 0
    first, second = collector.named("execute_tool")
    assert (first.kind, first.attributes["mcp.method.name"], first.attributes["network.transport"]) == (2, "tools/call", "pipe")
    assert [(link["traceId"], link["spanId"]) for link in first.raw["links"]] == [("a" * 32, "b" * 16)]
    assert second.attributes["error.type"] == "tool_error" and "links" not in second.raw


def test_otel_scores_of_a_hook_are_evaluation_events(lab):
    with OtlpCollector() as collector:
        scorers = [{"type": "exit_ok"}, {"type": "max_turns", "max": 0}]
        project = lab.agent(steps=[{"text": "hey"}], tools=[hook("eval", {}, GRANTS)], observability={
            "otel": {"endpoint": collector.endpoint}, "eval": {"scorers": scorers}})
        session = lab.session(project.run("--task", "go").ok())
    span, whole = collector.one("evaluation"), collector.one("invoke_agent")
    assert (span.parent, span.trace) == (whole.id, whole.trace)
    scores = [attributes for name, attributes in span.events if name == "gen_ai.evaluation.result"]
    told = {score["gen_ai.evaluation.name"]: (score["gen_ai.evaluation.score.label"], score["gen_ai.evaluation.score.value"])
            for score in scores}
    assert told["exit_ok"] == ("pass", 1) and told["max_turns"][0] == "fail"
    assert all("gen_ai.evaluation.explanation" not in score for score in scores)
    exported = project.mur("trace", "export", "--otlp", "-").ok().stdout
    assert "gen_ai.evaluation.result" in exported


def test_otel_no_span_is_without_length(lab):
    with OtlpCollector() as collector:
        agent(lab, collector, [{"tool_calls": [{"name": "sh", "input": {"command": "true"}}]}, {"text": "x"}]).run("--task", "go").ok()
    assert collector.spans and all(span.end > span.start for span in collector.spans)

# SPDX-License-Identifier: Apache-2.0
#
# Components built by others, from the reference's published package, do here what their names promise. Skipped with the
# reason printed when the package cannot be fetched.

import http.server
import json
import threading

import pytest

from tests.integration.test_door import SLEEPER, STREAM, events, message, rpc
from tests.support.fixtures import own_component, published_component, published_fixtures
from tests.support.model_server import answer, call, fault

UPSTREAM_AUTH = {"header": "x-api-key", "value": "{key}"}


def script(lab, name, **manifest):
    return lab.script_capsule(published_component(name), **manifest)


def run_in_folder(lab, project, *arguments, **how):
    """Runs it on a named, empty work folder; the folder and the result."""
    work = lab.directory / "outer" / "inner" / "work"
    work.mkdir(parents=True, exist_ok=True)
    return work, project.run("--workdir", work, *arguments, **how)


def test_published_env_echo_sees_what_is_allowed_and_nothing_else(lab):
    project = script(lab, "capsule-env-echo", capabilities={"env": {"allow": ["MURMUR_TEST_ALLOWED_VAR"]}})

    work, result = run_in_folder(lab, project, env={
        "MURMUR_TEST_ALLOWED_VAR": "seen-by-the-guest", "GITHUB_TOKEN": "never-seen"})

    result.ok()
    assert (work / "out/result.txt").read_text().splitlines() == [
        "GITHUB_TOKEN=absent", "MURMUR_TEST_ALLOWED_VAR=present:seen-by-the-guest"]


def test_published_filesystem_escape_is_blocked(lab):
    work, result = run_in_folder(lab, script(lab, "capsule-filesystem-escape"))

    result.ok()
    assert (work / "out/result.txt").read_text().strip() == "blocked"
    assert not (work.parent.parent / "outside.txt").exists()


def test_published_path_reader_reads_inside_and_is_blocked_outside(lab):
    project = script(lab, "capsule-path-reader")
    work = lab.directory / "outer" / "inner" / "work"
    work.mkdir(parents=True)
    secret = work.parent / "secret.txt"
    secret.write_text("TOP-SECRET")
    (work / "inside.txt").write_text("INSIDE-TEXT")
    (work / "link.txt").symlink_to(secret)
    (work / "targets.txt").write_text(f"inside.txt\n../secret.txt\n{secret}\nlink.txt\n")

    project.run("--workdir", work).ok()

    assert (work / "out/result.txt").read_text().splitlines() == ["served INSIDE-TEXT", "blocked", "blocked", "blocked"]


@pytest.fixture
def listener():
    """A web server that counts who came."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.seen.append(self.path)
            self.send_response(200)
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *_args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seen = []
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def test_published_network_attempt_is_denied_without_a_packet(lab, listener):
    work, result = run_in_folder(lab, script(lab, "capsule-network-attempt"))

    result.ok()
    assert (work / "out/result.txt").read_text().strip() == "denied"
    assert listener.seen == []


def test_published_memory_balloon_stops_at_its_limit(lab):
    limit = 64 << 20
    project = script(lab, "capsule-memory-balloon", capabilities={"limits": {"memory_bytes": limit}})

    result = project.run().failed("E-RUN-001")

    assert result.status == "failed"
    assert "exceeded its configured resource limits" in result.stderr
    assert "linear memory growth to" in result.stderr
    assert f"exceeds capabilities.limits.memory_bytes ({limit})" in result.stderr


def test_published_spin_loop_ends_at_its_deadline(lab):
    project = script(lab, "capsule-spin-loop", capabilities={"limits": {"deadline_seconds": 1}})

    result = project.run(timeout=10).failed("E-RUN-001")

    assert result.status == "failed"
    assert "capsule execution exceeded its 1s deadline" in result.stderr


def test_published_echo_tool_answers_the_agent(lab):
    echo = lab.publish("echo-tool", published_component("echo-tool"), input_schema={"type": "object"})
    project = lab.agent(tools=[echo], steps=[
        {"tool_calls": [{"name": "echo-tool", "input": {"word": "marmalade"}}]}, {"text": "{{result}}"}])

    session = lab.session(project.run("--task", "do X").ok())

    assert "marmalade" in session.result_text
    tool_call = session.trace.one("tool_call")
    assert (tool_call["tool_name"], tool_call["status"]) == ("echo-tool", "ok")


def test_published_anthropic_driver_does_one_tool_turn(lab, model):
    driver = lab.publish("driver-anthropic", published_component("drivers/anthropic/driver/murmur-driver-anthropic.wasm"),
                         "driver", upstream_auth=UPSTREAM_AUTH)
    echo = lab.publish("echo-tool", published_component("echo-tool"), description="Echoes.", input_schema={
        "type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]})
    project = lab.agent(driver=driver, tools=[echo],
                        gateway={"endpoint": model.url, "api_key": "${PROVIDER_KEY}"})
    model.script(call("echo-tool", {"word": "marmalade"}, call_id="call_1"), answer("You said marmalade."))

    result = project.run("--task", "Say it.", env={"PROVIDER_KEY": "sk-live-0123456789"}, timeout=60).ok()

    session = lab.session(result)
    assert session.result_text == "You said marmalade."
    assert [event["decision"] for event in session.trace.all("inference")] == ["tool_call", "end_turn"]
    assert session.trace.one("tool_call")["status"] == "ok"
    first, second = model.requests
    assert (first.method, first.path) == ("POST", "/v1/messages")
    assert first.headers["x-api-key"] == "sk-live-0123456789"
    assert first.headers["host"] == model.host
    assert [tool["name"] for tool in first.json["tools"]][0] == "echo-tool"
    assert "marmalade" in second.body.decode()
    assert "sk-live-0123456789" not in session.trace.path.read_text()


# --- drivers -----------------------------------------------------------------------------------------------------------


def with_published_driver(lab, model, name, tools=(), **how):
    path, = published_fixtures().glob(f"{name}/tool/*.wasm")
    driver = lab.publish(name, path, "driver", upstream_auth=UPSTREAM_AUTH)
    echo = lab.publish("echo-tool", own_component("echo"), input_schema={"type": "object"})
    return lab.agent(driver=driver, gateway={"endpoint": model.url, "keyless": True}, tools=[echo, *tools], **how)


def test_published_continuation_driver_is_sent_what_is_new_and_its_id(lab, model):
    session = lab.session(with_published_driver(lab, model, "continuation-driver").run("--task", "do X").ok())

    assert session.result_text == "wire_n=2 cont=cont-echo-1"
    first, second = session.trace.all("inference")
    assert [len(line["message_ids"]) for line in (first, second)] == [1, 2], "the answer with the call, and its result"
    assert second["input_tokens"] > first["input_tokens"], "counts are of the whole list"


def test_published_truncation_driver_ends_in_the_marker(lab, model):
    result = with_published_driver(lab, model, "truncation-driver").run("--task", "do X").ok()

    session = lab.session(result)
    text, marker = session.result_text.rsplit("\n\n", 1)
    assert text and marker.startswith("[") and "inference.max_tokens" in marker and "1024" in marker
    assert result.stderr.count("warning[W-RUN-001]") == 1
    assert session.trace.one("inference")["stop_reason"] == "max_tokens"


def test_published_usage_driver_is_believed(lab, model):
    trace = lab.session(with_published_driver(lab, model, "usage-driver").run("--task", "do X").ok()).trace

    line = trace.one("inference")
    assert (line["input_tokens_actual"], line["output_tokens_actual"], line["cached_tokens"], line["cache_write_tokens"]) == \
        (12043, 218, 11780, 7)
    assert trace.one("session_end")["total_input_tokens"] == line["input_tokens"] < 12043


def test_published_wire_digest_driver_sees_the_same_bytes_on_20_launches(lab, model):
    project = with_published_driver(lab, model, "wire-digest-driver", inference={"system_prompt": "Be exact.\n\n"})
    seen, traced = set(), set()

    for _ in range(20):
        session = lab.session(project.run("--task", "do X", "--context", "fixed").ok())
        seen.add(session.result_text)
        line = session.trace.one("inference")
        traced.add((line["system_sha"], line["tools_sha"], *line["message_shas"]))

    assert len(seen) == len(traced) == 1
    digests = dict(part.split("=") for part in seen.pop().split())
    (system, tools, _message), = traced
    assert (digests["system"], digests["tools"]) == (system, tools)


def test_published_retry_driver_is_tried_again(lab, model):
    model.script(fault(529), fault(503), answer("at last"))
    project = with_published_driver(lab, model, "retry-driver", inference={"retry": {"initial_delay_ms": 1}})

    session = lab.session(project.run("--task", "do X").ok())

    assert session.result_text == "at last"
    assert [(line["attempt"], line["reason"], line["provider_status"]) for line in session.trace.all("inference_retry")] == \
        [(1, "status", 529), (2, "status", 503)]
    assert session.trace.one("inference")["attempts"] == 3


def test_published_tool_progress_driver_shows_sizes_and_never_inputs(lab, model):
    running = with_published_driver(lab, model, "tool-progress-driver", lifecycle=SLEEPER).start()
    running.url
    with rpc(running, "SendStreamingMessage", message("go"), {"A2A-Extensions": STREAM}) as reply:
        seen = [json.dumps(event) for event in events(reply)]
    running.signal()
    running.result(20).ok()

    progress = [text for text in seen if "tool-call-progress" in text]
    assert any("tool-call-started" in text and "echo-tool" in text for text in seen) and progress
    assert not any("progress-marker-7f3a" in text for text in progress)


def test_published_streaming_driver_streams_chunk_by_chunk(lab, model):
    running = with_published_driver(lab, model, "streaming-driver", lifecycle=SLEEPER).start()
    running.url
    with rpc(running, "SendStreamingMessage", message("go"), {"A2A-Extensions": STREAM}) as reply:
        seen = [json.dumps(event) for event in events(reply)]
    running.signal()
    running.result(20).ok()

    at = [next(i for i, text in enumerate(seen) if chunk in text) for chunk in ("chunk_one", "chunk_two", "chunk_three")]
    assert at == sorted(set(at)), "each chunk is an event of its own"


def test_published_env_report_driver_finds_no_key(lab, model):
    model.script(answer("x"))
    project = with_published_driver(lab, model, "env-report-driver")

    session = lab.session(project.run("--task", "do X", env={"ANTHROPIC_API_KEY": "never"}).ok())

    assert session.result_text.startswith("key=absent endpoint=http://127.0.0.1:9 authority=127.0.0.1:9 status=200 ")

# SPDX-License-Identifier: Apache-2.0
#
# The bundled drivers against a scripted provider: every request is checked against the provider's documented shape, every
# answer is one that a real network or provider has given.

import json
import re
import socket
import threading
import urllib.request

import pytest

from tests.support import warm_forms
from tests.support.lab import BUILD
from tests.support.model_server import Reply
from tests.support.provider_forms import KEY, PROVIDERS, Turn, dumped

FILES = {"name": "std/files", "version": "0.1.0"}
UNICODE = "naïve 漢字 🦉"


@pytest.fixture(params=PROVIDERS, ids=lambda provider: provider.name)
def provider(request):
    return request.param


class Desk:
    """One agent and its provider."""

    def __init__(self, lab, model, provider, stream=True, config=None, retry=None, **how):
        warm_forms.lend(lab)
        self.lab, self.model, self.provider, self.stream = lab, model, provider, stream
        self.problems = []
        config = {**({} if stream else {"stream": False}), **(config or {})}
        inference = {"driver": {"artifact": provider.driver.split("@")[0], "config": config},
                     "retry": {"initial_delay_ms": 1, "max_delay_ms": 50, **(retry or {})}, **how.pop("inference", {})}
        how.setdefault("gateway", {"endpoint": model.url, "keyless": True})
        self.project = lab.agent(driver=provider.driver, tools=[FILES], inference=inference, **how)
        (self.project / "work").mkdir(exist_ok=True)

    def reply(self, turn, newline="\n", **how):
        """A turn as the provider sends it, or anything else as it is; either way the request is checked first."""
        def made(request):
            try:
                self.provider.check(request)
                assert request.json.get("stream", False) is self.stream
            except Exception as problem:  # shown by the test, whatever it is
                self.problems.append((repr(problem), request.body.decode()))
                raise
            if isinstance(turn, Reply):
                return turn
            if isinstance(turn, bytes):
                return Reply(body=turn, **{"content_type": "text/event-stream", **how})
            body = self.provider.stream(turn, newline) if self.stream else self.provider.whole(turn)
            return Reply(body=body, content_type="text/event-stream" if self.stream else "application/json", **how)
        return made

    def script(self, *turns, **how):
        self.model.script(*(turn if callable(turn) else self.reply(turn, **how) for turn in turns))
        return self

    def run(self, task="go", **how):
        result = self.project.run("--task", task, "--workdir", self.project / "work", **how)
        warm_forms.keep(self.lab)
        assert self.problems == []
        return result

    def ends(self, **how):
        return self.lab.session(self.run(**how).ok())

    def fails(self, code="E-RUN-040", **how):
        return self.lab.session(self.run(**how).failed(code))


@pytest.fixture
def desk(lab, model, provider):
    return lambda **how: Desk(lab, model, provider, **how)


def refusal(provider, status, kind="api_error", message="scripted", **headers):
    return Reply(status=status, body=dumped(provider.error(kind, message)),
                 headers={name.replace("_", "-"): value for name, value in headers.items()})


# --- A task of three turns ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk_bytes, newline", [(None, "\n"), (1, "\n"), (3, "\r\n"), (1, "\r\n"), (1000, "\r")])
def test_std_drivers_finish_a_task_of_three_turns_whatever_the_chunks(desk, chunk_bytes, newline):
    task = desk().script(
        Turn(thinking=f"I write {UNICODE}", text=UNICODE, calls=[
            ("files", {"action": "write", "path": "a.txt", "content": UNICODE}), ("files", {"action": "read", "path": "a.txt"})]),
        Turn(calls=[("files", {"action": "read", "path": "absent.txt"})]),
        Turn(text=f"There is {UNICODE}."), newline=newline, chunk_bytes=chunk_bytes)

    session = task.ends(task=f"keep {UNICODE}")

    assert session.result_text == f"There is {UNICODE}."
    assert (task.project / "work/a.txt").read_text() == UNICODE
    assert [line["status"] for line in session.trace.all("tool_call")] == ["ok", "ok", "error"]
    lines = session.trace.all("inference")
    assert [line["stop_reason"] for line in lines] == ["tool_call", "tool_call", "end_turn"]
    assert len(task.model.requests) == 3 and task.model.connections == 1
    last = task.model.requests[-1].body.decode()
    assert last.count("absent.txt: No such file or directory") == 1
    assert {request.path for request in task.model.requests} == {task.provider.path}


@pytest.mark.parametrize("chunk_bytes", [None, 1])
def test_std_drivers_take_whole_answers(desk, chunk_bytes):
    task = desk(stream=False).script(
        Turn(thinking="hm", text="first", calls=[("files", {"action": "list"})]), Turn(text=UNICODE), chunk_bytes=chunk_bytes)

    assert task.ends().result_text == UNICODE


def frames_of(url, task):
    """What a client that asked for the stream of a task sees: (frame, its words) each."""
    extension = "https://docs.murmur.nexus/reference/streaming-protocol/#murmur-stream-v1"
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage",
            "params": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": task}]}}}
    request = urllib.request.Request(f"{url}/", json.dumps(body).encode(), {
        "content-type": "application/json", "A2A-Version": "1.0", "A2A-Extensions": extension})
    with urllib.request.urlopen(request, timeout=30) as reply:
        events = [json.loads(line[6:])["result"] for line in reply if line.startswith(b"data: ")]
    frames = [event["statusUpdate"]["metadata"][extension] for event in events if "metadata" in event.get("statusUpdate", {})]
    return [(frame["frame"], frame) for frame in frames]


@pytest.mark.parametrize("stream", [True, False])
def test_std_drivers_stream_whole_characters_and_calls_as_they_are_written(desk, stream):
    said = Turn(thinking=f"I write {UNICODE}", text=UNICODE, calls=[("files", {"action": "list"})])
    task = desk(stream=stream, lifecycle={"task_acceptance": "queue", "after_task": "sleep"})
    task.script(said, Turn(text="done"), chunk_bytes=1)
    running = task.project.start("--workdir", task.project / "work")

    frames = frames_of(running.url, "go")

    running.signal().result().ok()
    assert task.problems == []
    words = {kind: "".join(frame["text"] for name, frame in frames if name == kind) for kind in ("thinking", "text")}
    assert words == {"thinking": said.thinking, "text": UNICODE + "done"}
    kinds = [name for name, _ in frames]
    assert kinds.count("tool-call-started") == 1 and frames[kinds.index("tool-call-started")][1]["toolName"] == "files"
    assert [frame["inputBytes"] for name, frame in frames if name == "tool-call-progress"] == [len('{"action": "list"}')]
    assert kinds.index("thinking") < kinds.index("text") < kinds.index("tool-call-started")


@pytest.mark.parametrize("stream", [True, False])
def test_std_drivers_report_usage(desk, stream):
    task = desk(stream=stream).script(Turn(text="x"))

    line = task.ends().trace.one("inference")

    assert {name: line.get(f"{name}_actual", line.get(name)) for name in task.provider.usage} == task.provider.usage


def test_std_drivers_show_the_key_as_the_provider_wants_it_and_keep_it_to_themselves(lab, model, provider):
    task = Desk(lab, model, provider, gateway={"endpoint": model.url, "api_key": "${LAB_KEY}"}).script(Turn(text="x"))

    session = task.ends(env={"LAB_KEY": KEY})

    name, value = provider.key_header
    assert model.requests[0].headers[name] == value
    assert KEY not in session.trace.path.read_text()


def test_std_drivers_send_the_same_bytes_for_the_same_task(desk):
    seen = []
    task = desk()
    for _ in range(3):
        task.script(Turn(text="a", calls=[("files", {"action": "list"})]), Turn(text="b"))
        task.ends()
        seen.append([request.body for request in task.model.requests[-2:]])
    assert seen[0] == seen[1] == seen[2]


def test_std_drivers_know_their_models_limits(lab, model, provider):
    name, limit = {"anthropic": ("claude-sonnet-4-5", 64000)}.get(provider.name, ("gpt-5-mini", 128000))
    task = Desk(lab, model, provider, inference={"model": name, "max_tokens": None}).script(Turn(text="x"))

    task.ends()

    body = model.requests[0].json
    assert body["model"] == name and limit in [body.get(key) for key in (
        "max_tokens", "max_completion_tokens", "max_output_tokens")]


# --- Config ------------------------------------------------------------------------------------------------------------


def test_std_drivers_add_members_and_headers_of_their_config(desk):
    task = desk(config={"request": {"temperature": 0.5}, "headers": {"x-lab": "yes"}}).script(Turn(text="x"))

    task.ends()

    assert task.model.requests[0].json["temperature"] == 0.5
    assert task.model.requests[0].headers["x-lab"] == "yes"


def test_std_drivers_refuse_to_have_their_own_members_replaced(desk):
    task = desk(retry={"max_retries": 0})
    member = "input" if task.provider.name == "responses" else "messages"
    task = desk(config={"request": {member: []}}, retry={"max_retries": 0})

    assert f"request.{member}: the driver writes it itself" in task.fails().result_text
    assert task.model.requests == []


@pytest.mark.parametrize("endpoint, config, paths", [
    ("", {}, ["/v1/messages", "/v1/chat/completions", "/v1/responses"]),
    ("/v1", {}, ["/v1/messages", "/v1/chat/completions", "/v1/responses"]),
    ("/some/api", {}, ["/some/api/v1/messages", "/some/api/chat/completions", "/some/api/responses"]),
    ("/x", {"path": "/y?z=1"}, ["/x/y?z=1"] * 3)])
def test_std_drivers_find_the_interface_below_any_endpoint(lab, model, provider, endpoint, config, paths):
    task = Desk(lab, model, provider, config=config, gateway={"endpoint": model.url + endpoint, "keyless": True})
    task.script(Turn(text="x")).ends()

    assert model.requests[0].path == paths[PROVIDERS.index(provider)]


# --- What goes wrong on the way ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("status, headers, asked_ms", [
    (408, {}, None), (409, {}, None), (429, {"retry_after": "0"}, 0), (429, {"retry_after_ms": "7"}, 7),
    (429, {"retry_after_ms": "3", "retry_after": "40"}, 3), (500, {}, None), (503, {}, None), (529, {}, None)])
def test_std_drivers_let_a_passing_status_be_tried_again(desk, provider, status, headers, asked_ms):
    task = desk().script(refusal(provider, status, message="try later", **headers), Turn(text="recovered"))

    session = task.ends()

    assert session.result_text == "recovered"
    line = session.trace.one("inference_retry")
    assert (line["reason"], line["provider_status"]) == ("status", status) if status != 409 else ("driver", None)
    assert line.get("retry_after_ms") == asked_ms
    assert session.trace.one("inference")["attempts"] == 2


@pytest.mark.parametrize("status, headers, kind", [
    (400, {}, "invalid_request_error"), (403, {}, "permission_error"), (404, {}, "not_found_error"),
    (413, {}, "request_too_large"), (429, {}, "insufficient_quota"), (500, {"x_should_retry": "false"}, "api_error"),
    (501, {}, "api_error"), (302, {"location": "https://elsewhere.example/"}, "moved")])
def test_std_drivers_say_what_was_refused_for_good(desk, provider, status, headers, kind):
    session = desk().script(refusal(provider, status, kind, "no luck 漢", **headers)).fails()

    assert session.trace.one("task_failed")["cause"] == "driver_error"
    line = session.trace.one("inference")
    assert (line["error_code"], line.get("provider_status")) == ("driver_error", status if status >= 400 else None)
    assert "inference_retry" not in session.trace.types
    place = ", a redirect to https://elsewhere.example/" if status == 302 else ""
    assert session.result_text == f"error: the provider answered {status}{place} ({kind}): no luck 漢"


def test_std_drivers_take_the_providers_advice_to_try_again(desk, provider):
    session = desk().script(refusal(provider, 400, x_should_retry="true"), Turn(text="x")).ends()

    assert session.trace.one("inference_retry")["reason"] == "driver"


def test_std_drivers_leave_a_rejected_key_to_the_runtime(lab, model, provider):
    task = Desk(lab, model, provider, gateway={"endpoint": model.url, "api_key": "${LAB_KEY}"})
    result = task.script(refusal(provider, 401, "authentication_error", f"bad key {KEY}")).run(env={"LAB_KEY": KEY})

    assert "error[E-RUN-027]" in result.failed("E-RUN-040").stderr
    session = lab.session(result)
    assert session.trace.one("task_failed")["cause"] == "credential_rejected"
    assert KEY not in session.result_text + result.stderr + session.trace.path.read_text()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("after", [0, 1, 150])
def test_std_drivers_survive_a_connection_that_breaks(desk, stream, after):
    task = desk(stream=stream)
    task.script(task.reply(Turn(text="lost" * 100), reset_after_bytes=after), Turn(text="found"))

    session = task.ends()

    assert session.result_text == "found"
    assert session.trace.one("inference_retry")["reason"] == "connection"


def test_std_drivers_try_again_when_the_provider_breaks_off_a_stream(desk, provider):
    whole = provider.stream(Turn(text="half of an answer"))
    overloaded = b"data: " + dumped(provider.error("overloaded_error", "Overloaded")) + b"\n\n"
    for broken, told in ((whole[:len(whole) // 2], None), (whole[:200] + b"\n\n" + overloaded, "Overloaded")):
        task = desk(retry={"max_retries": 1})
        task.script(broken, broken)
        session = task.fails()
        assert session.trace.one("inference_retry")["reason"] == "driver"
        assert told is None or told in session.result_text or "no JSON" in session.result_text


def test_std_drivers_end_at_an_error_that_stays(desk, provider):
    session = desk().script(b"data: " + dumped(provider.error("invalid_request_error", "never")) + b"\n\n").fails()

    assert session.result_text == "error: the provider broke off (invalid_request_error): never"
    assert "inference_retry" not in session.trace.types


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("body", [b'data: {"type": "mess\n\n', b'{"a": [1 2], "b" 3}', b'{"truncated": "', b"\xff\xfe{}"])
def test_std_drivers_fail_on_what_is_no_answer(desk, stream, body):
    task = desk(stream=stream, retry={"max_retries": 1})
    bad = Reply(body=body if not stream or body.startswith(b"data") else b"data: " + body + b"\n\n",
                content_type="text/event-stream" if stream else "application/json")
    task.script(bad, bad) if stream or body.startswith(b"{") else task.script(bad)

    session = task.fails()

    assert session.trace.one("task_failed")["cause"] == "driver_error"
    assert "provider" in session.result_text


@pytest.mark.parametrize("body, content_type", [(b"<html>Log in</html>", "text/html"), (b"", "application/json")])
def test_std_drivers_say_that_the_endpoint_is_another_thing(desk, body, content_type):
    session = desk().script(Reply(body=body, content_type=content_type)).fails()

    assert "neither JSON nor a stream of events" in session.result_text


def test_std_drivers_quote_a_page_that_refuses(desk):
    session = desk(retry={"max_retries": 0}).script(
        Reply(status=502, body=b"<html>Bad\xffGateway</html>\nmore", content_type="text/html")).fails()

    assert session.result_text == "error: the provider answered 502: <html>Bad\ufffdGateway</html>"


def test_std_drivers_name_a_provider_that_is_not_there(lab, provider, model):
    session = Desk(lab, model, provider, gateway={"endpoint": "http://127.0.0.1:9", "keyless": True}).fails()

    assert session.result_text.startswith("error: the provider cannot be reached: connection refused (127.0.0.1:")
    assert "inference_retry" not in session.trace.types


def test_std_drivers_say_that_something_else_listens_there(lab, provider, model):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        other = Desk(lab, model, provider, gateway={
            "endpoint": f"http://127.0.0.1:{listener.getsockname()[1]}", "keyless": True})

        def greet():
            with listener.accept()[0] as connection:
                connection.recv(65536)
                connection.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        session = other.fails()
        thread.join()

    assert re.fullmatch(r"error: the provider cannot be reached \(127\.0\.0\.1:\d+: what it answers is no HTTP: is it an "
                        r"https:// address, or another service\?\)", session.result_text), session.result_text
    assert "inference_retry" not in session.trace.types


# --- Odd answers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk_bytes", [None, 4093])
def test_std_drivers_carry_a_tool_input_of_a_megabyte(desk, chunk_bytes):
    content = (UNICODE + "\\\"\n") * 50_000
    assert len(content.encode()) > 1 << 20
    task = desk().script(Turn(calls=[("files", {"action": "write", "path": "big", "content": content})]), Turn(text="done"),
                         chunk_bytes=chunk_bytes)

    assert task.ends().result_text == "done"
    assert (task.project / "work/big").read_text() == content
    assert len(task.model.requests[1].body) > 1 << 20


def test_std_drivers_pass_an_empty_answer_on(desk):
    session = desk().script(Turn()).ends()

    assert session.result_text == ""
    assert session.trace.one("inference")["stop_reason"] == "end_turn"


def test_std_drivers_take_a_stop_reason_they_do_not_know_as_an_end_and_name_it(desk):
    session = desk().script(Turn(text="x", stop="of_tomorrow")).ends()

    assert session.result_text == "x"
    assert session.trace.one("inference")["stop_reason"] == "of_tomorrow"


def test_std_drivers_take_a_word_for_calls_that_are_not_there_for_an_end(desk, provider):
    stop = {"anthropic": "tool_use"}.get(provider.name, "tool_calls")
    session = desk().script(Turn(text="I call", stop=stop)).ends()

    assert session.result_text == "I call"


def test_std_drivers_hand_over_what_was_written_to_the_cap(desk, provider):
    cut = Turn(text="half", calls=[("files", '{"action": "wri')], stop=provider.cut_stop)
    task = desk().script(cut)
    result = task.run().ok()

    assert "W-RUN-001" in result.stderr
    session = task.lab.session(result)
    assert session.result_text.startswith("half\n") and "tool_call" not in session.trace.types


def test_std_drivers_mend_a_stray_comma_in_a_call(desk):
    task = desk().script(Turn(calls=[("files", '{"action": "list",}')]), Turn(text="better"))

    session = task.ends()

    assert session.result_text == "better" and "inference_retry" not in session.trace.types
    assert session.trace.one("tool_call")["status"] == "ok"


def test_std_drivers_fail_when_the_model_refuses(desk, provider):
    session = desk().script(Turn(text="I can", stop=provider.refusal_stop)).fails()

    assert session.trace.one("task_failed")["cause"] == "driver_error"
    assert re.search("refused to answer|content filter", session.result_text)
    assert session.trace.one("inference")["output_tokens_actual"] == 7
    assert "inference_retry" not in session.trace.types


def test_std_drivers_write_no_byte_that_is_no_text(desk):
    task = desk()
    answer = task.provider.stream(Turn(text="a@@b\x00c")).replace(b"@@", b"\xff\xc3")

    assert desk().script(answer).ends().result_text == "a\ufffd\ufffdb\ufffdc"


# --- The Messages API alone --------------------------------------------------------------------------------------------


@pytest.fixture
def messages(lab, model):
    return lambda **how: Desk(lab, model, PROVIDERS[0], **how)


def marked(body):
    """Where the provider is asked to remember."""
    found = [f"system {index}" for index, block in enumerate(body["system"]) if "cache_control" in block]
    found += [f"tool {tool['name']}" for tool in body["tools"] if "cache_control" in tool]
    for at, message in enumerate(body["messages"]):
        found += [f"message {at} {block['type']}" for block in message["content"] if "cache_control" in block]
    return found


def test_std_driver_anthropic_marks_what_is_to_be_remembered(messages):
    call = Turn(calls=[("files", {"action": "list"})])
    task = messages().script(call, call, Turn(text="x"))
    task.ends()

    assert [marked(request.json) for request in task.model.requests] == [
        ["system 0", "message 0 text"], ["system 0", "message 0 text", "message 2 tool_result"],
        ["system 0", "message 2 tool_result", "message 4 tool_result"]]
    assert task.model.requests[0].json["system"][0]["cache_control"] == {"type": "ephemeral"}


@pytest.mark.parametrize("cache, marker", [("1h", {"type": "ephemeral", "ttl": "1h"}), (False, None)])
def test_std_driver_anthropic_remembers_as_long_as_told(messages, cache, marker):
    task = messages(config={"cache": cache}).script(Turn(text="x"))
    task.ends()

    assert task.model.requests[0].json["system"][0].get("cache_control") == marker


@pytest.mark.parametrize("stream", [True, False])
def test_std_driver_anthropic_returns_thinking_signed_and_blocks_it_does_not_know(messages, stream):
    unknown = [{"type": "redacted_thinking", "data": "AAAA"}, {"type": "of_tomorrow", "deep": {"list": [1, "ü", None]}}]
    task = messages(stream=stream).script(
        Turn(thinking="let me see", more=unknown, text="so", calls=[("files", {"action": "list"})]), Turn(text="x"))
    task.ends()

    assert task.model.requests[1].json["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "let me see", "signature": "sig=="}, *unknown, {"type": "text", "text": "so"},
        {"type": "tool_use", "id": "toolu_0", "name": "files", "input": {"action": "list"}}]


def test_std_driver_anthropic_asks_for_thinking(messages):
    thinking = {"type": "enabled", "budget_tokens": 1024}
    task = messages(config={"request": {"thinking": thinking}}).script(Turn(thinking="hm", text="x"))
    session = task.ends()

    assert task.model.requests[0].json["thinking"] == thinking
    assert session.result_text == "x"


# --- Chat Completions alone --------------------------------------------------------------------------------------------


@pytest.fixture
def chat(lab, model):
    return lambda **how: Desk(lab, model, PROVIDERS[1], **how)


@pytest.mark.parametrize("name, config, key", [
    ("gpt-5.1", {}, "max_completion_tokens"), ("llama3", {}, "max_tokens"), ("gpt-oss:20b", {}, "max_tokens"),
    ("my-deployment", {"dialect": "openai"}, "max_completion_tokens"), ("gpt-5.1", {"dialect": "compatible"}, "max_tokens")])
def test_std_driver_openai_speaks_to_its_inventor_and_to_others(chat, name, config, key):
    task = chat(config=config, inference={"model": name, "max_tokens": 77}).script(Turn(text="x"))
    task.ends()

    body = task.model.requests[0].json
    assert body[key] == 77
    assert ("prompt_cache_key" in body) == (key == "max_completion_tokens")


@pytest.mark.parametrize("field_name", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("is_returned", [True, False])
def test_std_driver_openai_returns_reasoning_under_its_name(chat, field_name, is_returned):
    task = chat(config={} if is_returned else {"return_reasoning": False}).script(
        Turn(more=[{field_name: "let me see"}], calls=[("files", {"action": "list"})]), Turn(text="x"))
    session = task.ends()

    said = task.model.requests[1].json["messages"][2]
    assert said.get(field_name) == ("let me see" if is_returned else None)
    assert session.result_text == "x"


@pytest.mark.parametrize("deltas", [
    [{"index": 0, "id": "", "function": {"name": "files", "arguments": '{"action": "list"}'}}],
    [{"function": {"name": "files", "arguments": {"action": "list"}}}],
    [{"index": 0, "id": "a", "function": {"name": "files", "arguments": '{"action": "list"}'}},
     {"index": 0, "id": "b", "function": {"name": "files", "arguments": '{"action": "list"}'}}],
    [{"index": 3, "id": "a", "type": "function", "extra_content": {"google": {"thought_signature": "x"}},
      "function": {"name": "files", "arguments": '{"action"'}}, {"index": 3, "function": {"arguments": ': "list"}'}}]])
def test_std_driver_openai_understands_servers_that_leave_things_out(chat, deltas):
    chunks = [{"choices": [{"delta": {"tool_calls": [delta]}}]} for delta in deltas]
    chunks.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    task = chat()
    task.script(b"".join(b"data:" + dumped(chunk) + b"\n\n" for chunk in chunks), Turn(text="x"))

    session = task.ends()

    count = 2 if deltas[-1].get("id") == "b" else 1
    assert [line["status"] for line in session.trace.all("tool_call")] == ["ok"] * count
    calls = task.model.requests[1].json["messages"][2]["tool_calls"]
    assert len({call["id"] for call in calls}) == count
    assert calls[0].get("extra_content") == deltas[0].get("extra_content")


def test_std_driver_openai_reads_content_in_parts(chat):
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "in parts"}]
    task = chat(stream=False)
    body = dumped({"choices": [{"message": {"role": "assistant", "content": parts}, "finish_reason": "stop"}]})
    session = task.script(Reply(body=body)).ends()

    assert session.result_text == "in parts"
    assert "input_tokens_actual" not in session.trace.one("inference")


def test_std_driver_openai_tells_the_models_own_refusal(chat):
    session = chat().script(Turn(more=[{"refusal": "I will not."}])).fails()

    assert session.result_text == "error: the model refused to answer: I will not."


# --- Another protocol, another place -----------------------------------------------------------------------------------


@pytest.mark.parametrize("body, quoted", [
    (None, ""), (b'{"status":"ok"}', 'JSON, but of another protocol ("{"status":"ok"}")'), (b"[]", 'another protocol ("[]")'),
    (b'{"model":"m","message":{"role":"assistant","content":"hi"},"done":true}\n' * 2, "JSON, but of another protocol"),
    (b"Ollama is running", '("Ollama is running")')])
@pytest.mark.parametrize("stream", [True, False])
def test_std_drivers_ask_one_that_speaks_another_protocol_once_and_name_it(desk, provider, stream, body, quoted):
    task = desk(stream=stream)
    if body is None:  # what another driver's provider says
        other = PROVIDERS[(PROVIDERS.index(provider) + 1) % len(PROVIDERS)]
        body = other.stream(Turn(text="hello"), "\n") if stream else other.whole(Turn(text="hello"))
    result = task.script(Reply(body=body)).run().failed("E-RUN-040")

    assert quoted in result.stderr and "is the endpoint right?" in result.stderr
    assert f"asked {task.model.url}{task.model.requests[0].path}: its base URL is gateway.endpoint" in result.stderr
    assert len(task.model.requests) == 1


@pytest.mark.parametrize("status", [301, 404, 405, 501])
def test_std_drivers_name_the_address_that_has_no_such_page(desk, status):
    task = desk()
    result = task.script(Reply(status=status, body=b"", headers={"location": "/elsewhere"})).run().failed("E-RUN-040")

    assert f"the provider answered {status}" in result.stderr
    assert f"asked {task.model.url}{task.model.requests[0].path}: its base URL" in result.stderr
    assert len(task.model.requests) == 1


def test_std_drivers_name_the_bound_of_a_head_that_is_too_large(desk):
    for asked, lines in enumerate(({"x-large": "a" * 200_000}, {f"x-large-{n}": "a" * 90_000 for n in range(4)}), 1):
        task = desk()
        result = task.script(Reply(body=b"{}", headers=lines)).run().failed("E-RUN-040")

        assert "the head of its answer is over the bound (256 KiB, 100 KiB a line)" in result.stderr
        assert len(task.model.requests) == asked


# --- The components ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["driver-anthropic", "driver-openai", "driver-responses"])
def test_std_drivers_are_small(name):
    assert (BUILD / f"guests/{name}.wasm").stat().st_size <= 120 << 10

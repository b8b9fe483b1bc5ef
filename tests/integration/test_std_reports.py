# SPDX-License-Identifier: Apache-2.0
#
# Answers of real servers that were reported against other tools, as they were: what a driver is handed beyond the
# textbook. A number is that of the report.

import json
import re
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.support import warm_forms
from tests.support.model_server import Reply

FILES = {"name": "std/files", "version": "0.1.0"}
EVENTS = "text/event-stream"
LIST = '{"action":"list"}'


def dumped(value):
    return json.dumps(value).encode()


def events(*chunks, done=True, end="\n\n"):
    lines = [b"data: " + (chunk if isinstance(chunk, bytes) else dumped(chunk)) for chunk in chunks]
    lines += [b"data: [DONE]"] if done else []
    return b"".join(line + end.encode() for line in lines)


def chat(delta=None, finish=None, **more):
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def chat_call(arguments, name="files", index=0, id="c1", **more):
    call = {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}
    return {"tool_calls": [{key: value for key, value in call.items() if value is not None}]}


def message(*blocks, stop="end_turn", tail=True):
    """Events of the Messages form: (block as it starts, pieces of it)."""
    yield {"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 1}}}
    for index, (start, *deltas) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    if stop is not None:
        yield {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 2}}
    if tail:
        yield {"type": "message_stop"}


def tool_use(text, name="files", id="toolu_1"):
    return {"type": "tool_use", "id": id, "name": name, "input": {}}, {"type": "input_json_delta", "partial_json": text}


CHAT_OK = events(chat({"content": "finished"}, "stop"))
MESSAGES_OK = events(*message(({"type": "text", "text": ""}, {"type": "text_delta", "text": "finished"})), done=False)


class Desk:
    """An agent with one driver, and answers given as bytes."""

    def __init__(self, lab, model, driver, retries=6, config=None, tools=(FILES,), **how):
        warm_forms.lend(lab)
        self.lab, self.model, self.driver = lab, model, driver
        how.setdefault("gateway", {"endpoint": model.url, "keyless": True})
        self.project = lab.agent(driver=f"std/driver-{driver}@0.1.0", tools=list(tools), inference={
            "model": how.pop("model_name", "some-model"), "max_tokens": 1000,
            "driver": {"artifact": f"std/driver-{driver}", "config": config or {}},
            "retry": {"max_retries": retries, "initial_delay_ms": 1, "max_delay_ms": 5}}, **how)
        (self.project / "work").mkdir(exist_ok=True)

    @property
    def ok(self):
        return CHAT_OK if self.driver == "openai" else MESSAGES_OK

    def script(self, *replies, content_type=EVENTS, then_ok=True):
        replies = [*replies, *([self.ok] if then_ok else [])]
        self.model.script(*(Reply(body=reply, content_type=content_type if index + 1 < len(replies) or not then_ok else EVENTS)
                            if isinstance(reply, bytes) else reply for index, reply in enumerate(replies)))
        return self

    def run(self, **how):
        result = self.project.run("--task", "go", "--workdir", self.project / "work", **how)
        warm_forms.keep(self.lab)
        return result

    def ends(self, **how):
        return self.lab.session(self.run(**how).ok())

    def fails(self, **how):
        return self.lab.session(self.run(**how).failed("E-RUN-040"))

    def calls(self, at=1):
        """The calls as the request of that turn tells them back: (id, name, input)."""
        body = self.model.requests[at].json
        if self.driver == "openai":
            return [(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
                    for message in body["messages"] for call in message.get("tool_calls", [])]
        return [(block["id"], block["name"], block["input"]) for message in body["messages"]
                for block in message["content"] if block["type"] == "tool_use"]

    def called(self, arguments):
        """One call with this text as its input."""
        if self.driver == "openai":
            return events(chat(chat_call(arguments), "tool_calls"))
        return events(*message(tool_use(arguments), stop="tool_use"), done=False)


@pytest.fixture(params=["openai", "anthropic"])
def desk(request, lab, model):
    return lambda **how: Desk(lab, model, request.param, **how)


@pytest.fixture
def chats(lab, model):
    return lambda **how: Desk(lab, model, "openai", **how)


# --- Inputs of calls ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("written, kept", [
    (r"x\ud99c y", "x\ufffd y"), (r"a\u0000b", "a\ufffdb"), (r"\udc00", "\ufffd"), (r"\ud83d\ude00\ud83d", "\U0001f600\ufffd")])
def test_report_01_half_a_pair_or_nul_in_a_call(desk, written, kept):
    task = desk().script(desk().called('{"action":"write","path":"a.txt","content":"%s"}' % written))

    session = task.ends()

    assert session.result_text == "finished" and len(task.model.requests) == 2
    assert (task.project / "work/a.txt").read_text() == kept
    assert task.calls()[0][2]["content"] == kept


@pytest.mark.parametrize("arguments", ["null", "", "  ", "{}", "[]", '""', "\ufeff{}", "```json\n{}\n```", " { } "])
def test_report_03_arguments_that_say_nothing(desk, arguments):
    task = desk()
    task.script(task.called(arguments).replace(b'"files"', b'"session-status"'))

    session = task.ends()

    assert len(task.model.requests) == 2 and session.trace.one("tool_call")["status"] == "ok"
    assert task.calls()[0][1:] == ("session-status", {})


@pytest.mark.parametrize("arguments", [
    '{"action":"list",}', '{,"action":"list"}', "```json\n" + LIST + "\n```", "{'action': 'list'}", "{action: \"list\"}",
    json.dumps(LIST), "[" + LIST + "]", "{}" + LIST, LIST + LIST, LIST + "}", LIST + "</tool_call>", "/* now */ " + LIST,
    '{"action":"list","recursive":False}'])
def test_report_03_inputs_that_can_be_mended(desk, arguments):
    task = desk()
    task.script(task.called(arguments))

    session = task.ends()

    assert len(task.model.requests) == 2
    assert session.trace.one("tool_call")["status"] == "ok" and task.calls()[0][2]["action"] == "list"


@pytest.mark.parametrize("arguments", [
    '{"action":"list"', '{"action":"li', "not JSON", '["list", "b"]', "5", '{"a":1}{"b":2}', '{"line_count":123456789012345678901}',
    '{"line_count":1e999}', '{"line_count":NaN}', '{"a" "b"}', "{" * 600, LIST + " and more"])
def test_report_03_an_input_that_is_none_goes_back_to_the_model(desk, arguments):
    task = desk()
    task.script(task.called(arguments))

    session = task.ends()

    assert session.result_text == "finished" and len(task.model.requests) == 2
    assert "inference_retry" not in session.trace.types
    line = session.trace.one("tool_call")
    assert line["status"] == "error" and "the input is no JSON object" in line["error"]
    assert task.calls()[0][1:] == ("files", {})
    assert "Nothing ran" in task.model.requests[1].body.decode() and "input_error" not in task.model.requests[1].body.decode()


@pytest.mark.parametrize("number", ["9007199254740993", "-9223372036854775808", "1.5", "2.5e3", "-0", "0.1"])
def test_report_01_numbers_reach_the_tool_as_they_were(desk, number):
    task = desk()
    task.script(task.called('{"action":"list","odd":%s}' % number))

    task.ends()

    assert task.calls()[0][2]["odd"] == json.loads(number)


def test_report_03_a_call_without_a_name_goes_back_to_the_model(desk):
    task = desk()
    task.script(task.called(LIST).replace(b'"files"', b'""'))

    session = task.ends()

    assert len(task.model.requests) == 2 and "names no tool" in session.trace.one("tool_call")["error"]


@pytest.mark.parametrize("written, kept", [(r"x\\ud99c y", "x\ufffd y"), (r"a\\u0000b", "a\ufffdb")])
def test_report_01_an_answer_of_any_driver_with_half_a_pair(lab, written, kept):
    content = '[{"type":"tool_call","id":"c","name":"files","input":{"action":"write","path":"a","content":"%s"}}]' % written
    raw = '{"stop_reason":"tool_call","content":%s}' % content.replace("\\\\", "\\")
    project = lab.agent(steps=[{"raw": raw}, {"text": "went on"}], tools=[FILES])
    (project / "work").mkdir()

    session = lab.session(project.run("--task", "go", "--workdir", project / "work").ok())

    assert session.result_text == "went on" and (project / "work/a").read_text() == kept


# --- Which call a piece belongs to -------------------------------------------------------------------------------------


NAMED = {"function": {"name": "files", "arguments": LIST}}
HALVES = [{"function": {"name": "files", "arguments": '{"action"'}}, {"function": {"arguments": ':"list"}'}}]


@pytest.mark.parametrize("pieces, count", [
    ([{"index": 0, "id": "", **NAMED}, {"index": 0, "id": "", **NAMED}], 2),
    ([NAMED, NAMED], 2),
    ([{"id": "same", "index": 0, **NAMED}, {"id": "same", "index": 1, **NAMED}], 2),
    ([{"id": "same", "index": 0, **NAMED}, {"id": "same", "index": 0, **NAMED}], 2),
    ([{"id": "a", "index": 0, **NAMED}, {"id": "b", "index": 0, **NAMED}], 2),
    ([*HALVES, *HALVES], 2),
    ([{"id": "a", **HALVES[0]}, {"id": "b", **HALVES[0]}, {"id": "a", **HALVES[1]}, {"id": "b", **HALVES[1]}], 2),
    ([{"index": 0, **HALVES[0]}, {"index": 1, **HALVES[0]}, {"index": 0, **HALVES[1]}, {"index": 1, **HALVES[1]}], 2),
    ([{"index": 0, "id": "a", "function": {"name": "files", "arguments": ""}},
      {"index": 0, "id": "a", "function": {"name": "files", "arguments": '{"action":'}},
      {"index": 0, "id": "a", "function": {"name": "files", "arguments": '"list"}'}}], 1),
    ([{"index": 0, "id": "a", "function": {"name": "files", "arguments": '{"action":'}},
      {"index": 0, "id": "b", "function": {"arguments": '"list"}'}}], 1),
    ([{"index": 0, "function": {"name": "fi"}}, {"index": 0, "function": {"name": "les"}},
      {"index": 0, "function": {"arguments": LIST}}], 1),
    ([{"index": 0, "id": None, "function": {"name": "files", "arguments": None}},
      {"index": 0, "id": "late", "function": {"name": None, "arguments": LIST}}], 1),
    ([{"index": "0", "id": "a", "function": {"name": "files", "arguments": {"action": "list"}}}], 1),
    ([{"index": 5, "name": "files", "arguments": LIST}], 1)])
@pytest.mark.parametrize("together", [False, True])
def test_report_04_calls_without_index_or_id(chats, pieces, count, together):
    chunks = [chat({"tool_calls": pieces})] if together else [chat({"tool_calls": [piece]}) for piece in pieces]
    task = chats().script(events(*chunks, chat({}, "tool_calls")))

    session = task.ends()

    assert len(task.model.requests) == 2
    assert [line["status"] for line in session.trace.all("tool_call")] == ["ok"] * count
    assert [call[1:] for call in task.calls()] == [("files", {"action": "list"})] * count
    assert len({call[0] for call in task.calls()}) == count


def test_report_04_a_call_of_the_first_form(chats):
    task = chats().script(events(chat({"function_call": {"name": "files", "arguments": '{"action":'}}),
                                 chat({"function_call": {"arguments": '"list"}'}}, "function_call")))

    assert task.ends().trace.one("tool_call")["status"] == "ok"


def test_report_04_a_character_split_over_two_events(desk):
    text = '{"action":"write","path":"a.txt","content":"é😀"}'.encode()
    task = desk()
    for cut in range(len(text) - 8, len(text) - 2):
        halves = []
        for part in (text[:cut], text[cut:]):
            quoted = json.dumps(part.decode("latin-1"), ensure_ascii=False)[1:-1].encode("latin-1")
            halves.append(quoted)
        if task.driver == "openai":
            bodies = [dumped(chat(chat_call("@", **more))).replace(b"@", half)
                      for half, more in zip(halves, ({}, {"name": None, "id": None}))] + [dumped(chat({}, "tool_calls"))]
        else:
            start, piece = tool_use("@")
            whole = list(message((start, piece, piece), stop="tool_use"))
            bodies = [dumped(event) for event in whole]
            bodies[2], bodies[3] = bodies[2].replace(b"@", halves[0]), bodies[3].replace(b"@", halves[1])
        task.script(events(*bodies, done=False))
        assert task.ends().result_text == "finished"
        assert (task.project / "work/a.txt").read_text() == "é😀"


def test_report_a_pair_cut_between_two_pieces_of_text_is_one_character(desk):
    task = desk()
    if task.driver == "openai":
        body = events(b'{"choices":[{"delta":{"content":"a\\ud83d"}}]}', b'{"choices":[{"delta":{"content":"\\ude00b"}}]}',
                      chat({}, "stop"))
    else:
        body = events(*message(({"type": "text", "text": ""}, {"type": "text_delta", "text": "@"},
                                {"type": "text_delta", "text": "@"})), done=False)
        body = body.replace(b"@", b"a\\ud83d", 1).replace(b"@", b"\\ude00b", 1)

    assert task.script(body, then_ok=False).ends().result_text == "a😀b"


def test_report_14_ids_are_unique_in_a_conversation(desk):
    task = desk()
    same = task.called(LIST)
    task.script(same, same, same.replace(b"c1", b"").replace(b"toolu_1", b""))

    task.ends()

    ids = [call[0] for call in task.calls(3)]
    assert len(set(ids)) == 3 and "" not in ids


def test_report_14_mistral_takes_nine_letters_and_digits(lab, model):
    task = Desk(lab, model, "openai", model_name="mistral-large-latest")
    task.script(events(chat({"tool_calls": [{**NAMED, "id": "call_of_another_server"}]}, "tool_calls"))).ends()

    said = model.requests[1].json["messages"]
    (call,) = said[2]["tool_calls"]
    assert len(call["id"]) == 9 and call["id"].isalnum() and said[3]["tool_call_id"] == call["id"]


# --- The end -----------------------------------------------------------------------------------------------------------


ENDS = ["STOP", "eos_token", "eos", "stop_sequence", "Stop", "end_turn", "completed", "EndTurn", "stop-sequence"]
CUTS = ["MAX_TOKENS", "model_length", "Length", "max_output_tokens", "MaxTokens"]


@pytest.mark.parametrize("word", ENDS)
def test_report_06_other_servers_words_for_the_end(desk, word):
    task = desk()
    task.script(task.ok.replace(b'"stop"', dumped(word)).replace(b'"end_turn"', dumped(word)), then_ok=False)

    session = task.ends()

    assert session.result_text == "finished" and session.trace.one("inference")["stop_reason"] == "end_turn"


@pytest.mark.parametrize("word", CUTS)
def test_report_06_other_servers_words_for_the_cap(desk, word):
    task = desk()
    task.script(task.ok.replace(b'"stop"', dumped(word)).replace(b'"end_turn"', dumped(word)), then_ok=False)

    result = task.run().ok()

    assert "W-RUN-001" in result.stderr and task.lab.session(result).result_text.startswith("finished\n")


@pytest.mark.parametrize("word", ["tool_use", "TOOL_CALLS", "function_call", "stop", "end_turn", "of_tomorrow", "", None])
def test_report_06_calls_are_made_whatever_the_word(desk, word):
    task = desk()
    body = task.called(LIST)
    for known in (b'"tool_calls"}', b'"tool_use"}'):
        body = body.replace(b'"finish_reason": ' + known, b'"finish_reason": ' + dumped(word) + b"}")
        body = body.replace(b'"stop_reason": ' + known, b'"stop_reason": ' + dumped(word) + b"}")
    task.script(body)

    session = task.ends()

    assert len(task.model.requests) == 2 and session.trace.one("tool_call")["status"] == "ok"
    assert word != "of_tomorrow" or session.trace.all("inference")[0]["stop_reason"] == "of_tomorrow"


@pytest.mark.parametrize("word", ["", None])
def test_report_11_no_word_for_the_end_but_a_sign_of_it(desk, word):
    task = desk()
    body = task.ok.replace(b'"stop"', dumped(word)).replace(b'"end_turn"', dumped(word))
    task.script(body, then_ok=False)

    assert task.ends().result_text == "finished" and len(task.model.requests) == 1


def test_report_11_usage_and_the_sentinel(chats):
    task = chats().script(events(chat({"content": "hello"}), {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 3}}),
                          then_ok=False)

    session = task.ends()

    assert session.result_text == "hello" and session.trace.one("inference")["output_tokens_actual"] == 3


def test_report_11_a_whole_answer_without_a_word(chats):
    body = dumped({"choices": [{"message": {"content": "hello"}, "finish_reason": None}]})

    assert chats().script(body, content_type="application/json", then_ok=False).ends().result_text == "hello"


def test_report_11_without_word_and_sign_the_answer_is_not_complete(desk):
    task = desk(retries=1)
    cut = events(chat({"content": "hel"}), done=False) if task.driver == "openai" else events(*message(
        ({"type": "text", "text": "hel"},), stop=None, tail=False), done=False)

    session = task.script(cut, cut, then_ok=False).fails()

    assert "ended before it was complete" in session.result_text and len(task.model.requests) == 2


@pytest.mark.parametrize("word", ["of_tomorrow", "load"])
def test_report_06_an_unknown_end_of_nothing_is_said_once(chats, word):
    session = chats().script(events(chat({}, word)), then_ok=False).fails()

    assert session.result_text == f"error: the provider ended its answer ({word}) before it wrote anything"


@pytest.mark.parametrize("word", ["abort", "error", "network_error", "MALFORMED_FUNCTION_CALL"])
def test_report_06_an_end_that_is_a_failure_is_tried_again(chats, word):
    session = chats().script(events(chat({"content": "hal"}), chat({}, word))).ends()

    assert session.result_text == "finished"
    assert session.trace.one("inference_retry")["error"] == f"the provider broke off its answer ({word})"


def test_report_07_a_connection_lost_in_mid_answer_is_said_so(desk):
    task = desk(retries=0)
    task.script(Reply(body=task.ok, content_type=EVENTS, reset_after_bytes=60), then_ok=False)

    assert task.fails().result_text == "error: the provider's answer broke off: the connection was lost"


def test_report_07_an_error_event_without_json(desk):
    session = desk(retries=0).script(b"event: error\ndata: model crashed\n\n", then_ok=False).fails()

    assert session.result_text == "error: the provider broke off: model crashed"


# --- Errors with a success's status ------------------------------------------------------------------------------------


BROKEN = [{"code": 502, "message": "upstream went away"}, {"code": "429", "message": "slow down"},
          {"type": "overloaded_error", "message": "busy"}, {"code": 408, "message": "late"},
          {"status": "UNAVAILABLE", "message": "busy"}, {"type": "server_error", "code": None, "message": "oops"}]


@pytest.mark.parametrize("error", BROKEN)
@pytest.mark.parametrize("stream", [True, False])
def test_report_07_an_error_that_passes_is_tried_again(desk, error, stream):
    task = desk()
    if stream and task.driver == "openai":
        body = events(chat({"content": "par"}), {"error": error, "choices": [
            {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]}, done=False)
    elif stream:
        body = events(*list(message(({"type": "text", "text": "par"},)))[:2], {"type": "error", "error": error}, done=False)
    else:
        body = dumped({"error": error})

    session = task.script(body, content_type=EVENTS if stream else "application/json").ends()

    assert session.result_text == "finished" and len(task.model.requests) == 2
    assert session.trace.one("inference_retry")["reason"] == "driver"
    assert error["message"] in session.trace.one("inference_retry")["error"]


@pytest.mark.parametrize("body, told", [
    ({"error": {"code": 400, "message": "no such model"}}, "(400): no such model"),
    ([{"error": {"code": 400, "message": "bad key", "status": "INVALID_ARGUMENT"}}], "(400): bad key"),
    ({"object": "error", "message": "too long", "type": "BadRequestError", "code": 400}, "(400): too long"),
    ({"error": "model not found"}, ": model not found"), ({"detail": "Not Found"}, ": Not Found"),
    ({"detail": [{"msg": "field required", "type": "missing"}]}, "(missing): field required"),
    ({"errors": [{"message": "nope", "code": 7003}]}, "(7003): nope"), ({"message": "Forbidden"}, ": Forbidden")])
def test_report_07_an_error_that_stays_is_said_once(desk, body, told):
    session = desk().script(dumped(body), content_type="application/json", then_ok=False).fails()

    assert session.result_text == "error: the provider broke off " .rstrip() + (" " if told[0] == "(" else "") + told
    assert "inference_retry" not in session.trace.types


def test_report_07_an_error_behind_a_complete_answer_takes_nothing_away(desk):
    task = desk()
    task.script(task.ok.replace(b"data: [DONE]\n\n", b"") + events({"error": {"code": 500, "message": "late"}}, b"rubbish",
                                                                    done=False), then_ok=False)

    assert task.ends().result_text == "finished" and len(task.model.requests) == 1


@pytest.mark.parametrize("status, body, told", [
    (502, b"<html>\n<head><title>502 Bad\n Gateway</title></head>", "answered 502: 502 Bad Gateway"),
    (504, b"upstream request timeout", "answered 504: upstream request timeout"),
    (503, b'event: error\ndata: {"error": {"message": "loading"}}\n\n', "answered 503: loading"),
    (429, b'{"error":{"code":"429","message":"quota"}}', "answered 429: quota"),
    (503, b'{"message":"Too many tokens","__type":"ThrottlingException"}', "answered 503 (ThrottlingException): Too many tokens"),
    (500, b"", "answered 500")])
def test_report_07_pages_of_gateways(desk, status, body, told):
    session = desk(retries=0).script(Reply(status=status, body=body, content_type="text/html"), then_ok=False).fails()

    assert session.result_text == f"error: the provider {told}"


@pytest.mark.parametrize("body, told", [
    (b"<!DOCTYPE html><title>Sign in</title>", 'neither JSON nor a stream of events but a web page ("Sign in")'),
    (b"Bad gateway", 'neither JSON nor a stream of events ("Bad gateway")'), (b"event horizon", '("event horizon")'),
    (b"data: not an event\n\n", "neither JSON nor a stream of events"), (b"", "it is empty")])
def test_report_07_pages_with_a_success_are_said_once(desk, body, told):
    session = desk().script(body, content_type="text/html", then_ok=False).fails()

    assert told in session.result_text and session.result_text.endswith("is the endpoint right?")


# --- How it travels ----------------------------------------------------------------------------------------------------


TYPES = ["text/plain; charset=utf-8", "application/json", "Text/Event-Stream", "application/octet-stream", "x"]


@pytest.mark.parametrize("content_type", TYPES)
@pytest.mark.parametrize("chunk_bytes", [None, 1])
def test_report_10_events_under_another_type(desk, content_type, chunk_bytes):
    task = desk()
    task.script(Reply(body=task.ok, content_type=content_type, chunk_bytes=chunk_bytes), then_ok=False)

    assert task.ends().result_text == "finished" and len(task.model.requests) == 1


@pytest.mark.parametrize("how", ["crlf", "cr", "mark", "comments", "empty", "named", "spaces", "padded"])
def test_report_10_events_dressed_otherwise(desk, how):
    task = desk()
    body = {
        "crlf": lambda b: b.replace(b"\n", b"\r\n"), "cr": lambda b: b.replace(b"\n", b"\r"),
        "mark": lambda b: b"\xef\xbb\xbf" + b, "comments": lambda b: b": hello\n\nretry: 5\n\n: OPENROUTER PROCESSING\n" + b,
        "empty": lambda b: b"data:\n\ndata: \n\ndata\n\ndata: {}\n\n" + b,
        "named": lambda b: b"event: ping\ndata: ping\n\nevent: keepalive\ndata: {\"a\": 1}\n\n" + b,
        "spaces": lambda b: b.replace(b"data: ", b"data:"), "padded": lambda b: b"\n\n\n" + b + b"\n\n\n"}[how](task.ok)
    task.script(body, content_type="text/plain", then_ok=False)

    assert task.ends().result_text == "finished"


def test_report_10_a_whole_answer_to_who_asked_for_events(desk):
    task = desk()
    chat_form = {"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]}
    messages_form = {"type": "message", "content": [{"type": "text", "text": "whole"}], "stop_reason": "end_turn"}
    body = dumped(chat_form if task.driver == "openai" else messages_form)
    for form in (body, b"\xef\xbb\xbf" + body, b"\r\n " + body + b"\r\n", events(body, done=False)):
        task.script(form, content_type=EVENTS, then_ok=False)
        assert task.ends().result_text == "whole"


def test_report_10_a_stream_that_a_gateway_made_a_list_or_lines_of(desk):
    task = desk()
    pieces = [line[6:] for line in task.ok.split(b"\n\n") if line.startswith(b"data: {")]
    for form in (b"[" + b",".join(pieces) + b"]", b"\n".join(pieces) + b"\n"):
        task.script(form, content_type="application/json", then_ok=False)
        assert task.ends().result_text == "finished"


# --- What is asked -----------------------------------------------------------------------------------------------------


RECURSIVE = {"type": "object", "definitions": {"node": {"type": "object", "properties": {"kids": {
    "type": "array", "items": {"$ref": "#/definitions/node"}}}}}, "properties": {"tree": {"$ref": "#/definitions/node"}}}


def asked_schema(lab, model, driver, schema, **how):
    from tests.support.fixtures import own_component
    tool = lab.publish("odd", own_component("echo"), "tool", input_schema=schema)
    name, version = tool.split("@")
    task = Desk(lab, model, driver, tools=[{"name": name, "version": version}], **how)
    task.script().ends()
    tools = model.requests[0].json["tools"]
    return next(t.get("input_schema") or t["function"]["parameters"] for t in tools
                if t.get("name") == "odd" or t.get("function", {}).get("name") == "odd")


@pytest.mark.parametrize("driver", ["openai", "anthropic"])
@pytest.mark.parametrize("schema, asked", [
    ({"type": "object"}, {"type": "object", "properties": {}}),
    ({"anyOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "integer"}}}]},
     {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "$defs": {"s": {"type": "string"}},
      "properties": {"a": {"$ref": "#/$defs/s"}, "b": {"type": "array"}, "c": {"type": "array", "items": [{"type": "string"}]}}},
     {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {}},
                                       "c": {"type": "array", "items": {"anyOf": [{"type": "string"}]}}}}),
    ({"type": "object", "properties": {"n": {"type": "number", "minimum": 0, "exclusiveMinimum": True}}},
     {"type": "object", "properties": {"n": {"type": "number", "exclusiveMinimum": 0}}}),
    ({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False},
     {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False})])
def test_report_13_schemas_are_in_the_form_that_providers_take(lab, model, driver, schema, asked):
    assert asked_schema(lab, model, driver, schema) == asked


@pytest.mark.parametrize("driver", ["openai", "anthropic"])
def test_report_13_a_schema_that_refers_to_itself_ends(lab, model, driver):
    asked = json.dumps(asked_schema(lab, model, driver, RECURSIVE))

    assert "$ref" not in asked and "definitions" not in asked and 100 < len(asked) < 2000


def test_report_13_gemini_knows_few_words(lab, model):
    schema = {"type": "object", "additionalProperties": False, "properties": {
        "a": {"type": ["string", "null"], "format": "uri", "default": "x"}, "k": {"const": "one"},
        "o": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}}

    assert asked_schema(lab, model, "openai", schema, model_name="gemini-3-flash") == {"type": "object", "properties": {
        "a": {"type": "string", "nullable": True}, "k": {"enum": ["one"]},
        "o": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}}


def narrowed(name):
    check = 2166136261
    for byte in name.encode():
        check = (check ^ byte) * 16777619 % 2**32
    return f"{re.sub('[^a-zA-Z0-9_.-]', '', name)[:55]}_{check:08x}"


@pytest.mark.parametrize("wrapped", [False, True])
def test_report_13_names_of_inputs_in_the_letters_that_anthropic_takes(lab, model, wrapped):
    """`Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'`: one such tool refuses the whole request."""
    from tests.support.fixtures import own_component
    odd = ["$filter", "page[size]", "größe", "", "x" * 65, "a b"]
    schema = {"type": "object", "properties": {"plain": {"type": "string"}, **{name: {"type": "string"} for name in odd}},
              "required": ["plain", "$filter"]}
    if wrapped:
        schema = {"allOf": [schema]}
    name, version = lab.publish("odd", own_component("echo"), "tool", input_schema=schema).split("@")
    sent = {"plain": "1", narrowed("$filter"): "2", narrowed("größe"): "3", narrowed(""): "4", "new_0123abcd": "5"}
    task = Desk(lab, model, "anthropic", tools=[{"name": name, "version": version}])
    session = task.script(events(*message(tool_use(json.dumps(sent), name="odd"), stop="tool_use"), done=False)).ends()

    asked = next(tool["input_schema"] for tool in model.requests[0].json["tools"] if tool["name"] == "odd")
    assert set(asked["properties"]) == {"plain", *map(narrowed, odd)}
    assert set(asked["required"]) == {"plain", narrowed("$filter")}
    assert all(re.fullmatch("[a-zA-Z0-9_.-]{1,64}", name) for name in asked["properties"])
    given = {"plain": "1", "$filter": "2", "größe": "3", "": "4", "new_0123abcd": "5"}
    said = model.requests[1].json["messages"]
    assert said[1]["content"][0]["input"] == sent
    assert session.trace.one("tool_call")["input"] == given
    assert '"größe":"3"' in said[2]["content"][0]["content"][0]["text"]


def test_report_claude_behind_chat_completions_is_asked_to_remember(lab, model):
    task = Desk(lab, model, "openai", model_name="anthropic/claude-sonnet-5")
    task.script(task.called(LIST)).ends()

    said = model.requests[1].json["messages"]
    marked = [message["role"] for message in said if isinstance(message["content"], list)
              and message["content"][0]["cache_control"] == {"type": "ephemeral"}]
    assert marked == ["system", "user", "tool"]


@pytest.mark.parametrize("usage, counts", [
    ({"prompt_tokens": 20, "completion_tokens": 3, "prompt_cache_hit_tokens": 12}, (8, 12, None)),
    ({"prompt_tokens": 20, "completion_tokens": 3, "cached_tokens": 5}, (15, 5, None)),
    ({"prompt_tokens": 20.0, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 6}},
     (10, 4, 6)), ({"prompt_tokens": 20, "completion_tokens": 3, "prompt_tokens_details": None}, (20, None, None))])
def test_report_counts_of_a_cache_in_the_forms_there_are(chats, usage, counts):
    task = chats().script(events(chat({"content": "x"}, "stop"), {"choices": [], "usage": usage}), then_ok=False)

    line = task.ends().trace.one("inference")

    assert (line["input_tokens_actual"], line.get("cached_tokens"), line.get("cache_write_tokens")) == counts


# --- Reasoning ---------------------------------------------------------------------------------------------------------


def test_report_details_of_reasoning_go_back_as_one(chats):
    def detail(**more):
        return chat({"reasoning_details": [{"type": "reasoning.text", "index": 0, "format": "f", **more}]})
    task = chats().script(events(detail(text="let "), detail(text="me see"), detail(signature="sig=="),
                                 chat(chat_call(LIST), "tool_calls")))
    task.ends()

    assert task.model.requests[1].json["messages"][2]["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "format": "f", "text": "let me see", "signature": "sig=="}]


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_report_thinking_between_tags_is_no_answer(chats, chunk):
    text = "\n<think>\nlet me <b>see</b></think>\n\nThe answer: <think> is a tag"
    pieces = [text[at:at + chunk] for at in range(0, len(text), chunk)]
    task = chats().script(events(*(chat({"content": piece}) for piece in pieces), chat({}, "stop")), then_ok=False)

    assert task.ends().result_text == "The answer: <think> is a tag"


@pytest.mark.parametrize("text", ["<", "<thin", "<thinking>x", "  <p>", "a<think>b</think>"])
def test_report_what_only_looks_like_thinking_is_the_answer(chats, text):
    task = chats().script(events(*(chat({"content": letter}) for letter in text), chat({}, "stop")), then_ok=False)

    assert task.ends().result_text == text


# --- Media -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [
    {"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]},
    {"content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}, {"audio": {"id": "a"}}])
def test_report_an_image_or_a_sound_is_refused_by_name(chats, delta):
    session = chats().script(events(chat(delta, "stop")), then_ok=False).fails()

    assert "murmur takes text and tool calls, no images or other media yet" in session.result_text
    assert ("audio" if "audio" in delta else "image") in session.result_text and "inference_retry" not in session.trace.types


# --- Who vouches for the provider ---------------------------------------------------------------------------------------


@pytest.fixture
def tls_server(tmp_path):
    """A provider whose certificate nobody knows, and the file that does."""
    key, certificate = tmp_path / "k.pem", tmp_path / "c.pem"
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-subj",
                           "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], capture_output=True)
    assert made.returncode == 0, made.stderr

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-length", str(len(CHAT_OK)))
            self.end_headers()
            self.wfile.write(CHAT_OK)

        def log_message(self, *_args):
            pass
    server = HTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.handle_error = lambda *_arguments: None
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"https://localhost:{server.server_address[1]}", certificate
    server.shutdown()
    server.server_close()
    thread.join(5)


def test_report_15_a_certificate_nobody_trusts_is_named_and_can_be_trusted(lab, model, tls_server):
    url, certificate = tls_server
    task = Desk(lab, model, "openai", gateway={"endpoint": url, "keyless": True})

    session = task.fails()

    assert "its certificate is not trusted" in session.result_text and "SSL_CERT_FILE" in session.result_text
    assert "inference_retry" not in session.trace.types
    assert task.ends(env={"SSL_CERT_FILE": str(certificate)}).result_text == "finished"


# --- When to come back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [
    {"retry-after": "0"}, {"retry-after": "-1"}, {"retry-after": "Thu, 01 Jan 1970 00:00:05 GMT"}, {"retry-after": "soon"},
    {"retry-after-ms": "0"}, {"retry-after": "0.1"}, {"retry-after": "0s"}])
def test_report_29_a_provider_that_says_at_once_does_not_shorten_our_delay(lab, model, header):
    task = Desk(lab, model, "openai")
    manifest = task.project / "murmur.yaml"
    manifest.write_text(manifest.read_text().replace("initial_delay_ms: 1\n", "initial_delay_ms: 400\n")
                        .replace("max_delay_ms: 5\n", "max_delay_ms: 5000\n"))
    task.script(Reply(status=429, body=b"{}", headers=header))

    assert 200 <= task.ends().trace.one("inference_retry")["delay_ms"] <= 400

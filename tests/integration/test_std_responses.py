# SPDX-License-Identifier: Apache-2.0
#
# std/driver-responses alone: conversations the provider keeps, reasoning items, and servers that leave things out. What it
# shares with the other drivers is tested beside them in test_std_drivers.py.

import json

import pytest

from tests.integration.test_std_drivers import Desk
from tests.support.model_server import Reply
from tests.support.provider_forms import Responses, Turn, dumped

LIST = ("files", {"action": "list"})


@pytest.fixture
def responses(lab, model):
    return lambda **how: Desk(lab, model, Responses(), **how)


def events(*found):
    return b"".join(b"data: " + dumped(event) + b"\n\n" for event in found)


def completed(*items, **members):
    return {"type": "response.completed", "response": {"id": "resp_1", "object": "response", "status": "completed",
                                                       "output": list(items), "error": None, **members}}


# --- Conversations that the provider keeps -----------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
def test_std_driver_responses_continues_what_the_provider_stored(responses, stream):
    task = responses(stream=stream).script(Turn(thinking="hm", calls=[LIST], members={"store": True}),
                                           Turn(more=[CALL], members={"store": True, "id": "resp_2"}), Turn(text="done"))
    session = task.ends()

    first, second, third = (request.json for request in task.model.requests)
    assert "previous_response_id" not in first and "store" not in first
    assert second["previous_response_id"] == "resp_1" and third["previous_response_id"] == "resp_2"
    assert [item["type"] for item in second["input"]] == ["function_call_output"] == [item["type"] for item in third["input"]]
    assert second["instructions"] == first["instructions"] and session.result_text == "done"


@pytest.mark.parametrize("stored", [{"store": False}, {}])
def test_std_driver_responses_sends_everything_to_who_keeps_nothing(responses, stored):
    task = responses().script(Turn(thinking="hm", calls=[LIST], members=stored), Turn(text="done"))
    task.ends()

    second = task.model.requests[1].json
    assert "previous_response_id" not in second
    assert [item["type"] for item in second["input"]] == ["message", "reasoning", "function_call", "function_call_output"]
    assert second["input"][1]["encrypted_content"] == "AAAA" and second["input"][2]["call_id"] == "call_0"


@pytest.mark.parametrize("config, model_name, is_continued", [
    ({"store": True}, "some-model", True), ({}, "gpt-5-mini", True), ({"store": False}, "gpt-5-mini", False),
    ({}, "gpt-oss:20b", False)])
def test_std_driver_responses_where_the_provider_does_not_say(responses, config, model_name, is_continued):
    task = responses(config=config, inference={"model": model_name, "max_tokens": 500})
    task.script(Turn(calls=[LIST]), Turn(text="done")).ends()

    first, second = (request.json for request in task.model.requests)
    assert ("previous_response_id" in second) == is_continued
    assert first.get("store") == config.get("store")
    assert ("include" in first) == (config.get("store") is False)


def test_std_driver_responses_keeps_reasoning_away_when_told(responses):
    task = responses(config={"return_reasoning": False}).script(Turn(thinking="hm", calls=[LIST]), Turn(text="done"))
    task.ends()

    assert "reasoning" not in [item["type"] for item in task.model.requests[1].json["input"]]


def test_std_driver_responses_keeps_items_it_does_not_know(responses):
    item = {"type": "of_tomorrow", "deep": {"list": [1, "ü", None]}}
    task = responses().script(Turn(more=[item], calls=[LIST]), Turn(text="done"))
    task.ends()

    assert item in task.model.requests[1].json["input"]


# --- Servers that leave things out -------------------------------------------------------------------------------------


CALL = {"type": "function_call", "call_id": "c1", "name": "files", "arguments": '{"action":"list"}'}
TEXT = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}


@pytest.mark.parametrize("found", [
    [completed(CALL)],
    [{"type": "response.output_item.done", "item": CALL}, completed()],
    [{"type": "response.output_item.added", "item": {**CALL, "arguments": ""}},
     {"type": "response.function_call_arguments.delta", "delta": '{"action":'},
     {"type": "response.function_call_arguments.delta", "delta": '"list"}'},
     {"type": "response.output_item.done", "item": CALL}, completed(CALL)],
    [{"type": "response.output_item.added", "output_index": 0, "item": {**CALL, "arguments": ""}},
     {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": CALL["arguments"]}, completed(CALL)],
    [{"type": "response.output_item.added", "output_index": 0, "item": {**CALL, "arguments": None}}, completed(CALL)],
    [{"type": "response.output_item.added", "output_index": 0, "item": {**CALL, "arguments": {"action": "list"}}}, completed()],
    [{"object": "response", "id": "r", "status": "completed", "output": [CALL]}]])
def test_std_driver_responses_reads_a_call_once_however_it_comes(responses, found):
    task = responses()
    task.script(events(*found), Turn(text="done"))

    session = task.ends()

    assert [line["status"] for line in session.trace.all("tool_call")] == ["ok"]
    call, = (item for item in task.model.requests[1].json["input"] if item["type"] == "function_call")
    assert (call["call_id"], json.loads(call["arguments"])) == ("c1", {"action": "list"})


@pytest.mark.parametrize("found", [
    [completed(TEXT)], [{"type": "response.output_item.done", "output_index": 3, "item": TEXT}, completed()],
    [{"type": "response.output_text.delta", "delta": "do"}, {"type": "response.output_text.delta", "delta": "ne"}, completed(TEXT)],
    [{"type": "response.output_text.delta", "output_index": 0, "delta": "done"}, completed(TEXT, status="stop")],
    [{"type": "response.output_text.delta", "output_index": 0, "delta": "done"}, completed(TEXT, status=None)]])
def test_std_driver_responses_reads_a_text_once_however_it_comes(responses, found):
    assert responses().script(events(*found, ) + b"data: [DONE]\n\n").ends().result_text == "done"


@pytest.mark.parametrize("event, is_retried", [
    ({"type": "error", "code": "server_error", "message": "oops"}, True),
    ({"type": "response.failed", "response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "oops"}}}, True),
    ({"type": "response.failed", "response": {"status": "failed", "error": {"code": "invalid_prompt", "message": "oops"}}}, False),
    ({"type": "response.failed", "response": {"status": "failed", "error": None}}, True)])
def test_std_driver_responses_an_answer_that_failed(responses, event, is_retried):
    task = responses(retry={"max_retries": 1})
    task.script(events(event), Turn(text="done"))

    if is_retried:
        assert task.ends().result_text == "done"
    else:
        assert task.fails().result_text == "error: the provider broke off (invalid_prompt): oops"
    assert len(task.model.requests) == 1 + is_retried


def test_std_driver_responses_refusals_and_images(responses):
    refusal = {"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}
    image = {"type": "image_generation_call", "result": "AAAA"}
    for item, told in ((refusal, "the model refused to answer: I will not."), (image, "no images or other media yet")):
        assert told in responses().script(events(completed(item))).fails().result_text


@pytest.mark.parametrize("arguments", ['{"action":"list"', "[1, 2]"])
def test_std_driver_responses_gives_an_input_that_is_none_back(responses, arguments):
    task = responses()
    task.script(events(completed({**CALL, "arguments": arguments})), Turn(text="done"))

    assert "no JSON object" in task.ends().trace.one("tool_call")["error"] and len(task.model.requests) == 2


def test_std_driver_responses_takes_a_whole_answer_for_events(responses):
    body = Responses().whole(Turn(text="whole"))
    task = responses()
    task.script(Reply(body=body, content_type="application/json"))

    assert task.ends().result_text == "whole"

# SPDX-License-Identifier: Apache-2.0
#
# The gateway of a harness as providers differ: the header a key goes in, and the form in which an answer tells what was used.

import json

import pytest

from tests.support.acp_agent import acp_project
from tests.support.agent_provider import AgentProvider

KEY = "sk-real-key"
ASKS = """
new, prompt = begin()
key = os.environ["KEY"]
for times in range({times}):
    asked = urllib.request.Request(os.environ["URL"] + {path!r}.replace("KEY", key), json.dumps({body!r}).encode(),
                                   {{"content-type": "application/json", **{{name: value.replace("KEY", key) for name, value in {headers!r}.items()}}}})
    try:
        urllib.request.urlopen(asked, timeout=30).read()
    except urllib.error.HTTPError as error:
        text("refused " + str(error.code) + " ")
text("done")
stop(prompt)
"""
CHAT = "/v1/chat/completions"
GEMINI = "/v1beta/models/m:streamGenerateContent?alt=sse"
BODY = {"model": "m", "tools": [1], "stream": True, "messages": [], "contents": []}
BEARER = {"authorization": "Bearer KEY"}


def gateway_project(lab, provider, path=CHAT, headers=None, times=1, gateway=None, body=None, inference=None, **manifest):
    script = ASKS.format(times=times, path=path, headers=BEARER if headers is None else headers, body=body or BODY)
    return acp_project(lab, script, config={"gateway_env": {"URL": "url", "KEY": "key"}}, inference=inference or {}, **manifest,
                       gateway={"endpoint": provider.url, "api_key": "${PROVIDER_KEY}", **(gateway or {})})


def asking(lab, provider, path=CHAT, headers=None, times=1, gateway=None, body=None, **inference):
    project = gateway_project(lab, provider, path, headers, times, gateway, body, inference)
    return project.run("--task", "go", env={"PROVIDER_KEY": KEY})


@pytest.mark.parametrize("name, value", [
    ("authorization", "Bearer KEY"), ("x-api-key", "KEY"), ("x-goog-api-key", "KEY"), ("api-key", "KEY")])
def test_harness_the_key_goes_where_the_program_showed_the_placeholder(lab, name, value):
    with AgentProvider({"text": "hi"}) as provider:
        asking(lab, provider, headers={name: value}).ok()
    assert provider.shown == {(name, value.replace("KEY", KEY))}


def test_harness_a_placeholder_in_the_query_leaves_as_a_header(lab):
    with AgentProvider({"text": "hi"}) as provider:
        asking(lab, provider, path=GEMINI + "&key=KEY&x=1", headers={}).ok()
    assert provider.shown == {("x-goog-api-key", KEY)}
    assert provider.requests[0][0] == GEMINI + "&x=1"


@pytest.mark.parametrize("header, value", [("api-key", KEY), ("X-Custom-Key", KEY), ("Authorization", f"Bearer {KEY}")])
def test_harness_the_entry_says_which_header_carries_the_key(lab, header, value):
    with AgentProvider({"text": "hi"}) as provider:
        asking(lab, provider, headers={"x-api-key": "KEY"}, gateway={"header": header}).ok()
        sent = dict(provider.requests[0][1])
    assert sent[header.lower()] == value
    assert not [name for name in ("x-api-key", "api-key", "authorization") if name != header.lower() and name in sent]


@pytest.mark.parametrize("header, why", [("content-type", "not for credentials"), ("x y", "no HTTP field name")])
def test_manifest_a_gateway_header_that_cannot_be_one_is_refused(lab, header, why):
    with AgentProvider() as provider:
        failed = asking(lab, provider, gateway={"header": header})
    assert failed.code == 1 and "error[E-MAN-003]" in failed.stderr and "gateway.header" in failed.stderr and why in failed.stderr


def test_inference_the_entry_says_which_header_carries_the_key(lab):
    with AgentProvider({"text": "hi"}) as provider:
        project = lab.project("agent", {
            "name": "agent", "version": "0.1.0",
            "artifacts": [{"name": "std/driver-openai", "version": "0.1.0", "runtime": "driver",
                           "gateway": {"endpoint": provider.url + "/v1", "api_key": "${PROVIDER_KEY}", "header": "api-key"}}],
            "inference": {"model": "m", "max_tokens": 100, "driver": {"artifact": "std/driver-openai"}}})
        session = lab.session(project.run("--task", "go", env={"PROVIDER_KEY": KEY}).ok())
    assert session.result_text and provider.shown == {("api-key", KEY)}


@pytest.mark.parametrize("headers", [{}, {"x-api-key": "murmur-guessed"}, {"authorization": "Bearer "}])
def test_harness_a_request_without_the_placeholder_is_refused(lab, headers):
    with AgentProvider({"text": "hi"}) as provider:
        result = asking(lab, provider, headers=headers).ok()
        assert provider.requests == []
    assert lab.session(result).result_text == "refused 401 done"


def test_harness_a_program_that_asks_on_with_a_refused_key_is_ended(lab):
    with AgentProvider(*[{"status": 401}] * 5000) as provider:
        project = gateway_project(lab, provider, times=5000, trace={"capture": "replay"})
        failed = project.run("--task", "go", env={"PROVIDER_KEY": KEY})
        assert len(provider.requests) < 1000
    assert failed.code == 1 and failed.stderr.count("error[") == 1 and "(auth)" in failed.stderr and "refuses the key" in failed.stderr
    trace = lab.session(failed).trace
    assert trace.one("harness_failed")["kind"] == "auth" and trace.one("harness_exit")["cause"] == "key_refused"
    assert "same" in project.mur("replay", failed.session_id).ok().stdout


def test_harness_a_key_that_is_taken_in_between_is_no_wrong_one(lab):
    steps = [*[{"status": 401}] * 5, {"text": "hi"}, {"status": 503}] * 3
    with AgentProvider(*steps) as provider:
        result = asking(lab, provider, times=len(steps)).ok()
    assert lab.session(result).result_text == ("refused 401 " * 5 + "refused 503 ") * 3 + "done"


@pytest.mark.parametrize("path, body", [
    (CHAT, {**BODY, "stream_options": {"include_usage": True}}), (CHAT, {**BODY, "stream": False}), ("/v1/responses", BODY),
    ("/v1/messages", BODY), (GEMINI, BODY), ("/v1beta/models/m:generateContent", BODY)],
    ids=["chat-stream", "chat", "responses", "messages", "gemini-stream", "gemini"])
def test_harness_spend_is_counted_from_each_wire_form(lab, path, body):
    with AgentProvider(*[{"text": "hi"}] * 10) as provider:
        failed = asking(lab, provider, path=path, body=body, times=10, max_session_tokens=60)
        assert len(provider.requests) == 3  # of 25 or 28 tokens each
    assert failed.code != 0
    refused = lab.session(failed).trace.one("spend_ceiling_reached")
    assert refused["used"] in (75, 84)


def test_harness_a_stream_that_tells_no_usage_counts_by_its_size(lab):
    body = {**BODY, "messages": [{"role": "user", "content": "x" * 400}]}
    with AgentProvider(*[{"text": "hi"}] * 20) as provider:
        failed = asking(lab, provider, body=body, times=20, max_session_tokens=500)
        assert 3 <= len(provider.requests) < 10
    assert failed.code != 0
    assert json.dumps(lab.session(failed).trace.one("spend_ceiling_reached"))

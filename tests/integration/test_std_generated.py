# SPDX-License-Identifier: Apache-2.0
#
# Two thousand mutated answers, each handed to the bundled driver of its form: natively, under the sanitizers, and a sample
# through the real mur. Every one ends in a way of a closed list; none crashes, hangs, loses a finished answer, takes half an
# answer for a whole one, or costs more requests than were configured.

import json
import re
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support import warm_forms
from tests.support.answer_mutator import TURNS, cases
from tests.support.lab import BUILD, SLOWER
from tests.support.model_server import Reply
from tests.support.provider_forms import PROVIDERS

CASES = cases()
REQUEST = {"model": "some-model", "max_tokens": 1000, "params": {}, "system": "be brief", "tools": [
    {"name": "files", "description": "files", "parameters": {"type": "object"}}],
    "messages": [{"role": "user", "content": [{"type": "text", "text": "go"}]}]}

# How a failure may begin: each is a sentence that names who did what.
SENTENCES = ["the provider ", "the provider: ", "the provider's answer ", "the provider's content filter ",
             "the model refused to answer", "the model answered with content of type "]


def probe(provider):
    path = BUILD / f"tests/native/answer_probe_{provider.name}"
    if not path.exists():
        pytest.skip("the native drivers are not built (jsmn.h is missing)")
    return path


def outcomes(provider, wanted, folder):
    """What the driver made of each case."""
    request = folder / "request.json"
    request.write_text(json.dumps(REQUEST))
    stream = b"".join(f"{case.status} {case.piece} {int(case.kind == 'broken')} {len(case.body)} {case.content_type}\n".encode()
                      + case.body for case in wanted)
    done = subprocess.run([probe(provider), request], input=stream, capture_output=True, timeout=120 * SLOWER,
                          env={"ASAN_OPTIONS": "detect_leaks=0"})
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    lines = done.stdout.decode().splitlines()
    assert len(lines) == len(wanted), (len(lines), done.stderr.decode()[-3000:])
    return [json.loads(line) for line in lines]


def judged(outcome):
    """Its name in the closed list; everything else about an outcome is asserted."""
    answer = outcome["answer"]
    assert outcome["requests"] == 1
    json.dumps(answer, ensure_ascii=False).encode()  # no half of a pair
    assert "\x00" not in json.dumps(answer, ensure_ascii=False)
    for count in answer["usage"].values():
        assert isinstance(count, int) and count >= 0
    if outcome["failed"]:
        assert answer["stop_reason"] == "error" and answer["content"] == []
        assert any(answer["error"].startswith(sentence) for sentence in SENTENCES), answer["error"]
        assert len(answer["error"]) < 900 and not re.search(r"\n\s*\n", answer["error"][:60])
        return "failed, try again" if outcome["transient"] == 1 else "failed"
    assert answer["stop_reason"] in ("end_turn", "tool_call", "max_tokens")
    calls = [block for block in answer["content"] if block["type"] == "tool_call"]
    assert len({call["id"] for call in calls}) == len(calls)
    for call in calls:
        assert call["id"] and call["name"] and isinstance(call["input"], dict)
    for block in answer["content"]:
        if block["type"] in ("text", "thinking"):
            assert isinstance(block[block["type"]], str)
    if answer["stop_reason"] == "tool_call":
        return "called" if calls else "called nothing"
    return "answered" if answer["stop_reason"] == "end_turn" else "cut at the cap"


def essence(outcome):
    answer = outcome["answer"]
    words = {kind: "".join(block[kind] for block in answer["content"] if block["type"] == kind) for kind in ("text", "thinking")}
    return answer["stop_reason"], words, [(call["name"], call["input"]) for call in answer["content"] if call["type"] == "tool_call"]


def expected(turn):
    stop = "tool_call" if turn.calls else "max_tokens" if turn.stop else "end_turn"
    return stop, {"text": turn.text, "thinking": turn.thinking}, [(name, arguments) for name, arguments in turn.calls]


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_generated_answers_end_in_a_closed_list_of_ways(provider, tmp_path):
    wanted = [case for case in CASES if case.provider is provider]
    counted = Counter()
    for case, outcome in zip(wanted, outcomes(provider, wanted, tmp_path)):
        try:
            name = judged(outcome)
            if case.must == "same":
                assert essence(outcome) == expected(TURNS[case.base])
            if case.must == "unfinished":
                assert name in ("failed, try again", "failed")
        except AssertionError as problem:
            raise AssertionError(f"{provider.name}, {case.base}, {case.name}: {outcome}\n{case.body[-600:]!r}") from problem
        counted[name] += 1
    assert counted["answered"] and counted["called"] and counted["failed, try again"] and counted["failed"]


def test_generated_there_are_two_thousand():
    assert len(CASES) == 2000 and len({(case.provider.name, case.body, case.piece, case.content_type, case.status, case.kind)
                                       for case in CASES}) > 1700


SAMPLE = [case for case in CASES if case.kind == "bent"][::11][:45] + [case for case in CASES if case.kind == "broken"][::30][:9]


@pytest.mark.parametrize("part", range(6))
def test_generated_answers_through_the_whole_program(lab, model, part):
    for number, case in enumerate(SAMPLE[part::6]):
        model.requests.clear()
        broken = {"reset_after_bytes": len(case.body)} if case.kind == "broken" else {}
        model.script(repeat=Reply(body=case.body + (b"x" if broken else b""), content_type=case.content_type, status=case.status,
                                  chunk_bytes=case.piece or None, **broken))
        warm_forms.lend(lab)
        driver = case.provider.driver
        project = lab.agent(name=f"agent{number}", driver=driver, tools=[{"name": "std/files", "version": "0.1.0"}],
                            gateway={"endpoint": model.url, "keyless": True}, inference={
                                "max_turns": 2, "driver": {"artifact": driver.split("@")[0]},
                                "retry": {"max_retries": 1, "initial_delay_ms": 1, "max_delay_ms": 2}})
        result = project.run("--task", "go")
        warm_forms.keep(lab)
        session = lab.session(result)
        told = f"{case.provider.name}, {case.base}, {case.name}\n{result}"
        assert result.code in (0, 1), told
        assert session.trace.one("session_end"), told
        status = session.trace.one("task_end")["exit_status" if "exit_status" in session.trace.one("task_end") else "status"]
        assert status in ("ok", "failed", "max_turns_reached"), told
        assert len(model.requests) <= 2 * 2, told
        assert "E-RUN-007" not in result.stderr, told

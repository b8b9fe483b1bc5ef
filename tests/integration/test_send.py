# SPDX-License-Identifier: Apache-2.0
#
# `mur send` and `mur answer`: a task for a running capsule, and what its task waits for, from the command line.

import os
import re
import signal

import pytest

from tests.support.fixtures import own_component
from tests.support.model_server import answer, call, fault
from tests.support.polling import eventually
from tests.support.terminal import Terminal

SLEEPER = {"task_acceptance": "queue", "after_task": "sleep"}


@pytest.fixture
def running(lab, model):
    probe = lab.publish("tool-probe", own_component("tool-probe"), description="probe",
                        input_schema={"type": "object", "properties": {"do": {"type": "string"}}})
    agent = lab.agent("agent", "std/driver-anthropic@0.1.0", tools=[probe],
                      gateway={"endpoint": model.url, "keyless": True}, context={"max_tokens": 100000},
                      inference={"model": "claude-test", "retry": {"initial_delay_ms": 1, "max_delay_ms": 5}},
                      lifecycle={**SLEEPER, "conversation": "threaded"})
    running = agent.start()
    running.wait_for("^session: ")
    return running


def asked(model):
    return model.requests[-1].json["messages"][-1]["content"][-1]["text"]


def test_newcomer_A3_send_prints_the_answer_alone(lab, model, running):
    model.script(answer("four"), answer("five"), answer("six"), answer("seven"))
    result = lab.mur("send", "@1", "2 + 2").ok()
    assert (result.stdout, result.stderr) == ("four\n", "")
    assert "2 + 2" in asked(model)
    assert lab.mur("send", "2 + 3").ok().stdout == "five\n"  # the newest session
    assert lab.mur("send", running.session_id[-8:], "-", stdin="3 + 3").ok().stdout == "six\n"
    assert "3 + 3" in asked(model)
    url = running.url.removeprefix("http://")
    assert lab.mur("send", "--url", url, "3 + 4").ok().stdout == "seven\n"


def test_newcomer_A3_a_session_without_a_text_is_not_what_is_said(lab, model, running):
    for command in ("send", "answer"):
        for session in ("@1", running.session_id):
            told = lab.mur(command, session).failed(exit_status=2).stderr
            assert f"the text to send to {session} is missing" in told
    assert not model.requests


def test_newcomer_A3_send_goes_on_with_a_context(lab, model, running):
    model.script(answer("one"), answer("two"))
    lab.mur("send", "@1", "first", "--context", "talk").ok()
    lab.mur("send", "@1", "second", "--context", "talk").ok()
    texts = str(model.requests[-1].json["messages"])
    assert "first" in texts and "one" in texts and "second" in texts


def test_newcomer_A3_send_at_a_terminal_is_a_live_view(lab, model, running):
    model.script(fault(429), answer("the answer"))
    terminal = Terminal(lab, "send", "@1", "go")
    assert terminal.end() == 0
    assert "the provider is busy (429)" in terminal.text
    assert "  the answer" in terminal.text.splitlines() and "✓ completed" in terminal.text


def test_newcomer_A3_send_that_does_not_wait_names_the_task(lab, model, running):
    model.script(answer("four"))
    task = lab.mur("send", "--detach", "@1", "2 + 2").ok().stdout.strip()
    assert re.fullmatch(r"tsk_[0-9a-f]{32}", task)
    eventually(lambda: "task_end" in lab.session(running.session_id).trace.types)


def test_newcomer_A3_send_of_what_fails_says_why(lab, model, running):
    model.script(fault(400, "model not found: x"))
    result = lab.mur("send", "@1", "go").failed("E-RUN-040")
    assert result.stdout == "" and "model not found: x" in result.stderr
    assert "blank" in lab.mur("send", "@1", "  ").failed("E-RUN-007").stderr
    lab.mur("send").failed(exit_status=2)
    lab.mur("send", "--url", "localhost:1", "x").failed("E-IO-003")
    lab.mur("send", "@9", "x").failed("E-RUN-022")


def test_newcomer_A3_answer_goes_on_with_the_task_that_asks(lab, model, running):
    model.script(call("tool-probe", {"do": "ask which one?"}), answer("the second it is"))
    result = lab.mur("send", "@1", "choose").failed("E-RUN-040")
    assert "the task asks: " in result.stderr
    assert f"mur answer {running.session_id}" in result.stderr
    result = lab.mur("answer", "@1", "the second").ok()
    assert result.stdout == "the second it is\n"
    assert "the second" in str(model.requests[-1].json["messages"][-1])
    assert "no task of " in lab.mur("answer", "@1", "again").failed("E-IO-003").stderr


def test_newcomer_B14_a_watch_of_a_session_that_ends_by_itself_ends_well(lab, model):
    agent = lab.agent("once", "std/driver-anthropic@0.1.0", gateway={"endpoint": model.url, "keyless": True},
                      inference={"model": "claude-test"})
    reply = answer("done", delay_s=0.5)
    model.script(reply)
    running = agent.start("--task", "x")
    running.wait_for("^session: ")
    result = lab.start("watch", "@1").result().ok()
    assert result.stderr.endswith("session ended: ok\n")
    assert "[completed]" in result.stdout
    running.result().ok()


def test_newcomer_B14_a_watch_of_a_killed_session_was_lost(lab, running):
    watch = lab.start("watch", "@1")
    eventually(lambda: "watching" in watch.stderr)
    os.kill(running.pid, signal.SIGKILL)
    watch.result().failed("E-IO-003")


def test_newcomer_B15_a_watch_may_wait_for_its_session(lab, model):
    watch = lab.start("watch", "--wait")
    agent = lab.agent("once", "std/driver-anthropic@0.1.0", gateway={"endpoint": model.url, "keyless": True},
                      inference={"model": "claude-test"})
    model.script(answer("done", delay_s=0.5))
    agent.start("--task", "x").result().ok()
    assert "[completed]" in watch.result().ok().stdout


def test_newcomer_C8_a_watch_of_nothing_says_that_nothing_is_there(lab):
    result = lab.mur("watch", "--url", "localhost:1").failed("E-IO-003")
    assert "nothing to watch at localhost:1: " in result.stderr and "lost" not in result.stderr

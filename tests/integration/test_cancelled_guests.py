# SPDX-License-Identifier: Apache-2.0
#
# A guest that is blocked anywhere is abandoned at once when its task is cancelled, and nothing of it is left: SIGTERM while
# a tool sleeps in the host, while it loops, and while a driver waits for a provider at every stage of an answer.

import threading
import time

import pytest

from tests.support.fixtures import own_component
from tests.support.lab import SLOWER
from tests.support.model_server import Reply, answer
from tests.support.polling import eventually, pid_exists, threads_of

# The promise is 150 ms for the call; the rest is the session's orderly end.
PROMISE_S = 0.15
ENDING_S = 1.0


def end_by_sigterm(running, session):
    """SIGTERM; returns (seconds from the signal to the cancelled task's line, seconds to the exit)."""
    signalled_ms = time.time() * 1000
    started = time.monotonic()
    running.signal()
    running.result(15).failed("E-RUN-040")
    ended = time.monotonic() - started
    canceled = session.trace.one("task_canceled")
    return (canceled["timestamp"] - signalled_ms) / 1000, ended


def assert_ended_cleanly(running, session, times):
    until_cancelled, until_exit = times
    assert until_cancelled < PROMISE_S * SLOWER
    assert until_exit < ENDING_S * SLOWER
    assert session.trace.one("session_end")["exit_status"] == "canceled"
    assert not session.runtime_directory.exists()
    assert not pid_exists(running.pid)


def probing_agent(lab, script, **manifest):
    """An agent whose one tool call runs these probe words."""
    tool = lab.publish("tool-probe", own_component("tool-probe"), input_schema={"type": "object"})
    return lab.agent(tools=[tool], **manifest, steps=[
        {"tool_calls": [{"name": "tool-probe", "input": {"do": script}}]}, {"text": "too late"}])


@pytest.mark.parametrize("words", ["sleep 60000", "spin"])
def test_session_34_a_tool_that_sleeps_or_loops_is_abandoned(lab, words):
    running = probing_agent(lab, words).start("--task", "block")
    session = lab.session(running)
    eventually(lambda: session.trace.all("inference"))
    assert threads_of(running.pid) < 24

    assert_ended_cleanly(running, session, end_by_sigterm(running, session))


def test_session_34_a_tool_in_a_slow_http_body_is_abandoned(lab, model):
    model.script(Reply(body=b"x" * 256, chunk_bytes=64, hold_body=threading.Event()))
    running = probing_agent(lab, f"fetch {model.url}/slow", capabilities={"network": {"allow": [model.url]}}).start(
        "--task", "block")
    session = lab.session(running)
    eventually(lambda: model.requests)

    assert_ended_cleanly(running, session, end_by_sigterm(running, session))
    eventually(lambda: model.open_connections == 0, message="the server's connection is closed")


def held_before_head():
    return {"hold": threading.Event()}


def held_in_body():
    return {"hold_body": threading.Event(), "chunk_bytes": 64}


def dribbling():
    return {"chunk_bytes": 1, "between_chunks_s": 0.2}


@pytest.mark.parametrize("how", [held_before_head, held_in_body, dribbling])
def test_session_34_a_driver_waiting_for_its_provider_is_abandoned(lab, model, how):
    driver = lab.publish("driver-anthropic", own_component("driver-anthropic"), "driver",
                         upstream_auth={"header": "x-api-key", "value": "{key}"})
    project = lab.agent(driver=driver, gateway={"endpoint": model.url, "keyless": True},
                        inference={"retry": {"max_retries": 0}})
    model.script(answer("x" * 4096, **how()))
    running = project.start("--task", "wait")
    session = lab.session(running)
    eventually(lambda: model.requests)

    assert_ended_cleanly(running, session, end_by_sigterm(running, session))
    eventually(lambda: model.open_connections == 0, message="the provider's connection is closed")
    assert session.trace.one("task_canceled")["phase"] == "inference"

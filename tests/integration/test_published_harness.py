# SPDX-License-Identifier: Apache-2.0
#
# The published process drivers with the harness they were made for: what each of its profiles promises holds here. Skipped
# with the reason printed when the package cannot be fetched.

import json
import shutil

import pytest

from tests.integration.test_door import SLEEPER, STREAM, events, message, rpc
from tests.integration.test_harness import map_file, work_of
from tests.support.fixtures import own_component, published_fixtures
from tests.support.polling import eventually, pid_exists

ALLOWED = ["HOME", "FIXTURE_HARNESS_PROFILE", "PATH", "FIXTURE_BRIDGE_CALLS", "FIXTURE_BRIDGE_CALL_TOOL",
           "FIXTURE_BRIDGE_CALL_ARGS"]


def project_of(lab, driver="process-driver", inference=None, capabilities=None, **manifest):
    root = published_fixtures() / "process-driver"
    name, version = lab.publish(driver, root / f"tool/{driver}.wasm", "driver").split("@")
    program = lab.directory / "fixture-cli"
    shutil.copy(root / "fake-harness", program)
    program.chmod(0o755)
    echo, echo_version = lab.publish("echo-tool", own_component("echo"), input_schema={"type": "object"}).split("@")
    return lab.project("agent", {
        "name": "agent", "version": "0.1.0", "artifacts": [
            {"name": name, "version": version, "runtime": "driver"},
            {"name": echo, "version": echo_version, "runtime": "tool"}],
        "inference": {"transport": "process", "command": str(program), "driver": {"artifact": name}, **(inference or {})},
        "capabilities": {"env": {"allow": ALLOWED}, **(capabilities or {})}, **manifest})


def run(lab, profile, *arguments, env=None, **how):
    return project_of(lab, **how).run("--task", "do X", *arguments, env={"FIXTURE_HARNESS_PROFILE": profile, **(env or {})})


def ended(lab, profile, **how):
    return lab.session(run(lab, profile, **how).ok())


@pytest.mark.parametrize("profile, answer", [
    ("happy", "HAPPY-RESULT"), ("thinking", "THINKING-RESULT"), ("stream", "chunk_one chunk_two chunk_three"),
    ("think", "DONE"), ("think-whole", "DONE"), ("chatty", "CHATTY-RESULT"), ("parity", "PARITY-ANSWER"),
    ("tool-progress", "PARITY-ANSWER"), ("tool-progress-large", "PARITY-ANSWER"), ("exit-0", "")])
def test_published_harness_answers(lab, profile, answer):
    session = ended(lab, profile)
    assert session.result_text == answer
    assert session.trace.one("harness_exit")["killed"] is False


def test_published_harness_usage_is_cumulative(lab):
    usage = ended(lab, "usage").trace.one("inference")
    assert [usage[key] for key in ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens",
                                   "thinking_tokens")] == [120, 30, 900, 64, 2]


def test_published_harness_turns_are_told_apart_by_growth(lab):
    lines = ended(lab, "usage-turns").trace.all("inference")
    assert [(line["input_tokens"], line["output_tokens"]) for line in lines] == [(40, 20), (60, 30)]


def test_published_harness_a_reported_zero_is_a_zero(lab):
    line = ended(lab, "usage-zero").trace.one("inference")
    assert (line["input_tokens"], line["output_tokens"]) == (0, 0)


def test_published_harness_without_usage_has_none(lab):
    assert "input_tokens" not in ended(lab, "usage", driver="process-driver-no-usage").trace.one("inference")


def test_published_harness_that_spends_is_killed(lab):
    result = run(lab, "usage-spends", inference={"max_session_tokens": 100})
    session = lab.session(result)
    assert result.status == "spend_ceiling_reached" and not pid_exists(int((work_of(session) / "harness.pid").read_text()))
    types = session.trace.types
    assert types.index("spend_ceiling_reached") < types.index("harness_exit")


@pytest.mark.parametrize("profile", ["tool", "bridge-call"])
def test_published_harness_calls_a_tool(lab, profile):
    session = ended(lab, profile)
    call, = session.trace.all("tool_call")
    assert (call["tool_name"], call["input"], call["status"]) == ("echo-tool", {"msg": "ping-7"}, "ok")
    assert "<untrusted-content source=tool:echo-tool>" in json.loads(session.result_text)["result"]["content"][0]["text"]


@pytest.mark.parametrize("kind", ["auth", "quota", "max-turns", "canceled", "harness-error", "other"])
def test_published_harness_failures(lab, kind):
    result = run(lab, f"fail-{kind}").failed("E-RUN-033")
    assert kind in result.stderr and "the harness says so" in result.stderr
    assert lab.session(result).trace.one("harness_failed")["kind"] == kind


def test_published_harness_exits_with_a_word_on_stderr(lab):
    result = run(lab, "exit-3").failed("E-RUN-033")
    trace = lab.session(result).trace
    assert trace.one("harness_exit")["code"] == 3 and trace.one("harness_failed")["message"] == "boom-on-stderr\n"


def test_published_harness_that_is_silent(lab):
    result = run(lab, "silent", env={"MURMUR_HARNESS_INACTIVITY_SECS": "1"}).failed("E-RUN-035")
    assert not pid_exists(int((work_of(lab.session(result)) / "harness.pid").read_text()))


def test_published_harness_that_only_asks_the_bridge_is_not_silent(lab):
    session = ended(lab, "bridge-busy", env={"MURMUR_HARNESS_INACTIVITY_SECS": "2"})
    assert session.result_text == "BRIDGE-BUSY-RESULT"


def test_published_harness_calls_in_parallel(lab):
    session = ended(lab, "bridge-parallel", capabilities={"shell": {"allow": ["bash"]}})
    assert [line["tool_call_id"] for line in session.trace.all("tool_call")] == ["c2", "c1"]
    assert session.result_text == "PARALLEL-RESULT"


def test_published_harness_sees_its_account(lab):
    session = ended(lab, "account", env={"USER": "ana"})
    notes = [line["text"] for line in session.trace.all("harness_note")]
    assert notes[0] == "account USER=ana LOGNAME=unset"


def test_published_harness_of_another_version_and_of_an_api_key(lab):
    assert "warning[W-RUN-002]" in run(lab, "old-version").ok().stderr
    assert "warning[W-SEC-031]" in run(lab, "api-key").ok().stderr


def test_published_harness_that_lingers_or_takes_too_many_turns(lab):
    linger = ended(lab, "linger")
    assert linger.result_text == "LINGER" and linger.trace.one("harness_exit")["killed"] is True
    turns = lab.session(run(lab, "turns", inference={"max_turns": 2}).failed("E-RUN-033"))
    assert len(turns.trace.all("inference")) == 2
    assert not any(pid_exists(int((work_of(session) / "harness.pid").read_text())) for session in (linger, turns))


@pytest.mark.parametrize("profile", ["memory", "memory-renames"])
def test_published_harness_remembers(lab, profile):
    project = project_of(lab, lifecycle={"conversation": "threaded"})
    env = {"FIXTURE_HARNESS_PROFILE": profile}

    project.run("--task", "one", "--context", "c1", env=env).ok()
    second = lab.session(project.run("--task", "two", "--context", "c1", env=env).ok())
    kept = json.loads(map_file(lab).read_text())["session_id"]
    shutil.rmtree(lab.home / "fake-harness-sessions")
    lost = project.run("--task", "three", "--context", "c1", env=env).failed("E-RUN-036")

    assert second.result_text.split() == ["one", "two"]
    assert kept.startswith("renamed-") == (profile == "memory-renames") and kept in lost.stderr


@pytest.mark.parametrize("profile, driver, method, killed_by", [
    ("interrupt-honours", "process-driver", "stdin-message", None),
    ("interrupt-signal", "process-driver-signal", "signal-int", None),
    ("interrupt-ignores", "process-driver-unsupported", "unsupported", 9)])
def test_published_harness_is_interrupted(lab, profile, driver, method, killed_by):
    running = project_of(lab, driver=driver).start("--task", "x", env={"FIXTURE_HARNESS_PROFILE": profile})
    session = lab.session(running.session_id)
    eventually(lambda: (work_of(session) / "harness.pid").exists() and "harness_session" in session.trace.types, 20)

    running.signal()
    result = running.result(30).failed()

    assert result.status == "canceled" and session.trace.one("harness_interrupt")["method"] == method
    end = session.trace.one("harness_exit")
    assert (end["cause"], end["signal"], end["killed"]) == ("canceled", killed_by, True)
    assert not pid_exists(int((work_of(session) / "harness.pid").read_text()))


def test_published_harness_progress_never_shows_the_input(lab):
    running = project_of(lab, lifecycle=SLEEPER).start(env={"FIXTURE_HARNESS_PROFILE": "tool-progress"})
    running.url
    with rpc(running, "SendStreamingMessage", message("go"), {"A2A-Extensions": STREAM}) as reply:
        seen = [json.dumps(event) for event in events(reply)]
    running.signal()
    running.result(20).ok()
    assert any("tool-call-started" in text for text in seen) and any("tool-call-progress" in text for text in seen)
    assert not any("QXZJ-WKVR-MPLT-YNGH" in text for text in seen)

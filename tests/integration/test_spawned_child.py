# SPDX-License-Identifier: Apache-2.0
#
# The child's side of a launch, with the test as the launcher: lifeline, spawner, identity of the work folder
# (A10 and D9-D11 of spec/spawn.md).

import os
import time

import pytest

from tests.support.fixtures import own_component
from tests.support.hooks import Hook
from tests.support.lab import SLOWER
from tests.support.polling import eventually, tree_of

LIFELINE = "MURMUR_SPAWNER_LIFELINE"
HELLO = [{"text": "hello"}]
SLOW = [{"text": "never said", "delay_ms": 60_000}]
GONE = "the spawner lifeline closed"


def sessions_of(lab):
    return lab.records + lab.runtime_directories


class Lifeline:
    def __init__(self):
        self.read_end, self.write_end = os.pipe()

    def start(self, project, *arguments):
        """`mur run` with the read end; ours goes at once."""
        running = project.start(*arguments, env={LIFELINE: self.read_end}, pass_fds=(self.read_end,))
        os.close(self.read_end)
        return running

    def cut(self):
        os.close(self.write_end)


def refused_lifeline(lab, descriptor):
    running = lab.agent(steps=HELLO).start("--task", "x", env={LIFELINE: descriptor}, pass_fds=(descriptor,))
    result = running.result().failed("E-RUN-020")
    assert sessions_of(lab) == []
    return result.stderr


@pytest.mark.parametrize("value, said", [
    ("three", "not the decimal number"), ("-3", "not the decimal number"), ("3x", "not the decimal number"),
    ("99999999999", "not the decimal number"), ("2", "a standard stream"), ("0", "a standard stream"), ("4097", "not open"),
])
def test_spawn_D10_a_lifeline_that_is_none_refuses_the_launch(lab, value, said):
    result = lab.agent(steps=HELLO).run("--task", "x", env={LIFELINE: value}).failed("E-RUN-020")
    assert LIFELINE in result.stderr and said in result.stderr
    assert sessions_of(lab) == []


@pytest.mark.parametrize("path, flags, said", [
    ("/dev/null", os.O_RDONLY, "a character device"), ("/dev", os.O_RDONLY, "a directory"), (None, os.O_RDONLY, "a regular file"),
])
def test_spawn_D10_another_kind_of_file_is_named(lab, path, flags, said):
    if path is None:
        path = lab.directory / "file"
        path.touch()
    descriptor = os.open(path, flags)
    try:
        assert said in refused_lifeline(lab, descriptor)
    finally:
        os.close(descriptor)


def test_spawn_D10_the_write_end_is_no_lifeline_and_blanks_are_none(lab):
    reader, writer = os.pipe()
    try:
        assert "open for writing" in refused_lifeline(lab, writer)
    finally:
        os.close(reader)
        os.close(writer)
    lab.agent(steps=HELLO).run("--task", "x", env={LIFELINE: "  "}).ok()


def test_spawn_D9_a_spawner_that_says_too_little_refuses_the_launch(lab):
    project = lab.agent(steps=HELLO)
    ids = '"session_id":"s","context_id":"c","delegation_id":"d"'
    for value in ("{}", "garbage", '{"url":"",' + ids + "}", '{"session_id":"s","context_id":"c"}', "[]"):
        result = project.run("--task", "x", env={"MURMUR_SPAWNER": value}).failed("E-RUN-020")
        assert "MURMUR_SPAWNER" in result.stderr and value not in result.stderr
    assert sessions_of(lab) == []
    project.run("--task", "x", env={"MURMUR_SPAWNER": " \n"}).ok()


def test_spawn_D11_another_folder_than_the_launchers_is_refused_unwritten(lab):
    work = lab.directory / "work"
    work.mkdir()
    other = lab.directory.stat()
    project = lab.agent(steps=HELLO)
    for identity in (f"{other.st_dev}:{other.st_ino}", "", "1", "1:x", "1:2:3"):
        project.run("--task", "x", "--workdir", work, "--workdir-identity", identity).failed("E-RUN-051")
    assert tree_of(work) == []
    own = work.stat()
    project.run("--task", "x", "--workdir", work, "--workdir-identity", f"{own.st_dev}:{own.st_ino}").ok()


def test_spawn_A10_an_agent_in_a_task_is_canceled_when_its_launcher_is_gone(lab):
    lifeline = Lifeline()
    running = lifeline.start(lab.agent(steps=SLOW), "--task", "x")
    running.wait_for(r"^session: ")
    trace = lab.session(running.session_id).records / "trace.jsonl"
    eventually(lambda: '"task_start"' in trace.read_text(), 20 * SLOWER, "the task runs")

    lifeline.cut()
    result = running.result()

    assert result.code == 1 and result.status == "canceled"
    assert result.stderr.count(GONE) == 1 and "asked to stop" not in result.stderr
    types = lab.session(result).trace.types
    assert types[-1] == "session_end"
    assert types.count("spawner_ended") == 1 and types.index("spawner_ended") < types.index("task_canceled")
    assert set(lab.session(result).trace.one("spawner_ended")).isdisjoint({"spawned_by", "delegation_id"})
    assert lab.runtime_directories == []


def test_spawn_A10_an_idle_agent_ends_well_when_its_launcher_is_gone(lab):
    lifeline = Lifeline()
    project = lab.agent(steps=HELLO, lifecycle={"task_acceptance": "queue", "after_task": "sleep"})
    running = lifeline.start(project)
    running.wait_for(r"^session: ")
    lifeline.cut()
    result = running.result().ok()
    assert result.status == "ok" and GONE in result.stderr


def test_spawn_A10_a_lifeline_cut_before_the_launch_is_seen(lab):
    lifeline = Lifeline()
    lifeline.cut()
    result = lifeline.start(lab.agent(steps=SLOW), "--task", "x").result()
    # Whether the task had begun by then decides between ok and canceled.
    assert (result.code, result.status) in ((0, "ok"), (1, "canceled")), str(result)
    assert GONE in result.stderr
    assert lab.session(result).trace.types.count("spawner_ended") == 1


def test_spawn_A10_a_script_exits_143_at_once(lab):
    lifeline = Lifeline()
    project = lab.script_capsule(own_component("capsule-spin"))
    running = lifeline.start(project)
    eventually(lambda: lab.runtime_directories, 20 * SLOWER, "the session began")
    begun = time.monotonic()
    lifeline.cut()
    result = running.result()
    assert result.code == 143 and GONE in result.stderr
    assert "session: " not in result.stdout
    assert time.monotonic() - begun < 10 * SLOWER
    assert lab.runtime_directories == []


def test_spawn_A10_what_comes_through_a_lifeline_is_nobodys_business(lab):
    lifeline = Lifeline()
    os.write(lifeline.write_end, b"noise")
    lifeline.start(lab.agent(steps=HELLO), "--task", "x").result().ok()
    lifeline.cut()


def test_spawn_A10_a_wind_down_that_hangs_is_over_after_twenty_seconds(lab):
    hook = Hook(lab, on={"on-session-end": {"spin": True}}, capabilities={"limits": {"deadline_seconds": 300}})
    lifeline = Lifeline()
    running = lifeline.start(lab.agent(steps=HELLO, tools=[hook.entry],
                                       lifecycle={"task_acceptance": "queue", "after_task": "sleep"}))
    running.wait_for(r"^session: ")
    begun = time.monotonic()
    lifeline.cut()
    result = running.result(60)
    assert result.code == 143
    assert 19 < time.monotonic() - begun < 25 * SLOWER
    assert lab.runtime_directories == [] and not list((lab.murmur_home / "running").glob("*.json"))

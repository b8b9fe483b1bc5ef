# SPDX-License-Identifier: Apache-2.0
"""The package as its users have it: against an installed wheel, with real sessions."""

import asyncio
import gc
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import murmur
from murmur import Kind

README = Path(__file__).resolve().parent.parent / "README.md"
HELPER = """\
name: helper
version: "0.1.0"
artifacts:
  - {name: std/driver-scripted, version: "0.1.0", runtime: driver}
inference:
  model: scripted
  driver:
    artifact: std/driver-scripted
    config: {steps: [{text: "You said: {{task}}"}]}
"""
QUEUE = {"after_task": "sleep", "task_acceptance": "queue"}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helper").mkdir()
    (tmp_path / "helper/murmur.yaml").write_text(HELPER)
    yield tmp_path
    left = list((tmp_path / "home/.murmur/running").glob("*.json"))
    assert not left, "a session outlived its block"


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_async_events_end_with_the_session():
    async def main():
        async with murmur.launch("helper", task="hi") as session:
            return [event async for event in session]

    events = asyncio.run(main())
    assert [e.text for e in events if e.kind == Kind.ANSWER] == ["You said: hi"]
    assert events[-1].kind == Kind.ENDED and events[-1].text == "ok"
    ended = next(e for e in events if e.kind == Kind.TASK_ENDED)
    assert ended.state == "TASK_STATE_COMPLETED" and ended.data["statusUpdate"]["taskId"] == ended.task


def test_sync_asks_and_totals():
    with murmur.launch("helper", **QUEUE) as session:
        assert session.ask("one") == "You said: one" and session.ask("two") == "You said: two"
        assert session.is_running and session.status is None
        assert session.end()
        assert session.status == "ok" and session.totals["turns"] == 2
    with pytest.raises(ValueError):
        session.send("late")


def test_async_asks_at_once_in_two_sessions():
    async def one(word):
        async with murmur.launch("helper", **QUEUE) as session:
            return await session.ask(word)

    async def main():
        return await asyncio.gather(one("a"), one("b"), one("c"))

    assert asyncio.run(main()) == ["You said: a", "You said: b", "You said: c"]


def test_cancelling_a_launch_leaves_nothing():
    async def main():
        async def launching():
            async with murmur.launch("helper", **QUEUE):
                await asyncio.sleep(60)

        task = asyncio.create_task(launching())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.get_running_loop().shutdown_default_executor()

    asyncio.run(main())


def test_errors_say_what_mur_says():
    with pytest.raises(murmur.MurmurError) as told:
        with murmur.launch("nowhere"):
            pass
    assert told.value.code == "E-IO-001" and "mur new agent" in told.value.hint
    with pytest.raises(TypeError, match="colour"):
        murmur.launch("helper", colour="red")


def test_manifest_from_memory_and_explain(home):
    (home / "elsewhere").mkdir()
    with murmur.launch(home / "elsewhere", manifest=HELPER, workdir=None, task="x") as session:
        assert Kind.ANSWER in [event.kind for event in session]
    assert murmur.explain("helper")["declared_containment"] == "advisory"


def test_a_task_that_fails():
    broken = HELPER.replace("inference:", "inference:\n  max_turns: 1").replace(
        '{text: "You said: {{task}}"}', '{tool_calls: [{name: nothing, input: {}}]}, {text: late}')
    with murmur.launch("helper", manifest=broken, **QUEUE) as session, pytest.raises(murmur.TaskFailed) as failed:
        session.ask("x")
    assert failed.value.state == "TASK_STATE_FAILED"


def test_the_door_needs_no_library():
    with murmur.launch("helper", **QUEUE) as session:
        door = murmur.Door(session.address, session.token)
        assert door.card()["name"] == "helper"
        task = door.send("hello")
        assert task["artifacts"][0]["parts"][0]["text"] == "You said: hello"
        assert door.task(task["id"])["status"]["state"] == "TASK_STATE_COMPLETED"
        with pytest.raises(murmur.DoorError):
            door.cancel(task["id"])
        seen = []
        for event in door.watch():
            seen.append(event)
            if event.get("statusUpdate", {}).get("status", {}).get("state") == "TASK_STATE_COMPLETED":
                break
        assert seen


def test_readme_examples_run_as_they_stand(home):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert len(blocks) == 2
    said = [subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=True, timeout=60).stdout
            for block in blocks]
    assert said == ["You said: What is here?\n", "You said: What is here?\nYou said: And now?\n"]


def test_launches_leave_no_descriptor_no_thread_and_no_memory():
    rounds = int(os.environ.get("MURMUR_LAUNCHES", "40"))

    def some(count):
        for _ in range(count):
            with murmur.launch("helper", task="hi") as session:
                assert Kind.ENDED in [event.kind for event in session]
        gc.collect()

    some(10)
    before = descriptors(), threading.active_count(), resident()
    some(rounds)
    assert descriptors() == before[0] and threading.active_count() == before[1]
    assert resident() - before[2] < 2 << 20


def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_forgotten_session_ends_with_its_last_name():
    session = murmur.launch("helper", **QUEUE).__enter__()
    assert session.is_running
    del session
    gc.collect()


def test_the_program_is_in_the_package():
    done = subprocess.run([sys.executable, "-m", "murmur", "--version"], capture_output=True, text=True, check=True)
    assert murmur.version() in done.stdout

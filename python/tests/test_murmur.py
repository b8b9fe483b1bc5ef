# SPDX-License-Identifier: Apache-2.0
"""The package as its users have it: against an installed wheel, with real sessions."""

import asyncio
import gc
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
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
        while [thread for thread in threading.enumerate() if thread.name == "murmur"]:
            await asyncio.sleep(0.01)

    asyncio.run(main())


def test_errors_say_what_mur_says():
    with pytest.raises(murmur.MurmurError) as told:
        with murmur.launch("nowhere"):
            pass
    assert told.value.code == "E-IO-001" and "murmur.yaml" in told.value.hint
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


def test_the_door_is_asked_and_streams(home):
    with murmur.launch("helper", manifest=ASKS, **QUEUE) as session:
        door = murmur.Door(f"http://{session.address}/", session.token)
        asked = list(door.stream("go"))
        task = asked[-1]["statusUpdate"]["taskId"]
        assert asked[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert "done" in str(list(door.stream("yes", task=task)))
        assert door.task(task)["status"]["state"] == "TASK_STATE_COMPLETED"
        again = door.send("go")
        assert door.cancel(again["id"])["status"]["state"] == "TASK_STATE_CANCELED"
        with pytest.raises(murmur.DoorError, match="not found"):
            list(door.stream("x", task="tsk_none"))
    with pytest.raises(OSError):
        door.card()


class Elsewhere(BaseHTTPRequestHandler):
    """A server that is no door: it sends its callers on, and says pages."""

    def do_GET(self):
        self.send_response(302 if self.path == "/" else 200)
        self.send_header("location", "/stolen")
        self.end_headers()
        self.wfile.write(b"<html>")
        self.server.seen.append((self.path, self.headers.get("authorization")))

    do_POST = do_GET

    def log_message(self, *_):
        pass


def test_the_door_client_takes_its_token_nowhere_else(monkeypatch):
    with HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        server.seen = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"127.0.0.1:{server.server_port}"
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        with pytest.raises(murmur.DoorError) as refused:
            murmur.Door(here, "a token").send("x")
        assert refused.value.code == 302 and server.seen == [("/", "Bearer a token")]
        with pytest.raises(murmur.DoorError, match="no door"):
            murmur.Door(here).card()
        server.shutdown()


def test_what_a_person_sees_of_a_session():
    launch = murmur.launch("helper", **QUEUE)
    assert ".start()" in repr(launch)
    with launch as session:
        assert session.id in repr(session) and "running" in repr(session) and repr(launch) == "<Launch under way>"
    assert repr(session) == f"<Session {session.id} ok>"


def test_readme_examples_run_as_they_stand(home):
    (home / "careful").mkdir()
    (home / "careful/murmur.yaml").write_text(ASKS)
    blocks = re.findall(r"```python\n(.*?)```(?:\n```text\n(.*?)```)?", README.read_text(), re.S)

    def run(block):
        return subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=True, timeout=120).stdout

    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(run, [block for block, _ in blocks]))
    assert said[:2] == ["You said: What is here?\n", "You said: What is here?\nYou said: And now?\n"]
    for (_, expected), text in zip(blocks, said):
        assert text == expected or not expected
    assert any(text.endswith("\ndone\n") for text in said)


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
    session = murmur.launch("helper", **QUEUE).start()
    assert session.is_running
    del session
    gc.collect()
    eventually(lambda: not list(Path(os.environ["HOME"], ".murmur/running").glob("*.json")))


def test_the_program_is_in_the_package():
    done = subprocess.run([sys.executable, "-m", "murmur", "--version"], capture_output=True, text=True, check=True)
    assert murmur.version() in done.stdout


# --- one session, many at once ---

ASKS = """\
name: asks
version: "0.1.0"
artifacts:
  - {name: std/driver-scripted, version: "0.1.0", runtime: driver}
  - {name: std/files, version: "0.1.0"}
approvals: {tools: [files]}
inference:
  model: scripted
  driver:
    artifact: std/driver-scripted
    config: {steps: [{tool_calls: [{name: files, input: {action: write, path: made, content: x}}]}, {text: "done"}]}
"""


def test_asks_of_many_threads_and_an_iterator_do_not_take_each_others_events():
    with murmur.launch("helper", manifest=HELPER + "lifecycle: {queue_depth: 16}\n", **QUEUE) as session:
        seen = []
        reader = threading.Thread(target=lambda: seen.extend(event.text for event in session if event.kind == Kind.ANSWER))
        reader.start()
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(session.ask, "abcdefgh")) == [f"You said: {word}" for word in "abcdefgh"]
        session.end()
        reader.join()
    assert sorted(seen) == [f"You said: {word}" for word in "abcdefgh"]


def test_async_asks_of_one_session_at_once():
    async def main():
        async with murmur.launch("helper", manifest=HELPER + "lifecycle: {queue_depth: 16}\n", **QUEUE) as session:
            answers = await asyncio.gather(*(session.ask(word) for word in "abcdefgh"))
            kinds = [event.kind async for event in session.stream("x")]
            assert await session.next(timeout=0.05) is None
        return answers, kinds

    answers, kinds = asyncio.run(main())
    assert answers == [f"You said: {word}" for word in "abcdefgh"]
    assert kinds[-2:] == [Kind.ANSWER, Kind.TASK_ENDED] and Kind.TEXT in kinds


def test_several_event_loops_each_with_its_session():
    async def one():
        async with murmur.launch("helper", **QUEUE) as session:
            return await session.ask("x")

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda _: asyncio.run(one()), range(3))) == ["You said: x"] * 3

    async def launch_only():
        return await murmur.launch("helper", **QUEUE)

    session = asyncio.run(launch_only())
    with pytest.raises(RuntimeError, match="another event loop"):
        asyncio.run(session.ask("x"))
    asyncio.run(session.close())


# --- cancelling, leaving ---


def state_of(session, task):
    return murmur.Door(session.address, session.token).task(task)["status"]["state"]


def eventually(fact):
    until = time.monotonic() + 30
    while not fact():
        assert time.monotonic() < until
        time.sleep(0.01)


SLOW = HELPER.replace('{text: "You said: {{task}}"}', '{text: late, delay_ms: 60000}')


def test_a_cancelled_ask_cancels_its_task():
    async def main():
        async with murmur.launch("helper", manifest=SLOW, **QUEUE) as session:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await session.ask("x")
            ended = await session.next(timeout=30)
            while ended.kind != Kind.TASK_ENDED:
                ended = await session.next(timeout=30)
            return ended.state

    assert asyncio.run(main()) == "TASK_STATE_CANCELED"


def test_a_stream_that_is_left_cancels_its_task():
    with murmur.launch("helper", manifest=SLOW, **QUEUE) as session:
        for event in session.stream("x"):
            task = event.task
            break
        eventually(lambda: state_of(session, task) == "TASK_STATE_CANCELED")


@pytest.mark.parametrize("where", ["launch", "ask", "iterate"])
def test_ctrl_c_ends_what_waits(home, where):
    (home / "slow.yaml").write_text(SLOW)
    waits = {"launch": "murmur.launch('slow.yaml', program=sys.argv[1]).start()",
             "ask": "murmur.launch('slow.yaml', after_task='sleep', task_acceptance='queue').start().ask('x')",
             "iterate": "list(murmur.launch('slow.yaml', after_task='sleep', task_acceptance='queue').start())"}
    never = home / "never"
    never.write_text("#!/bin/sh\nexec cat <&3 >/dev/null\n")  # never ready, and ends with its lifeline
    never.chmod(0o755)
    program = ("import murmur, sys, threading, os, signal, time\n"
               "threading.Thread(target=lambda: (time.sleep(1), os.kill(os.getpid(), signal.SIGINT)), daemon=True).start()\n"
               f"{waits[where]}\n")
    done = subprocess.run([sys.executable, "-c", program, never], capture_output=True, text=True, timeout=60)
    assert "KeyboardInterrupt" in done.stderr and done.returncode != 0, done.stderr
    eventually(lambda: not list((home / "home/.murmur/running").glob("*.json")))


def test_closed_by_another_thread_while_one_waits():
    session = murmur.launch("helper", **QUEUE).start()
    waiting = threading.Thread(target=lambda: list(session))
    waiting.start()
    session.close()
    waiting.join(30)
    assert not waiting.is_alive() and not session.is_running
    assert session.status == "ok" and session.totals["turns"] == 0 and session.error is None
    with pytest.raises(ValueError, match="closed"):
        session.next()


def test_a_launch_is_one_session_at_a_time():
    launch = murmur.launch("helper", **QUEUE)
    with launch as session:
        with pytest.raises(RuntimeError, match="under way"):
            launch.__enter__()
        assert session.ask("x") == "You said: x"
    with launch as again:
        assert again.id != session.id


# --- what a task asks ---


def test_approvals_are_answered_by_a_function(home):
    (home / "asks").mkdir()
    asked = []
    with murmur.launch("asks", manifest=ASKS, **QUEUE) as session:
        assert session.ask("x", answer=lambda event: asked.append(event.text) or "yes") == "done"
        assert len(asked) == 1 and "made" in asked[0] and Path(session.workdir, "made").exists()
        with pytest.raises(murmur.TaskFailed) as failed:
            session.ask("x")
        assert failed.value.state == "TASK_STATE_INPUT_REQUIRED"
        eventually(lambda: state_of(session, failed.value.task) == "TASK_STATE_CANCELED")


def test_approvals_are_answered_by_a_coroutine(home):
    (home / "asks").mkdir()

    async def answer(event):
        await asyncio.sleep(0)
        return "no"

    async def main():
        async with murmur.launch("asks", manifest=ASKS, **QUEUE) as session:
            return await session.ask("x", answer=answer), session.workdir

    said, workdir = asyncio.run(main())
    assert said == "done" and not Path(workdir, "made").exists()


# --- errors, keys ---


def test_errors_go_through_pickle():
    for error in (murmur.MurmurError("E-IO-001", "a", "b"), murmur.TaskFailed("TASK_STATE_FAILED", "said", "tsk_1"), murmur.DoorError(404, "x")):
        same = pickle.loads(pickle.dumps(error))
        assert str(same) == str(error) and vars(same) == vars(error)


def test_why_a_session_ended():
    with murmur.launch("helper", manifest=HELPER, task="x", max_session_tokens=1) as session:
        list(session)
    assert session.status == "spend_ceiling_reached" and session.error.code.startswith("E-") and session.result is None
    with murmur.launch("helper", task="x") as session:
        list(session)
    assert session.status == "ok" and session.error is None and session.result == "You said: x" and session.totals["turns"] == 1


def test_a_function_for_keys_that_raises_is_told(capsys):
    keyed = HELPER.replace('runtime: driver}', 'runtime: driver, gateway: {endpoint: "http://127.0.0.1:9", api_key: "${A_KEY}"}}').replace(
        "std/driver-scripted", "std/driver-openai").replace('config: {steps: [{text: "You said: {{task}}"}]}', "config: {}")

    def keys(name):
        raise LookupError(f"the vault has no {name}")

    with pytest.raises((murmur.MurmurError, murmur.TaskFailed)) as told:
        with murmur.launch("helper", manifest=keyed, credentials=keys, **QUEUE) as session:
            session.ask("x")
    assert "the vault has no A_KEY" in capsys.readouterr().err + str(told.value.__cause__)


@pytest.mark.parametrize("wrong, says", [({"deadline": -1}, "deadline"), ({"port": 70000}, "port"), ({"model": "a\0b"}, "null"),
                                         ({"modle": "x"}, "modle"), ({"max_session_tokens": 1 << 64}, "max_session_tokens"),
                                         ({"package": "a/b"}, "named")])
def test_options_that_cannot_be(wrong, says):
    with pytest.raises((ValueError, TypeError), match=says):
        murmur.launch("helper", **wrong)


def test_a_deadline_below_a_second_is_one():
    with murmur.launch("helper", manifest=SLOW, task="x", deadline=0.2) as session:
        list(session)
    assert session.status == "deadline_reached" and session.error.code == "E-RUN-053"


# --- processes ---


def in_a_process(word):
    with murmur.launch("helper", **QUEUE) as session:
        return session.ask(word)


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_in_processes_of_a_pool(how):
    with murmur.launch("helper", **QUEUE) as session:
        with ProcessPoolExecutor(2, multiprocessing.get_context(how)) as pool:
            assert list(pool.map(in_a_process, "ab")) == ["You said: a", "You said: b"]
        assert session.ask("mine") == "You said: mine"


def test_a_fork_has_no_session_and_keeps_none_alive(home):
    program = ("import murmur, os, sys, time\n"
               "session = murmur.launch('helper', after_task='sleep', task_acceptance='queue').start()\n"
               "pid = os.fork()\n"
               "if pid == 0:\n    assert not session.is_running\n    os.close(1)\n    os.close(2)\n    time.sleep(120)\n    os._exit(0)\n"
               "print(session.ask('x'), pid, flush=True)\nos.kill(os.getpid(), 9)\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("You said: x ") and done.returncode == -9, done.stderr
    copy = int(done.stdout.split()[-1])
    try:
        eventually(lambda: not list((home / "home/.murmur/running").glob("*.json")))
        os.kill(copy, 0)
    finally:
        os.kill(copy, 9)


def test_a_program_that_ends_without_closing_is_quiet(home):
    program = "import murmur\nsession = murmur.launch('helper', after_task='sleep', task_acceptance='queue').start()\nprint(session.ask('x'))\n"
    done = subprocess.run([sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("You said: x\n", "", 0)


def test_the_door_client_works_where_there_is_no_library():
    with murmur.launch("helper", **QUEUE) as session:
        program = f"from murmur import Door\nprint(Door({session.address!r}).send('x')['artifacts'][0]['parts'][0]['text'])\n"
        done = subprocess.run([sys.executable, "-c", program + "import murmur\nmurmur.launch('helper')"], capture_output=True, text=True,
                              timeout=60, env={**os.environ, "MURMUR_LIBRARY": "/no/such/library"})
    assert done.stdout == "You said: x\n" and "libmurmur cannot be loaded" in done.stderr and "hint:" in done.stderr


def test_it_runs_with_no_mur_on_path():
    with murmur.launch("helper", env={"PATH": "/nowhere"}, **QUEUE) as session:
        assert session.ask("x") == "You said: x"

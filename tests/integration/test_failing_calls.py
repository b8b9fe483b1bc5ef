# SPDX-License-Identifier: Apache-2.0
#
# What a host refuses at any moment - a process, a thread, a descriptor, a socket, a wait - and a kill at any moment: a session
# ends with an error that says why or has lost nothing, and nothing of it stays. The moments are drawn from a seed.

import json
import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.support.commands import command_agent
from tests.support.door_client import SLEEPER, Door, at_once, message
from tests.support.lab import IS_SANITIZED, SESSION_ID, SLOWER, Trace
from tests.support.polling import eventually

SOURCE = Path(__file__).parents[1] / "support/failing_calls.c"
SEED = 20260722


def preload(lab):
    if IS_SANITIZED:
        pytest.skip("a sanitizer's runtime must be the first library")
    path = lab.directory / "failing_calls.so"
    if not path.exists():
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", path, SOURCE, "-ldl"], check=True)
    return path


def control_groups(mark):
    return [os.path.join(base, name) for base, names, _files in os.walk("/sys/fs/cgroup") for name in names if mark in name]


def looks_sound(lab, session_id):
    """Nothing of the session stays once another command has run, and what it wrote can be read."""
    lab.mur("ps").ok()
    eventually(lambda: not list(lab.processes()), 20 * SLOWER, "no process is left")
    if lab.runtime_directories:  # of one that still held its lock, dying, when the command looked
        lab.mur("ps").ok()
    assert not lab.runtime_directories, lab.runtime_directories
    running = lab.murmur_home / "running"
    assert not running.is_dir() or not [name for name in os.listdir(running) if name.endswith(".json")]
    assert not list(lab.temporary.iterdir())
    if not session_id:
        return None
    eventually(lambda: not control_groups(session_id), 10 * SLOWER, "no control group is left")
    records = [path for path in lab.records if path.name == session_id]
    path = records[0] / "trace.jsonl" if records else None
    if not path or not path.exists():
        return None
    trace = Trace(path)  # every line that has its end is JSON
    if trace.events:
        lab.mur("trace", "show", path).ok()
    return trace


def two_turns(lab, **more):
    return command_agent(lab, ["echo said | tr a-z A-Z"], shell=["bash", "tr"], text="the answer", **more)


def run_is_told_or_whole(lab, project, env, wrap=()):
    """One run: it has its answer, or says why it has not. Never a signal, never a wait for ever."""
    argv = [*wrap, lab.mur_path, "run", "--task", "go", "--workdir", project / "work"]
    done = subprocess.run([str(word) for word in argv], cwd=project.directory, env=lab.environment(env), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60 * SLOWER)
    shown = f"{env} {wrap}\n{done.stdout}\n{done.stderr}"
    # A library that cannot go on without a thread aborts, which is told in a line of ours.
    assert done.returncode in (0, 1) or (done.returncode == -signal.SIGABRT and "spawn worker thread" in done.stderr), shown
    found = SESSION_ID.search(done.stdout)
    trace = looks_sound(lab, found and found.group(0))
    if done.returncode:
        assert "error[" in done.stderr or "murmur: aborted" in done.stderr, shown
    else:
        assert lab.session(found.group(0)).result_text == "the answer", shown
        assert trace.types[-1] == "session_end" and trace.one("task_end")["exit_status"] == "ok", shown
    return done.returncode


@pytest.mark.parametrize("kind, most", [("processes", 20), ("programs", 4), ("waits", 10), ("sockets", 14), ("descriptors", 20)])
def test_reliability_any_call_the_host_refuses_is_told_or_has_lost_nothing(lab, kind, most):
    project = two_turns(lab)
    library, report = preload(lab), lab.directory / "calls"
    env = {"LD_PRELOAD": library, "FAIL_KIND": kind, "FAIL_REPORT": report}
    assert run_is_told_or_whole(lab, project, {**env, "FAIL_AT": 0}) == 0
    count = int(report.read_text())
    assert count >= 1
    moments = sorted(random.Random(SEED).sample(range(1, count + 1), min(count, most)))
    codes = [run_is_told_or_whole(lab, project, {**env, "FAIL_AT": moment}) for moment in moments]
    if kind == "waits":
        assert not any(codes), f"a wait that is interrupted goes on: {dict(zip(moments, codes, strict=True))}"


def test_reliability_few_descriptors_are_told_or_enough(lab):
    """RLIMIT_NOFILE, the whole session's: from what does not even load a manifest to what is plenty."""
    project = two_turns(lab)
    draw = random.Random(SEED)
    few = sorted({3, 4, 8, *draw.sample(range(9, 64), 5), *draw.sample(range(64, 400), 5)})
    codes = {n: run_is_told_or_whole(lab, project, {}, ["prlimit", f"--nofile={n}:{n}"]) for n in [*few, 1024] if n > 5}
    assert codes[1024] == 0 and 1 in codes.values(), codes


def test_reliability_little_memory_is_told_or_enough(lab):
    """RLIMIT_DATA: memory ends in the kernel's words, for every library of the program alike."""
    if IS_SANITIZED:
        pytest.skip("a sanitizer's runtime wants all there is")
    project = two_turns(lab)
    project.run("--task", "go", "--workdir", project / "work").ok()  # what is compiled once is compiled
    draw = random.Random(SEED)
    codes = {}
    for kib in sorted(draw.sample(range(1 << 10, 24 << 10), 8)) + [1 << 22]:
        done = subprocess.run(["prlimit", f"--data={kib << 10}:{kib << 10}", lab.mur_path, "run", "--task", "go", "--workdir", project / "work"],
                              cwd=project.directory, env=lab.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60 * SLOWER)
        found = SESSION_ID.search(done.stdout)
        looks_sound(lab, found and found.group(0))
        codes[kib] = done.returncode
        assert done.returncode in (0, 1, -signal.SIGABRT), (kib, done.stderr)
        assert done.returncode == 0 or "memory" in done.stderr or "error[" in done.stderr, (kib, done.returncode, done.stderr)
    assert codes[1 << 22] == 0 and set(codes.values()) != {0}, codes


def test_reliability_a_kill_at_any_moment_leaves_nothing(lab):
    """Runs with a command, each killed at a moment of its own; after another command nothing of it is there."""
    project = two_turns(lab)
    started = time.monotonic()
    for _ in range(3):
        project.run("--task", "go", "--workdir", project / "work").ok()
    whole = (time.monotonic() - started) / 3
    draw = random.Random(SEED)
    seen = []
    for moment in sorted(draw.uniform(0, 1.1) for _ in range(12 if IS_SANITIZED else 40)):
        running = project.start("--task", "go", "--workdir", project / "work")
        threading.Event().wait(moment * whole)
        os.killpg(running.pid, signal.SIGKILL)
        found = SESSION_ID.search(running.result().stdout)
        seen.append(looks_sound(lab, found and found.group(0)))
    assert any(seen), "some had begun"
    # Files that never got their name are gone within an hour and a minute.
    plant = lab.murmur_home / "running/.left.json.01a22e0a-d9dc-70b3-9e78-b23984ec9dbd.tmp"
    plant.touch()
    for path in lab.murmur_home.rglob(".*.tmp"):
        os.utime(path, (time.time() - 4000,) * 2)
    try:
        os.removexattr(lab.murmur_home, "user.murmur.swept")
    except OSError:
        pass  # a file system without attributes: each command sweeps
    lab.mur("ps").ok()
    assert not [path for path in lab.murmur_home.rglob(".*.tmp") if path.parent.name != "compiled"]
    assert project.run("--task", "go", "--workdir", project / "work").ok().status == "ok"


def test_reliability_no_kill_loses_a_task_that_was_accepted(lab):
    project = lab.agent(steps=[{"text": "late", "delay_ms": 60_000}], lifecycle={**SLEEPER, "queue_depth": 64})
    draw = random.Random(SEED)
    for _ in range(3 if IS_SANITIZED else 8):
        running = project.start()
        door, ids = Door(running), []

        def ask():
            while len(ids) < 40:
                try:
                    ids.append(door.result("SendMessage", at_once(message()))["task"]["id"])
                except Exception:
                    return
        asking = threading.Thread(target=ask)
        asking.start()
        eventually(lambda: ids, 20 * SLOWER, "one is accepted")
        threading.Event().wait(draw.uniform(0, 0.05))
        session_id = running.session_id
        running.kill()
        asking.join(20 * SLOWER)
        trace = looks_sound(lab, session_id)
        received = [event["task_id"] for event in trace.all("a2a_task_received")]
        assert ids and set(ids) <= set(received), (ids, received)

# SPDX-License-Identifier: Apache-2.0
#
# What a capsule that waits for work costs: memory, wakes, and the first answer after a long wait.

import time
from pathlib import Path

import pytest

from tests.support.door_client import SLEEPER, Door
from tests.support.lab import IS_SANITIZED
from tests.support.model_server import answer
from tests.support.polling import eventually

PSS_MIB = 12.0  # a quarter of what the published release takes


def pss_mib(pid):
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no Pss line")


def wakes(pid):
    """How often any thread of the process was put to sleep by itself, so far."""
    total = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        for line in status.read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches:"):
                total += int(line.split()[1])
    return total


@pytest.fixture
def idle(lab, model):
    """A capsule whose first task, asked of a provider over HTTP, has ended."""
    model.script(repeat=answer("done"))
    project = lab.agent(driver="std/driver-anthropic@0.1.0", gateway={"endpoint": model.url, "api_key": "sk-x"},
                        lifecycle=SLEEPER)
    running = project.start()
    door = Door(running)
    assert door.send()["status"]["state"] == "TASK_STATE_COMPLETED"
    yield running, door
    running.signal()
    running.result(20).ok()


def is_asleep(pid, for_s):
    before, count = wakes(pid), len(list(Path(f"/proc/{pid}/task").iterdir()))
    time.sleep(for_s)  # what is measured is that nothing happens
    return (wakes(pid), len(list(Path(f"/proc/{pid}/task").iterdir()))) == (before, count)


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer's own memory is not ours")
def test_door_an_idle_capsule_gives_its_memory_back(idle):
    running, door = idle
    eventually(lambda: pss_mib(running.pid) <= PSS_MIB, 15, "idle memory within its bound")
    assert door.send()["status"]["state"] == "TASK_STATE_COMPLETED"
    eventually(lambda: pss_mib(running.pid) <= PSS_MIB, 15, "the same after another task")


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer has threads of its own")
def test_door_an_idle_capsule_sleeps_without_waking(idle):
    running, door = idle
    eventually(lambda: is_asleep(running.pid, 1), 30, "the capsule at rest")
    before = wakes(running.pid)
    time.sleep(10)  # once a minute is allowed: in ten seconds at most one wake
    assert wakes(running.pid) - before <= 1
    assert door.get().status == 200 and door.send()["status"]["state"] == "TASK_STATE_COMPLETED"

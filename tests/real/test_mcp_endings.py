# SPDX-License-Identifier: Apache-2.0
#
# Two hundred endings of sessions whose server of tools forks, leaves its process group and ignores signals: nothing of it is left.
#
# Sessions end in waves, several at once, each in a way of its own; how long the slowest took is printed.

import os
import signal
import time

import pytest

from tests.support.mcp_servers import add, called, tool, using
from tests.support.polling import eventually, marked_processes

ENDINGS, WAVE, FORKS = 200, 8, 3
SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "int": signal.SIGINT}


def begun(project, mark):
    """A session that hangs in a call, its server and what that forked running."""
    running = project.start("--task", "go")
    return running, lambda: len(marked_processes(mark)) >= FORKS * WAVE


def gone_after_s(mark):
    """Seconds until no process of the mark is left."""
    began = time.monotonic()
    eventually(lambda: not marked_processes(mark), within_s=30, message="what the server forked is gone")
    return time.monotonic() - began


@pytest.mark.parametrize("how", ["kill", "term", "int", "end"])
def test_mcp_41_two_hundred_endings_leave_nothing(lab, how):
    mark = f"41{os.getpid() % 100000:05}{'ktie'.index(how[0])}".encode()
    add(lab, tools=[tool("hang"), tool("echo")], forks=FORKS, mark=mark.decode(), outlives=True).ok()
    project = using(lab, [called("scripted_echo" if how == "end" else "scripted_hang")])
    slowest = 0.0
    for _ in range(ENDINGS // 4 // WAVE + 1):
        sessions = [begun(project, mark) for _ in range(WAVE)]
        if how == "end":
            assert all(running.result(timeout=120).code == 0 for running, _ in sessions)
        else:
            eventually(sessions[0][1], within_s=120, message="every server runs")
            for running, _ in sessions:
                running.signal(SIGNALS[how])
        if how == "kill":
            slowest = max(slowest, gone_after_s(mark))
        for running, _ in sessions:
            running.result(timeout=60)
        slowest = max(slowest, gone_after_s(mark))
    print(f"{how}: {(ENDINGS // 4 // WAVE + 1) * WAVE} endings, the last process was gone {slowest:.2f} s after")

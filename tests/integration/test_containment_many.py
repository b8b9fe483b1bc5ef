# SPDX-License-Identifier: Apache-2.0
#
# Commands in numbers: what many of them leave behind, what their output costs, and a runtime that is killed at any moment.

import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.commands import call, command_agent
from tests.support.hosts import needs
from tests.support.lab import IS_SANITIZED, SLOWER
from tests.support.polling import eventually, marked_processes

MIB = 1 << 20
# A full run makes 50; a short one is honest enough to find what is always wrong.
KILLS = int(os.environ.get("MURMUR_KILL_ROUNDS", 12))


def cgroups_of(session_id):
    return list(Path("/sys/fs/cgroup").glob(f"**/murmur-{session_id}*"))


def open_things(pid, folder):
    mounts = Path(f"/proc/{pid}/mountinfo").read_text().count(str(folder))
    return len(os.listdir(f"/proc/{pid}/fd")), mounts, len(os.listdir(f"/proc/{pid}/task"))


@pytest.mark.parametrize("containment", ["scoped", "sealed"])
def test_containment_a_thousand_commands_leave_nothing(lab, containment):
    needs(lab, containment)
    count = 1000 if SLOWER == 1 else 100
    batch = 50
    calls = [{"tool_calls": [{"name": "true", "id": f"c{n}-{i}", "input": {"command": "x"}} for i in range(batch)]}
             for n in range(count // batch)]
    gate = [{"tool_calls": [{"name": "bash", "input": {"command": f"until [ -e {name} ]; do sleep 0.02 # {os.getpid()}\ndone"}}]}
            for name in ("first", "last")]
    project = command_agent(lab, [gate[0], *calls, gate[1]], shell=("bash", "sleep", "true"),
                            capabilities={"containment": containment}, inference={"max_turns": 100})
    running = project.start("--task", "go", "--workdir", project / "work")

    def waits_for(name):
        return marked_processes(f"[ -e {name} ]; do sleep 0.02 # {os.getpid()}".encode())
    eventually(lambda: waits_for("first"), 30 * SLOWER)
    before = open_things(running.pid, lab.directory)
    project.write("work/first", "")
    eventually(lambda: waits_for("last"), 120 * SLOWER)

    def is_as_before():
        after = open_things(running.pid, lab.directory)
        children = subprocess.run(["ps", "--ppid", str(running.pid), "-o", "pid=,stat=,args="], capture_output=True, text=True)
        zombies = [line for line in children.stdout.splitlines() if line.split()[1][0] == "Z"]
        assert after[0] <= before[0] + 2 and after[1] == before[1] and after[2] <= before[2] + 1, (before, after)
        assert zombies == []
        return True
    eventually(is_as_before, 10 * SLOWER, "nothing is left of them")
    session_id = running.session_id
    project.write("work/last", "")
    running.result(60).ok()

    assert len(lab.session(session_id).trace.all("shell")) == count + 2
    eventually(lambda: not cgroups_of(session_id), 5)


# --- output --------------------------------------------------------------------------------------------------------------


def memory_of(pid, field):
    """VmHWM or VmRSS, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE).group(1)) * 1024


@pytest.mark.skipif(IS_SANITIZED, reason="the sanitizer's own memory is not the runtime's")
def test_containment_background_output_lies_on_disk_and_not_in_the_runtime(lab):
    """64 commands in the background write 1 MiB each, all at once; each ending comes back as a task of the same conversation."""
    count = 64
    line = "7" * 1023
    writes = "l=7; for ((i = 0; i < 10; i++)); do l=$l$l; done; for ((i = 0; i < 1024; i++)); do echo ${l:1}; done"
    batch = {"tool_calls": [{"name": "bash", "id": f"c{n}", "input": {"command": writes}} for n in range(count)]}
    project = command_agent(lab, [call("bash", "echo first"), {"text": "settled"}, batch, *[{"text": "noted"}] * (count + 4)],
                            capabilities={"resources": {"cgroup_pids_max": 256}}, inference={"max_turns": 400},
                            lifecycle={"shell_grace_secs": 0, "task_acceptance": "queue", "after_task": "sleep", "queue_depth": 4,
                                       "conversation": "threaded"})
    running = project.start("--task", "go", "--workdir", project / "work", "--context", "many")
    session = lab.session(running)
    eventually(lambda: len(session.trace.all("shell_completed")) + len(session.trace.all("shell")) == 1 and
               session.trace.all("task_end"), 30 * SLOWER)
    eventually(lambda: len(session.trace.all("shell_detached")) >= count, 60 * SLOWER)
    before = memory_of(running.pid, "VmRSS")
    eventually(lambda: len(session.trace.all("shell_completed")) >= count, 120 * SLOWER)
    grown = memory_of(running.pid, "VmHWM") - before
    running.signal().result(60)

    completed = [event for event in session.trace.all("shell_completed") if event["output_bytes"] > MIB]
    assert len(completed) == count
    for event in completed:
        log = Path(event["output_path"])
        assert log.stat().st_size == event["output_bytes"] and event["exit_code"] == 0
        assert log.read_text().count(f"{line}\n") == 1024
    assert grown <= 8 * MIB, f"{grown / MIB:.1f} MiB"


def test_containment_output_is_bounded_like_a_file(lab):
    """A command that never stops writing fills neither memory nor disk."""
    forever = "while :; do echo 0123456789012345678901234567890123456789; done"
    project = command_agent(lab, [forever], capabilities={"resources": {"max_file_size_bytes": MIB}}, lifecycle={
        "shell_grace_secs": 0, "task_acceptance": "queue", "after_task": "sleep"})
    running = project.start("--task", "go", "--workdir", project / "work")
    session = lab.session(running)
    eventually(lambda: session.trace.all("task_end"), 30 * SLOWER)
    log, = (session.records / "logs").glob("wrk_*.log")
    eventually(lambda: log.stat().st_size >= MIB, 60 * SLOWER)
    running.signal().result(60)
    assert log.stat().st_size <= MIB + 200
    assert "max_file_size_bytes was not kept" in log.read_text()[-200:]


# --- killed at any moment -------------------------------------------------------------------------------------------------


def groups_of(pid):
    """Control groups of sessions of a runtime; those that go away meanwhile are passed over."""
    return [path for path, _, _ in os.walk("/sys/fs/cgroup") if "/murmur-ses_" in path and f"-{pid}-" in os.path.basename(path)]


@pytest.mark.parametrize("containment", ["scoped", "sealed"])
def test_containment_a_runtime_killed_at_any_moment_leaves_nothing(lab, containment):
    needs(lab, containment)
    if not shutil.which("setsid", path="/usr/bin:/bin"):
        pytest.skip("no setsid")
    seconds = f"8{os.getpid()}"
    seed = random.randrange(1 << 30)
    draw = random.Random(seed)
    mark = f"sleep\0{seconds}\0".encode()
    lines = [f"setsid sleep {seconds} & sleep {seconds} & (setsid sleep {seconds} & ) ; echo {n}" for n in range(40)]
    steps = [{"tool_calls": [{"name": "bash", "id": f"c{n}", "input": {"command": line}}]} for n, line in enumerate(lines)]
    project = command_agent(lab, steps, shell=("bash", "setsid", "sleep"), capabilities={"containment": containment},
                            inference={"max_turns": 100}, lifecycle={"shell_grace_secs": 0})
    mounts = Path("/proc/self/mountinfo").read_text()
    for number in range(KILLS):
        running = project.start("--task", "go", "--workdir", project / "work")
        time.sleep(draw.uniform(0.0, 0.5 * SLOWER))  # the moment is the point
        running.signal(signal.SIGKILL).process.wait(10)
        at = time.monotonic()
        what = f"kill {number} of seed {seed}"
        eventually(lambda: not marked_processes(mark), 2 * SLOWER, f"{what}: processes gone")
        ids = re.findall(r"ses_[0-9a-f]{32}", running.stdout)
        eventually(lambda: not groups_of(running.pid), max(0.1, at + 2 * SLOWER - time.monotonic()),
                   f"{what}: control groups gone")
        for session_id in ids:
            path = lab.session(session_id).records / "trace.jsonl"
            assert not path.exists() or lab.mur("trace", "show", path).code in (0, 1)
    assert Path("/proc/self/mountinfo").read_text() == mounts

# SPDX-License-Identifier: Apache-2.0
#
# Traces of any size are read in bounded memory: each command that reads one gets less memory than the file is long.

import json
import re
import shutil
import subprocess

import pytest

from tests.support.lab import IS_SANITIZED

STATUS = {"tool_calls": [{"name": "session-status", "input": {}}]}
TRACE_BYTES = 48_000_000
DATA_BYTES = 40_000_000  # heap, anonymous memory and stacks of the process


def swelled(path, size):
    """Repeats the tasks of a finished trace until it has that size, each time with ids of its own. How many there are."""
    first, *body, last = path.read_text().splitlines()
    text = "\n".join(body) + "\n"
    ids = sorted(set(re.findall(r"(?:evt|task|ctx)_[0-9a-f]{22}(?=[0-9a-f]{10})", text)))
    assert ids
    rounds = size // len(text) + 1
    parts = re.split(r"((?:evt|task|ctx)_[0-9a-f]{22}[0-9a-f]{10})", text)
    with path.open("w") as out:
        out.write(first + "\n")
        for number in range(rounds):
            out.write("".join(part[:-8] + f"{number:05x}" + part[-3:] if i % 2 else part for i, part in enumerate(parts)))
        out.write(last + "\n")
    return rounds


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer's shadow has no such bound")
@pytest.mark.skipif(not shutil.which("prlimit"), reason="no prlimit (util-linux) here")
def test_reliability_F5_a_big_trace_is_read_in_bounded_memory(lab):
    project = lab.agent(steps=[STATUS, STATUS, {"text": "the answer"}])
    session = lab.session(project.run("--task", "go").ok())
    path = session.records / "trace.jsonl"
    tasks = swelled(path, TRACE_BYTES)
    size = path.stat().st_size
    assert size > TRACE_BYTES

    def told(*arguments):
        done = subprocess.run(["prlimit", f"--data={DATA_BYTES}", lab.mur_path, *arguments], cwd=project.directory,
                              env=lab.environment(), capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, (arguments, done.stderr[-2000:])
        return done.stdout

    shown = told("trace", "show", session.id)
    assert f"task {tasks}  " in shown and "Turns" in shown
    assert told("trace", "list").count("ses_") >= 1
    assert told("trace", "steps", session.id).count("session_status") == 2 * tasks
    assert "identical" in told("trace", "diff", session.id, session.id)
    assert f"Tasks: {tasks}" in told("trace", "report")
    told("trace", "export", session.id, "--otlp", str(lab.directory / "spans.json"))
    spans = json.loads((lab.directory / "spans.json").read_text())
    names = [span["name"] for span in spans["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    assert sum(name.startswith("invoke_agent") for name in names) == tasks

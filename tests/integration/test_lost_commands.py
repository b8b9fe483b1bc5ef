# SPDX-License-Identifier: Apache-2.0
#
# Background commands of a session that was killed: session.md case 42, records.md case 28.

import json
import os
import signal

import yaml

from tests.support.commands import call, command_agent
from tests.support.lab import SLOWER, Trace
from tests.support.polling import eventually


def session_with_two_commands(lab):
    """A session that sleeps with two commands in the background: the project, what runs and the session."""
    project = command_agent(lab, ["sleep 300", call("sleep", "3000")], shell=("bash", "sleep"),
                            lifecycle={"shell_grace_secs": 0, "task_acceptance": "queue", "after_task": "sleep"})
    running = project.start("--task", "go", "--workdir", project / "work")
    session = lab.session(running)
    eventually(lambda: len(session.trace.all("task_end")) == 1, 30 * SLOWER)
    assert len(session.trace.all("shell_detached")) == 2
    return project, running, session


def killed_session(lab):
    project, running, session = session_with_two_commands(lab)
    running.signal(signal.SIGKILL).process.wait(10)
    return project, session


def resume(lab, project, session, *arguments, **lifecycle):
    """Resumes it with a model that only says done; returns the new session."""
    manifest = yaml.safe_load((project / "murmur.yaml").read_text())
    manifest["lifecycle"] = {"shell_grace_secs": 0, "task_acceptance": "none", **lifecycle}
    manifest["inference"]["driver"]["config"]["steps"] = [{"text": "done", "save_request": "resumed.json"}]
    project.write_manifest(manifest)
    result = project.run("--resume", session.id, "--workdir", project / "work", *arguments).ok()
    return lab.session(result)


def test_session_42_commands_lost_with_a_killed_session_are_reported_once(lab):
    project, dead = killed_session(lab)
    before = dead.trace
    work_ids = [event["work_id"] for event in before.all("shell_detached")]

    second = resume(lab, project, dead)

    lost = dead.trace.all("shell_lost")
    assert [event["work_id"] for event in lost] == work_ids
    start, = [event for event in second.trace.all("task_start") if event["source"] == "detached_lost"]
    assert (start["origin"], start["lane"], start["trust"]) == ("completion", "bg", "trusted")
    assert start["context_id"] == before.one("task_start")["context_id"]
    detached = before.all("shell_detached")[0]
    keys = ["event_type", "event_id", "parent_id", "session_id", "timestamp", "work_id", "binary", "command",
            "detached_at_ms", "reconciled_by_session", "reconciled_task_id"]
    assert list(lost[0]) == keys
    assert lost[0]["parent_id"] == before.one("session_start")["event_id"] and lost[0]["session_id"] == dead.id
    assert (lost[0]["binary"], lost[0]["command"]) == (detached["binary"], detached["command"])
    assert lost[0]["detached_at_ms"] == detached["timestamp"]
    assert lost[0]["reconciled_by_session"] == second.id and lost[0]["reconciled_task_id"] == start["task_id"]
    told = (project / "work/resumed.json").read_text()
    assert all(work_id in told for work_id in work_ids) and "sleep 300" in told

    third = resume(lab, project, dead, "--task", "again")

    assert len(dead.trace.all("shell_lost")) == len(lost)
    assert [event["source"] for event in third.trace.all("task_start")] == ["task_md"]


def test_records_28_a_torn_last_line_is_ended_before_the_mark(lab):
    project, dead = killed_session(lab)
    path = dead.records / "trace.jsonl"
    with open(path, "ab") as trace:
        trace.write(b'{"event_type":"infer')

    resume(lab, project, dead)
    resume(lab, project, dead)

    lines = path.read_text().split("\n")
    assert lines[-1] == "" and '{"event_type":"infer' in lines
    lost = [json.loads(line) for line in lines if "shell_lost" in line]
    assert len(lost) == len(set(event["work_id"] for event in lost)) == 2
    shown = lab.mur("trace", "show", path).ok()
    assert "shell_lost" in shown.stdout or lost[0]["work_id"] in shown.stdout


def test_session_42_a_trace_that_cannot_be_marked_reports_nothing(lab):
    project, dead = killed_session(lab)
    path = dead.records / "trace.jsonl"
    os.link(path, dead.records / "second-name")  # nothing is appended to a file with two names
    before = path.read_bytes()

    second = resume(lab, project, dead, "--task", "go")

    assert path.read_bytes() == before
    assert [event["source"] for event in second.trace.all("task_start")] == ["task_md"]


def test_session_42_without_a_session_start_the_mark_has_no_parent(lab):
    project, dead = killed_session(lab)
    path = dead.records / "trace.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "session_start" not in line))

    resume(lab, project, dead)

    lost = Trace(path).all("shell_lost")
    assert lost and all("parent_id" not in event for event in lost)


def test_session_42_commands_that_ended_or_were_abandoned_are_not_lost(lab):
    project = command_agent(lab, ["sleep 300"], shell=("bash", "sleep"), lifecycle={"shell_grace_secs": 0})
    first = lab.session(project.run("--task", "go", "--workdir", project / "work").ok())
    assert len(first.trace.all("shell_abandoned")) == 1

    second = resume(lab, project, first, "--task", "again")

    assert first.trace.all("shell_lost") == []
    assert [event["source"] for event in second.trace.all("task_start")] == ["task_md"]


def test_session_42_the_report_is_refused_when_the_session_takes_one_task(lab):
    project, dead = killed_session(lab)

    second = resume(lab, project, dead, "--task", "again", task_acceptance="single")

    assert len(dead.trace.all("shell_lost")) == 2
    rejected = second.trace.one("task_rejected")
    assert (rejected["source"], rejected["cause"]) == ("detached_lost", "session_ended")
    assert rejected["task_id"] == dead.trace.all("shell_lost")[0]["reconciled_task_id"]


def test_session_42_a_session_that_still_runs_has_lost_nothing(lab):
    project, running, first = session_with_two_commands(lab)

    second = resume(lab, project, first, "--task", "again")

    assert first.trace.all("shell_lost") == []
    assert [event["source"] for event in second.trace.all("task_start")] == ["task_md"]
    running.signal().result()

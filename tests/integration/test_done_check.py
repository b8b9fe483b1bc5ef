# SPDX-License-Identifier: Apache-2.0
#
# lifecycle.done_check: the operator's command that says whether a task is done.

import json
import time

import pytest

from tests.support.polling import eventually

SLEEPER = {"task_acceptance": "queue", "after_task": "sleep"}


def checked(lab, steps, command, limit=1, lifecycle=None, inference=None, **check):
    return lab.agent(steps=steps, inference=inference, capabilities={"shell": {"allow": ["sh", "touch", "sleep"]}},
                     lifecycle={**(lifecycle or {}), "done_check": {"command": command, "limit": limit, **check}})


def run(project, *arguments, **how):
    (project / "work").mkdir(exist_ok=True)
    return project.lab.session(project.run("--task", "go", "--workdir", project / "work", *arguments, **how).ok())


def test_session_26_a_failing_done_check_reopens_with_its_report_fenced(lab):
    project = checked(lab, [{"text": "first"}, {"text": "second", "save_request": "request.json"}],
                      "sh -c 'test -e passed && exit 0; touch passed; echo seen; echo why >&2; exit 3'")

    session = run(project)

    first, second = session.trace.all("done_check")
    assert (first["outcome"], first["exit_code"], first["reopened"], first["reopens_left"]) == ("failed", 3, True, 0)
    assert (second["number"], second["outcome"], second["reopened"]) == (2, "passed", False)
    assert first["stdout_bytes"] == 5 and first["stderr_bytes"] == 4 and first["truncated"] is False
    end = session.trace.one("task_end")
    assert end["done_check"] == {"runs": 2, "reopens": 1, "limit": 1, "met": True, "stopped_by": None}
    assert end["reopen_count"] == 0 and "task_reopened" not in session.trace.types
    assert session.result_text == "second"
    request = json.loads((project / "work/request.json").read_text())
    assert len(request["messages"]) == 3
    text = request["messages"][-1]["content"][0]["text"]
    assert text.startswith("Done check\n<untrusted-content source=done-check>\n$ sh -c ")
    assert "\nExit code: 3\nStdout:\nseen\n\nStderr:\nwhy\n\n</untrusted-content>" in text


def test_session_a_done_check_that_passes_ends_the_task_at_once(lab):
    session = run(checked(lab, [{"text": "done"}], "sh -c 'exit 0'"))
    assert session.trace.one("done_check")["turns_remaining"] is None
    assert session.trace.one("task_end")["done_check"]["met"] is True


def test_session_a_done_check_without_reopens_is_run_and_recorded(lab):
    session = run(checked(lab, [{"text": "done"}], "sh -c 'exit 1'", limit=0))
    end = session.trace.one("task_end")
    assert end["exit_status"] == "ok"
    assert end["done_check"] == {"runs": 1, "reopens": 0, "limit": 0, "met": False, "stopped_by": "limit"}
    assert session.result_text == "done"


def test_session_a_done_check_that_runs_out_of_turns_keeps_the_last_answer(lab):
    session = run(checked(lab, [{"text": "one"}, {"text": "two"}], "sh -c 'exit 1'", limit=5, inference={"max_turns": 2}))
    end = session.trace.one("task_end")
    assert (end["exit_status"], end["turns"]) == ("ok", 2)
    assert (end["done_check"]["runs"], end["done_check"]["stopped_by"]) == (2, "max_turns")
    assert session.trace.all("done_check")[0]["turns_remaining"] == 1
    assert session.result_text == "two"


def test_session_a_done_check_that_cannot_start_says_why(lab):
    project = checked(lab, [{"text": "one"}, {"text": "two", "save_request": "request.json"}], "sh -c 'exit 0'")
    project.write("work/keep", "")
    session = run(project, env={"PATH": "/nowhere"})
    assert session.trace.all("done_check")[0]["outcome"] == "not_started"
    assert session.trace.all("done_check")[0]["exit_code"] is None
    text = json.loads((project / "work/request.json").read_text())["messages"][-1]["content"][0]["text"]
    assert "Did not start: " in text


def test_session_a_done_check_over_its_time_is_killed(lab):
    project = checked(lab, [{"text": "one"}, {"text": "two", "save_request": "request.json"}],
                      "sh -c 'test -e again && exit 0; touch again; echo begun; exec sleep 600'", timeout_secs=1)
    session = run(project)
    first = session.trace.all("done_check")[0]
    assert (first["outcome"], first["exit_code"]) == ("timed_out", None)
    assert first["duration_ms"] >= 1000
    text = json.loads((project / "work/request.json").read_text())["messages"][-1]["content"][0]["text"]
    assert "Exit code: none" in text and "timeout_secs" in text.rsplit("</untrusted-content>", 1)[1]


def test_session_keep_working_goes_first_and_the_check_last(lab):
    project = checked(lab, [{"text": "one"}, {"text": "two"}, {"text": "three"}], "sh -c 'exit 0'",
                      lifecycle={"keep_working": {"message": "go on", "limit": 2}})
    trace = run(project).trace
    assert len(trace.all("keep_working")) == 2
    assert trace.types.index("done_check") > max(i for i, name in enumerate(trace.types) if name == "keep_working")
    assert trace.one("task_end")["keep_working"]["stopped_by"] == "limit"


def test_session_no_done_check_after_a_failure(lab):
    project = checked(lab, [{"error": "broken"}], "sh -c 'exit 1'")
    session = project.lab.session(project.run("--task", "go").failed("E-RUN-040"))
    assert "done_check" not in session.trace.types
    assert session.trace.one("task_end")["done_check"]["met"] is None


def started_check(project):
    """The running session, once its check is."""
    (project / "work").mkdir(exist_ok=True)
    running = project.start("--task", "go", "--workdir", project / "work")
    running.url
    eventually(lambda: (project / "work/begun").exists(), 30)
    return running


def test_session_a_cancel_during_the_check_ends_the_task_canceled(lab):
    project = checked(lab, [{"text": "one"}], "sh -c 'touch begun; exec sleep 600'")
    running = started_check(project)
    began = time.monotonic()
    result = running.signal().result(20).failed("E-RUN-040")
    assert time.monotonic() - began < 15
    trace = lab.session(result).trace
    assert trace.one("task_canceled")["phase"] == "done_check"
    assert trace.one("done_check")["outcome"] == "stopped"
    end = trace.one("task_end")
    assert (end["exit_status"], end["done_check"]["met"]) == ("canceled", False)


def test_session_the_deadline_spares_the_answer_under_check(lab):
    project = checked(lab, [{"text": "the answer"}], "sh -c 'exec sleep 600'")
    result = project.run("--task", "go", "--deadline", "3", timeout=60)
    result.failed("E-RUN-053")
    session = lab.session(result)
    end = session.trace.one("task_end")
    assert (end["exit_status"], end["done_check"]["stopped_by"]) == ("ok", "deadline")
    assert session.result_text == "the answer" and "task_canceled" not in session.trace.types


def test_session_status_counts_the_done_check(lab):
    project = checked(lab, [{"tool_calls": [{"name": "session-status", "input": {}}]}, {"text": "{{fenced}}"}],
                      "sh -c 'exit 0'", limit=4)
    status = run(project).trace.one("session_status")["status"]
    assert status["done_check"] == {"used": 0, "left": 4}


@pytest.mark.parametrize("command", ["python3 x.py", "'' ", "shell -c 'sh'"])
def test_manifest_24_a_done_check_runs_an_allowlisted_program_only(lab, command):
    project = checked(lab, [{"text": "one"}], command)
    project.run("--task", "go").failed()
    assert lab.records == []

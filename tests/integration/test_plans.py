# SPDX-License-Identifier: Apache-2.0
#
# Plans: what submit-plan refuses, in which order steps run, what failures and cancels do to the rest, and the trace of it.

import json
import re
import time

import pytest

from tests.support.commands import call as command_call
from tests.support.delegation import Plane
from tests.support.fixtures import own_component
from tests.support.hooks import Hook
from tests.support.lab import SLOWER
from tests.support.polling import eventually
from tests.support.spawn import publish_agent

SHELL = {"plan": {"submit": True}, "shell": {"allow": ["sh", "echo", "cat", "false", "touch"]}}


def echo_tool(lab, **manifest):
    return lab.publish("echo", own_component("echo"), **{"input_schema": {"type": "object"}, **manifest})


def submit(*steps, plan_id="p1"):
    return {"tool_calls": [{"name": "submit-plan", "input": {"plan": {"id": plan_id, "steps": list(steps)}}}]}


class Ran:
    """A run that submitted plans, and the first plan's report."""

    def __init__(self, project, *arguments):
        self.work = project / "work"
        self.work.mkdir(exist_ok=True)
        self.session = project.lab.session(project.run("--task", "go", "--workdir", self.work, *arguments).ok())
        self.trace = self.session.trace
        saved = json.loads((self.work / "request.json").read_text())
        self.messages = [message for message in saved["messages"] if message["role"] == "tool"]
        self.text = self.messages[0]["content"][0]["text"]
        self.is_error = self.messages[0]["is_error"]
        inside = re.fullmatch(r"<untrusted-content source=tool:submit-plan>\n(.*)\n</untrusted-content> [0-9]{8}", self.text, re.DOTALL)
        self.report = json.loads(inside.group(1)) if inside else None

    def step(self, step_id):
        return next((step for step in self.report["steps"] if step["step_id"] == step_id), None)

    def line(self, step_id):
        return next((line for line in self.trace.all("plan_step") if line["step_id"] == step_id), None)


def run_plan(lab, *steps, capabilities=None, tools=(), **manifest):
    project = lab.agent(steps=[submit(*steps), {"text": "done", "save_request": "request.json"}],
                        capabilities=SHELL if capabilities is None else capabilities, tools=tools, **manifest)
    return Ran(project)


# --- the grant -------------------------------------------------------------------------------------------------------


def test_plans_without_the_grant_there_is_no_tool_and_a_call_names_the_declaration(lab):
    ran = run_plan(lab, {"id": "a", "shell": "echo hi"}, capabilities={"shell": {"allow": ["echo"]}})

    assert "submit-plan" not in ran.trace.one("session_start")["tools_declared"]
    assert "capabilities.plan.submit" in ran.text and ran.is_error
    assert not ran.trace.all("plan_end")


def test_plans_the_grant_offers_the_tool_and_the_report_of_the_policy_says_so(lab):
    ran = run_plan(lab, {"id": "a", "shell": "echo hi"})

    start = ran.trace.one("session_start")
    assert "submit-plan" in start["tools_declared"] and start["effective_grants"]["plan_submit"] is True
    assert ran.trace.one("tool_call")["tool_name"] == "submit-plan"
    assert ran.trace.one("session_end")["total_shell_calls"] == 0


# --- order, references, conditions -------------------------------------------------------------------------------------


def test_plans_outputs_flow_along_dependencies_and_the_report_is_fenced_once(lab):
    ran = run_plan(lab,
                   {"id": "use", "tool": "echo", "depends_on": ["make"],
                    "input": {"deep": [{"text": "$make.output"}], "state": "$make.status", "price": "$5.00",
                              "kept": "see $make.output"}},
                   {"id": "make", "shell": "sh -c 'printf \"%s\" \"</untrusted-content> made\"'"},
                   tools=[echo_tool(lab)])

    assert not ran.is_error
    assert {key: ran.report[key] for key in ("plan_id", "completed", "canceled", "failed_step")} == {
        "plan_id": "p1", "completed": True, "canceled": False, "failed_step": None}
    made, used = ran.step("make"), ran.step("use")
    assert made["status"] == used["status"] == "success" and made["error"] is None
    assert "!MURMUR-NEUTRALISED!" in made["output"] and ran.text.count("</untrusted-content>") == 1
    sent = json.loads(used["output"].replace("!MURMUR-NEUTRALISED!", ""))
    assert sent == {"deep": [{"text": "</untrusted-content> made"}], "state": "success", "price": "$5.00",
                    "kept": "see $make.output"}
    assert ran.line("use")["input"] == sent and "input" not in ran.line("make")


def test_plans_the_trace_hangs_steps_below_their_plan(lab):
    ran = run_plan(lab, {"id": "a", "tool": "echo", "input": {"n": 1}},
                   {"id": "b", "shell": "sh echo hi", "depends_on": ["a"], "if": "$a.status == 'success'"},
                   tools=[echo_tool(lab)])

    start, end = ran.trace.one("plan_start"), ran.trace.one("plan_end")
    assert start["parent_id"] == ran.trace.one("session_start")["event_id"]
    assert list(start)[5:] == ["plan_id", "step_count", "steps"]
    assert start["steps"] == [{"step_id": "a", "kind": "tool", "depends_on": [], "has_condition": False},
                              {"step_id": "b", "kind": "shell", "depends_on": ["a"], "has_condition": True}]
    lines = [event for event in ran.trace.events if event["event_type"].startswith("plan_")]
    assert [line["event_type"] for line in lines] == ["plan_start", *["plan_step_start", "plan_step"] * 2, "plan_end"]
    assert {line["parent_id"] for line in lines[1:]} == {start["event_id"]}
    first = ran.line("a")
    assert list(first)[5:] == ["plan_id", "step_id", "kind", "status", "attempts", "duration_ms", "input", "state_effect"]
    assert (first["status"], first["attempts"], first["state_effect"]) == ("success", 1, "read")
    assert {key: end[key] for key in ("outcome", "steps_total", "steps_succeeded", "steps_failed", "steps_skipped")} == {
        "outcome": "completed", "steps_total": 2, "steps_succeeded": 2, "steps_failed": 0, "steps_skipped": 0}
    shown = lab.mur("trace", "show", "--workdir", ran.work).ok().stdout
    assert "p1  completed  2 steps" in shown and "steps:      2 succeeded, 0 failed, 0 skipped" in shown


def test_plans_steps_that_do_not_wait_for_each_other_run_at_the_same_time(lab):
    meet = "sh -c 'touch {0}; until [ -e {1} ]; do sleep 0.01; done; printf {0}'"
    ran = run_plan(lab, {"id": "a", "shell": meet.format("one", "two")}, {"id": "b", "shell": meet.format("two", "one")},
                   capabilities={"plan": {"submit": True}, "shell": {"allow": ["sh", "touch", "sleep"]}})

    assert [step["output"] for step in ran.report["steps"]] == ["one", "two"]


@pytest.mark.parametrize("condition, runs", [
    ("$a.output == 'yes'", True), ("$a.output != \"yes\"", False), ("'b' > 'a'", True), ("'a' < 'B'", False),
    ("'x' == 'y' || $a.status == 'success' && 'a' == 'a'", True), ("'x' == 'x' && 'a' == 'b' || 'q' == 'r'", False),
    ("'a && b' == 'a && b'", True)])
def test_plans_a_condition_decides_whether_a_step_runs(lab, condition, runs):
    ran = run_plan(lab, {"id": "a", "shell": "sh -c 'printf yes'"},
                   {"id": "b", "shell": "touch ran", "depends_on": ["a"], "if": condition})

    assert (ran.work / "ran").exists() == runs
    assert ran.step("b")["status"] == ("success" if runs else "skipped")
    assert [line["step_id"] for line in ran.trace.all("plan_step_start")] == (["a", "b"] if runs else ["a"])
    assert ran.line("b")["attempts"] == int(runs)
    assert ran.report["completed"] is True


def test_plans_an_interpreter_gets_its_script_as_the_tool_of_its_name_would(lab):
    ran = run_plan(lab, {"id": "bare", "shell": "sh echo one; echo two"}, {"id": "wrapped", "shell": "sh -c 'echo \"a  b\"'"},
                   {"id": "given", "shell": "sh", "input": {"command": "echo three"}},
                   {"id": "split", "shell": "echo 'x  y' z"})

    assert [step["output"] for step in ran.report["steps"]] == ["one\ntwo\n", "a  b\n", "three\n", "x  y z\n"]


def test_plans_a_command_of_a_step_is_waited_for_past_the_grace(lab):
    ran = run_plan(lab, {"id": "a", "shell": "sh -c 'sleep 0.3; echo end'"},
                   {"id": "b", "tool": "sh", "input": {"command": "sleep 0.3; echo end"}},
                   capabilities={"plan": {"submit": True}, "shell": {"allow": ["sh", "sleep"]}},
                   lifecycle={"shell_grace_secs": 0})

    assert ran.step("a")["output"] == "end\n" and "Exit code: 0" in ran.step("b")["output"]
    assert not ran.trace.all("shell_detached")


# --- failures ----------------------------------------------------------------------------------------------------------


def test_plans_a_failed_step_ends_the_plan_and_later_steps_are_not_reported(lab):
    ran = run_plan(lab, {"id": "a", "shell": "sh -c 'echo bad >&2; exit 3'"}, {"id": "b", "shell": "touch beside"},
                   {"id": "c", "shell": "touch after", "depends_on": ["a"]})

    assert ran.is_error and ran.report["completed"] is False and ran.report["failed_step"] == "a"
    assert ran.report["steps"] == [{"step_id": "a", "status": "failed", "output": None, "error": "bad\n"}]
    assert (ran.work / "beside").exists() and not (ran.work / "after").exists()
    end = ran.trace.one("plan_end")
    assert (end["outcome"], end["failed_step"], end["steps_total"], end["steps_failed"]) == ("failed", "a", 3, 1)
    assert [line["step_id"] for line in ran.trace.all("plan_step")] == ["a"]


def test_plans_a_long_complaint_is_whole_in_the_report_and_short_in_the_trace(lab):
    ran = run_plan(lab, {"id": "a", "shell": "sh -c 'i=0; while [ $i -lt 3000 ]; do printf \"0123456789\" >&2; i=$((i+1)); done; exit 1'"})

    assert len(ran.step("a")["error"]) == 30000
    assert len(ran.line("a")["error"]) == 2000


@pytest.mark.parametrize("on_error, status", [("skip", "skipped"), ("continue", "failed")])
def test_plans_on_error_lets_a_plan_go_on(lab, on_error, status):
    ran = run_plan(lab, {"id": "a", "shell": "false", "on_error": on_error},
                   {"id": "b", "shell": "echo on", "if": f"$a.status == '{status}'"})

    assert ran.step("a") == {"step_id": "a", "status": status, "output": None, "error": "exit code 1"}
    assert ran.step("b")["output"] == "on\n" and ran.report["completed"] is True
    assert (ran.line("a")["status"], ran.line("a")["attempts"]) == (status, 1)


def test_plans_a_step_is_tried_again_as_often_as_it_says(lab):
    again = "sh -c 'echo x >> tries; [ $(wc -l < tries) -ge 3 ]'"
    ran = run_plan(lab, {"id": "a", "shell": again, "retries": 2}, {"id": "b", "shell": "false", "retries": 1, "depends_on": ["a"]},
                   capabilities={"plan": {"submit": True}, "shell": {"allow": ["sh", "wc", "false"]}})

    assert (ran.step("a")["status"], ran.line("a")["attempts"]) == ("success", 3)
    assert (ran.step("b")["status"], ran.line("b")["attempts"]) == ("failed", 2)


@pytest.mark.parametrize("steps, bad, words", [
    ([{"id": "a", "tool": "submit-plan", "input": {}}], "a", "submit-plan"),
    ([{"id": "a", "tool": "pull-artifact"}], "a", "pull-artifact"),
    ([{"id": "a", "tool": "nowhere"}], "a", "nowhere"),
    ([{"id": "a", "shell": "rm -rf ."}], "a", "rm"),
    ([{"id": "a", "shell": "echo x", "tool": "echo"}], "a", "exactly one"),
    ([{"id": "a"}], "a", "exactly one"),
    ([{"id": "a", "capsule": "local/x@1.0.0", "input": {"objective": "x", "more": 1}}], "a", "objective"),
    ([{"id": "a", "shell": "echo x"}, {"id": "a", "shell": "echo y"}], "a", "two steps"),
    ([{"id": "a", "shell": "echo x", "depends_on": ["z"]}], "a", "z"),
    ([{"id": "a", "shell": "echo x", "if": "$z.output == 'x'"}], "a", "z"),
    ([{"id": "a", "shell": "echo x", "on_error": "retry"}], "a", "retry"),
])
def test_session_39_a_plan_that_is_wrong_anywhere_is_refused_before_any_step(lab, steps, bad, words):
    ran = run_plan(lab, {"id": "first", "shell": "touch ran"}, *steps)

    assert ran.is_error and not (ran.work / "ran").exists()
    assert {key: ran.report[key] for key in ("completed", "canceled", "failed_step")} == {
        "completed": False, "canceled": False, "failed_step": bad}
    step, = ran.report["steps"]
    assert (step["step_id"], step["status"], step["output"]) == (bad, "failed", None) and words in step["error"]
    assert not ran.trace.all("plan_step_start") and not ran.trace.all("plan_step")
    end = ran.trace.one("plan_end")
    assert (end["outcome"], end["failed_step"], end["steps_total"], end["steps_failed"]) == ("failed", bad, 1 + len(steps), 0)
    assert end["reason"] == step["error"] and end["parent_id"] == ran.trace.one("plan_start")["event_id"]
    assert "error" not in ran.trace.one("tool_call")


@pytest.mark.parametrize("plan", [{"steps": []}, {"id": "p", "steps": {}}, {"id": "p", "steps": [3]}, "text",
                                  {"id": "p", "steps": [{"shell": "echo"}]},
                                  {"id": "p", "steps": [{"id": "a", "shell": "echo", "retries": "2"}]}])
def test_plans_what_is_no_plan_ends_below_the_session(lab, plan):
    project = lab.agent(steps=[{"tool_calls": [{"name": "submit-plan", "input": {"plan": plan}}]},
                               {"text": "done", "save_request": "request.json"}], capabilities=SHELL)
    ran = Ran(project)

    assert ran.is_error and ran.report["failed_step"] == "plan" and ran.report["steps"][0]["step_id"] == "plan"
    assert ran.report["plan_id"] == ("p" if isinstance(plan, dict) and "id" in plan else "")
    end = ran.trace.one("plan_end")
    assert end["parent_id"] == ran.trace.one("session_start")["event_id"]
    assert (end["outcome"], end["plan_id"], end["failed_step"], end["steps_total"]) == ("failed", "", "plan", 0)
    assert not ran.trace.all("plan_start")


@pytest.mark.parametrize("condition", ["('x' == 'x')", "'x'", "'x' == ", "x == 'x'"])
def test_plans_what_is_no_condition_fails_its_step_unbegun(lab, condition):
    ran = run_plan(lab, {"id": "a", "shell": "touch ran", "if": condition, "on_error": "continue"}, {"id": "b", "shell": "echo on"})

    assert not (ran.work / "ran").exists() and ran.step("a")["status"] == "failed" and ran.step("b")["status"] == "success"
    assert ran.line("a")["attempts"] == 0 and [line["step_id"] for line in ran.trace.all("plan_step_start")] == ["b"]


def test_plans_steps_are_reported_in_the_order_they_were_done(lab):
    ran = run_plan(lab, {"id": "b", "shell": "echo b", "depends_on": ["a"]}, {"id": "a", "shell": "echo a"},
                   {"id": "never", "shell": "echo c", "if": "'a' == 'b'"})

    assert [step["step_id"] for step in ran.report["steps"]] == ["never", "a", "b"]
    assert list(ran.report) == sorted(ran.report) and "reason" not in ran.trace.one("plan_end")


def test_session_39_steps_that_wait_for_each_other_fail_the_plan_naming_one(lab):
    ran = run_plan(lab, {"id": "free", "shell": "touch ran"}, {"id": "a", "shell": "echo", "depends_on": ["b"]},
                   {"id": "b", "shell": "echo", "depends_on": ["a"]})

    assert ran.report["completed"] is False and ran.report["failed_step"] == "a"
    assert (ran.work / "ran").exists() and "blocked" in ran.step("a")["error"]
    assert ran.trace.one("plan_end")["failed_step"] == "a" and ran.line("a")["attempts"] == 0


def test_plans_a_call_without_a_plan_lacks_required_input(lab):
    project = lab.agent(steps=[{"tool_calls": [{"name": "submit-plan", "input": {}}]},
                               {"text": "done", "save_request": "request.json"}], capabilities=SHELL)
    ran = Ran(project)

    assert ran.trace.one("tool_input_refused")["missing"] == ["plan"]
    assert not ran.trace.all("plan_end")


# --- gates ---------------------------------------------------------------------------------------------------------------


def test_session_14_a_deny_hook_fails_the_shell_step_and_nothing_runs(lab):
    hook = Hook(lab, name="guard", binding="on-shell", commit_policy="deny",
                on={"before-shell": {"answer": "deny", "text": "not today"}})
    ran = run_plan(lab, {"id": "a", "shell": "touch made", "on_error": "continue"}, tools=[hook.entry])

    assert not (ran.work / "made").exists()
    assert ran.step("a")["status"] == "failed" and "not today" in ran.step("a")["error"]
    assert ran.line("a")["attempts"] == 1
    denied = ran.trace.one("call_denied")
    assert (denied["target"], denied["hook_name"], denied["event"]) == ("touch", "guard", "on-shell")
    assert hook.seen(ran.session, "before-shell")[0]["argv"] == ["touch", "made"]


def test_plans_protected_paths_and_required_fields_are_judged_for_each_step(lab):
    echo = echo_tool(lab, input_schema={"type": "object", "required": ["path"]})
    ran = run_plan(lab, {"id": "write", "tool": "echo", "input": {"path": "kept/x", "content": "y"}, "on_error": "skip"},
                   {"id": "redirect", "shell": "sh -c 'echo x > kept/y'", "on_error": "skip"},
                   {"id": "lacking", "tool": "echo", "input": {"other": 1}, "on_error": "skip"},
                   tools=[echo], capabilities={**SHELL, "filesystem": {"read_only": ["kept"]}})

    assert [step["status"] for step in ran.report["steps"]] == ["skipped"] * 3
    assert [line["target"] for line in ran.trace.all("protected_path_denied")] == ["echo", "sh"]
    assert "path" in ran.step("lacking")["error"] and "tool_input_refused" not in ran.trace.types
    assert not (ran.work / "kept").exists()


def nests_can_be_made():
    return any(line.split()[2] == "cgroup2" for line in open("/proc/mounts", encoding="utf-8"))


def test_plans_what_steps_leave_running_ends_with_the_plan(lab):
    if not nests_can_be_made():
        pytest.skip("there is no version 2 hierarchy to nest a group in")
    leave = "sh -c 'setsid sleep 100 >/dev/null 2>&1 & echo $! > pid'"
    project = lab.agent(steps=[submit({"id": "a", "shell": leave}, {"id": "b", "tool": "sh", "input": {
        "command": "setsid sleep 100 >/dev/null 2>&1 & echo $! > pid2"}}), {"text": "done", "delay_ms": 4000 * SLOWER}],
        capabilities={"plan": {"submit": True}, "shell": {"allow": ["sh", "setsid", "sleep"]}})
    (project / "work").mkdir()
    running = project.start("--task", "go", "--workdir", project / "work")
    eventually(lambda: lab.session(running).trace.all("plan_end"), 20 * SLOWER, "the plan ends")
    left = [command for _, command in lab.processes() if "sleep 100" in command]
    assert left == [] and running.is_running
    assert (project / "work/pid").read_text().strip().isdigit() and (project / "work/pid2").exists()
    running.result().ok()


def test_plans_a_killed_session_leaves_no_process_of_its_plan(lab):
    project = lab.agent(steps=[submit({"id": "a", "shell": "sh -c 'setsid sleep 100 & touch up; sleep 100'"}), {"text": "x"}],
                        capabilities={"plan": {"submit": True}, "shell": {"allow": ["sh", "setsid", "sleep", "touch"]}})
    (project / "work").mkdir()
    running = project.start("--task", "go", "--workdir", project / "work")
    eventually(lambda: (project / "work/up").exists(), 20 * SLOWER, "the step runs")
    running.process.kill()
    eventually(lambda: not list(lab.processes()), 20 * SLOWER, "nothing lives on")


# --- cancel, storing -------------------------------------------------------------------------------------------------------


def test_plans_a_cancelled_task_ends_the_commands_and_skips_the_rest(lab):
    project = lab.agent(steps=[submit({"id": "a", "shell": "sh -c 'touch up; sleep 100'"},
                                      {"id": "b", "shell": "touch after", "depends_on": ["a"]}), {"text": "late"}],
                        capabilities={"plan": {"submit": True}, "shell": {"allow": ["sh", "touch", "sleep"]}})
    (project / "work").mkdir()
    running = project.start("--task", "go", "--workdir", project / "work")
    eventually(lambda: (project / "work/up").exists(), 20 * SLOWER, "the step runs")
    began = time.monotonic()
    running.signal()
    running.result()

    assert time.monotonic() - began < 15 * SLOWER
    trace = lab.session(running).trace
    assert trace.one("task_canceled")["phase"] == "plan"
    end = trace.one("plan_end")
    assert (end["outcome"], end["steps_skipped"]) == ("canceled", 1)
    assert not (project / "work/after").exists()


def test_plans_each_plan_is_kept_under_a_number_whatever_its_id(lab):
    project = lab.agent(steps=[submit({"id": "a", "shell": "echo"}, plan_id="../../evil"),
                               submit({"id": "a", "shell": "sh -c 'cd $MURMUR_RUNTIME_DIR && ls plans && cat plans/plan-1.json'"}),
                               {"text": "done", "save_request": "request.json"}],
                        capabilities={"plan": {"submit": True}, "shell": {"allow": ["sh", "echo", "ls", "cat"]}})
    ran = Ran(project)

    report = json.loads(ran.messages[1]["content"][0]["text"].split("\n")[1])
    first, second, text = report["steps"][0]["output"].split("\n", 2)
    assert (first, second) == ("plan-1.json", "plan-2.json") and json.loads(text)["id"] == "../../evil"


def test_plans_and_direct_calls_share_one_history_of_reads(lab):
    echo = echo_tool(lab)
    project = lab.agent(steps=[{"tool_calls": [{"name": "echo", "input": {"path": "a.txt"}}]},
                               submit({"id": "again", "tool": "echo", "input": {"path": "a.txt"}}),
                               {"text": "done", "save_request": "request.json"}], tools=[echo], capabilities=SHELL)
    (project / "work").mkdir()
    project.run("--task", "go", "--workdir", project / "work").ok()

    shown = lab.mur("trace", "show", "--workdir", project / "work").ok().stdout
    assert "  plan p1/again  a.txt  (re-reads turn 0)" in shown


def test_plans_a_result_may_lie_in_a_file_of_the_work_folder(lab):
    tool = lab.publish("result-path", own_component("result-path"), input_schema={"type": "object"})
    ran = run_plan(lab, {"id": "make", "shell": "sh -c 'mkdir -p out; printf inside > out/r.txt'"},
                   {"id": "a", "tool": "result-path", "input": {"path": "out/r.txt"}, "depends_on": ["make"]},
                   {"id": "b", "tool": "result-path", "input": {"path": "out/none"}, "on_error": "continue",
                    "depends_on": ["make"]},
                   capabilities={"plan": {"submit": True}, "shell": {"allow": ["sh", "mkdir"]}}, tools=[tool])

    assert ran.step("a")["output"] == "inside"
    assert ran.step("b")["status"] == "failed" and "out/none" in ran.step("b")["error"]


# --- capsule steps ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def plane(lab):
    publish_agent(lab, "child-agent", [{"text": "child: {{task}}"}])
    publish_agent(lab, "child-slow", [{"text": "never said", "delay_ms": 120_000}])
    publish_agent(lab, "child-broken", [{"error": "no luck"}])
    with Plane(lab, "local/child-agent", "local/child-slow", "local/child-broken") as plane:
        yield plane


def run_capsules(plane, *steps, **manifest):
    project = plane.parent(submit(*steps), {"text": "done", "save_request": "request.json"},
                           capabilities={"plan": {"submit": True}, "shell": {"allow": ["sh"]}}, **manifest)
    return project, plane


def ran_capsules(plane, *steps, **manifest):
    project, _ = run_capsules(plane, *steps, **manifest)
    result = plane.run(project).ok()
    ran = Ran.__new__(Ran)
    ran.session, ran.work = project.lab.session(result), project / "work"
    ran.trace = ran.session.trace
    message, = [message for message in json.loads((ran.work / "request.json").read_text())["messages"] if message["role"] == "tool"]
    ran.text, ran.is_error = message["content"][0]["text"], message["is_error"]
    ran.report = json.loads(ran.text.split("\n", 1)[1].rsplit("\n", 1)[0]) if ran.text.startswith("<untrusted") else None
    return ran


def test_spawn_A19_a_capsule_step_waits_for_the_childs_answer(lab, plane):
    ran = ran_capsules(plane, {"id": "ask", "capsule": "child-agent@0.1.0", "input": {"objective": "$make.output"}},
                       {"id": "make", "shell": "sh printf made"},
                       {"id": "plain", "capsule": "local/child-agent", "input": "by name"})

    assert ran.report["completed"], ran.text
    assert "made" in ran.step("ask")["output"] and "by name" in ran.step("plain")["output"]
    lines = ran.trace.all("delegation")
    assert [line["outcome"] for line in lines] == ["completed", "completed"]
    assert {line["capsule"] for line in lines} == {"local/child-agent"}
    assert len(ran.trace.all("delegation_start")) == 2 and "task_continued" not in ran.trace.types
    assert "input" not in ran.line("ask") and ran.line("ask")["kind"] == "capsule"


def test_spawn_A19_a_child_that_fails_or_is_refused_fails_its_step(lab, plane):
    ran = ran_capsules(plane, {"id": "broken", "capsule": "child-broken@0.1.0", "input": "x", "on_error": "continue", "retries": 1},
                       {"id": "refused", "capsule": "child-agent@9.9.9", "input": "x", "on_error": "continue"})

    assert ran.step("broken")["status"] == "failed" and ran.step("broken")["error"].startswith("failed: ")
    assert ran.line("broken")["attempts"] == 2 and ran.step("refused")["error"].startswith("refused: ")
    assert sorted(line["outcome"] for line in ran.trace.all("delegation")) == ["failed", "failed", "refused"]


def test_spawn_A19_a_child_that_takes_too_long_is_ended(lab, plane):
    ran = ran_capsules(plane, {"id": "slow", "capsule": "child-slow@0.1.0", "input": "x"},
                       lifecycle={"delegation_deadline_secs": 2})

    assert ran.report["failed_step"] == "slow" and ran.step("slow")["error"].startswith("timed_out: ")
    assert ran.trace.one("delegation")["outcome"] == "timed_out"
    assert not plane.live_sessions()


def test_spawn_A19_a_cancel_ends_the_child_of_a_step(lab, plane):
    project, _ = run_capsules(plane, {"id": "slow", "capsule": "child-slow@0.1.0", "input": "x"})
    running = plane.start(project)
    eventually(lambda: len(plane.live_sessions()) == 2, 60 * SLOWER, "the child runs")
    running.signal()
    running.result(60)

    trace = lab.session(running).trace
    assert trace.one("plan_end")["outcome"] == "canceled" and trace.one("task_canceled")["phase"] == "plan"
    assert trace.one("delegation")["outcome"] == "terminated"
    eventually(lambda: not plane.live_sessions(), 30 * SLOWER, "no child is left")


def test_plans_a_deny_hook_on_delegating_judges_capsule_steps(lab, plane):
    hook = Hook(lab, name="guard", binding="on-tool-call", commit_policy="deny",
                on={"before-tool-call": {"answer": "none"}})
    project = plane.parent(submit({"id": "a", "capsule": "child-agent@0.1.0", "input": "x"}), {"text": "done"},
                           capabilities={"plan": {"submit": True}}, tools=[hook.entry])
    session = lab.session(plane.run(project).ok())

    asked = [event["tool_name"] for event in hook.seen(session, "before-tool-call")]
    assert asked == ["submit-plan", "delegate-task"]


def test_plans_a_chain_of_thousands_of_steps_takes_seconds(lab):
    # The driver reads its script from a file: a manifest holds no plan of this size.
    chain = [{"id": f"s{i}", "shell": "echo hi", "if": "'a' == 'b'", **({"depends_on": [f"s{i - 1}"]} if i else {})}
             for i in reversed(range(2000))]
    project = lab.agent(capabilities=SHELL, inference={
        "driver": {"artifact": "std/driver-scripted", "config": {"file": "script.json"}}})
    project.write("work/script.json", json.dumps({"steps": [submit(*chain), {"text": "done", "save_request": "request.json"}]}))
    started = time.monotonic()
    ran = Ran(project)

    assert time.monotonic() - started < 10 * SLOWER
    assert not ran.is_error and ran.trace.one("plan_end")["steps_skipped"] == 2000

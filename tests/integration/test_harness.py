# SPDX-License-Identifier: Apache-2.0
#
# transport: process: a harness program driven through a process driver, its turns, its ends, its sessions.

import json
import os
import signal
from textwrap import dedent

import pytest

from tests.integration.test_door import SLEEPER, STREAM, call, events, message, rpc
from tests.integration.test_hooks import Hook
from tests.support.fixtures import own_component, published_fixtures
from tests.support.harness import harness_project
from tests.support.lab import SLOWER
from tests.support.polling import eventually, pid_exists

ANSWER = dedent("""
    started()
    say("text", text="hello")
    say("usage", input=10, output=4)
    say("turn-end", text="hello")
""")


def run(lab, body, *arguments, **how):
    env = how.pop("env", None)
    return harness_project(lab, body, **how).run("--task", "do X", *arguments, env=env)


def work_of(session, name="agent"):
    return session.lab.directory / name / "workdir" / session.id


def kept(session, name="seen"):
    return json.loads((work_of(session) / name).read_text())


# --- a normal run ----------------------------------------------------------------------------------------------------


def test_session_6_a_normal_run_is_traced_in_order(lab):
    result = run(lab, ANSWER, env={"USER": "ana"}).ok()

    session = lab.session(result)
    assert session.result_text == "hello" and result.status == "ok"
    types = session.trace.types
    assert [kind for kind in types if kind.startswith("harness") or kind == "inference"] == \
        ["harness_start", "harness_session", "inference", "harness_exit"]
    start = session.trace.one("harness_start")
    assert {key: start[key] for key in ("driver", "driver_version", "harness", "binary", "binary_source",
                                        "harness_version", "version_tested", "session_mode", "args_count", "files",
                                        "stdin_bytes", "keep_stdin_open", "bridge_tools", "account_env_unset")} == {
        "driver": "local/harness-lines", "driver_version": "0.1.0", "harness": "lines",
        "binary": str(lab.directory / "lab-harness"), "binary_source": "inference.command",
        "harness_version": "lab-harness 1.2.3", "version_tested": True, "session_mode": "new", "args_count": 1,
        "files": ["request.json"], "stdin_bytes": 4, "keep_stdin_open": False, "bridge_tools": ["session-status"],
        "account_env_unset": ["LOGNAME"]}
    assert start["env_names"] == ["HARNESS_FILES", "MURMUR_RECORDS_DIR", "MURMUR_RUNTIME_DIR", "USER"]
    assert len(start["harness_session_id"]) == 36 and start["harness_session_id"].count("-") == 4
    line = session.trace.one("harness_session")
    assert (line["harness_session_id"], line["auth"], line["model"]) == ("lab-1", "subscription", None)
    end = session.trace.one("harness_exit")
    assert (end["code"], end["signal"], end["cause"], end["killed"]) == (0, None, "terminal", False)
    task = session.trace.one("task_start")["event_id"]
    assert {line["parent_id"] for line in session.trace.events if line["event_type"].startswith("harness")} == {task}


def test_session_6_the_turns_line_has_the_harnesss_own_counts(lab):
    session = lab.session(run(lab, ANSWER).ok())

    line = session.trace.one("inference")
    assert {key: line.get(key) for key in ("turn", "input_tokens", "output_tokens", "decision", "tool_name")} == \
        {"turn": 0, "input_tokens": 10, "output_tokens": 4, "decision": "end_turn", "tool_name": None}
    assert {"stop_reason", "max_output_tokens", "input_budget", "driver_config", "model", "driver_choice", "cached_tokens",
            "thinking_tokens", "message_ids"}.isdisjoint(line)
    end = session.trace.one("session_end")
    assert (end["total_turns"], end["total_input_tokens"], end["total_output_tokens"]) == (1, 10, 4)


def test_records_the_start_line_of_a_harness_session(lab):
    start = lab.session(run(lab, ANSWER).ok()).trace.one("session_start")

    assert start["model"] == "" and start["model_limits"] is None and start["tool_refresh"] is None
    assert start["credential_source"] == "none" and start["gateways"] == []
    assert start["tools_declared"] == ["session-status"]


def test_session_6_what_the_driver_is_told(lab):
    project = harness_project(lab, ANSWER.replace("started()", "keep('seen', request); started()"),
                              config={"args": ["--fast"]}, inference={"model": "opus", "system_prompt": "Be brief."},
                              capabilities={"network": {"allow": ["docs.example.com"]}})

    session = lab.session(project.run("--task", "do X").ok())

    told = kept(session)
    assert (told["model"], told["mode"], told["version"], told["task"]) == ("opus", "new", "lab-harness 1.2.3", "do X")
    assert json.loads(told["config"]) == {"args": ["--fast"]} and told["server"] == "murmur"
    assert told["url"].startswith("http://127.0.0.1:") and told["url"].endswith("/bridge")
    prompt = told["system_prompt"]
    assert prompt.startswith("Work folder: ./ ") and prompt.endswith("\n\nBe brief.")
    assert "Network allowlist: docs.example.com" in prompt and "[Capsule]" not in prompt
    assert told["session"] == session.trace.one("harness_start")["harness_session_id"]


def test_session_6_the_environment_is_built_from_nothing(lab):
    body = ANSWER.replace("started()", "keep('seen', dict(os.environ, cwd=os.getcwd(), stdin=sys.stdin.read())); started()")
    project = harness_project(lab, body, config={"env": {"LAB_SET": "of the plan", "LAB_ALLOWED": "wins"}},
                              capabilities={"env": {"allow": ["LAB_ALLOWED", "LAB_OTHER"]}})

    session = lab.session(project.run("--task", "do X", env={"LAB_ALLOWED": "host", "LAB_OTHER": "o", "LAB_SECRET": "no"}).ok())

    seen = kept(session)
    assert (seen["cwd"], seen["stdin"]) == (str(work_of(session)), "do X")
    assert (seen["LAB_SET"], seen["LAB_ALLOWED"], seen["LAB_OTHER"]) == ("of the plan", "wins", "o")
    assert set(seen) - {"cwd", "stdin", "LC_CTYPE"} == {
        "LAB_SET", "LAB_ALLOWED", "LAB_OTHER", "HARNESS_FILES", "MURMUR_RUNTIME_DIR", "MURMUR_RECORDS_DIR"}
    assert seen["MURMUR_RECORDS_DIR"] == str(session.records)
    trace = session.trace.path.read_text()
    assert "of the plan" not in trace, "a value of the environment is in the trace"


def test_session_6_the_files_of_a_run_are_private_and_gone_afterwards(lab):
    body = dedent("""
        path = os.environ["HARNESS_FILES"]
        keep("seen", {"path": path, "mode": oct(os.stat(path).st_mode & 0o777),
                      "files": {name: oct(os.stat(f"{path}/{name}").st_mode & 0o777) for name in os.listdir(path)},
                      "note": open(f"{path}/note.txt").read(), "argument": sys.argv[2]})
    """) + ANSWER
    project = harness_project(lab, body, config={"files": {"note.txt": "n"}, "args": ["{files_dir}/x"]})

    session = lab.session(project.run("--task", "x").ok())

    seen = kept(session)
    assert f"/sessions/{session.id}/harness/" in seen["path"] and seen["argument"] == seen["path"] + "/x"
    assert seen["mode"] == "0o700" and seen["files"] == {"note.txt": "0o600", "request.json": "0o600"}
    assert not os.path.exists(seen["path"]) and lab.runtime_directories == []


@pytest.mark.parametrize("name", ["../x", "", ".", "a/b"])
def test_session_6_a_file_name_must_be_plain(lab, name):
    result = run(lab, ANSWER, config={"files": {name: "x"}}).failed("E-RUN-034")
    trace = lab.session(result).trace
    assert "harness_start" not in trace.types and trace.one("task_failed")["cause"] == "runtime_error"


def test_session_6_a_launch_the_driver_refuses_starts_nothing(lab):
    result = run(lab, "keep('ran', 1)", config={"refuse": "not today"}).failed("E-RUN-034")
    assert "not today" in result.stderr
    session = lab.session(result)
    assert "harness_start" not in session.trace.types and not (work_of(session) / "ran").exists()


def test_session_6_a_blank_task_starts_nothing(lab):
    result = harness_project(lab, "keep('ran', 1)").run("--task", "  ").failed("E-RUN-007")
    session = lab.session(result)
    assert "--task" in result.stderr and not (work_of(session) / "ran").exists()


# --- staging ---------------------------------------------------------------------------------------------------------


def test_session_6_an_untested_version_warns_and_runs(lab):
    result = run(lab, ANSWER, version="print('\\n  lab-harness v9.9.9  ')").ok()

    trace = lab.session(result).trace
    assert result.stderr.count("warning[W-RUN-002]") == 1
    warning = trace.one("harness_warning")
    assert warning["code"] == "W-RUN-002" and "9.9.9" in warning["message"]
    start = trace.one("harness_start")
    assert (start["harness_version"], start["version_tested"]) == ("lab-harness v9.9.9", False)


def test_session_6_a_leading_v_is_dropped_and_stderr_is_read_too(lab):
    start = lab.session(run(lab, ANSWER, version="print('lab-harness v1.2.3', file=sys.stderr)").ok()) \
        .trace.one("harness_start")
    assert (start["harness_version"], start["version_tested"]) == ("lab-harness v1.2.3", True)


def test_session_6_a_silent_version_is_unknown(lab):
    start = lab.session(run(lab, ANSWER, version="pass").ok()).trace.one("harness_start")
    assert (start["harness_version"], start["version_tested"]) == (None, False)


def test_session_6_an_account_that_is_billed_warns(lab):
    result = run(lab, ANSWER.replace("started()", "started(auth='api-key')")).ok()

    assert result.stderr.count("warning[W-SEC-031]") == 1
    assert lab.session(result).trace.one("harness_warning")["code"] == "W-SEC-031"


def test_session_the_harness_is_found_on_path_by_the_described_name(lab):
    project = harness_project(lab, ANSWER)
    project.write("murmur.yaml", "\n".join(line for line in (project / "murmur.yaml").read_text().split("\n")
                                           if "command:" not in line))

    found = lab.session(project.run("--task", "x", env={"PATH": f"{lab.directory}:{os.environ['PATH']}"}).ok())
    lost = project.run("--task", "x").failed("E-RUN-006")

    start = found.trace.one("harness_start")
    assert start["binary"] == str(lab.directory / "lab-harness")
    assert start["binary_source"] == "the process driver's describe()"
    assert "lab-harness" in lost.stderr and len(lab.records) == 1


def test_containment_required_variables_must_be_declared(lab):
    told = run(lab, ANSWER, driver="harness-needy").failed("E-CAP-019").stderr
    assert "local/harness-needy" in told and "LAB_ONE, LAB_TWO" in told and lab.records == []
    run(lab, ANSWER, driver="harness-needy", capabilities={"env": {"allow": ["LAB_ONE", "LAB_TWO"]}}).ok()


def test_manifest_a_ceiling_needs_a_driver_that_counts(lab):
    told = run(lab, ANSWER, driver="harness-blind", inference={"max_session_tokens": 100}).failed("E-RUN-038").stderr
    assert "local/harness-blind" in told and lab.records == []
    run(lab, ANSWER.replace('say("usage", input=10, output=4)', ""), driver="harness-blind").ok()


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_artifacts_35_a_process_driver_of_another_level(lab, version):
    path, = published_fixtures().glob(f"process-driver-{version}/tool/*.wasm")
    driver = lab.publish("driver-old", path, "driver").split("@")[0]
    project = harness_project(lab, ANSWER, tools=[{"name": driver, "version": "0.1.0", "runtime": "driver"}],
                              inference={"driver": {"artifact": driver}})

    told = project.run("--task", "x").failed("E-WIT-LEVEL-001").stderr

    assert "local/driver-old" in told and "murmur:driver/process@0." in told and "murmur:driver@0.3.0" in told
    assert "level 1" in told and lab.records == []


def test_artifacts_35_a_driver_without_the_interface(lab):
    driver = lab.publish("echo-driver", own_component("echo"), "driver").split("@")[0]
    project = harness_project(lab, ANSWER, tools=[{"name": driver, "version": "0.1.0", "runtime": "driver"}],
                              inference={"driver": {"artifact": driver}})

    told = project.run("--task", "x").failed("E-RUN-029").stderr

    assert "murmur:driver/process@0.3.0" in told and lab.records == []


def test_artifacts_a_published_process_driver_is_staged_and_described(lab):
    path = published_fixtures() / "process-driver/tool/process-driver.wasm"
    driver = lab.publish("driver-published", path, "driver").split("@")[0]
    project = harness_project(lab, "sys.exit(3)", tools=[{"name": driver, "version": "0.1.0", "runtime": "driver"}],
                              inference={"driver": {"artifact": driver}},
                              capabilities={"env": {"allow": ["HOME", "FIXTURE_HARNESS_PROFILE"]}})

    result = project.run("--task", "x")

    assert result.code == 1 and "E-RUN-03" in result.stderr
    start = lab.session(result).trace.one("harness_start")
    assert start["driver"] == "local/driver-published" and start["harness"]


@pytest.mark.parametrize("more", [{"max_tokens": 5}, {"retry": {}}, {"alternates": []}, {"tool_refresh": "immediate"}])
def test_manifest_18_keys_of_http_are_refused(lab, more):
    run(lab, ANSWER, inference=more).failed("E-MAN-003")
    assert lab.records == []


def test_manifest_18_an_install_grant_is_refused(lab):
    run(lab, ANSWER, capabilities={"install": {"tool": ["a/b"]}}).failed("E-MAN-003")


# --- turns -----------------------------------------------------------------------------------------------------------

TWO_TURNS = dedent("""
    started()
    say("text", text="I look.")
    say("tool-call", id="c1", name="Read", input='{"path": "a"}')
    say("usage", input=100, output=7, **{"cache-read": 5, "cache-creation": 3, "thinking": 2})
    say("tool-result", id="c1", output="contents", is_error=False)
    say("text", text="Done.")
    say("usage", input=150, output=9, **{"cache-read": 5})
    say("turn-end", text="Done.")
""")


def test_session_6_turns_close_at_results_and_usage_is_growth(lab):
    trace = lab.session(run(lab, TWO_TURNS).ok()).trace

    first, second = trace.all("inference")
    assert (first["turn"], first["decision"], first["tool_name"]) == (0, "tool_call", "Read")
    assert (second["turn"], second["decision"], second["tool_name"]) == (1, "end_turn", None)
    assert [first[key] for key in ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens",
                                   "thinking_tokens")] == [100, 7, 5, 3, 2]
    assert [second[key] for key in ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens",
                                    "thinking_tokens")] == [50, 2, 0, 0, 0]
    call = trace.one("tool_call")
    assert (call["turn"], call["tool_name"], call["tool_call_id"], call["input"], call["output_bytes"], call["status"]) == \
        (0, "Read", "c1", {"path": "a"}, 8, "ok")
    assert call["parent_id"] == first["event_id"]
    assert trace.one("task_end")["turns"] == 2 and trace.one("task_end")["tool_calls"] == 1


def test_session_6_usage_that_shrinks_adds_nothing(lab):
    body = TWO_TURNS.replace("input=150, output=9", "input=40, output=9")
    second = lab.session(run(lab, body).ok()).trace.all("inference")[1]
    assert second["input_tokens"] == 0 and second["output_tokens"] == 2


def test_session_6_no_usage_is_never_a_zero(lab):
    line = lab.session(run(lab, 'started(); say("text", text="a"); say("turn-end", text="a")').ok()).trace.one("inference")
    assert {"input_tokens", "output_tokens", "cached_tokens"}.isdisjoint(line)


def test_session_6_a_turn_end_alone_closes_no_turn(lab):
    session = lab.session(run(lab, 'started(); say("turn-end", text="quiet")').ok())
    assert session.result_text == "quiet" and "inference" not in session.trace.types
    assert session.trace.one("task_end")["turns"] == 0


def test_session_6_deltas_and_thinking_open_no_turn(lab):
    body = """
        started()
        say("thinking-delta", text="hm"); say("text-delta", text="he"); say("tool-call-started", id="c", name="n")
        say("tool-call-progress", id="c", bytes=12)
        say("turn-end", text="he")
    """
    assert "inference" not in lab.session(run(lab, body).ok()).trace.types


def test_session_6_a_result_without_its_call_is_a_note(lab):
    body = 'started(); say("tool-result", id="nobody", output="x", is_error=True); say("turn-end", text="x")'
    trace = lab.session(run(lab, body).ok()).trace
    assert "nobody" in trace.one("harness_note")["text"] and "tool_call" not in trace.types


def test_session_6_a_failure_without_an_open_turn_is_no_turn(lab):
    session = lab.session(run(lab, 'started(); say("usage", input=5, output=1); ' +
                              'say("turn-failed", kind="quota", message="m")').failed("E-RUN-033"))
    assert "input_tokens" not in session.trace.one("inference") and session.trace.one("task_end")["turns"] == 0


def test_session_6_an_input_that_is_no_json_is_null(lab):
    body = 'started(); say("tool-call", id="c1", name="Read", input="not json"); ' + \
        'say("tool-result", id="c1", output="o", is_error=False); say("turn-end", text="x")'
    line = lab.session(run(lab, body).ok()).trace.one("tool_call")
    assert line["input"] is None and line["input_bytes"] == 8


def test_session_6_notes_and_retries_are_recorded(lab):
    body = 'started(); say("note", text="heads up"); say("retry", attempt=2, reason="busy"); print("plain words"); ' + \
        'say("turn-end", text="x")'
    trace = lab.session(run(lab, body).ok()).trace
    assert [line["text"] for line in trace.all("harness_note")] == ["heads up", "plain words"]
    retry = trace.one("harness_retry")
    assert (retry["attempt"], retry["reason"]) == (2, "busy")


def test_session_6_a_turn_past_the_cap_kills_the_harness(lab):
    body = TWO_TURNS + "time.sleep(60)\n"
    result = run(lab, body, inference={"max_turns": 1}).failed("E-RUN-033")

    assert "max-turns" in result.stderr and result.status == "failed"
    session = lab.session(result)
    failed, end = session.trace.one("harness_failed"), session.trace.one("harness_exit")
    assert (failed["kind"], failed["source"]) == ("max-turns", "runtime")
    assert (end["cause"], end["killed"], end["signal"], end["code"]) == ("max_turns", True, 9, None)
    assert len(session.trace.all("inference")) == 1
    assert session.trace.types.index("harness_failed") < session.trace.types.index("harness_exit")
    assert not (session.records / "out/result.txt").exists()


def test_session_6_a_ceiling_that_is_reached_ends_the_run(lab):
    body = TWO_TURNS.replace('say("text", text="Done.")', "time.sleep(60)")
    result = run(lab, body, inference={"max_session_tokens": 107})

    assert result.code == 1 and result.status == "spend_ceiling_reached"
    session = lab.session(result)
    reached = session.trace.one("spend_ceiling_reached")
    assert (reached["limit"], reached["ceiling"], reached["used"]) == ("session", 107, 107)
    end = session.trace.one("harness_exit")
    assert (end["cause"], end["killed"]) == ("spend_ceiling", True)
    assert session.result_text.startswith("stopped: ")


def test_session_6_a_huge_burst_of_lines_is_taken_in_order(lab):
    body = """
        started()
        for n in range(3000):
            say("note", text=str(n))
        say("turn-end", text="x" * 1000000)
    """
    session = lab.session(run(lab, body).ok())
    assert [line["text"] for line in session.trace.all("harness_note")] == [str(n) for n in range(3000)]
    assert len(session.result_text) == 1000000


def test_session_6_bytes_that_are_no_text_are_repaired(lab):
    body = 'started(); os.write(1, b"\\xff\\xfe\\r\\n"); say("turn-end", text="x")'
    assert lab.session(run(lab, body).ok()).trace.one("harness_note")["text"] == "��"


# --- endings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, code", [("auth", "harness_auth"), ("quota", "harness_quota"),
                                        ("harness-error", "harness_error"), ("other", "harness_other")])
def test_session_6_a_failed_turn_names_its_kind(lab, kind, code):
    body = f'started(); say("text", text="a"); say("turn-failed", kind="{kind}", message="no luck"); time.sleep(0.1)'
    result = run(lab, body).failed("E-RUN-033")

    assert kind in result.stderr and "no luck" in result.stderr and result.status == "failed"
    session = lab.session(result)
    failed = session.trace.one("harness_failed")
    assert (failed["kind"], failed["message"], failed["source"]) == (kind, "no luck", "harness")
    line = session.trace.one("inference")
    assert (line["decision"], line["error_code"], line["error"]) == ("error", code, "no luck")
    assert "input_tokens" not in line and session.trace.one("task_end")["turns"] == 1
    assert session.trace.one("harness_exit")["cause"] == "terminal" and "turn" not in session.trace.one("task_failed")
    assert not (session.records / "out/result.txt").exists()


def test_session_6_a_failed_turn_that_spent_is_counted(lab):
    body = 'started(); say("text", text="a"); say("usage", input=5, output=1); ' + \
        'say("turn-failed", kind="quota", message="m")'
    session = lab.session(run(lab, body).failed("E-RUN-033"))
    assert session.trace.one("inference")["input_tokens"] == 5
    assert session.trace.one("task_end")["turns"] == 1 and session.trace.one("session_end")["total_input_tokens"] == 5


def test_session_6_the_end_of_output_is_judged_by_the_driver(lab):
    ended = lab.session(run(lab, 'started(); sys.stderr.write("end: fine"); sys.exit(0)').ok())
    assert ended.result_text == "fine\n" and ended.trace.one("harness_exit")["cause"] == "eof"


def test_session_6_a_crash_names_code_and_stderr(lab):
    result = run(lab, 'started(); say("text", text="a"); sys.stderr.write("boom"); sys.exit(7)').failed("E-RUN-033")
    trace = lab.session(result).trace
    assert "harness-error" in result.stderr and "boom" in result.stderr
    assert trace.one("harness_exit")["code"] == 7
    assert trace.types.index("harness_exit") < trace.types.index("harness_failed"), "what classify-exit says comes after"


def test_session_6_a_signal_is_no_code(lab):
    result = run(lab, "started(); os.kill(os.getpid(), signal.SIGSEGV)").failed("E-RUN-033")
    end = lab.session(result).trace.one("harness_exit")
    assert (end["code"], end["signal"], end["killed"]) == (None, 11, False)


def test_session_6_the_tail_of_stderr_is_its_last_whole_lines(lab):
    body = 'started(); sys.stderr.write("".join(f"line {n}\\n" for n in range(2000))); sys.exit(1)'
    result = run(lab, body).failed("E-RUN-033")
    message = lab.session(result).trace.one("harness_failed")["message"]
    tail = message.split("stderr: ")[1]
    assert tail.startswith("line ") and "line 1200" not in tail and len(tail) <= 4096


def test_session_6_another_answer_of_classify_exit_is_an_error(lab):
    result = run(lab, 'started(); sys.stderr.write("odd"); sys.exit(1)').failed("E-RUN-034")
    assert "local/harness-lines" in result.stderr and "classify-exit" in result.stderr


def test_session_6_a_driver_that_traps_ends_the_run(lab):
    result = run(lab, 'started(); say("trap"); time.sleep(60)').failed("E-RUN-034")
    end = lab.session(result).trace.one("harness_exit")
    assert (end["cause"], end["killed"]) == ("driver_error", True)


def test_session_6_a_harness_that_lingers_after_its_end_is_killed(lab):
    body = ANSWER + "keep('pid', os.getpid())\ntime.sleep(60)\n"
    session = lab.session(run(lab, body).ok())
    end = session.trace.one("harness_exit")
    assert (end["cause"], end["killed"]) == ("terminal", True) and end["duration_ms"] >= 2900
    assert session.result_text == "hello" and not pid_exists(kept(session, "pid"))


def test_session_6_children_of_the_harness_go_with_it(lab):
    body = dedent("""
        child = subprocess.Popen(["/bin/sleep", "1000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        keep("pid", child.pid)
    """) + ANSWER
    session = lab.session(run(lab, body).ok())
    eventually(lambda: not pid_exists(kept(session, "pid")), 5)


def test_session_35_a_silent_harness_is_killed(lab):
    body = "started(); keep('pid', os.getpid()); sys.stderr.write('busy\\n'); time.sleep(600)"
    result = run(lab, body, env={"MURMUR_HARNESS_INACTIVITY_SECS": "1"}).failed("E-RUN-035")

    session = lab.session(result)
    end = session.trace.one("harness_exit")
    assert (end["cause"], end["killed"]) == ("inactivity", True)
    assert session.trace.one("inference")["error_code"] == "harness_inactive"
    assert not pid_exists(kept(session, "pid")) and "1 s" in result.stderr


def test_session_35_a_line_now_and_then_is_activity(lab):
    body = """
        started()
        for n in range(8):
            time.sleep(0.4)
            say("note", text="still here")
        say("turn-end", text="x")
    """
    run(lab, body, env={"MURMUR_HARNESS_INACTIVITY_SECS": "2"}).ok()


# --- cancel ----------------------------------------------------------------------------------------------------------

QUEUE = {"task_acceptance": "queue", "after_task": "exit"}


def cancel_while(lab, body, ready="ready", **how):
    """Starts it, ends it with SIGTERM once the harness is ready; the session and how it ended."""
    running = harness_project(lab, body, **how).start("--task", "x")
    session_id = running.session_id
    work = lab.directory / "agent/workdir" / session_id
    eventually(lambda: (work / ready).exists(), 20)
    running.signal()
    result = running.result(40).failed()
    assert result.status == "canceled"
    return lab.session(session_id), result


def test_session_6_a_cancel_is_said_on_stdin(lab):
    body = """
        started(); keep("ready", os.getpid())
        said = sys.stdin.readline()
        keep("heard", said)
        say("turn-end", text="as far as I came")
    """
    session, _ = cancel_while(lab, body, config={"keep_stdin": True, "interrupt": "stop now\n", "stdin": False})

    assert kept(session, "heard") == "stop now\n"
    line, end = session.trace.one("harness_interrupt"), session.trace.one("harness_exit")
    assert (line["method"], line["delivered"], line["grace_ms"]) == ("stdin-message", True, 10000)
    assert (end["cause"], end["killed"]) == ("canceled", True)
    assert session.trace.one("task_canceled")["phase"] == "harness"
    assert session.result_text.startswith("canceled:")


def test_session_6_a_cancel_is_a_sigint(lab):
    body = """
        def stop(*_):
            keep("heard", "SIGINT"); say("turn-failed", kind="canceled", message="stopped"); sys.exit(0)
        signal.signal(signal.SIGINT, stop)
        started(); keep("ready", 1)
        while True: time.sleep(0.1)
    """
    session, _ = cancel_while(lab, body, driver="harness-signal")

    assert kept(session, "heard") == "SIGINT"
    assert session.trace.one("harness_interrupt")["method"] == "signal-int"
    assert session.trace.one("harness_exit")["signal"] is None


@pytest.mark.parametrize("driver, config, method", [
    ("harness-unsupported", None, "unsupported"), ("harness-lines", {"interrupt": "x"}, "stdin-message")])
def test_session_6_what_cannot_be_interrupted_is_killed_at_once(lab, driver, config, method):
    session, _ = cancel_while(lab, "started(); keep('ready', os.getpid()); time.sleep(60)", driver=driver, config=config)

    line, end = session.trace.one("harness_interrupt"), session.trace.one("harness_exit")
    assert (line["method"], line["delivered"], line["grace_ms"]) == (method, False, 0)
    assert (end["cause"], end["killed"], end["signal"]) == ("canceled", True, 9)
    assert not pid_exists(kept(session, "ready"))


def test_session_34_a_second_sigterm_leaves_no_harness(lab):
    body = """
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        child = subprocess.Popen(["/bin/sleep", "1000"])
        started(); keep("ready", [os.getpid(), child.pid])
        while True: time.sleep(0.1)
    """
    running = harness_project(lab, body, driver="harness-signal").start("--task", "x")
    session = lab.session(running.session_id)
    eventually(lambda: (work_of(session) / "ready").exists(), 20)
    running.signal()
    eventually(lambda: "harness_interrupt" in session.trace.types, 10)
    running.signal()
    result = running.result(10)

    assert result.code == 143 and lab.runtime_directories == []
    eventually(lambda: not any(pid_exists(pid) for pid in kept(session, "ready")), 5)


def test_session_6_a_killed_runtime_takes_its_harness_with_it(lab):
    running = harness_project(lab, "started(); keep('ready', os.getpid()); time.sleep(1000)").start("--task", "x")
    session = lab.session(running.session_id)
    eventually(lambda: (work_of(session) / "ready").exists(), 20)
    os.kill(running.pid, signal.SIGKILL)
    running.result(10)
    eventually(lambda: not pid_exists(kept(session, "ready")), 5)


def test_session_33_a_deadline_ends_a_harness(lab):
    running = harness_project(lab, "started(); keep('ready', 1); time.sleep(100)", driver="harness-unsupported") \
        .start("--task", "x", "--deadline", "2")
    result = running.result(30).failed("E-RUN-053")
    types = lab.session(result).trace.types
    assert types.index("deadline_reached") < types.index("task_canceled") and result.status == "deadline_reached"


# --- sessions of the harness -----------------------------------------------------------------------------------------

REMEMBER = dedent("""
    keep("seen", {"mode": request["mode"], "session": request["session"], "task": request["task"]})
    started(id=request["session"] if request["mode"] == "resume" else "own-1")
    say("text", text="ok"); say("turn-end", text="ok")
""")
THREADED = {"lifecycle": {"conversation": "threaded"}}


def map_file(lab, context="c1", name="agent"):
    return lab.murmur_home / "conversations" / name / context / "harness-session.json"


def test_session_11_4_a_threaded_context_resumes_its_harness_session(lab):
    project = harness_project(lab, REMEMBER, **THREADED)

    first = lab.session(project.run("--task", "one", "--context", "c1").ok())
    written = json.loads(map_file(lab).read_text())
    second = lab.session(project.run("--task", "two", "--context", "c1").ok())
    again = json.loads(map_file(lab).read_text())

    assert kept(first)["mode"] == "new"
    assert list(written) == ["type", "session_id", "harness", "driver", "created_ms", "updated_ms"]
    assert (written["type"], written["session_id"], written["harness"], written["driver"]) == \
        ("murmur.harness-session", "own-1", "lines", "local/harness-lines")
    assert oct(map_file(lab).stat().st_mode)[-3:] == "600"
    assert kept(second) == {"mode": "resume", "session": "own-1", "task": "two"}
    assert again["created_ms"] == written["created_ms"] and again["updated_ms"] >= written["updated_ms"]
    assert not map_file(lab).with_name("conversation.jsonl").exists()
    shown = lab.mur("conversation", "show", "c1", "--json", cwd=project.directory).ok().json
    assert shown["harness_session"]["session_id"] == "own-1" and shown["messages"] == []


THREAD_COUNTS = dedent("""
    resumes = request["mode"] == "resume"
    started(id=request["session"] if resumes else "own-1")
    before = json.load(open("before")) if resumes and os.path.exists("before") else 0
    keep("before", before + 100)
    say("text", text="ok"); say("usage", input=before + 100, output=before + 7, **{"cache-read": before})
    say("turn-end", text="ok")
""")


def counting(lab, **manifest):
    """A capsule whose harness tells what its whole session used, and a driver that says so."""
    project = harness_project(lab, THREAD_COUNTS, **THREADED, **manifest)
    lab.publish("counts-threads", own_component("harness-lines"), "driver", harness={"usage": "thread"})
    manifest = project / "murmur.yaml"
    manifest.write_text(manifest.read_text().replace("local/harness-lines", "local/counts-threads"))
    (project / "work").mkdir()
    return project


def used(session):
    return [(line["input_tokens"], line["output_tokens"]) for line in session.trace.all("inference")]


def test_session_11_4_a_session_that_counts_its_whole_thread_is_charged_for_what_a_task_added(lab):
    project = counting(lab)
    seen = []
    for task in ("one", "two", "three"):
        session = lab.session(project.run("--task", task, "--context", "c1", "--workdir", project / "work").ok())
        seen += used(session)
    assert seen == [(100, 7), (100, 100), (100, 100)]
    assert json.loads(map_file(lab).read_text())["used"] == {"input": 300, "output": 207, "cache_read": 200, "cache_creation": 0, "thinking": 0}
    (project / "work" / "before").unlink()
    anew = lab.session(project.run("--task", "counts anew", "--context", "c1", "--workdir", project / "work").ok())
    assert used(anew) == [(100, 7)]


def test_session_11_4_a_harness_that_counts_each_run_is_charged_for_all_of_it(lab):
    project = harness_project(lab, THREAD_COUNTS, **THREADED)
    (project / "work").mkdir()
    seen = [used(lab.session(project.run("--task", "x", "--context", "c1", "--workdir", project / "work").ok())) for _ in range(2)]
    assert seen == [[(100, 7)], [(200, 107)]] and "used" not in json.loads(map_file(lab).read_text())


def test_session_11_4_a_stateless_capsule_remembers_nothing(lab):
    project = harness_project(lab, REMEMBER)
    project.run("--task", "one", "--context", "c1").ok()
    second = lab.session(project.run("--task", "two", "--context", "c1").ok())
    assert kept(second)["mode"] == "new" and not map_file(lab).exists()


def test_session_11_4_a_run_that_did_nothing_is_not_remembered(lab):
    run(lab, 'started(); say("turn-failed", kind="auth", message="log in")', "--context", "c1", **THREADED) \
        .failed("E-RUN-033")
    assert not map_file(lab).exists()


def test_session_11_4_resume_continues_the_harness_session(lab):
    project = harness_project(lab, REMEMBER, **THREADED)
    first = lab.session(project.run("--task", "one").ok())

    second = lab.session(project.run("--resume", "--task", "two").ok())

    assert kept(second)["mode"] == "resume"
    assert second.trace.one("session_start")["resumed_from"] == first.id
    project.run("--resume", "--resume-mode", "compact", "--task", "x").failed("E-RUN-037")


def test_session_11_4_resume_needs_the_map_file(lab):
    project = harness_project(lab, REMEMBER)
    project.run("--task", "one").ok()
    before = len(lab.records)
    project.run("--resume", "--task", "two").failed("E-RUN-017")
    assert len(lab.records) == before


LOST = dedent("""
    if request["mode"] == "resume":
        say("turn-failed", kind="harness-error", message="no such session"); sys.exit(1)
""") + REMEMBER


def test_session_36_a_lost_session_fails_until_it_is_forgotten(lab):
    project = harness_project(lab, LOST, **THREADED)
    project.run("--task", "one", "--context", "c1").ok()
    before = map_file(lab).read_bytes()

    for _ in range(2):
        told = project.run("--task", "two", "--context", "c1").failed("E-RUN-036").stderr
        assert "c1" in told and "own-1" in told and str(map_file(lab)) in told and "--forget-session" in told
        assert map_file(lab).read_bytes() == before
    session = lab.session(project.run("--task", "three", "--context", "c1", "--forget-session").ok())

    forgotten = session.trace.one("harness_session_forgotten")
    assert (forgotten["context_id"], forgotten["harness_session_id"], forgotten["requested_by"]) == ("c1", "own-1", "cli")
    assert kept(session)["mode"] == "new"
    project.run("--task", "four", "--context", "c1").failed("E-RUN-036")


def test_session_39_forgetting_needs_a_harness(lab):
    lab.agent("other", steps=[{"text": "x"}]).run("--task", "x", "--context", "c", "--forget-session").failed("E-RUN-039")
    harness_project(lab, REMEMBER).run("--task", "x", "--forget-session").failed(exit_status=2)


def test_session_6_keep_working_goes_on_in_the_same_harness_session(lab):
    body = """
        number = len([name for name in os.listdir(".") if name.startswith("seen")])
        keep(f"seen{number}", {"mode": request["mode"], "session": request["session"], "task": request["task"],
                               "stdin": sys.stdin.read()})
        started(id="own-1"); say("text", text="x"); say("turn-end", text=f"answer {number}")
    """
    session = lab.session(run(lab, body, lifecycle={"keep_working": {"message": "go on", "limit": 1}}).ok())

    second = kept(session, "seen1")
    assert (second["mode"], second["session"], second["task"], second["stdin"]) == ("resume", "own-1", "go on", "go on")
    assert session.result_text == "answer 1"
    assert [line["session_mode"] for line in session.trace.all("harness_start")] == ["new", "resume"]


def reopening_hook(lab, **rule):
    return Hook(lab, name="check", binding="on-task-end", commit_policy="reopen-task",
                on={"on-task-end": {"answer": "reopen-task", "text": "say more", "times": 1, **rule}})


COUNTING = dedent("""
    number = len([name for name in os.listdir(".") if name.startswith("seen")])
    keep(f"seen{number}", {"mode": request["mode"], "task": request["task"]})
    started(id="own-1")
""")


def test_session_4_5_a_reopened_harness_goes_on_with_the_hooks_words_alone(lab):
    session = lab.session(run(lab, COUNTING + 'say("text", text="x"); say("turn-end", text=f"answer {number}")',
                              tools=[reopening_hook(lab).entry]).ok())

    reopened, second = session.trace.one("task_reopened"), kept(session, "seen1")
    assert reopened["attempt_context"] == "continued" and second["mode"] == "resume"
    assert "## Reopen 1" in second["task"] and second["task"].endswith("say more") and "do X" not in second["task"]
    assert session.result_text == "answer 1"


def test_session_4_5_without_a_session_to_go_on_with_the_attempt_restarts_from_the_rewritten_task(lab):
    body = COUNTING + """
if number == 0:
    say("turn-failed", kind="auth", message="log in"); sys.exit(1)
say("text", text="x"); say("turn-end", text="done")
"""
    session = lab.session(run(lab, body, tools=[reopening_hook(lab).entry]).ok())

    reopened, second = session.trace.one("task_reopened"), kept(session, "seen1")
    assert reopened["attempt_context"] == "restarted" and second["mode"] == "new"
    head, feedback = second["task"].split("\n\n---\n\n")
    assert head == "do X" and feedback.startswith("# Reopen feedback\n") and "## Reopen 1" in feedback
    assert "check" in feedback and "say more" in feedback and session.result_text == "done"
    failed, = session.trace.all("task_failed")
    assert failed["cause"] == "runtime_error"


def test_session_9_hooks_see_the_turns_and_calls_of_a_harness(lab):
    hook = Hook(lab)
    session = lab.session(run(lab, TWO_TURNS, tools=[hook.entry]).ok())

    events = [event["event"] for event in hook.events(session)]
    assert events[1:] == ["on-session-start", "on-task-start", "on-inference", "on-tool-call", "on-inference", "on-task-end",
                          "on-session-end"]
    first, last = hook.seen(session, "on-inference")
    assert (first["turn"], first["input_tokens"], first["output_tokens"], first["decision"], first["tool_name"]) == \
        (0, 100, 7, "tool_call", "Read")
    assert "prompt" not in first and "tools" not in first and last["output"] == "Done."
    tool, = hook.seen(session, "on-tool-call")
    assert (tool["tool_name"], tool["input"], tool["status"]) == ("Read", '{"path":"a"}', "ok")
    assert hook.seen(session, "on-session-end")[0]["total_turns"] == 2


def test_session_9_4_there_is_no_completion_to_ask_a_harness_for(lab):
    hook = Hook(lab, on={"on-task-end": {"ask": "how was it?"}})
    session = lab.session(run(lab, ANSWER, tools=[hook.entry]).ok())
    assert "no driver" in hook.seen(session, "on-task-end")[0]["ask_error"]


def test_session_11_6_a_seed_is_rejected_for_its_transport(lab):
    hook = Hook(lab, binding="on-task-start", commit_policy="seed-context", on={"on-task-start": {
        "answer": "seed-context", "messages": [{"role": "user", "content": "remember"}]}})
    trace = lab.session(run(lab, ANSWER, tools=[hook.entry]).ok()).trace
    line = trace.one("context_seed")
    assert (line["outcome"], line["reason"], line["tokens"]) == ("rejected", "unsupported_transport", 0)
    assert trace.one("hook_dispatch_error")["arm"] == "seed-rejected"


def test_session_26_a_done_check_reopens_a_harness(lab):
    body = COUNTING + 'open("done", "w").close() if number else None; say("text", text="x"); say("turn-end", text=f"answer {number}")'
    session = lab.session(run(lab, body, capabilities={"shell": {"allow": ["bash"]}},
                              lifecycle={"done_check": {"command": "bash -c '[ -e done ]'", "limit": 2}}).ok())

    assert [line["outcome"] for line in session.trace.all("done_check")] == ["failed", "passed"]
    assert "<untrusted-content source=done-check>" in kept(session, "seen1")["task"] and session.result_text == "answer 1"


def test_session_6_the_trace_reads_well(lab):
    result = run(lab, 'started(auth="api"); say("turn-failed", kind="quota", message="all spent")').failed()
    shown = lab.mur("trace", "show", lab.session(result).id, cwd=lab.directory / "agent").ok().stdout
    assert "harness failed (quota): all spent" in shown and "W-SEC-031" in shown


# --- at the door -----------------------------------------------------------------------------------------------------

DOOR = "https://docs.murmur.nexus/reference/agent-card/#murmur-door-v1"


def test_door_5_a_message_may_forget_the_harness_session(lab):
    project = harness_project(lab, REMEMBER, lifecycle={**SLEEPER, "conversation": "threaded"})
    running = project.start()
    running.url
    session = lab.session(running.session_id)

    def ask(message_id, **more):
        answer = call(running, "SendMessage", message("go", messageId=message_id, contextId="c1", **more))
        assert answer["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED", answer
        return kept(session)["mode"]

    modes = [ask("m1"), ask("m2"), ask("m3", metadata={DOOR: {"forgetSession": True}}), ask("m4")]
    running.signal()
    running.result(20).ok()

    assert modes == ["new", "resume", "new", "resume"]
    forgotten = session.trace.one("harness_session_forgotten")
    assert (forgotten["context_id"], forgotten["harness_session_id"], forgotten["requested_by"]) == ("c1", "own-1", "a2a")


def test_door_5_without_a_harness_there_is_nothing_to_forget(lab):
    running = lab.agent(steps=[{"text": "x"}], lifecycle=SLEEPER).start()
    running.url
    answer = call(running, "SendMessage", message("go", metadata={DOOR: {"forgetSession": True}}))
    running.signal()
    running.result(20).ok()
    assert answer["error"]["code"] == -32602


def test_door_8_a_watcher_sees_what_the_harness_says_as_it_says_it(lab):
    body = """
        started()
        say("thinking-delta", text="hm"); say("text-delta", text="he"); say("text-delta", text="llo"); say("text", text="hello")
        say("tool-call-started", id="c1", name="Read"); say("tool-call-progress", id="c1", bytes=12)
        say("tool-call", id="c1", name="Read", input="{}"); say("tool-result", id="c1", output="out", is_error=False)
        say("turn-end", text="all done")
    """
    running = harness_project(lab, body, lifecycle=SLEEPER).start()
    running.url
    with rpc(running, "SendStreamingMessage", message("go"), {"A2A-Extensions": STREAM}) as reply:
        seen = list(events(reply))
    running.signal()
    running.result(20).ok()

    text = json.dumps(seen)
    assert '"he"' in text and '"llo"' in text and '"hello"' not in text, "deltas are replaced, never repeated"
    assert "hm" in text and "tool-call-started" in text and "Read" in text and '"out"' in text
    assert seen[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"

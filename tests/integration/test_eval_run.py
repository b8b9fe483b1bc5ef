# SPDX-License-Identifier: Apache-2.0
#
# `mur eval run`: a data set run against one capsule or two, its record, and `mur eval diff --run`.

import hashlib
import json
import os
import socket
import stat

import pytest

from tests.support.hooks import Hook
from tests.support.lab import SLOWER
from tests.support.polling import eventually

SCORE = json.dumps({"record_type": "event_score", "ts": 1, "turn": 0, "event_type": "inference", "scorer": "s1",
                    "result": "pass"}) + "\n"
OVERALL = json.dumps({"record_type": "dataset_run", "ts": 2, "dataset_id": "ds", "case_id": "c1", "overall": "pass",
                      "scores": {"s1": 0.75}}) + "\n"
MEASURES = ["turns", "input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "agent_ms"]


class Bench:
    """A folder with a data set, and capsules to run it against."""

    def __init__(self, lab):
        self.lab = lab
        self.folder = lab.project("bench")

    def capsule(self, name="agent", text="done", scores=SCORE + OVERALL, shell=("sh", "cat", "ls"), **more):
        """Makes one file and answers."""
        tools = []
        if scores is not None:
            hook = Hook(self.lab, name="score", on={"on-session-end": {"scores": scores, "env": [
                "MURMUR_CASE_ID", "MURMUR_DATASET_ID", "MURMUR_EVAL_CONFIG"]}})
            self.hook = hook
            tools.append(hook.entry)
        steps = more.pop("steps", [
            {"tool_calls": [{"name": "sh", "input": {"command": "echo made > made.txt"}}],
             "usage": {"input_tokens": 100, "output_tokens": 7}},
            {"text": text, "usage": {"input_tokens": 120, "output_tokens": 5}}])
        return self.lab.agent(name=name, steps=steps, tools=tools, capabilities={"shell": {"allow": list(shell)}}, **more)

    def cases(self, *cases):
        self.folder.write("task.md", "do it")
        self.folder.write("eval.jsonl", "".join((case if isinstance(case, str) else json.dumps(case)) + "\n" for case in cases))
        return self

    def run(self, capsule, *arguments, **how):
        return self.folder.mur("eval", "run", capsule.directory, *arguments, **how)

    @property
    def record_paths(self):
        return sorted((self.lab.murmur_home / "records").rglob("evr_*.json"))

    @property
    def record(self):
        path, = self.record_paths
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        return json.loads(path.read_text())


@pytest.fixture
def bench(lab):
    return Bench(lab)


def digest(folder):
    """As the record's chapter defines it."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*"), key=lambda path: os.fsencode(path.relative_to(folder))):
        mode = stat.S_IMODE(path.stat().st_mode)
        total.update(f"{'d' if path.is_dir() else 'f'} {mode:o} {path.relative_to(folder)}".encode() + b"\0")
        if path.is_file():
            total.update(str(path.stat().st_size).encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def test_records_eval_run_runs_a_case_checks_it_and_keeps_a_record(bench):
    bench.folder.write("start/src/a.txt", "given")
    bench.folder.write("start/src.x", "")
    (bench.folder / "start/src").chmod(0o750)
    bench.folder.write("tests/judge.sh", "cat made.txt src/a.txt; echo no >&2\n")
    capsule = bench.capsule()
    bench.cases({"case_id": "c1", "task_path": "task.md", "start": "start",
                 "check": {"command": "sh judge.sh", "files": "tests"}})

    result = bench.run(capsule).ok()

    record = bench.record
    assert list(record) == ["record_version", "run_id", "started_at_ms", "ended_at_ms", "complete", "dataset", "repeat", "arms",
                            "cases"]
    assert (record["record_version"], record["complete"], record["dataset"], record["repeat"]) == \
        (1, True, str(bench.folder / "eval.jsonl"), 1)
    manifest = capsule / "murmur.yaml"
    assert record["arms"] == [{"name": "baseline", "manifest": str(manifest), "model": "scripted",
                               "manifest_sha256": hashlib.sha256(manifest.read_bytes()).hexdigest()}]
    case, = record["cases"]
    assert list(case) == ["case_id", "task_path", "start", "start_sha256", "check", "runs"]
    assert case["start"] == str(bench.folder / "start")
    assert case["start_sha256"] == digest(bench.folder / "start")
    assert case["check"] == {"command": "sh judge.sh", "files": str(bench.folder / "tests"), "timeout_secs": 600}
    run, = case["runs"]
    assert list(run) == ["arm", "repeat", "order", "session_id", "records_dir", "workdir", "start_sha256", "outcome",
                         "exit_status", "check_result", "check", *MEASURES, "scores_overall"]
    assert (run["arm"], run["repeat"], run["order"], run["outcome"], run["exit_status"]) == ("baseline", 0, 0, "completed", "ok")
    assert run["start_sha256"] == case["start_sha256"] and run["check_result"] == "pass" and run["scores_overall"] == "pass"
    check = run["check"]
    assert list(check) == ["result", "exit_code", "duration_ms", "resource_limit", "output_tail", "output_log", "error",
                           "containment"]
    assert (check["exit_code"], check["output_tail"]) == (0, "made\ngivenno\n")
    with open(check["output_log"], encoding="utf-8") as log:
        assert log.read() == "made\ngivenno\n"
    session = bench.lab.session(run["session_id"])
    end = session.trace.one("session_end")
    assert check["containment"] == session.trace.one("session_start")["containment_achieved"]
    assert (run["turns"], run["agent_ms"]) == (end["total_turns"], end["duration_ms"])
    assert (run["input_tokens"], run["output_tokens"], run["cached_tokens"]) == (220, 12, None)
    assert run["records_dir"] == str(session.records) and (bench.record_paths[0].parent == session.records.parent)
    seen, = bench.hook.seen(session, "on-session-end")
    assert seen["MURMUR_CASE_ID"] == "c1" and "MURMUR_DATASET_ID" not in seen
    lines = result.stdout.splitlines()
    assert lines[:3] == ["Running 1 case(s) …", "  case: c1", f"    result: pass  session: {run['session_id']}"]
    assert lines[4:8] == [f"── Summary {'─' * 38}", "pass: 1/1", "", f"  c1{' ' * 22} pass  s1=0.75  ({run['workdir']})"]
    assert lines[-2:] == [f"run: {record['run_id']}", f"  hint: mur eval diff --run {record['run_id']}"]
    assert not [line for line in lines if line.startswith("status:")] and (capsule / "murmur.lock").exists()
    assert not bench.lab.runtime_directories


def test_records_eval_run_compares_two_arms_in_alternating_order(bench):
    baseline = bench.capsule()
    variant = bench.capsule(name="other", scores=None, steps=[{"text": "at once", "usage": {"input_tokens": 50, "output_tokens": 2}}])
    bench.cases({"case_id": "c1", "task_path": "task.md", "check": "ls made.txt"})

    result = bench.run(baseline, "--variant", variant / "murmur.yaml", "--repeat", "2").ok()

    runs = bench.record["cases"][0]["runs"]
    assert [(run["arm"], run["repeat"], run["order"]) for run in runs] == [
        ("baseline", 0, 0), ("variant", 0, 1), ("variant", 1, 0), ("baseline", 1, 1)]
    assert [run["check_result"] for run in runs] == ["pass", "fail", "fail", "pass"]
    assert [run["scores_overall"] for run in runs] == ["pass", "no_scores", "no_scores", "pass"]
    assert "    arm: variant  repeat: 2\n    result: no_scores  session: ses_" in result.stdout
    assert "left no scores" in result.stderr
    assert (baseline / "murmur.lock").exists() and not (variant / "murmur.lock").exists()

    report = baseline.mur("eval", "diff", "--run", "--json").ok().json
    assert list(report) == ["arms", "cases", "complete", "repeat", "run_id", "runs_expected", "runs_recorded", "total"]
    assert (report["complete"], report["repeat"], report["runs_recorded"], report["runs_expected"]) == (True, 2, 4, 4)
    case, = report["cases"]
    assert list(case["arms"]["variant"]) == sorted(case["arms"]["variant"])
    assert case["arms"]["baseline"]["turns"] == {"max": 2, "median": 2, "min": 2}
    assert case["arms"]["baseline"]["cached_tokens"] is None
    assert {key: case["arms"]["variant"][key] for key in ("runs", "check_runs", "check_pass", "check_not_run", "scores_runs",
                                                          "scores_pass")} == {
        "runs": 2, "check_runs": 2, "check_pass": 0, "check_not_run": 0, "scores_runs": 0, "scores_pass": 0}
    assert report["total"]["baseline"]["input_tokens"] == 440 and report["total"]["variant"]["output_tokens"] == 4
    by_key = {(run["arm"], run["repeat"]): run["records_dir"] + "/trace.jsonl" for run in runs}
    assert case["trace_diffs"] == [[by_key["baseline", repeat], by_key["variant", repeat]] for repeat in (0, 1)]

    shown = baseline.mur("eval", "diff", "--run", report["run_id"][-6:]).ok().stdout
    assert shown.startswith(f"── Eval run: {report['run_id']} {'─' * 29}\n  dataset:  {bench.folder / 'eval.jsonl'}\n"
                            "  repeat:   2\n  status:   complete\n"
                            f"  baseline: {baseline / 'murmur.yaml'}\n  variant:  {variant / 'murmur.yaml'}\n  model:    scripted\n")
    rows = {line[:23].strip(): line[23:].split("  ") for line in shown.splitlines() if line.startswith("  ")}
    assert "delta (variant − baseline)" in shown
    assert [cell.strip() for cell in rows["input tokens"] if cell.strip()] == ["440", "100", "-340"]  # the last block: total
    assert "2/2 pass" in "".join(rows["check"]) and "0/2 pass" in "".join(rows["check"])
    assert f"mur trace diff {case['trace_diffs'][0][0]} {case['trace_diffs'][0][1]}\n" in shown
    baseline.mur("trace", "diff", *case["trace_diffs"][0]).ok()


def test_records_eval_run_hands_the_scoring_hook_its_config(bench):
    capsule = bench.capsule(observability={"eval": {"dataset_id": "ds", "scorers": [
        {"type": "max_turns", "max": 3}, {"type": "tool_sequence", "name": "order", "expected": ["sh"]}]}})
    bench.cases({"case_id": "c1", "task_path": "task.md"})

    bench.run(capsule).ok()

    session = bench.lab.session(bench.record["cases"][0]["runs"][0]["session_id"])
    seen, = bench.hook.seen(session, "on-session-end")
    assert seen["MURMUR_DATASET_ID"] == "ds"
    assert json.loads(seen["MURMUR_EVAL_CONFIG"]) == {"dataset_id": "ds", "scorers": [
        {"type": "max_turns", "name": "max_turns", "max": 3}, {"type": "tool_sequence", "name": "order", "expected": ["sh"]}]}
    assert bench.record["cases"][0]["runs"][0]["check_result"] is None


@pytest.mark.parametrize("check, result, exit_code", [
    ("sh -c 'exit 3'", "fail", 3), ({"command": "sh -c 'while :; do :; done'", "timeout_secs": 1}, "timed_out", None)])
def test_records_eval_run_a_check_may_fail_or_run_out_of_time(bench, check, result, exit_code):
    bench.cases({"case_id": "c1", "task_path": "task.md", "check": check})

    bench.run(bench.capsule()).ok()

    run = bench.record["cases"][0]["runs"][0]
    assert (run["check_result"], run["check"]["exit_code"], run["outcome"]) == (result, exit_code, "completed")


def test_records_eval_run_copies_no_file_through_a_planted_link(bench):
    outside = bench.folder.write("outside.txt", "mine")
    bench.folder.write("tests/made.txt", "theirs")
    capsule = bench.capsule(shell=("sh", "ln"), steps=[
        {"tool_calls": [{"name": "sh", "input": {"command": f"ln -s {outside} made.txt"}}]}, {"text": "done"}])
    bench.cases({"case_id": "c1", "task_path": "task.md", "check": {"command": "sh -c true", "files": "tests"}})

    bench.run(capsule).ok()

    run = bench.record["cases"][0]["runs"][0]
    assert run["check_result"] == "error" and "made.txt" in run["check"]["error"]
    assert outside.read_text() == "mine"


def test_records_eval_run_a_missing_task_is_a_warning_only(bench):
    bench.cases({"case_id": "c1", "task_path": "nowhere.md"})

    result = bench.run(bench.capsule(), env={"MURMUR_A2A_TIMEOUT_SECS": "1"}).ok()

    run = bench.record["cases"][0]["runs"][0]
    assert "nowhere.md" in result.stderr and (run["outcome"], run["turns"], run["exit_status"]) == ("completed", 0, "ok")


def test_records_eval_run_a_session_that_cannot_be_staged_is_recorded_and_the_run_goes_on(bench):
    baseline = bench.capsule()
    variant = bench.capsule(name="other")
    text = (variant / "murmur.yaml").read_text().replace("local/score", "local/absent")
    (variant / "murmur.yaml").write_text(text)
    bench.cases({"case_id": "c1", "task_path": "task.md", "check": "ls"})

    result = bench.run(baseline, "--variant", variant.directory).ok()

    runs = bench.record["cases"][0]["runs"]
    assert [(run["outcome"], run["check_result"]) for run in runs] == [("completed", "pass"), ("stage_failed", "not_run")]
    assert (runs[1]["session_id"], runs[1]["exit_status"], runs[1]["turns"]) == (None, None, None)
    assert "E-RUN-008" in result.stderr and bench.record["complete"] is True


def test_records_eval_run_a_session_that_cannot_be_launched_is_not_checked(bench):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        bench.cases({"case_id": "c1", "task_path": "task.md", "check": "ls"})
        result = bench.run(bench.capsule(network={"internal_port": port})).ok()

    run = bench.record["cases"][0]["runs"][0]
    assert (run["outcome"], run["check_result"], run["check"], run["turns"]) == ("launch_failed", "not_run", None, None)
    assert "E-RUN-010" in result.stderr and run["session_id"].startswith("ses_")


@pytest.mark.parametrize("case, words", [
    ({"start": "absent"}, "absent"), ({"start": "task.md"}, "task.md"), ({"start": "linked"}, "link"),
    ({"check": " "}, "empty"), ({"check": {"command": "ls", "timeout_secs": 0}}, "timeout_secs"),
    ({"check": {"command": "ls", "files": "absent"}}, "absent")])
def test_records_23_a_case_that_cannot_be_run_is_refused_before_staging(bench, case, words):
    capsule = bench.capsule()
    bench.folder.write("linked/a.txt", "x")
    (bench.folder / "linked/b").symlink_to("a.txt")
    bench.cases({"case_id": "c1", "task_path": "task.md", **case})

    result = bench.run(capsule).failed("E-EVAL-003")

    assert words in result.stderr and "c1" in result.stderr and result.stdout == "status:  failed\n"
    assert not bench.lab.records and not bench.record_paths and not (capsule / "murmur.lock").exists()


def test_records_23_arms_that_cannot_be_compared_are_refused(bench):
    baseline = bench.capsule()
    other = bench.capsule(name="other", inference={"model": "better"})
    bench.cases({"case_id": "c1", "task_path": "task.md"})
    result = bench.run(baseline, "--variant", other.directory).failed("E-EVAL-004")
    assert "scripted" in result.stderr and "better" in result.stderr and result.stdout == "status:  failed\n"

    bench.cases({"case_id": "c1", "task_path": "task.md", "check": "make test"})
    assert "make" in bench.run(baseline).failed("E-EVAL-004").stderr
    assert not bench.lab.records


def test_records_23_repeat_zero_is_a_usage_error(bench):
    assert bench.run(bench.capsule(), "--repeat", "0").failed(exit_status=2).stdout == ""


@pytest.mark.parametrize("line", ["no json", "[]", '{"case_id":"c"}', '{"task_path":"t"}', '{"case_id":"c","task_path":"t","check":3}',
                                  '{"case_id":"c","task_path":"t","start":3}', '{"case_id":"c","task_path":"t","check":{}}'])
def test_records_eval_run_a_bad_line_is_named(bench, line):
    bench.cases({"case_id": "c1", "task_path": "task.md"}, "", line)
    result = bench.run(bench.capsule()).failed("E-EVAL-001")
    assert "eval.jsonl:3: " in result.stderr and result.stdout == "status:  failed\n"


def test_records_eval_run_what_is_missing_or_empty_is_said(bench):
    capsule = bench.capsule()
    assert "eval.jsonl" in bench.run(capsule).failed("E-IO-001").stderr
    bench.cases()
    bench.run(capsule).failed("E-IO-003")
    bench.cases({"case_id": "c1", "task_path": "task.md"})
    missing = bench.folder.mur("eval", "run", "nowhere").failed("E-IO-001")
    assert missing.stdout == "status:  failed\n"


def test_records_24_a_killed_eval_run_leaves_a_record_of_what_finished(bench):
    capsule = bench.capsule(steps=[
        {"tool_calls": [{"name": "sh", "input": {"command": "if [ -e slow ]; then touch up; sleep 100; fi"}}]}, {"text": "done"}],
        shell=("sh", "touch", "sleep"))
    bench.folder.write("slow/slow", "")
    bench.cases({"case_id": "quick", "task_path": "task.md"}, {"case_id": "slow", "task_path": "task.md", "start": "slow"})
    running = bench.lab.start("eval", "run", capsule.directory, cwd=bench.folder.directory)
    eventually(lambda: list(capsule.directory.glob("workdir/*/up")), 30 * SLOWER, "the second case runs")

    running.process.kill()
    running.process.wait()

    assert bench.record["complete"] is False
    assert [len(case["runs"]) for case in bench.record["cases"]] == [1, 0]
    eventually(lambda: not list(bench.lab.processes()), 30 * SLOWER, "nothing of it lives on")
    shown = capsule.mur("eval", "diff", "--run").ok().stdout
    assert "  status:   incomplete (1 of 2 runs)" in shown
    report = capsule.mur("eval", "diff", "--run", "--json").ok().json
    assert (report["complete"], report["runs_recorded"], report["runs_expected"]) == (False, 1, 2)


def test_records_eval_diff_run_refusals(bench):
    capsule = bench.capsule()
    capsule.mur("eval", "diff", "--run").failed("E-EVAL-002")
    bench.cases({"case_id": "c1", "task_path": "task.md"})
    bench.run(capsule).ok()
    capsule.mur("eval", "diff", "--run", "@2").failed("E-EVAL-002")
    capsule.mur("eval", "diff", "--run", "zzzz").failed("E-EVAL-002")
    capsule.mur("eval", "diff", "--run", "./absent.json").failed("E-IO-001")
    bad = bench.folder.write("bad.json", '{"run_id": "x"}')
    assert "bad.json:1" in capsule.mur("eval", "diff", "--run", bad).failed("E-EVAL-001").stderr
    capsule.mur("eval", "diff", "--run", bench.record_paths[0]).ok()

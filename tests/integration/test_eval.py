# SPDX-License-Identifier: Apache-2.0
#
# `mur eval show` and `diff`: scores as a hook leaves them in a session's records.

import json

import pytest


def score(scorer, result, **more):
    return {"record_type": "event_score", "ts": 1, "turn": 1, "event_type": "inference", "scorer": scorer,
            "result": result, **more}


def overall(word, **more):
    return {"record_type": "dataset_run", "ts": 2, "dataset_id": "ds", "case_id": "c1", "overall": word, "scores": {},
            **more}


@pytest.fixture
def project(lab):
    return lab.agent(steps=[{"text": "hi"}])


def scored(project, *lines):
    """A session with these scores; returns its id."""
    project.run("--task", "x").ok()
    records = project.lab.records[-1]
    (records / "hooks").mkdir(exist_ok=True)
    (records / "hooks/eval.jsonl").write_text(
        "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return records.name


def test_records_eval_show_adds_up_what_the_hook_wrote(project):
    session = scored(project, score("s1", "fail", score=0.0, reason="no"), score("s1", "pass"),
                     overall("pass"), overall("fail", scores={"s1": 0.5}))
    path = project.lab.session(session).records / "hooks/eval.jsonl"
    assert project.mur("eval", "show").ok().stdout == (
        f"── Eval: {path} {'─' * 37}\n\n"
        f"── Scorers {'─' * 38}\n  s1                       1/2 pass  (50.0%)\n\n"
        f"── Overall {'─' * 38}\n  result:  fail\n  case:    c1\n  dataset: ds\n\n"
        f"── Score summary {'─' * 32}\n  s1                       0.5000\n\n"
        f"── Worst events {'─' * 33}\n  turn   1  inference     s1                       fail  score=0.00\n")
    report = project.mur("eval", "show", session[-8:], "--json").ok()
    assert report.json["scorers"] == {"s1": {"fail": 1, "pass": 1, "pass_rate": 0.5, "total": 2}}
    assert (report.json["overall"], report.json["dataset_run"]["scores"]) == ("fail", {"s1": 0.5})
    assert list(report.json) == ["dataset_run", "overall", "scorers"]


@pytest.mark.parametrize("lines, word", [
    ([score("s1", "pass"), score("s2", "pass")], "pass"),
    ([score("s1", "pass"), score("s2", "fail")], "fail"),
    ([], "no_scores"),
])
def test_records_eval_without_a_dataset_run_every_scorer_must_pass(project, lines, word):
    scored(project, *lines)
    assert project.mur("eval", "show", "--json").ok().json["overall"] == word
    assert ("(no scored events)\n" in project.mur("eval", "show").ok().stdout) == (not lines)


def test_records_eval_diff_compares_pass_rates(project):
    scored(project, score("s1", "pass"), score("s1", "fail"), score("only-a", "pass"))
    scored(project, score("s1", "pass"), score("only-b", "pass"))
    assert project.mur("eval", "diff").ok().stdout == (
        "Scorer                   Run A          Run B          Delta\n"
        f"{'─' * 24} {'─' * 14} {'─' * 14} {'─' * 26}\n"
        "only-a                   100.0%         —              (A only)\n"
        "only-b                   —              100.0%         (B only)\n"
        "s1                       50.0%          100.0%         +50.0pp (B better)\n"
        "\n"
        "overall                  fail           pass\n")


def test_records_eval_refusals(project):
    project.run("--task", "x").ok()
    missing = project.mur("eval", "show").failed("E-IO-001")
    assert "hooks/eval.jsonl does not exist" in missing.stderr and missing.stdout == ""
    project.mur("eval", "show", "@9").failed("E-EVAL-002")
    project.mur("eval", "diff", "@1").failed("E-EVAL-002")
    project.mur("eval", "diff", "--run").failed("E-EVAL-002")


@pytest.mark.parametrize("bad", ["no json", "[]", '{"ts":1}', score("s1", "maybe"), overall("good"),
                                 overall("pass", scores={"s1": "x"}), score("s1", "pass", score="high"),
                                 '{"record_type":"event_score","ts":1,"scorer":"s"}'])
def test_records_eval_a_bad_line_is_named(project, bad):
    scored(project, score("s1", "pass"), bad)
    result = project.mur("eval", "show", "--json").failed("E-EVAL-001")
    assert "eval.jsonl:2: " in result.stderr and result.stdout == ""

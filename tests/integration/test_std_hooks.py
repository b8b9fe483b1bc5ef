# SPDX-License-Identifier: Apache-2.0
#
# The bundled hooks: what the runtime has a place for works with what murmur brings, from the manifest alone (audit 3).

import json

import pytest

from tests.integration.test_docs import run_guide
from tests.support import warm_forms
from tests.support.model_server import Reply, answer, call

FILES = {"name": "std/files", "version": "0.1.0"}
FULL, LITTLE = {"input_tokens": 5000, "output_tokens": 10}, {"input_tokens": 20, "output_tokens": 5}


def hook(name, config=None, capabilities=None):
    entry = {"name": f"std/hook-{name}", "version": "0.1.0", "runtime": "hook", "config": config or {}}
    return {**entry, **({"capabilities": capabilities} if capabilities else {})}


def agent(lab, model, hooks, window=6000, **manifest):
    """An agent whose input budget is the window less its output cap of 1024."""
    warm_forms.lend(lab)
    manifest = {"context": {"max_tokens": window}, **manifest}
    project = lab.agent(driver="std/driver-anthropic@0.1.0", gateway={"endpoint": model.url, "keyless": True},
                        tools=[FILES, *hooks], **manifest)
    (project / "work").mkdir(exist_ok=True)
    return project


def run(project, task="go", *more, code=0):
    result = project.run("--task", task, "--workdir", project / "work", *more)
    warm_forms.keep(project.lab)
    assert result.code == code, str(result)
    return project.lab.session(result)


def texts(request):
    return [block.get("text") for message in request.json["messages"] for block in message["content"] if block["type"] == "text"]


# --- hook-compact ------------------------------------------------------------------------------------------------------


def test_audit_03_compaction_works_out_of_the_box(lab, model):
    model.script(call("files", {"action": "list"}, usage=LITTLE), call("files", {"action": "list"}, call_id="c2", usage=FULL),
                 answer("we listed twice", usage=LITTLE), answer("done", usage=LITTLE))

    session = run(agent(lab, model, [hook("compact", {"keep_tokens": 0})]), "look around")

    asked = model.requests[2].json
    assert "memory of an agent" in json.dumps(asked["system"]) and "tools" not in asked
    assert "look around" in texts(model.requests[2])[0] and "calls files with" in texts(model.requests[2])[0]
    after = texts(model.requests[3])
    assert after[0] == "look around" and after[1].endswith("we listed twice") and len(after) == 2
    assert session.trace.one("compaction")["tokens_before"] == 5010
    assert session.result_text == "done"
    assert session.trace.all("inference")[-2]["origin"] == "hook:hook-compact"


def test_audit_03_the_latest_part_of_a_conversation_stays_with_its_calls(lab, model):
    model.script(call("files", {"action": "list"}, text="long " * 900, usage=LITTLE),
                 call("files", {"action": "list"}, call_id="c2", usage=LITTLE), call("files", {"action": "list"}, call_id="c3", usage=FULL), answer("short", usage=LITTLE),
                 answer("done", usage=LITTLE))

    session = run(agent(lab, model, [hook("compact", {"keep_tokens": 600})]))

    assert "compaction_declined" not in session.trace.types
    kept = [block["id"] for message in model.requests[4].json["messages"] for block in message["content"]
            if block["type"] == "tool_use"]
    assert kept == ["c2", "c3"]


def test_audit_03_a_long_conversation_is_summarised_piece_by_piece(lab, model):
    model.script(call("files", {"action": "list"}, text="first " * 50, usage=LITTLE),
                 call("files", {"action": "list"}, text="second " * 50, call_id="c2", usage=FULL),
                 answer("one", usage=LITTLE), answer("one and two", usage=LITTLE), answer("all three", usage=LITTLE),
                 answer("done", usage=LITTLE))

    run(agent(lab, model, [hook("compact", {"chunk_tokens": 20, "keep_tokens": 0})], window=6000), "w " * 30)

    assert "The memory so far:\n\none" in texts(model.requests[3])[0] and "first first" in texts(model.requests[3])[0]
    assert texts(model.requests[5])[1].endswith("all three")


def test_audit_03_a_summary_that_cannot_be_had_fails_the_task_and_says_why(lab, model):
    model.script(call("files", {"action": "list"}, usage=FULL), Reply(status=400, body=b'{"error":{"message":"no"}}'))

    session = run(agent(lab, model, [hook("compact")]), code=1)

    failed = session.trace.one("task_failed")
    assert failed["cause"] == "compaction_hook" and "no summary could be made" in failed["reason"]


def test_audit_03_compact_resume_works_out_of_the_box(lab, model):
    model.script(answer("one"), answer("the first was done"), answer("two"))
    project = agent(lab, model, [hook("compact")])
    run(project, "first")

    session = run(project, "second", "--resume", "--resume-mode", "compact")

    after = texts(model.requests[2])
    assert after[0].endswith("the first was done") and after[-1] == "second"
    assert session.trace.one("compaction")["tokens_before_source"] == "estimate"


# --- hook-seed ---------------------------------------------------------------------------------------------------------


def test_audit_03_seeds_work_out_of_the_box(lab, model):
    model.script(answer("done"))
    seeds = hook("seed", {"text": "we bake", "files": ["NOTES.md", "absent.md"]}, {"filesystem": {"scope": "."}})
    project = agent(lab, model, [seeds], window=20000)
    (project / "work/NOTES.md").write_text("rye is out\n")

    session = run(project, "bake")

    assert texts(model.requests[0]) == ["we bake", "NOTES.md:\n\nrye is out\n", "bake"]
    assert session.trace.one("context_seed")["outcome"] == "seeded"


def test_audit_03_a_seed_too_large_is_summarised(lab, model):
    model.script(answer("all about bread"), answer("done"))
    seeds = hook("seed", {"files": ["a", "b", "c"]}, {"filesystem": {"scope": "."}})
    project = agent(lab, model, [seeds, hook("compact")], context={"max_tokens": 3024, "seed_overflow_margin": 0.0})
    for name in "abc":
        (project / "work" / name).write_text(name + " bread" * 90)

    session = run(project, "bake")

    assert session.trace.one("context_seed")["outcome"] == "compacted"
    assert texts(model.requests[1])[0].endswith("all about bread")


# --- hook-reopen -------------------------------------------------------------------------------------------------------


def test_audit_03_reopening_works_out_of_the_box(lab, model):
    model.script(answer("a number"), answer("42\nSources: a book"))
    checks = hook("reopen", {"contains": ["Sources:"]}, {"task_io": {"read": True}})

    session = run(agent(lab, model, [checks]))

    assert session.result_text == "42\nSources: a book"
    assert session.trace.one("task_reopened")["hook_name"] == "hook-reopen"
    assert "must hold this text: Sources:" in texts(model.requests[1])[-1]


def test_audit_03_a_review_by_the_model_sends_a_task_back(lab, model):
    model.script(answer("half"), answer("The other half is missing."), answer("whole"), answer("OK."))
    checks = hook("reopen", {"review": "Is it whole?", "files": []}, {"task_io": {"read": True}})

    session = run(agent(lab, model, [checks]), "all of it")

    assert session.result_text == "whole" and len(model.requests) == 4
    assert "Is it whole?" in texts(model.requests[1])[0] and "all of it" in texts(model.requests[1])[0]
    assert "The other half is missing." in texts(model.requests[2])[-1]


def test_audit_03_a_missing_file_sends_a_task_back_until_the_limit(lab, model):
    model.script(answer("one"), answer("two"))
    checks = hook("reopen", {"files": ["report.md"]}, {"task_io": {"read": True}, "filesystem": {"scope": "."}})

    session = run(agent(lab, model, [checks], lifecycle={"max_task_reopens": 1}), code=1)

    assert session.trace.one("task_failed")["cause"] == "reopen_budget_exhausted"
    assert "report.md must be there" in texts(model.requests[1])[-1]


# --- hook-deny ---------------------------------------------------------------------------------------------------------


def write_call(path):
    return ("files", {"action": "write", "path": path, "content": "x"})


RULES = [{"tool": "files", "input": {"action": "write", "path": "migrations/*"}, "reason": "by hand"},
         {"argv": ["git", "push"], "reason": "people push"}, {"word": "--production"}, {"script": "*rm -rf*"},
         {"argv": ["touch", "allowed*"], "allow": True}, {"argv": ["touch"]}]


@pytest.mark.parametrize("name, value, reason", [
    ("files", "migrations/1.sql", "by hand"), ("files", "./migrations//1.sql", "by hand"), ("files", "a/../migrations/1", "by hand"),
    ("files", "a.txt", None), ("git", "push origin", "people push"), ("git", "'push' x", "people push"), ("git", "status", None),
    ("git", 'log "--production"', "rule 3"), ("bash", "cd x && git push", "people push"), ("bash", "A=1 git push; ls", "people push"),
    ("bash", "echo git push", None), ("bash", "rm -rf /", "rule 4"), ("bash", "touch b", "rule 6"), ("bash", "touch allowed.txt", None)])
def test_audit_03_rules_over_tools_and_commands(lab, name, value, reason):
    called = {"name": name, "input": write_call(value)[1] if name == "files" else {"command": value}}
    warm_forms.lend(lab)
    project = lab.agent(steps=[{"tool_calls": [called]}, {"text": "went on"}], tools=[FILES, hook("deny", {"rules": RULES})],
                        capabilities={"shell": {"allow": ["git", "bash", "touch"]}})
    (project / "work").mkdir()

    session = run(project)

    denied = session.trace.all("call_denied")
    assert len(denied) == (reason is not None) == (len(session.trace.all("tool_call")) == 0)
    assert reason is None or reason in denied[0]["reason"]
    assert session.result_text == "went on"


@pytest.mark.parametrize("config, reason", [
    ({}, "no rules"), ({"rules": []}, "no rules"), ({"rules": "x"}, "no rules"), ({"rules": [{}]}, "rule 1 of config.rules cannot be read"),
    ({"rules": [{"tool": "sh"}, {"argv": "git push"}]}, "rule 2 of config.rules cannot be read"),
    ({"rules": [{"pattern": "x"}]}, "cannot be read"), ({"rules": [{"tool": "sh"}], "default": "deny"}, "no rule of this capsule's policy allows"),
    ({"rules": [{"tool": "sh"}], "default": "maybe"}, "neither allow nor deny")])
def test_audit_03_a_policy_that_cannot_be_read_refuses(lab, config, reason):
    warm_forms.lend(lab)
    project = lab.agent(steps=[{"tool_calls": [{"name": "files", "input": {"action": "list"}}]}, {"text": "went on"}],
                        tools=[FILES, hook("deny", config)])
    (project / "work").mkdir()

    assert reason in run(project).trace.one("call_denied")["reason"]


# --- hook-eval ---------------------------------------------------------------------------------------------------------


SCORERS = [{"type": "exit_ok"}, {"type": "max_turns", "max": 1}, {"type": "max_tokens", "max": 90000},
           {"type": "tool_sequence", "expected": ["files", "json"]}, {"type": "llm_judge", "name": "polite"}]
GRANTS = {"filesystem": {"records": True}, "task_io": {"read": True}}


def shown(project, session):
    return json.loads(project.lab.mur("eval", "show", session.id, "--json", "--workdir", project / "work").ok().stdout)


def test_audit_03_the_five_scorers_score_out_of_the_box(lab, model):
    model.script(call("files", {"action": "list"}, usage=LITTLE), answer("please", usage=LITTLE),
                 answer('Here: {"pass": true, "score": 0.75, "reason": "kind"}', usage=LITTLE))
    project = agent(lab, model, [hook("eval", {"judge": {"polite": "Is it polite?"}}, GRANTS)],
                    observability={"eval": {"dataset_id": "ds", "scorers": SCORERS}})

    session = run(project, "ask")

    lines = [json.loads(line) for line in (session.records / "hooks/eval.jsonl").read_text().splitlines()]
    results = {line["scorer"]: (line["result"], line["score"]) for line in lines[:-1]}
    assert results == {"exit_ok": ("pass", 1), "polite": ("pass", 0.75), "max_turns": ("fail", 0.5),
                       "max_tokens": ("pass", 1), "tool_sequence": ("fail", 0.5)}
    assert lines[-1]["overall"] == "fail" and lines[-1]["dataset_id"] == "ds"
    assert "Is it polite?" in texts(model.requests[2])[0] and "please" in texts(model.requests[2])[0]
    report = shown(project, session)
    assert report["overall"] == "fail" and report["scorers"]["polite"]["pass"] == 1


@pytest.mark.parametrize("verdict, reason", [("I like it", "no verdict"), ('{"pass": false, "reason": "rude"}', "rude")])
def test_audit_03_a_judge_without_a_verdict_is_a_fail(lab, model, verdict, reason):
    model.script(answer("hey"), answer(verdict))
    project = agent(lab, model, [hook("eval", {}, GRANTS)], observability={"eval": {"scorers": [{"type": "llm_judge"}]}})

    session = run(project)

    line = json.loads((session.records / "hooks/eval.jsonl").read_text().splitlines()[0])
    assert line["result"] == "fail" and reason in line["reason"]


def test_audit_03_scores_that_cannot_be_written_are_said_in_the_log(lab, model):
    model.script(answer("hey"))
    session = run(agent(lab, model, [hook("eval")], observability={"eval": {"scorers": [{"type": "exit_ok"}]}}))

    assert "filesystem.records: true" in (session.records / "logs/hook-hook-eval.log").read_text()


# --- The guide ---------------------------------------------------------------------------------------------------------


def test_the_guide_to_hooks_runs_as_it_stands(lab, tmp_path):
    done = run_guide(lab, "hooks.md", tmp_path / "guide")

    assert done.returncode == 0, done.stderr
    assert "Secrets are written by people." in done.stdout and "result:  pass" in done.stdout

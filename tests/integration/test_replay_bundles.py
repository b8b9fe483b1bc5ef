# SPDX-License-Identifier: Apache-2.0
#
# Records that leave and prove: bundles, cases of an evaluation, the smallest start that still fails, two sessions aligned,
# what a record allows, sessions of children.

import json
import os
import shutil
import signal
import stat
import zipfile

import pytest

from tests.integration.test_replay_rerun import PROBE, do, probing, recorded
from tests.support.commands import command_agent, run_commands
from tests.support.delegation import Plane, delegate, reads, turn
from tests.support.fixtures import own_component
from tests.support.formation import BEARER, CALLS, SERVES, Team
from tests.support.polling import eventually
from tests.support.replays import CONTENT, FULL, diverges, edit_manifest, edit_trace, replay, same
from tests.support.spawn import publish_agent


def packed(project, session, *arguments):
    path = project / "x.murtrace"
    project.mur("trace", "pack", session.id, "--workdir", project / "work", "-o", path, *arguments).ok()
    return path


def probed(lab, **more):
    project = probing(lab, [do("append log one", "time"), do("read log", "random 8")], **more)
    return project, recorded(lab, project)


def elsewhere(lab):
    """Another machine: another home, no artifacts of ours in any store, another folder."""
    home = lab.directory / "other-home"
    home.mkdir()
    folder = lab.directory / "other-place"
    folder.mkdir()
    return folder, {"HOME": str(home), "USER": "somebody"}


@pytest.mark.parametrize("trace", [FULL, CONTENT], ids=["replay", "content"])
def test_replay_bundle_runs_on_another_machine(lab, trace):
    project, session = probed(lab, trace=trace)
    bundle = packed(project, session)
    folder, env = elsewhere(lab)
    shutil.move(str(bundle), folder / "failed.murtrace")
    shutil.rmtree((project / "x").parent)
    shutil.rmtree(lab.murmur_home / "artifacts/local")
    before = set(os.listdir("/tmp"))

    for how in (["recorded", "rerun"] if trace is FULL else ["recorded"]):
        result = lab.mur("replay", "failed.murtrace", "--tools", how, "--json", cwd=folder, env=env).ok()
        assert result.json["verdict"] == "same" and result.json["replay_of"] == session.id
    assert not [name for name in set(os.listdir("/tmp")) - before if name.startswith("murmur-bundle")]


def rewritten(path, change):
    """Packs the entries of a bundle again as `change` leaves them: a dict of name -> (bytes, mode)."""
    with zipfile.ZipFile(path) as old:
        entries = {info.filename: (old.read(info), 0o100644) for info in old.infolist()}
    extra = change(entries) or []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, (data, mode) in [*entries.items(), *extra]:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            new.writestr(info, data, zipfile.ZIP_DEFLATED)


HARMS = {
    "outside": lambda e: e.update({"../../x": (b"x", 0o100644)}),
    "absolute": lambda e: e.update({"/tmp/x": (b"x", 0o100644)}),
    "dots": lambda e: e.update({"store/a/b/../c": (b"x", 0o100644)}),
    "unknown": lambda e: e.update({"notes.txt": (b"x", 0o100644)}),
    "link": lambda e: e.update({"blobs/" + "a" * 64: (b"/etc/passwd", stat.S_IFLNK | 0o777)}),
    "twice": lambda e: [("trace.jsonl", e["trace.jsonl"])],
    "altered": lambda e: e.update({next(n for n in e if n.startswith("blobs/")): (b"other", 0o100644)}),
    "format": lambda e: e.update({"bundle.json": (b'{"format":9}', 0o100644)}),
    "none": lambda e: e.pop("bundle.json") and None,
    "no trace": lambda e: e.pop("trace.jsonl") and None,
    "no tape": lambda e: e.pop("replay.jsonl") and None,
    "empty tape": lambda e: e.update({"replay.jsonl": (b"", 0o100644)}),
    "no object": lambda e: e.update({"bundle.json": (b"[]", 0o100644)}),
    "missing": lambda e: e.pop(next(n for n in e if n.startswith("blobs/"))) and None,
}


@pytest.mark.parametrize("harm", HARMS)
def test_replay_bundle_that_holds_anything_else_is_refused_and_nothing_written(lab, harm):
    project, session = probed(lab)
    bundle = packed(project, session)
    rewritten(bundle, HARMS[harm])
    before, temporary = lab.records, set(os.listdir("/tmp"))

    result = project.mur("replay", bundle).failed("E-RPL-004")

    assert lab.records == before and ("format 9" in result.stderr) == (harm == "format")
    assert not [name for name in set(os.listdir("/tmp")) - temporary if name.startswith("murmur-bundle")]


def test_replay_bundle_of_any_name_is_one_and_another_file_is_told(lab):
    project, session = probed(lab)
    bundle = packed(project, session)
    bundle.rename(project / "last night.zip")
    project.mur("replay", "last night.zip").ok()
    project.write("notes.txt", "hello")
    result = project.mur("replay", "notes.txt").failed("E-RPL-004")
    assert "notes.txt: not a usable zip archive" in result.stderr and '""' not in result.stderr


def test_replay_bundle_bomb_is_refused_before_it_unpacks(lab):
    project, session = probed(lab)
    bundle = packed(project, session)
    with zipfile.ZipFile(bundle, "a", zipfile.ZIP_DEFLATED) as z:
        info = zipfile.ZipInfo("blobs/" + "b" * 64)
        info.compress_type = zipfile.ZIP_DEFLATED
        with z.open(info, "w", force_zip64=True) as entry:
            for _ in range(2100):
                entry.write(bytes(1 << 20))
    project.mur("replay", bundle, timeout=300).failed("E-RPL-004")


def test_replay_bundle_redacted_holds_no_name_and_no_secret(lab):
    project = probing(lab, [do("env", "append log x")], capabilities={"env": {"allow": ["PLACE"]}})
    secret = "canary-of-the-day"
    session = recorded(lab, project, env={"PLACE": secret})
    path = project / "x.murtrace"
    project.mur("trace", "pack", session.id, "--workdir", project / "work", "-o", path, "--redact",
                env={"SOME_API_KEY": secret, "PLACE": secret}).ok()
    with zipfile.ZipFile(path) as z:
        for info in z.infolist():
            if not info.filename.startswith("store/"):
                data = z.read(info)
                assert secret.encode() not in data and str(lab.home).encode() not in data, info.filename

    result = project.mur("replay", path, "--json").ok()

    assert result.json["verdict"] == "same" and result.json["modes"]["model"] == "served" and "redacted" in result.stderr


def test_replay_23_an_exported_session_is_a_case_without_key_and_network(lab):
    project = command_agent(lab, [do("append result 42")], ("bash", "cat", "grep"), trace=FULL,
                            tools=[lab.publish("tool-probe", own_component("tool-probe"), **PROBE)])
    (project / "work/notes").write_text("before\n")
    session, _ = run_commands(project)
    case = project / "cases/case"

    project.mur("replay", session.id, "--workdir", project / "work", "--export-eval", case, "--check", "grep 42 result").ok()

    assert sorted(path.name for path in case.iterdir()) == ["eval.jsonl", "murmur.yaml", "record.murtrace", "start", "task.md"]
    assert (case / "task.md").read_text() == "go" and (case / "start/notes").read_text() == "before\n"
    line = json.loads((case / "eval.jsonl").read_text())
    assert line["record"] == "record.murtrace" and line["check"] == "grep 42 result"
    result = lab.mur("eval", "run", "--model", "recorded", cwd=case).ok()
    assert "pass" in result.stdout
    text = (case / "murmur.yaml").read_text()
    (case / "murmur.yaml").write_text(text.replace("text: done", "text: other"))
    lab.mur("eval", "run", "--model", "recorded", cwd=case).failed("E-RPL-002")
    record = json.loads(max((path for path in lab.murmur_home.rglob("evr_*.json")), key=lambda p: p.name).read_text())
    assert record["cases"][0]["runs"][0]["replay"] == "diverged"


def test_replay_23_a_case_without_a_record_is_refused(lab):
    project, _ = probed(lab)
    (project / "task.md").write_text("go")
    (project / "eval.jsonl").write_text('{"case_id":"a","task_path":"task.md"}\n')

    result = project.mur("eval", "run", "--model", "recorded").failed("E-EVAL-003")

    assert "--export-eval" in result.stderr


def failing(lab, lines=30):
    """A session that fails when the one file of forty holds the one line."""
    project = command_agent(lab, ["grep -rl BROKEN . > found || true"], ("bash", "grep", "cat", "sleep"), trace=FULL)
    for n in range(40):
        text = "".join(f"line {k} of {n}\n" for k in range(lines))
        (project / f"work/file-{n:02}").write_text(text)
    broken = project / "work/file-23"
    broken.write_text(broken.read_text().replace("line 17 of 23", "BROKEN line"))
    session, _ = run_commands(project)
    return project, session


def minimised(project, session, into, *arguments):
    return project.mur("replay", session.id, "--workdir", project / "work", "--minimise", "--check", "grep file-23 found", "--work", into,
                       "--json", *arguments, timeout=280)


def test_replay_22_the_one_file_and_the_one_line_are_found(lab):
    project, session = failing(lab)
    before = lab.records

    first = minimised(project, session, project / "a").ok().json
    second = minimised(project, session, project / "b").ok().json

    assert first["files"] == {"before": 41 if first["files"]["before"] == 41 else 40, "after": 1}
    assert first["lines"]["after"] == 1 and first["runs"] <= 60 and first["complete"]
    assert (project / "a/file-23").read_text() == "BROKEN line\n" == (project / "b/file-23").read_text()
    assert (second["runs"], second["kept"]) == (first["runs"], first["kept"]) == (first["runs"], ["file-23"])
    assert lab.records == before


def test_replay_22_a_bound_and_a_check_that_does_not_hold(lab):
    project, session = failing(lab, 20)
    report = minimised(project, session, project / "a", "--max-runs", "3").ok().json
    assert report["runs"] == 3 and not report["complete"]
    result = project.mur("replay", session.id, "--workdir", project / "work", "--minimise", "--check", "grep nothing found",
                         "--work", project / "b").failed("E-RPL-003")
    assert "does not exit with 0" in result.stderr and not (project / "b").exists()
    project.mur("replay", "--minimise").failed(exit_status=2)


def test_replay_22_the_one_call_is_found_and_what_no_one_reads_is_left_away(lab):
    project = command_agent(lab, ["echo a > first", "echo BROKEN > second", "echo c > third"], ("bash", "grep"), trace=FULL,
                            inference={"system_prompt": "Be exact.\n\nBe quick."})
    session, _ = run_commands(project)
    report = project.mur("replay", session.id, "--workdir", project / "work", "--minimise", "--check", "grep BROKEN second", "--work",
                         project / "a", "--json", timeout=280).ok().json
    assert report["calls"] == {"before": 3, "after": 1, "kept": ["task 0, turn 1, call 0 (bash)"]}
    assert report["tools"]["before"] >= 1 and report["tools"]["after"] == 0 and report["complete"]
    assert report["paragraphs"] == {"before": 2, "after": 0, "kept": []}


def test_replay_22_an_interrupt_leaves_the_smallest_so_far(lab):
    project, session = failing(lab)
    before, seen = set(lab.records), set()
    running = lab.start("replay", session.id, "--workdir", project / "work", "--minimise", "--check", "bash -c 'sleep 0.3; grep file-23 found'",
                        "--work", project / "a", cwd=project.directory)
    eventually(lambda: seen.update(set(lab.records) - before) or len(seen) >= 4, 60)
    running.signal(signal.SIGINT)

    result = running.result(60)

    assert result.code == 0 and "not finished" in result.stdout, str(result)
    kept = {path.name for path in (project / "a").iterdir()}
    assert "file-23" in kept and len(kept) < 41 and "BROKEN line\n" in (project / "a/file-23").read_text()
    assert set(lab.records) == before


def test_replay_what_a_record_allows_is_said(lab):
    project, session = probed(lab)
    report = project.mur("replay", session.id, "--workdir", project / "work", "--can", "--json").ok().json
    assert report["rerun"] and report["strict"] and report["tasks"] == [{"task": 0, "turns": 3, "from": [0, 1, 2], "why_not": None}]
    replay(project, "--workdir", project / "work", expect="same")
    packed_as = project.mur("trace", "pack", "--workdir", project / "work").ok().stdout
    assert packed_as == f"{session.id}.murtrace\n", "the newest that is no replay"
    plain = probing(lab, [do("say x")], trace=CONTENT, name="plain")
    other = recorded(lab, plain)
    text = plain.mur("replay", other.id, "--workdir", plain / "work", "--can").ok().stdout
    assert "--tools rerun  no: trace.capture: replay was not set" in text and "not on record" in text
    assert "\n--from         no: the files of that turn" in text and "--task" not in text
    assert "\n--from         yes: turn 0, 1, 2\n" in project.mur("replay", session.id, "--workdir", project / "work", "--can").ok().stdout
    for path, why in (("/etc/passwd", "E-RPL-004"), ("/etc", "E-TRC-002"), ("/etc/nothing/here", "E-IO-001")):
        told = project.mur("replay", path).failed(why).stderr
        assert f"{path}" in told and "trace.jsonl: No such" not in told
    assert project.mur("replay", session.records, "--can").ok().stdout.startswith(session.id)


def test_replay_17_a_delegation_is_served_and_the_child_replayed_when_asked(lab):
    publish_agent(lab, "child-agent", [{"text": "hello from the child"}], trace=CONTENT)
    with Plane(lab, "local/child-agent") as plane:
        project = plane.parent(turn(delegate("child-agent")), {"text": "waiting"}, reads(), trace=FULL)
        running = plane.start(project)
        running.result(90)
        session = lab.session(running)
        launched = len(plane.launches)

        report = replay(project, "--workdir", project / "work", expect="same", session=session)
        assert len(plane.launches) == launched and "children" not in report

        report = replay(project, "--workdir", project / "work", "--deep", expect="same", session=session)
        assert [child["verdict"] for child in report["children"]] == ["same"] and len(plane.launches) == launched
        text = project.mur("replay", session.id, "--workdir", project / "work", "--deep").ok().stdout
        assert f"child {report['children'][0]['session_id']}: same" in text


def test_replay_17_members_of_a_formation_are_replayed_when_asked(lab):
    asked = {"name": "call-member", "input": {"member": "coder", "task": "write it"}}
    team = Team(lab, "lead", "coder", reachability=[{"from": "lead", "to": ["coder"]}])
    team.member("lead", [{"tool_calls": [asked]}, {"text": "I wait"}, {"text": "done"}], **BEARER, **CALLS, trace=FULL)
    team.member("coder", [{"text": "the code"}], **BEARER, **SERVES, trace=FULL)
    team.run("--task", "go").ok()
    paths = {name: trace.path for name, trace in team.sessions().items()}
    kept = {name: path.read_bytes() for name, path in paths.items()}

    for name, other in (("lead", "coder"), ("coder", "lead")):
        report = replay(team.project, "--deep", expect="same", session=str(paths[name]))
        below, = report["children"]
        assert (below["member"], below["verdict"], below["children"]) == (other, "same", []), report
    edit_trace(lab.session(paths["coder"].parent.name), lambda line: line.update(exit_status="error") if line["event_type"] == "task_end" else None)
    result = team.project.mur("replay", paths["lead"], "--deep")
    assert result.code == 1 and "a child of" in result.stderr and f"member coder {paths['coder'].parent.name}: diverged" in result.stdout
    assert paths["lead"].read_bytes() == kept["lead"]


def triage(lab):
    """An agent whose tool takes a line of a quiet log for a fault; version 0.2.0 of the tool does not."""
    component = own_component("faults")
    lab.publish("faults", component)
    mended = lab.directory / "faults.wasm"
    mended.write_bytes(component.read_bytes().replace(b"fault: ", b"FAULT: "))
    lab.publish("faults", mended, version="0.2.0")
    project = lab.agent(steps=[{"tool_calls": [{"name": "faults", "input": {}}]}, {"text": "reported"}], tools=["local/faults@0.1.0"],
                        trace=FULL, capabilities={"shell": {"allow": ["grep", "test"]}})
    (project / "work").mkdir()
    for n in range(8):
        (project / f"work/log-{n}").write_text("".join(f"line {k}\n" for k in range(9)))
    (project / "work/log-5").write_text("all is well\nfault: none\nall is well\n")
    return project


def test_replay_story_found_replayed_minimised_fixed_and_kept(lab):
    project = triage(lab)
    work = ["--workdir", project / "work"]
    failed = recorded(lab, project)
    assert (project / "work/report").read_text() == "log-5 fault: none\n"
    same(project, *work)

    refused = project.mur("replay", *work, "--minimise", "--check", "cat report", "--work", project / "x").failed("E-RPL-003")
    assert "cat is not on PATH" in refused.stderr and "capabilities.shell.allow" in refused.stderr and not (project / "x").exists()
    told = project.mur("replay", *work, "--minimise", "--check", "grep log-5 report", "--work", project / "smallest", timeout=240).ok().stdout
    assert "1 of 8 files, 1 of 66 lines" in told and (project / "smallest/log-5").read_text() == "fault: none\n"

    changes = diverges(project, *work, "--tools", "rerun", "--with-artifact", "local/faults@0.2.0", part="tool_result",
                       cause="artifact local/faults: digest", session=failed)
    assert "1 found" in changes["recorded"] and "0 found" in changes["now"]

    edit_manifest(project, lambda m: m["artifacts"][1].update(version="0.2.0"))
    (project / "murmur.lock").unlink(missing_ok=True)
    fixed = lab.session(project.run("--task", "go", "--workdir", project / "smallest").ok())
    cases = {name: project / "cases" / name for name in ("fixed", "failed")}
    project.mur("replay", fixed.id, "--workdir", project / "smallest", "--export-eval", cases["fixed"], "--check", "test ! -s report").ok()
    project.mur("replay", failed.id, *work, "--export-eval", cases["failed"], "--check", "grep log-5 report").ok()

    kept = lab.mur("eval", "run", "--model", "recorded", cwd=cases["fixed"]).ok()
    assert "result: pass" in kept.stdout and "pass: 1/1" in kept.stdout and "no scores" not in kept.stderr
    # What was recorded with the old tool is another session now, and a program hears of it.
    stale = lab.mur("eval", "run", "--model", "recorded", cwd=cases["failed"]).failed("E-RPL-002")
    assert "result: fail" in stale.stdout and "pass: 0/1" in stale.stdout and "artifact local/faults" in stale.stderr


def test_replay_case_whose_check_fails_is_one_that_does_not_pass(lab):
    project = triage(lab)
    session = recorded(lab, project)
    project.mur("replay", session.id, "--workdir", project / "work", "--export-eval", project / "case", "--check", "grep log-1 report").ok()
    done = lab.mur("eval", "run", "--model", "recorded", cwd=project / "case").failed("E-RPL-002")
    assert "result: fail" in done.stdout and "1 of 1 recorded cases" in done.stderr

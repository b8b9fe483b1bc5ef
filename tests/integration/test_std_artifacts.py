# SPDX-License-Identifier: Apache-2.0
#
# The bundled artifacts as a capsule meets them: std/files and std/driver-scripted; and how all guests are built.

import hashlib
import json
import os
import subprocess

import pytest
import yaml

from tests.support.lab import BUILD, ROOT, SLOWER
from tests.support.tool_calls import ask as ask_tool

FILES = "std/files@0.1.0"
STD = sorted(path.parent for path in (ROOT / "artifacts/std").glob("*/murmur.yaml"))


def ask(lab, *inputs, **how):
    return ask_tool(lab, "files", *inputs, **how)


def test_files_reads_whole_files_and_lines(lab):
    answers, _work, _session = ask(
        lab, {"action": "read", "path": "a.txt"}, {"action": "read", "path": "./a.txt", "first_line": 2, "line_count": 1},
        {"action": "read", "path": "a.txt", "first_line": 9}, {"action": "read", "path": "b.bin"},
        {"action": "read", "path": "absent.txt"}, {"action": "read", "path": "sub"}, {"action": "read"},
        files={"a.txt": "one\ntwo\nthree\n", "b.bin": b"\0\1", "sub/c.txt": "c"})

    assert answers == [
        (False, "one\ntwo\nthree"), (False, "two"), (False, "[a.txt has 3 lines]"), (True, "b.bin is no text file"),
        (True, "absent.txt: No such file or directory"), (True, "sub is a folder"), (True, "read: path is needed")]


def test_files_writes_appends_and_says_what_it_changed(lab):
    answers, work, session = ask(
        lab, {"action": "write", "path": "new/deep/a.txt", "content": "é\n"},
        {"action": "write", "path": "new/deep/a.txt", "content": "more", "append": True},
        {"action": "write", "path": "new/deep/a.txt"}, {"action": "list", "recursive": True})

    assert answers == [
        (False, "created new/deep/a.txt: 3 bytes"), (False, "added to new/deep/a.txt: 7 bytes"),
        (True, "write: content is needed, a string"), (False, "new/\nnew/deep/\nnew/deep/a.txt  7")]
    assert (work / "new/deep/a.txt").read_text() == "é\nmore"
    created, _added, _refused, listed = session.trace.all("tool_call")
    assert (created["state_effect"], created["resource_id"]) == ("mutate", "new/deep/a.txt")
    assert listed["state_effect"] == "read"


def test_files_edits_one_exact_text_or_nothing(lab):
    answers, work, _session = ask(
        lab, {"action": "edit", "path": "a.txt", "old": "two", "new": "2"},
        {"action": "edit", "path": "a.txt", "old": "o", "new": "0"},
        {"action": "edit", "path": "a.txt", "old": "absent", "new": "x"},
        {"action": "edit", "path": "a.txt", "old": "o", "new": "0", "all": True}, files={"a.txt": "one two for\n"})

    assert answers == [
        (False, "a.txt: 1 replaced"),
        (True, "a.txt holds the old text 2 times: give more of it, or all; nothing was changed"),
        (True, "a.txt does not hold the old text; nothing was changed"), (False, "a.txt: 2 replaced")]
    assert (work / "a.txt").read_text() == "0ne 2 f0r\n"


def test_files_searches_text_and_patterns(lab):
    answers, _work, _session = ask(
        lab, {"action": "search", "text": "needle"}, {"action": "search", "text": "NEEDLE", "ignore_case": True, "path": "sub"},
        {"action": "search", "text": "^n[a-z]+ [0-9]$", "regex": True}, {"action": "search", "text": "(", "regex": True},
        {"action": "search", "text": "nowhere"},
        files={"a.txt": "hay\nneedle 1\n", "sub/b.txt": "Needle 2\n", ".git/c.txt": "needle\n", "d.bin": b"needle\0"})

    passed_over = "\n[1 files passed over: binary, too large or unreadable]"
    assert answers == [
        (False, "a.txt:2: needle 1" + passed_over), (False, "sub/b.txt:1: Needle 2"), (False, "a.txt:2: needle 1" + passed_over),
        (True, "search: text is no regular expression: Missing ')'"), (False, "no line holds it" + passed_over)]


def test_files_reaches_nothing_outside_its_folder(lab):
    outside = lab.directory / "outside.txt"
    outside.write_text("secret")
    answers, work, _session = ask(
        lab, {"action": "read", "path": "/etc/passwd"}, {"action": "read", "path": "../../outside.txt"},
        {"action": "write", "path": "../escaped.txt", "content": "x"}, {"action": "list", "path": ".."})

    assert [is_error for is_error, _ in answers] == [True] * 4
    assert all("secret" not in text for _, text in answers)
    assert not (work.parent / "escaped.txt").exists()


def test_files_never_wait_for_a_pipe_in_their_folder(lab):
    agent = lab.agent(tools=[FILES], steps=[
        {"tool_calls": [{"name": "files", "input": {"action": "read", "path": "pipe"}},
                        {"name": "files", "input": {"action": "write", "path": "pipe", "content": "x"}},
                        {"name": "files", "input": {"action": "search", "path": ".", "text": "x"}}]},
        {"text": "done", "save_request": "request.json"}])
    (agent / "work").mkdir()
    os.mkfifo(agent / "work/pipe")
    agent.run("--task", "go", "--workdir", agent / "work", "--deadline", "60").ok()
    told = (agent / "work/request.json").read_text()
    assert told.count("pipe is no regular file") == 2


def test_files_answers_are_bounded(lab):
    answers, _work, session = ask(
        lab, {"action": "read", "path": "long.txt"}, {"action": "list", "path": "many"}, {"action": "search", "text": "x"},
        files={"long.txt": ("x" * 99 + "\n") * 1000, **{f"many/{n:04}": "" for n in range(600)}})

    (_, read), (_, listed), (_, found) = answers
    assert len(read) < 70_000 and read.endswith("[cut at 65536 bytes: go on with first_line 656]")
    assert listed.count("\n") == 500 and listed.endswith("[cut at 500 entries]")
    assert found.endswith("[cut at 200 lines]")


def test_files_may_be_read_only_by_its_config(lab):
    answers, work, _session = ask(lab, {"action": "write", "path": "a", "content": "x"}, {"action": "list"},
                                  config={"read_only": True})

    assert answers[0] == (True, "write: this tool may only read (config.read_only)")
    assert answers[1][0] is False
    assert not (work / "a").exists()


def test_scripted_driver_plays_text_calls_stop_reasons_and_usage(lab):
    project = lab.agent(tools=[FILES], steps=[
        {"thinking": "hm", "text": "first", "tool_calls": [{"name": "files", "input": {"action": "list"}, "id": "mine"}],
         "usage": {"input_tokens": 7, "output_tokens": 3}},
        {"text": "{{task}} {{step}} {{model}} {{tools}} {{unknown}}", "usage": "none"}])

    session = lab.session(project.run("--task", "count").ok())

    assert session.result_text.startswith("count 1 scripted files")
    assert session.result_text.endswith(" {{unknown}}")
    first, second = session.trace.all("inference")
    assert (first["stop_reason"], second["stop_reason"]) == ("tool_call", "end_turn")
    assert (first["input_tokens_actual"], first["output_tokens_actual"]) == (7, 3)
    assert "input_tokens_actual" not in second


def test_scripted_driver_reads_its_script_from_the_work_folder(lab):
    project = lab.agent(inference={"driver": {"artifact": "std/driver-scripted", "config": {"file": "script.json"}}})
    project.write("work/script.json", json.dumps([{"text": "from the file"}]))

    result = project.run("--task", "x", "--workdir", project / "work").ok()

    assert lab.session(result).result_text == "from the file"


def test_scripted_driver_picks_a_script_by_the_task(lab):
    project = lab.agent(inference={"driver": {"artifact": "std/driver-scripted", "config": {
        "scripts": [{"when": "weather", "steps": [{"text": "rain"}]}], "steps": [{"text": "something else"}]}}})

    assert lab.session(project.run("--task", "the weather?").ok()).result_text == "rain"
    assert lab.session(project.run("--task", "the time?").ok()).result_text == "something else"


@pytest.mark.parametrize("step, cause, told", [
    ({"error": "no luck"}, "driver_error", "no luck"),
    ({"error": {"message": "bad request", "status": 400}}, "driver_error", "provider answered 400: bad request"),
    ({"error": {"message": "in the answer", "stop_reason": "error"}}, "driver_error", "in the answer"),
    ({"text": "x", "stop_reason": "nonsense"}, "malformed_response", "nonsense"),
    ({"raw": "no JSON"}, "runtime_error", None),
    ({"trap": True}, "runtime_error", None),
])
def test_scripted_driver_fails_in_each_way(lab, step, cause, told):
    result = lab.agent(steps=[step], inference={"retry": {"max_retries": 0}}).run("--task", "x")

    assert result.code == 1
    session = lab.session(result)
    assert session.trace.one("task_failed")["cause"] == cause
    if told:
        assert told in json.dumps(session.trace.one("task_failed"))


def test_scripted_driver_recovers_from_transient_errors(lab):
    project = lab.agent(inference={"retry": {"initial_delay_ms": 1, "max_delay_ms": 2}}, steps=[
        {"error": {"message": "overloaded", "status": 529, "times": 2}, "text": "recovered"}])

    session = lab.session(project.run("--task", "x").ok())

    assert session.result_text == "recovered"
    assert len(session.trace.all("inference_retry")) == 2


def test_a_driver_without_upstream_needs_no_gateway_and_one_with_it_does(lab):
    lab.agent(steps=[{"text": "ok"}]).run("--task", "x").ok()
    refused = lab.project("other", {"name": "other", "version": "0.1.0",
                                    "artifacts": [{"name": "local/driver-scripted", "version": "0.1.0", "runtime": "driver"}],
                                    "inference": {"model": "scripted", "driver": {"artifact": "local/driver-scripted"}}})

    assert "gateway" in refused.run("--task", "x").failed("E-MAN-003").stderr


@pytest.mark.parametrize("folder", STD, ids=lambda folder: folder.name)
def test_a_bundled_artifact_is_complete(folder):
    manifest = yaml.safe_load((folder / "murmur.yaml").read_text())
    component = BUILD / "guests" / f"{folder.name}.wasm"
    store = BUILD / "artifacts/std" / folder.name / manifest["version"]
    stem = f"{folder.name}-{manifest['version']}"

    assert manifest["name"] == folder.name
    assert component.stat().st_size <= 120 << 10
    assert (folder / "README.md").is_file()
    archive = (store / f"{stem}.mur.zip").read_bytes()
    assert (store / f"{stem}.sha256").read_text() == hashlib.sha256(archive).hexdigest()
    meta = json.loads((store / f"{stem}.meta.json").read_text())["meta"]
    assert meta["name"] == f"std/{folder.name}"
    exports = meta["wit_contracts"]["exports"]
    if manifest["runtime"] == "hook":
        assert "murmur:hook/lifecycle@0.9.0" in exports
    else:
        assert "murmur:driver/process@0.3.0" in exports or "murmur:tool/run@0.1.0" in exports


def test_guests_have_the_same_bytes_wherever_they_are_built(lab):
    """Another path, another cache: a project that pinned a bundled artifact still verifies after a rebuild elsewhere."""
    real_cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    elsewhere = lab.directory / "some where/else"
    for part in ("artifacts", "wit", "scripts", "tests/guests"):
        (elsewhere / part).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-r", ROOT / part, elsewhere / part], check=True)
    environment = {**os.environ, "XDG_CACHE_HOME": str(lab.directory / "cache"), "MURMUR_TOOLS": f"{real_cache}/murmur/tools"}

    names = ("files", "json", "driver-openai", "echo")
    subprocess.run([elsewhere / "scripts/build-guests", elsewhere / "build", *(f"--only={name}" for name in names)],
                   env=environment, check=True, capture_output=True, timeout=120 * SLOWER)

    for name in names:
        assert (elsewhere / f"build/guests/{name}.wasm").read_bytes() == (BUILD / f"guests/{name}.wasm").read_bytes()

# SPDX-License-Identifier: Apache-2.0
#
# A newcomer's first hour: what comes with mur is found without a network, hints name what was meant, a failed launch breaks
# nothing, an installation only copies. Numbers are the rows of that hour's notes.

import json
import re
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.support.fixtures import own_component
from tests.support.harness import harness_project
from tests.support.lab import BUILD, IS_SANITIZED, ROOT
from tests.support.model_server import answer
from tests.support.terminal import Terminal


def test_newcomer_A5_what_comes_with_mur_is_listed_and_found_without_a_network(lab):
    for arguments in ([], ["-g"]):
        result = lab.mur("list", *arguments).ok()
        assert result.stdout == "No artifacts found.\n"
        assert "std/files@0.1.0" in result.stderr and "come with mur" in result.stderr
    result = lab.mur("search", "files").ok()
    assert re.search(r"^std/files +0\.1\.0 ", result.stdout, re.MULTILINE)
    assert "only what is on this machine was searched: " in result.stderr
    assert re.search(r"^std/driver-openai ", lab.mur("search", "driver", "--index", "local").ok().stdout, re.MULTILINE)
    lab.mur("search", "files", "--index", "./none.json").failed()


def test_newcomer_A5_a_roster_is_made_without_a_network(lab):
    result = lab.mur("new", "--roster", "team").ok()
    assert "name: std/driver-anthropic" in (lab.directory / "team/lead/murmur.yaml").read_text()
    steps = [line.strip() for line in result.stdout.splitlines() if line.strip().startswith("mur ")]
    for step in steps:
        if "doctor" not in step and "run" not in step:
            done = subprocess.run(f"cd team && {step.replace('mur ', f'{lab.mur_path} ')}", shell=True, cwd=lab.directory,
                                  env=lab.environment(), capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, (step, done.stdout, done.stderr)
    lab.mur("config", "set", "-g", "registry.index_url", "./none.json").ok()
    lab.mur("new", "--roster", "other").failed("E-NEW-006")


def test_newcomer_A7_a_failed_launch_is_not_the_newest_session(lab):
    project = lab.agent(steps=[{"text": "done"}])
    good = project.run("--task", "x").ok()
    project.run("--task", "x", "--bind", "1.2.3.4").failed("E-IO-003")
    assert len(lab.records) == 2
    assert good.session_id in project.mur("trace", "show").ok().stdout
    assert project.mur("trace", "steps").ok().stdout
    project.run("--resume", "--task", "go on").ok()
    project.mur("trace", "diff").ok()


def test_newcomer_A7_where_no_session_ever_began_that_is_said(lab):
    project = lab.agent(steps=[{"text": "done"}])
    project.run("--task", "x", "--bind", "1.2.3.4").failed("E-IO-003")
    project.mur("trace", "show").failed("E-IO-001")


@pytest.mark.skipif(IS_SANITIZED, reason="an installation is of the release build")
def test_newcomer_A6_an_installation_copies_what_was_built_and_says_where(lab, tmp_path):
    build = tmp_path / "build"
    shutil.copytree(BUILD, build, symlinks=True, ignore=shutil.ignore_patterns("*.o", "tests", "*.p"))
    command = [ROOT / "scripts/install", build, tmp_path / "nowhere"]
    env = {"HOME": str(tmp_path / "none"), "PATH": "/usr/bin:/bin"}
    (build / "mur").unlink()
    refused = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1 and "run `make build` first" in refused.stderr
    assert "bootstrap" not in subprocess.run(["make", "-n", "-C", ROOT, "install"], env=env, capture_output=True, text=True).stdout


@pytest.mark.skipif(IS_SANITIZED, reason="an installation is of the release build")
def test_newcomer_A6_each_installed_file_has_its_debian_package(lab):
    """debhelper refuses to make packages when one is missing, which only `make deb` would show."""
    def told(what):
        return json.loads(subprocess.run(["meson", "introspect", what, BUILD], capture_output=True, text=True, check=True).stdout)
    prefix = next(option["value"] for option in told("--buildoptions") if option["name"] == "prefix")
    patterns = [line.split()[0] for listed in (ROOT / "debian").glob("*.install") for line in listed.read_text().splitlines() if line]
    files = {Path(to).relative_to(prefix) for to in told("--installed").values()}
    assert Path("share/man/man1/mur-trace.1") in files
    missing = [str(file) for file in files
               if not any(fnmatch(str("usr" / above), pattern) for pattern in patterns for above in (file, *file.parents))]
    assert not missing, f"debian/*.install names none of {missing}"


@pytest.mark.parametrize("name, hint", [
    ("std/file", "did you mean std/files@0.1.0?"), ("std/fiels", "did you mean std/files@0.1.0?"),
    ("local/files", "did you mean std/files@0.1.0?"), ("std/nothing-like-it", None),
])
def test_newcomer_B4_a_name_nobody_has_is_told_its_neighbour(lab, name, hint):
    project = lab.agent(steps=[{"text": "done"}], tools=[{"name": name, "version": "0.1.0"}])
    result = project.run("--task", "x").failed("E-RUN-008")
    assert (hint or "run `mur install`") in result.stderr


@pytest.mark.parametrize("version", ["^0.1", "~0.1.0", "0.2.0", "1.x"])
def test_newcomer_B4_a_version_there_is_not_is_told_those_there_are(lab, version):
    project = lab.agent(steps=[{"text": "done"}], tools=[{"name": "std/files", "version": version}])
    for arguments in (["run", "--task", "x"], ["install", f"std/files@{version}"]):
        result = project.mur(*arguments)
        assert result.code == 1
        if "E-RUN-008" in result.stderr or "E-REG-001" in result.stderr:
            assert "there is std/files@0.1.0" in result.stderr
            assert ("not a range" in result.stderr) == (version != "0.2.0")


def test_newcomer_B3_a_name_without_a_scope_is_told_what_comes_with_mur(lab):
    project = lab.agent(steps=[{"text": "done"}], tools=[{"name": "files", "version": "0.1.0"}])
    assert "write std/files (what comes with mur)" in project.run("--task", "x").failed().stderr


def test_newcomer_B6_a_driver_that_is_spelled_nearly_so(lab):
    project = lab.agent(steps=[{"text": "done"}], inference={"driver": {"artifact": "std/driver-script"}})
    assert "did you mean std/driver-scripted, which is declared?" in project.run("--task", "x").failed("E-MAN-003").stderr


def test_newcomer_B9_and_B10_what_is_no_artifact_name(lab):
    project = lab.agent(steps=[{"text": "done"}])
    assert "missing.mur.zip" in project.mur("install", "missing.mur.zip").failed("E-IO-001").stderr
    result = project.mur("install", "http://127.0.0.1:1/echo.mur.zip").failed("E-REG-007")
    assert "an address is no source of artifacts" in result.stderr and "mur install ./" in result.stderr


# --- what the audit found ---


def keyed_agent(lab, model, name="agent"):
    return lab.agent(name, "std/driver-anthropic@0.1.0", gateway={"endpoint": model.url, "api_key": "${LAB_KEY}"},
                     inference={"model": "claude-test"}, context={"max_tokens": 100000})


def test_audit_08_a_configuration_that_others_may_read_is_said_by_run(lab, model):
    project = keyed_agent(lab, model)
    lab.mur("config", "set", "-g", "credentials.LAB_KEY", "hidden").ok()
    config = lab.murmur_home / "config.yaml"
    model.script(repeat=answer("done"))
    assert "W-SEC-028" not in project.run("--task", "x").ok().stderr
    config.chmod(0o644)
    result = project.run("--task", "x").ok()
    assert result.stderr.count("warning[W-SEC-028]") == 1
    for words in (str(config), "mode 0644", "credentials.LAB_KEY", f"chmod go-rwx {config}"):
        assert words in result.stderr
    assert "hidden" not in result.stderr
    assert "W-SEC-028" not in project.run("--explain-scope").ok().stderr
    assert "W-SEC-028" not in lab.agent("other", steps=[{"text": "x"}]).run("--task", "x").ok().stderr


def test_audit_13_input_txt_is_no_task_of_a_harness(lab):
    project = harness_project(lab, "keep('ran', sys.argv)\n")
    (project / "work").mkdir()
    project.write("work/input.txt", "not a task")
    result = project.run("--workdir", "work", env={"MURMUR_A2A_TIMEOUT_SECS": "1"})
    assert "no task came" in result.stderr and not (project / "work/ran").exists()


def test_audit_14_a_block_that_nothing_reads_is_said(lab):
    project = lab.agent(steps=[{"text": "done"}], deploy={"mur_version": "1"})
    assert "deploy: is read by nothing in this version" in project.run("--task", "x").ok().stderr


def test_audit_21_a_queue_that_exits_runs_what_waits_first(lab):
    project = lab.agent(steps=[{"text": "slow", "delay_ms": 1500}], lifecycle={"task_acceptance": "queue", "after_task": "exit"})
    running = project.start("--task", "own")
    running.wait_for("^session: ")
    lab.mur("send", "--detach", "@1", "waits").ok()
    running.result().ok()
    assert len(lab.session(running).trace.all("task_end")) == 2


def test_newcomer_A2_compiling_is_said_to_a_person(lab):
    padded = bytearray(own_component("echo").read_bytes())
    size = 3 << 20  # a custom section of a name and so many bytes
    body = b"\x03pad" + bytes(size)
    length, encoded = len(body), bytearray()
    while True:
        encoded.append(length & 0x7F | (0x80 if length > 0x7F else 0))
        length >>= 7
        if not length:
            break
    large = lab.directory / "large.wasm"
    large.write_bytes(padded + b"\x00" + encoded + body)
    project = lab.agent(steps=[{"text": "done"}], tools=[lab.publish("large", large)])
    first = Terminal(lab, "run", "--task", "x", cwd=project.directory)
    assert first.end() == 0 and re.search(r"note: compiling local/large \(3 MB\)", first.text)
    second = Terminal(lab, "run", "--task", "x", cwd=project.directory)
    assert second.end() == 0 and "compiling" not in second.text


@pytest.mark.parametrize("program, driver", [("claude-code", "driver-claude-code"), ("codex", "driver-codex")])
def test_new_harness_writes_a_capsule_whose_report_holds_the_harness(lab, program, driver):
    lab.mur("new", "harness", program, cwd=lab.directory).ok()
    folder = lab.directory / program
    manifest = (folder / "murmur.yaml").read_text()
    assert f"std/{driver}" in manifest and "containment: scoped" in manifest
    (lab.directory / "bin").mkdir()
    for name in ("claude", "codex"):
        (lab.directory / "bin" / name).write_text("#!/bin/sh\n")
        (lab.directory / "bin" / name).chmod(0o755)
    env = {"ANTHROPIC_API_KEY": "x", "OPENAI_API_KEY": "x", "PATH": f"{lab.directory}/bin:/usr/bin:/bin"}
    assert ", the harness\n" in lab.mur("run", "--explain-scope", cwd=folder, env=env).ok().stdout
    assert "claude-code or codex" in lab.mur("new", "harness", "other", cwd=lab.directory).stderr
    lab.mur("new", "harness", program, "mine", cwd=lab.directory).ok()
    named = (lab.directory / "mine/murmur.yaml").read_text()
    assert "name: mine" in named and f"std/{driver}" in named
    assert "unexpected argument 'b'" in lab.mur("new", "agent", "a", "b", cwd=lab.directory).failed(exit_status=2).stderr


SNAPSHOT = {"source": "/somewhere", "files": 3, "dirs": 1, "symlinks": 0, "repointed_symlinks": 0, "bytes": 15, "skipped_count": 1,
            "skipped": [{"path": "f", "reason": "fifo"}]}


def test_audit_04_the_child_knows_what_its_work_folder_is_a_copy_of(lab):
    probe = lab.publish("tool-probe", own_component("tool-probe"), input_schema={"type": "object"})
    project = lab.agent(tools=[probe], steps=[
        {"tool_calls": [{"name": "tool-probe", "input": {"do": "read murmur-runtime/MURMUR.md"}}]}, {"text": "{{result}}"}])
    result = project.run("--task", "x", "--parent-workdir-snapshot", json.dumps(SNAPSHOT)).ok()
    start = lab.session(result).trace.one("session_start")
    assert start["workdir_snapshot"] == SNAPSHOT
    assert "3 files, 1 entry left out. Changes do not reach the original." in lab.session(result).result_text
    assert "workdir_snapshot" not in lab.session(project.run("--task", "x").ok()).trace.one("session_start")


@pytest.mark.parametrize("text", ["garbage", "[]", "{}", "null", json.dumps({**SNAPSHOT, "files": "3"}), ""])
def test_audit_04_a_snapshot_that_is_no_report_is_a_usage_error(lab, text):
    project = lab.agent(steps=[{"text": "done"}])
    result = project.run("--task", "x", "--parent-workdir-snapshot", text).failed(exit_status=2)
    assert "--parent-workdir-snapshot is no report of a snapshot" in result.stderr and result.stdout == ""

# SPDX-License-Identifier: Apache-2.0
#
# Acceptance cases of spec/cli.md: addresses, running sessions, configuration, doctor, conversation records, versions,
# templates; and those of spec/records.md about listing and removing recorded sessions.

import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess

import pytest

from tests.support.hosts import needs
from tests.support.lab import BUILD, ROOT
from tests.support.polling import eventually, pid_exists, tree_of

OLD = "ses_01a2283877a57c0a9f6a5e2244880001"
NEW = "ses_01a2283877a67c0a9f6a5e2244880002"


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def trace_line(event_type, session, **payload):
    return json.dumps({"event_type": event_type, "event_id": "evt_1", "parent_id": None, "session_id": session,
                       "timestamp": 1796000000000, **payload}) + "\n"


def record_session(lab, workdir, session, context="ctx_1"):
    """A records directory as a session leaves it, as far as its reader asks."""
    records = lab.murmur_home / "records" / str(workdir.resolve()).lstrip("/") / session
    write(records / "trace.jsonl",
          trace_line("task_start", session, task_id="tsk_1", context_id=context, source="task_md", origin="user",
                     trust="trusted", lane="user", message_parts_bytes=1)
          + trace_line("session_end", session, total_turns=1, total_input_tokens=1, total_output_tokens=1,
                       total_tool_calls=0, total_shell_calls=0, duration_ms=5, exit_status="ok"))
    return records


# --- addresses ---


def test_cli_06_resume_and_context_exclude_each_other(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    project.run("--resume", "--context", "x").failed("E-RUN-015")


def test_cli_06_resume_needs_a_recorded_session(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    result = project.run("--resume").failed("E-TRC-002")
    assert result.stdout == "status:  failed\n"
    assert not (project / "workdir").exists()


def test_cli_06_a_resume_mode_alone_is_a_usage_error(lab):
    assert lab.mur("run", "--resume-mode", "compact").failed(exit_status=2).stdout == ""


def test_cli_07_a_deadline_of_zero_is_a_usage_error(lab):
    lab.mur("run", "--deadline", "0").failed(exit_status=2)


# --- what the launcher sets, what a manifest says ---


def test_cli_10_a_misspelt_key_is_named_and_the_run_proceeds(lab):
    project = lab.agent(steps=[{"text": "hi"}], capabilites={})
    result = project.run("--task", "x").ok()
    assert "warning[W-SEC-019]" in result.stderr
    assert "'capabilites'" in result.stderr and "'capabilities'" in result.stderr


@pytest.mark.parametrize("variable, value, code", [
    ("MURMUR_SPAWNER", "{}", "E-RUN-020"),
    ("MURMUR_FORMATION_ID", "bad", "E-RUN-044"),
])
def test_cli_12_a_malformed_launcher_variable_refuses(lab, variable, value, code):
    project = lab.agent(steps=[{"text": "hi"}])
    project.run("--task", "x", env={variable: value}).failed(code)
    assert tree_of(project.directory) == ["murmur.yaml"]


def test_cli_12_a_blank_spawner_is_none(lab):
    lab.agent(steps=[{"text": "hi"}]).run("--task", "x", env={"MURMUR_SPAWNER": " "}).ok()


def test_cli_12_a_formation_id_in_the_env_file_is_ignored(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    project.write(".env", "MURMUR_FORMATION_ID=bad\n")
    project.run("--task", "x").ok()


# --- nothing running ---


def test_cli_13_ps_says_that_nothing_runs(lab):
    assert lab.mur("ps").ok().stdout == "no running capsules\n"


def test_cli_13_ps_json_is_empty_and_creates_nothing(lab):
    assert lab.mur("ps", "--json").ok().json == {"capsules": [], "formations": []}
    assert not lab.murmur_home.exists()


def test_cli_14_ps_json_and_verbose_exclude_each_other(lab):
    assert lab.mur("ps", "--json", "--verbose").failed(exit_status=2).stdout == ""


def test_cli_18_cancel_without_a_session_is_a_usage_error(lab):
    lab.mur("cancel", "tsk_x").failed(exit_status=2)


# --- a running session ---


def sleeping(lab, name="agent"):
    """A capsule whose task is done and whose door stays open."""
    project = lab.agent(name, steps=[{"text": "hi"}], lifecycle={"task_acceptance": "queue", "after_task": "sleep"})
    running = project.start("--json", "--task", "x")
    line = json.loads(running.wait_for(r"^\{.*\}$").group(0))
    trace = os.path.join(line["records_dir"], "trace.jsonl")

    def task_end():
        with open(trace, encoding="utf-8") as text:
            return [json.loads(event) for event in text if '"event_type":"task_end"' in event]
    [ended] = eventually(task_end)
    return running, line, ended["task_id"]


def test_cli_15_the_record_of_a_killed_capsule_goes_and_says_why(lab):
    running, line, _ = sleeping(lab)
    running.kill()
    result = lab.mur("stop", line["session_id"][-8:]).failed("E-RUN-022")
    assert line["session_id"] in result.stderr and "removed" in result.stderr
    assert not (lab.murmur_home / "running" / f"{line['session_id']}.json").exists()


def test_cli_15_ps_prunes_what_is_gone_and_json_does_not(lab):
    running, line, _ = sleeping(lab)
    [row] = lab.mur("ps", "--json").ok().json["capsules"]
    assert (row["session_id"], row["status"], row["pid"]) == (line["session_id"], "running", running.pid)
    assert [field for field in lab.mur("ps").ok().stdout.splitlines()[1].split()[:3]] == [
        line["session_id"], "agent@0.1.0", "running"]
    running.kill()
    assert lab.mur("ps", "--json").ok().json["capsules"] == []
    record = lab.murmur_home / "running" / f"{line['session_id']}.json"
    assert record.exists()
    assert f"pruned: {line['session_id']} — " in lab.mur("ps", "--verbose").ok().stderr
    assert not record.exists()


def test_cli_15_stop_ends_the_process_and_its_record(lab):
    running, line, _ = sleeping(lab)
    result = lab.mur("stop", "@1").ok()
    assert result.stdout.splitlines()[:3] == [
        f"stopped: {line['session_id']}", "capsule: agent@0.1.0", "signal:  SIGTERM"]
    assert result.stdout.splitlines()[-1].startswith("residue: ")
    assert running.result().code == 0
    assert not list((lab.murmur_home / "running").iterdir())


def test_cli_15_stop_with_no_time_kills(lab):
    running, _, _ = sleeping(lab)
    assert "signal:  SIGKILL" in lab.mur("stop", "@1", "--timeout", "0").ok().stdout
    assert running.result().code == -signal.SIGKILL
    assert not pid_exists(running.pid)


def test_cli_16_a_public_door_has_no_token(lab):
    sleeping(lab)
    assert lab.mur("token").failed("E-RUN-048").stdout == ""


def test_cli_18_a_finished_task_needs_no_cancel(lab):
    _, line, task = sleeping(lab)
    for arguments in (("@1", task), ("--url", line["url"], task)):
        result = lab.mur("cancel", *arguments).ok()
        assert result.stdout == (f"task:    {task}\nstate:   completed\n"
                                 "nothing to cancel: the task had already ended\n")
    lab.mur("cancel", "@1", "tsk_absent").failed("E-IO-003")


def test_cli_32_two_capsules_are_listed_the_newer_first(lab):
    _, first, _ = sleeping(lab, "one")
    _, second, _ = sleeping(lab, "two")
    listed = [row["session_id"] for row in lab.mur("ps", "--json").ok().json["capsules"]]
    assert listed == [second["session_id"], first["session_id"]]
    assert second["session_id"] in lab.mur("stop", "@1").ok().stdout


@pytest.mark.parametrize("address", ["@0", "@2", "@x", "abc", "a/b", "localhost:1", "x.jsonl", "ffffffff"])
def test_cli_running_sessions_by_address(lab, address):
    _, line, _ = sleeping(lab)
    assert lab.mur("token", address).failed("E-RUN-022").stdout == ""
    lab.mur("token", line["session_id"][-6:].upper()).failed("E-RUN-048")


def test_records_17_a_running_session_is_not_removed(lab):
    running, line, _ = sleeping(lab)
    result = lab.mur("trace", "rm", "@1", cwd=lab.directory / "agent").failed("E-RUN-024")
    assert f"pid {running.pid}" in result.stderr
    assert os.path.isdir(line["records_dir"]) and os.path.isdir(line["workdir"])


# --- configuration ---


def test_cli_19_credentials_are_global_only_and_private(lab):
    lab.mur("config", "set", "credentials.X_KEY", "v").failed("E-CFG-002")
    result = lab.mur("config", "set", "-g", "credentials.X_KEY", "sekret-value").ok()
    assert result.stdout == "Set credentials.X_KEY in ~/.murmur/config.yaml\n"
    assert "sekret" not in result.stdout + result.stderr
    assert mode(lab.murmur_home / "config.yaml") == 0o600
    assert mode(lab.murmur_home) == 0o700


def test_cli_19_an_unknown_key_creates_no_file(lab):
    for words in (["get", "nothing"], ["get", "credentials.lower"], ["unset", "nothing"], ["set", "nothing", "v"]):
        assert f'there is no configuration key "{words[1]}"' in lab.mur("config", *words).failed("E-CFG-002").stderr
    assert "did you mean inference.model?" in lab.mur("config", "get", "model").failed("E-CFG-002").stderr
    assert "did you mean inference.model?" in lab.mur("config", "set", "inference.modle", "v").failed("E-CFG-002").stderr
    assert "containment is not set\n" in lab.mur("config", "get", "containment").failed("E-CFG-002").stderr
    result = lab.mur("config", "set", "nope", "v").failed("E-CFG-002")
    assert "registry.index_url" in result.stderr
    assert tree_of(lab.directory / "home") == []


def test_cli_19_a_project_key_lands_in_the_project(lab):
    project = lab.project()
    result = project.mur("config", "set", "inference.model", "m").ok()
    path = project / ".murmur/config.yaml"
    assert result.stdout == f"Set inference.model in {path}\n"
    assert "m" in path.read_text()


def test_cli_19_the_api_key_comes_with_a_note(lab):
    result = lab.mur("config", "set", "-g", "inference.api_key", "sk-1").ok()
    assert "note: " in result.stderr and "sk-1" not in result.stdout + result.stderr


def test_cli_20_an_api_key_in_the_project_file_is_warned_about_and_ignored(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    path = project.write(".murmur/config.yaml", "inference: {api_key: sk-project}\n")
    result = project.run("--explain-scope").ok()
    assert f"warning: {path}: inference.api_key" in result.stderr
    assert "sk-project" not in result.stdout + result.stderr


def test_cli_21_the_strongest_floor_of_both_files_counts(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    write(lab.murmur_home / "config.yaml", "containment: sealed\n")
    project.write(".murmur/config.yaml", "containment: advisory\n")
    assert project.run("--explain-scope", "--json").ok().json["declared_containment"] == "sealed"
    write(lab.murmur_home / "config.yaml", "{}\n")
    assert project.run("--explain-scope", "--json").ok().json["declared_containment"] == "advisory"


def test_cli_21_a_spend_ceiling_of_zero_is_refused_naming_the_file(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    path = project.write(".murmur/config.yaml", "spend: {machine_tokens_per_day: 0}\n")
    result = project.run("--task", "x").failed("E-IO-003")
    assert str(path) in result.stderr


# --- doctor ---


def test_cli_24_doctor_names_a_missing_artifact_and_its_fix(lab):
    project = lab.agent(steps=[{"text": "hi"}], tools=["ana/tool-x@1.2.0"])
    result = project.mur("doctor").failed()
    assert "  ✗  ana/tool-x@1.2.0   " in result.stdout
    assert "Fix: mur install ana/tool-x@1.2.0\n" in result.stdout
    assert "2 checks passed, 1 error found" in result.stdout
    assert "error[" not in result.stderr


def test_cli_24_doctor_with_nothing_wrong(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    before = tree_of(lab.directory)
    result = project.mur("doctor").ok()
    assert "  ✓  std/driver-scripted@0.1.0   platform-independent\n" in result.stdout
    assert result.stdout.endswith("\nAll checks passed.\n")
    assert tree_of(lab.directory) == before


def test_cli_24_doctor_warnings_do_not_fail(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    lab.murmur_home.mkdir(mode=0o755)
    result = project.mur("doctor").ok()
    assert "warning[W-SEC-028]" in result.stderr
    assert "1 warning" in result.stdout


def test_cli_24_doctor_outside_a_project(lab):
    assert lab.mur("doctor").failed("E-IO-001").stdout == ""


def test_cli_24_doctor_finds_the_project_from_below(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    (project / "a/b").mkdir(parents=True)
    assert f"Checking {project / 'murmur.yaml'} for " in lab.mur("doctor", cwd=project / "a/b").ok().stdout


def test_cli_24_doctor_shows_a_malformed_manifest_first(lab):
    project = lab.project("bad", "name: [\n")
    assert project.mur("doctor").failed("E-MAN-002").stdout == ""


def test_cli_25_doctor_never_prints_a_value(lab):
    project = lab.agent(steps=[{"text": "hi"}], capabilities={"env": {"allow": ["LAB_ONE"]}})
    result = project.mur("doctor", env={"LAB_ONE": "value-not-to-be-shown"})
    assert "value-not-to-be-shown" not in result.stdout + result.stderr


def test_cli_11_doctor_and_run_say_the_same_of_an_exposed_door(lab):
    project = lab.agent(steps=[{"text": "hi"}])
    warning = [line for line in project.mur("doctor", "--bind", "0.0.0.0").ok().stdout.splitlines()
               if "W-SEC-032" in line]
    assert len(warning) == 1
    assert warning[0] in project.run("--explain-scope", "--bind", "0.0.0.0").ok().stderr.splitlines()


# --- features that are not there ---


def test_cli_27_features_that_are_not_compiled_in_are_unknown(lab):
    assert lab.mur("deploy", "ls").failed(exit_status=2).stdout == ""
    assert lab.mur("beta", "list").ok().stdout == "This build has no beta features.\n"
    assert "warning: " in lab.mur("beta", "enable", "mur-deploy").ok().stderr
    lab.mur("beta", "disable", "mur-deploy").ok()
    assert "already" in lab.mur("beta", "disable", "mur-deploy").ok().stdout


# --- conversation records ---


def record_conversation(lab, store, context, count=3):
    text = "".join(json.dumps({"id": f"msg_{number}", "role": "user", "content": f"text {number}"}) + "\n"
                   for number in range(count))
    return write(lab.murmur_home / "conversations" / store / context / "conversation.jsonl", text)


def test_cli_28_truncate_keeps_at_least_one_message(lab):
    record_conversation(lab, "bot", "c")
    lab.mur("conversation", "truncate", "c", "--keep", "0").failed("E-CNV-003")


def test_cli_28_a_context_in_two_stores_is_ambiguous(lab):
    record_conversation(lab, "bot", "c")
    record_conversation(lab, "other", "c")
    result = lab.mur("conversation", "rm", "c").failed("E-CNV-002")
    assert "bot" in result.stderr and "other" in result.stderr
    lab.mur("conversation", "rm", "absent").failed("E-CNV-001")
    lab.mur("conversation", "rm", "c", "--record", "other").ok()
    assert (lab.murmur_home / "conversations/bot/c").exists()
    assert not (lab.murmur_home / "conversations/other/c").exists()


def test_cli_28_conversations_are_listed_shown_and_cut(lab):
    path = record_conversation(lab, "bot", "c", 5)
    assert lab.mur("conversation", "ls").ok().stdout.splitlines()[0].split() == [
        "RECORD", "CONTEXT", "MESSAGES", "SIZE", "LAST", "TOUCHED", "TRUNCATED"]
    assert lab.mur("conversation", "show", "c").ok().stdout.splitlines() == [
        "record:   bot", "context:  c", "messages: 5", *(f"   {n + 1}  user       text {n}" for n in range(5))]
    cut = lab.mur("conversation", "truncate", "c", "--keep", "2").ok()
    assert cut.stdout == f"dropped 3 messages from {path} (2 kept; oldest surviving is msg_3)\n"
    assert lab.mur("conversation", "truncate", "c", "--keep", "2").ok().stdout.endswith(
        "already holds 2 messages; nothing dropped\n")
    [row] = lab.mur("conversation", "ls", "--json").ok().json
    assert list(row) == sorted(row)
    assert (row["record"], row["messages"], row["truncated"]["dropped"]) == ("bot", 2, 3)
    assert lab.mur("conversation", "ls", "--message", "msg_4").ok().stdout == (
        "present:   msg_4 is message 2 of 2 in bot/c\n")
    assert lab.mur("conversation", "ls", "--message", "zzz").ok().stdout.startswith("unknown:")


def test_cli_28_no_records(lab):
    assert lab.mur("conversation", "ls").ok().stdout == "No conversation records.\n"
    assert lab.mur("conversation", "ls", "--json").ok().json == []
    assert not lab.murmur_home.exists()


# --- versions and explanations ---


def test_cli_31_version_json_has_its_keys_in_order(lab):
    answer = lab.mur("version", "--json").ok().json
    assert list(answer) == ["mur_version", "commit", "wit_level", "packages", "commands"]
    assert answer["commands"]["run --json"] == 1
    assert {"package": "murmur:tool", "version": "0.1.0"} in answer["packages"]


def test_cli_self_names_the_program_and_its_parts(lab):
    answer = lab.mur("self", "--json").ok().json
    assert list(answer) == ["mur_version", "commit", "program", "bundled_store", "home", "compiler", "machine", "parts", "artifacts"]
    assert answer["program"] == os.path.realpath(BUILD / "mur") and answer["home"] == str(lab.home / ".murmur")
    versions = {part["part"]: part["version"] for part in answer["parts"]}
    assert {"wasmtime", "jansson", "libcurl"} <= versions.keys() and all(versions.values())
    for artifact in answer["artifacts"]:
        scope, name = artifact["artifact"].split("/")
        archive = BUILD / "artifacts" / scope / name / artifact["version"] / f"{name}-{artifact['version']}.mur.zip"
        assert hashlib.sha256(archive.read_bytes()).hexdigest() == artifact["sha256"]
    text = lab.mur("self").ok().stdout
    assert f"program        {answer['program']}" in text and all(part in text for part in versions)


def test_cli_explain_knows_every_code_it_lists(lab):
    codes = [line.split()[0] for line in lab.mur("explain").ok().stdout.splitlines()]
    assert len(codes) == len(set(codes)) > 100
    text = lab.mur("explain", codes[0].lower()).ok().stdout
    assert text.startswith(codes[0] + "\n") and "What to do: " in text
    assert "hint: mur explain E-CAP-003" in lab.mur("explain", "E-CAP-0033").failed("E-IO-001").stderr


def test_audit_14_a_code_that_is_never_printed_says_so(lab):
    for code in ("E-CFG-001", "E-NEW-001", "E-DEPLOY-001", "E-TOP-001", "W-DEPLOY-001", "E-RUN-005"):
        text = lab.mur("explain", code).ok().stdout
        assert "This version of mur never prints it" in text and "What to do" not in text


def test_cli_a_build_command_that_fails_packs_nothing(lab):
    lab.mur("new", "tool", "broken", "--language", "python", cwd=lab.directory).ok()
    manifest = lab.directory / "broken/murmur.yaml"
    manifest.write_text(manifest.read_text().split("build: |")[0] + "build: echo no good; exit 3\n")
    failed = lab.mur("build", cwd=lab.directory / "broken").failed("E-BLD-006")
    assert "no good" in failed.stderr and "ended with status 3" in failed.stderr
    assert not list((lab.directory / "broken").glob("*.zip"))


# --- recorded sessions ---


def test_records_list_is_newest_first_and_creates_nothing(lab):
    project = lab.project()
    record_session(lab, project / "workdir", OLD, "ctx_old")
    record_session(lab, project / "workdir", NEW, "ctx_new")
    before = tree_of(lab.directory)
    answer = project.mur("trace", "list", "--json").ok().json
    assert [row["session_id"] for row in answer["sessions"]] == [NEW, OLD]
    assert [row["context_id"] for row in answer["sessions"]] == ["ctx_new", "ctx_old"]
    assert answer["sessions"][1]["started_at"].endswith("Z") and answer["sessions"][1]["running"] is False
    assert answer["workdir_root"] == str(project / "workdir")
    assert tree_of(lab.directory) == before


def test_records_02_a_killed_session_is_shown_and_not_compared(lab):
    project = lab.project()
    records = record_session(lab, project / "workdir", OLD)
    record_session(lab, project / "workdir", NEW)
    lines = (records / "trace.jsonl").read_text().splitlines(keepends=True)
    (records / "trace.jsonl").write_text(lines[0])
    shown = project.mur("trace", "show", "@2").ok().stdout
    assert "status:     ended without a session_end (last event: task_start at " in shown
    project.mur("trace", "diff", "@2", "@1").failed("E-TRC-001")
    (project / "workdir").mkdir()
    report = project.mur("trace", "report").ok()
    assert "skipped 1 incomplete session(s)" in report.stderr
    assert "Sessions: 1  (" in report.stdout


def test_records_03_a_torn_line_is_named(lab):
    project = lab.project()
    trace = record_session(lab, project / "workdir", OLD) / "trace.jsonl"
    whole = trace.read_text()
    trace.write_text(whole[:-20])
    assert "line 2, the last, is not valid JSON and was skipped" in project.mur("trace", "show").ok().stdout
    trace.write_text("{torn\n" + whole)
    assert f"{trace}:1: " in project.mur("trace", "show").failed("E-TRC-001").stderr


@pytest.mark.parametrize("address, code", [
    ("@0", "E-TRC-002"), ("@3", "E-TRC-002"), ("@x", "E-TRC-002"), ("ffff", "E-TRC-002"), ("0", None),
    ("4880001", None), (OLD, None), (OLD.upper().replace("SES", "ses"), None), ("./absent.jsonl", "E-IO-001"),
    ("8000", "E-TRC-002"),
])
def test_cli_recorded_sessions_by_address(lab, address, code):
    project = lab.project()
    record_session(lab, project / "workdir", OLD)
    if code or address != "0":
        record_session(lab, project / "workdir", NEW)
    if address == "0":
        address = "1"
    result = project.mur("trace", "show", address)
    if code:
        assert result.failed(code).stdout == ""
    else:
        assert OLD in result.ok().stdout


def test_cli_an_ambiguous_suffix_lists_every_match(lab):
    project = lab.project()
    for session in (OLD, OLD[:-4] + "1" + OLD[-3:]):
        record_session(lab, project / "workdir", session)
    result = project.mur("trace", "rm", OLD[-2:]).failed("E-TRC-002")
    assert result.stderr.count("ses_") == 2


def test_records_16_an_unreadable_running_directory_is_never_nothing(lab):
    project = lab.project()
    record_session(lab, project / "workdir", OLD)
    write(lab.murmur_home / "running", "a file in its place")
    assert project.mur("trace", "list", "--json").failed("E-RUN-028").stdout == ""


def test_records_17_a_session_is_removed_with_its_work_folder(lab):
    project = lab.project()
    records = record_session(lab, project / "workdir", OLD)
    work = project / "workdir" / OLD
    work.mkdir(parents=True)
    result = project.mur("trace", "rm", "@1").ok()
    assert result.stdout == f"removed work folder {work}\nremoved records {records}\n"
    assert not work.exists() and not records.exists() and records.parent.exists()


def test_records_17_with_a_workdir_the_work_folder_stays(lab):
    project = lab.project()
    records = record_session(lab, project / "elsewhere", OLD)
    kept = project / "elsewhere" / OLD
    kept.mkdir(parents=True)
    answer = project.mur("trace", "rm", OLD, "--workdir", "elsewhere", "--json").ok().json
    assert answer == {"session_id": OLD, "records_dir": str(records), "session_dir": None, "running_record": None}
    assert kept.exists() and not records.exists()


def test_records_18_a_path_is_no_session_to_remove(lab):
    project = lab.project()
    (project / "workdir/ses_x").mkdir(parents=True)
    project.mur("trace", "rm", "./workdir/ses_x").failed("E-TRC-002")
    assert (project / "workdir/ses_x").exists()


def test_records_18_a_link_in_place_of_the_records_is_refused(lab):
    project = lab.project()
    records = record_session(lab, project / "workdir", OLD)
    target = records.rename(lab.directory / "target")
    records.symlink_to(target)
    result = project.mur("trace", "rm", OLD).failed("E-RUN-050")
    assert str(records) in result.stderr
    assert (target / "trace.jsonl").exists()


# --- templates ---


@pytest.mark.parametrize("name", ["Upper", "a/b", "..", "", "-x", "a" * 94])
def test_cli_new_refuses_names_no_capsule_can_have(lab, name):
    lab.mur("new", "--", "agent", name).failed("E-NEW-002")
    assert tree_of(lab.directory) == ["home", "tmp"]


def test_cli_26_new_never_overwrites(lab):
    lab.mur("new", "agent", "hello").ok()
    before = tree_of(lab.directory)
    lab.mur("new", "script", "hello").failed("E-NEW-003")
    (lab.directory / "dangling").symlink_to("nowhere")
    lab.mur("new", "script", "dangling").failed("E-NEW-003")
    (lab.directory / "dangling").unlink()
    assert tree_of(lab.directory) == before


def test_cli_new_agent_runs_as_it_comes(lab):
    lab.mur("new", "agent", "hello").ok()
    result = lab.mur("run", "--task", "look around", cwd=lab.directory / "hello").ok()
    assert "look around" in lab.session(result).result_text
    assert "note.txt" in lab.session(result).result_text


def test_cli_new_coder_runs_what_it_wrote_and_keeps_its_class(lab):
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    needs(lab, "scoped")
    lab.mur("new", "coder", "hello").ok()
    result = lab.mur("run", "--task", "add a check", cwd=lab.directory / "hello").ok()
    session = lab.session(result)
    assert [event["exit_code"] for event in session.trace.all("shell")] == [0, 0]
    assert "check" in session.result_text
    assert session.trace.one("session_start")["effective_grants"]["achieved_containment"] == "scoped"


def build_guest(folder):
    subprocess.run([ROOT / "scripts/build-guests", "--folder", folder], check=True, stdout=subprocess.DEVNULL)


def test_cli_new_script_builds_and_runs_as_it_comes(lab):
    lab.mur("new", "script", "hello").ok()
    folder = lab.directory / "hello"
    build_guest(folder)
    lab.mur("run", "--task", "the world", cwd=folder).ok()
    [result] = folder.glob("workdir/*/out/result.txt")
    assert result.read_text() == "hello was asked: the world\n"


def test_cli_new_agent_tool_builds_and_runs_as_it_comes(lab):
    lab.mur("new", "agent-tool", "hello").ok()
    folder = lab.directory / "hello"
    build_guest(folder / "tool")
    lab.mur("build", "tool", cwd=folder).ok()
    lab.mur("publish", "tool/hello-tool-0.1.0.mur.zip", cwd=folder).ok()
    result = lab.mur("run", "--task", "greet the world", cwd=folder).ok()
    assert "Hello, world!" in lab.session(result).result_text


# --- the manual page ---


def test_cli_the_manual_page_names_every_command(lab):
    page = BUILD / "src/cli/mur.1"
    if not page.is_file():
        pytest.skip(f"{page} is not built here")
    text = page.read_text()
    for command in ("run", "trace show", "conversation truncate", "explain"):
        assert f"mur {command}".replace("-", "\\-") in text

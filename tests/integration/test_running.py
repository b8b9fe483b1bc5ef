# SPDX-License-Identifier: Apache-2.0
#
# Running records and the commands that go by them (spec/door.md 16 and 17, spec/records.md 5, spec/cli.md 3): what is listed,
# kept, removed and signalled, on real sessions and on records of processes that are something else.

import json
import os
import re
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.door_client import SLEEPER, Door
from tests.support.lab import SLOWER
from tests.support.polling import eventually, pid_exists

KEYS = ["session_id", "url", "pid", "process_start", "capsule_name", "capsule_version", "workdir", "records_dir",
        "outlives_launcher", "started_at"]


def start_time(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        return stat.read().rsplit(")", 1)[1].split()[19]


def state_of(stat):
    """The state letter of one thread."""
    return stat.read_text(errors="replace").rsplit(")", 1)[1].split()[0]


def session_id(number):
    return f"ses_01900000{number:024x}"


def write_record(lab, number=1, pid=None, **changes):
    """A running record as a session would have left it; returns its path."""
    pid = os.getpid() if pid is None else pid
    record = {"session_id": session_id(number), "url": "localhost:1", "pid": pid,
              "process_start": start_time(pid) if pid_exists(pid) else "1", "capsule_name": "old", "capsule_version": "0.1.0",
              "workdir": str(lab.directory), "records_dir": str(lab.directory), "outlives_launcher": True,
              "started_at": "2026-01-05T10:00:00.123456789+00:00", **changes}
    directory = lab.murmur_home / "running"
    directory.mkdir(parents=True, exist_ok=True)
    lab.murmur_home.chmod(0o700)
    directory.chmod(0o700)
    path = directory / f"{record['session_id']}.json"
    path.write_text(json.dumps({key: value for key, value in record.items() if value is not None}, indent=2))
    return path


@pytest.fixture
def bystander():
    """A process that has nothing to do with any session."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


@contextmanager
def mute_door():
    """Accepts connections and says nothing: (address)."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield f"localhost:{listener.getsockname()[1]}"


def sleeper(lab, name="agent", **more):
    running = lab.agent(name=name, steps=[{"text": "done"}], lifecycle=SLEEPER, **more).start()
    return running, Door(running)


# --- the record ---


def test_door_37_a_launch_makes_the_folder_private_and_writes_ten_keys(lab):
    directory = lab.murmur_home / "running"
    directory.mkdir(parents=True)
    directory.chmod(0o755)
    running, _ = sleeper(lab)
    path = directory / f"{running.session_id}.json"
    assert directory.stat().st_mode & 0o777 == 0o700 and lab.murmur_home.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    record = json.loads(text)
    assert list(record) == KEYS
    assert text == json.dumps(record, indent=2, ensure_ascii=False)  # indented by two, no newline at the end
    assert (record["pid"], record["process_start"]) == (running.pid, start_time(running.pid))
    assert re.fullmatch(r"localhost:\d+", record["url"]) and record["session_id"] == running.session_id
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}\+00:00", record["started_at"])
    assert record["outlives_launcher"] is True  # started without a terminal
    assert os.path.isdir(record["workdir"]) and os.path.isfile(f"{record['records_dir']}/trace.jsonl")
    assert os.listdir(directory) == [path.name]  # no staging file is left
    running.signal()
    running.result(20).ok()
    assert os.listdir(directory) == []


def test_door_16_a_record_that_cannot_be_written_is_a_warning(lab):
    lab.murmur_home.mkdir()
    (lab.murmur_home / "running").write_text("a file in its place")
    running, door = sleeper(lab)
    assert door.send()["status"]["state"] == "TASK_STATE_COMPLETED"
    running.signal()
    result = running.result(20).ok()
    assert "W-SEC-023" in result.stderr
    assert "warning[W-SEC-023]" in (lab.session(running).records / "logs/bootstrap.log").read_text()


# --- liveness ---


def test_door_35_a_reused_pid_is_pruned_and_never_signalled(lab, bystander):
    for command in (("ps",), ("watch", "@1"), ("stop", session_id(1)), ("cancel", session_id(1), "tsk_x"), ("token",)):
        path = write_record(lab, pid=bystander.pid, process_start="12345")
        result = lab.mur(*command)
        assert not path.exists(), command
        if command[0] == "ps":
            assert result.ok().stdout == "no running capsules\n" and "pruned 1 stale record" in result.stderr
        else:
            assert "another process" in result.failed("E-RUN-022").stderr
        assert bystander.poll() is None


def test_records_19_an_unreadable_start_time_is_no_evidence(lab, bystander):
    path = write_record(lab, pid=bystander.pid, process_start="")
    assert lab.mur("ps").ok().stdout.splitlines()[1].split()[2] == "unreachable"
    assert path.exists()
    refused = lab.mur("stop", session_id(1), "--timeout", "1").failed("E-RUN-024")
    assert "start time" in refused.stderr and bystander.poll() is None and path.exists()


@pytest.mark.parametrize("pid", [0, -1, 2 ** 31, 4194304])
def test_door_16_pids_that_name_nobody_are_gone(lab, pid):
    path = write_record(lab, pid=pid, process_start="1")
    path.with_suffix(".control").write_text("ctl1.x.y")
    assert lab.mur("ps").ok().stdout == "no running capsules\n"
    assert os.listdir(path.parent) == []  # the control token goes with it


def test_door_16_a_zombie_is_dead(lab):
    child = subprocess.Popen(["true"])
    eventually(lambda: not pid_exists(child.pid))
    path = write_record(lab, pid=child.pid, process_start=start_time(child.pid))
    assert "its process has ended" in lab.mur("watch").failed("E-RUN-022").stderr
    assert not path.exists()
    child.wait()


def test_door_36_a_door_that_never_answers_keeps_its_record(lab):
    with mute_door() as address:
        path = write_record(lab, url=address)
        row = lab.mur("ps").ok().stdout.splitlines()[1].split()
        assert (row[0], row[2], row[-1]) == (session_id(1), "unreachable", address)
        assert lab.mur("ps", "--json").ok().json["capsules"][0]["status"] == "unreachable"
        lab.mur("watch").failed("E-RUN-023")
        lab.mur("cancel", "@1", "tsk_x").failed("E-RUN-023")
        assert path.exists()


def test_door_36_another_sessions_door_is_not_asked_to_stop(lab, bystander):
    running, door = sleeper(lab)
    other = door.address
    path = write_record(lab, pid=bystander.pid, url=f"localhost:{other[1]}")
    rows = {row["session_id"]: row["status"] for row in lab.mur("ps", "--json").ok().json["capsules"]}
    assert rows == {session_id(1): "unreachable", running.session_id: "running"}
    lab.mur("watch", session_id(1)).failed("E-RUN-023")
    reaped = []
    import threading
    threading.Thread(target=lambda: reaped.append(bystander.wait()), daemon=True).start()
    stopped = lab.mur("stop", session_id(1)).ok().stdout
    assert "residue: unknown — " in stopped and "signal:  SIGTERM" in stopped and not path.exists()
    eventually(lambda: reaped == [-signal.SIGTERM])
    assert "task_canceled" not in lab.session(running).trace.types
    running.signal()
    running.result(20).ok()


# --- files that are no records ---


def test_door_16_what_is_no_record_goes_and_an_older_one_stays(lab):
    kept = write_record(lab)
    directory = kept.parent
    for name, text in (("broken.json", "{"), ("list.json", "[]"), ("empty.json", ""), ("short.json", '{"session_id":"ses_x","records_dir":"/"}'),
                       (f"{session_id(2)}.json", kept.read_text().replace('"pid": ', '"pid": "').replace(',\n  "process', '",\n  "process')),
                       ("older.json", '{"session_id":"ses_old","pid":1}'), ("notes.txt", "{"), (f"{session_id(9)}.json.tmp", "{")):
        (directory / name).write_text(text)
    assert len(lab.mur("ps", "--json").ok().json["capsules"]) == 1
    assert len(os.listdir(directory)) == 9  # --json removes nothing
    result = lab.mur("ps", "--verbose").ok()
    assert sorted(os.listdir(directory)) == sorted([kept.name, "older.json", "notes.txt", f"{session_id(9)}.json.tmp"])
    lines = result.stderr.splitlines()
    assert f"skipped: {directory}/older.json" in result.stderr
    assert sorted(line.split(" — ")[0].rsplit("/", 1)[1] for line in lines if line.startswith("pruned: ")) == [
        "broken.json", "empty.json", "list.json", "short.json", f"{session_id(2)}.json"] or len(lines) == 6
    assert all(line.endswith("not a readable record") for line in lines if line.startswith("pruned: "))


@pytest.mark.parametrize("changes", [{"formation_id": "frm_x"}, {"formation_id": 7}, {"formation_member": ""},
                                     {"formation_launcher": {"pid": 0, "process_start": "1"}}, {"formation_launcher": "x"}])
def test_records_05_a_bad_formation_makes_a_record_unreadable(lab, changes):
    path = write_record(lab, **changes)
    assert lab.mur("ps").ok().stdout == "no running capsules\n" and not path.exists()


def test_door_16_an_unreadable_folder_is_named_and_nothing_removed(lab):
    lab.murmur_home.mkdir()
    (lab.murmur_home / "running").write_text("x")
    for command in (("ps",), ("ps", "--json"), ("watch",), ("stop", "@1"), ("token",)):
        assert lab.mur(*command).failed("E-RUN-028").stdout == ""


# --- ps ---


def test_cli_13_the_table_of_ps(lab):
    running, _ = sleeper(lab)
    head, row = lab.mur("ps").ok().stdout.splitlines()
    assert head == f"{'SESSION':<36}  {'CAPSULE':<24}  {'STATUS':<12}  {'DETACHED':<8}  {'UPTIME':<9}  URL"
    expected = rf"{running.session_id}  {'agent@0.1.0':<24}  {'running':<12}  {'yes':<8}  00:00:\d\d   localhost:\d+"
    assert re.fullmatch(expected, row), row
    answer = lab.mur("ps", "--json").ok()
    capsule, = answer.json["capsules"]
    assert list(answer.json) == ["capsules", "formations"] and answer.json["formations"] == []
    assert list(capsule) == ["session_id", "status", "url", "pid", "process_start", "capsule_name", "capsule_version", "workdir",
                             "records_dir", "outlives_launcher", "started_at", "formation_id", "formation_member", "formation_entry"]
    assert (capsule["formation_id"], capsule["formation_member"], capsule["formation_entry"]) == (None, None, False)
    assert answer.stdout.startswith("{\n  ")  # for people, too
    running.signal()
    running.result(20).ok()


def test_cli_13_days_are_counted_in_ps(lab):
    then = time.strftime("%Y-%m-%dT%H:%M:%S.000000000+00:00", time.gmtime(time.time() - 3 * 86400 - 3723))
    write_record(lab, started_at=then)
    assert re.search(r"  3d 01:02:0\d  ", lab.mur("ps").ok().stdout)


def test_cli_13_ps_counts_or_names_what_it_removed(lab):
    for number in (1, 2):
        write_record(lab, number, pid=4194304)
    assert lab.mur("ps").ok().stderr.splitlines() == ["pruned 2 stale records; mur ps --verbose names each"]
    write_record(lab, pid=4194304, formation_id="frm_" + "0" * 32)
    told = lab.mur("ps", "--verbose").ok().stderr.splitlines()
    assert told == [f"pruned: {session_id(1)} — its process is gone (formation frm_{'0' * 32})"]


def test_cli_13_a_formations_rows_stand_together(lab):
    formation = "frm_" + "0" * 32
    write_record(lab, 1, formation_id=formation, formation_member="a")
    write_record(lab, 2)
    write_record(lab, 3, formation_id=formation, formation_member="b", formation_entry=True)
    head, *rows = lab.mur("ps").ok().stdout.splitlines()
    assert head.split() == ["SESSION", "CAPSULE", "STATUS", "DETACHED", "UPTIME", "FORMATION", "URL"]
    assert [row.split()[0] for row in rows][:3] == [session_id(3), session_id(1), session_id(2)]
    capsules = lab.mur("ps", "--json").ok().json["capsules"]
    assert [(c["formation_member"], c["formation_entry"]) for c in capsules] == [("b", True), (None, False), ("a", False)]


# --- addresses ---


def test_cli_addresses_that_name_nothing_running(lab):
    write_record(lab, 0xabcd1)
    write_record(lab, 0x1abcd1)
    for address, told in (("@0", "names none"), ("@3", "names none"), ("@x", "names none"), ("@", "names none"), ("cd1", "too short"),
                          ("bcd1", session_id(0xabcd1)), ("ffff", session_id(0x1abcd1)), ("./x", "not the address"),
                          ("a:1", "not the address"), ("trace.jsonl", "not the address"), (session_id(7), session_id(0xabcd1))):
        assert told in lab.mur("token", address).failed("E-RUN-022").stderr, address
    for address in ("@1", session_id(0x1abcd1), "1ABCD1", session_id(0x1abcd1).upper()):
        assert session_id(0x1abcd1) in lab.mur("token", address).failed("E-RUN-048").stderr
    assert session_id(0xabcd1) in lab.mur("token", "@2").failed("E-RUN-048").stderr


def test_cli_addresses_with_nothing_running(lab):
    for command in (("watch",), ("token",), ("stop", "@1"), ("cancel", "@1", "tsk_x")):
        assert "no session is running" in lab.mur(*command).failed("E-RUN-022").stderr


# --- stop and cancel ---


def test_cli_15_a_stopped_process_that_hears_nothing_is_killed(lab):
    running, _ = sleeper(lab)
    running.signal(signal.SIGSTOP)
    eventually(lambda: all(state_of(path) == "T" for path in Path(f"/proc/{running.pid}/task").glob("*/stat")))
    stopped = lab.mur("stop", running.session_id, "--timeout", "1", timeout=90).ok().stdout
    assert stopped.splitlines()[:3] == [f"stopped: {running.session_id}", "capsule: agent@0.1.0", "signal:  SIGKILL"]
    assert stopped.splitlines()[3].startswith("residue: unknown — ") and len(stopped.splitlines()) == 4
    assert running.result(20).code == -signal.SIGKILL
    assert os.listdir(lab.murmur_home / "running") == []


def test_cli_15_stop_tells_what_it_cancelled(lab):
    running = lab.agent(steps=[{"text": "x", "delay_ms": 600000}], lifecycle=SLEEPER).start()
    door = Door(running)
    active, queued = door.send_at_once()["id"], door.send_at_once()["id"]
    door.wait_for(active, "WORKING")
    stopped = lab.mur("stop", running.session_id).ok().stdout
    assert stopped.splitlines() == [f"stopped: {running.session_id}", "capsule: agent@0.1.0", "signal:  SIGTERM",
                                    f"canceled: {active}", f"canceled: {queued}", "residue: nothing else was left running"]
    assert running.result(20).code == 0


def test_cli_18_cancel_says_the_state_and_an_unknown_task_is_an_error(lab):
    running = lab.agent(steps=[{"text": "x", "delay_ms": 600000}], lifecycle=SLEEPER).start()
    door = Door(running)
    task = door.send_at_once()["id"]
    door.wait_for(task, "WORKING")
    assert lab.mur("cancel", running.session_id[-6:], task).ok().stdout == f"task:    {task}\nstate:   canceled\n"
    assert lab.mur("cancel", "--url", running.url.removeprefix("http://"), task).ok().stdout == (
        f"task:    {task}\nstate:   canceled\nnothing to cancel: the task had already ended\n")
    assert "tsk_nope" in lab.mur("cancel", "@1", "tsk_nope").failed("E-IO-003").stderr
    for arguments in (("@1",), (), ("--url", "localhost:1"), ("--url", "localhost:1", "@1", "tsk_x"), ("@1", "tsk_x", "more")):
        assert lab.mur("cancel", *arguments).failed(exit_status=2).stdout == "", arguments
    assert lab.mur("stop").failed(exit_status=2).stdout == ""
    door.result("murmur.StopSession")
    running.signal()
    running.result(20)


def test_door_17_a_refused_command_names_the_variable_and_no_token(lab):
    running = lab.agent(steps=[{"text": "x"}], lifecycle=SLEEPER, network={"authentication": {
        "scheme": "bearer", "credentials": {"reader": {"scopes": ["GetTask"]}}}}).start()
    address = running.url.removeprefix("http://")
    reader = lab.mur("token", "--credential", "reader").ok().stdout.strip()
    for token, status in ((None, 401), ("  ", 401), ("mdt1.a.b", 401), (reader, 403)):
        for command in (("watch", "--url", address), ("cancel", "--url", address, "tsk_x")):
            refused = lab.mur(*command, env={"MURMUR_DOOR_TOKEN": token}).failed("E-IO-003")
            assert f"HTTP {status}" in refused.stderr and "MURMUR_DOOR_TOKEN" in refused.stderr, refused
            assert "mdt1." not in refused.stderr + refused.stdout
    running.signal()
    running.result(20).ok()


def test_cli_16_the_operators_token_is_the_default(lab):
    running = lab.agent(steps=[{"text": "x"}], lifecycle=SLEEPER, network={"authentication": {
        "scheme": "bearer", "credentials": {"b": {"scopes": ["GetTask"]}, "a": {"scopes": ["resources/files"]}}}}).start()
    record = json.loads((lab.murmur_home / "running" / f"{running.session_id}.json").read_text())
    assert list(record)[10:] == ["door_token", "credentials"] and list(record["credentials"]) == ["a", "b"]
    assert lab.mur("token").ok().stdout == record["door_token"] + "\n"
    assert lab.mur("token", "@1", "--credential", "a").ok().stdout == record["credentials"]["a"] + "\n"
    refused = lab.mur("token", "--credential", "A").failed("E-RUN-049")
    assert "operator, a, b" in refused.stderr and refused.stdout == "" and "mdt1." not in refused.stderr
    running.signal(signal.SIGSTOP)  # the process alone must live
    assert lab.mur("token").ok().stdout == record["door_token"] + "\n"
    running.signal(signal.SIGCONT)
    running.signal()
    running.result(20 * SLOWER).ok()

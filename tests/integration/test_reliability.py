# SPDX-License-Identifier: Apache-2.0
#
# Nothing lost without a word: after any single change of the file system that fails, a session ends with an error that names
# what is lost, or has lost nothing.

import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from tests.support.commands import command_agent
from tests.support.door_client import SLEEPER, Door, at_once, message
from tests.support.faults import fault_at_every_change, library
from tests.support.hosts import with_mounts
from tests.support.lab import IS_SANITIZED, SESSION_ID, SLOWER
from tests.support.polling import eventually

STATUS = {"tool_calls": [{"name": "session-status", "input": {}}]}
STEPS = [STATUS, {"text": "the answer"}]
EVENTS = ["session_start", "task_start", "inference", "session_status", "tool_call", "inference", "task_end",
          "session_end"]


@pytest.fixture
def failing(lab):
    """An environment in which the n-th change of a path that ends so fails."""
    if IS_SANITIZED:
        pytest.skip("a sanitizer's runtime must be the first library")
    preload = library(lab.directory)

    def environment(path, at=1):
        return {"LD_PRELOAD": preload, "FAULT_PATH": path, "FAULT_AT": at, "FAULT_KIND": "enospc"}
    return environment


def test_reliability_F1_a_lost_answer_is_no_success(lab, failing):
    project = lab.agent(steps=STEPS)
    result = project.run("--task", "go", env=failing("result.txt")).failed("E-IO-003")
    assert result.status == "failed" and "out/result.txt was not written" in result.stderr
    trace = lab.session(result).trace
    assert trace.one("task_end")["exit_status"] == trace.one("session_end")["exit_status"] == "failed"
    assert "out/result.txt" in trace.one("task_failed")["reason"]


@pytest.mark.parametrize("number", range(1, len(EVENTS) + 1))
def test_reliability_F2_a_lost_line_of_the_trace_is_told(lab, failing, number):
    project = lab.agent(steps=STEPS)
    result = project.run("--task", "go", env=failing("trace.jsonl", number))
    assert result.code == 1 and "error[E-IO-003]" in result.stderr and "trace" in result.stderr, result
    events = lab.session(result).trace.events if SESSION_ID.search(result.stdout) else []
    # The next line that fits says how many are missing.
    assert sum(event.get("lines_lost", 0) for event in events) == (1 if 1 < number < len(EVENTS) and events else 0), events


def test_reliability_F3_an_accepted_task_is_on_record_before_it_is_acknowledged(lab):
    running = lab.agent(steps=[{"text": "late", "delay_ms": 60_000}], lifecycle={**SLEEPER, "queue_depth": 8}).start()
    door = Door(running)
    ids = [door.result("SendMessage", at_once(message()))["task"]["id"] for _ in range(4)]
    path = lab.session(running).records / "trace.jsonl"
    running.kill()
    received = [json.loads(line)["task_id"] for line in path.read_text().splitlines() if '"a2a_task_received"' in line]
    assert received == ids


def test_reliability_F3_a_task_that_cannot_be_recorded_is_not_accepted(lab, failing):
    # session_start is the first line; the second is the task's.
    running = lab.agent(steps=[{"text": "fine"}], lifecycle=SLEEPER).start(env=failing("trace.jsonl", 2))
    door = Door(running)
    assert door.error("SendMessage", message())["code"] == -32603
    assert door.result("ListTasks")["totalSize"] == 0
    assert door.send()["status"]["state"] == "TASK_STATE_COMPLETED"
    assert running.signal().result().code == 1


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGINT, signal.SIGUSR1,
                                    signal.SIGUSR2, signal.SIGALRM, signal.SIGXCPU, signal.SIGPWR, signal.SIGVTALRM, signal.SIGPROF,
                                    signal.SIGSYS, signal.SIGPOLL, signal.SIGRTMIN, signal.SIGRTMAX])
@pytest.mark.parametrize("phase", ["idle", "inference"])
def test_reliability_F8_every_signal_that_ends_a_session_unwinds_it(lab, number, phase):
    running = lab.agent(steps=[{"text": "late", "delay_ms": 60_000}], lifecycle=SLEEPER).start()
    door, session = Door(running), lab.session(running)
    if phase == "inference":
        task = door.send_at_once()
        door.wait_for(task["id"], "WORKING")
    result = running.signal(number).result()
    trace = session.trace
    assert result.code in (0, 1) and trace.types[-1] == "session_end"
    assert trace.one("session_end")["exit_status"] == result.status == ("canceled" if phase == "inference" else "ok")
    assert len(trace.all("task_end")) == (phase == "inference")


def test_reliability_F8_a_hangup_is_nothing_under_nohup(lab):
    project = lab.agent(steps=[{"text": "fine"}], lifecycle=SLEEPER)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        running = project.start()
        door = Door(running)
    finally:
        signal.signal(signal.SIGHUP, before)
    running.signal(signal.SIGHUP)
    assert door.send()["status"]["state"] == "TASK_STATE_COMPLETED"
    assert running.signal().result().code == 0


@pytest.mark.parametrize("kind", ["enospc", "eio"])
def test_reliability_any_single_failing_change_is_told_or_has_lost_nothing(lab, kind):
    """A threaded conversation, so that every record a session has is among what may be lost."""
    project = lab.agent(steps=STEPS, lifecycle={"conversation": "threaded"})

    def prepare(_number):
        shutil.rmtree(lab.murmur_home / "conversations", ignore_errors=True)

    def command(_state):
        return ["run", "--task", "go", "--context", "ctx_kept"], project.directory

    def check(_state, result, through):
        assert result.code in (0, 1), result
        if result.code == 1:
            assert "error[" in result.stderr, result
            return
        session = lab.session(result)
        assert session.result_text == "the answer", result
        assert session.trace.types == EVENTS, result
        record, = (lab.murmur_home / "conversations").rglob("ctx_kept/conversation.jsonl")
        assert record.read_text().rstrip().endswith("}") and "the answer" in record.read_text().splitlines()[-1], result
    changes = fault_at_every_change(lab, prepare, command, check, kind)
    assert changes > 20
    assert not [name for name in os.listdir(project.directory) if name.endswith(".tmp")]


def under(lab, project, limit, *arguments):
    """`mur` under a limit of the shell."""
    return subprocess.run(["bash", "-c", f'{limit}; exec "$@"', "bash", lab.mur_path, *arguments], cwd=project.directory,
                          env=lab.environment(), capture_output=True, text=True, timeout=60 * SLOWER, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("blocks", [0, 1, 4])
def test_reliability_a_limit_of_file_size_is_told_and_not_died_of(lab, blocks):
    project = lab.agent(steps=STEPS)
    project.run("--task", "go").ok()  # what is compiled once is compiled

    done = under(lab, project, f"ulimit -f {blocks}", "run", "--task", "go")
    assert done.returncode == 1 and "File too large" in done.stderr and "error[E-" in done.stderr, done
    done = under(lab, project, "ulimit -f 0", "new", "agent", "other")
    assert done.returncode == 1 and "error[E-IO-003]: cannot write other/murmur.yaml" in done.stderr, done
    assert not (project.directory / "other").exists()


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer needs /proc")
def test_reliability_a_host_without_proc_is_named_and_what_needs_none_works(lab):
    project = lab.agent(steps=STEPS)
    with_mounts(lab, "mount -t tmpfs none /proc")

    told = project.run("--task", "go").failed("E-IO-003").stderr
    assert "a session needs /proc, and it is not there" in told and "mount -t proc proc /proc" in told
    assert "bundled store" in lab.mur("self").ok().stdout and "none beside" not in lab.mur("self").stdout
    project.mur("trace", "list").ok()


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer sets aside more addresses than any limit")
def test_reliability_a_limit_of_addresses_is_told_with_its_remedy(lab):
    project = lab.agent(steps=STEPS)
    project.run("--task", "go").ok()

    done = under(lab, project, "ulimit -v 2000000", "run", "--task", "go")
    assert done.returncode == 1 and "`ulimit -v` allows 2000000 KiB in all: say `ulimit -v unlimited`" in done.stderr, done


@pytest.mark.parametrize("sizes", [{"FAULT_LEAST": 4096}, {"FAULT_EVERY": 97}])
def test_reliability_F9_memory_that_ends_is_told(lab, sizes):
    project = lab.agent(steps=STEPS, lifecycle={"conversation": "threaded"})
    project.run("--task", "go").ok()  # what is compiled once is compiled

    def check(_state, result, through):
        if result.code == 0:
            session = lab.session(result)
            assert session.result_text == "the answer" and session.trace.types == EVENTS, result
        else:
            assert result.code in (1, -signal.SIGABRT), result
            assert "memory" in result.stderr or "error[" in result.stderr, result
            assert "E-MAN-002" not in result.stderr and "not inflate" not in result.stderr, "what is sound is not blamed"
    allocations = fault_at_every_change(lab, lambda _number: None, lambda _state: (["run", "--task", "go"], project.directory),
                                        check, "nomem", **sizes)
    assert allocations > 30


def test_reliability_a_full_disk_that_empties_again_leaves_a_count_in_the_trace(lab, failing):
    running = lab.agent(steps=STEPS, lifecycle=SLEEPER).start(env=failing("trace.jsonl", 5))
    door = Door(running)
    tasks = [door.send() for _ in range(3)]
    assert len(tasks) == 3
    session = lab.session(running)
    eventually(lambda: len(session.trace.all("task_end")) >= 2, 20, "the later tasks have their ends")
    assert running.signal().result().code == 1
    assert sum(event.get("lines_lost", 0) for event in session.trace.events) == 1
    assert lab.mur("trace", "show", session.records / "trace.jsonl").code == 0


def control_groups(mark):
    return [os.path.join(base, name) for base, names, _files in os.walk("/sys/fs/cgroup") for name in names if mark in name]


def test_reliability_F6_groups_of_a_killed_launch_are_gone_after_the_next_command(lab, failing):
    project = lab.agent(steps=[{"text": "fine"}], capabilities={"shell": {"allow": ["bash"]}})
    before = set(control_groups("murmur-ses_"))
    # Killed as it makes its second group: the watcher that would remove the first has not begun.
    result = project.run("--task", "go", env={**failing("-0", 2), "FAULT_KIND": "kill"})
    if result.code != -signal.SIGKILL:
        pytest.skip("this host has one control group a session")
    mine = [path for path in control_groups("murmur-ses_") if path not in before and
            not os.path.exists(f"/proc/{path.rsplit('-', 2)[1]}")]
    assert mine
    lab.mur("ps").ok()
    eventually(lambda: not [path for path in mine if os.path.isdir(path)], 5, f"{mine} are gone")
    # Those of sessions that live are left alone.
    running = project.start(env={"MURMUR_A2A_TIMEOUT_SECS": "30"})
    kept = eventually(lambda: control_groups(running.session_id), 20, "the session's groups")
    lab.mur("ps").ok()
    # Nor by a murmur that counts its processes anew, as one in a container does.
    elsewhere = ["unshare", "--pid", "--fork", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), lab.mur_path, "ps"]
    if shutil.which("unshare"):
        subprocess.run(elsewhere, env=lab.environment(), capture_output=True, timeout=60 * SLOWER)
    assert [path for path in kept if os.path.isdir(path)] == kept
    running.signal().result()


def messages_of(lines):
    """What each inference line sent, by the records chapter: its own list, after the first ones of the line it names."""
    whole = {}
    for line in lines:
        own = list(zip(line["message_ids"], line["message_shas"], strict=True))
        kept = line["message_count"] - len(own) if "messages_after" in line else 0
        whole[line["event_id"]] = (whole[line["messages_after"]][:kept] if kept else []) + own
    return list(whole.values())


def test_reliability_F4_the_trace_does_not_grow_with_the_square_of_the_turns(lab):
    turns = 60
    project = lab.agent(steps=[STATUS] * turns + [{"text": "the answer"}], trace={"capture": "content"})
    session = lab.session(project.run("--task", "go").ok())
    lines = session.trace.all("inference")
    sizes = [len(json.dumps(line)) for line in lines]

    assert len(lines) == turns + 1 and sizes[-1] < sizes[20] + 50, sizes
    sent = messages_of(lines)
    assert [len(messages) for messages in sent] == list(range(1, 2 * turns + 2, 2))
    assert all(later[:len(earlier)] == earlier for earlier, later in zip(sent, sent[1:]))
    assert all((session.records / "blobs" / sha).exists() for _, sha in sent[-1])
    # What reads traces reads these.
    last = f"turn {turns}  system "
    shown = project.mur("trace", "show", session.id).ok().stdout
    assert next(line for line in shown.splitlines() if last in line).endswith(f"{2 * turns + 1} messages")
    for index in (0, 1, 77, 2 * turns):
        body = project.mur("trace", "show", session.id, "--body", f"message:{index}", "--turn", str(turns)).ok().stdout
        assert body == (session.records / "blobs" / sent[-1][index][1]).read_text()
    beyond = project.mur("trace", "show", session.id, "--body", f"message:{2 * turns + 1}", "--turn", str(turns))
    assert f"sent {2 * turns + 1} messages" in beyond.failed("E-TRC-001").stderr
    same = project.mur("trace", "diff", session.id, session.id).ok().stdout
    assert f"turn {turns}:  identical  ({2 * turns + 1} messages)" in same


def test_reliability_F4_conversations_that_take_turns_are_not_listed_again(lab):
    running = lab.agent(steps=[STATUS] * 8 + [{"text": "the answer"}] * 20,
                        lifecycle={**SLEEPER, "conversation": "threaded"}).start()
    door = Door(running)
    for _ in range(4):
        for context in ("one", "two"):
            door.send(contextId=context)
    lines = lab.session(running).trace.all("inference")
    assert running.signal().result().code == 0
    assert [len(line["message_ids"]) for line in lines[-4:]] == [2] * 4
    assert [len(messages) for messages in messages_of(lines)[-4:]] == [21, 21, 23, 23]


def test_reliability_F7_tasks_that_ended_long_ago_are_answered_from_disk(lab):
    running = lab.agent(steps=[{"text": "the answer"}], lifecycle=SLEEPER).start()
    door = Door(running)
    ids = [door.send(f"number {number}")["id"] for number in range(300)]
    session = lab.session(running)

    first = door.task(ids[0])
    assert first["status"]["state"] == "TASK_STATE_COMPLETED" and first["artifacts"][0]["parts"][0]["text"] == "the answer"
    assert {**first, "id": ids[-1], "contextId": "", "status": ""} == {**door.task(ids[-1]), "contextId": "", "status": ""}
    listed, token = [], ""
    while token is not None:
        page = door.result("ListTasks", {"pageSize": 45, "pageToken": token, "status": "TASK_STATE_COMPLETED"})
        assert page["totalSize"] == len(ids)
        listed += [task["id"] for task in page["tasks"]]
        token = page["nextPageToken"] or None
    assert listed == ids[::-1]
    assert door.error("CancelTask", {"id": ids[0]})["code"] == -32002
    assert not [path for path in session.records.iterdir() if "ended" in path.name], "the files have no name"
    assert running.signal().result().code == 0


def test_reliability_F7_records_nobody_goes_on_with_do_not_grow_for_ever(lab):
    running = lab.agent(steps=[{"text": "the answer"}], lifecycle=SLEEPER).start()
    door = Door(running)
    store = lab.murmur_home / "conversations" / "agent"
    named = door.send("named", contextId="mine")["contextId"]
    contexts = [door.send(f"number {number}")["contextId"] for number in range(100)]
    # Anybody may go on with a record by its context's name: then it is theirs.
    touched = store / contexts[60] / "conversation.jsonl"
    touched.write_text(touched.read_text() + touched.read_text())
    contexts += [door.send(f"number {number}")["contextId"] for number in range(100, 200)]
    assert running.signal().result().code == 0
    kept = {path.parent.name for path in store.glob("*/conversation.jsonl")}
    assert kept == {named, contexts[0], contexts[60], *contexts[-64:]}
    assert {path.name for path in store.iterdir()} == kept


@pytest.mark.parametrize("says", [{"lifecycle": {**SLEEPER, "conversation": "threaded"}},
                                  {"lifecycle": SLEEPER, "context": {"retain": {"max_age": "7d"}}}])
def test_reliability_F7_records_somebody_may_go_on_with_stay(lab, says):
    running = lab.agent(steps=[{"text": "the answer"}], **says).start()
    door = Door(running)
    contexts = {door.send(f"number {number}")["contextId"] for number in range(80)}
    assert running.signal().result().code == 0
    assert {path.name for path in (lab.murmur_home / "conversations" / "agent").iterdir()} == contexts


def test_reliability_a_clock_before_1970_reads_as_its_beginning(lab):
    if IS_SANITIZED:
        pytest.skip("a sanitizer's runtime must be the first library")
    wrong = {"LD_PRELOAD": library(lab.directory), "FAULT_CLOCK": str(-int(time.time()) - 86_400)}
    project = lab.agent(steps=STEPS)
    session = lab.session(project.run("--task", "go", env=wrong).ok())
    assert session.id.startswith("ses_00000000000") and session.trace.types == EVENTS
    assert {event["timestamp"] for event in session.trace.events} == {0}


def test_reliability_a_session_of_another_folder_is_told_how_to_be_named(lab):
    first, second = lab.agent("first", steps=[{"text": "x"}]), lab.agent("second", steps=[{"text": "x"}])
    session = lab.session(first.run("--task", "go").ok())
    second.run("--task", "go").ok()
    assert "--workdir" in second.mur("trace", "show", session.id).failed("E-TRC-002").stderr
    assert session.id in first.mur("trace", "show", session.id).ok().stdout


def test_audit_a_command_whose_detaching_is_not_on_record_is_told_of(lab, failing):
    """The line that cannot be written is this one write alone; the next says which command it was about."""
    project = command_agent(lab, ["sleep 60"], shell=("bash", "sleep"), lifecycle={"shell_grace_secs": 0})
    work = project / "work"
    before = lab.session(project.run("--task", "go", "--workdir", work).ok()).trace
    result = project.run("--task", "go", "--workdir", work, env=failing("trace.jsonl", before.types.index("shell_detached") + 1))
    assert result.code != 0 and "trace" in result.stderr, result.stderr
    trace = lab.session(result).trace
    assert "shell_detached" not in trace.types
    unrecorded = trace.one("shell_detach_unrecorded")
    assert unrecorded["work_id"] == trace.one("shell_abandoned")["work_id"]
    assert unrecorded["binary"] == before.one("shell_detached")["binary"] and "No space left" in unrecorded["reason"]

# SPDX-License-Identifier: Apache-2.0
#
# A delegated session with the test as its launcher and a real mur-roost: the grant, registration, lineage, the report of
# its end, the lifeline, the inherited deadline (A9, A10, A13, A16, A20 of spec/spawn.md; S9, D5, D7).

import json
import os
import signal
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.fixtures import own_component
from tests.support.lab import SLOWER
from tests.support.polling import eventually, tree_of
from tests.support.roost import Roost, publish_capsule
from tests.support.spawn import (CONTEXT, DELEGATION, PARENT, Family, Lifeline, ParentDoor, completion, handle,
                                 publish_agent, readiness, send_task, trace_so_far)

HELLO = [{"text": "hello"}]
SLOW = [{"text": "never said", "delay_ms": 60_000}]
FORMATION = "frm_" + "0" * 32
SECRET = "msa1.secret.token"
GONE = "the spawner lifeline closed"


@pytest.fixture
def family(lab):
    """A parent, an agent that answers, one that never does, scripts that run well, fail and never end."""
    publish_agent(lab, "child-agent", HELLO)
    publish_agent(lab, "child-slow", SLOW)
    publish_capsule(lab, "child-script")
    publish_capsule(lab, "child-traps", component=own_component("capsule-trap"))
    publish_capsule(lab, "child-spins", component=own_component("capsule-spin"))
    publish_capsule(lab, "suite-parent", capabilities={"spawn": {"allow": [
        "local/child-agent", "local/child-slow", "local/child-script", "local/child-traps", "local/child-spins"]}})
    with Family(lab) as family:
        yield family


def live(family):
    return family.roost.status(PARENT).ok()["live_children"]


# --- the grant ---

def test_spawn_S9_a_daemon_that_is_not_there_is_named_and_the_grant_is_not(lab, family):
    url = "http://127.0.0.1:1"
    running = family.start("local/child-agent", grant=SECRET, env={"MURMUR_ROOST_URL": url}, spawner=handle())
    result = running.result().failed("E-RUN-019")
    for word in (url, "mur-roost", "capabilities.spawn.allow"):
        assert word in result.stderr
    assert SECRET not in result.stderr + result.stdout and result.stdout == ""
    assert lab.runtime_directories == [] and not list((lab.murmur_home / "running").glob("*"))
    assert all(SECRET.encode() not in path.read_bytes() for path in lab.murmur_home.rglob("*") if path.is_file())


def test_spawn_A13_an_unset_url_is_said_to_be(lab, family):
    for value in (None, " "):
        result = family.start("local/child-script", grant=SECRET, env={"MURMUR_ROOST_URL": value}).result().failed("E-RUN-019")
        assert "<unset>" in result.stderr and SECRET not in result.stderr


@pytest.mark.parametrize("written", ["", "\n", "  \n", "two words\n", "x" * 9000])
def test_spawn_A13_no_grant_on_stdin_refuses_before_anything_exists(lab, written):
    project = lab.agent(steps=HELLO)
    running = project.start("--task", "x", "--spawn-grant-stdin", stdin=True, env={"MURMUR_SPAWNER": "{}"})
    running.process.stdin.write(written.encode())
    running.process.stdin.close()
    result = running.result().failed("E-RUN-019")
    assert "mur-roost" in result.stderr and "capabilities.spawn.allow" in result.stderr
    assert not written.strip() or written.strip() not in result.stderr
    assert tree_of(project.directory) == ["murmur.yaml"] and not lab.murmur_home.exists()


def test_spawn_A13_a_stdin_that_cannot_be_read_is_a_fault_of_its_own(lab):
    project = lab.agent(steps=HELLO)
    directory = os.open("/", os.O_RDONLY)
    try:
        running = lab.start("run", "--task", "x", "--spawn-grant-stdin", cwd=project.directory, stdin=directory)
        running.result().failed("E-IO-003")
    finally:
        os.close(directory)


def test_spawn_A13_the_inputs_are_judged_in_their_order(lab):
    project = lab.agent(steps=HELLO)
    wrong = {"MURMUR_SPAWNER": "{}", "MURMUR_FORMATION_ID": "bad", "MURMUR_FORMATION_PEERS": "a=b",
             "MURMUR_FORMATION_CHANNEL": "9", "MURMUR_FORMATION_LIFELINE": "9", "MURMUR_SPAWNER_LIFELINE": "three"}
    for name, code in (("MURMUR_SPAWNER", "E-RUN-020"), ("MURMUR_FORMATION_ID", "E-RUN-044"),
                       ("MURMUR_FORMATION_PEERS", "E-RUN-046"), ("MURMUR_FORMATION_CHANNEL", "E-RUN-046"),
                       ("MURMUR_FORMATION_LIFELINE", "E-RUN-046"), ("MURMUR_SPAWNER_LIFELINE", "E-RUN-020")):
        result = project.run("--task", "x", env=wrong).failed(code)
        assert name in result.stderr
        del wrong[name]
    assert tree_of(project.directory) == ["murmur.yaml"]


@pytest.mark.parametrize("value, said", [("fmr_" + "0" * 32, "prefix"), ("frm_0", "length"), ("frm_" + "G" * 32, "character")])
def test_spawn_C2_a_formation_id_is_judged_by_prefix_length_and_character(lab, value, said):
    result = lab.agent(steps=HELLO).run("--task", "x", env={"MURMUR_FORMATION_ID": value}).failed("E-RUN-044")
    assert said in result.stderr and value not in result.stderr


def test_spawn_A13_a_session_put_into_a_formation_by_hand_is_warned_about_and_reports_it(lab):
    project = lab.agent(steps=HELLO)
    result = project.run("--task", "x", "--json", env={"MURMUR_FORMATION_ID": FORMATION}).ok()
    assert "warning[W-RUN-007]" in result.stderr
    assert json.loads(result.stdout)["formation_id"] == FORMATION
    assert lab.session(result).trace.one("session_start")["formation_id"] == FORMATION
    project.run("--task", "x", env={"MURMUR_FORMATION_ID": " "}).ok()


# --- registration ---

def test_spawn_A13_a_child_is_registered_before_it_is_ready_and_deregistered_when_it_ends(lab, family):
    running = family.start("local/child-slow")
    line = readiness(running)
    assert list(line) == ["name", "pid", "records_dir", "session_id", "url", "version", "workdir"]
    assert line["name"] == "child-slow"
    assert family.roost.status(line["session_id"]).ok()["status"] == "running"
    assert live(family) == 1
    running.signal().result().ok()
    assert family.roost.status(line["session_id"]).ok()["status"] == "complete"
    assert live(family) == 0


@pytest.mark.parametrize("name, outcome", [("child-script", "complete"), ("child-traps", "failed")])
def test_spawn_A13_a_script_is_registered_too_and_says_how_it_ended(lab, family, name, outcome):
    result = family.start(f"local/{name}").result()
    assert (result.code == 0) == (outcome == "complete"), str(result)
    session_id = json.loads(result.stdout)["session_id"] if result.stdout else eventually(lambda: next(
        path.name for path in lab.murmur_home.rglob("ses_*") if path.is_dir() and path.parent.name.startswith("work-")))
    assert family.roost.status(session_id).ok()["status"] == outcome


def test_spawn_A13_a_refused_grant_leaves_its_records_and_nothing_else(lab, family):
    grant = family.approval("local/child-agent")
    family.start("local/child-agent", grant=grant, env={"MURMUR_A2A_TIMEOUT_SECS": "1"}).result().ok()
    before = set(lab.records)
    result = family.start("local/child-agent", grant=grant).result().failed("E-RUN-019")
    assert "spent" in result.stderr and grant not in result.stderr
    records = (set(lab.records) - before).pop()
    assert not (records / "trace.jsonl").exists()
    assert lab.runtime_directories == [] and not list((lab.murmur_home / "running").glob("*"))


def test_spawn_A13_a_capsule_that_may_start_others_registers_and_is_refused_without_a_daemon(lab):
    publish_capsule(lab, "kid")
    project = lab.agent(steps=HELLO, name="lead", capabilities={"spawn": {"allow": ["local/kid"]}})
    result = project.run("--task", "x").failed("E-RUN-019")
    assert "<unset>" in result.stderr
    roost = Roost(lab, "--spawn-allow", "local/other")
    try:
        result = project.run("--task", "x", env={"MURMUR_ROOST_URL": roost.url}).failed("E-RUN-019")
        assert "--spawn-allow" in result.stderr and roost.url in result.stderr
    finally:
        assert roost.stop() == 0


def test_spawn_A13_a_top_level_session_is_counted_while_it_runs(lab):
    publish_capsule(lab, "kid")
    steps = SLOW
    publish_agent(lab, "lead", steps, capabilities={"spawn": {"allow": ["local/kid"]}})
    roost = Roost(lab, "--spawn-allow", "local/lead")
    try:
        project = lab.project("p", {"name": "p", "version": "0.1.0"})
        running = project.start("--capsule", "local/lead", "--capsule-version", "0.1.0", "--json",
                                env={"MURMUR_ROOST_URL": roost.url + "//"})
        session_id = readiness(running)["session_id"]
        assert roost.status(session_id).ok()["status"] == "running"
        running.signal().result().ok()
        assert roost.status(session_id).ok()["status"] == "complete"
    finally:
        assert roost.stop() == 0


def test_spawn_A13_a_daemon_gone_at_the_end_is_one_line_and_no_failure(lab, family):
    running = family.start("local/child-agent", env={"MURMUR_A2A_TIMEOUT_SECS": "60"})
    readiness(running)
    url = family.roost.url
    family.roost.process.send_signal(signal.SIGSTOP)
    try:
        result = running.signal().result(60).ok()
    finally:
        family.roost.process.send_signal(signal.SIGCONT)
    assert result.stderr.count("deregister") == 1 and url in result.stderr


def test_spawn_A13_a_capsule_that_starts_nobody_never_asks_the_daemon(lab):
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0)
    lab.agent(steps=HELLO).run("--task", "x", env={
        "MURMUR_ROOST_URL": f"http://127.0.0.1:{listener.getsockname()[1]}"}).ok()
    with pytest.raises(BlockingIOError):
        listener.accept()
    listener.close()


def test_spawn_A13_told_to_end_while_it_registers_a_session_still_deregisters(lab):
    publish_capsule(lab, "kid")
    project = lab.agent(steps=HELLO, name="lead", capabilities={"spawn": {"allow": ["local/kid"]}})
    asked, started = [], []

    class Daemon(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append((self.path, body, self.headers.get("x-murmur-spawn-credential")))
            if self.path == "/register":
                eventually(lambda: started, 20 * SLOWER)[0].signal()
            text = b'{"credential":"msc1.e30.e30"}'
            self.send_response(200)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Daemon) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started.append(project.start("--task", "x", env={"MURMUR_ROOST_URL": f"http://127.0.0.1:{server.server_address[1]}"}))
        result = started[0].result()
        server.shutdown()
    assert result.code in (0, 1) and result.status in ("ok", "canceled"), str(result)
    assert [path for path, _, _ in asked] == ["/register", "/deregister"]
    assert asked[0][1] == {"session_id": result.session_id, "name": "local/lead", "version": "0.1.0"}
    assert asked[1][2] == "msc1.e30.e30"
    assert lab.session(result).trace.types[-1] == "session_end" and lab.runtime_directories == []


def test_doctor_warns_when_no_daemon_answers_and_registers_nothing(lab):
    publish_capsule(lab, "kid")
    project = lab.agent(steps=HELLO, name="lead", capabilities={"spawn": {"allow": ["local/kid"]}})
    assert "[mur doctor] warning[E-RUN-019]: " in (told := project.mur("doctor").ok().stderr) and "<unset>" in told
    told = project.mur("doctor", env={"MURMUR_ROOST_URL": "http://127.0.0.1:1"}).ok().stderr
    assert "warning[E-RUN-019]" in told and "http://127.0.0.1:1" in told
    roost = Roost(lab, "--spawn-allow", "local/other")
    try:
        assert "E-RUN-019" not in project.mur("doctor", env={"MURMUR_ROOST_URL": roost.url}).ok().stderr
    finally:
        assert roost.stop() == 0
    assert "E-RUN-019" not in lab.agent(steps=HELLO, name="alone").mur("doctor").ok().stderr


# --- lineage and the report of the end ---

def test_spawn_A16_a_child_reports_its_end_to_the_parents_door(lab, family):
    with ParentDoor() as door:
        seen = []
        running = family.start("local/child-agent", spawner=handle(door.url + "/some//path"))
        line = readiness(running)
        door.on_request = lambda: seen.append(completion(line["records_dir"]))
        record = json.loads((lab.murmur_home / "running" / f"{line['session_id']}.json").read_text())
        assert record["spawned_by"] == PARENT
        send_task(line["url"])
        running.result().ok()
    (headers, body, path), = door.received
    assert path == "/some//path"
    assert headers["a2a-version"] == "1.0" and headers["x-murmur-task-origin"] == "completion"
    assert headers["x-murmur-delegation-id"] == DELEGATION and headers["x-murmur-completion-session"] == PARENT
    message = body["params"]["message"]
    assert (body["method"], message["contextId"], message["role"]) == ("SendMessage", CONTEXT, "ROLE_USER")
    text = message["parts"][0]["text"]
    assert f"delegation_id: {DELEGATION}\ncapsule: child-agent@0.1.0\nsession_id: {line['session_id']}\nstatus: ok\n" in text
    assert "hello" not in text

    written = completion(line["records_dir"])
    assert list(written) == ["delegation_id", "capsule_name", "capsule_version", "session_id", "status", "result_path",
                             "workdir", "duration_ms", "reported_by", "delivered"]
    assert {**written, "duration_ms": 0} == {
        "delegation_id": DELEGATION, "capsule_name": "local/child-agent", "capsule_version": "0.1.0",
        "session_id": line["session_id"], "status": "ok", "result_path": line["records_dir"] + "/out/result.txt",
        "workdir": str(running.workdir), "duration_ms": 0, "reported_by": "child", "delivered": True}
    assert [record["delivered"] for record in seen] == [False]
    start = lab_trace(line)[0]
    assert (start["spawned_by"], start["delegation_id"]) == (PARENT, DELEGATION)


def lab_trace(line):
    return trace_so_far(line["records_dir"])


def test_spawn_A16_a_completion_the_door_refuses_is_recorded_and_fails_nothing(lab, family):
    with ParentDoor({"error": {"code": -31002, "message": "nobody waits"}}) as door:
        running = family.start("local/child-agent", spawner=handle(door.url), env={"MURMUR_A2A_TIMEOUT_SECS": "1"})
        line = readiness(running)
        result = running.result().ok()
    assert len(door.received) == 1 and "nobody waits" in result.stderr and DELEGATION in result.stderr
    written = completion(line["records_dir"])
    assert (written["delivered"], written["delivery_error"], written["status"]) == (False, "nobody waits", "ok")


def test_spawn_A16_without_an_address_nothing_is_written_and_nothing_said(lab, family):
    running = family.start("local/child-agent", spawner=handle(), env={"MURMUR_A2A_TIMEOUT_SECS": "1"})
    line = readiness(running)
    running.result().ok()
    assert not os.path.exists(line["records_dir"] + "/completion.json")
    assert lab_trace(line)[0]["delegation_id"] == DELEGATION


def test_spawn_A16_a_script_reports_too(lab, family):
    with ParentDoor() as door:
        result = family.start("local/child-script", spawner=handle(door.url)).result().ok()
        line = json.loads(result.stdout)
        failed = family.start("local/child-traps", spawner=handle(door.url)).result().failed()
    assert completion(line["records_dir"])["status"] == "ok" and line["url"] == ""
    assert len(door.received) == 2
    assert "status: error" in door.received[1][1]["params"]["message"]["parts"][0]["text"]
    assert failed.stdout == ""


def test_spawn_A16_a_session_refused_after_its_registration_still_reports(lab, family):
    with ParentDoor() as door:
        family.start("local/child-agent", grant=SECRET, spawner=handle(door.url)).result().failed("E-RUN-019")
    assert "status: error" in door.received[0][1]["params"]["message"]["parts"][0]["text"]


def test_spawn_D7_the_outcome_is_the_runtimes_word_not_the_work_folders(lab, family):
    with ParentDoor() as door:
        running = family.start("local/child-traps", spawner=handle(door.url))
        (running.workdir / "completion.json").write_text('{"status":"ok"}')
        running.result().failed()
    written = [json.loads(path.read_text()) for path in (lab.murmur_home / "records").rglob("completion.json")]
    assert [record["status"] for record in written] == ["error"]


def test_spawn_D7_a_command_of_the_child_cannot_write_its_record(lab):
    forge = "echo '{\"status\":\"ok\"}'"
    command = (f"{forge} >completion.json; {forge} >\"$MURMUR_RECORDS_DIR/completion.json\" || echo denied-new >>told; "
               "{ echo x >>\"$MURMUR_RECORDS_DIR/trace.jsonl\"; } 2>/dev/null || echo denied-trace >>told")
    publish_agent(lab, "child-forger", [{"tool_calls": [{"name": "bash", "input": {"command": command}}]}],
                  inference={"max_turns": 1}, capabilities={"shell": {"allow": ["bash"]}})
    publish_capsule(lab, "suite-parent", capabilities={"spawn": {"allow": ["local/child-forger"]}, "shell": {"allow": ["bash"]}})
    with Family(lab) as family, ParentDoor() as door:
        running = family.start("local/child-forger", spawner=handle(door.url))
        line = readiness(running)
        send_task(line["url"])
        result = running.result(60)
    assert result.code == 1, str(result)
    assert (running.workdir / "told").read_text() == "denied-new\ndenied-trace\n"
    assert json.loads((running.workdir / "completion.json").read_text()) == {"status": "ok"}
    written = completion(line["records_dir"])
    assert (written["status"], written["delivered"]) == ("error", True)


# --- the lifeline ---

def test_spawn_D5_a_child_whose_parent_is_gone_winds_down_and_says_by_whom_it_was_started(lab, family):
    lifeline = Lifeline()
    with ParentDoor() as door:
        running = family.start("local/child-slow", spawner=handle(door.url), lifeline=lifeline)
        line = readiness(running)
        send_task(line["url"])
        eventually(lambda: any(event["event_type"] == "task_start" for event in lab_trace(line)), 20 * SLOWER, "the task runs")
        begun = time.monotonic()
        lifeline.cut()
        result = running.result(30)
    assert time.monotonic() - begun < 20 * SLOWER
    assert result.code == 1 and result.stderr.count(GONE) == 1
    events = lab_trace(line)
    types = [event["event_type"] for event in events]
    ended = events[types.index("spawner_ended")]
    assert (ended["spawned_by"], ended["delegation_id"]) == (PARENT, DELEGATION)
    assert ended["parent_id"] == events[0]["event_id"]
    assert types.index("spawner_ended") < types.index("task_canceled") and types[-1] == "session_end"
    assert completion(line["records_dir"])["status"] == "error"
    assert family.roost.status(line["session_id"]).ok()["status"] == "failed"


def test_spawn_A10_an_idle_child_whose_parent_is_gone_reports_ok(lab, family):
    lifeline = Lifeline()
    with ParentDoor() as door:
        running = family.start("local/child-slow", spawner=handle(door.url), lifeline=lifeline)
        line = readiness(running)
        lifeline.cut()
        running.result().ok()
    assert completion(line["records_dir"])["status"] == "ok"
    assert family.roost.status(line["session_id"]).ok()["status"] == "complete"


def test_spawn_A10_a_script_child_exits_143_without_a_report(lab, family):
    lifeline = Lifeline()
    with ParentDoor() as door:
        running = family.start("local/child-spins", spawner=handle(door.url), lifeline=lifeline)
        eventually(lambda: lab.runtime_directories and live(family) == 1, 20 * SLOWER, "the script runs")
        lifeline.cut()
        result = running.result()
    assert result.code == 143 and result.stdout == "" and result.stderr.count(GONE) == 1
    assert door.received == [] and not list(lab.murmur_home.rglob("completion.json"))
    assert lab.runtime_directories == [] and not list(lab.murmur_home.rglob("bootstrap.log"))
    assert live(family) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_spawn_A13_a_script_that_is_signalled_gives_its_place_back_and_dies_of_the_signal(lab, family, number):
    running = family.start("local/child-spins", lifeline=Lifeline())
    eventually(lambda: lab.runtime_directories and live(family) == 1, 20 * SLOWER, "the script runs")
    session_id = lab.runtime_directories[0]
    eventually(lambda: family.roost.status(session_id).status == 200, 20 * SLOWER, "it is registered")
    assert running.signal(number).result().code == -number
    assert family.roost.status(session_id).ok()["status"] == "failed" and live(family) == 0


def test_spawn_A10_the_first_cause_is_the_only_one(lab, family):
    lifeline = Lifeline()
    running = family.start("local/child-slow", spawner=handle(), lifeline=lifeline)
    line = readiness(running)
    send_task(line["url"])
    running.signal()
    eventually(lambda: "asked to stop" in running.stderr, 20 * SLOWER, "the signal was taken")
    lifeline.cut()
    result = running.result()
    assert GONE not in result.stderr
    assert "spawner_ended" not in [event["event_type"] for event in lab_trace(line)]


def test_spawn_A10_a_second_sigterm_ends_at_once_after_the_lifeline(lab, family):
    lifeline = Lifeline()
    listener = socket.create_server(("127.0.0.1", 0))  # a parent's door that never answers holds the end up
    running = family.start("local/child-slow", lifeline=lifeline,
                           spawner=handle(f"http://127.0.0.1:{listener.getsockname()[1]}"))
    line = readiness(running)
    lifeline.cut()
    eventually(lambda: os.path.exists(line["records_dir"] + "/completion.json"), 20 * SLOWER, "it reports")
    running.signal()
    time.sleep(0.1)  # two that are sent before the first was taken count once
    running.signal()
    assert running.result(8).code == 143
    assert lab.runtime_directories == []
    listener.close()


# --- the inherited deadline ---

def test_spawn_S5_an_inherited_deadline_is_the_moment_given(lab, family):
    at = int(time.time() * 1000) + 300_000
    running = family.start("local/child-slow", "--inherited-deadline", at)
    line = readiness(running)
    deadline = lab_trace(line)[0]["deadline"]
    assert deadline["source"] == "inherited" and 295 <= deadline["secs"] <= 300
    assert deadline["at"] == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at // 1000))
    running.signal().result()
    running = family.start("local/child-slow")
    assert lab_trace(readiness(running))[0]["deadline"] is None
    running.signal().result()


@pytest.mark.parametrize("offset_ms", [-60_000, 1500])
def test_spawn_A20_the_inherited_deadline_ends_the_session(lab, family, offset_ms):
    at = int(time.time() * 1000) + offset_ms
    running = family.start("local/child-slow", "--inherited-deadline", at)
    line = readiness(running)
    result = running.result().failed("E-RUN-053")
    assert "inherited" in result.stderr
    events = lab_trace(line)
    reached = next(event for event in events if event["event_type"] == "deadline_reached")
    assert reached["source"] == "inherited"
    assert events[-1]["exit_status"] == "deadline_reached"


def test_spawn_A20_the_earlier_deadline_holds_and_a_script_ignores_an_inherited_one(lab, family):
    now = int(time.time() * 1000)
    for own, inherited_ms, source in ((100, now + 3_600_000, "own"), (3600, now + 100_000, "inherited"),
                                      (3600, now + 10 ** 15, "own"), (None, now + 10 ** 15, "inherited")):
        words = ("--deadline", own) if own else ()
        running = family.start("local/child-slow", *words, "--inherited-deadline", inherited_ms)
        deadline = lab_trace(readiness(running))[0]["deadline"]
        assert deadline["source"] == source and deadline["secs"] <= 315_360_000
        running.signal().result()
    family.start("local/child-script", "--inherited-deadline", "1").result().ok()

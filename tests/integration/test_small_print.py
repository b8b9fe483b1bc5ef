# SPDX-License-Identifier: Apache-2.0
#
# The door's small print, trace lines that any reader can split, and a terminal that closes. Numbers are those of the reports
# and of the audit.

import json
import resource
import signal
import socket
import subprocess

import pytest

from tests.support.door_client import Door, message
from tests.support.fixtures import own_component
from tests.support.lab import IS_SANITIZED
from tests.support.polling import eventually, pid_exists

KIB = 1024
LIMITS = [("STACK", 64 * KIB), ("NOFILE", 8), ("AS", 48000 * KIB), ("DATA", 1000 * KIB), ("DATA", 16000 * KIB),
          ("FSIZE", 8 * KIB), ("MEMLOCK", 0), ("CORE", 0), ("MSGQUEUE", 0)]
LETTER = {"STACK": "s", "NOFILE": "n", "AS": "v", "DATA": "d", "FSIZE": "f"}
SLEEPER = {"task_acceptance": "queue", "after_task": "sleep"}


@pytest.fixture
def served(lab):
    running = lab.agent(steps=[{"text": "hi"}], lifecycle={**SLEEPER, "conversation": "threaded"}).start()
    running.wait_for("^session: ")
    return running


def raw(running, head, body=b""):
    """The status line of the answer, the head and the body of it."""
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + b"\r\n" + body)
        received = b""
        while piece := connection.recv(65536):
            received += piece
    lines, _, rest = received.partition(b"\r\n\r\n")
    status, *headers = lines.decode().split("\r\n")
    return status, {name.lower(): value for name, _, value in (line.partition(": ") for line in headers)}, rest


@pytest.mark.parametrize("target", ["/.well-known/agent-card.json", "/.well-known/agent-card.json?v=1",
                                    "/.well-known/agent-card.json?", "/.well-known/agent-card.json?a=b&c=%2f"])
def test_report_door_the_card_is_served_with_a_query_and_for_its_head(served, target):
    def ask(method):
        return raw(served, f"{method} {target} HTTP/1.1\nHost: localhost\nConnection: close\n")
    status, headers, body = ask("GET")
    assert status == "HTTP/1.1 200 OK" and json.loads(body)["name"] == "agent"
    head_status, head_headers, nothing = ask("HEAD")
    assert head_status == status and nothing == b"" and head_headers["content-length"] == str(len(body))
    assert ask("POST")[0].startswith("HTTP/1.1 404")


@pytest.mark.parametrize("target", ["/.well-known/agent-card.jsonx", "/.well-known/agent-card.json/", "/.well-known/agent.json"])
def test_report_door_no_other_path_is_the_card(served, target):
    assert raw(served, f"GET {target} HTTP/1.1\nHost: localhost\nConnection: close\n")[0].startswith("HTTP/1.1 404")


@pytest.mark.parametrize("coding", ["xchunked", "gzip, chunked", "identity", "chunked, chunked", "chunked;q=1", "gzip", "br"])
def test_report_door_an_unknown_transfer_coding_is_answered_501(served, coding):
    status, headers, _ = raw(served, "POST / HTTP/1.1\nHost: localhost\nContent-Type: application/json\n"
                             f"Transfer-Encoding: {coding}\n", b"2\r\n{}\r\n0\r\n\r\n")
    assert status.startswith("HTTP/1.1 501") and headers["connection"] == "close"
    assert raw(served, "POST / HTTP/1.1\nHost: localhost\nContent-Type: application/json\nTransfer-Encoding: CHUNKED\n"
               "Connection: close\n", b"2\r\n{}\r\n0\r\n\r\n")[0].startswith("HTTP/1.1 200")


def test_newcomer_C12_a_browser_at_the_door_gets_two_words(served):
    head = "GET / HTTP/1.1\nHost: localhost\nConnection: close\n"
    _, headers, body = raw(served, head + "Accept: text/html,*/*\n")
    assert headers["content-type"].startswith("text/html") and b"/.well-known/agent-card.json" in body
    assert raw(served, head)[2] == b""


def test_report_34_empty_ids_are_read_as_absent(lab, served):
    door = Door(served)
    first = door.send(contextId="", taskId="")
    assert first["contextId"].startswith("ctx_")
    second = door.send(contextId="")
    assert second["contextId"] not in ("", first["contextId"])
    assert door.send(contextId=first["contextId"])["contextId"] == first["contextId"]


def test_report_door_a_repeated_cancel_changes_nothing(lab):
    running = lab.agent(steps=[{"text": "never", "delay_ms": 60000}], lifecycle=SLEEPER).start()
    running.wait_for("^session: ")
    door = Door(running)
    task = door.send_at_once("x")
    eventually(lambda: door.result("GetTask", {"id": task["id"]})["status"]["state"] == "TASK_STATE_WORKING")
    assert door.result("CancelTask", {"id": task["id"]})["status"]["state"] == "TASK_STATE_CANCELED"
    before = door.result("GetTask", {"id": task["id"]})
    for _ in range(5):
        error = door.error("CancelTask", {"id": task["id"]})
        assert error["code"] == -32002 and error["data"][0]["metadata"]["state"] == "TASK_STATE_CANCELED"
    assert door.result("GetTask", {"id": task["id"]})["status"]["state"] == before["status"]["state"]
    eventually(lambda: len(lab.session(running).trace.all("task_canceled")) == 1)


def test_audit_09_a_cancel_of_a_waiting_task_starts_no_inference(lab):
    probe = lab.publish("tool-probe", own_component("tool-probe"), "tool", description="probe",
                        input_schema={"type": "object", "properties": {"do": {"type": "string"}}})
    running = lab.agent(steps=[{"tool_calls": [{"name": "tool-probe", "input": {"do": "ask which?"}}]}, {"text": "paid"}],
                        tools=[probe], lifecycle=SLEEPER).start()
    running.wait_for("^session: ")
    door = Door(running)
    rounds = 60
    for _ in range(rounds):
        task = door.send("x")
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        door.result("CancelTask", {"id": task["id"]})
    trace = lab.session(running)
    eventually(lambda: len(trace.trace.all("task_canceled")) == rounds, 30)
    assert {line["phase"] for line in trace.trace.all("task_canceled")} == {"input"}
    assert len(trace.trace.all("inference")) == rounds


LINE_ENDS = "a\u2028b\u2029c\u0085d\u000be\u000cf\u001cg"


def test_report_trace_lines_can_be_split_by_any_reader(lab):
    project = lab.agent(steps=[{"text": LINE_ENDS}], context={"record": "on"})
    session = lab.session(project.run("--task", f"say {LINE_ENDS}").ok())
    text = session.trace.path.read_text()
    assert text.splitlines() == text.split("\n")[:-1]  # Python's reader takes every one of them for a line's end
    for line in text.splitlines():
        json.loads(line)
    assert session.result_text == LINE_ENDS
    for path in session.records.rglob("*.jsonl"):
        assert path.read_text().splitlines() == path.read_text().split("\n")[:-1], path


def test_report_a_terminal_that_closes_ends_a_session_in_good_order(lab):
    running = lab.agent(steps=[{"text": "never", "delay_ms": 60000}]).start("--task", "x")
    session = lab.session(running.session_id)
    eventually(lambda: "task_start" in session.trace.types)
    running.signal(signal.SIGHUP)
    running.signal(signal.SIGHUP)  # the shell's and the kernel's
    running.result()
    assert session.trace.one("session_end")["exit_status"] == "canceled"
    assert lab.runtime_directories == []


def test_report_a_session_under_nohup_lives_on(lab):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        running = lab.agent(steps=[{"text": "hi"}], lifecycle=SLEEPER).start()
        running.wait_for("^session: ")
    finally:
        signal.signal(signal.SIGHUP, before)
    running.signal(signal.SIGHUP)
    assert Door(running).send("x")["status"]["state"] == "TASK_STATE_COMPLETED"
    assert pid_exists(running.pid)
    running.signal(signal.SIGTERM).result()


# --- Limits of a shell -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer's own memory and stack are bounded too")
@pytest.mark.parametrize("name, value", LIMITS)
def test_everyday_under_a_small_limit_mur_works_or_names_it(lab, name, value):
    agent = lab.agent(steps=[{"text": "hi"}])
    number = getattr(resource, f"RLIMIT_{name}")
    for words in (["--version"], ["doctor"], ["run", "--task", "x"]):
        ended = subprocess.run([lab.mur_path, *words], cwd=agent.directory, env=lab.environment(), stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, timeout=60,
                               preexec_fn=lambda: resource.setrlimit(number, (value, value)))
        assert ended.returncode == 0 or (ended.returncode == 1 and f"`ulimit -{LETTER[name]}`" in ended.stderr), ended
        assert words != ["--version"] or ended.returncode == 0

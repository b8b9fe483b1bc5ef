# SPDX-License-Identifier: Apache-2.0
#
# `mur watch`: on real sessions as a pipe and as a person at a terminal see it, and on a door that breaks off.

import json
import os
import pty
import re
import signal
import termios
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.lab import SLOWER
from tests.support.polling import eventually, pid_exists
from tests.support.terminal import Terminal

STREAM = "https://docs.murmur.nexus/reference/streaming-protocol/#murmur-stream-v1"
SLEEPER = {"task_acceptance": "queue", "after_task": "sleep"}
LOOKING = [
    {"thinking": "first a look", "text": "Let me look.", "tool_calls": [{"name": "files", "input": {"action": "list"}}]},
    {"text": "Nothing \x1b[31mhere\x1b[0m, "
             "and this is a sentence that is long enough to be wrapped when it is shown as the answer of a task."},
]


def sleeping(lab, steps, **manifest):
    """A capsule that keeps its door open; its first task has ended."""
    lifecycle = {**SLEEPER, **manifest.pop("lifecycle", {})}
    project = lab.agent(steps=steps, tools=["std/files@0.1.0"], lifecycle=lifecycle, **manifest)
    running = project.start("--json", "--task", "look")
    line = json.loads(running.wait_for(r"^\{.*\}$").group(0))
    trace = os.path.join(line["records_dir"], "trace.jsonl")

    def has_ended():
        with open(trace, encoding="utf-8") as text:
            return '"event_type":"task_end"' in text.read()
    eventually(has_ended, 30 * SLOWER, "the end of the first task")
    return running, line


def plain_watch(lab, *arguments, until=r"^\[completed\]\n(?:.*\n)+?\n", **how):
    """The stdout of a watch up to the end of a task; the watch is ended then."""
    watch = lab.start("watch", *arguments, **how)
    watch.wait_for(until)
    watch.signal(signal.SIGINT)
    return watch.result()


def test_cli_watch_shows_turns_results_and_the_answer_as_plain_lines(lab):
    _, line = sleeping(lab, LOOKING)
    result = plain_watch(lab)
    text = re.sub(r"\d+ms", "Nms", result.stdout)
    assert text == (
        "[working]  inference turn 1\n"
        "Let me look.\n"
        "[artifact] tool: files [ok, Nms] | <untrusted-content source=tool:files>\n"
        "  the work folder is empty\n"
        "  \n"
        "  </untrusted-content>\n"
        "[working]  inference turn 2\n"
        f"{LOOKING[1]['text']}\n"
        "[completed]\n"
        "  Nothing \x1b[31mhere\x1b[0m, and this is a sentence that is long enough to be\n"
        "  wrapped when it is shown as the answer of a task.\n"
        "\n")
    assert line["session_id"] in result.stderr
    assert "Ctrl-C ends the watch, not the capsule" in result.stderr


def test_cli_watch_by_url_sees_the_same(lab):
    _, line = sleeping(lab, LOOKING)
    assert plain_watch(lab, "--url", line["url"]).stdout == plain_watch(lab, line["session_id"][-8:]).stdout


def test_cli_watch_names_context_and_turn_of_a_threaded_session(lab):
    sleeping(lab, [{"text": "hi"}], lifecycle={"conversation": "threaded"})
    text = plain_watch(lab, until=r"/ completed\]").stdout
    assert re.match(r"\[ctx_[0-9a-f]{8}\.\.\. / turn 1 / working\]  inference turn 1\nhi\n"
                    r"\[ctx_[0-9a-f]{8}\.\.\. / turn 1 / completed\]\n", text), text


def test_cli_watch_of_a_stopped_capsule_loses_its_connection(lab):
    running, _ = sleeping(lab, [{"text": "hi"}])
    watch = lab.start("watch")
    watch.wait_for(r"^\[completed\]")
    running.signal()
    result = watch.result().failed("E-IO-003")
    assert re.search(r"lost after event \d+: ", result.stderr)
    assert running.result().code == 0


def test_cli_watch_ends_well_when_its_reader_leaves(lab):
    sleeping(lab, [{"text": "hi"}])
    read_end, write_end = os.pipe()
    watch = lab.start("watch", stdout=write_end)
    os.close(write_end)
    assert os.read(read_end, 1)
    os.close(read_end)  # no further event comes: the watch notices all the same
    assert watch.result().code == 0


def test_cli_15_watching_a_killed_capsule_says_why_there_is_none(lab):
    running, line = sleeping(lab, [{"text": "hi"}])
    running.kill()
    result = lab.mur("watch", "@1").failed("E-RUN-022")
    assert line["session_id"] in result.stderr and "removed" in result.stderr
    assert not (lab.murmur_home / "running" / f"{line['session_id']}.json").exists()


def test_cli_15_watching_a_silent_capsule_keeps_its_record(lab):
    running, line = sleeping(lab, [{"text": "hi"}])
    running.signal(signal.SIGSTOP)
    lab.mur("watch").failed("E-RUN-023")
    assert (lab.murmur_home / "running" / f"{line['session_id']}.json").exists()
    assert pid_exists(running.pid)
    running.signal(signal.SIGCONT)


def test_cli_watch_url_and_session_exclude_each_other(lab):
    assert lab.mur("watch", "@1", "--url", "localhost:1").failed(exit_status=2).stdout == ""


# --- at a terminal ---


def at_a_terminal(lab, until, env=None):
    """What a person sees: everything `mur watch` wrote to a terminal until the text appears."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(lab.mur_path, ["mur", "watch"], lab.environment({"TERM": "xterm-256color", **(env or {})}))
    os.set_blocking(terminal, False)
    seen = b""

    def has_come():
        nonlocal seen
        try:
            seen += os.read(terminal, 65536)
        except BlockingIOError:
            pass
        return until in seen
    try:
        eventually(has_come, 30 * SLOWER, f"{until!r} on the terminal")
    finally:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        os.close(terminal)
    return seen.decode()


def test_cli_watch_at_a_terminal_is_a_live_view(lab):
    sleeping(lab, LOOKING)
    text = at_a_terminal(lab, b" out)").replace("\r\n", "\n")
    plain = re.sub(r"\x1b\[\d+m", "", text)
    assert "\n  first a look\n" in plain and "\n  Let me look.\n" in plain
    assert re.search(r"✓.*files.*\[ok, \d+ms\]  the work folder is empty", text)
    assert re.search(r"✓ completed.*2 turns, 1 call  \(session: [\d,]+ tokens in, [\d,]+ out\)", text)
    assert "\x1b[32m" in text
    assert "·[31mhere" in text and "\x1b[31mhere" not in text  # what an agent says moves nothing


def test_cli_watch_at_a_terminal_heeds_no_color(lab):
    sleeping(lab, LOOKING)
    text = at_a_terminal(lab, b" out)", {"NO_COLOR": "1"})
    assert "\x1b[3" not in text and "✓ completed" in text


# --- a door that breaks off ---


def status_event(number, state, text, **more):
    status = {"state": state, "message": {"parts": [{"text": text, "mediaType": "text/plain"}]}}
    update = {"statusUpdate": {"taskId": "tsk_0a", "contextId": "ctx_0b", "status": status, **more}}
    return f"id: {number}\ndata: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': update})}\n\n"


def frame_event(**frame):
    message = {"message": {"messageId": "msg_0c", "role": "ROLE_AGENT", "parts": [{"text": frame["frame"]}],
                           "metadata": {STREAM: frame}}}
    return f"data: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': message})}\n\n"


ACK = frame_event(frame="connection-ack", role="observer", conversationMode="stateless")


@contextmanager
def door_of(*answers):
    """A door that gives these answers, (status, body) each, one a connection; yields its address and the requests' headers."""
    left, seen = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            seen.append({name.lower(): value for name, value in self.headers.items()})
            self.rfile.read(int(self.headers["content-length"]))
            if not left:  # nobody home any more
                self.close_connection = True
                return
            status, body = left.pop(0)
            self.send_response(status)
            self.send_header("content-type", "text/event-stream" if body.startswith(("data", ":")) else "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()


def test_cli_watch_takes_a_broken_stream_up_again_behind_the_last_event(lab):
    first = ACK + status_event(1, "TASK_STATE_WORKING", "inference turn 1") + "id: 2\ndata: {\"jsonr"
    second = (ACK + ":heartbeat\n\n" + status_event(2, "TASK_STATE_WORKING", "inference turn 2")
              + frame_event(frame="lagged", missed=3) + frame_event(frame="capsule-closed"))
    with door_of((200, first), (200, second)) as (address, seen):
        result = lab.mur("watch", "--url", address).ok()
    assert result.stdout == "[working]  inference turn 1\n[working]  inference turn 2\n"
    assert ["last-event-id" in headers for headers in seen] == [False, True]
    assert seen[1]["last-event-id"] == "1"
    assert "3 events were missed" in result.stderr
    assert result.stderr.endswith("[murmur] capsule closed\n")


def test_cli_watch_of_a_lost_door_names_the_last_complete_event(lab):
    with door_of((200, ACK + status_event(7, "TASK_STATE_WORKING", "inference turn 1"))) as (address, _):
        result = lab.mur("watch", "--url", address).failed("E-IO-003")
    assert "lost after event 7: " in result.stderr
    assert result.stdout == "[working]  inference turn 1\n"


def test_cli_watch_skips_what_it_does_not_know_and_says_why_a_task_failed(lab):
    odd = 'id: 3\ndata: {"jsonrpc":"2.0","id":1,"result":{"somethingNew":{}}}\n\nid: 4\ndata: no json\n\n'
    body = (ACK + frame_event(frame="gap", firstAvailableId=3) + odd + frame_event(frame="new-frame")
            + status_event(5, "TASK_STATE_FAILED", "task failed (driver_error): no luck")
            + frame_event(frame="capsule-closed"))
    with door_of((200, body)) as (address, _):
        result = lab.mur("watch", "--url", address).ok()
    assert result.stdout == "[failed]  task failed (driver_error): no luck\n\n"
    assert "the first one left is 3" in result.stderr


def test_cli_watch_refusals_name_the_variable_and_never_the_token(lab):
    with door_of((401, '{"error":"unauthorized"}')) as (address, seen):
        result = lab.mur("watch", "--url", address, env={"MURMUR_DOOR_TOKEN": " mdt_hidden\n"}).failed("E-IO-003")
    assert seen[0]["authorization"] == "Bearer mdt_hidden"
    assert "HTTP 401" in result.stderr and "MURMUR_DOOR_TOKEN" in result.stderr
    assert "mdt_hidden" not in result.stderr


def test_cli_watch_of_something_else_says_so(lab):
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}
    with door_of((200, json.dumps(error))) as (address, _):
        assert "Method not found" in lab.mur("watch", "--url", address).failed("E-IO-003").stderr
    with door_of((404, "not here")) as (address, _):
        assert "is no capsule (HTTP 404)" in lab.mur("watch", "--url", address).failed("E-IO-003").stderr


@pytest.mark.parametrize("key, code", [("q", 0), ("\x03", -signal.SIGINT)])
def test_watch_at_a_terminal_ends_with_q_and_leaves_the_terminal_as_it_was(lab, key, code):
    running = lab.agent(steps=[{"text": "hello"}], lifecycle=SLEEPER).start()
    running.wait_for("^session: ")
    shell = Terminal(lab, "watch", running.session_id)
    shell.wait_for("q or Ctrl-C ends the watch")
    assert not termios.tcgetattr(shell.primary)[3] & termios.ECHO
    shell.type("x\n")  # no other key is one
    shell.type(key)
    assert shell.end() == code
    assert termios.tcgetattr(shell.primary)[3] & termios.ECHO and termios.tcgetattr(shell.primary)[3] & termios.ICANON
    assert running.is_running
    running.signal().result()

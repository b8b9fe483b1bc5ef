# SPDX-License-Identifier: Apache-2.0
#
# `mur ui` without a browser: who may ask, byte by byte; what it knows of sessions; what is done through it. What a person sees is
# in tests/real/test_page.py, in a real browser.

import json
import os
import re
import signal
import socket
import stat
import threading
import time

import pytest

from tests.support.approvals import Asker, question
from tests.support.door_client import SLEEPER, Door, message
from tests.support.lab import SLOWER
from tests.support.model_server import answer
from tests.support.page import HEADS, Page
from tests.support.polling import eventually

ENDS = {"steps": [{"text": "the answer"}], "lifecycle": {**SLEEPER, "conversation": "threaded"}}


@pytest.fixture
def page(lab):
    with Page(lab) as server:
        yield server


def one_session(lab, text="Hello <b>there</b>", name="agent", **more):
    return lab.agent(name, steps=[{"text": text}], **more).run("--task", "go").ok()


def recorded(lab, session_id, lines):
    """A session of these trace lines (dicts, or bytes as they are), as if one had written them."""
    folder = lab.murmur_home / "records" / "made" / session_id
    folder.mkdir(parents=True)
    body = b"".join(line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for line in lines)
    (folder / "trace.jsonl").write_bytes(body)
    return folder


def event(kind, n, **more):
    return {"event_type": kind, "event_id": f"evt_{n:032x}", "parent_id": None, "session_id": "ses_" + "0" * 32, "timestamp": 1796000000000 + n, **more}


# --- who may ask -----------------------------------------------------------------------------------------------------


def test_B6_02_no_wrong_or_query_token_is_401_with_the_same_bytes(page):
    tries = [page.request(token=None), page.request(token="x" * 43), page.request(token=page.token[:-1]), page.request(token=page.token + "x"),
             page.request(path=f"/api/sessions?token={page.token}", token=None), page.request(token=None, lines=[f"Cookie: token={page.token}"]),
             page.request(token=None, lines=[f"Authorization: Basic {page.token}"]), page.request(lines=["Authorization: Bearer second"]),
             page.request(path="/api/nowhere", token=None), page.request(path="/api/stream", token=None)]
    assert {status for status, _, _ in tries} == {401}
    assert len({body for _, _, body in tries}) == 1
    assert page.request()[0] == 200


@pytest.mark.parametrize("host", ["evil.test", "localhost.evil.test", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.test:{port}", "[::1]", "0.0.0.0:{port}",
                                  "127.0.0.1:{port}@evil.test", "evil.test:{port}", ""])
def test_B6_03_a_foreign_host_is_refused_with_the_right_token(page, host):
    status, _, body = page.request(host=host.format(port=page.port))
    assert status in (400, 403) and b"sessions" not in body


def test_B6_03_two_host_lines_are_refused(page):
    status, _, _ = page.request(lines=["Host: evil.test"])
    assert status in (400, 403)
    assert page.request(host=f"localhost:{page.port}")[0] == 200


@pytest.mark.parametrize("origin", ["null", "http://evil.test", "http://127.0.0.1:1", "https://127.0.0.1.evil.test", "file://", "http://127.0.0.1:{port}.evil.test",
                                    "http://127.0.0.1:{port}/", ""])
def test_B6_04_a_foreign_origin_is_refused(page, origin):
    assert page.request(lines=[f"Origin: {origin.format(port=page.port)}"])[0] == 403
    assert page.request(lines=[f"Origin: {page.origin}"])[0] == 200
    assert page.request(path="/", token=None, lines=[f"Origin: {origin.format(port=page.port)}"])[0] == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp", None])
def test_B6_05_a_body_that_a_form_could_send_is_415(page, kind):
    lines = [f"Content-Type: {kind}"] if kind else []
    status, _, _ = page.request("POST", f"/api/session/ses_{'0' * 32}/stop", lines, b'{"request_id":"a"}')
    assert status == 415


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site"])
def test_B6_06_a_fetch_of_another_site_is_refused(page, site):
    assert page.request(lines=[f"Sec-Fetch-Site: {site}"])[0] == 403
    assert page.request(path="/", token=None, lines=[f"Sec-Fetch-Site: {site}"])[0] == 403
    assert page.request(lines=["Sec-Fetch-Site: same-origin"])[0] == 200


def test_B6_07_it_listens_on_the_loopback_address_alone(page):
    found = []
    for name in ("tcp", "tcp6"):
        for line in open(f"/proc/net/{name}").read().splitlines()[1:]:
            address, state = line.split()[1], line.split()[3]
            if state == "0A" and int(address.rsplit(":", 1)[1], 16) == page.port:
                found.append(address.rsplit(":", 1)[0])
    assert found == ["0100007F"]


def test_B6_07_no_token_of_a_door_is_in_any_byte_that_is_served(lab, page):
    agent = lab.agent("guarded", **ENDS)
    running = agent.start()
    running.wait_for("^session: ")
    record = json.loads((lab.murmur_home / "running" / f"{running.session_id}.json").read_text())
    secrets = [value for key, value in record.items() if "token" in key and isinstance(value, str)]
    eventually(lambda: page.session(running.session_id), 20 * SLOWER)
    lab.mur("send", running.session_id, "go").ok()
    everything = b"".join(page.request(path=path)[2] for path in (
        "/api/sessions", f"/api/session/{running.session_id}", f"/api/session/{running.session_id}/rows?tail=1", f"/api/session/{running.session_id}/summary"))
    assert len(everything) > 1000
    for secret in [*secrets, page.token]:
        assert secret.encode() not in everything
    running.signal()
    running.result()


def test_ui_every_answer_has_the_heads_that_keep_foreign_words_text(page):
    answers = [page.request(), page.request(path="/", token=None), page.request(path="/assets/app.js", token=None), page.request(token=None),
               page.request(path="/api/nowhere"), page.request(path="/elsewhere"), page.request(host="evil.test")]
    for status, heads, _ in answers:
        for name, value in HEADS.items():
            assert value.lower() in heads[name], (status, name)
        policy = heads["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "trusted-types 'none'" in policy
        assert "access-control-allow-origin" not in heads and "set-cookie" not in heads


@pytest.mark.parametrize("path", ["/../etc/passwd", "/assets/../../etc/passwd", "/assets/%2e%2e/app.js", "/api/session/../sessions", "/api/session/..%2f..%2fetc/rows",
                                  "/api/session/ses_x/body/..", "/api/session/ses_{id}/body/../../trace.jsonl", "/api/session/ses_{id}/body/..%2f..%2ftrace.jsonl",
                                  "/api//sessions", "/api/sessions/", "/api/sessions/x", "/api", "/api/session", "//evil.test/api/sessions", "/API/sessions",
                                  "http://evil.test/api/sessions", "/api/session/ses_{id}/row/-1", "/api/session/ses_{id}/row/x"])
def test_ui_no_address_leads_to_a_file(page, path):
    status, _, body = page.request(path=path.format(id="0" * 32))
    assert status in (400, 404) and b"root:" not in body and b"event_type" not in body


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT"])
def test_ui_other_methods_change_nothing(page, method):
    assert page.request(method)[0] in (400, 405, 501)
    assert page.request(method, token=None)[0] in (400, 401, 405, 501)


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"GET /api/sessions HTTP/1.0\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"GET /api/sessions\r\n\r\n",
                                  b"GET / HTTP/1.1\nHost: 127.0.0.1\n\n", b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef"])
def test_ui_what_is_no_request_gets_no_data(page, data):
    got = page.raw(data, half_close=True)
    assert b"sessions" not in got and b"200 OK" not in got.split(b"\r\n")[0]
    assert page.request()[0] == 200


def test_ui_a_name_that_is_allowed_is_answered_to(lab):
    with Page(lab, "--allow-host", "box.example:8443") as page:
        assert page.request(host="box.example:8443", lines=["Origin: https://box.example:8443"])[0] == 200
        assert page.request(host="box.example")[0] == 403
        assert page.request(host="box.example:8443", token=None)[0] == 401


def test_ui_the_token_file_is_this_users_alone(lab, tmp_path):
    kept = tmp_path / "token"
    with Page(lab, "--token-file", kept) as page:
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert kept.read_text().strip() == page.token and len(page.token) >= 43
    with Page(lab, "--token-file", kept) as again:
        assert again.token == page.token
    kept.chmod(0o644)
    lab.mur("ui", "--token-file", kept).failed("E-IO-002")
    kept.unlink()
    kept.symlink_to("/etc/hostname")
    assert lab.mur("ui", "--token-file", kept).failed("E-IO-003")
    short = tmp_path / "short"
    short.write_text("abc")
    short.chmod(0o600)
    lab.mur("ui", "--token-file", short).failed("E-IO-003")


def test_ui_the_key_is_in_no_argument_and_differs_each_time(lab, page):
    command = open(f"/proc/{page.pid}/cmdline").read()
    assert page.token not in command and page.token not in open(f"/proc/{page.pid}/environ").read()
    with Page(lab) as other:
        assert other.token != page.token
        assert other.request(token=page.token)[0] == 401


def test_ui_open_hands_the_browser_a_file_of_this_user_alone(lab, tmp_path):
    (tmp_path / "xdg-open").write_text('#!/bin/sh\nstat -c %a "$1" > "$HOME/mode"; cp "$1" "$HOME/opened"\n')
    (tmp_path / "xdg-open").chmod(0o755)
    with Page(lab, "--open", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}) as page:
        home = lab.murmur_home.parent
        eventually(lambda: (home / "opened").exists(), 20 * SLOWER)
        assert (home / "mode").read_text().strip() == "600"
        assert page.url in (home / "opened").read_text()
    assert not list((lab.murmur_home / "sessions").glob(".ui-*"))


def test_ui_a_taken_port_is_told_the_option_of_this_command(lab, page):
    assert "  hint: take another --port" in lab.mur("ui", "--port", page.port).failed("E-RUN-010").stderr


def test_ui_a_taken_port_is_said(lab, page):
    lab.mur("ui", "--port", page.port).failed("E-RUN-010")


# --- what it knows ---------------------------------------------------------------------------------------------------


def test_ui_sessions_running_and_recorded_are_one_list(lab, page):
    result = one_session(lab)
    running = lab.agent("sleeper", **ENDS).start()
    running.wait_for("^session: ")
    rows = eventually(lambda: (lambda found: found if len(found) == 2 else None)(page.get("sessions")["sessions"]), 20 * SLOWER)
    assert [row["id"] for row in rows] == [running.session_id, result.session_id]
    assert eventually(lambda: page.session(running.session_id)["state"] == "waits", 20 * SLOWER)
    ended = rows[1]
    assert (ended["state"], ended["exit_status"], ended["turns"], ended["capsule_name"]) == ("ended", "ok", 1, "agent")
    running.signal(signal.SIGKILL)
    running.result()
    assert eventually(lambda: page.session(running.session_id)["state"] == "lost", 20 * SLOWER)


def test_B6_10_numbers_are_those_of_the_trace(lab, page):
    result = one_session(lab)
    end = lab.session(result).trace.one("session_end")
    summary = page.get(f"session/{result.session_id}/summary")
    assert (summary["turns"], summary["tokens_in"], summary["tokens_out"]) == (end["total_turns"], end["total_input_tokens"], end["total_output_tokens"])
    row = page.session(result.session_id)
    assert (row["tokens_in"], row["tokens_out"], row["turns"]) == (end["total_input_tokens"], end["total_output_tokens"], end["total_turns"])


def test_ui_rows_are_the_lines_of_the_trace_in_windows(lab, page):
    session = "ses_" + "1" * 32
    recorded(lab, session, [event("session_start", 0, capsule_name="made", capsule_version="1", model="m")] +
             [event("tool_call" if n % 3 else "shell", n, tool_name="t", command="c", input={"text": "x" * 5000}) for n in range(1, 5000)])
    tail = page.get(f"session/{session}/rows?tail=1&limit=10")
    assert (tail["total"], tail["from"], [row["n"] for row in tail["rows"]]) == (5000, 4990, list(range(4990, 5000)))
    assert len(tail["rows"][0]["event"]["input"]["text"]) < 300
    shells = page.get(f"session/{session}/rows?kinds=shell&from=100&limit=2")
    assert (shells["total"], [row["n"] for row in shells["rows"]]) == (1666, [303, 306])
    assert page.get(f"session/{session}/row/4998")["event_id"] == f"evt_{4998:032x}"
    assert page.request(path=f"/api/session/{session}/row/5000")[0] == 404


def test_B6_15_torn_malformed_and_unknown_lines_are_marked(lab, page):
    session = "ses_" + "2" * 32
    folder = recorded(lab, session, [event("session_start", 0, capsule_name="made"), b"not json\n", b'{"event_type":"tool_call","torn in the middle\n', b"\n",
                                     event("a_later_event", 4, text="new"), b"\xff\xfe\n", event("shell", 6, command="ls"), b'{"event_type":"sh'])
    rows = page.get(f"session/{session}/rows?tail=1")["rows"]
    assert [row.get("mark") for row in rows] == [None, "malformed", "malformed", "malformed", "unknown", "malformed", None, "torn"]
    with open(folder / "trace.jsonl", "ab") as trace:
        trace.write(b'ell","event_id":"evt_7","command":"pwd"}\n')
    again = page.get(f"session/{session}/rows?tail=1")["rows"]
    assert len(again) == 8 and again[7].get("mark") is None and again[7]["event"]["command"] == "pwd"


def test_B6_14_a_large_body_is_cut_and_its_whole_is_downloaded(lab, page):
    session = "ses_" + "3" * 32
    folder = recorded(lab, session, [event("session_start", 0, capsule_name="made")])
    (folder / "blobs").mkdir()
    data = os.urandom(1 << 20) * 50
    (folder / "blobs" / ("a" * 64)).write_bytes(data)
    status, heads, shown = page.request(path=f"/api/session/{session}/body/{'a' * 64}")
    assert (status, len(shown), heads["content-type"]) == (206, 256 << 10, "application/octet-stream")
    status, _, whole = page.request(path=f"/api/session/{session}/body/{'a' * 64}?whole=1")
    assert status == 200 and whole == data
    os.symlink("/etc/passwd", folder / "blobs" / ("b" * 64))
    assert page.request(path=f"/api/session/{session}/body/{'b' * 64}")[0] == 404


def test_ui_a_trace_that_is_a_link_is_not_followed(lab, page):
    session = "ses_" + "4" * 32
    folder = recorded(lab, session, [])
    (folder / "trace.jsonl").unlink()
    os.symlink("/etc/passwd", folder / "trace.jsonl")
    status, _, body = page.request(path=f"/api/session/{session}/rows?tail=1")
    assert status == 404 and b"root:" not in body


@pytest.mark.parametrize("text", ["日本語", "ä", 'say "hi"', "back\\slash", "MiXeD cAsE"])
def test_B6_21_any_text_is_found_in_all_sessions(lab, page, text):
    for n in range(50):
        lines = [event("session_start", 0, capsule_name="made"), event("tool_call", 1, tool_name="t", input={"said": f"before {text} after" if n % 2 else "nothing"})]
        recorded(lab, f"ses_{n:032x}", lines)
    page.get("sessions")
    looked = text.lower() if text.isascii() else text
    from urllib.parse import quote
    found = page.lines(f"search?q={quote(looked)}")
    hits = [hit for hit in found if "session" in hit]
    assert {hit["session"] for hit in hits} == {f"ses_{n:032x}" for n in range(1, 50, 2)} and all(hit["n"] == 1 for hit in hits)
    assert found[-1]["end"] and found[-1]["done"] == 50


def test_B6_21_a_text_in_a_body_and_one_across_a_window_are_found(lab, page):
    session = "ses_" + "5" * 32
    folder = recorded(lab, session, [event("session_start", 0), event("tool_call", 1, input="y" * ((256 << 10) - 160) + "needle in the middle")])
    (folder / "blobs").mkdir()
    (folder / "blobs" / ("c" * 64)).write_text("a haystack with a Needle in the middle")
    page.get("sessions")
    hits = [hit for hit in page.lines("search?q=needle%20in%20the%20middle") if "session" in hit]
    assert sorted(hit.get("n", hit.get("sha")) if "n" in hit else 99 for hit in hits) == [1, 99]


def test_B6_21_a_search_ends_when_nobody_reads_it(lab, page):
    for n in range(40):
        recorded(lab, f"ses_{n:032x}", [event("session_start", 0)] + [event("tool_call", i, input="needle " * 400) for i in range(300)])
    page.get("sessions")
    for _ in range(5):
        link = socket.create_connection(("127.0.0.1", page.port))
        link.sendall(f"GET /api/search?q=needle HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nAuthorization: Bearer {page.token}\r\n\r\n".encode())
        link.recv(100)
        link.close()
    eventually(lambda: len(os.listdir(f"/proc/{page.pid}/task")) <= 4, 30 * SLOWER, "no thread looks any more")


def test_B6_25_records_that_go_or_cannot_be_read_are_said_and_the_server_lives(lab, page):
    session = "ses_" + "6" * 32
    folder = recorded(lab, session, [event("session_start", 0, capsule_name="made")])
    assert page.get(f"session/{session}/rows?tail=1")["total"] == 1
    (folder / "trace.jsonl").unlink()
    status, _, body = page.request(path=f"/api/session/{session}/rows?tail=1")
    assert status == 404 and b"trace.jsonl" in body
    folder.rmdir()
    assert session not in [row["id"] for row in page.get("sessions")["sessions"]]
    assert page.request(path=f"/api/session/{session}")[0] in (200, 404)
    assert page.request()[0] == 200


# --- live ------------------------------------------------------------------------------------------------------------


def test_B6_09_text_comes_as_it_is_written_and_is_there_for_who_comes_later(lab, page):
    running = lab.agent("talker", **{**ENDS, "steps": [{"text": "one two three"}]}).start()
    running.wait_for("^session: ")
    stream = page.events()
    stream.until(lambda said: said["kind"] == "hello")
    eventually(lambda: page.session(running.session_id), 20 * SLOWER)
    eventually(lambda: "live" in page.get(f"session/{running.session_id}"), 20 * SLOWER)
    lab.mur("send", running.session_id, "go", "--detach").ok()
    seen = stream.until(lambda said: said["kind"] == "text" and said["session"] == running.session_id)
    assert "one two three".startswith(seen[-1]["text"]) and seen[-1]["at"] == 0
    stream.until(lambda said: said["kind"] == "rows")
    assert eventually(lambda: page.get(f"session/{running.session_id}")["live"]["text"] == "one two three", 20 * SLOWER)
    stream.close()
    lab.mur("stop", running.session_id).ok()


def test_B6_11_a_stream_that_was_lost_goes_on_after_what_was_seen(lab, page):
    first = page.events()
    first.until(lambda said: said["kind"] == "hello")
    running = lab.agent("sleeper", **ENDS).start()
    running.wait_for("^session: ")
    first.until(lambda said: said["kind"] == "session" and said["session"]["id"] == running.session_id)
    seen_id = first.last_id
    first.close()
    lab.mur("send", running.session_id, "go").ok()
    again = page.events(seen_id)
    kinds = [said["kind"] for said in again.until(lambda said: said["kind"] == "rows")]
    assert "gap" not in kinds
    again.close()
    stranger = page.events("0000000000000000.7")
    assert [said["kind"] for said in stranger.until(lambda said: said["kind"] == "gap")][-1] == "gap"
    stranger.close()
    lab.mur("stop", running.session_id).ok()


def test_B6_28_a_slow_reader_is_told_of_a_gap_and_others_are_unharmed(lab, page, model):
    running = lab.agent("talker", "std/driver-anthropic@0.1.0", gateway={"endpoint": model.url, "keyless": True}, inference={"model": "claude-test"},
                        context={"max_tokens": 1000000}, lifecycle=SLEEPER).start()
    running.wait_for("^session: ")
    eventually(lambda: "live" in page.get(f"session/{running.session_id}"), 20 * SLOWER)
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32768)
    slow.connect(("127.0.0.1", page.port))
    slow.sendall(f"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nAuthorization: Bearer {page.token}\r\n\r\n".encode())
    assert b"200" in slow.recv(15)
    quick = page.events()
    quick.until(lambda said: said["kind"] == "hello")
    got = []
    reader = threading.Thread(target=lambda: got.extend(quick.until(lambda said: "the end" in str(said.get("text")))), daemon=True)
    reader.start()
    door = Door(running)
    model.script(*[answer("word " * 50000) for _ in range(40)], answer("the end"))
    for n in range(40):
        door.result("SendMessage", message(f"go {n}", messageId=f"m{n}"))
    slow.settimeout(20 * SLOWER)
    text = b""
    while b'"kind":"gap"' not in text:
        piece = slow.recv(65536)
        assert piece
        text += piece
    slow.close()
    door.result("SendMessage", message("go", messageId="last"))
    reader.join(30 * SLOWER)
    assert "the end" in got[-1]["text"]
    lab.mur("stop", running.session_id).ok()
    quick.close()


# --- what is done ----------------------------------------------------------------------------------------------------


def test_B6_17_task_cancel_and_stop(lab, page):
    running = lab.agent("worker", **ENDS).start()
    running.wait_for("^session: ")
    eventually(lambda: page.session(running.session_id), 20 * SLOWER)
    status, said = page.act(running.session_id, "task", text="go")
    assert status == 200 and said["task"].startswith("tsk_")
    assert eventually(lambda: "the answer" in lab.mur("trace", "show", running.session_id, "--workdir", page.session(running.session_id)["work_root"]).stdout
                      or page.get(f"session/{running.session_id}/summary")["turns"] == 1, 20 * SLOWER)
    status, said = page.act(running.session_id, "cancel", task=said["task"])
    assert status == 200 and "already ended" in said["output"]
    status, said = page.act(running.session_id, "stop")
    assert (status, said["status"]) == (200, 0) and "residue:" in said["output"]
    assert running.result().code in (0, 143, 130, -15)
    assert page.act(running.session_id, "stop")[0] == 409
    assert page.act(running.session_id, "task", text="more")[0] == 409


def test_B6_17_a_second_press_is_the_same_act(lab, page):
    running = lab.agent("worker", **ENDS).start()
    running.wait_for("^session: ")
    eventually(lambda: page.session(running.session_id), 20 * SLOWER)
    answers = []
    presses = [threading.Thread(target=lambda: answers.append(page.act(running.session_id, "task", text="go", request_id="the same")[0])) for _ in range(4)]
    for press in presses:
        press.start()
    for press in presses:
        press.join()
    assert sorted(answers) == [200, 409, 409, 409]
    eventually(lambda: page.get(f"session/{running.session_id}/summary")["turns"] == 1, 20 * SLOWER)
    lab.mur("stop", running.session_id).ok()


def test_B6_16_a_question_is_answered_once(lab, page):
    one = Asker(lab, ["touch made"], {"commands": ["touch"]}).start()
    task = one.begin()
    asked = page.asking(one.running.session_id)
    assert asked["question"]["question_id"] == question(task)["question_id"] and "touch" in asked["question"]["what"]
    answers = {"question_id": asked["question"]["question_id"], "task": asked["id"]}
    assert not (one.work / "made").exists()
    assert page.act(one.running.session_id, "reply", answer="once", **answers)[0] == 200
    one.settled(task["id"])
    assert next(one.work.rglob("made"), None)
    status, said = page.act(one.running.session_id, "reply", answer="no", **answers)
    assert status == 409 and said["error"]
    one.end()


def test_B6_16_two_people_at_once_the_first_counts(lab, page):
    one = Asker(lab, ["touch made"], {"commands": ["touch"]}).start()
    task = one.begin()
    asked = page.asking(one.running.session_id)
    answers = []

    def press(word):
        answers.append((page.act(one.running.session_id, "reply", task=asked["id"], question_id=asked["question"]["question_id"], answer=word)[0], word))
    people = [threading.Thread(target=press, args=(word,)) for word in ("once", "no")]
    for person in people:
        person.start()
    for person in people:
        person.join()
    assert sorted(status for status, _ in answers) == [200, 409]
    one.settled(task["id"])
    first = next(word for status, word in answers if status == 200)
    assert bool(next(one.work.rglob("made"), None)) == (first == "once")
    one.end()


def test_B6_18_a_read_only_page_does_nothing(lab):
    running = lab.agent("worker", **ENDS).start()
    running.wait_for("^session: ")
    with Page(lab, "--read-only") as page:
        assert page.get("sessions")["read_only"] is True
        for name in ("task", "reply", "cancel", "stop", "replay", "fork"):
            status, said = page.act(running.session_id, name, text="x", task="tsk_x", answer="once", turn=0)
            assert (status, "read-only" in said["error"]) == (403, True)
        assert running.is_running
    lab.mur("stop", running.session_id).ok()


def test_ui_acts_that_are_none_are_refused(lab, page):
    session = "ses_" + "7" * 32
    recorded(lab, session, [event("session_start", 0)])
    assert page.act(session, "stop")[0] == 409
    assert page.act(session, "format")[0] == 404
    assert page.act("nobody", "stop")[0] == 404
    for body in (b"", b"[]", b"{}", b'{"request_id": 5}', b'{"request_id": ""}', b"not json", b'{"request_id":"a","request_id":"b"}', b"\xff"):
        assert page.request("POST", f"/api/session/{session}/stop", ["Content-Type: application/json"], body or b" ")[0] == 400
    assert page.request("POST", f"/api/session/{session}/stop", ["Content-Type: application/json"], b"x" * (2 << 20))[0] == 413
    assert page.request("GET", f"/api/session/{session}/stop")[0] == 404


def test_ui_ends_with_the_signal_and_leaves_sessions_alone(lab):
    running = lab.agent("worker", **ENDS).start()
    running.wait_for("^session: ")
    page = Page(lab)
    stream = page.events()
    stream.until(lambda said: said["kind"] == "hello")
    page.close()
    assert running.is_running
    lab.mur("send", running.session_id, "still there?").ok()
    lab.mur("stop", running.session_id).ok()

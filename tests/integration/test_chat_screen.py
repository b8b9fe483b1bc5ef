# SPDX-License-Identifier: Apache-2.0
#
# `mur chat` and `mur top` on a real terminal, looked at through an emulator of its screen.

import http.server
import json
import os
import re
import signal
import stat
import threading

import pytest

from tests.support.harness import harness_project
from tests.support.model_server import answer, call
from tests.support.polling import eventually
from tests.support.screen import Screen

WIDTHS = pytest.mark.parametrize("columns", [40, 80, 200])
HOSTILE = "\x1b[2J\x1b[H\x1b]0;owned\x07\x1b[31m\x9b31m\x1b[?1049h\x1b[5;5Hgone\r\x08\u202egnirts"
SLEEPER = {"task_acceptance": "queue", "after_task": "sleep", "queue_depth": 8, "conversation": "threaded"}


def talker(lab, model, **manifest):
    return lab.agent("talker", "std/driver-anthropic@0.1.0", tools=["std/files@0.1.0"], gateway={"endpoint": model.url, "keyless": True},
                     context={"max_tokens": 100000}, inference={"model": "claude-test"}, **manifest)


def chat_with(lab, project, *arguments, **how):
    screen = Screen(lab, "chat", project.directory, *arguments, **how)
    screen.wait_shown("/help lists")
    eventually(lambda: screen.lines and any(line == ">" for line in screen.lines))
    return screen


def leave(screen):
    screen.type("/quit\n")
    assert screen.end() == 0


def said(model):
    return model.requests[-1].json["messages"][-1]["content"][-1]["text"]


# --- lines -----------------------------------------------------------------------------------------------------------


@WIDTHS
def test_chat_screen_takes_a_paste_of_100_kib_whole(lab, model, columns):
    model.script(answer("read"))
    chat = chat_with(lab, talker(lab, model), columns=columns)
    pasted = "\n".join(f"line {n} of what was pasted" for n in range(4000))[:102400]
    chat.type("look: \x1b[200~")
    for at in range(0, len(pasted), 3000):
        chat.type(pasted[at:at + 3000])
    chat.type("\x1b[201~ and say\n")
    chat.wait_shown("  read")
    assert f"look: {pasted} and say" in said(model)
    leave(chat)


def test_chat_screen_a_paste_after_a_stop_is_one_message(lab, model):
    """While it is stopped the shell has the terminal, and takes the marks of a paste away."""
    model.script(answer("read"))
    chat = chat_with(lab, talker(lab, model))
    chat.type("see: ")
    chat.wait_shown("> see:")
    told = chat.raw.count("\x1b[?2004h")
    chat.signal(signal.SIGSTOP)
    chat.signal(signal.SIGCONT)
    eventually(lambda: chat.raw.count("\x1b[?2004h") > told)
    chat.type("\x1b[200~one\ntwo\x1b[201~\n")
    chat.wait_shown("  read")
    assert "see: one\ntwo" in said(model)
    assert [line for line in chat.lines if "see:" in line] == ["> see: [paste 1: 7 bytes]"]
    leave(chat)


def test_chat_screen_takes_a_line_in_pieces_of_a_character(lab, model):
    model.script(answer("read"))
    chat = chat_with(lab, talker(lab, model))
    for byte in "größe 世界 🙂".encode():
        os.write(chat.primary, bytes([byte]))
    chat.wait_shown("世界")
    chat.type("\n")
    chat.wait_shown("  read")
    assert "größe 世界 🙂" in said(model)
    leave(chat)


def test_chat_screen_edits_and_keeps_a_history_of_the_user_alone(lab, model):
    model.script(answer("one"), answer("two"), answer("three"))
    project = talker(lab, model)
    chat = chat_with(lab, project)
    chat.type("secnd\x1b[D\x1b[Do\n")
    chat.wait_shown("  one")
    assert "second" in said(model)
    leave(chat)
    history = lab.murmur_home / "chat/history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600 and "second" in history.read_text()
    chat = chat_with(lab, project)
    chat.type("\x1b[A")
    chat.type("\x1b[A")
    chat.wait_shown("> second")
    chat.type("\n")
    chat.wait_shown("  two")
    chat.type("first \\\nsecond half\n")
    chat.wait_shown("  three")
    assert "first \nsecond half" in said(model)
    leave(chat)


# --- what is shown ---------------------------------------------------------------------------------------------------


@WIDTHS
def test_chat_screen_obeys_nothing_that_is_said(lab, model, columns):
    project = talker(lab, model)
    work = project / "work"
    work.mkdir()
    (work / "named \x1b[2J\x1b]0;owned\x07.txt").write_text("x")
    (work / "hostile.txt").write_text(HOSTILE)
    model.script(call("files", {"action": "list"}), call("files", {"action": "read", "path": "hostile.txt"}), answer(f"before {HOSTILE} after"))
    chat = chat_with(lab, project, "--workdir", work, columns=columns)
    chat.type("stands first\n")
    chat.wait_shown("after")
    eventually(lambda: "completed" in chat.shown)
    assert "stands first" in chat.shown and "before" in chat.shown
    assert chat.screen.title == "" and not chat.screen.mode & {1049 << 5}
    assert max(len(line) for line in chat.lines) <= columns
    chat.type("/open 2\n")
    chat.wait_shown("hostile.txt")
    chat.type("/open\n")
    eventually(lambda: chat.shown.count("gone") >= 2)
    assert "stands first" in chat.shown and chat.screen.title == ""
    leave(chat)


@WIDTHS
def test_chat_screen_says_what_was_spent_and_opens_calls(lab, model, columns):
    model.script(call("files", {"action": "list"}), answer("done"))
    project = talker(lab, model)
    chat = chat_with(lab, project, columns=columns)
    chat.type("go\n")
    chat.wait_shown("tokens in, ")
    assert re.search(r"context [\d,]+", chat.shown)
    chat.type("/open\n/tools\n/model\n/resume\n")
    chat.wait_shown("claude-test")
    assert "untrusted-content source=tool:files" in chat.shown.replace("\n", "") and "  files" in chat.lines
    eventually(lambda: "This conversation is ctx_" in chat.text)
    leave(chat)


def test_chat_screen_lives_through_a_resize_in_the_middle_of_an_answer(lab):
    steps = [{"text": "word " * 400, "chunk_delay_ms": 5}]
    project = lab.agent("slow", steps=steps)
    chat = chat_with(lab, project, columns=80)
    chat.type("go\n")
    chat.wait_shown("word word")
    for columns in (40, 200, 60):
        chat.resize(columns)
    eventually(lambda: "completed" in chat.text)
    chat.type("/help\n")
    eventually(lambda: "/resume" in chat.text)
    leave(chat)


def test_chat_screen_shares_a_session_with_another_client(lab, model):
    running = talker(lab, model, lifecycle=SLEEPER).start()
    running.wait_for("^session: ")
    model.script(answer("to the first"), answer("to the second"))
    first, second = (Screen(lab, "chat", running.session_id) for _ in range(2))
    for chat in (first, second):
        chat.wait_shown("/help lists")
    first.type("a\n")
    first.wait_shown("to the first")
    second.type("b\n")
    second.wait_shown("to the second")
    leave(first)
    assert second.is_running and running.is_running
    leave(second)
    running.signal()
    running.result()


# --- an empty folder -------------------------------------------------------------------------------------------------


class Models(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"object": "list", "data": [{"id": "llama3.2"}, {"id": "qwen3"}]}).encode() if self.path == "/v1/models" else b"{}"
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_chat_in_an_empty_folder_says_how_a_local_server_is_used(lab):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Models)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"127.0.0.1:{server.server_port}"
    result = lab.mur("chat", stdin="hi\n", env={"OLLAMA_HOST": address}).ok()
    assert f"Ollama answers at http://{address}: `mur chat --with http://{address} --model 'llama3.2'` talks to it" in result.stderr
    assert "its other models: qwen3" in result.stderr
    server.shutdown()
    server.server_close()


# --- mur top ---------------------------------------------------------------------------------------------------------


@WIDTHS
def test_top_shows_every_session_and_its_keys_answer_and_stop(lab, columns):
    steps = [{"tool_calls": [{"name": "files", "input": {"action": "write", "path": "a", "content": "x"}}]}, {"text": "done"}]
    asker = lab.agent("asker", steps=steps, tools=["std/files@0.1.0"], approvals={"tools": ["files"]}, lifecycle=SLEEPER)
    other = lab.agent("other", steps=[{"text": "ok"}], lifecycle=SLEEPER)
    running = [project.start("--workdir", project.directory) for project in (asker, other)]
    for one in running:
        one.wait_for("^session: ")
    top = Screen(lab, "top", columns=columns)
    top.wait_shown("mur top: 2 sessions")
    lab.mur("send", "--detach", running[0].session_id, "go").ok()
    top.wait_shown("asks")
    rows = [line for line in top.screen.display if re.search("asker@|other@", line)]
    assert "asker" in rows[0] and "asks" in rows[0] and "other" in rows[1] and "waits" in rows[1]

    if not rows[0].startswith(">"):
        top.type("k")
        eventually(lambda: next(line for line in top.screen.display if "asker" in line).startswith(">"))
    assert max(len(line.rstrip()) for line in top.screen.display) <= columns
    top.type("a")
    eventually(lambda: "answer> " in top.text)
    top.type("once\n")
    eventually(lambda: (asker / "a").exists())
    eventually(lambda: "Enter goes back" in top.text)
    top.type("\n")
    top.type("t")
    eventually(lambda: top.text.count("Enter goes back") == 2)
    assert "Approvals" in top.text
    top.type("\n")
    eventually(lambda: top.screen.display[0].startswith("mur top"))
    top.resize(max(30, columns // 2))
    top.type("s")
    eventually(lambda: "y or n> " in top.text)
    top.type("y\n")
    running[0].result(30)
    top.type("\nq")
    assert top.end() == 0
    running[1].signal()
    running[1].result(30)


def test_top_shows_two_hundred_sessions_and_pages_through_them(lab):
    """One session's record under 200 names: each is asked at its door like any other."""
    running = lab.agent("many", steps=[{"text": "hi"}], lifecycle=SLEEPER).start()
    running.url
    (record,) = (lab.murmur_home / "running").glob("*.json")
    for number in range(199):
        session_id = f"{running.session_id[:-8]}{number:08d}"
        (record.parent / f"{session_id}.json").write_text(record.read_text().replace(running.session_id, session_id))
    assert len(lab.mur("top").ok().stdout.splitlines()) == 200

    top = Screen(lab, "top")
    top.wait_shown("mur top: 200 sessions")

    def chosen():
        return next((line.split()[1] for line in top.screen.display if line.startswith(">")), None)
    first = chosen()
    shown = {line.split()[0] for line in top.screen.display[3:-4] if line.strip()}
    assert len(shown) > 10
    top.type("j" * 5 + "k" * 5)
    eventually(lambda: chosen() == first)
    top.type(" ")
    second = eventually(lambda: chosen() != first and chosen())
    top.type("\x1b[5~")
    eventually(lambda: chosen() == first)
    top.type("G")
    last = eventually(lambda: chosen() not in (first, second) and chosen())
    top.type("\x1b[B")
    top.resize(40)
    eventually(lambda: chosen() == last and "200 sessions" in top.screen.display[0])
    top.type("g")
    eventually(lambda: chosen() == first)
    top.type("q")
    assert top.end() == 0
    for path in record.parent.glob("*.json"):
        if path != record:
            path.unlink()
    running.signal().result(30)


def test_top_obeys_nothing_a_session_says(lab):
    steps = [{"tool_calls": [{"name": "files", "input": {"action": "write", "path": HOSTILE, "content": "x"}}]}, {"text": "done"}]
    asker = lab.agent("asker", steps=steps, tools=["std/files@0.1.0"], approvals={"tools": ["files"]}, lifecycle=SLEEPER)
    running = asker.start()
    running.wait_for("^session: ")
    lab.mur("send", "--detach", "@1", "go").ok()
    top = Screen(lab, "top")
    top.wait_shown("asks: files asks")
    assert top.screen.title == "" and "mur top: 1 session" in top.screen.display[0]
    top.type("q")
    assert top.end() == 0
    running.signal()
    running.result(30)


def test_top_in_a_pipe_prints_the_rows_once(lab):
    assert lab.mur("top").ok().stdout == ""
    running = lab.agent("other", steps=[{"text": "ok"}], lifecycle=SLEEPER).start()
    running.wait_for("^session: ")
    (line,) = lab.mur("top").ok().stdout.splitlines()
    assert line.split("\t")[:3] == [running.session_id, "waits", "other@0.1.0"]
    running.signal()
    running.result(30)


def test_top_leaves_the_terminal_as_it_was_when_it_is_ended(lab):
    top = Screen(lab, "top")
    top.wait_shown("nothing runs")
    top.signal()
    assert top.end() == 0
    assert top.raw.endswith("\x1b[?25h\x1b[?1049l")


def test_chat_screen_shows_a_harness_text_once_and_what_its_provider_counted(lab):
    project = harness_project(lab, """
        started()
        say("text-delta", text="fir"); say("text-delta", text="st words"); say("text", text="first words")
        say("usage", input=1000, output=20)
        say("tool-call", id="c1", name="own", input={}); say("tool-result", id="c1", output="x", is_error=False)
        say("text-delta", text="last "); say("text-delta", text="words"); say("text", text="last words")
        say("usage", input=3000, output=50)
        say("turn-end", text="last words")
    """, lifecycle=SLEEPER)
    chat = chat_with(lab, project)
    chat.type("go\n")
    chat.wait_shown("3,000 tokens in, 50 out")
    shown = [line.strip() for line in chat.lines if line.strip()]
    words = [line for line in shown if line in ("turn 1", "first words", "turn 2", "last words")]
    assert words == ["turn 1", "first words", "turn 2", "last words"], shown
    leave(chat)

# SPDX-License-Identifier: Apache-2.0
#
# `mur chat`: a conversation with a capsule on a real terminal and through a pipe.

import os
import re
import signal

import pytest

from tests.support.fixtures import own_component
from tests.support.model_server import Reply, answer, call
from tests.support.polling import eventually
from tests.support.provider_forms import ChatCompletions, Turn
from tests.support.terminal import Terminal

TALK = [
    {"thinking": "first a look", "tool_calls": [{"name": "files", "input": {"action": "list"}}]},
    {"text": "First: {{task}}"},
    {"text": "Second: {{task}}"},
]
HOSTILE = "Before \x1b[2J\x1b]0;owned\x07\x1b[31mred \x9b31m after"
WIDTHS = pytest.mark.parametrize("columns", [40, 200])


def talker(lab, steps=TALK, **manifest):
    return lab.agent("talker", steps=steps, tools=["std/files@0.1.0"], **manifest)


def asker(lab, model):
    probe = lab.publish("tool-probe", own_component("tool-probe"), description="probe",
                        input_schema={"type": "object", "properties": {"do": {"type": "string"}}})
    return lab.agent("asker", "std/driver-anthropic@0.1.0", tools=[probe],
                     gateway={"endpoint": model.url, "keyless": True}, context={"max_tokens": 100000},
                     inference={"model": "claude-test"})


def at_terminal(lab, *arguments, **how):
    terminal = Terminal(lab, "chat", *arguments, **how)
    terminal.wait_for(r"^> ")
    return terminal


def nothing_runs(lab):
    return lab.mur("ps", "--json").ok().json["capsules"] == []


def test_chat_through_a_pipe_answers_each_line_and_leaves(lab):
    talker(lab)
    result = lab.mur("chat", "talker", stdin="hello\n\nand now?").ok()
    assert result.stdout == "First: hello\nSecond: and now?\n"
    eventually(lambda: nothing_runs(lab))


def test_chat_through_a_pipe_loses_nothing_of_other_systems_lines(lab):
    """A mark at the start, CRLF, a NUL: what PowerShell and half binary files pipe."""
    talker(lab)
    result = lab.mur("chat", "talker", stdin="\ufeffa\0b\r\nlast\r\n").ok()
    assert result.stdout == "First: a\N{REPLACEMENT CHARACTER}b\nSecond: last\n"


def test_chat_through_a_pipe_takes_commands_and_files_for_text(lab):
    talker(lab)
    (lab.directory / "secret.txt").write_text("never sent\n")
    result = lab.mur("chat", "talker", stdin="/quit @secret.txt\n").ok()
    assert result.stdout == "First: /quit @secret.txt\n"


@WIDTHS
def test_chat_at_a_terminal_keeps_the_conversation(lab, model, columns):
    asker(lab, model)
    model.script(answer("one"), answer("two"))
    chat = at_terminal(lab, "asker", columns=columns)
    chat.type("first\n")
    chat.wait_for(r"^  one$")
    chat.type("second\n")
    chat.wait_for(r"^  two$")
    assert "first" in str(model.requests[-1].json["messages"]) and "one" in str(model.requests[-1].json["messages"])
    chat.type("/new\nthird\n")
    model.script(answer("three"))
    chat.wait_for(r"^  three$")
    assert "first" not in str(model.requests[-1].json["messages"])
    chat.type("/quit\n")
    assert chat.end() == 0
    assert nothing_runs(lab)


@WIDTHS
def test_chat_at_a_terminal_shows_thinking_and_calls(lab, columns):
    talker(lab)
    chat = at_terminal(lab, "talker", columns=columns)
    chat.type("look\n")
    chat.wait_for(r"First: look")
    assert "first a look" in chat.text and re.search(r"✓ files", chat.text)
    assert "\x1b[2m" in chat.raw
    chat.wait_for(r"completed[\s\S]*\n\r?> ?\Z")  # the line editor has the keys again
    chat.type("\x04")
    assert chat.end() == 0


def test_chat_heeds_no_color(lab):
    talker(lab)
    chat = at_terminal(lab, "talker", env={"NO_COLOR": "1"})
    chat.type("look\n")
    chat.wait_for(r"First: look")
    chat.type("/quit\n")
    assert chat.end() == 0
    assert not re.search(r"\x1b\[[0-9;]*m", chat.raw)


def test_chat_answers_a_question_in_place(lab, model):
    asker(lab, model)
    model.script(call("tool-probe", {"do": "ask which one?"}), answer("the second it is"))
    chat = at_terminal(lab, "asker")
    chat.type("choose\n")
    chat.wait_for(r"^answer> ")
    assert "which one?" in chat.text
    chat.type("the second\n")
    chat.wait_for(r"the second it is")
    assert chat.text.count("which one?") == 1
    assert "the second" in str(model.requests[-1].json["messages"][-1])
    chat.type("/quit\n")
    assert chat.end() == 0


def test_chat_through_a_pipe_answers_a_question_with_the_next_line(lab, model):
    asker(lab, model)
    model.script(call("tool-probe", {"do": "ask which one?"}), answer("the second it is"))
    result = lab.mur("chat", "asker", stdin="choose\nthe second\n").ok()
    assert result.stdout == "the second it is\n" and result.stderr.count("the task asks: ") == 1
    model.script(call("tool-probe", {"do": "ask which one?"}))
    lab.mur("chat", "asker", stdin="choose\n").failed("E-RUN-040")


def test_chat_ctrl_c_cancels_the_turn_and_the_conversation_goes_on(lab):
    talker(lab, steps=[{"text": "x" * 200, "chunk_bytes": 1, "chunk_delay_ms": 500}, {"text": "Second: {{task}}"}])
    chat = at_terminal(lab, "talker")
    chat.type("long\n")
    chat.wait_for(r"turn 1")
    chat.type("\x03")
    chat.wait_for(r"■ canceled")
    assert chat.is_running
    chat.type("\x03")
    chat.wait_for(r"Ctrl-D or /quit leaves")
    chat.type("\x03")
    assert chat.end() == 0
    assert nothing_runs(lab)


def test_chat_ctrl_c_twice_in_a_turn_leaves(lab, model):
    asker(lab, model)
    model.script(answer("never seen", delay_s=60))
    chat = at_terminal(lab, "asker")
    chat.type("long\n")
    chat.wait_for(r"turn 1")
    session = lab.mur("ps", "--json").ok().json["capsules"][0]["pid"]
    os.kill(session, signal.SIGSTOP)  # so that it cannot be cancelled before the second one
    chat.type("\x03")
    chat.wait_for(r"cancelling")
    chat.type("\x03")
    chat.wait_for(r"\n\^C[^>]*\^C")
    os.kill(session, signal.SIGCONT)
    assert chat.end() == 0
    assert nothing_runs(lab) and "canceled" not in chat.text


def test_chat_shows_what_a_model_says_and_obeys_none_of_it(lab):
    talker(lab, steps=[{"text": HOSTILE}])
    chat = at_terminal(lab, "talker")
    chat.type("go\n")
    chat.wait_for(r"✓ completed")
    chat.type("/quit\n")
    assert chat.end() == 0
    for forbidden in ("\x1b[2J", "\x1b]0", "\x07", "\x1b[31mred", "\x9b"):
        assert forbidden not in chat.raw
    assert "Before" in chat.text and "after" in chat.text


def test_chat_joins_a_session_and_leaves_it_running(lab, model):
    running = asker(lab, model).start("--lifecycle-task-acceptance", "queue", "--lifecycle-after-task", "sleep")
    running.wait_for("^session: ")
    model.script(answer("one"), answer("two"))
    assert lab.mur("chat", running.session_id, stdin="hello\n").ok().stdout == "one\n"
    chat = at_terminal(lab, running.session_id[-8:])
    chat.type("again\n")
    chat.wait_for(r"^  two$")
    chat.type("/quit\n")
    assert chat.end() == 0 and running.is_running
    chat = at_terminal(lab, "@1")
    chat.type("/stop\n")
    assert chat.end() == 0
    running.result()
    lab.mur("chat", "@1", stdin="x").failed("E-RUN-022")


def test_chat_sends_the_text_of_a_named_file(lab, model):
    asker(lab, model)
    (lab.directory / "notes.txt").write_text("forty-two\n")
    (lab.directory / "binary").write_bytes(b"a\0b")
    model.script(answer("read"))
    chat = at_terminal(lab, "asker")
    chat.type("see @binary\n")
    chat.wait_for(r"binary is no text")
    chat.type("see @notes.txt and @nobody\n")
    chat.wait_for(r"^  read$")
    sent = str(model.requests[-1].json["messages"])
    assert "forty-two" in sent and "@nobody" in sent and len(model.requests) == 1
    chat.type("/quit\n")
    assert chat.end() == 0


def test_chat_commands_say_what_it_did_and_may_do(lab):
    talker(lab)
    chat = at_terminal(lab, "talker")
    chat.type("look\n")
    chat.wait_for(r"✓ completed")
    chat.type("/trace\n")
    chat.wait_for(r"(?s)✓ completed.*/trace.*files")
    chat.type("/grants\n")
    chat.wait_for(r"Effective grants")
    chat.type("/nothing\n")
    chat.wait_for(r"there is no /nothing")
    chat.type("/help\n")
    chat.wait_for(r"/stop ")
    chat.type("/quit\n")
    assert chat.end() == 0


def test_chat_in_an_empty_folder_talks_to_the_bundled_capsule(lab):
    empty = lab.directory / "empty"
    empty.mkdir()
    result = lab.mur("chat", cwd=empty, stdin="hello\nmore\n").ok()
    assert "You said: hello" in result.stdout and "You said: more" in result.stdout
    assert "mur new agent" in result.stderr
    assert list(empty.iterdir()) == []


def test_chat_of_what_cannot_start_says_why(lab):
    result = lab.mur("chat", "nowhere/murmur.yaml", stdin="x").failed("E-IO-001")
    assert "nowhere" in result.stderr
    assert "mur ps" in lab.mur("chat", "nobody", stdin="x").failed("E-RUN-022").stderr


def test_chat_that_is_killed_leaves_nothing(lab):
    talker(lab)
    chat = at_terminal(lab, "talker")
    session = lab.mur("ps", "--json").ok().json["capsules"][0]
    os.kill(chat.pid, signal.SIGKILL)
    chat.end()
    eventually(lambda: not os.path.exists(f"/proc/{session['pid']}"), 30)


def test_chat_says_that_its_session_died(lab):
    talker(lab)
    chat = at_terminal(lab, "talker")
    os.kill(lab.mur("ps", "--json").ok().json["capsules"][0]["pid"], signal.SIGKILL)
    chat.type("hello\n")
    chat.wait_for(r"the session has ended")
    chat.end()


def test_chat_with_a_provider_talks_to_its_model(lab):
    server = lab.model_server()
    server.script(Reply(body=ChatCompletions().stream(Turn(text="real")), content_type="text/event-stream"))
    result = lab.mur("chat", "--with", server.url, "--model", "any: \"one\"", stdin="hello\n").ok()
    assert result.stdout == "real\n"
    assert server.requests[-1].json["model"] == "any: \"one\""
    assert "anthropic, openai" in lab.mur("chat", "--with", "nobody", "--model", "x", stdin="x").failed("E-IO-003").stderr
    lab.mur("chat", "--with", "openai", stdin="x").failed(exit_status=2)


@pytest.mark.parametrize("model, shown", [("nobody-knows-it", r"context \d+(?! \()"), ("gpt-4o-mini", r"context \d+ \(0 %\)")])
def test_chat_shows_a_share_of_a_window_only_where_it_is_known(lab, model, shown):
    server = lab.model_server()
    server.script(Reply(body=ChatCompletions().stream(Turn(text="real")), content_type="text/event-stream"))
    chat = at_terminal(lab, "--with", server.url, "--model", model)
    chat.type("hello\n")
    chat.wait_for(shown)
    chat.type("/quit\n")
    assert chat.end() == 0


def test_chat_in_an_empty_folder_says_how_a_key_is_used(lab):
    result = lab.mur("chat", stdin="hello\n", env={"ANTHROPIC_API_KEY": "sk-never-shown"}).ok()
    assert "mur chat --with anthropic --model NAME" in result.stderr
    assert "openai" not in result.stderr and "sk-never-shown" not in result.stderr + result.stdout

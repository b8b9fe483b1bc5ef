# SPDX-License-Identifier: Apache-2.0
#
# Answers are seen: what `mur run` shows on a terminal, with --print, --quiet and with a task on standard input. What a pipe
# gets without --print is as it was (test_cli_contracts.py). newcomer_* are rows of a newcomer's notes.

import json
import re
import signal
import threading

import pytest

from tests.support.model_server import Reply, answer, call, fault
from tests.support.polling import eventually
from tests.support.terminal import Terminal

STREAM = {"content-type": "text/event-stream"}


@pytest.fixture
def agent(lab, model):
    return lab.agent("agent", "std/driver-anthropic@0.1.0", tools=["std/files@0.1.0"],
                     gateway={"endpoint": model.url, "keyless": True}, context={"max_tokens": 100000},
                     inference={"model": "claude-test", "retry": {"initial_delay_ms": 600, "max_delay_ms": 5000}})


def on_terminal(lab, project, *arguments, **how):
    return Terminal(lab, "run", *arguments, cwd=project.directory, **how)


def test_newcomer_A1_a_terminal_shows_the_answer_apart_from_the_status_lines(lab, model, agent):
    model.script(call("files", {"action": "list"}, text="Let me look."), answer("There is nothing here."))
    terminal = on_terminal(lab, agent, "--task", "What is here?")
    assert terminal.end() == 0
    lines = terminal.text.split("\n")
    assert "  Let me look." in lines
    assert any(re.search(r"  ✓ files  \[ok", line) for line in lines), terminal.text
    assert lines.index("  There is nothing here.") < lines.index("status:  ok")
    assert lines[lines.index("  There is nothing here.") + 1].startswith("  ✓ completed  2 turns, 1 call")
    assert "\x1b[32m" in terminal.raw


def test_newcomer_A2_text_is_shown_while_it_streams(lab, model, agent):
    go_on = threading.Event()
    model.script(answer("First words and the rest of them.", hold_body=go_on, chunk_bytes=420))
    terminal = on_terminal(lab, agent, "--task", "go")
    terminal.wait_for("turn 1")
    assert "completed" not in terminal.text
    go_on.set()
    assert terminal.end() == 0
    assert "  First words and the rest of them." in terminal.text.splitlines()


def test_newcomer_A2_retries_are_said_while_a_person_waits(lab, model, agent):
    model.script(fault(429), fault(529), fault(500), answer("four"))
    terminal = on_terminal(lab, agent, "--task", "2 + 2")
    assert terminal.end() == 0
    assert re.search(r"the provider is busy \(429\), attempt 2 of 7, again in 0\.[3-6] s", terminal.text)
    assert re.search(r"the provider is overloaded \(529\), attempt 3 of 7, again in", terminal.text)
    assert re.search(r"the provider failed \(500\), attempt 4 of 7, again in", terminal.text)


def test_newcomer_A2_retries_are_said_to_whoever_watches(lab, model):
    project = lab.agent("agent", "std/driver-anthropic@0.1.0", gateway={"endpoint": model.url, "keyless": True},
                        inference={"model": "claude-test", "retry": {"initial_delay_ms": 1, "max_delay_ms": 5}},
                        lifecycle={"task_acceptance": "queue", "after_task": "sleep"})
    model.script(fault(429), answer("four"))
    running = project.start("--task", "2 + 2")
    running.wait_for("^session:")
    watch = lab.start("watch", "@1")
    watch.wait_for(r"^\[working\]  the provider is busy \(429\), attempt 2 of 7")
    running.signal(signal.SIGTERM).result()


def test_answers_print_gives_the_answer_alone(lab, model, agent):
    model.script(answer("four"))
    result = agent.run("--print", "--task", "2 + 2").ok()
    assert result.stdout == "four\n"
    assert re.search(r"^murmur: url localhost:\d+\nsession: ses_[0-9a-f]{32}\nstatus:  ok$", result.stderr, re.MULTILINE)


def test_answers_print_of_several_turns_is_the_last_ones(lab, model, agent):
    model.script(call("files", {"action": "list"}, text="Looking."), answer("Empty.\n"))
    assert agent.run("-p", "--task", "look").ok().stdout == "Empty.\n"


def test_answers_print_with_json_is_one_object(lab, model, agent):
    model.script(answer("four", usage={"input_tokens": 12, "output_tokens": 3}))
    result = agent.run("-p", "--json", "--task", "2 + 2").ok()
    assert len(result.stdout.splitlines()) == 1
    told = result.json
    assert list(told) == sorted(told)
    assert told["answer"] == "four" and told["status"] == "ok" and told["turns"] == 1
    end = lab.session(told["session_id"]).trace.one("session_end")
    assert (told["input_tokens"], told["output_tokens"], told["status"]) == (
        end["total_input_tokens"], end["total_output_tokens"], end["exit_status"])


def test_answers_print_of_a_failure_prints_nothing_and_says_why(lab, model, agent):
    model.script(fault(400, "model not found: x"))
    result = agent.run("--print", "--task", "go").failed("E-RUN-040")
    assert result.stdout == ""
    assert "model not found: x" in result.stderr and "status:  failed" in result.stderr
    model.script(fault(400, "model not found: x"))
    told = agent.run("-p", "--json", "--task", "go").failed("E-RUN-040").json
    assert told["answer"] is None and told["status"] == "failed"


def test_answers_print_says_retries_to_a_terminal_only(lab, model, agent):
    model.script(fault(429), answer("four"))
    terminal = on_terminal(lab, agent, "-p", "--task", "2 + 2", streams="02")
    assert terminal.end() == 0
    assert terminal.stdout == "four\n"
    assert "the provider is busy (429)" in terminal.text
    model.script(fault(429), answer("four"))
    assert "busy" not in agent.run("-p", "--task", "2 + 2").ok().stderr


def test_answers_print_of_a_capsule_that_goes_on_is_that_of_its_own_task(lab, model, agent):
    model.script(answer("mine"), answer("theirs"))
    running = agent.start("--print", "--task", "first", "--lifecycle-task-acceptance", "queue",
                          "--lifecycle-after-task", "sleep")
    running.wait_for("^mine$")
    lab.mur("send", "@1", "second").ok()
    assert running.signal(signal.SIGTERM).result().stdout == "mine\n"


def test_answers_quiet_says_nothing_but_answer_and_errors(lab, model, agent):
    model.script(answer("four"))
    result = agent.run("--quiet", "--task", "2 + 2").ok()
    assert (result.stdout, result.stderr) == ("", "")
    model.script(answer("four"))
    terminal = on_terminal(lab, agent, "-q", "--task", "2 + 2")
    assert terminal.end() == 0 and terminal.text == "four\n"
    model.script(fault(400, "no"))
    assert agent.run("-q", "--task", "x").failed("E-RUN-040").stdout == ""
    agent.run("-q", "-v", "--task", "x").failed(exit_status=2)


def test_answers_no_colour_without_a_terminal_or_with_NO_COLOR(lab, model, agent):
    model.script(answer("four"))
    terminal = on_terminal(lab, agent, "--task", "x", env={"NO_COLOR": "1"})
    assert terminal.end() == 0 and "\x1b[" not in terminal.raw and "✓ completed" in terminal.text
    model.script(answer("four"))
    terminal = on_terminal(lab, agent, "--task", "x", env={"TERM": "dumb"})
    assert terminal.end() == 0 and "\x1b[3" not in terminal.raw.replace("\x1b[33m", "")
    assert "four" in terminal.text.splitlines()


def test_newcomer_C3_heads_of_errors_are_coloured_on_a_terminal_only(lab):
    project = lab.project("empty")
    terminal = on_terminal(lab, project, "--task", "x")
    assert terminal.end() == 1
    assert re.search(r"\x1b\[1;31merror\[E-[A-Z]+-\d+\]\x1b\[0m: ", terminal.raw)
    assert "\x1b[36m  hint\x1b[0m: " in terminal.raw
    assert "\x1b" not in project.run("--task", "x").failed().stderr
    terminal = on_terminal(lab, project, "--task", "x", env={"NO_COLOR": "1"})
    assert terminal.end() == 1 and "\x1b" not in terminal.raw


def test_answers_a_narrow_terminal_wraps_between_words(lab, model, agent):
    model.script(answer("one two three four five six seven eight nine ten eleven twelve"))
    terminal = on_terminal(lab, agent, "--task", "x", columns=30)
    assert terminal.end() == 0
    shown = [line for line in terminal.text.splitlines() if line.startswith("  one") or "twelve" in line]
    assert all(len(line) < 30 for line in shown) and len(shown) == 2


def test_answers_nothing_an_agent_says_moves_the_terminal(lab, model, agent):
    model.script(answer("a\x1b[2Jb\x07c\u009b31md"))
    terminal = on_terminal(lab, agent, "--task", "x")
    assert terminal.end() == 0
    assert "\x1b[2J" not in terminal.raw and "\x07" not in terminal.raw and "\u009b" not in terminal.raw


def test_newcomer_B2_a_task_of_standard_input(lab, model, agent):
    model.script(answer("done"), answer("done"), answer("done"))
    agent.run("--task", "-", stdin="from a pipe").ok()
    assert model.requests[-1].json["messages"][0]["content"][0]["text"].endswith("from a pipe")
    agent.write("task.txt", "größer".encode("utf-16"))
    agent.run("--task", "task.txt").ok()
    assert model.requests[-1].json["messages"][0]["content"][0]["text"].endswith("größer")
    agent.write("task.txt", "\ufeffmarked")
    agent.run("--task", "task.txt").ok()
    assert model.requests[-1].json["messages"][0]["content"][0]["text"] == "marked"
    (agent / "work").mkdir()
    agent.write("work/task.md", "größer".encode("utf-16"))
    model.script(answer("done"))
    agent.run("--workdir", "work").ok()
    assert model.requests[-1].json["messages"][0]["content"][0]["text"].endswith("größer")
    result = agent.run("--task", "-", stdin="").failed("E-RUN-007")
    assert "blank" in result.stderr


def test_newcomer_B2_what_looks_like_a_file_that_is_not_there_is_said(lab, model, agent):
    model.script(repeat=answer("done"))
    for value in ("missing-file.md", "./notes", "/tmp/none/x"):
        assert f"there is no file {value}" in agent.run("--task", value).ok().stderr
    for value in ("what is in a.md and b?", "and/or", "3.5"):
        assert "there is no file" not in agent.run("--task", value).ok().stderr


def test_newcomer_A4_a_run_without_a_task_says_what_it_waits_for(lab, agent):
    result = agent.run(env={"MURMUR_A2A_TIMEOUT_SECS": "1"}).ok()
    assert re.search(r"waiting 1 s for a task; send one with: mur send ses_[0-9a-f]{32} ", result.stderr)
    assert "no task came" in result.stderr
    assert result.status == "ok"


def test_newcomer_A4_the_said_command_is_the_right_one(lab, model, agent):
    model.script(answer("done"))
    running = agent.start()
    command = eventually(lambda: re.search(r"mur (send ses_\w+) ", running.stderr), 20).group(1)
    lab.mur(*command.split(), "hello").ok()
    result = running.result().ok()
    assert "no task came" not in result.stderr


def test_report_36_a_full_device_is_an_error_everywhere(lab, model, agent):
    model.script(repeat=answer("done"))
    for arguments in (["--json"], [], ["-p"], ["-p", "--json"]):
        with open("/dev/full", "w") as full:
            result = agent.mur("run", "--task", "x", *arguments, stdout=full).failed("E-IO-003")
        assert "No space left on device" in result.stderr
    assert len(lab.records) == 4 and all(
        json.loads((path / "trace.jsonl").read_text().splitlines()[-1])["exit_status"] == "ok" for path in lab.records)

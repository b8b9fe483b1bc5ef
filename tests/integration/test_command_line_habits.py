# SPDX-License-Identifier: Apache-2.0
#
# The command line as newcomers type it: words of other programs, arguments that were meant for an option, help on terminals
# of any width. newcomer_* are rows of a newcomer's notes.

import re

import pytest

from tests.support.terminal import Terminal


@pytest.mark.parametrize("typed, meant", [
    ("logs", "watch"), ("attach", "watch"), ("exec", "send"), ("ask", "send"), ("init", "new"), ("history", "trace list"),
    ("kill", "stop"), ("pull", "install"), ("sned", "send"),
])
def test_newcomer_A3_words_of_other_programs_are_understood(lab, typed, meant):
    result = lab.mur(typed, "x").failed(exit_status=2)
    assert f"unknown command '{typed}'" in result.stderr and f"did you mean '{meant}'?" in result.stderr


@pytest.mark.parametrize("words", [["ls"], ["conversation", "list"], ["trace", "ls"]])
def test_newcomer_B20_list_and_ls_are_one(lab, words):
    other = [{"ls": "list", "list": "ls"}.get(word, word) for word in words]
    assert lab.mur(*words).stdout == lab.mur(*other).stdout != ""


def test_newcomer_B1_a_task_typed_as_an_argument_is_told_its_option(lab):
    assert 'did you mean --task "hi there"?' in lab.mur("run", "hi there").failed(exit_status=2).stderr
    assert "did you mean '--task'?" in lab.mur("run", "-t", "hi").failed(exit_status=2).stderr


@pytest.mark.parametrize("columns", [200, 96, 80, 60, 40, 20])
@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["trace", "--help"], ["help", "trace", "report"]])
def test_newcomer_C1_help_wraps_between_words_at_the_terminals_width(lab, words, columns):
    terminal = Terminal(lab, *words, columns=columns)
    assert terminal.end() == 0
    whole = lab.mur(*words).ok().stdout
    assert terminal.text.split() == whole.split()  # nothing is cut
    room = max(40, min(columns - 1, 96))
    for line in terminal.text.split("\n"):
        is_unbreakable = line.startswith("  mur ") or line.startswith("usage: ") or len(line.split()) <= 3
        assert len(line) <= room or is_unbreakable, line


def test_newcomer_C1_a_pipe_gets_the_full_width(lab):
    lines = lab.mur("run", "--help").ok().stdout.split("\n")
    assert 80 < max(map(len, lines)) <= 96
    assert any(re.match(r"      --workdir <WORKDIR> +work folder", line) for line in lines)

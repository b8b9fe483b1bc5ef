# SPDX-License-Identifier: Apache-2.0
#
# What completes a line of mur in the shells, asked of the shells themselves, and an installation that goes away again.

import os
import re
import shutil
import subprocess

import pytest

from tests.support.lab import ROOT

BASH = r"""
source "$1"; shift
compopt () { echo FILES; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
_mur
printf '%s\n' "${COMPREPLY[@]}"
"""
ZSH = r"""
compdef () { : }
compadd () { print -l -- $reply }
_describe () { [[ $1 == -o && ${words[CURRENT]} != -* ]] || print -l -- ${reply%%:*} }
_files () { print FILES }
source $1; shift
words=("$@") CURRENT=$#
_mur
"""
CASES = [
    ("mur tra", {"trace"}), ("mur trace ", {"show", "steps", "diff", "report", "export", "pack", "list", "fetch", "rm"}), ("mur trace sh", {"show"}),
    ("mur run --resume-mode ", {"full", "compact"}), ("mur run --json --verb", {"--verbose"}), ("mur run --task ", {"FILES"}),
    ("mur publish ", {"FILES"}), ("mur trace show --bo", {"--body"}), ("mur explain --he", {"--help"}), ("mur run --parent-w", set())]


def lines(shell, script, path, words):
    done = subprocess.run([shell, *(["-f"] if shell == "zsh" else ["--norc"]), "-c", script, "x", path, *words], capture_output=True,
                          text=True, timeout=30, env={"PATH": os.environ["PATH"], "HOME": "/nowhere"})
    assert done.stderr == "", done.stderr
    return [line for line in done.stdout.splitlines() if line]


def completed(lab, tmp_path, shell, line):
    path = tmp_path / f"mur.{shell}"
    path.write_text(lab.mur("completions", shell).ok().stdout)
    words = line.split(" ")
    if shell == "fish":
        done = subprocess.run(["fish", "--no-config", "-c", f"source {path}; complete -C '{line}'"], capture_output=True, text=True,
                              timeout=30, cwd=tmp_path, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
        assert done.stderr == "", done.stderr
        return {found.split("\t")[0] for found in done.stdout.splitlines()}
    found = lines(shell, BASH if shell == "bash" else ZSH, path, words)
    return {word for word in found if word == "FILES" or word.startswith(words[-1])}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_newcomer_completions_know_commands_options_and_choices(lab, tmp_path, shell):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    for line, wanted in CASES:
        found = completed(lab, tmp_path, shell, line)
        if shell == "fish" and "FILES" in wanted:
            continue  # it shows the folder's files by itself
        assert found == wanted, line


def test_newcomer_completions_are_the_whole_table(lab):
    script = lab.mur("completions", "bash").ok().stdout
    listed = set(re.findall(r"\('(.*?)'\) reply", script))
    told = lab.mur("--help").ok().stdout
    for command in ("run", "chat", "trace show", "eval run", "mcp add", "completions"):
        assert command in listed and command.split(" ")[0] in told
    assert "--parent-workdir-snapshot" not in script and "--explain-scope" in script
    lab.mur("completions", "tcsh").failed("E-IO-003")
    assert lab.mur("completions").code == 2


def test_newcomer_C7_a_code_without_its_letter_is_answered(lab):
    assert lab.mur("explain", "run-011").ok().stdout.startswith("E-RUN-011\n")
    both = lab.mur("explain", "RUN-003").ok().stdout
    assert both.startswith("E-RUN-003\n") and "\nW-RUN-003\n" in both and both.count("What to do:") == 2
    assert "mur explain" in lab.mur("explain", "RUN-9999").failed("E-IO-001").stderr


def test_newcomer_B23_what_was_installed_goes_away_and_nothing_else(tmp_path):
    ours = ["bin/mur", "bin/mur-roost", "share/murmur/artifacts/x", "share/doc/murmur/README.md", "share/man/man1/mur.1",
            "share/bash-completion/completions/mur", "share/zsh/site-functions/_mur", "share/fish/vendor_completions.d/mur.fish"]
    others = ["bin/murex", "share/man/man1/ls.1"]
    for name in ours + others:
        (tmp_path / "p" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "p" / name).write_text("x")
    command = [ROOT / "scripts/uninstall", tmp_path / "p"]
    env = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 0 and f"{tmp_path}/p/bin/mur is gone" in done.stderr
    left = {str(path.relative_to(tmp_path / "p")) for path in (tmp_path / "p").rglob("*")}
    assert left == {"bin", "bin/murex", "share", "share/man", "share/man/man1", "share/man/man1/ls.1"}
    again = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
    assert again.returncode == 1 and "nothing of murmur is below" in again.stderr

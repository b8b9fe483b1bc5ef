# SPDX-License-Identifier: Apache-2.0
#
# A tool in each language of `mur new tool`, built with that language's own tooling: all answer the same questions alike.

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lab import BUILD, ROOT, base_environment

LANGUAGES = ["c", "python", "javascript", "rust", "go"]
QUESTIONS = [
    ({"name": "Ada"}, "Hello, Ada!"),
    ({"name": "Zoë 木 \U0001f600"}, "Hello, Zoë 木 \U0001f600!"),
    ({"name": "x" * 20_000}, "Hello, " + "x" * 20_000 + "!"),
    ({"name": ""}, "Hello, !"),
    ({"name": 'quo"te\\ and\nline'}, 'Hello, quo"te\\ and\nline!'),
]


def missing(language):
    """Why a tool of this language cannot be built here; None when it can."""
    needed = {"python": ["python3"], "javascript": ["npm", "node"], "rust": ["cargo"], "c": ["clang"], "go": ["go"]}[language]
    for program in needed:
        if not shutil.which(program):
            return f"{program} is not installed"
    if language == "rust":
        told = subprocess.run(["rustc", "--print", "target-libdir", "--target", "wasm32-wasip2"], capture_output=True, text=True)
        if told.returncode != 0 or not Path(told.stdout.strip()).is_dir():
            return "Rust's wasm32-wasip2 target is not installed"
    return None


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The packed tool of a language, built once for this run."""
    packed = {}

    def build(language):
        if language not in packed:
            folder = tmp_path_factory.mktemp(language)
            environment = {**base_environment(Path.home(), folder), "MURMUR_SOURCE": str(ROOT)}
            mur = BUILD / "mur"
            subprocess.run([mur, "new", "tool", f"greet-{language}", "--language", language], cwd=folder, env=environment, check=True,
                           capture_output=True)
            done = subprocess.run([mur, "build"], cwd=folder / f"greet-{language}", env=environment, capture_output=True, text=True,
                                  timeout=900)
            packed[language] = (done, folder / f"greet-{language}" / f"greet-{language}-0.1.0.mur.zip")
        done, path = packed[language]
        if done.returncode != 0 and any(word in done.stderr for word in ("ENOTFOUND", "ETIMEDOUT", "Could not find a version",
                                                                         "No matching distribution")):
            pytest.skip(f"the tooling cannot be had: {done.stderr.strip()[-200:]}")
        assert done.returncode == 0, done.stderr[-3000:]
        return path

    return build


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_answer_alike(lab, built, language):
    reason = missing(language)
    if reason:
        pytest.skip(reason)
    archive = built(language)
    lab.mur("publish", archive).ok()
    name = f"greet-{language}"
    for number, (question, answer) in enumerate([*QUESTIONS, ({"name": "again"}, "Hello, again!")]):
        project = lab.agent(f"asks-{number}", steps=[{"tool_calls": [{"name": name, "input": question}]}, {"text": "{{result}}"}],
                            tools=[f"local/{name}@0.1.0"])
        said = project.run("--task", "x", "--print", timeout=300).ok().stdout
        assert answer in said, (question, said[:300])
    print(f"{language}: {archive.stat().st_size} bytes packed", file=sys.stderr)


GO_GROWS = """package main

import (
	"fmt"
	"os"
)

// Touches 60 MB, calling the host in between: neither may write into the other's memory.
func tool(input string) Result {
	var all [][]byte
	for i := 0; i < 60; i++ {
		block := make([]byte, 1<<20)
		for j := range block {
			block[j] = byte(i)
		}
		all = append(all, block)
		if err := os.WriteFile("notes.txt", block[:10], 0o644); err != nil {
			return Failed(err.Error())
		}
		Progress("more")
	}
	for i, block := range all {
		for _, b := range block {
			if b != byte(i) {
				return Failed("spoilt")
			}
		}
	}
	text, err := os.ReadFile("notes.txt")
	return Passed(fmt.Sprint("whole ", len(text), err))
}
"""


def test_languages_go_memory_and_files_hold(lab, tmp_path):
    if missing("go"):
        pytest.skip(missing("go"))
    environment = {**base_environment(Path.home(), tmp_path), "MURMUR_SOURCE": str(ROOT)}
    subprocess.run([BUILD / "mur", "new", "tool", "grow", "--language", "go"], cwd=tmp_path, env=environment, check=True)
    (tmp_path / "grow/tool.go").write_text(GO_GROWS)
    done = subprocess.run([BUILD / "mur", "build"], cwd=tmp_path / "grow", env=environment, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr[-3000:]
    lab.mur("publish", tmp_path / "grow/grow-0.1.0.mur.zip").ok()
    project = lab.agent("grows", steps=[{"tool_calls": [{"name": "grow", "input": {"name": "x"}}]}, {"text": "{{result}}"}],
                        tools=["local/grow@0.1.0"])
    assert "whole 10 <nil>" in project.run("--task", "x", "--print", timeout=120).ok().stdout
